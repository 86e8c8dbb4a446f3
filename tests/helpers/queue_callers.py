"""Callers of a write queue in threads, and transactions without a store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from contract.acts import coin
from ldp_budget import Accountant
from ldp_budget.ledger.storage import Attempt
from ldp_budget.ledger.write_queue import Work, WriteQueue
from ledger_inside import BusyWriter

Call = Callable[[], Any]


class Caller(threading.Thread):
    """A thread that makes one call; `result` is what the call returns or raises."""

    def __init__(self, call: Call) -> None:
        super().__init__(daemon=True)
        self._call = call
        self.result: Any = None
        self.start()

    def run(self) -> None:
        try:
            self.result = self._call()
        except BaseException as error:
            self.result = error

    def end(self) -> Any:
        self.join(30)
        assert not self.is_alive(), "it waits for ever"
        return self.result


def together(accountant: Accountant, calls: Sequence[Call]) -> list[Any]:
    """Return the results or errors of calls that wait for the writer thread together, in this order."""
    callers: list[Caller] = []
    with BusyWriter(accountant) as writer:
        for call in calls:
            callers.append(Caller(call))
            writer.wait_for(len(callers))
    return [caller.end() for caller in callers]


def spends(accountant: Accountant, count: int) -> list[Call]:
    return [lambda key=str(n): accountant.spend("alice", coin(1), key=key) for n in range(count)]  # type: ignore[misc]


class Partition:
    """A transaction of which nothing is asked."""

    writes = by = 0

    def finish(self) -> None: ...


class EveryPartition:
    """Transactions that get all their partitions, after `before` was called with these and with the items."""

    def __init__(self, before: Callable[[list[int], Sequence[Any]], None] | None = None) -> None:
        self._before = before

    def attempts(self, partitions: list[int], items: Sequence[Any]) -> Iterator[Attempt]:
        if self._before is not None:
            self._before(partitions, items)
        yield from self._attempt(partitions)

    def _attempt(self, partitions: list[int]) -> Iterator[Attempt]:
        rows: Any = {partition: Partition() for partition in partitions}
        attempt = Attempt(rows)
        yield attempt
        if attempt.error is not None:
            raise attempt.error

    def begin(self, rows: Any) -> Any:
        return rows

    def committed(self, transactions: object) -> None: ...


def queue_of_transactions(transactions: EveryPartition, main: WriteQueue | None = None) -> WriteQueue:
    """A write queue that keeps its transactions: a ledger keeps its queues instead."""
    queue = WriteQueue("a ledger", transactions, main)
    queue.transactions = transactions  # type: ignore[attr-defined]
    return queue


class Transactions(EveryPartition):
    """Transactions in which other processes hold some partitions. The first one lasts until `go`.

    A transaction waits for its first partition, as its holder lets it go then. The others it takes if they are free.
    """

    def __init__(self, held: set[int], *, begin: Exception | None = None, commit: Exception | None = None) -> None:
        self.held = held
        self.fails_to_begin = begin
        self.commit = commit
        self.made: list[tuple[int, ...]] = []
        self.inside, self.go = threading.Event(), threading.Event()

    def attempts(self, partitions: list[int], items: Sequence[object]) -> Iterator[Attempt]:
        if not self.inside.is_set():
            self.inside.set()
            assert self.go.wait(30)
            yield from self._attempt(partitions)
            return
        self.held.discard(partitions[0])
        taken = [partition for partition in partitions if partition not in self.held]
        self.made.append(tuple(taken))
        error, self.fails_to_begin = self.fails_to_begin, None
        if error is not None:
            raise error
        yield from self._attempt(taken)
        error, self.commit = self.commit, None
        if error is not None:
            raise error


def works(*partitions: int) -> list[Work]:
    return [Work(lambda _, partition=partition: f"done {partition}", partition, 0) for partition in partitions]  # type: ignore[misc]
