"""What happens to an open ledger when its process forks.

SQLite books its file locks in tables of the process. In a child these tables say that it holds locks which only the
parent has, so others may delete the log that the child still writes to, and what it acknowledged would be lost.
Hence a ledger is closed while the process forks, and parent and child each open it again when they need it.

Group commit: threads that spend at the same time share one transaction, and so one wait for the disk.

Whoever comes first leads: it opens a transaction, does its own work and everybody's who queues up before it is
through, commits once and hands the answers out. Nobody gets an answer before the commit that makes it true.

Works of several partitions share one as well: the leader waits for the partition of its own work, and takes the locks of those
others in its queue that nobody holds. What is of the rest waits for the next leader, and no leader for two partitions.

An error of one work that wrote nothing is told to it alone. After any other one the transaction is taken back, and
every work gets one of its own, so that one caller's mistake is not the others'. Where a store cannot say whether it
has committed, a work with a key is done again, for the key knows; the others are told. Whose partition such a transaction
did not have hears of none of it, and waits for the next leader.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from ..errors import LdpBudgetError, LedgerError
from .store import Prefetch, UnstorableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .transaction import Transaction


class Forkable(Protocol):
    """What wants to know of a fork."""

    def hold(self, wait: bool) -> bool:
        """Keep every other thread out; without `wait`, only if that can be done at once. Whether it was done."""

    def let_go(self) -> None:
        """Undo `hold`."""

    def before_fork(self) -> None:
        """Get ready, once all are held."""

    def after_fork_in_child(self) -> None:
        """Begin anew: no thread is there but the one that forked."""


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_held: list[Forkable] = []
_forking = threading.RLock()
_opening = threading.RLock()
"""Nobody opens a ledger while the process forks. Whoever forks takes it last, so whoever has it waits for nobody."""


_closing = threading.RLock()
"""No ledger that was dropped is being closed while the process forks. Whoever has it waits for no other lock here."""


def watch(one: Forkable) -> None:
    """Tell `one` of every fork, for as long as it lives."""
    with _opening:
        _watched.add(one)


@contextmanager
def opening(one: Forkable) -> Iterator[None]:
    """Hold forks off while `one` is opened, and tell it of every later one.

    SQLite has locks of its own, which a child would find shut for ever.
    """
    with _opening:
        yield
        _watched.add(one)


@contextmanager
def closing() -> Iterator[None]:
    """Hold forks off while a ledger is closed that nobody holds any more, so that no fork knows of it."""
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
    """Hold all there are, and keep others from being opened; whether there were no more than were held before.

    A thread may have one and wait for another, so whoever forks waits for one at a time, with none held.
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


T = TypeVar("T")
Needs = tuple[bytes, bytes | None]
"""The user and the key, as hashes, that a work will look up."""
Transact: TypeAlias = "Callable[[Callable[[Mapping[int, Transaction]], None], list[int], list[_Work[Any]]], None]"

Piece: TypeAlias = "tuple[Callable[[Transaction], T], int, Needs | None]"
"""A work, its partition, and what it will look up."""

# One transaction holds the write lock for all of its works; other processes wait meanwhile.
MOST_TOGETHER = 256


class _Spoilt(Exception):  # noqa: N818
    """A work failed in a transaction that it shared."""


class _Work(Generic[T]):
    gate: threading.Lock | None = None  # shut, for a thread that waits; whoever wakes it opens it
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
        self.batch: list[_Work[Any]] = []  # what it does, if it leads

    def run(self, transactions: Mapping[int, Transaction]) -> None:
        """Do the work; an error that comes before anything was written concerns this work alone."""
        transaction = transactions[self.partition]
        before, self.error = transaction.writes, None
        try:
            self.result = self.work(transaction)
        except LdpBudgetError as error:
            if transaction.writes != before:
                raise
            self.error = error

    def tell(self, error: Exception) -> None:
        """Its answer, unless it has an error of its own."""
        self.error = self.error or error

    def wake(self) -> None:
        """Let the thread that waits go on, if it does not already."""
        if self.gate is not None:
            with suppress(RuntimeError):  # it is open
                self.gate.release()


class GroupCommit:
    """Runs works in shared transactions of one ledger, one after the other.

    `transact(work, partitions, works)` does something in a transaction of the first partition, and of those others that are
    free; it begins with `works`.
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
        self._inside: set[int] = set()  # the threads that have come with a work

    def hold(self, wait: bool) -> bool:
        """Nothing of it is in the way of a fork."""
        return True

    def let_go(self) -> None: ...

    def before_fork(self) -> None: ...

    def after_fork_in_child(self) -> None:
        """Whoever led or waited in the parent is not here."""
        self._start()

    def run(self, work: Callable[[Transaction], T], partition: int = 0, needs: Needs | None = None) -> T:
        """Do `work` in a transaction of a partition and return its result once that is durable."""
        if threading.get_ident() in self._inside:  # as when the handler of a signal spends; it would wait for itself
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
            # An interrupt (Ctrl-C) may come at any point, here too. Nobody may wait for a leader that is gone.
            try:
                self._leave(mine)
            finally:
                self._leave(mine)
        return self._outcome(mine)

    def run_all(self, pieces: Sequence[Piece[T]]) -> list[T | Exception]:
        """Do many works of one thread, each as `run` does; what one of them raises stands in its place."""
        if threading.get_ident() in self._inside:
            raise LedgerError(self._ledger, "this thread is writing to it just now; finish that first")
        mine = [_Work(*piece) for piece in pieces]
        try:
            # Until the last of them is settled: the handler of a signal would wait for those that are still queued.
            self._inside.add(threading.get_ident())
            self._queue_up(*mine)
            for work in mine:  # in the order of the queue: whichever leads is the first that is not done
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
        """Do everybody's work that there is."""
        self._take(mine.batch)
        free = set[int]()  # the partitions that the transaction had, when it came to the works
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
            # Where it never came to them, none may be had: whoever led next would only wait for the same error.
            if free:
                self._put_back(mine.batch, free)
            for work in mine.batch:
                if getattr(error, "unknown", False) and work.needs is not None and work.needs[1] is not None:
                    self._alone(work)
                    if isinstance(work.error, LedgerError):  # the second time says nothing of the first
                        work.error = error
                else:
                    work.tell(error)

    def _take(self, batch: list[_Work[Any]], partitions: set[int] | None = None) -> None:
        """Move the queue to the batch, as far as there is room, and as it is of these partitions."""
        with self._mutex:
            while self._queue and len(batch) < MOST_TOGETHER:
                if partitions is not None and self._queue[0].partition not in partitions:
                    break
                if not self._queue[0].done:
                    batch.append(self._queue[0])
                self._queue.popleft()

    def _put_back(self, batch: list[_Work[Any]], partitions: set[int]) -> None:
        """Move what is of other partitions than these from the batch to the queue: the next leaders do it."""
        with self._mutex:
            self._queue.extendleft([work for work in reversed(batch) if work.partition not in partitions])
            batch[:] = [work for work in batch if work.partition in partitions]

    def _together(self, batch: list[_Work[Any]], free: set[int]) -> None:
        """Do a batch in one transaction. It grows while others come; what is of partitions that others hold goes back."""

        def everybody(transactions: Mapping[int, Transaction]) -> None:
            free.clear()
            free.update(transactions)
            begun = 0  # the store may ask for all of it once more
            while begun < len(batch):
                works, begun = [work for work in batch[begun:] if work.partition in free], len(batch)
                try:
                    _do(works, transactions)
                except Exception as error:
                    if len(batch) == 1:
                        raise
                    raise _Spoilt from error
                self._take(batch, free)

        self._transact(everybody, list(dict.fromkeys(work.partition for work in batch)), batch)
        for work in batch:
            work.committed = work.partition in free
        self._put_back(batch, free)

    def _alone(self, work: _Work[Any]) -> None:
        """Do one work in a transaction of its own."""
        work.error = None
        try:
            self._transact(work.run, [work.partition], [work])
            work.committed = True
        except Exception as error:
            work.tell(error)

    def _leave(self, *works: _Work[Any]) -> None:
        """Settle the works of this thread, which may come with others then; a second call changes nothing."""
        for mine in works:
            self._settle(mine)
        self._inside.discard(threading.get_ident())

    def _settle(self, mine: _Work[Any]) -> None:
        """Answer whom it led, withdraw what nobody has begun, pass the lead on; a second call changes nothing."""
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
            raise LedgerError(self._ledger, why, unknown=True)
        result: Any = mine.result
        return result  # type: ignore[no-any-return]


def hint(works: list[_Work[Any]], windows: list[int] | None) -> Prefetch | None:
    """What works will ask first."""
    needs = [(work.partition, *work.needs) for work in works if work.needs is not None]
    return Prefetch(needs, windows, some=len(works) > 1) if works else None


def _do(works: list[_Work[Any]], transactions: Mapping[int, Transaction]) -> None:
    """Do works in a transaction that they share."""
    needs: dict[int, list[Needs]] = {}
    for work in works:
        if work.needs is not None:
            needs.setdefault(work.partition, []).append(work.needs)
    for partition, of_partition in needs.items():
        if len(of_partition) > 1:
            transactions[partition].read_ahead(of_partition)
    for work in works:
        work.run(transactions)
