"""A ledger: a store, its clock, and the only way to read from it and write to it.

The module also checks whether a ledger is ready for writes (`check_up`).
"""

from __future__ import annotations

import copy
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import LdpBudgetError, LedgerError, LedgerKeyMissing
from .calendar import BOUND_SECONDS, DAY_MICROS, Clock, windows_on
from .hash_chain import counters_mac
from .models import IMPORTING, OPEN, PartitionHead
from .snapshot import Reading
from .storage import UNREADABLE, unreadable
from .transaction import Cache, Transaction
from .write_queue import NOTHING_CHARGED, Work, WriteQueue, prefetch_of, result_of, run_bulk, run_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .calendar import Moment, Read
    from .keyed_hashing import Key
    from .storage import Attempt, Partitions, Snapshot, Store
    from .write_queue import Engine, Item


T = TypeVar("T")


class Ledger:
    """The reads and writes of an accountant on its store, independent of the engine."""

    def __init__(
        self,
        store: Store,
        read_clock: Read,
        clock_bound: float = BOUND_SECONDS,
        *,
        half: bool = False,
        filled_under: int | None = None,
    ) -> None:
        self._store = store
        # True if it may be read while it is only partly copied, which is for the copying code itself. That fills an
        # empty ledger under the secret with this number.
        self._half = half
        try:
            self.key = _key_in_use(store, half, filled_under)
        except BaseException:
            store.close()
            raise
        self._clock = Clock(read_clock, store.name, clock_bound, sandbox=store.key.sandbox)
        self._caches = [Cache() for _ in range(store.partitions)]
        # The head of each partition as this process last reported it. A partition can only have grown since.
        self._told: list[PartitionHead | None] = [None] * store.partitions
        self._queue = WriteQueue(store.name, self)
        several = range(store.writers if store.writers > 1 else 0)
        self._bulk_queues = [WriteQueue(store.name, self, self._queue) for _ in several]
        self._process = os.getpid()
        self.name = store.name
        self.partitions = range(store.partitions)
        """The numbers of its partitions."""
        # The API key number that entries written through this object record; and the state that all views of the
        # ledger share.
        self._by = 0
        self._parent: Ledger | None = None  # of a view, which keeps it alive
        self._seen = _Seen()
        self.after_commit: Callable[[], None] | None = None
        """Called after each transaction, by the thread that ran it."""

    def acting_for(self, by: int) -> Ledger:
        """Return a view of the same ledger whose entries record the number of an API key."""
        view = copy.copy(self)
        view._by, view._parent = by, self._parent or self
        return view

    @property
    def by(self) -> int:
        """The number of the API key that writes through this object; 0 without one."""
        return self._by

    @property
    def identity(self) -> str:
        """An identifier that is the same under each of the ledger's names."""
        return self._store.identity

    @property
    def place(self) -> str:
        """An identifier of the place of the rows, as far as the engine has one: a copy of the rows has another."""
        place: str = getattr(self._store, "place", self._store.identity)
        return place

    @property
    def key_file(self) -> str:
        """The path of the key file on this machine; empty for a ledger in memory, and for a store without one."""
        path: str = getattr(self._store, "key_file", "")
        return path

    @property
    def repeated(self) -> dict[str, int]:
        """The number of times this process retried work, by the engine's error code."""
        return dict(sorted(self._store.repeated.items()))

    def partition_of(self, user: bytes) -> int:
        """Return the partition that holds the rows of a user."""
        return self.key.partition_of(user, len(self.partitions))

    def entries(self) -> Sequence[int]:
        """Return the number of the newest entry of each partition, in one query."""
        return self._store.entries()

    @property
    def newest_record(self) -> int:
        """The number of the newest administrative record that was read or written here."""
        return self._seen.record

    def see_record(self, number: int) -> None:
        """Remember that there is a record with this number."""
        self._seen.record = max(self._seen.record, number)

    def now(self) -> Moment:
        """Return the time for reads; not before the newest entry that this process has reported."""
        newest = max((told.at or 0 for told in self._told if told is not None), default=None)
        return self._clock.moment_to_read(newest)

    def charge(self, engine: Engine, requests: Sequence[Item], *, bulk: bool = False) -> list[Any]:
        """Run charge requests by `engine` in shared transactions; return their outcomes once they are durable.

        The outcome of a request that failed and wrote nothing is an `LdpBudgetError`. A `bulk` submission waits for
        single ones.
        """
        if os.getpid() != self._process:
            self._check_process()
        if bulk and self._bulk_queues:
            return run_bulk(self._bulk_queues, engine, requests)
        return self._queue.run(engine, requests, bulk=bulk)

    async def charge_async(self, engine: Engine, requests: Sequence[Item]) -> list[Any]:
        """Do the same for a task of an event loop."""
        self._check_process()
        return await self._queue.run_async(engine, requests)

    def give_way(self) -> None:
        """Let charges that wait or are being written end first, for a bounded time."""
        self._queue.give_way()

    def is_wanted(self) -> bool:
        """True if another process is known to wait until this one has written. Only some engines know."""
        known = getattr(self._store, "is_wanted", None)
        return known is not None and bool(known())

    def run(self, function: Callable[[Transaction], T], partition: int = 0) -> T:
        """Run a function in a transaction of a partition and return its result once that is durable.

        The transaction may be shared with other work.
        """
        self._check_process()
        result: T = result_of(self._queue.run(run_each, [Work(function, partition, self._by)])[0])
        return result

    def _check_process(self) -> None:
        """Raise `LedgerError` in a forked child: neither the writer thread nor the connections exist there."""
        if os.getpid() != self._process:
            raise LedgerError(
                self.name, "it was opened before this process was forked", hint="Open it in the child process."
            )

    def run_in_partitions(
        self, work: Callable[[list[Transaction]], T], partitions: Sequence[int], *, allow_closed: bool = False
    ) -> T:
        """Run `work` in one transaction of several partitions, which are written at one moment.

        `work` gets their transactions in the order of `partitions`: the first one holds what is stored only once.

        Maintenance and copies pass `allow_closed`: they also run when the ledger refuses charges. In a ledger of one
        partition, the transaction may be shared with waiting work.
        """
        if len(self.partitions) == 1 and not allow_closed:
            return self.run(lambda transaction: work([transaction]))
        self._check_process()
        for attempt in self.attempts(list(partitions)):
            with attempt as rows:
                transactions = self.begin(rows, allow_closed)
                those = [transactions[each] for each in partitions]  # a store may lock them in another order
                for transaction in those:
                    transaction.by = self._by
                    transaction.together = tuple(each for each in those if each is not transaction)
                try:
                    result = work(those)
                    for transaction in those:
                        transaction.finish()
                except LdpBudgetError:
                    raise
                except UNREADABLE as error:
                    raise unreadable(self.name, error, NOTHING_CHARGED) from error
        self.committed(transactions)
        return result

    def attempts(self, partitions: list[int], items: Sequence[Item] = ()) -> Iterator[Attempt]:
        """Yield attempts of one transaction; `items` are what it begins with, for the store to prefetch."""
        asked = prefetch_of(items, self._windows_ahead(partitions[0])) if len(self.partitions) > 1 else None
        return self._store.attempts(partitions, asked)

    def _windows_ahead(self, partition: int) -> list[str] | None:
        """Return the windows that the next look-up of accounts will probably need."""
        cache = self._caches[partition]
        return sorted(window.name for window in windows_on(cache.windows, cache.open_from // DAY_MICROS)) or None

    def begin(self, rows: Partitions, allow_closed: bool = False) -> dict[int, Transaction]:
        """Return the transactions of an attempt. An interrupted transaction leaves no cache of its partition behind."""
        transactions: dict[int, Transaction] = {}
        caches, key, clock, count = self._caches, self.key, self._clock, len(self.partitions)
        for partition, of_partition in rows.items():
            cache, caches[partition] = caches[partition], _NO_CACHE
            transaction = Transaction(of_partition, key, clock, cache, partition, count)
            end, told = transaction.end, self._told[partition]
            if end.secret != key.in_use.number:
                self._check_secret(partition, of_partition)
            if told is not None and end != told:
                self._check_told(transaction, told, f"{NOTHING_CHARGED}.")
            if end.state != OPEN and not allow_closed:
                raise transaction.refusal()
            transactions[partition] = transaction
        return transactions

    def committed(self, transactions: Mapping[int, Transaction]) -> None:
        """Keep what transactions have read and written for the next ones."""
        for partition, transaction in transactions.items():
            self._caches[partition], self._told[partition] = transaction.cache, transaction.cache.end
        if self.after_commit is not None:
            self.after_commit()

    @contextmanager
    def reading(self, partition: int = 0) -> Iterator[Reading]:
        """Read a snapshot of a partition. No writer waits for it."""
        self._check_process()
        told = self._told[partition]
        with self._store.snapshot(partition) as rows:
            self._check_secret(partition, rows)
            reading = Reading(rows, self.key, self._clock, partition, len(self.partitions))
            self._check_told(reading, told)
            self._check_whole(reading)
            try:
                yield reading
            except LdpBudgetError:
                raise
            except UNREADABLE as error:
                raise unreadable(self.name, error) from error

    def _check_secret(self, partition: int, rows: Snapshot) -> None:
        """Raise `LedgerKeyMissing` if the key was rotated since the ledger was opened here.

        Raises `LedgerError` if the partition was rolled back to before a rotation.
        """
        end, mine = rows.end()[0], self.key.in_use.number
        if end.secret == mine or (self._half and is_fresh(end)):
            return
        if end.secret > mine:
            raise LedgerKeyMissing(self.name, end.secret)
        raise _gone_back(self.name, f"partition {partition}", end.secret, mine)

    def _check_whole(self, reading: Reading) -> None:
        if not self._half and reading.end.state == IMPORTING:
            raise reading.refusal()

    def _check_told(self, reading: Reading, told: PartitionHead | None, then: str = "") -> None:
        """Refuse a ledger that lacks entries this process has reported: an older copy, or one without its WAL."""
        if told is None or reading.end == told:
            return
        if not _goes_on(reading, told):
            what = "it" if len(self.partitions) == 1 else f"partition {reading.partition}"
            why = f"{what} was rolled back: this process has seen {told.entries} entries that are missing now"
            raise LedgerError(self._store.name, why + then)

    def check_key(self) -> None:
        """Raise `LedgerError` unless the key file is where it was at opening, with the same key."""
        self._store.check_key()

    def check_writable(self) -> None:
        """Raise `LedgerError` if no write could begin now."""
        self._store.check_writable()

    def change_key(self, change: Callable[[Key], bytes]) -> Key:
        """Replace the content of the key file with what `change` makes of its key; return the new key."""
        self._store.change_key(change)
        return self._store.key

    def clear_log(self) -> None:
        """Allow deleted data to be overwritten. Raises `LedgerError` if an active reader prevents that."""
        if not self._store.clear_log():
            why = "the deleted data is gone from the ledger, but not from its log, because another process reads it"
            raise LedgerError(self._store.name, why, hint="Repeat the request when the reader has finished.")

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy a snapshot of the ledger, and its key, to a path that does not exist yet.

        A ledger that is still being filled by a copy is refused. Its backup would be a second target of the same
        copy, and both could be opened.
        """

        def check(rows: Snapshot) -> None:
            self._check_secret(0, rows)
            self._check_whole(Reading(rows, self.key, self._clock, 0, len(self.partitions)))

        self._store.backup(path, check)

    def close(self) -> None:
        """Write what is waiting, and close the store."""
        if os.getpid() == self._process:
            for queue in (*self._bulk_queues, self._queue):
                queue.close()
        self._store.close()


_NO_CACHE = Cache()
"""In place of the cache of a partition whose transaction has not ended. It holds for no partition head."""


class _Seen:
    """The state of a ledger that all of its views in one process share."""

    record = 0


def _goes_on(reading: Reading, told: PartitionHead) -> bool:
    """True if a journal continues from an earlier partition head."""
    end = reading.end
    if end.entries < told.entries or any(now < then for now, then in zip(end.order, told.order, strict=True)):
        return False
    links = [chain_hash for _, chain_hash in reading.rows.entries(told.entries, told.entries)]
    return links == [told.chain_hash] or not told.entries


def is_fresh(end: PartitionHead) -> bool:
    """True if nothing was ever written to a partition with this head, except that a checkpoint was seen."""
    return end._replace(checkpoints=0) == PartitionHead()


def _key_in_use(store: Store, half: bool, filled_under: int | None) -> Key:
    """Return the ledger's key with the secret that its first partition names. All partitions name the same one."""
    if store.key.newest == 1:
        return store.key  # the first transaction checks this
    with store.snapshot() as rows:
        end, row_mac = rows.end()
    if filled_under is not None and is_fresh(end):
        return store.key.with_in_use(filled_under)
    # Another secret with the same number would find no users, so every user would get a fresh budget.
    secret = store.key.at(end.secret)
    if secret is None or counters_mac(secret, end) != row_mac:
        raise LedgerKeyMissing(store.name, end.secret)
    if end.secret < store.key.active and not half:
        raise _gone_back(store.name, "it", end.secret, store.key.active)
    return store.key.with_in_use(end.secret)


def _gone_back(ledger: str, what: str, found: int, known: int) -> LedgerError:
    return LedgerError(
        ledger, f"{what} was rolled back: it uses secret {found} of the key, and secret {known} was in use"
    )


# -- readiness check --------------------------------------------------------------------------------------


def check_up(ledger: Ledger) -> dict[str, str | None]:
    """Return the problems of the ledger's tables, key and clock, each None if there is none; nothing is written."""
    found: dict[str, str | None] = {"schema": None, "key": None}
    try:
        ledger.check_key()
    except LdpBudgetError as error:
        found["key"] = str(error)
    try:
        ledger.entries()  # a store answers soon, or says that its engine does not answer
        with ledger.reading() as reading:
            reading.newest_policies()
            if reading.end.state != OPEN:
                raise reading.refusal()
            if found["key"] is None:  # writers lock the key file
                ledger.check_writable()
            found["clock"] = None
            try:
                reading.go_by_the_clock()
            except LdpBudgetError as error:
                found["clock"] = str(error)
    except LedgerKeyMissing as error:
        found["key"] = str(error)
    except LdpBudgetError as error:
        found["schema"] = str(error)
    return found
