"""Group commit of concurrent charges, and fork safety of open ledgers.

*Fork safety.* SQLite keeps its file locks in tables of the process. In a forked child, these tables claim locks that
only the parent has. Other processes may then delete the WAL that the child still writes to, and acknowledged charges
would be lost. A ledger is therefore closed while its process forks. Parent and child each reopen it when they need
it.

*Group commit.* Threads that charge at the same time share one transaction, and so one wait for the disk. The first
thread to arrive becomes the leader: it opens a transaction, runs its own and all queued work, commits once and
returns the results. No thread gets a result before the commit that makes it durable.

Work for several partitions can share a transaction too. The leader waits for the partition of its own work. It also
takes the locks of other partitions in its queue, if they are free. The remaining work waits for the next leader. No
leader waits for two partitions.

If a work item fails before it has written anything, only that item gets the error. After any other error the
transaction is rolled back and every item runs in a transaction of its own. So one caller's mistake does not affect
others. If the store cannot say whether it committed, items with an idempotency key run again, because the stored
record shows the outcome. Items without a key get the error. Items whose partition was not in the transaction are not
affected; they wait for the next leader.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from ..errors import LdpBudgetError, LedgerError
from .storage import Prefetch, UnstorableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .transaction import Transaction


# -- fork safety ------------------------------------------------------------------------------------------


class Forkable(Protocol):
    """An object that must be prepared for a fork."""

    def hold(self, wait: bool) -> bool:
        """Keep all other threads out; True if that succeeded. Without `wait`, try only once."""

    def let_go(self) -> None:
        """Undo `hold`."""

    def before_fork(self) -> None:
        """Prepare for the fork, once all objects are held."""

    def after_fork_in_child(self) -> None:
        """Start over in the child, where only the thread that forked exists."""


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_held: list[Forkable] = []
_forking = threading.RLock()
_opening = threading.RLock()
"""Held while a ledger is opened, and during a fork.

The forking thread takes it last, so its holder never waits for a fork.
"""


_closing = threading.RLock()
"""Held while a dropped ledger is closed, and during a fork. Its holder waits for no other lock of this module."""


def watch(one: Forkable) -> None:
    """Notify `one` of every fork, as long as it exists."""
    with _opening:
        _watched.add(one)


@contextmanager
def opening(one: Forkable) -> Iterator[None]:
    """Delay forks while `one` is opened, and notify it of every later fork.

    SQLite has internal locks. A fork would leave them locked forever in the child.
    """
    with _opening:
        yield
        _watched.add(one)


@contextmanager
def closing() -> Iterator[None]:
    """Delay forks while an unreferenced ledger is closed, because the fork hooks no longer know it."""
    with _closing:
        yield


def _before() -> None:
    _forking.acquire()
    while not _hold_all():
        pass
    _closing.acquire()
    for one in _held:
        one.before_fork()


def _hold_all() -> bool:
    """Hold all watched objects and prevent new ones; True if no new object had appeared.

    A thread may hold one object and wait for another. So the forking thread waits for one object at a time, and holds
    no other one then.
    """
    _opening.acquire()
    others = [one for one in _watched if one not in _held]
    if not others:
        return True
    _opening.release()
    for one in others:
        if not one.hold(wait=False):
            _let_all_go()
            one.hold(wait=True)
            _held.append(one)
            break
        _held.append(one)
    return False


def _let_all_go() -> None:
    for one in _held:
        one.let_go()
    _held.clear()


def _after_in_parent() -> None:
    _let_all_go()
    _closing.release()
    _opening.release()
    _forking.release()


def _after_in_child() -> None:
    global _forking, _opening, _closing
    _forking, _opening, _closing = threading.RLock(), threading.RLock(), threading.RLock()
    for one in _held:
        one.after_fork_in_child()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)


# -- group commit -----------------------------------------------------------------------------------------


T = TypeVar("T")
Needs = tuple[bytes, bytes | None]
"""The hashes of the user and of the idempotency key (or None) that a work item will look up."""
Transact: TypeAlias = "Callable[[Callable[[Mapping[int, Transaction]], None], list[int], list[_Work[Any]]], None]"

Piece: TypeAlias = "tuple[Callable[[Transaction], T], int, Needs | None]"
"""A work item, its partition, and the hashes that it will look up."""

# One transaction holds the write lock for all of its items, and other processes wait meanwhile.
MOST_TOGETHER = 256


class _Spoilt(Exception):  # noqa: N818
    """A work item failed in a transaction that it shared."""


class _Work(Generic[T]):
    gate: threading.Lock | None = None  # locked while a thread waits; waking the thread releases it
    leads = False
    done = False
    committed = False
    result: T | None = None
    error: Exception | None = None

    def __init__(self, work: Callable[[Transaction], T], partition: int, needs: Needs | None) -> None:
        self.work = work
        self.partition = partition
        self.needs = needs
        self.thread = threading.get_ident()
        self.batch: list[_Work[Any]] = []  # the items that it runs as leader

    def run(self, transactions: Mapping[int, Transaction]) -> None:
        """Run the item. An error before anything was written concerns this item only."""
        transaction = transactions[self.partition]
        before, self.error = transaction.writes, None
        try:
            self.result = self.work(transaction)
        except LdpBudgetError as error:
            if transaction.writes != before:
                raise
            self.error = error

    def tell(self, error: Exception) -> None:
        """Set the item's error, unless it has one of its own."""
        self.error = self.error or error

    def wake(self) -> None:
        """Wake the waiting thread, if it still waits."""
        if self.gate is not None:
            with suppress(RuntimeError):  # already released
                self.gate.release()


class GroupCommit:
    """Runs work items of one ledger in shared transactions, one transaction after the other.

    `transact(work, partitions, works)` runs `work` in a transaction of the first partition, and of those others that
    are free. `works` are the items that it begins with.
    """

    def __init__(self, ledger: str, transact: Transact) -> None:
        self._ledger = ledger
        self._transact = transact
        self._start()
        watch(self)

    def _start(self) -> None:
        self._mutex = threading.Lock()
        self._queue: deque[_Work[Any]] = deque()
        self._led = False
        self._inside: set[int] = set()  # the threads that have submitted work

    def hold(self, wait: bool) -> bool:
        """Return True: nothing here delays a fork."""
        return True

    def let_go(self) -> None: ...

    def before_fork(self) -> None: ...

    def after_fork_in_child(self) -> None:
        """Start over: the leader and the waiting threads of the parent do not exist here."""
        self._start()

    def run(self, work: Callable[[Transaction], T], partition: int = 0, needs: Needs | None = None) -> T:
        """Run `work` in a transaction of a partition and return its result once that is durable."""
        if threading.get_ident() in self._inside:  # such as a signal handler that charges: it would wait for itself
            raise LedgerError(self._ledger, "this thread is writing to it just now; finish that first")
        mine = _Work(work, partition, needs)
        try:
            self._inside.add(mine.thread)
            self._queue_up(mine)
            if mine.gate is not None:
                mine.gate.acquire()
            if mine.leads and not mine.done:
                self._lead(mine)
        finally:
            # An interrupt (Ctrl-C) may come at any point, here too. No thread may wait for a leader that is gone.
            try:
                self._leave(mine)
            finally:
                self._leave(mine)
        return self._outcome(mine)

    def run_all(self, pieces: Sequence[Piece[T]]) -> list[T | Exception]:
        """Run many items of one thread, each as by `run`. An item's exception takes the place of its result."""
        if threading.get_ident() in self._inside:
            raise LedgerError(self._ledger, "this thread is writing to it just now; finish that first")
        mine = [_Work(*piece) for piece in pieces]
        try:
            # Until the last item is settled: a signal handler that charges would wait for items that are still
            # queued.
            self._inside.add(threading.get_ident())
            self._queue_up(*mine)
            for work in mine:  # in queue order: the leader is the first that is not done
                if work.gate is not None:
                    work.gate.acquire()
                if work.leads and not work.done:
                    try:
                        self._lead(work)
                    except Exception as error:
                        work.tell(error)
                self._settle(work)
        finally:
            try:
                self._leave(*mine)
            finally:
                self._leave(*mine)
        return [self._told(work) for work in mine]

    def _told(self, mine: _Work[Any]) -> Any:
        try:
            return self._outcome(mine)
        except Exception as error:
            return error

    def _queue_up(self, *works: _Work[Any]) -> None:
        with self._mutex:
            for mine in works:
                if self._led:
                    mine.gate = threading.Lock()
                    mine.gate.acquire()
                self._queue.append(mine)
                mine.leads, self._led = not self._led, True

    def _lead(self, mine: _Work[Any]) -> None:
        """Run all queued work as the leader."""
        self._take(mine.batch)
        free = set[int]()  # the partitions of the transaction, set when it begins to run items
        try:
            self._together(mine.batch, free)
        except (_Spoilt, UnstorableError) as error:
            if len(mine.batch) == 1:
                mine.tell(error)
                return
            self._put_back(mine.batch, free)
            for work in mine.batch:
                self._alone(work)
        except LdpBudgetError as error:
            # If it never began to run items, the store may be unavailable. The next leader would only wait for the
            # same error.
            if free:
                self._put_back(mine.batch, free)
            for work in mine.batch:
                if getattr(error, "unknown", False) and work.needs is not None and work.needs[1] is not None:
                    self._alone(work)
                    if isinstance(work.error, LedgerError):  # the second attempt says nothing about the first
                        work.error = error
                else:
                    work.tell(error)

    def _take(self, batch: list[_Work[Any]], partitions: set[int] | None = None) -> None:
        """Move items from the queue to the batch, up to its maximum size, as long as they are of these partitions."""
        with self._mutex:
            while self._queue and len(batch) < MOST_TOGETHER:
                if partitions is not None and self._queue[0].partition not in partitions:
                    break
                if not self._queue[0].done:
                    batch.append(self._queue[0])
                self._queue.popleft()

    def _put_back(self, batch: list[_Work[Any]], partitions: set[int]) -> None:
        """Move items of other partitions from the batch back to the queue, for the next leaders."""
        with self._mutex:
            self._queue.extendleft([work for work in reversed(batch) if work.partition not in partitions])
            batch[:] = [work for work in batch if work.partition in partitions]

    def _together(self, batch: list[_Work[Any]], free: set[int]) -> None:
        """Run a batch in one transaction.

        The batch grows while others arrive. Items of partitions that others hold go back to the queue.
        """

        def run_batch(transactions: Mapping[int, Transaction]) -> None:
            free.clear()
            free.update(transactions)
            begun = 0  # the store may retry the whole transaction
            while begun < len(batch):
                works, begun = [work for work in batch[begun:] if work.partition in free], len(batch)
                try:
                    _do(works, transactions)
                except Exception as error:
                    if len(batch) == 1:
                        raise
                    raise _Spoilt from error
                self._take(batch, free)

        self._transact(run_batch, list(dict.fromkeys(work.partition for work in batch)), batch)
        for work in batch:
            work.committed = work.partition in free
        self._put_back(batch, free)

    def _alone(self, work: _Work[Any]) -> None:
        """Run one item in a transaction of its own."""
        work.error = None
        try:
            self._transact(work.run, [work.partition], [work])
            work.committed = True
        except Exception as error:
            work.tell(error)

    def _leave(self, *works: _Work[Any]) -> None:
        """Settle the items of this thread, which may submit others afterwards. A second call changes nothing."""
        for mine in works:
            self._settle(mine)
        self._inside.discard(threading.get_ident())

    def _settle(self, mine: _Work[Any]) -> None:
        """Wake the threads it led, withdraw the item if it has not begun, and pass on the lead.

        A second call changes nothing.
        """
        while mine.batch:
            work = mine.batch[-1]
            work.done = True
            work.wake()
            mine.batch.pop()
        if mine.leads or not mine.done:
            with self._mutex:
                if not mine.done and mine in self._queue:
                    self._queue.remove(mine)
                if mine.leads:
                    self._hand_over()
                    mine.leads = False

    def _hand_over(self) -> None:
        """Make the first item in the queue the leader. The caller holds the mutex."""
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
            raise LedgerError(self._ledger, why, unknown=True)
        result: Any = mine.result
        return result  # type: ignore[no-any-return]


def hint(works: list[_Work[Any]], windows: list[int] | None) -> Prefetch | None:
    """Return the first look-ups of the items, for the store to prefetch."""
    needs = [(work.partition, *work.needs) for work in works if work.needs is not None]
    return Prefetch(needs, windows, some=len(works) > 1) if works else None


def _do(works: list[_Work[Any]], transactions: Mapping[int, Transaction]) -> None:
    """Run items in a transaction that they share."""
    needs: dict[int, list[Needs]] = {}
    for work in works:
        if work.needs is not None:
            needs.setdefault(work.partition, []).append(work.needs)
    for partition, of_partition in needs.items():
        if len(of_partition) > 1:
            transactions[partition].read_ahead(of_partition)
    for work in works:
        work.run(transactions)
