"""`spend_each` and `spend_async`: spends that share a transaction, each with the result of a single `spend`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from contract.acts import check, coin
from contract.places import InToys
from contract.toy_store import ToyStore
from ldp_budget import Accountant, InvalidParameter, KeyConflict, LedgerError, UnknownName
from ldp_budget.accounting import batch, engine
from ldp_budget.accounting.admission import Decision
from ldp_budget.accounting.batch import Spend
from ldp_budget.accounting.charge_request import ChargeRequest
from ldp_budget.accounting.receipts import BudgetExceeded, Receipt
from ldp_budget_service.api_keys import ApiKeys

pytestmark = pytest.mark.policy("lifetime=2")


@pytest.fixture(params=[1, 4])
def place(request: pytest.FixtureRequest) -> InToys:
    return InToys(request.param)


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The charge requests of each transaction; this store runs each transaction twice."""
    found: list[set[int]] = []
    attempts, charge = ToyStore.attempts, engine.charge

    def begun(self: ToyStore, *arguments: Any, **options: Any) -> Any:
        found.append(set())
        return attempts(self, *arguments, **options)

    def charged(transactions: Mapping[int, Any], requests: Sequence[ChargeRequest]) -> Any:
        found[-1].update(map(id, requests))
        return charge(transactions, requests)

    monkeypatch.setattr(ToyStore, "attempts", begun)
    monkeypatch.setattr(engine, "charge", charged)
    return found


@contextmanager
def busy(accountant: Accountant) -> Iterator[None]:
    """Keep the writer thread busy, so that what is submitted meanwhile waits."""
    begun, release = threading.Event(), threading.Event()

    def work(transaction: object) -> None:
        begun.set()
        release.wait(60)

    thread = threading.Thread(target=accountant._ledger.run, args=(work,))
    thread.start()
    begun.wait(60)
    try:
        yield
    finally:
        release.set()
        thread.join(60)


def test_spend_each_gives_each_the_result_of_a_spend(accountant: Accountant) -> None:
    asked = [
        Spend("alice", coin(1), key="a"),
        Spend("bob", coin(1), key="a"),
        Spend("alice", coin(1), key="a"),  # a retry in the same transaction
        Spend("alice", coin("1.5"), key="b"),  # does not fit
        Spend("bob", coin("0.5"), key="a"),  # another request under the same key
        Spend("carol", coin(1), policy="none"),
        Spend("", coin(1)),
        Spend("bob", coin(1), key="c"),
    ]
    told = accountant.spend_each(asked)
    receipts = {place: each for place, each in enumerate(told) if isinstance(each, Receipt)}
    assert {place: (each.status, each.repeated) for place, each in receipts.items()} == {
        0: ("spent", False),
        1: ("spent", False),
        2: ("spent", True),
        3: ("refused", False),
        7: ("spent", False),
    }
    assert receipts[0].receipt == receipts[2].receipt
    assert [type(told[place]) for place in (4, 5, 6)] == [KeyConflict, UnknownName, InvalidParameter]
    check(accountant)


@pytest.mark.slow
def test_spend_each_of_very_many_users_is_split_into_parts(
    accountant: Accountant, transactions: list[set[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "PART", 10)
    assert all(accountant.spend_each([Spend(f"user-{n}", coin(1), key="k") for n in range(55)]))
    assert sum(map(len, transactions)) == 55
    assert max(map(len, transactions)) == 10
    check(accountant)


def test_spend_that_fails_after_it_wrote_leaves_others_charged(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = engine._write

    def failing(transaction: object, decision: Decision, mechanism: int, at: int) -> int:
        entry = write(transaction, decision, mechanism, at)  # type: ignore[arg-type]
        if decision.request.user == "bob":
            raise LedgerError("a ledger", "it broke")
        return entry

    monkeypatch.setattr(engine, "_write", failing)
    told = gathered(accountant, [(accountant, Spend(user, coin(1), key="k")) for user in ("alice", "bob", "carol")])
    assert [isinstance(each, LedgerError) for each in told] == [False, True, False]
    assert accountant.balance("bob").limits[0].spent_units.epsilon == 0
    check(accountant)


def test_spend_each_that_fails_after_it_wrote_charges_no_user(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, before = engine._write, accountant.stats()["entries"]
    for error in (ZeroDivisionError, LedgerError):

        def failing(
            transaction: object, decision: Decision, mechanism: int, at: int, error: type[Exception] = error
        ) -> int:
            entry = write(transaction, decision, mechanism, at)  # type: ignore[arg-type]
            if decision.request.user == "bob":
                raise LedgerError("a ledger", "it broke") if error is LedgerError else error
            return entry

        monkeypatch.setattr(engine, "_write", failing)
        with pytest.raises(error):
            accountant.spend_each([Spend(user, coin(1), key="k") for user in ("alice", "bob")])
        monkeypatch.undo()
        assert accountant.stats()["entries"] == before
    assert accountant.spend("alice", coin(1), key="k").status == "spent"


@pytest.mark.slow
def test_spend_each_whose_second_part_fails_returns_the_results_of_the_first(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error said that nothing was charged, after the first part was."""
    monkeypatch.setattr(batch, "PART", 10)
    charge = engine.charge

    def failing(transactions: Mapping[int, Any], requests: Sequence[ChargeRequest]) -> Any:
        if any(request.user == "user-15" for request in requests):
            raise LedgerError("a ledger", "it broke")
        return charge(transactions, requests)

    spends = [Spend(f"user-{n}", coin(1), key="k") for n in range(30)]
    with monkeypatch.context() as changes:
        changes.setattr(engine, "charge", failing)
        told = accountant.spend_each(spends)
    assert [isinstance(each, LedgerError) for each in told] == [10 <= n < 20 for n in range(30)]
    again = accountant.spend_each(spends)
    assert [isinstance(each, Receipt) and each.repeated for each in again] == [not 10 <= n < 20 for n in range(30)]
    check(accountant)


def gathered(accountant: Accountant, asked: list[tuple[Accountant, Spend]]) -> list[object]:
    """The results of spends by tasks of an event loop that wait at the same time."""

    async def spend_all() -> list[object]:
        with busy(accountant):
            tasks = [
                asyncio.ensure_future(caller.spend_async(spend.user, spend.mechanism, key=spend.key))
                for caller, spend in asked
            ]
            await asyncio.sleep(0)
        return list(await asyncio.gather(*tasks, return_exceptions=True))

    return asyncio.run(spend_all())


def test_spend_async_of_several_callers_shares_a_transaction_and_keeps_their_names(
    accountant: Accountant, transactions: list[set[int]]
) -> None:
    keys = ApiKeys(accountant)
    callers = [accountant.acting_for(keys.create(name, ["spend"])[0].caller) for name in ("app", "phone")]
    transactions.clear()
    asked = [(callers[n % 2], Spend("alice", coin("0.1"), key=f"{n // 2}")) for n in range(6)]
    told = gathered(accountant, asked)
    assert all(isinstance(each, Receipt) and not each.repeated for each in told), "each caller has keys of its own"
    assert [len(each) for each in transactions if each] == [6]
    assert [row["by"] for row in accountant.history("alice")] == ["app", "phone"] * 3


def test_reserve_async_and_balance_async_do_the_same_as_reserve_and_balance(accountant: Accountant) -> None:
    async def reserve() -> tuple[Receipt, Receipt, object]:
        first = await accountant.reserve_async("alice", coin("1.5"), key="k", expires=60)
        again = await accountant.reserve_async("alice", coin("1.5"), key="k", expires=60)
        return first, again, await accountant.balance_async("alice")

    first, again, balance = asyncio.run(reserve())
    assert (first.status, first.repeated, again.repeated) == ("reserved", False, True)
    assert balance == accountant.balance("alice")
    assert accountant.void(first.receipt or "").status == "voided"
    with pytest.raises(BudgetExceeded):
        asyncio.run(accountant.spend_async("alice", coin(3), strict=True))


def test_positions_of_users_equal_the_position_of_each(accountant: Accountant) -> None:
    users = [f"user-{n}" for n in range(9)]
    accountant.spend_each([Spend(user, coin(1)) for user in users])
    assert accountant.positions(users) == [accountant.position(user) for user in users]
    assert accountant.positions([]) == []
