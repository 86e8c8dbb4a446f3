"""Access to the internals of an accountant for tests of faults: its store, its connections, its tables."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from ldp_budget import Accountant
from ldp_budget.ledger.ledger import Ledger
from ldp_budget.ledger.write_queue import WriteQueue
from postgres_servers import wait_until


def ledger_of(accountant: Accountant) -> Ledger:
    return accountant._ledger


def queue_of(accountant: Accountant) -> WriteQueue:
    return accountant._ledger._queue


def transact(accountant: Accountant, work: Callable[[Any], object]) -> None:
    """Call `work` with the partitions of one transaction of the store."""
    for attempt in accountant._ledger._store.attempts():
        with attempt as partitions:
            work(partitions)


def waiting_in(accountant: Accountant) -> int:
    """The number of submissions that wait for the writer thread."""
    queue = queue_of(accountant)
    return len(queue._singles) + len(queue._bulk)


class BusyWriter:
    """The writer thread is in a transaction until `let_go`; what is submitted meanwhile waits together."""

    def __init__(self, accountant: Accountant) -> None:
        self._accountant = accountant
        self._inside, self._go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._inside.wait(30), "the writer thread does not begin"
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()
        self._thread.join(30)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        def work(transaction: object) -> None:
            self._inside.set()
            self._go.wait(30)

        ledger_of(self._accountant).run(work)

    def let_go(self) -> None:
        self._go.set()

    def wait_for(self, submissions: int) -> None:
        """Wait until so many submissions wait."""
        wait_until(lambda: waiting_in(self._accountant) >= submissions, "too few submissions wait")


def store_of(accountant: Accountant) -> Any:
    return accountant._ledger._store


def writer_of(accountant: Accountant) -> sqlite3.Connection:
    """The connection that writes, opened if it is not."""
    connection: sqlite3.Connection = store_of(accountant)._current()
    return connection


def replace_writer(accountant: Accountant, connection: Any) -> None:
    store_of(accountant)._writer = connection


@contextmanager
def tables(accountant: Accountant) -> Iterator[sqlite3.Connection]:
    """A connection that reads the tables as they are now."""
    with store_of(accountant).snapshot() as rows:
        yield rows._connection
