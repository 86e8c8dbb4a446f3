"""The counter: spends of requests that come together are charged together, and each is told its own end."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ldp_budget import Accountant, LedgerError, UnknownName, mechanism
from ldp_budget.accounting.api_keys import ApiKeys
from ldp_budget.accounting.batch_run import Spend
from ldp_budget.accounting.receipts import Receipt
from ldp_budget_service import schemas, spend_batcher
from ldp_budget_service.spend_batcher import SpendBatcher
from service_farm import MECHANISM, Caller
from service_threads import Served

COIN = mechanism("rr")(epsilon="0.001")


@pytest.fixture
def accountant(tmp_path: Path) -> Iterator[Accountant]:
    with Accountant(tmp_path / "budget.db") as made:
        made.set_policy("default", ["lifetime=0.01"])
        yield made


def gathered(accountant: Accountant, spends: list[Spend]) -> list[object]:
    """What a counter answers to spends that are asked at the same time."""

    async def ask() -> list[object]:
        made = SpendBatcher(accountant, ApiKeys(accountant))
        try:
            asked = (made.spend(accountant, spend) for spend in spends)
            return list(await asyncio.gather(*asked, return_exceptions=True))
        finally:
            made.close()

    return asyncio.run(ask())


def test_each_is_told_its_own_end(accountant: Accountant) -> None:
    spends = [Spend(f"user-{n % 3}", COIN, key=str(n), policy="none" if n == 7 else "default") for n in range(40)]
    told = gathered(accountant, spends)
    assert isinstance(told.pop(7), UnknownName)
    statuses = [receipt.status for receipt, _ in told]  # type: ignore[misc]
    assert statuses.count("spent") == 30
    assert statuses.count("refused") == 9
    assert all(position.startswith("0:") for _, position in told)  # type: ignore[misc]


def test_what_was_charged_and_cannot_be_told_is_not_known(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(self: Accountant, users: list[str]) -> list[str]:
        raise LedgerError("a ledger", "the server has gone")

    monkeypatch.setattr(Accountant, "positions", gone)
    [error] = gathered(accountant, [Spend("alice", COIN, key="k")])
    assert isinstance(error, LedgerError)
    assert error.unknown


def test_a_bug_reaches_whoever_asked(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(asked: object) -> list[Receipt]:
        raise ZeroDivisionError

    monkeypatch.setattr(spend_batcher, "spend_group", broken)
    assert [type(error) for error in gathered(accountant, [Spend("a", COIN), Spend("b", COIN)])] == [
        ZeroDivisionError
    ] * 2


@pytest.mark.slow
def test_requests_that_come_together_share_transactions(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    together = spend_batcher.spend_group

    def counted(asked: list[tuple[Accountant, Spend]]) -> list[object]:
        sizes.append(len(asked))
        return list(together(asked))

    monkeypatch.setattr(spend_batcher, "spend_group", counted)
    with Served(accountant) as served:
        secret = served.secret("spend")

        def ask(number: int) -> None:
            with Caller(served.port, secret) as caller:
                for turn in range(10):
                    assert caller.spend(f"user-{number}", str(turn)).status == 200

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sum(sizes) == 160
    assert len(sizes) < 120


def test_a_mechanism_that_was_never_asked_for_is_made_in_a_thread_and_kept(accountant: Accountant) -> None:
    schemas._MADE.clear()
    with Served(accountant) as served, Caller(served.port, served.secret("spend")) as caller:
        assert [caller.spend("alice", str(n)).status for n in range(3)] == [200] * 3
        assert caller.spend("alice", "x", mechanism={"name": "rr", "epsilon": -1}).status == 400
    assert list(schemas._MADE) == [json.dumps([MECHANISM["name"], {"epsilon": MECHANISM["epsilon"]}])]


def test_no_more_mechanisms_are_kept_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas, "_MOST_MADE", 3)
    schemas._MADE.clear()
    for n in range(1, 9):
        schemas.MechanismAsked.model_validate({"name": "rr", "epsilon": n}).chosen()
    assert len(schemas._MADE) == 3
