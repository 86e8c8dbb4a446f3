"""Many different spends of one thread: each as `spend` does it, in transactions that they share."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from conftest import Clock
from ldp_budget import Accountant, InvalidParameter, KeyConflict, LedgerError, UnknownName
from ldp_budget.accounting.accountant import spend_group
from ldp_budget.accounting.api_keys import ApiKeys
from ldp_budget.accounting.batch_run import Spend
from ldp_budget.accounting.receipts import Receipt
from ldp_budget.ledger import group_commit
from ledger_contract import check, coin
from toy_store import ToyStore


@pytest.fixture(params=[1, 4])
def accountant(clock: Clock, request: pytest.FixtureRequest) -> Iterator[Accountant]:
    with Accountant(ToyStore(request.param), clock=clock) as made:  # type: ignore[arg-type]
        made.set_policy("default", ["lifetime=2"])
        yield made


@pytest.fixture
def transactions(monkeypatch: pytest.MonkeyPatch) -> list[set[int]]:
    """The works of each transaction; this store does all of them twice."""
    found: list[set[int]] = []
    run, do = ToyStore.run, group_commit._do

    def begun(self: ToyStore, *arguments: Any, **options: Any) -> Any:
        found.append(set())
        return run(self, *arguments, **options)

    def done(works: list[Any], transactions: Mapping[int, Any]) -> None:
        found[-1].update(map(id, works))
        do(works, transactions)

    monkeypatch.setattr(ToyStore, "run", begun)
    monkeypatch.setattr(group_commit, "_do", done)
    return found


def test_each_is_answered_as_by_itself(accountant: Accountant) -> None:
    asked = [
        Spend("alice", coin(1), key="a"),
        Spend("bob", coin(1), key="a"),
        Spend("alice", coin(1), key="a"),  # a retry in the same breath
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


def test_they_share_transactions(accountant: Accountant, transactions: list[set[int]]) -> None:
    assert all(accountant.spend_each([Spend(f"user-{n}", coin(1), key="k") for n in range(100)]))
    assert sum(map(len, transactions)) == 100
    assert len(transactions) <= len(accountant._ledger._groups)


def test_of_very_many_a_transaction_takes_as_many_as_it_may(
    accountant: Accountant, transactions: list[set[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "MOST_TOGETHER", 10)
    assert all(accountant.spend_each([Spend(f"user-{n}", coin(1), key="k") for n in range(55)]))
    assert sum(map(len, transactions)) == 55
    assert max(map(len, transactions)) == 10
    check(accountant)


def test_threads_with_many_each_leave_nobody_waiting(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_commit, "MOST_TOGETHER", 7)
    spent: Counter[str] = Counter()

    def spend(number: int) -> None:
        for turn in range(4):
            asked = [Spend(f"user-{n}", coin("0.01"), key=f"{number}/{turn}") for n in range(12)]
            told = accountant.spend_each(asked)
            spent.update(each.user for each in told if isinstance(each, Receipt) and each.user)
            accountant.spend("alone", coin("0.01"), key=f"{number}/{turn}")

    threads = [threading.Thread(target=spend, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert spent == {f"user-{n}": 24 for n in range(12)}
    assert len(accountant.history("alone")) == 24
    check(accountant)


def test_what_is_wrong_with_one_after_it_wrote_is_the_others_none(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ldp_budget.accounting import charging

    charge = charging.charge_in_transaction

    def failing(transaction: object, request: object) -> Receipt:
        told = charge(transaction, request)  # type: ignore[arg-type]
        if getattr(request, "user", "") == "bob":
            raise LedgerError("a ledger", "it broke")
        return told

    monkeypatch.setattr(charging, "charge_in_transaction", failing)
    told = accountant.spend_each([Spend(user, coin(1), key="k") for user in ("alice", "bob", "carol")])
    assert [isinstance(each, LedgerError) for each in told] == [False, True, False]
    assert accountant.balance("bob").limits[0].spent_units.epsilon == 0
    check(accountant)


def test_a_bug_is_raised_and_charges_nobody(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    from ldp_budget.accounting import charging

    def broken(transaction: object, request: object) -> Receipt:
        raise ZeroDivisionError

    monkeypatch.setattr(charging, "charge_in_transaction", broken)
    with pytest.raises(ZeroDivisionError):
        accountant.spend_each([Spend("alice", coin(1)), Spend("bob", coin(1))])
    monkeypatch.undo()
    assert accountant.spend("alice", coin(1)).status == "spent"  # nobody is left leading


def test_callers_keep_their_names_in_a_transaction_that_they_share(
    accountant: Accountant, transactions: list[set[int]]
) -> None:
    keys = ApiKeys(accountant)
    callers = [accountant.acting_for(keys.create(name, ["spend"])[0].caller) for name in ("app", "phone")]
    transactions.clear()
    asked = [(callers[n % 2], Spend("alice", coin("0.1"), key=f"{n // 2}")) for n in range(6)]
    told = spend_group(asked)
    assert all(isinstance(each, Receipt) and not each.repeated for each in told)  # each has keys of their own
    assert len(transactions) == 1
    assert [row["by"] for row in accountant.history("alice")] == ["app", "phone"] * 3


def test_positions_are_those_of_each_user(accountant: Accountant) -> None:
    users = [f"user-{n}" for n in range(9)]
    accountant.spend_each([Spend(user, coin(1)) for user in users])
    assert accountant.positions(users) == [accountant.position(user) for user in users]
    assert accountant.positions([]) == []
