"""Bulk runs in write queues: single items come between their parts, and partitions are written at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ldp_budget import LedgerError
from ldp_budget.ledger import write_queue
from ldp_budget.ledger.write_queue import Work, WriteQueue, run_bulk, run_each
from postgres_servers import wait_until
from queue_callers import Caller, EveryPartition, Transactions, queue_of_transactions, works


def test_bulk_submission_that_fails_after_some_of_its_items_says_that_others_were_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(write_queue, "MOST_BULK", 1)
    queue = queue_of_transactions(EveryPartition())

    def fail(_: object) -> None:
        raise LedgerError("a ledger", "it is full. Nothing was charged.")

    bulk = [*works(1), Work(lambda transaction: setattr(transaction, "writes", 1) or fail(None), 2, 0), *works(3)]  # type: ignore[func-returns-value]
    with pytest.raises(LedgerError, match="Other parts of the batch were charged") as raised:
        queue.run(run_each, bulk, bulk=True)
    assert raised.value.unknown
    with pytest.raises(LedgerError, match="Nothing was charged") as raised:
        queue.run(run_each, bulk[1:], bulk=True)
    assert not raised.value.unknown
    assert queue.run(run_each, bulk[2:], bulk=True) == ["done 3"]
    queue.close()


def test_single_items_are_served_between_two_parts_of_a_bulk_run() -> None:
    transactions = Transactions(set())
    queue = queue_of_transactions(transactions)
    order: list[str] = []

    def log(name: str) -> list[Work]:
        return [Work(lambda _: order.append(name), 1, 0)]

    def bulk(_: object) -> None:
        order.append("bulk")
        callers.append(Caller(lambda: queue.run(run_each, log("later single"))))
        wait_until(lambda: bool(queue._singles), "it does not wait")

    callers = [Caller(lambda: queue.run(run_each, works(0)))]
    assert transactions.inside.wait(30)
    for number in range(3):
        callers.append(Caller(lambda: queue.run(run_each, [Work(bulk, 1, 0)], bulk=True)))
        wait_until(lambda number=number: len(queue._bulk) == number + 1, "it does not wait")  # type: ignore[misc]
    for number in range(2):
        callers.append(Caller(lambda: queue.run(run_each, log("single"))))
        wait_until(lambda number=number: len(queue._singles) == number + 1, "it does not wait")  # type: ignore[misc]
    transactions.go.set()
    for caller in callers:
        caller.end()
    callers[-1].end()
    assert order == ["single", "single", *["bulk", "later single"] * 3]
    queue.close()


def bulk_queues(
    before: Callable[[list[int], Sequence[Any]], None] | None = None, count: int = 2
) -> tuple[WriteQueue, list[WriteQueue]]:
    """A main queue, and queues for bulk items that give way to it; `before` is called before each transaction."""
    transactions = EveryPartition(before)
    main = queue_of_transactions(transactions)
    return main, [queue_of_transactions(transactions, main) for _ in range(count)]


def test_bulk_queues_write_their_partitions_at_the_same_time() -> None:
    both = threading.Barrier(2)
    written: list[list[int]] = []

    def before(partitions: list[int], items: Sequence[Any]) -> None:
        both.wait(30)  # alone, it would wait for ever
        written.append(partitions)

    main, queues = bulk_queues(before)
    assert run_bulk(queues, run_each, works(5, 4, 2, 3)) == ["done 5", "done 4", "done 2", "done 3"]
    assert sorted(written) == [[4, 2], [5, 3]]
    for queue in (*queues, main):
        queue.close()


def test_bulk_queue_that_fails_leaves_the_others_charged_and_says_so() -> None:
    def before(partitions: list[int], items: Sequence[Any]) -> None:
        if 2 in partitions:
            raise LedgerError("a ledger", "it is full. Nothing was charged.")

    _, queues = bulk_queues(before)
    with pytest.raises(LedgerError, match="Other parts of the batch were charged") as raised:
        run_bulk(queues, run_each, works(1, 2, 3))
    assert raised.value.unknown
    with pytest.raises(LedgerError, match="Nothing was charged") as raised:
        run_bulk(queues, run_each, works(2))
    assert not raised.value.unknown
    for queue in queues:
        queue.close()


def test_bulk_queue_ends_its_transaction_early_for_single_items_of_the_main_queue() -> None:
    sizes: list[int] = []

    def before(partitions: list[int], items: Sequence[Any]) -> None:
        sizes.append(len(items))

    main, (queue,) = bulk_queues(before, 1)
    assert run_bulk([queue], run_each, works(0, 1, 2)) == ["done 0", "done 1", "done 2"]
    main._singles.append(write_queue.Submission(run_each, works(9), bulk=False))
    assert run_bulk([queue], run_each, works(0, 1, 2)) == ["done 0", "done 1", "done 2"]
    assert sizes == [3, 1, 1, 1]
    queue.close()


def test_bulk_queue_with_an_unknown_outcome_makes_the_whole_run_unknown() -> None:
    """One queue charges nothing and says so first; the commit of the other may have succeeded."""

    def before(partitions: list[int], items: Sequence[Any]) -> None:
        if 2 in partitions:
            raise LedgerError("a ledger", "it is full. Nothing was charged.")
        raise LedgerError("a ledger", "the connection was lost", unknown=True)

    _, queues = bulk_queues(before)
    for partitions in ((2, 1), (1, 2)):
        with pytest.raises(LedgerError, match="the connection was lost") as raised:
            run_bulk(queues, run_each, works(*partitions))
        assert raised.value.unknown
    for queue in queues:
        queue.close()


def test_bulk_run_that_a_full_queue_refuses_in_part_does_not_say_that_nothing_was_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(write_queue, "MOST_WAITING", 1)
    inside, go = threading.Event(), threading.Event()

    def before(partitions: list[int], items: Sequence[Any]) -> None:
        if 1 in partitions:
            inside.set()
            assert go.wait(30)

    _, queues = bulk_queues(before)
    busy = [Caller(lambda: run_bulk(queues, run_each, works(1)))]
    assert inside.wait(30)
    busy.append(Caller(lambda: run_bulk(queues, run_each, works(3))))
    wait_until(lambda: queues[1]._waiting == 1, "it does not wait")
    with pytest.raises(LedgerError, match="Other parts of the batch were charged") as raised:
        run_bulk(queues, run_each, works(2, 5))
    assert raised.value.unknown
    with pytest.raises(LedgerError, match="Nothing was charged") as raised:
        run_bulk(queues, run_each, works(5))
    assert not raised.value.unknown
    go.set()
    assert [caller.end() for caller in busy] == [["done 1"], ["done 3"]]
    for queue in queues:
        queue.close()


def test_bulk_queue_ends_its_transaction_early_while_the_main_queue_is_in_one() -> None:
    """A single caller writes in its own thread: it does not wait in the queue, but for a partition."""
    sizes: list[int] = []
    inside, go = threading.Event(), threading.Event()

    def before(partitions: list[int], items: Sequence[Any]) -> None:
        if 9 in partitions:
            inside.set()
            assert go.wait(30)
        else:
            sizes.append(len(items))

    main, (queue,) = bulk_queues(before, 1)
    single = Caller(lambda: main.run(run_each, works(9)))
    assert inside.wait(30)
    assert run_bulk([queue], run_each, works(0, 1, 2)) == ["done 0", "done 1", "done 2"]
    assert sizes == [1, 1, 1]
    go.set()
    assert single.end() == ["done 9"]
    assert run_bulk([queue], run_each, works(0, 1, 2)) == ["done 0", "done 1", "done 2"]
    assert sizes == [1, 1, 1, 3]
    for each in (queue, main):
        each.close()


def test_stream_of_single_items_does_not_keep_a_bulk_run_waiting() -> None:
    transactions = Transactions(set())
    queue = queue_of_transactions(transactions)
    over, singles = threading.Event(), [0]

    def single(_: object) -> None:
        """Submit another one before this one is over, so that one waits at any time."""
        singles[0] += 1
        if not over.is_set():
            Caller(lambda: queue.run(run_each, [Work(single, 1, 0)]))
            wait_until(lambda: bool(queue._singles) or over.is_set(), "it does not wait")

    Caller(lambda: queue.run(run_each, works(0)))
    assert transactions.inside.wait(30)
    Caller(lambda: queue.run(run_each, [Work(single, 1, 0)]))
    wait_until(lambda: bool(queue._singles), "it does not wait")
    bulk = Caller(lambda: [queue.run(run_each, works(2), bulk=True) for _ in range(5)])
    wait_until(lambda: bool(queue._bulk), "it does not wait")
    transactions.go.set()
    assert bulk.end() == [["done 2"]] * 5
    over.set()
    assert singles[0] >= 4
    queue.close()
