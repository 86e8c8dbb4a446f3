"""Write queue of a ledger: callers submit items, and one writer thread runs all waiting items in one transaction.

A transaction waits for the disk once, however many items it has. A caller in a thread waits on a lock; a caller in an
event loop awaits a future. If nothing waits and nothing is being written, a thread runs its own items: that saves two
switches between threads, about a fifth of a single charge. The rules for what can go wrong:

- **Errors.** If an item fails, the transaction is rolled back, and each submission is tried in a transaction of its
  own. If no transaction can begin, all submissions get that error; if it names partitions, those of these partitions. If
  the commit itself fails, its outcome is unknown. Submissions whose items all have idempotency keys are then run once
  more, and the stored responses tell. All others get an error with `unknown`.
- **Interrupts.** A caller that is interrupted while it waits withdraws its items, unless the writer has taken them.
  A caller that is interrupted while it runs its own items rolls them back, unless they were being committed. A signal
  handler cannot submit items while its own thread writes or submits.
- **Cancelled tasks.** A cancelled task withdraws its items by the same rule.
- **Closing.** `close` runs what is waiting, and refuses new items.
- **Too many.** Above `MOST_WAITING` items, the queue refuses more.

A store that can write several partitions at the same time has further queues for bulk items (`run_bulk`). Each has its own
partitions and its own writer thread, which ends its transaction early when single items wait.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from contextlib import suppress
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ..errors import LdpBudgetError, LedgerError
from .storage import UNREADABLE, PartitionsFailedError, Prefetch, UnstorableError, unreadable

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from .storage import Attempt, Partitions
    from .transaction import Transaction

MOST_TOGETHER = 1_000
"""Maximum number of items in one transaction, unless one submission alone has more."""
MOST_BULK = 10
"""Maximum number of bulk items in one transaction; each is large, and the transaction ends early for single ones."""
MOST_PAUSE_SECONDS, PAUSE_SECONDS = 0.02, 0.0002
"""The longest time for which a long computation gives way to charges, and the time between two looks."""
YIELD_SECONDS = 0.001
"""The pause after a bulk transaction while another process waits: it looks for the writer lock in shorter steps."""
MOST_WAITING = 100_000
"""Maximum number of items that wait."""
_ENGINE, _PARTITION = attrgetter("engine"), attrgetter("partition")


class Item(Protocol):
    """Something to write: it belongs to one partition."""

    @property
    def partition(self) -> int:
        """The number of its partition."""

    @property
    def needs(self) -> tuple[bytes, bytes | None] | None:
        """The hashes of the user and of the idempotency key that it will look up; None if there are none."""

    @property
    def batch_users(self) -> list[bytes] | None:
        """The sorted hashes of distinct users whom it charges by set-based statements; None if it does not."""


Engine: TypeAlias = "Callable[[Mapping[int, Transaction], Sequence[Any]], list[Any]]"
"""Runs items in the transactions of their partitions, and returns an outcome for each.

An outcome may be an `LdpBudgetError`: that item failed, and wrote nothing.
"""
NOTHING_CHARGED = ". Nothing was charged"


class Transactions(Protocol):
    """What a queue needs of its ledger."""

    def attempts(self, partitions: list[int], items: Sequence[Item]) -> Iterator[Attempt]:
        """Yield attempts of one transaction of the first partition, and of those others that no other process holds."""

    def begin(self, rows: Partitions) -> Mapping[int, Transaction]:
        """Return the transactions of an attempt."""

    def committed(self, transactions: Mapping[int, Transaction]) -> None:
        """Keep what transactions have read and written for the next ones."""


class Submission:
    """Items of one caller, and the way to return their outcomes."""

    __slots__ = (
        "_future",
        "_gate",
        "bulk",
        "counted",
        "doubted",
        "engine",
        "error",
        "is_inline",
        "items",
        "left",
        "loop",
        "outcomes",
        "withdrawn",
    )

    def __init__(self, engine: Engine, items: Sequence[Item], bulk: bool) -> None:
        self.engine = engine
        self.items = items
        self.bulk = bulk
        self.outcomes: list[Any] = [None] * len(items)
        self.left: Sequence[int] = range(len(items))
        """The indexes of the items without an outcome."""
        self.error: BaseException | None = None
        self.doubted: BaseException | None = None
        self.withdrawn = False
        self.counted = False
        """True while the queue counts its items as waiting."""
        self._gate: threading.Lock | None = None
        self.is_inline = True
        """True if no thread and no task waits for it: its caller runs its items itself."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop that waits for it; None for a thread."""
        self._future: asyncio.Future[None] | None = None

    def expect_thread(self) -> None:
        """Make the lock that the writer releases at the end."""
        self._gate = threading.Lock()
        self._gate.acquire()
        self.is_inline = False

    def expect_task(self) -> asyncio.Future[None]:
        """Return a future that the writer resolves at the end."""
        import asyncio  # an event loop has imported it

        self.loop, self.is_inline = asyncio.get_running_loop(), False
        self._future = self.loop.create_future()
        return self._future

    def doubt(self, error: BaseException) -> bool:
        """Remember the error of an unknown outcome; return True if the keys of the items can tell, and were not asked."""
        keyed = all(needs is not None and needs[1] is not None for needs in (item.needs for item in self.items))
        first, self.doubted = self.doubted is None, self.doubted or error
        return keyed and first

    def partitions(self) -> set[int]:
        """Return the partitions of the items without an outcome."""
        return {self.items[place].partition for place in self.left}

    def wait(self) -> None:
        """Wait, in a thread, until it has its outcomes or its error."""
        if self._gate is not None:
            self._gate.acquire()

    def wake_thread(self) -> None:
        """Wake the thread that waits."""
        if self._gate is not None:
            with suppress(RuntimeError):  # already released
                self._gate.release()

    def wake_task(self) -> None:
        """Resolve the future, in its event loop."""
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def result(self) -> list[Any]:
        """Return the outcomes, or raise the error of the submission."""
        error = self.error
        if isinstance(error, LedgerError) and not error.unknown and len(self.left) < len(self.items):
            why = error.completed("").removeprefix(f"ledger {error.path}: ").replace(". Nothing was charged.", "")
            why = f"{why}. Other parts of the batch were charged."
            hint = "If the batch has a key, repeat it with the same key."
            raise LedgerError(error.path, why, unknown=True, hint=hint) from error
        if error is not None:
            raise error
        return self.outcomes


class _ItemFailedError(Exception):
    """An item failed in a transaction that several submissions shared."""


class WriteQueue:
    """The write queue of one ledger; see the module for its rules. The writer thread starts with the first item.

    A queue for bulk items gives way to the single items of another queue, its `main`. It keeps no ledger alive that
    the program has dropped.
    """

    def __init__(self, name: str, ledger: Transactions, main: WriteQueue | None = None) -> None:
        self._name = name
        self._ledger = weakref.ref(ledger)
        self._singles: deque[Submission] = deque()
        self._main = main or self
        self._transacting = False
        self._bulk: deque[Submission] = deque()
        self._turns: dict[asyncio.AbstractEventLoop, list[Submission]] = {}
        self._waiting = 0
        self._shared = 0  # the number of submissions in the newest transaction
        self._bulk_is_next = False
        self._closed = False
        self._wake = threading.Lock()  # held while there is nothing to do
        self._wake.acquire()
        # Held by the thread that writes. An RLock knows its owner, also when an interrupt came just after `acquire`.
        self._writing = threading.RLock()
        # For the lists of what waits and for the thread. Also an RLock: a signal handler must not wait for its own thread.
        self._lists = threading.RLock()
        self._thread: threading.Thread | None = None

    def __del__(self) -> None:
        self._closed = True
        self._wake_writer()

    # -- callers ------------------------------------------------------------------------------------------

    def run(self, engine: Engine, items: Sequence[Item], *, bulk: bool = False) -> list[Any]:
        """Run items and return their outcomes once they are durable. A `bulk` item is large, and waits for others."""
        mine = Submission(engine, items, bulk)
        try:
            if not self._run_here(mine):
                mine.expect_thread()
                self._put(mine)
            if not mine.is_inline:
                mine.wait()
        except BaseException:
            self.withdraw(mine)
            raise
        return mine.outcomes if mine.error is None else mine.result()

    def submit(self, mine: Submission) -> None:
        """Submit items; the calling thread waits for them afterwards."""
        self.check_thread()
        mine.expect_thread()
        self._put(mine)

    async def run_async(self, engine: Engine, items: Sequence[Item]) -> list[Any]:
        """Do the same for a task of an event loop."""
        mine = Submission(engine, items, bulk=False)
        future = mine.expect_task()
        loop = mine.loop
        assert loop is not None
        try:
            self.check_thread()
            # What the tasks of a loop submit in one of its turns is put into the queue together.
            turn = self._turns.get(loop)
            if turn is None:
                turn = self._turns[loop] = []
                loop.call_soon(self._put_turn, loop)
            turn.append(mine)
            await future
        except BaseException:
            self.withdraw(mine)
            raise
        return mine.result()

    def _put_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Put what the tasks of an event loop have submitted into the queue; what is refused gets its error."""
        turn = self._turns.pop(loop)[::-1]  # the first one is put first
        try:
            self.check_thread()
            with self._lists:
                while turn:
                    if not turn[-1].withdrawn:
                        self._add(turn[-1])
                    turn.pop()
        except BaseException as error:
            for each in turn:
                each.error = error
                each.wake_task()
            if not isinstance(error, Exception):
                raise
        self._wake_writer()

    def withdraw(self, mine: Submission) -> None:
        """Let a submission not be run, unless the writer has taken it; its items wait no longer."""
        mine.withdrawn = True
        with self._lists:
            if mine.counted:
                mine.counted = False
                self._waiting -= len(mine.left)

    def give_way(self) -> None:
        """Wait until no item waits or is being written, but not for long.

        A thread that computes in Python, next to one that writes, delays each of its statements by a few milliseconds.
        """
        if self._transacting or self._singles:
            deadline = time.monotonic() + MOST_PAUSE_SECONDS
            while (self._transacting or self._singles) and time.monotonic() < deadline:
                time.sleep(PAUSE_SECONDS)

    def close(self) -> None:
        """Run what is waiting, and stop the writer thread."""
        with self._lists:
            self._closed = True
            thread = self._thread
        self._wake_writer()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def check_thread(self) -> None:
        """Raise `LedgerError` if the queue is closed, or if this thread is writing to the ledger already."""
        if self._main is not self:
            self._main.check_thread()
        if self._closed:
            raise LedgerError(self._name, "this accountant is closed", hint="Open a new one.")
        if self._writing._is_owned() or self._lists._is_owned():  # type: ignore[attr-defined]  # it would wait for itself
            raise LedgerError(self._name, "this thread is already writing to it", hint="Finish that first.")

    def _run_here(self, mine: Submission) -> bool:
        """Run the items of a lonely caller in its own thread; return True if they were run, or put back to wait.

        A caller is lonely if its items are no bulk, nothing waits, the newest transaction had one caller, and no
        thread writes.
        """
        self.check_thread()
        if mine.bulk or self._singles or self._bulk or self._shared > 1:
            return False
        try:
            if not self._writing.acquire(blocking=False):
                return False
            self._run_together([mine])
            return True
        finally:
            # An interrupt (Ctrl-C) may happen here too.
            try:
                if self._writing._is_owned():  # type: ignore[attr-defined]
                    self._writing.release()
            finally:
                if self._writing._is_owned():  # type: ignore[attr-defined]
                    self._writing.release()

    def _put(self, mine: Submission) -> None:
        self.check_thread()
        with self._lists:
            self._add(mine)
        self._wake_writer()

    def _add(self, mine: Submission) -> None:
        """Add a submission to what waits, unless too much waits; and start the thread."""
        with self._lists:
            if self._closed:
                raise LedgerError(self._name, "this accountant is closed", hint="Open a new one.")
            if self._waiting >= MOST_WAITING and self._recount() >= MOST_WAITING:
                raise LedgerError(
                    self._name,
                    f"it is busy: {self._waiting} charges wait. Nothing was charged.",
                    hint="Try again later.",
                )
            queue = self._bulk if mine.bulk else self._singles
            try:
                self._waiting += len(mine.items)
                mine.counted = True
                queue.append(mine)
                self._start()
            except BaseException:  # an interrupt, or no thread can be started
                if mine in queue:
                    queue.remove(mine)
                mine.counted = False
                self._recount()
                raise

    def _recount(self) -> int:
        """Count what waits, and return it. An interrupt (Ctrl-C) may have come between an item and its count."""
        with self._lists:
            self._waiting = sum(len(each.left) for each in (*self._singles, *self._bulk) if each.counted)
            return self._waiting

    def _put_back(self, again: Sequence[Submission]) -> None:
        """Put submissions in front of all others. Their partitions come first now, and are waited for."""
        if not again:
            return
        with self._lists:
            for submission in reversed(again):
                if submission.is_inline:
                    submission.expect_thread()  # it has run its own items so far
                if not submission.withdrawn:
                    self._waiting += len(submission.left)
                    submission.counted = True
                (self._bulk if submission.bulk else self._singles).appendleft(submission)
            self._start()
        self._wake_writer()

    def _wake_writer(self) -> None:
        if self._wake.locked():  # else it is awake
            with suppress(RuntimeError):
                self._wake.release()

    def _start(self) -> None:
        """Start the writer thread, if it does not run yet."""
        if self._thread is None:
            # The thread keeps no reference while it waits: a ledger that is dropped can be closed.
            target, arguments = _serve, (weakref.ref(self), self._wake)
            thread = threading.Thread(target=target, args=arguments, name="ldp-budget writer", daemon=True)
            thread.start()
            self._thread = thread

    # -- the writer thread --------------------------------------------------------------------------------

    def is_writer(self) -> bool:
        """True if this thread is the writer thread. An interrupted start may have left a second thread."""
        with self._lists:
            is_over = self._closed and not self._singles and not self._bulk
            if self._thread is None and not is_over:
                self._thread = threading.current_thread()
            return self._thread is threading.current_thread()

    def serve(self) -> bool:
        """Run everything that waits; return False if the queue is closed."""
        while True:
            with self._lists:
                if not self._singles and not self._bulk:
                    if self._closed:
                        self._thread = None
                    return not self._closed
            with self._writing:
                taken = self._take()
                try:
                    self._run_together(taken)
                except BaseException as error:  # otherwise the callers would never return
                    self._fail(taken, error)
            if taken and taken[0].bulk and self._is_wanted():
                time.sleep(YIELD_SECONDS)

    def _take(self) -> list[Submission]:
        """Take the submissions of the next transaction: all single ones, or one bulk submission, in turn."""
        if self._bulk and (self._bulk_is_next or not self._singles):
            self._bulk_is_next = False
            return self._take_from(self._bulk, 1)
        self._bulk_is_next = bool(self._bulk)
        self._gather()
        return self._take_from(self._singles, MOST_TOGETHER)

    def _gather(self) -> None:
        """Let the callers of the newest transaction, which were woken together, submit their next items."""
        seen = -1
        while self._shared > 1 and len(self._singles) not in (seen, self._shared):
            seen = len(self._singles)
            time.sleep(0)

    def _take_from(self, queue: deque[Submission], most: int) -> list[Submission]:
        taken: list[Submission] = []
        size = 0
        with self._lists:
            while queue and (not taken or size + len(queue[0].left) <= most):
                submission = queue.popleft()
                if submission.counted:
                    self._waiting -= len(submission.left)
                    submission.counted = False
                if not submission.withdrawn:
                    taken.append(submission)
                    size += len(submission.left)
        self._shared = len(taken)
        return taken

    def _run_together(self, taken: list[Submission]) -> None:
        """Run submissions in one transaction; return to the queue what other processes hold."""
        if not taken:
            return
        begun: Collection[int] = ()
        items: list[Item] = []
        for each in taken:
            if each.bulk:
                most = 1 if self._gives_way() else MOST_BULK
                items += [each.items[place] for place in each.left[:most]]
            elif len(each.left) == len(each.items):
                items += each.items
            else:
                items += [each.items[place] for place in each.left]
        partitions = list(dict.fromkeys(map(_PARTITION, items)))
        ledger = self._ledger()
        assert ledger is not None  # a caller waits for the result
        self._transacting = True
        try:
            for attempt in ledger.attempts(partitions, items):
                with attempt as rows:
                    begun = list(rows)
                    transactions = ledger.begin(rows)
                    try:
                        found = self._run_items(taken, transactions)
                        for transaction in transactions.values():
                            transaction.finish()
                    except LdpBudgetError:
                        raise
                    except UNREADABLE as error:
                        raise unreadable(self._name, error, NOTHING_CHARGED) from error
            ledger.committed(transactions)
        except BaseException as error:
            # Items of partitions that other processes hold, or that have not failed, are not affected.
            if isinstance(error, PartitionsFailedError):
                begun = error.partitions.intersection(partitions)
            tried = [each for each in taken if not begun or not each.partitions().isdisjoint(begun)]
            self._put_back([each for each in taken if each not in tried])
            alone = isinstance(error, _ItemFailedError) or (isinstance(error, UnstorableError) and len(tried) > 1)
            for each in tried:
                if alone or (getattr(error, "unknown", False) and each.doubt(error)):
                    self._run_together([each])
                else:
                    self._fail([each], error)
            return
        finally:
            self._transacting = False
        self._settle(found)

    def _run_items(
        self, taken: list[Submission], transactions: Mapping[int, Transaction]
    ) -> list[tuple[Submission, Sequence[int], list[Any]]]:
        """Run the items of submissions; return the places of those that were run, and their outcomes."""
        try:
            if taken[0].bulk:
                return [self._run_bulk(taken[0], transactions)]
            found: list[tuple[Submission, Sequence[int], list[Any]]] = []
            for engine, some in groupby(taken, _ENGINE):
                here: list[tuple[Submission, Sequence[int]]] = []
                asked: list[Item] = []
                for each in some:
                    places = each.left
                    if len(places) == len(each.items) and transactions.keys() >= set(map(_PARTITION, each.items)):
                        asked += each.items
                    else:  # some are done, or other processes hold some of the partitions
                        places = [place for place in places if each.items[place].partition in transactions]
                        asked += [each.items[place] for place in places]
                    here.append((each, places))
                following = iter(engine(transactions, asked))
                for each, places in here:
                    found.append((each, places, list(islice(following, len(places)))))
        except Exception as error:
            if len(taken) > 1:
                raise _ItemFailedError from error
            raise
        return found

    def _gives_way(self) -> bool:
        """True if single items wait, if the main queue may wait for what bulk items hold, or if another process waits."""
        if self._main._singles or (self._main is not self and self._main._transacting):
            return True
        return self._is_wanted()

    def _is_wanted(self) -> bool:
        """True if another process is known to wait for the ledger; a ledger need not know."""
        known = getattr(self._ledger(), "is_wanted", None)
        return known is not None and bool(known())

    def _run_bulk(
        self, submission: Submission, transactions: Mapping[int, Transaction]
    ) -> tuple[Submission, Sequence[int], list[Any]]:
        """Run the first items of a bulk submission, until single items wait."""
        places: list[int] = []
        outcomes: list[Any] = []
        for place in submission.left[:MOST_BULK]:
            item = submission.items[place]
            if item.partition in transactions:
                outcomes += submission.engine(transactions, [item])
                places.append(place)
                if self._gives_way():
                    break
        return submission, places, outcomes

    def _settle(self, found: list[tuple[Submission, Sequence[int], list[Any]]]) -> None:
        done: list[Submission] = []
        again: list[Submission] = []
        for submission, places, outcomes in found:
            if len(places) == len(submission.items):
                submission.outcomes, submission.left = outcomes, ()
            else:
                for place, outcome in zip(places, outcomes, strict=True):
                    submission.outcomes[place] = outcome
                run = set(places)
                submission.left = [place for place in submission.left if place not in run]
            (again if submission.left else done).append(submission)
        if again:
            self._put_back(again)
        _deliver(done)

    def _fail(self, taken: list[Submission], error: BaseException) -> None:
        failed = [submission for submission in taken if submission.left and submission.error is None]
        for submission in failed:
            submission.error = submission.doubted or error
        _deliver(failed)


def run_bulk(queues: Sequence[WriteQueue], engine: Engine, items: Sequence[Item]) -> list[Any]:
    """Run bulk items of many partitions in several queues at the same time; return their outcomes."""
    whole = Submission(engine, items, bulk=True)
    shares: dict[int, list[int]] = {}
    for place, item in enumerate(items):
        shares.setdefault(item.partition % len(queues), []).append(place)
    begun = {
        number: Submission(engine, [items[place] for place in places], True) for number, places in shares.items()
    }
    for queue in queues:
        queue.check_thread()
    try:
        for number, submission in begun.items():
            _submit_or_fail(queues[number], submission)
        for submission in begun.values():
            submission.wait()
    except BaseException:
        for number, submission in begun.items():
            queues[number].withdraw(submission)
        raise
    for number, submission in begun.items():
        for place, outcome in zip(shares[number], submission.outcomes, strict=True):
            whole.outcomes[place] = outcome
    whole.left = [shares[number][place] for number, submission in begun.items() for place in submission.left]
    errors = [submission.error for submission in begun.values() if submission.error is not None]
    # If one outcome is unknown, that of the whole run is unknown.
    unknown = (error for error in errors if getattr(error, "unknown", False))
    whole.error = next(unknown, errors[0] if errors else None)
    return whole.result()


def _submit_or_fail(queue: WriteQueue, submission: Submission) -> None:
    """Submit items. A refusal is the error of the submission, because the items of other queues may be charged."""
    try:
        queue.submit(submission)
    except LedgerError as error:
        submission.error = error
        submission.wake_thread()


def _serve(reference: weakref.ref[WriteQueue], wake: threading.Lock) -> None:
    """Run a queue's items until it is closed or dropped."""
    queue = reference()
    if queue is None or not queue.is_writer():
        return
    del queue
    while True:
        wake.acquire()
        queue = reference()
        if queue is None or not queue.serve():
            return
        del queue


def prefetch_of(items: Sequence[Item], windows: Sequence[str] | None) -> Prefetch | None:
    """Return the first look-ups of the items, for the store to prefetch."""
    needs = [(item.partition, *item.needs) for item in items if item.needs is not None]
    batches: dict[int, list[bytes]] = {}
    for item in items:
        if item.batch_users is not None:
            batches.setdefault(item.partition, item.batch_users)
    return Prefetch(needs, windows, len(items) > 1, batches) if items else None


def result_of(outcome: Any) -> Any:
    """Return the outcome of an item, or raise it if it is the error of that item."""
    if isinstance(outcome, LdpBudgetError):
        raise outcome
    return outcome


def _deliver(done: Sequence[Submission]) -> None:
    """Wake the callers; each event loop is woken once."""
    loops: dict[asyncio.AbstractEventLoop, list[Submission]] = {}
    for each in done:
        if each.loop is not None:
            loops.setdefault(each.loop, []).append(each)
        elif not each.is_inline:
            each.wake_thread()
    for loop, those in loops.items():
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(_wake_tasks, those)


def _wake_tasks(those: Sequence[Submission]) -> None:
    for each in those:
        each.wake_task()


# -- other work -------------------------------------------------------------------------------------------


class Work:
    """An item that is a function of one partition's transaction, run for an API key."""

    __slots__ = ("api_key", "function", "partition")

    needs = batch_users = None

    def __init__(self, function: Callable[[Transaction], Any], partition: int, api_key: int) -> None:
        self.function = function
        self.partition = partition
        self.api_key = api_key


def run_each(transactions: Mapping[int, Transaction], works: Sequence[Work]) -> list[Any]:
    """Run functions one after the other. An error before anything was written is the outcome of that function only."""
    outcomes: list[Any] = []
    for work in works:
        transaction = transactions[work.partition]
        before, outer = transaction.writes, transaction.by
        transaction.by = work.api_key
        try:
            outcomes.append(work.function(transaction))
        except LdpBudgetError as error:
            if transaction.writes != before:
                raise
            outcomes.append(error)
        finally:
            transaction.by = outer
    return outcomes
