"""Equal requests that arrive together: the ledger charges one of them, and all get the response of that one."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from ldp_budget import Accountant, Collection, mechanism
from ldp_budget_service.settings import Settings
from service_farm import PATIENCE, Answer, Caller
from service_threads import Served

OUE = {"name": "oue", "epsilon": "1", "domain_size": 3}
PARTY = Collection("party", mechanism("oue")(epsilon="1", domain_size=3))
DIGEST = PARTY.definition()["digest"]
CALLERS, KEYS, LINES = 8, 12, 30

Ask = Callable[[Caller, int], Answer]


@pytest.fixture(params=[":memory:", "file"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    place = request.param if request.param == ":memory:" else tmp_path / "budget.db"
    with Accountant(place) as accountant:
        accountant.set_policy("default", ["lifetime=1000000"])
        accountant.add_collection(PARTY)
        with Served(accountant, Settings()) as made:
            yield made


def spend(caller: Caller, number: int) -> Answer:
    return caller.ask("POST", "/v1/spends", {"user": "a", "mechanism": OUE}, Idempotency_Key=f"k{number}")


def reserve(caller: Caller, number: int) -> Answer:
    return caller.ask("POST", "/v1/reservations", {"user": "a", "mechanism": OUE}, Idempotency_Key=f"k{number}")


def batch(caller: Caller, number: int) -> Answer:
    lines = [{"user": f"{number}/{each}", "mechanism": OUE} for each in range(LINES)]
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    return caller.ask("POST", "/v1/spends:batch", body, Idempotency_Key=f"k{number}")


def report(caller: Caller, number: int) -> Answer:
    headers = {"X_User": "a", "X_Collection": DIGEST, "Content_Type": "application/octet-stream"}
    return caller.ask("POST", "/v1/collections/party/reports", b"\2", Idempotency_Key=f"k{number}", **headers)


def seal(caller: Caller, number: int) -> Answer:
    return caller.ask("POST", "/v1/collections/party/rounds", {"round": f"round {number}"})


def together(served: Served, ask: Ask, keys: int = KEYS) -> list[list[Answer]]:
    """Return the answers to each key, for which all callers ask at the same moment."""
    secret, barrier = served.secret("admin", "spend", "collect"), threading.Barrier(CALLERS)
    answers: list[list[Answer]] = [[] for _ in range(keys)]

    def work() -> None:
        with Caller(served.port, secret) as caller:
            for number in range(keys):
                barrier.wait(PATIENCE)
                answers[number].append(ask(caller, number))

    threads = [threading.Thread(target=work) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert all(len(some) == CALLERS for some in answers)
    return answers


def entries(served: Served) -> dict[str, int]:
    """The number of entries that change what a user has spent, by kind."""
    found: dict[str, int] = served.accountant.stats()["entries_by_kind"]
    return {kind: found[kind] for kind in ("spent", "reserved") if found.get(kind)}


@pytest.mark.parametrize(("ask", "kind"), [(spend, "spent"), (reserve, "reserved"), (report, "spent")])
def test_equal_charges_together_are_charged_once_and_all_answered(served: Served, ask: Ask, kind: str) -> None:
    for some in together(served, ask):
        assert {answer.status for answer in some} == {200}
        found: list[dict[str, Any]] = [answer.json() for answer in some]
        assert len({each["receipt"] for each in found}) == 1
        assert sum(not each["repeated"] for each in found) == 1
    assert entries(served) == {kind: KEYS}
    assert served.accountant.verify().ok


def test_equal_batches_together_charge_each_line_once(served: Served) -> None:
    for some in together(served, batch):
        assert {answer.status for answer in some} == {200}
        rows = [json.loads(line) for answer in some for line in answer.body.splitlines()]
        assert {row["status"] for row in rows} == {"spent"}
        fresh = Counter(row["line"] for row in rows if not row["repeated"])
        assert (len(fresh), set(fresh.values())) == (LINES, {1})
    assert entries(served) == {"spent": KEYS * LINES}


def test_equal_rounds_together_are_sealed_once(served: Served) -> None:
    with Caller(served.port, served.secret("collect")) as caller:
        for number in range(20):
            assert report(caller, number).status == 200
    [some] = together(served, seal, keys=1)
    codes = Counter(answer.status if answer.status == 200 else answer.json()["type"] for answer in some)
    assert codes == {200: 1, "/problems/name-taken": CALLERS - 1}
