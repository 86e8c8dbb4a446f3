"""Group commit: threads that spend at the same time share one transaction, and so one wait for the disk.

Whoever comes first leads: it opens a transaction, does its own work and everybody's who has queued up meanwhile,
commits once and hands the answers out. Nobody gets an answer before the commit that makes it true.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .errors import LdpBudgetError
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
        self.done = False
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self, transaction: Transaction) -> None:
        """Do the work; an error that comes before anything was written concerns this work alone."""
        before = transaction.writes
        try:
            self.result = self.work(transaction)
        except LdpBudgetError as error:
            if transaction.writes != before:
                raise
            self.error = error

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        result: Any = self.result
        return result  # type: ignore[no-any-return]


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
        with self._mutex:
            self._queue.append(mine)
            if self._led:
                mine.gate = threading.Lock()
                mine.gate.acquire()
            mine.leads, self._led = not self._led, True
        if mine.gate is not None:
            self._wait(mine, mine.gate)
        if mine.leads and not mine.done:
            self._lead()
        return mine.outcome()

    def _wait(self, mine: _Work[Any], gate: threading.Lock) -> None:
        try:
            gate.acquire()
        except BaseException:
            # Interrupted: what nobody has begun is withdrawn, and a lead that was handed over goes on to the next.
            with self._mutex:
                if mine in self._queue:
                    self._queue.remove(mine)
                if mine.leads:
                    self._hand_over()
            raise

    def _lead(self) -> None:
        with self._mutex:
            batch = [self._queue.popleft() for _ in range(min(MOST_TOGETHER, len(self._queue)))]
        try:
            self._commit(batch)
        finally:
            for work in batch:
                work.done = True
                if work.gate is not None:
                    work.gate.release()
            with self._mutex:
                self._hand_over()

    def _hand_over(self) -> None:
        """Make the first in the queue lead; with the mutex held."""
        successor = self._queue[0] if self._queue else None
        self._led = successor is not None
        if successor is not None and successor.gate is not None:
            successor.leads = True
            successor.gate.release()

    def _commit(self, batch: list[_Work[Any]]) -> None:
        try:
            with self._ledger.write() as transaction:
                for work in batch:
                    work.run(transaction)
        except BaseException as error:
            # Nothing was committed. Works that were fine are told so too, rather than run twice behind their backs.
            for work in batch:
                work.result = None
                work.error = work.error or error
            if not isinstance(error, LdpBudgetError):
                raise
