"""`POST /v1/spends`: requests that arrive together share transactions, and each gets its own result."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

from contract.places import InFile
from ldp_budget import Accountant
from ldp_budget.accounting import engine
from ldp_budget.accounting.charge_request import ChargeRequest
from ldp_budget_service import schemas
from ledger_inside import waiting_in
from postgres_servers import wait_until
from service_farm import MECHANISM, PATIENCE, Answer, Caller
from service_threads import Served

pytestmark = pytest.mark.policy("lifetime=0.01")


@pytest.fixture
def place(tmp_path: Path) -> InFile:
    return InFile(tmp_path / "budget.db")


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of charge requests of each transaction."""
    found: list[int] = []
    charge = engine.charge

    def counted(transactions: Mapping[int, Any], requests: Sequence[ChargeRequest]) -> Any:
        found.append(len(requests))
        return charge(transactions, requests)

    monkeypatch.setattr(engine, "charge", counted)
    return found


@contextmanager
def busy(accountant: Accountant, until: int) -> Iterator[None]:
    """Keep the ledger busy until so many submissions wait."""
    begun, release = threading.Event(), threading.Event()

    def work(transaction: object) -> None:
        begun.set()
        release.wait(PATIENCE)

    thread = threading.Thread(target=accountant._ledger.run, args=(work,))
    thread.start()
    assert begun.wait(PATIENCE)
    try:
        yield
        wait_until(lambda: waiting_in(accountant) == until, "the submissions that wait")
    finally:
        release.set()
        thread.join(PATIENCE)


def ask_together(served: Served, secret: str, asked: Sequence[dict[str, Any]]) -> list[Answer]:
    """The answers to spends that wait for one transaction; the nth has the key n."""
    answers: dict[int, Answer] = {}

    def ask(number: int, body: dict[str, Any]) -> None:
        with Caller(served.port, secret) as caller:
            answers[number] = caller.spend(key=str(number), **body)

    threads = [threading.Thread(target=ask, args=each) for each in enumerate(asked)]
    with busy(served.accountant, len(asked)):
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return [answers[number] for number in range(len(asked))]


def test_spends_that_arrive_together_share_a_transaction(accountant: Accountant, sizes: list[int]) -> None:
    with Served(accountant) as served:
        answers = ask_together(served, served.secret("spend"), [{"user": f"user-{n}"} for n in range(16)])
    assert {answer.status for answer in answers} == {200}
    assert [answer.json()["user"] for answer in answers] == [f"user-{n}" for n in range(16)]
    assert sizes == [16]
    assert {answer.headers["Journal-Position"].partition(":")[0] for answer in answers} == {"0"}
    assert accountant.verify().ok


def test_spends_that_arrive_together_get_their_own_results(accountant: Accountant, sizes: list[int]) -> None:
    asked = [{"user": f"user-{n % 3}", **({"policy": "none"} if n == 7 else {})} for n in range(40)]
    with Served(accountant) as served:
        answers = ask_together(served, served.secret("spend"), asked)
    wrong = answers.pop(7)
    assert (wrong.status, wrong.json()["type"]) == (404, "/problems/unknown-name")
    assert Counter(answer.status for answer in answers) == {200: 30, 409: 9}
    assert {answer.json()["type"] for answer in answers if answer.status == 409} == {"/problems/budget-exceeded"}
    assert sizes == [40]
    newest = accountant.stats()["entries"]
    for answer in answers:
        partition, _, entry = answer.headers["Journal-Position"].partition(":")
        assert partition == "0"
        assert 0 < int(entry) <= newest


def test_spend_position_includes_its_entry(accountant: Accountant) -> None:
    with Served(accountant) as served, Caller(served.port, served.secret("spend")) as caller:
        for key in ("a", "b"):
            assert caller.spend("alice", key).headers["Journal-Position"] == accountant.position("alice")
        again = caller.spend("alice", "a")
    assert (again.json()["repeated"], again.headers["Journal-Position"]) == (True, accountant.position("alice"))


def test_spend_of_a_new_mechanism_keeps_it_for_later(accountant: Accountant) -> None:
    schemas._MADE.clear()
    with Served(accountant) as served, Caller(served.port, served.secret("spend")) as caller:
        assert [caller.spend("alice", str(n)).status for n in range(3)] == [200] * 3
        assert caller.spend("alice", "x", mechanism={"name": "rr", "epsilon": -1}).status == 400
    assert list(schemas._MADE) == [json.dumps([MECHANISM["name"], {"epsilon": MECHANISM["epsilon"]}])]


def test_kept_mechanisms_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "_MOST_MADE", 3)
    schemas._MADE.clear()
    for n in range(1, 9):
        schemas.MechanismAsked.model_validate({"name": "rr", "epsilon": n}).chosen()
    assert len(schemas._MADE) == 3
