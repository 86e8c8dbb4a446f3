"""The write queue: callers share transactions, and no caller's error, interrupt or end is another caller's."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from contract.acts import check, coin, spent
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, KeyConflict, LedgerError, UnknownName
from ldp_budget.ledger import Transaction, write_queue
from ldp_budget.ledger.storage import Attempt, PartitionsFailedError
from ldp_budget.ledger.write_queue import Work, WriteQueue, run_each
from ledger_inside import BusyWriter, ledger_of, queue_of, waiting_in, writer_of
from postgres_servers import wait_until
from queue_callers import Call, Caller, EveryPartition, Transactions, queue_of_transactions, spends, together, works

pytestmark = pytest.mark.policy("lifetime=30")


def fail_after_writing(accountant: Accountant, error: BaseException) -> Call:
    """A call that charges bob and then fails."""

    def work(transaction: Transaction) -> None:
        transaction.set_spent(transaction.open_account(b"bob"), 0, coin(1).guarantee.costs())
        raise error

    return lambda: ledger_of(accountant).run(work)


# -- sharing a transaction -----------------------------------------------------------------------------------


def test_calls_that_wait_together_share_one_transaction(accountant: Accountant) -> None:
    receipts = together(accountant, spends(accountant, 24))
    assert all(receipt.status == "spent" for receipt in receipts)
    links = writer_of(accountant).execute("SELECT count(*) FROM journal WHERE chain_hash IS NOT NULL").fetchone()
    assert links == (2,), "one of the policy, and one of all 24"
    check(accountant)


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), LedgerError("x", "a failure"), MemoryError()])
def test_item_that_fails_after_it_wrote_takes_no_other_submission_with_it(
    accountant: Accountant, error: Exception
) -> None:
    failing = fail_after_writing(accountant, error)
    first, failed, second = together(accountant, [spends(accountant, 1)[0], failing, spends(accountant, 2)[1]])
    assert (first.status, second.status) == ("spent", "spent")
    assert failed is error
    assert spent(accountant, "alice") == {"lifetime": Decimal(2)}
    assert accountant.stats()["users"] == 1, "what the failing one wrote is gone"
    check(accountant)


def test_item_with_a_text_that_cannot_be_stored_fails_alone(accountant: Accountant) -> None:
    strange = [
        lambda: ledger_of(accountant).run(lambda transaction: transaction.collection("\ud800")),
        lambda: accountant.spend("alice", coin(1), policy="none"),
    ]
    results = together(accountant, [*spends(accountant, 2), *strange])
    assert [bool(result) for result in results[:2]] == [True, True]
    assert isinstance(results[2], LedgerError)
    assert isinstance(results[3], UnknownName)
    with pytest.raises(InvalidParameter, match="policy must be a name"):  # before it comes to the queue
        accountant.spend("alice", coin(1), policy=object())  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="policy must be a string that UTF-8 can encode"):
        accountant.spend("alice", coin(1), policy="\ud800")
    assert spent(accountant, "alice") == {"lifetime": Decimal(2)}
    check(accountant)


@pytest.mark.slow
def test_items_of_one_user_and_one_key_see_what_earlier_items_wrote(accountant: Accountant) -> None:
    """All look-ups of a transaction are made before its first item runs; no item may use what is stale by then."""
    accountant.spend("gone", coin(1))
    accountant.erase("gone")
    calls: list[Call] = []
    for number in range(24):
        calls.append(lambda key=str(number % 4): accountant.spend("alice", coin(1), key=key))  # type: ignore[misc]
        calls.append(lambda: accountant.spend("bob", coin(2)))
    calls.append(lambda: accountant.spend("gone", coin("0.1"), key="k"))
    calls.append(lambda: accountant.spend("alice", coin(2), key="0"))
    calls.append(lambda: accountant.spend("new", coin(1), key="n"))
    *answers, gone, conflict, new = together(accountant, calls)
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


def test_policy_that_was_rolled_back_decides_for_no_other(accountant: Accountant) -> None:
    """A transaction in which bob was charged under a new policy fails, and another policy gets its number."""

    def work(transaction: Transaction) -> None:
        raise KeyboardInterrupt

    together(
        accountant,
        [
            lambda: accountant.set_policy("loose", ["lifetime=50"]),
            lambda: accountant.spend("bob", coin(1), policy="loose"),
            lambda: ledger_of(accountant).run(work),
        ],
    )
    accountant.set_policy("strict", ["lifetime=1"])
    assert [accountant.spend("alice", coin(1), policy="strict").status for _ in range(2)] == ["spent", "refused"]
    assert accountant.balance("alice", "strict").policy.name == "strict"
    check(accountant)


@pytest.mark.parametrize("error", [MemoryError(), RecursionError(), KeyboardInterrupt(), SystemExit(1)])
@pytest.mark.parametrize("shared", [False, True])
def test_exception_of_any_kind_reaches_its_caller_and_the_queue_continues(
    accountant: Accountant, error: BaseException, shared: bool
) -> None:
    failing = fail_after_writing(accountant, error)
    calls = [spends(accountant, 1)[0], failing, spends(accountant, 2)[1]] if shared else [failing]
    results = together(accountant, calls)
    assert results[len(calls) // 2] is error
    others = results[:1] + results[2:]
    for number, result in enumerate(others):
        assert result is error or result.status == "spent"
        again = accountant.spend("alice", coin(1), key=str(number))
        assert again.repeated == (result is not error), "who got an error was not charged, and the others were"
    assert accountant.stats()["users"] == 1
    check(accountant)


# -- partitions, and transactions that fail ------------------------------------------------------------------


def submit(transactions: Transactions, submissions: Sequence[Sequence[Work]]) -> list[Any]:
    """Return the results or errors of submissions that wait together during the first transaction."""
    queue = queue_of_transactions(transactions)
    callers = [Caller(lambda: queue.run(run_each, [Work(lambda _: None, 0, 0)]))]
    assert transactions.inside.wait(30)
    for some in submissions:
        callers.append(Caller(lambda some=some: queue.run(run_each, some)))  # type: ignore[misc]
        wait_until(lambda: len(queue._singles) == len(callers) - 1, "it does not wait")
    transactions.go.set()
    _, *results = [caller.end() for caller in callers]
    assert not queue._singles
    assert queue._waiting == 0
    queue.close()
    return results


def test_items_of_a_held_partition_wait_for_the_next_transaction_and_delay_no_other() -> None:
    transactions = Transactions({2})
    results = submit(transactions, [works(1), works(3), works(2), works(3)])
    assert results == [["done 1"], ["done 3"], ["done 2"], ["done 3"]]
    assert transactions.made == [(1, 3), (2,)]


def test_submission_over_several_partitions_waits_only_for_those_that_are_held() -> None:
    transactions = Transactions({2, 4})
    results = submit(transactions, [works(1, 2, 3, 4), works(3)])
    assert results == [["done 1", "done 2", "done 3", "done 4"], ["done 3"]]
    assert transactions.made == [(1, 3), (2,), (4,)]


def test_items_of_held_partitions_keep_their_order() -> None:
    order: list[int] = []
    each = [[Work(lambda _, number=number: order.append(number), 2 + number % 2, 0)] for number in range(6)]  # type: ignore[misc]
    submit(Transactions({2, 3}), [works(1), *each])
    assert [number for number in order if number % 2 == 0] == [0, 2, 4]
    assert [number for number in order if number % 2] == [1, 3, 5]


@pytest.mark.parametrize("unknown", [True, False])
def test_failed_commit_is_the_error_of_its_transaction_and_of_no_other(unknown: bool) -> None:
    """A partition that another process held was not tried at all, so its items run in the next transaction."""
    error = LedgerError("a ledger", "the server has gone", unknown=unknown)
    transactions = Transactions({2}, commit=error)
    results = submit(transactions, [works(1), works(2), works(3), works(2)])
    assert results == [error, ["done 2"], error, ["done 2"]]
    assert transactions.made == [(1, 3), (2,)]


def test_failed_item_makes_no_other_wait_for_a_held_partition() -> None:
    """The submissions that shared the transaction are tried again, each alone; the others are left to the next one."""
    transactions = Transactions({2})
    failing = [Work(lambda _: 1 // 0, 3, 0)]
    first, second, third = submit(transactions, [works(1), works(2), failing])
    assert (first, second) == (["done 1"], ["done 2"])
    assert isinstance(third, ZeroDivisionError)
    assert transactions.made[-1] == (2,)
    assert set(transactions.made[:-1]) == {(1, 3), (1,), (3,)}


def test_transaction_that_cannot_begin_raises_for_all_at_once() -> None:
    """Each of them would wait as long for the same error, one after the other."""
    error = LedgerError("a ledger", "there is no server")
    transactions = Transactions({2}, begin=error)
    assert submit(transactions, [works(1), works(2), works(3)]) == [error] * 3
    assert len(transactions.made) == 1


def test_failed_partitions_are_the_error_of_their_items_and_of_no_other() -> None:
    error = PartitionsFailedError("a ledger", "a node is down", {1, 3, 7})
    transactions = Transactions(set(), begin=error)
    results = submit(transactions, [works(1), works(2), works(3), works(2, 4)])
    assert results == [error, ["done 2"], error, ["done 2", "done 4"]]
    assert len(transactions.made) == 2


def test_store_that_repeats_a_transaction_gives_each_item_one_outcome() -> None:
    runs: list[int] = []

    class Repeating(Transactions):
        def _attempt(self, partitions: list[int]) -> Iterator[Attempt]:
            yield from super()._attempt(partitions)
            yield from super()._attempt(partitions)

    each = [[Work(lambda _: runs.append(1) or len(runs), 1, 0)] for _ in range(3)]
    assert submit(Repeating(set()), each) == [[4], [5], [6]], "those of the second time"


# -- interrupts, signals and tasks ---------------------------------------------------------------------------


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where these tests were started with interrupts ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Holder:
    """A call that holds up the transaction in which it runs, until `go`."""

    def __init__(self, accountant: Accountant) -> None:
        self._accountant = accountant
        self.inside, self.go = threading.Event(), threading.Event()

    def __call__(self) -> None:
        def work(transaction: object) -> None:
            self.inside.set()
            assert self.go.wait(30)

        ledger_of(self._accountant).run(work)


@pytest.mark.usefixtures("interruptible")
def test_interrupt_after_the_writer_took_the_items_leaves_a_charge_that_the_key_finds(accountant: Accountant) -> None:
    holder = Holder(accountant)
    writer = BusyWriter(accountant)

    def interrupt() -> None:
        Caller(holder)
        writer.wait_for(2)
        writer.let_go()
        assert holder.inside.wait(30)
        wait_until(lambda: not waiting_in(accountant), "it was not taken")
        os.kill(os.getpid(), signal.SIGINT)

    with writer:
        interrupter = Caller(interrupt)
        with pytest.raises(KeyboardInterrupt):
            accountant.spend("alice", coin(1), key="k")
        interrupter.end()
        holder.go.set()
    assert accountant.spend("alice", coin(1), key="k").repeated
    assert spent(accountant, "alice") == {"lifetime": 1}


def test_signal_handler_that_spends_while_its_thread_waits_is_charged(accountant: Accountant) -> None:
    receipts: list[Any] = []
    writer = BusyWriter(accountant)

    def handle(*_: object) -> None:
        Caller(lambda: (writer.wait_for(2), writer.let_go()))
        receipts.append(accountant.spend("handler", coin(1)))

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        with writer:
            signaller = Caller(lambda: (writer.wait_for(1), os.kill(os.getpid(), signal.SIGUSR1)))
            receipts.append(accountant.spend("alice", coin(1)))
            signaller.end()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert [receipt.status for receipt in receipts] == ["spent", "spent"]
    assert spent(accountant, "handler") == spent(accountant, "alice") == {"lifetime": 1}
    check(accountant)


def test_signal_handler_that_spends_during_the_first_submission_does_not_wait_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first submission starts the writer thread; the handler waited for a lock that its own thread held."""
    queue = queue_of_transactions(EveryPartition())
    start, results = threading.Thread.start, []

    def start_during_signal(thread: threading.Thread) -> None:
        monkeypatch.setattr(threading.Thread, "start", start)
        with suppress(LedgerError):  # it may be refused
            results.append(queue.run(run_each, works(2)))
        start(thread)

    def both() -> None:
        monkeypatch.setattr(threading.Thread, "start", start_during_signal)
        results.append(queue.run(run_each, works(1)))

    monkeypatch.setattr(WriteQueue, "_run_here", lambda self, mine: False)
    caller = Caller(both)
    caller.join(10)
    monkeypatch.setattr(threading.Thread, "start", start)
    assert caller.end() is None
    assert results[-1] == ["done 1"]
    queue.close()


@pytest.mark.parametrize("taken", [False, True])
def test_cancelled_task_withdraws_or_leaves_a_charge_that_the_key_finds(accountant: Accountant, taken: bool) -> None:
    holder = Holder(accountant)

    async def cancel() -> None:
        with BusyWriter(accountant) as writer:
            caller = Caller(holder)
            await asyncio.to_thread(writer.wait_for, 1)
            task = asyncio.create_task(accountant.spend_async("alice", coin(1), key="k"))
            other = asyncio.create_task(accountant.spend_async("bob", coin(1)))
            while waiting_in(accountant) < 3:
                await asyncio.sleep(0.001)
            if taken:
                writer.let_go()
                assert await asyncio.to_thread(holder.inside.wait, 30)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            writer.let_go()
            holder.go.set()
            assert (await other).status == "spent"
            await asyncio.to_thread(caller.end)

    asyncio.run(asyncio.wait_for(cancel(), 60))
    assert spent(accountant, "alice") == {"lifetime": int(taken)}
    assert accountant.spend("alice", coin(1), key="k").repeated == taken
    check(accountant)


# -- the end of a queue, and a full one ----------------------------------------------------------------------


@pytest.mark.slow
def test_close_charges_everything_that_waits_and_refuses_later_calls(tmp_path: Path, clock: Clock) -> None:
    accountant = Accountant(tmp_path / "budget.db", clock=clock)
    accountant.set_policy("default", ["lifetime=30"])
    with BusyWriter(accountant) as writer:
        callers = [Caller(call) for call in spends(accountant, 7)]
        callers.append(Caller(lambda: accountant.spend_many(["bob"], coin(1))))
        writer.wait_for(8)
        closer = Caller(accountant.close)
        wait_until(lambda: queue_of(accountant)._closed, "it is not closed")
        for call in (spends(accountant, 1)[0], lambda: accountant.spend_many(["carol"], coin(1))):
            with pytest.raises(LedgerError, match="this accountant is closed"):
                call()
        with pytest.raises(LedgerError, match="this accountant is closed"):
            asyncio.run(accountant.spend_async("carol", coin(1)))
    assert closer.end() is None
    *singles, bulk = [caller.end() for caller in callers]
    assert [receipt.status for receipt in singles] == ["spent"] * 7
    assert bulk.spent == 1
    accountant.close()
    with Accountant(tmp_path / "budget.db", create=False, clock=clock) as accountant:
        assert [spent(accountant, user)["lifetime"] for user in ("alice", "bob", "carol")] == [7, 1, 0]
        check(accountant)


@pytest.mark.slow
def test_submission_during_a_close_is_run_or_refused() -> None:
    """The writer thread ended between the check that the queue is open and the submission, which waited for ever."""
    transactions = Transactions(set())
    transactions.go.set()
    queue = queue_of_transactions(transactions)
    closers: list[Caller] = []

    class Closing(deque[Any]):
        def append(self, submission: Any) -> None:
            closers.append(Caller(queue.close))
            closers[0].join(0.5)
            super().append(submission)

    async def submit_beside() -> list[Any]:
        await queue.run_async(run_each, works(1))
        queue._singles = Closing()
        return await asyncio.wait_for(queue.run_async(run_each, works(2)), 10)

    try:
        assert asyncio.run(submit_beside()) == ["done 2"]
    except LedgerError as error:
        assert "this accountant is closed" in str(error)  # noqa: PT017 - either is right
    closers[0].end()


def test_full_queue_refuses_more_and_loses_nothing(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_queue, "MOST_WAITING", 3)
    for _ in range(2):  # what waited does not count for ever
        with BusyWriter(accountant) as writer:
            callers = []
            for number, call in enumerate(spends(accountant, 3), 1):
                callers.append(Caller(call))
                writer.wait_for(number)
            with pytest.raises(LedgerError, match=r"it is busy: 3 charges wait. Nothing was charged.") as refused:
                accountant.spend("bob", coin(1))
            assert not refused.value.unknown
            with pytest.raises(LedgerError, match="it is busy"):
                asyncio.run(accountant.spend_async("bob", coin(1)))
        assert [caller.end().status for caller in callers] == ["spent"] * 3
    assert accountant.spend("bob", coin(1))
    assert spent(accountant, "alice") == {"lifetime": 3}
    assert spent(accountant, "bob") == {"lifetime": 1}


# -- the number of waiting items ---------------------------------------------------------------------------------


def new_queue() -> WriteQueue:
    return queue_of_transactions(EveryPartition())


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("bulk", [False, True])
def test_submission_whose_writer_cannot_start_waits_no_longer(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, bulk: bool
) -> None:
    """Each such failure counted its items forever, until the queue refused all."""
    queue = new_queue()
    monkeypatch.setattr(WriteQueue, "_run_here", lambda self, mine: False)

    def refuse(self: threading.Thread) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            with pytest.raises(type(error)):
                queue.run(run_each, works(2), bulk=bulk)
    assert (queue._waiting, len(queue._singles), len(queue._bulk)) == (0, 0, 0)
    assert len(queue.run(run_each, works(2), bulk=bulk)) == 1
    queue.close()


def test_cancelled_tasks_wait_no_longer_while_the_writer_is_busy(accountant: Accountant) -> None:
    queue = queue_of(accountant)

    async def cancel_all() -> None:
        tasks = [asyncio.create_task(queue.run_async(run_each, works(3))) for _ in range(20)]
        for _ in range(2):  # the items of a turn of the loop are put together, in its next one
            await asyncio.sleep(0)
        assert queue._waiting == 20
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert queue._waiting == 0

    with BusyWriter(accountant):
        asyncio.run(cancel_all())
    assert accountant.spend("alice", coin(1)).status == "spent"
    assert queue._waiting == 0


def test_count_of_waiting_items_that_an_interrupt_has_spoiled_refuses_no_other(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = queue_of(accountant)
    queue._waiting = write_queue.MOST_WAITING  # an interrupt came between an item and its count
    monkeypatch.setattr(WriteQueue, "_run_here", lambda self, mine: False)
    assert accountant.spend("alice", coin(1)).status == "spent"
    assert queue._waiting == 0
