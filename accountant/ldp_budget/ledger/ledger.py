"""A ledger: a store, its clock, and the one way to read and to write it.

Which partition of a ledger is a user's.

A check-up: could a ledger be written to just now? Looked at without writing.
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
    from .store import Partitions, Prefetch, Snapshot, Store


def partition_of(user: bytes, partitions: int) -> int:
    """The partition of a user, known by a keyed hash, out of so many."""
    return int.from_bytes(user[:4]) % partitions


T = TypeVar("T")


# How many groups of works there are at a time, each with a connection of its own. One leader leaves a server idle
# while it decides, and with many there is little to share.
GROUPS = 2


class Ledger:
    """What an accountant works on, whatever it is kept in."""

    def __init__(
        self, store: Store, read_clock: Read, clock_bound: float = BOUND_SECONDS, *, half: bool = False
    ) -> None:
        self._store = store
        # Whether it may be read while it is copied in part only, which is for whoever copies it.
        self._half = half
        self._clock = Clock(read_clock, store.name, clock_bound, sandbox=store.key.sandbox)
        self._caches = [Cache() for _ in range(store.partitions)]
        # Where each partition ended when it was last told to anybody here; it can only have grown.
        self._told: list[PartitionHead | None] = [None] * store.partitions
        # The secret of each partition, where the MAC of its end was found to be made by it.
        self._secrets: list[Secret | None] = [None] * store.partitions
        self._groups = [GroupCommit(store.name, self._transact) for _ in range(min(GROUPS, store.partitions))]
        self.name, self.key = store.name, store.key
        self.partitions = range(store.partitions)
        """The numbers of its partitions."""
        # Whose number every entry bears that is written through this; and what all who look at the ledger share.
        self._by = 0
        self._seen = _Seen()
        self.after_commit: Callable[[], None] = lambda: None
        """What is done after each transaction, by whoever had it done."""

    def acting_for(self, by: int) -> Ledger:
        """The same ledger, through which every entry that is written bears a number of a key."""
        view = copy.copy(self)
        view._by = by
        return view

    @property
    def identity(self) -> str:
        """What is the same under each of its names."""
        return self._store.identity

    @property
    def repeated(self) -> dict[str, int]:
        """How often this process did a piece of work again, by the engine's code for why."""
        return dict(sorted(self._store.repeated.items()))

    def partition_of(self, user: bytes) -> int:
        """The partition in which the rows of a user lie."""
        return partition_of(user, len(self.partitions))

    def entries(self) -> Sequence[int]:
        """The number of the newest entry of each partition, by one question."""
        return self._store.entries()

    @property
    def newest_record(self) -> int:
        """The number of the newest record that was read or written here."""
        return self._seen.record

    def see_record(self, number: int) -> None:
        """Remember that there is a record of this number."""
        self._seen.record = max(self._seen.record, number)

    def now(self) -> Moment:
        """What time it is, to read by; not before the newest entry that was told to anybody here."""
        newest = max((told.at or 0 for told in self._told if told is not None), default=None)
        return self._clock.moment_to_read(newest)

    def run(self, work: Callable[[Transaction], T], partition: int = 0, needs: Needs | None = None) -> T:
        """Do `work` in a transaction of a partition and return its result once that is durable; it may share it.

        `needs` are the user and the key that it will look up, as hashes.
        """
        return self._groups[partition % len(self._groups)].run(_by(self._by, work), partition, needs)

    def work_item(self, work: Callable[[Transaction], T], partition: int = 0, needs: Needs | None = None) -> Piece[T]:
        """A work for `run_all`, of whoever this ledger acts for."""
        return _by(self._by, work), partition, needs

    def run_all(self, pieces: Sequence[Piece[T]]) -> list[T | Exception]:
        """Do many works, each as `run` does, in transactions that they share; what one raises stands in its place."""
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
        """Do `work` in one transaction of several partitions, which are written at one moment.

        House-keeping and copies do theirs `though_shut`, where nobody may be charged. Of one partition it shares the
        transaction of those who wait for that.
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
        """What will be asked first, as it will be; where a partition has another secret by now it is asked again."""
        if hint is None or not any(self._secrets):
            return hint
        needs: list[tuple[int, bytes, bytes | None]] = []
        for partition, user, key in hint.needs:
            secret = self._secrets[partition] or self.key
            needs.append((partition, secret.encrypt_hash(user), None if key is None else secret.encrypt_hash(key)))
        return hint._replace(needs=needs)

    def _windows_ahead(self, partition: int) -> list[int] | None:
        """The windows that accounts will probably be asked for."""
        windows = self._caches[partition].windows
        return [window.code for window in windows.values()] or None

    def _in_transaction(
        self, rows: Partitions, work: Callable[[Mapping[int, Transaction]], None], allow_closed: bool
    ) -> dict[int, Cache]:
        """What the transaction knows of its partitions when it ends; an interrupted one leaves no cache behind."""
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
        """One moment of a partition. No writer waits for it."""
        told = self._told[partition]
        with self._store.snapshot(partition) as rows:
            self._check_secret(partition, rows)
            reading = Reading(rows, self.key, self._clock, partition, len(self.partitions))
            self._check_told(reading, told)
            self._check_whole(reading)
            yield reading

    def _check_secret(self, partition: int, rows: Snapshot) -> None:
        """Know the secret that is in force in a partition. Raises `LedgerKeyMissing`, `LedgerError` if it went back."""
        end, row_mac = rows.end()
        number = end.secret
        if number == self.key.used == 1:
            return
        known = self._secrets[partition]
        if known is not None and known is self.key.at(number) and number >= self.key.used:
            return
        for looked_again in (False, True):
            secret = self.key.at(number)
            # Another one of the same number would find nobody, and everybody would have a fresh budget.
            if secret is not None and counters_mac(secret, end) == row_mac:
                break
            if looked_again:
                raise LedgerKeyMissing(self.name, number)
            self._store.look_at_key()
        if number < self.key.used:
            # It may be exchanged just now; or that is done, and somebody has put back what was before.
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
        """Refuse a ledger without what this process was told: an older copy, or one that has lost its log."""
        if told is None or reading.end == told:
            return
        if not _goes_on(reading, told):
            what = "it" if len(self.partitions) == 1 else f"partition {reading.partition}"
            why = f"{what} has gone back: this process was told of {told.entries} entries that are not there any more"
            raise LedgerError(self._store.name, why + then)

    def check_key(self) -> None:
        """Raise `LedgerError` unless the key lies where it lay when this was opened, and is the same."""
        self._store.check_key()

    def check_writable(self) -> None:
        """Raise `LedgerError` where no write could begin just now."""
        self._store.check_writable()

    def look_at_key(self) -> None:
        """Learn what lies in the key's place now."""
        self._store.look_at_key()

    def change_key(self, change: Callable[[Key], bytes]) -> None:
        """Put in the key's place what is made of the one that lies there."""
        self._store.change_key(change)

    def clear_log(self) -> None:
        """Let what was deleted be overwritten. Raises `LedgerError` where somebody who reads it keeps that off."""
        if not self._store.clear_log():
            why = (
                "what was deleted is gone from the ledger and still stands in its log, for somebody reads it; "
                "do the same again when they are through"
            )
            raise LedgerError(self._store.name, why)

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger, as it is at one moment, and its key to a place where there is nothing yet.

        One that a copy has not filled yet is refused: its backup would be another place for the same copy, and both
        could be opened.
        """

        def check(rows: Snapshot) -> None:
            self._check_secret(0, rows)
            self._check_whole(Reading(rows, self.key, self._clock, 0, len(self.partitions)))

        self._store.backup(path, check)

    def close(self) -> None:
        """Close the store."""
        self._store.close()


class _Seen:
    """What one process knows of a ledger, whoever looks at it."""

    record = 0


def _by(number: int, work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
    """The same work, done for the holder of a key; others may do theirs in the same transaction."""
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
    """Whether a journal goes on from an earlier end."""
    end = reading.end
    if end.entries < told.entries or any(now < then for now, then in zip(end.order, told.order, strict=True)):
        return False
    links = [chain_hash for _, chain_hash in reading.rows.entries(told.entries, told.entries)]
    return links == [told.chain_hash] or not told.entries


def check_up(ledger: Ledger) -> dict[str, str | None]:
    """What is wrong with its tables, its key and its clock: None where nothing is."""
    found: dict[str, str | None] = {"schema": None, "key": None}
    try:
        ledger.check_key()
    except LdpBudgetError as error:
        found["key"] = str(error)
    try:
        ledger.entries()  # which a store answers soon, or says that its engine does not answer
        with ledger.reading() as reading:
            reading.newest_policies()
            if reading.end.state != lifecycle.OPEN:
                raise LedgerError(ledger.name, lifecycle.why_shut(reading))
            if found["key"] is None:  # which is what writers lock
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
