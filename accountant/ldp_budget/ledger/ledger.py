"""A ledger: a store, its clock, and the only way to read from it and write to it.

The module also assigns users to partitions (`partition_of`) and checks whether a ledger is ready for writes
(`check_up`).
"""

from __future__ import annotations

import copy
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import LdpBudgetError, LedgerError, LedgerKeyMissing
from . import lifecycle
from .calendar import BOUND_SECONDS, Clock
from .group_commit import GroupCommit, hint
from .hash_chain import counters_mac
from .snapshot import Reading
from .transaction import Cache, Transaction

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .calendar import Moment, Read
    from .group_commit import Needs, Piece, _Work
    from .keyfile import Key, Secret
    from .models import PartitionHead
    from .storage import Partitions, Prefetch, Snapshot, Store


def partition_of(user: bytes, partitions: int) -> int:
    """Return the partition of a user, given by a keyed hash."""
    return int.from_bytes(user[:4]) % partitions


T = TypeVar("T")


# The number of group-commit queues, each with a connection of its own. With one leader, a server idles while the
# leader decides. With many leaders, transactions have little work to share.
GROUPS = 2


class Ledger:
    """The reads and writes of an accountant on its store, independent of the engine."""

    def __init__(
        self, store: Store, read_clock: Read, clock_bound: float = BOUND_SECONDS, *, half: bool = False
    ) -> None:
        self._store = store
        # True if it may be read while it is only partly copied, which is for the copying code itself.
        self._half = half
        self._clock = Clock(read_clock, store.name, clock_bound, sandbox=store.key.sandbox)
        self._caches = [Cache() for _ in range(store.partitions)]
        # The head of each partition as this process last reported it. A partition can only have grown since.
        self._told: list[PartitionHead | None] = [None] * store.partitions
        # The secret of each partition, once the MAC of the partition head was found to be made with it.
        self._secrets: list[Secret | None] = [None] * store.partitions
        self._groups = [GroupCommit(store.name, self._transact) for _ in range(min(GROUPS, store.partitions))]
        self.name, self.key = store.name, store.key
        self.partitions = range(store.partitions)
        """The numbers of its partitions."""
        # The API key number that entries written through this object record; and the state that all views of the
        # ledger share.
        self._by = 0
        self._seen = _Seen()
        self.after_commit: Callable[[], None] = lambda: None
        """Called after each transaction, by the thread that ran it."""

    def acting_for(self, by: int) -> Ledger:
        """Return a view of the same ledger whose entries record the number of an API key."""
        view = copy.copy(self)
        view._by = by
        return view

    @property
    def identity(self) -> str:
        """An identifier that is the same under each of the ledger's names."""
        return self._store.identity

    @property
    def repeated(self) -> dict[str, int]:
        """The number of times this process retried work, by the engine's error code."""
        return dict(sorted(self._store.repeated.items()))

    def partition_of(self, user: bytes) -> int:
        """Return the partition that holds the rows of a user."""
        return partition_of(user, len(self.partitions))

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

    def run(self, work: Callable[[Transaction], T], partition: int = 0, needs: Needs | None = None) -> T:
        """Run `work` in a transaction of a partition and return its result once that is durable.

        The transaction may be shared with other work. `needs` are the hashes of the user and of the key that the work
        will look up.
        """
        return self._groups[partition % len(self._groups)].run(_by(self._by, work), partition, needs)

    def work_item(self, work: Callable[[Transaction], T], partition: int = 0, needs: Needs | None = None) -> Piece[T]:
        """Return a work item for `run_all`, on behalf of this ledger's API key."""
        return _by(self._by, work), partition, needs

    def run_all(self, pieces: Sequence[Piece[T]]) -> list[T | Exception]:
        """Run many work items, each as by `run`, in shared transactions.

        An item's exception takes the place of its result.
        """
        results: dict[int, T | Exception] = {}
        for number, group in enumerate(self._groups):
            places = [
                place for place, (_, partition, _) in enumerate(pieces) if partition % len(self._groups) == number
            ]
            results.update(zip(places, group.run_all([pieces[place] for place in places]), strict=True))
        return [results[place] for place in range(len(pieces))]

    def run_in_partitions(
        self, work: Callable[[list[Transaction]], T], partitions: Sequence[int], *, allow_closed: bool = False
    ) -> T:
        """Run `work` in one transaction of several partitions, which are written at one moment.

        Maintenance and copies pass `allow_closed`: they also run when the ledger refuses charges. In a ledger of one
        partition, the transaction may be shared with waiting work.
        """
        if len(self.partitions) == 1 and not allow_closed:
            return self.run(lambda transaction: work([transaction]))
        results: list[T] = []

        def together(transactions: Mapping[int, Transaction]) -> None:
            those = list(transactions.values())
            for transaction in those:
                transaction.by = self._by
                transaction.together = tuple(each for each in those if each is not transaction)
            results[:] = [work(those)]

        self._transact(together, list(partitions), [], allow_closed)
        return results[0]

    def _transact(
        self,
        work: Callable[[Mapping[int, Transaction]], None],
        partitions: list[int],
        works: list[_Work[Any]],
        allow_closed: bool = False,
    ) -> None:
        asked = self._veiled(hint(works, self._windows_ahead(partitions[0]))) if len(self.partitions) > 1 else None
        ends = self._store.run(lambda rows: self._in_transaction(rows, work, allow_closed), partitions, asked)
        for partition, cache in ends.items():
            self._caches[partition], self._told[partition] = cache, cache.end
        self.after_commit()

    def _veiled(self, hint: Prefetch | None) -> Prefetch | None:
        """Return the look-ups with encrypted hashes. If a partition has another secret by then, they are repeated."""
        if hint is None or not any(self._secrets):
            return hint
        needs: list[tuple[int, bytes, bytes | None]] = []
        for partition, user, key in hint.needs:
            secret = self._secrets[partition] or self.key
            needs.append((partition, secret.encrypt_hash(user), None if key is None else secret.encrypt_hash(key)))
        return hint._replace(needs=needs)

    def _windows_ahead(self, partition: int) -> list[int] | None:
        """Return the windows that the next look-up of accounts will probably need."""
        windows = self._caches[partition].windows
        return [window.code for window in windows.values()] or None

    def _in_transaction(
        self, rows: Partitions, work: Callable[[Mapping[int, Transaction]], None], allow_closed: bool
    ) -> dict[int, Cache]:
        """Run work in a transaction and return the partitions' caches.

        An interrupted transaction leaves no cache behind.
        """
        transactions: dict[int, Transaction] = {}
        for partition, of_partition in rows.items():
            self._check_secret(partition, of_partition)
            cache, self._caches[partition] = self._caches[partition], Cache()
            transactions[partition] = transaction = Transaction(
                of_partition, self.key, self._clock, cache, partition, len(self.partitions)
            )
            self._check_told(transaction, self._told[partition], "; nothing was charged")
            if not allow_closed and transaction.end.state != lifecycle.OPEN:
                raise LedgerError(self.name, lifecycle.why_shut(transaction))
        work(transactions)
        for transaction in transactions.values():
            transaction.finish()
        return {partition: transaction.cache for partition, transaction in transactions.items()}

    @contextmanager
    def reading(self, partition: int = 0) -> Iterator[Reading]:
        """Read a snapshot of a partition. No writer waits for it."""
        told = self._told[partition]
        with self._store.snapshot(partition) as rows:
            self._check_secret(partition, rows)
            reading = Reading(rows, self.key, self._clock, partition, len(self.partitions))
            self._check_told(reading, told)
            self._check_whole(reading)
            yield reading

    def _check_secret(self, partition: int, rows: Snapshot) -> None:
        """Determine the secret in use in a partition.

        Raises `LedgerKeyMissing`, or `LedgerError` after a rollback.
        """
        end, row_mac = rows.end()
        number = end.secret
        if number == self.key.used == 1:
            return
        known = self._secrets[partition]
        if known is not None and known is self.key.at(number) and number >= self.key.used:
            return
        for looked_again in (False, True):
            secret = self.key.at(number)
            # Another secret with the same number would find no users, so every user would get a fresh budget.
            if secret is not None and counters_mac(secret, end) == row_mac:
                break
            if looked_again:
                raise LedgerKeyMissing(self.name, number)
            self._store.look_at_key()
        if number < self.key.used:
            # A rotation may be in progress. Or it is complete, and someone has restored an older state.
            self._store.look_at_key()
        self.key.found_in_force(number)
        if number < self.key.active and not self._half:
            why = f"partition {partition} has gone back: it is under secret {number} of the key, and {self.key.active} is active"
            raise LedgerError(self.name, why)
        self._secrets[partition] = secret

    def _check_whole(self, reading: Reading) -> None:
        if not self._half and reading.end.state >= lifecycle.IMPORTING:
            raise LedgerError(self.name, lifecycle.why_half(reading))

    def _check_told(self, reading: Reading, told: PartitionHead | None, then: str = "") -> None:
        """Refuse a ledger that lacks entries this process has reported: an older copy, or one without its WAL."""
        if told is None or reading.end == told:
            return
        if not _goes_on(reading, told):
            what = "it" if len(self.partitions) == 1 else f"partition {reading.partition}"
            why = f"{what} has gone back: this process was told of {told.entries} entries that are not there any more"
            raise LedgerError(self._store.name, why + then)

    def check_key(self) -> None:
        """Raise `LedgerError` unless the key file is where it was at opening, with the same key."""
        self._store.check_key()

    def check_writable(self) -> None:
        """Raise `LedgerError` if no write could begin now."""
        self._store.check_writable()

    def look_at_key(self) -> None:
        """Read the key file again."""
        self._store.look_at_key()

    def change_key(self, change: Callable[[Key], bytes]) -> None:
        """Replace the content of the key file with what `change` makes of the current key."""
        self._store.change_key(change)

    def clear_log(self) -> None:
        """Allow deleted data to be overwritten. Raises `LedgerError` if an active reader prevents that."""
        if not self._store.clear_log():
            why = (
                "what was deleted is gone from the ledger and still stands in its log, for somebody reads it; "
                "do the same again when they are through"
            )
            raise LedgerError(self._store.name, why)

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
        """Close the store."""
        self._store.close()


class _Seen:
    """The state of a ledger that all of its views in one process share."""

    record = 0


def _by(number: int, work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
    """Return the same work, done for the holder of an API key. Other work in the transaction may have other keys."""
    if not number:
        return work

    def acting(transaction: Transaction) -> T:
        transaction.by = number
        try:
            return work(transaction)
        finally:
            transaction.by = 0

    return acting


def _goes_on(reading: Reading, told: PartitionHead) -> bool:
    """True if a journal continues from an earlier partition head."""
    end = reading.end
    if end.entries < told.entries or any(now < then for now, then in zip(end.order, told.order, strict=True)):
        return False
    links = [chain_hash for _, chain_hash in reading.rows.entries(told.entries, told.entries)]
    return links == [told.chain_hash] or not told.entries


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
            if reading.end.state != lifecycle.OPEN:
                raise LedgerError(ledger.name, lifecycle.why_shut(reading))
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
