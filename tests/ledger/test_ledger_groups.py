"""Threads that share a transaction: one caller's mistake is not the others'."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from conftest import Clock
from ldp_budget import Accountant, InvalidParameter, KeyConflict, LedgerError, UnknownName
from ldp_budget.ledger.group_commit import GroupCommit
from ledger_contract import check, coin, spent
from ledger_inside import group_of, writer_of

if TYPE_CHECKING:
    from ldp_budget.ledger import Transaction


@pytest.fixture
def accountant(clock: Clock) -> Iterator[Accountant]:
    with Accountant(":memory:", clock=clock) as made:
        made.set_policy("default", ["lifetime=30"])
        yield made


def share(accountant: Accountant, works: list[Callable[[], Any]]) -> list[Any]:
    """What the works return or raise, all of them done in one transaction (unless that fails)."""
    results: list[Any] = [None] * len(works)

    def run(number: int) -> None:
        try:
            results[number] = works[number]()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(works))]

    def lead(transaction: Transaction) -> None:
        """The leader's own work, which may be done twice: wait until everybody else has queued up."""
        if threads[0].ident is None:
            for thread in threads:
                thread.start()
            while len(group_of(accountant)._queue) < len(works):
                time.sleep(0.001)

    group_of(accountant).run(lead)
    for thread in threads:
        thread.join()
    return results


def spends(accountant: Accountant, count: int) -> list[Callable[[], Any]]:
    return [lambda key=str(n): accountant.spend("alice", coin(1), key=key) for n in range(count)]  # type: ignore[misc]


def fail_after_writing(accountant: Accountant, error: Exception) -> Callable[[], Any]:
    """A work that charges bob and then fails."""

    def work(transaction: Transaction) -> None:
        transaction.set_spent(transaction.open_account(b"bob"), 0, coin(1).guarantee.costs())
        raise error

    return lambda: group_of(accountant).run(work)


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), LedgerError("x", "a failure"), MemoryError()])
def test_a_work_that_fails_after_it_wrote_takes_nobody_with_it(accountant: Accountant, error: Exception) -> None:
    failing = fail_after_writing(accountant, error)
    first, failed, second = share(accountant, [spends(accountant, 1)[0], failing, spends(accountant, 2)[1]])
    assert (first.status, second.status) == ("spent", "spent")
    assert failed is error
    assert spent(accountant, "alice") == {"lifetime": Decimal(2)}
    assert accountant.stats()["users"] == 1, "what the failing one wrote is gone"
    check(accountant)


def test_an_argument_that_the_ledger_cannot_read_is_its_callers_error_alone(accountant: Accountant) -> None:
    strange = [
        lambda: group_of(accountant).run(lambda transaction: transaction.find_policy("\ud800")),
        lambda: accountant.spend("alice", coin(1), policy="none"),
    ]
    results = share(accountant, [*spends(accountant, 2), *strange])
    assert [bool(result) for result in results[:2]] == [True, True]
    assert isinstance(results[2], LedgerError)
    assert isinstance(results[3], UnknownName)
    with pytest.raises(InvalidParameter, match="policy: expected a name"):  # told before it comes to a group
        accountant.spend("alice", coin(1), policy=object())  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="policy: expected a text of whole characters"):
        accountant.spend("alice", coin(1), policy="\ud800")
    assert spent(accountant, "alice") == {"lifetime": Decimal(2)}
    check(accountant)


def test_an_error_that_wrote_nothing_costs_the_others_no_transaction_of_their_own(accountant: Accountant) -> None:
    before = accountant.stats()["head"]
    share(accountant, [*spends(accountant, 3), lambda: accountant.spend("alice", coin(1), policy="none")])
    links = writer_of(accountant).execute("SELECT count(*) FROM journal WHERE chain_hash IS NOT NULL").fetchone()
    assert links == (2,), "that of the policy, and one for all three"
    check(accountant, before)


# -- what the leader reads ahead -----------------------------------------------------------------------------


def test_works_of_one_user_and_one_key_see_what_the_ones_before_them_wrote(accountant: Accountant) -> None:
    """All look-ups of a group are made before its first work; no work may act on what is stale by then."""
    accountant.spend("gone", coin(1))
    accountant.erase("gone")
    works: list[Callable[[], Any]] = []
    for number in range(24):
        works.append(lambda key=str(number % 4): accountant.spend("alice", coin(1), key=key))  # type: ignore[misc]
        works.append(lambda: accountant.spend("bob", coin(2)))
    works.append(lambda: accountant.spend("gone", coin("0.1"), key="k"))
    works.append(lambda: accountant.spend("alice", coin(2), key="0"))
    works.append(lambda: accountant.spend("new", coin(1), key="n"))
    *answers, gone, conflict, new = share(accountant, works)
    alice, bob = answers[::2], answers[1::2]
    assert sorted(receipt.repeated for receipt in alice) == [False] * 4 + [True] * 20
    assert len({receipt.receipt for receipt in alice}) == 4
    assert sum(map(bool, bob)) == 15, "30 of budget and 2 a spend"
    assert not gone
    assert isinstance(conflict, KeyConflict)
    assert new.status == "spent"
    assert spent(accountant, "alice") == {"lifetime": 4}
    assert spent(accountant, "bob") == {"lifetime": 30}
    check(accountant)


def test_a_bulk_run_between_works_is_seen(accountant: Accountant) -> None:
    before, bulk, after = share(
        accountant,
        [
            lambda: accountant.spend("alice", coin(10)),
            lambda: accountant.spend_many(["alice"] * 2, coin(10)),
            lambda: accountant.spend("alice", coin(1)),
        ],
    )
    assert bool(before) + bulk.spent + bool(after) == 3, "all but one of 10, 10, 10 and 1 fit 30, in any order"
    assert spent(accountant, "alice")["lifetime"] <= 30
    check(accountant)


def test_what_lies_in_a_partition_that_others_hold_goes_back_and_holds_up_nobody() -> None:
    """A leader waits for the partition of its own work alone; what it finds taken is left to the next leader."""
    held, transactions = {2}, list[tuple[int, ...]]()
    begun, others = threading.Event(), threading.Event()

    class Partition:
        writes = 0

        def read_ahead(self, needs: object) -> None: ...

    def transact(work: Callable[[Any], None], partitions: list[int], works: object) -> None:
        taken = [partitions[0], *(partition for partition in partitions[1:] if partition not in held)]
        work({partition: Partition() for partition in taken})
        transactions.append(tuple(taken))
        if 3 in taken:
            held.clear()

    group: GroupCommit = GroupCommit("a ledger", transact)

    def first(transaction: object) -> int:
        begun.set()
        assert others.wait(10)
        return 0

    done: dict[int, int] = {}
    leader = threading.Thread(target=lambda: done.update({0: group.run(first, 1)}))
    leader.start()
    assert begun.wait(10)
    threads = []
    for number, partition in enumerate((1, 3, 2, 3), 1):
        work = lambda transaction, number=number: number  # noqa: E731
        threads.append(
            threading.Thread(target=lambda n=number, w=work, at=partition: done.update({n: group.run(w, at)}))
        )
        threads[-1].start()
        while len(group._queue) < number:
            time.sleep(0.001)
    others.set()
    for thread in (leader, *threads):
        thread.join(10)
    assert done == {number: number for number in range(5)}
    # The first transaction was open already, and took what came next in its partition.
    assert transactions == [(1,), (3,), (2,)]


class Partition:
    """A transaction of which nothing is asked."""

    writes = 0

    def read_ahead(self, needs: object) -> None: ...


Transact = Callable[[Callable[[Any], None], list[int], object], None]


def in_partitions(transact: Transact, partitions: list[int], work: Callable[[object], Any]) -> list[Any]:
    """What works hear, one of each partition, that have queued up while the first partition's leader was at work."""
    begun, queued = threading.Event(), threading.Event()

    def gated(work: Callable[[Any], None], partitions: list[int], works: object) -> None:
        if begun.is_set():
            transact(work, partitions, works)
        else:
            begun.set()
            assert queued.wait(10)
            work({partitions[0]: Partition()})

    group: GroupCommit = GroupCommit("a ledger", gated)
    heard: dict[int, Any] = {}

    def run(number: int, partition: int) -> None:
        try:
            heard[number] = group.run(work if number >= 0 else lambda transaction: None, partition)
        except BaseException as error:
            heard[number] = error

    threads = [threading.Thread(target=run, args=(-1, 0))]
    threads[0].start()
    assert begun.wait(10)
    for number, partition in enumerate(partitions):
        threads.append(threading.Thread(target=run, args=(number, partition)))
        threads[-1].start()
        while len(group._queue) <= number:
            time.sleep(0.001)
    queued.set()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads), "nobody waits for a leader that is gone"
    assert not group._queue
    assert not group._led
    return [heard[number] for number in range(len(partitions))]


class Failing:
    """Transactions in which some partitions are held by others, and the first of which ends with an error."""

    def __init__(self, held: set[int], error: BaseException, begins: bool = True) -> None:
        self.held, self.error, self.begins = held, error, begins
        self.tried: list[tuple[int, ...]] = []

    def __call__(self, work: Callable[[Any], None], partitions: list[int], works: object) -> None:
        taken = [partitions[0], *(partition for partition in partitions[1:] if partition not in self.held)]
        self.tried.append(tuple(taken))
        if self.begins:
            work({partition: Partition() for partition in taken})
        if len(self.tried) == 1:
            raise self.error


@pytest.mark.parametrize("unknown", [True, False])
def test_the_end_of_a_transaction_is_not_told_to_whom_it_was_not_of(unknown: bool) -> None:
    """A partition that another process held was not tried at all, so its works are done by the next leader."""
    error = LedgerError("a ledger", "the server has gone", unknown=unknown)
    transact = Failing({2}, error)
    assert in_partitions(transact, [1, 2, 3, 2], lambda transaction: "done") == [error, "done", error, "done"]
    assert transact.tried == [(1, 3), (2,)]


def test_a_mistake_of_another_partition_makes_nobody_wait_for_a_partition_that_is_held() -> None:
    """The leader does the works again that shared the transaction, and leaves the others to the next one."""
    transact = Failing({2}, ZeroDivisionError())
    mistakes = iter([True])

    def work(transaction: object) -> str:
        if next(mistakes, False):
            raise ZeroDivisionError
        return "done"

    assert in_partitions(transact, [1, 2, 3], work) == ["done"] * 3
    assert transact.tried == [(1, 3), (1,), (3,), (2,)]


def test_where_no_transaction_begins_all_are_told_at_once() -> None:
    """Each of them would wait as long for the same error, one after the other."""
    error = LedgerError("a ledger", "there is no server")
    transact = Failing({2}, error, begins=False)
    assert in_partitions(transact, [1, 2, 3], lambda transaction: "done") == [error] * 3
    assert len(transact.tried) == 1


def test_an_interrupt_leaves_nobody_waiting_for_a_partition_that_is_held() -> None:
    interrupt = KeyboardInterrupt()
    first, *others = in_partitions(Failing({2}, interrupt), [1, 2, 3], lambda transaction: "done")
    assert first is interrupt
    assert all(isinstance(error, LedgerError) and error.unknown for error in others)


@pytest.mark.parametrize("moved", [False, True])
def test_an_interrupt_while_works_are_put_back_leaves_nobody_waiting(
    moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_back, interrupts = GroupCommit._put_back, iter([KeyboardInterrupt()])

    def interrupted(self: GroupCommit, batch: list[Any], partitions: set[int]) -> None:
        if not {work.partition for work in batch} <= partitions:
            for interrupt in interrupts:
                if moved:
                    with self._mutex:
                        self._queue.extendleft([work for work in reversed(batch) if work.partition not in partitions])
                raise interrupt
        put_back(self, batch, partitions)

    monkeypatch.setattr(GroupCommit, "_put_back", interrupted)
    error = LedgerError("a ledger", "the server has gone", unknown=True)
    first, *others = in_partitions(Failing({2}, error), [1, 2, 3, 2], lambda transaction: "done")
    assert isinstance(first, KeyboardInterrupt)
    assert all(isinstance(other, LedgerError) for other in others)


def test_the_limits_of_a_policy_that_was_taken_back_decide_for_no_other(accountant: Accountant) -> None:
    """A transaction in which somebody was charged under a new policy fails, and another policy gets its number."""

    def fail(transaction: Transaction) -> None:
        raise KeyboardInterrupt

    works = [
        lambda: accountant.set_policy("loose", ["lifetime=50"]),
        lambda: accountant.spend("bob", coin(1), policy="loose"),
        lambda: group_of(accountant).run(fail),
    ]
    with pytest.raises(KeyboardInterrupt):
        share(accountant, works)
    accountant.set_policy("strict", ["lifetime=1"])
    assert [accountant.spend("alice", coin(1), policy="strict").status for _ in range(2)] == ["spent", "refused"]
    assert accountant.balance("alice", "strict").policy.name == "strict"
