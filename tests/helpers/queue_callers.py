"""Callers of a write queue in threads, and transactions without a store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ldp_budget import Accountant
from ldp_budget.ledger.write_queue import Work
from ledger_contract import coin
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


class Transactions:
    """Transactions in which other processes hold some partitions. The first one lasts until `go`.

    A transaction waits for its first partition, as its holder lets it go then. The others it takes if they are free.
    """

    def __init__(self, held: set[int], *, begin: Exception | None = None, commit: Exception | None = None) -> None:
        self.held = held
        self.begin = begin
        self.commit = commit
        self.made: list[tuple[int, ...]] = []
        self.inside, self.go = threading.Event(), threading.Event()

    def __call__(self, work: Callable[[Any], None], partitions: list[int], items: Sequence[object]) -> None:
        if not self.inside.is_set():
            self.inside.set()
            assert self.go.wait(30)
            work({partition: Partition() for partition in partitions})
            return
        self.held.discard(partitions[0])
        taken = [partition for partition in partitions if partition not in self.held]
        self.made.append(tuple(taken))
        error, self.begin = self.begin, None
        if error is not None:
            raise error
        work({partition: Partition() for partition in taken})
        error, self.commit = self.commit, None
        if error is not None:
            raise error


def works(*partitions: int) -> list[Work]:
    return [Work(lambda _, partition=partition: f"done {partition}", partition, 0) for partition in partitions]  # type: ignore[misc]
