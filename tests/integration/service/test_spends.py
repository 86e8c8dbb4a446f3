"""`POST /v1/spends`: requests that arrive together share transactions, and each gets its own result."""

from __future__ import annotations

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
from ledger_inside import waiting_in
from postgres_servers import wait_until
from service_farm import PATIENCE, Answer, Caller
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
