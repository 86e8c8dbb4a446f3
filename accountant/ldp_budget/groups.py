"""Group commit: threads that spend at the same time share one transaction, and so one wait for the disk.

Whoever comes first leads: it opens a transaction, does its own work and everybody's who has queued up meanwhile,
commits once and hands the answers out. Nobody gets an answer before the commit that makes it true.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .errors import LdpBudgetError, LedgerError
from .ledger import forks

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ledger import SqliteLedger, Transaction

T = TypeVar("T")

# One transaction holds the write lock for all of its works; other processes wait meanwhile.
MOST_TOGETHER = 256


class _Work(Generic[T]):
    def __init__(self, work: Callable[[Transaction], T]) -> None:
        self.work = work
        self.gate: threading.Lock | None = None  # shut, for a thread that waits; whoever wakes it opens it
        self.leads = False
        self.batch: list[_Work[Any]] = []  # what it does, if it leads
        self.done = False
        self.committed = False
        self.result: T | None = None
        self.error: LdpBudgetError | None = None

    def run(self, transaction: Transaction) -> None:
        """Do the work; an error that comes before anything was written concerns this work alone."""
        before = transaction.writes
        try:
            self.result = self.work(transaction)
        except LdpBudgetError as error:
            if transaction.writes != before:
                raise
            self.error = error

    def wake(self) -> None:
        """Let the thread that waits go on, if it does not already."""
        if self.gate is not None:
            with suppress(RuntimeError):  # it is open
                self.gate.release()


class GroupCommit:
    """Runs works in shared transactions of one ledger."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger
        self._start()
        forks.watch(self)

    def _start(self) -> None:
        self._mutex = threading.Lock()
        self._queue: deque[_Work[Any]] = deque()
        self._led = False

    def before_fork(self) -> None: ...

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None:
        """Whoever led or waited in the parent is not here."""
        self._start()

    def run(self, work: Callable[[Transaction], T]) -> T:
        """Do `work` in a transaction and return its result once that is durable."""
        mine = _Work(work)
        try:
            self._queue_up(mine)
            if mine.gate is not None:
                mine.gate.acquire()
            if mine.leads and not mine.done:
                self._lead(mine)
        finally:
            # An interrupt (Ctrl-C) may come at any point, here too. Nobody may wait for a leader that is gone.
            try:
                self._settle(mine)
            finally:
                self._settle(mine)
                mine.batch = []  # it held `mine`, and with it what the work was about
        return self._outcome(mine)

    def _queue_up(self, mine: _Work[Any]) -> None:
        with self._mutex:
            if self._led:
                mine.gate = threading.Lock()
                mine.gate.acquire()
            self._queue.append(mine)
            mine.leads, self._led = not self._led, True

    def _lead(self, mine: _Work[Any]) -> None:
        with self._mutex:
            while self._queue and len(mine.batch) < MOST_TOGETHER:
                if not self._queue[0].done:
                    mine.batch.append(self._queue[0])
                self._queue.popleft()
        try:
            with self._ledger.write() as transaction:
                for work in mine.batch:
                    work.run(transaction)
        except LdpBudgetError as error:
            # Nothing was committed. Works that were fine are told so too, rather than run twice behind their backs.
            for work in mine.batch:
                work.error = work.error or error
            return
        for work in mine.batch:
            work.committed = True

    def _settle(self, mine: _Work[Any]) -> None:
        """Answer whom it led, withdraw what nobody has begun, pass the lead on; a second call changes nothing."""
        for work in mine.batch:
            work.done = True
            work.wake()
        if mine.leads or not mine.done:
            with self._mutex:
                if not mine.done and mine in self._queue:
                    self._queue.remove(mine)
                if mine.leads:
                    self._hand_over()
                    mine.leads = False

    def _hand_over(self) -> None:
        """Make the first in the queue lead; with the mutex held."""
        while self._queue and self._queue[0].done:
            self._queue.popleft()
        self._led = bool(self._queue)
        if self._queue:
            self._queue[0].leads = True
            self._queue[0].wake()

    def _outcome(self, mine: _Work[T]) -> T:
        if mine.error is not None:
            raise mine.error
        if not mine.committed:
            why = "the transaction was interrupted; ask again by the key whether it was charged"
            raise LedgerError(self._ledger.path, why)
        result: Any = mine.result
        return result  # type: ignore[no-any-return]
