"""Copy of a whole ledger to another store, with as many partitions as the target has.

The secret stays, so users, keys and labels keep their hashes. Partitions, numbers and chain hashes are new. At no
moment can a user be charged in both ledgers (see `migration_cutover`):

1. The target is closed to all other use before anything is written to it.
2. The source is closed, in one transaction of all its partitions.
3. Only then the content is copied, so that nothing changes meanwhile.
4. The target is opened last, after both ledgers were verified and found to have the same content.

A process that is killed in between leaves two ledgers that accept no charges. Running the same copy again resumes it.
As the source cannot change, every entry gets the same number again, and rows that were already copied are skipped.

Entries are copied in the order of time, merged over all partitions. Settings that all partitions have are copied from
the first partition that has them. Sums are computed again from the copied entries, and compared with those of the
source.
"""

from __future__ import annotations

import heapq
import json
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import LedgerError
from . import hash_chain, lifecycle
from .calendar import LIFETIME, gauge_of, gauges_in, window_start_micros
from .hash_chain import Name
from .ledger import partition_of
from .models import (
    BEGUN,
    CLOCK,
    COLLECTION,
    COPIED,
    ERASED,
    MOVED,
    NUMBERED,
    PERIOD,
    POLICY_SET,
    RECORDED,
    REKEYED,
    REOPENED,
    RESERVED,
    AdminLogEntry,
    BatchRunRecord,
    Entry,
    EntryLabel,
    IdempotencyRecord,
    KeyEpoch,
    MovedEntry,
    PartitionHead,
    PricedMechanism,
    StoredPolicy,
)
from .snapshot import idempotency_records_in_parts, parts
from .window_backfill import write_accounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .ledger import Ledger
    from .transaction import Transaction

    Step = Callable[[Transaction], Any]
    """A step in a transaction of one partition."""
    Carry = Callable[[IdempotencyRecord, Name], str]
    """Returns the response to store in the copy, given the record and the name of its entry."""
    Progress = Callable[[int, int], None]

_ENTRIES_TOGETHER = 5_000
_ENTRIES_HELD = 20_000
"""The number of entries to read ahead, over all partitions of the source."""
_ACCOUNTS_TOGETHER = 2_000
_RECORDS_TOGETHER = 500


class Scratch(Protocol):
    """Temporary storage for data that may be too large for memory. It is deleted with the process."""

    def add_accounts(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows of partition, account, user hash or None, and target partition."""

    def account(self, partition: int, account: int) -> tuple[int, int | None, bytes | None] | None:
        """Return an account's target partition, its number there (None if it has none yet), and its user."""

    def number_account(self, partition: int, account: int, number: int) -> None:
        """Set an account's number in its target partition."""

    def users(self, to_partition: int) -> Iterator[tuple[int, bytes | None]]:
        """Yield the numbers and users in a target partition, in order."""

    def add_entry(self, partition: int, entry: int, to_partition: int, number: int) -> None:
        """Store the target partition and number of an entry."""

    def entry(self, partition: int, entry: int) -> tuple[int, int] | None:
        """Return the target partition and number of an entry."""

    def add_sums(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows of partition, account, window and four amounts."""

    def sums(self, to_partition: int) -> Iterator[tuple[Any, ...]]:
        """Yield number, window and amounts in a target partition, in order."""


class _Item(NamedTuple):
    """An entry of the source, with its position in the order of time."""

    at: int
    partition: int
    row: tuple[Any, ...]
    label: EntryLabel | None
    note: str | None
    policy: StoredPolicy | None
    record: AdminLogEntry | None


@dataclass
class _Partition:
    """The progress of the plan for a target partition; `written` is the head that it had before this run."""

    written: PartitionHead
    there: int
    """The number of entries that the partition has now."""
    entries: int = 0
    accounts: int = 0
    repaired: int | None = None
    """The time of its last clock repair."""
    latest: int = 0
    """The latest date of an entry since that repair."""
    reserved: bool = False
    """True if there was a reservation since that repair."""
    kept: dict[str, int] = field(default_factory=dict)
    erasures: list[int] = field(default_factory=lambda: [0, 0])
    """The number of erasures that it still has to take: of users without an account, and of users with one."""


class Copy:
    """The copy of the closed ledger `source` to `target`, which is being filled."""

    def __init__(self, source: Ledger, target: Ledger, scratch: Scratch, carry: Carry, on_progress: Progress) -> None:
        self._source = source
        self._target = target
        self._scratch = scratch
        self._carry = carry
        self._on_progress = on_progress
        ends = [_end(target, partition) for partition in target.partitions]
        self._partitions = [_Partition(end, end.entries) for end in ends]
        self._steps: dict[int, list[Step]] = {}
        self._policies: set[int] = set()
        self._periods: set[int] = set()
        self._epochs: set[tuple[Any, ...]] = set()
        # By source and target partition: the latest date of a copied entry, and whether a reservation is open.
        self._latest: dict[tuple[int, int], int] = {}
        self._reserved: set[tuple[int, int]] = set()
        with source.reading() as reading:
            self._generation = reading.generation
        # Entries that were written in a partition itself, and did not come with a copy, have their names from there.
        self._own = [self._generation == 0 for _ in source.partitions]
        self._charges: list[dict[int, PricedMechanism]] = []
        for partition in source.partitions:
            with source.reading(partition) as reading:
                self._charges.append({charge.number: charge for charge in reading.rows.priced_mechanisms()})

    def run(self) -> None:
        """Copy everything; skip what is already there."""
        self._collections()
        self._tombstones()
        self._users()
        self._journal()
        self._accounts()
        self._records()

    # -- small tables -------------------------------------------------------------------------------------

    def _collections(self) -> None:
        with self._source.reading() as reading:
            stored = sorted(reading.rows.collections())

        def add(transaction: Transaction) -> None:
            for each in stored[transaction.end.collections :]:
                transaction.add_collection(each.name, each.fingerprint, each.definition)

        self._step(0, add)
        self._write_steps()

    def _tombstones(self) -> None:
        """Copy the tombstones, and distribute the erasures: a partition takes as many as it has tombstones.

        The ledger does not record which account belonged to which tombstone. So the accounts of erased users go to
        the first partitions that have room for them.
        """
        cut_off = 0
        for partition in self._source.partitions:
            with self._source.reading(partition) as reading:
                cut_off += reading.rows.counts()["cut_off"]
                for tombstone in reading.rows.tombstones():
                    to = self._partition_of(tombstone.user_hash)
                    self._partitions[to].erasures[0] += 1
                    self._step(to, partial(_bury, tombstone=tombstone))
                    self._write_some()
        self._write_steps()
        for each in self._partitions:
            taken = min(cut_off, each.erasures[0])
            each.erasures[0] -= taken
            each.erasures[1] += taken
            cut_off -= taken

    def _users(self) -> None:
        """Assign every account to a target partition."""
        room = [(partition, each.erasures[1]) for partition, each in enumerate(self._partitions)]
        spare = iter([partition for partition, count in room for _ in range(count)])
        for partition in self._source.partitions:
            for first, last in parts(self._accounts_of(partition), _ACCOUNTS_TOGETHER):
                with self._source.reading(partition) as reading:
                    users = list(reading.rows.users(first, last))
                self._scratch.add_accounts(
                    (
                        partition,
                        user.account,
                        user.user_hash,
                        self._partition_of(user.user_hash) if user.user_hash else next(spare),
                    )
                    for user in users
                )

    def _accounts_of(self, partition: int) -> int:
        with self._source.reading(partition) as reading:
            return reading.end.accounts

    def _partition_of(self, hashed: bytes) -> int:
        return partition_of(hashed, len(self._partitions))

    # -- the journal --------------------------------------------------------------------------------------

    def _journal(self) -> None:
        total = sum(_end(self._source, partition).entries for partition in self._source.partitions)
        items = heapq.merge(*(self._items(partition) for partition in self._source.partitions), key=itemgetter(0, 1))
        for done, item in enumerate(items, 1):
            self._take(item)
            if not done % _ENTRIES_TOGETHER:
                self._write_steps()
                self._on_progress(done, total)
        self._write_steps()

    def _items(self, partition: int) -> Iterator[_Item]:
        """Yield the entries of a partition, each with the latest time at which it can have been written.

        An entry that is dated later than a later clock repair was written before that repair. With these times the
        order never goes back, and the entries before a repair stay together.
        """
        with self._source.reading(partition) as reading:
            last, repairs = reading.end.entries, reading.repairs()
        by = [*repairs]
        for place in range(len(by) - 1, 0, -1):
            by[place - 1] = by[place - 1]._replace(at=min(by[place - 1].at, by[place].at))
        passed = 0
        for first, until in parts(last, max(20, _ENTRIES_HELD // len(self._source.partitions))):
            with self._source.reading(partition) as reading:
                notes = {each.entry: each.note for each in reading.rows.notes(first, until)}
                items = []
                for row, _ in reading.rows.entries(first, until):
                    label = reading.rows.label(row[0]) if row[11] is not None else None
                    policy = next(reading.rows.policies(row[5])) if row[2] == POLICY_SET else None
                    record = next(reading.rows.admin_log(row[6])) if row[2] == RECORDED else None
                    items.append(_Item(row[1], partition, row, label, notes.get(row[0]), policy, record))
            for item in items:
                while passed < len(by) and by[passed].entry < item.row[0]:
                    passed += 1
                yield item._replace(at=min(item.at, by[passed].at)) if passed < len(by) else item

    def _take(self, item: _Item) -> None:
        """Plan the target of an entry."""
        entry = Entry.of(item.row)
        if entry.kind == COPIED:
            self._own[item.partition] = True
        elif entry.kind == POLICY_SET:
            self._take_policy(item.partition, entry, item.policy)
        elif entry.kind == RECORDED:
            assert item.record is not None
            self._append(item.partition, 0, entry, before=partial(_put_record, record=item.record))
        elif entry.kind == COLLECTION:
            self._append(item.partition, 0, entry)
        elif entry.kind == PERIOD:
            if entry.reports not in self._periods:
                self._periods.add(entry.reports)
                for to in self._target.partitions:
                    self._append(item.partition, to, entry)
                    self._keep(to, [gauge_of(entry.reports)], entry.at)
        elif entry.kind == CLOCK:
            self._take_repair(item.partition, entry)
        elif entry.kind == ERASED:
            to = next(partition for partition, each in enumerate(self._partitions) if each.erasures[entry.reports])
            self._partitions[to].erasures[entry.reports] -= 1
            self._append(item.partition, to, entry)
        elif entry.kind not in (MOVED, REOPENED, REKEYED):
            self._take_charge(item, entry)

    def _take_policy(self, partition: int, entry: Entry, policy: StoredPolicy | None) -> None:
        """Add a policy version to every partition, copied from the first that has it.

        The numbers are the same in all.
        """
        assert policy is not None
        if policy.number in self._policies:
            return
        self._policies.add(policy.number)
        limited = gauges_in(json.loads(policy.definition))
        for to in self._target.partitions:
            self._append(partition, to, entry, before=lambda transaction: transaction.put_policy(policy))
            self._keep(to, limited, entry.at)

    def _take_repair(self, partition: int, entry: Entry) -> None:
        """Copy a clock repair to each partition that has later-dated entries or reservations copied before it.

        A partition is skipped if it already has the same repair, and no such entry since.
        """
        for to, there in enumerate(self._partitions):
            wanted = self._latest.get((partition, to), entry.at) > entry.at or (partition, to) in self._reserved
            again = there.repaired == entry.at and there.latest <= entry.at and not there.reserved
            if wanted and not again:
                self._append(partition, to, entry)
                self._keep(to, [*there.kept], entry.at, lower=True)
                there.repaired, there.latest, there.reserved = entry.at, entry.at, False
        self._reserved -= {(partition, to) for to in self._target.partitions}

    def _keep(self, to: int, periods: Iterable[str], at: int, lower: bool = False) -> None:
        """Keep windows of periods since the window that contains a moment, as every partition does by itself."""
        kept = self._partitions[to].kept
        for period in periods:
            if period == LIFETIME or (period in kept and not lower):
                continue
            since = window_start_micros(period, at)
            if since < kept.get(period, since + 1):
                kept[period] = since
                self._step_of_entry(to, partial(_keep_period, period=period, since=since))

    def _take_charge(self, item: _Item, entry: Entry) -> None:
        scratch, partition = self._scratch, item.partition
        found = scratch.account(partition, entry.account)
        if found is None:
            raise LedgerError(
                self._source.name, f"entry {entry.number} is of account {entry.account}, which is missing"
            )
        to, number, hashed = found
        if number is None:
            self._partitions[to].accounts += 1
            number = self._partitions[to].accounts
            scratch.number_account(partition, entry.account, number)
            if number > self._partitions[to].written.accounts:
                self._step(to, lambda transaction: transaction.open_account(hashed))
        charge = self._charges[partition][entry.priced_mechanism]
        resolves = None if entry.resolves is None else scratch.entry(partition, entry.resolves)
        entry = entry._replace(account=number, resolves=None if resolves is None else resolves[1])
        put = partial(_put_charge, entry=entry, charge=charge, label=item.label, note=item.note)
        new = self._append(partition, to, entry, put)
        place = self._partitions[to].entries
        if entry.kind == RESERVED:
            self._partitions[to].reserved = True
            self._reserved.add((partition, to))
            if new and self._own[partition]:
                self._name(Name(self._generation, partition, entry.number), to, place)
        if entry.kind == RESERVED or entry.has_record:
            scratch.add_entry(partition, entry.number, to, place)

    def _name(self, name: Name, to: int, place: int) -> None:
        """Store the current position of the entry with this name."""
        row = MovedEntry(0, *name, to, place)
        self._step(self._partition_of(hash_chain.place_of(self._target.key, name)), partial(_add_numbered, row=row))

    def _append(self, of: int, to: int, entry: Entry, put: Step | None = None, before: Step | None = None) -> bool:
        """Plan the next entry of partition `to`, copied from partition `of`; True if it is not there yet."""
        partition = self._partitions[to]
        partition.entries, partition.latest = partition.entries + 1, max(partition.latest, entry.at)
        self._latest[of, to] = max(self._latest.get((of, to), 0), entry.at)
        if before is not None:
            self._step_of_entry(to, before)
        self._step_of_entry(to, put or (lambda transaction: transaction.put(entry)))
        return partition.entries > partition.written.entries

    def _step_of_entry(self, to: int, step: Step) -> None:
        """Plan a step of the last planned entry.

        An entry that is already there has been written with all its steps.
        """
        if self._partitions[to].entries > self._partitions[to].written.entries:
            self._step(to, step)

    # -- writing ------------------------------------------------------------------------------------------

    def _step(self, to: int, step: Step) -> None:
        self._steps.setdefault(to, []).append(step)

    def _write_some(self) -> None:
        """Write the planned steps if there are many."""
        if sum(map(len, self._steps.values())) >= _ENTRIES_TOGETHER:
            self._write_steps()

    def _write_steps(self) -> None:
        """Run the planned steps in one transaction of all their partitions, so that all or none are written."""
        steps, self._steps = self._steps, {}
        partitions = sorted(steps)

        def write(transactions: list[Transaction]) -> None:
            for partition, transaction in zip(partitions, transactions, strict=True):
                end = transaction.end
                if end.state != lifecycle.IMPORTING or end.entries != self._partitions[partition].there:
                    why = "somebody else copies to it at the same time; do the same again when they are through"
                    raise LedgerError(self._target.name, why)
                for step in steps[partition]:
                    step(transaction)

        if partitions:
            self._target.run_in_partitions(write, partitions, allow_closed=True)
            for partition in partitions:
                self._partitions[partition].there = max(
                    self._partitions[partition].there, self._partitions[partition].entries
                )

    # -- accounts and idempotency records -----------------------------------------------------------------

    def _accounts(self) -> None:
        """Compute the sums of every account."""
        for to, partition in enumerate(self._partitions):
            for first, last in parts(partition.accounts, _ACCOUNTS_TOGETHER):
                with self._target.reading(to) as reading:
                    if next(iter(reading.rows.sums(last, last)), None) is not None:
                        continue  # the whole part was written together
                self._step(to, partial(write_accounts, accounts=range(first, last + 1)))
                self._write_steps()

    def _records(self) -> None:
        """Copy the idempotency records and other numbered rows, each to the partition in which it is looked up."""
        waiting: list[tuple[int, IdempotencyRecord]] = []
        for partition in self._source.partitions:
            for _, records in idempotency_records_in_parts(partial(self._source.reading, partition)):
                for stored in records:
                    waiting.append(self._carried(partition, stored))
                    if len(waiting) >= _RECORDS_TOGETHER:
                        self._write_records(waiting)
                        waiting = []
            self._write_records(waiting)
            waiting = []
            self._numbered(partition)

    def _carried(self, partition: int, stored: IdempotencyRecord) -> tuple[int, IdempotencyRecord]:
        """Return a record as the copy has it, and its target partition."""
        to = self._partition_of(stored.user_hash)
        if stored.entry is None:
            return to, stored
        found = self._scratch.entry(partition, stored.entry)
        if found is None:
            raise LedgerError(self._source.name, f"a record is of entry {stored.entry}, which is not there")
        response = self._carry(stored, Name(self._generation, partition, stored.entry))
        return to, stored._replace(entry=found[1], response=response)

    def _numbered(self, partition: int) -> None:
        """Copy the numbered rows, except those that concern only the source."""
        with self._source.reading(partition) as reading:
            last = reading.end.numbered_rows
        for first, until in parts(last, _RECORDS_TOGETHER):
            with self._source.reading(partition) as reading:
                runs = list(reading.rows.all_numbered(BatchRunRecord, first, until))
                epochs = list(reading.rows.all_numbered(KeyEpoch, first, until))
                moved = list(reading.rows.all_numbered(MovedEntry, first, until))
            for run in runs:
                begun = run.partitions or (len(self._source.partitions) if run.kind in BEGUN else 0)
                to = self._partition_of(run.key_hash)
                self._step(to, partial(_add_numbered, row=run._replace(partitions=begun)))
            for epoch in epochs:
                # Receipts of that epoch may be asked for in any partition. A ledger that was moved before has the
                # epoch in each.
                if epoch[1:4] not in self._epochs:
                    self._epochs.add(epoch[1:4])
                    for to in self._target.partitions:
                        self._step(to, partial(_add_numbered, row=epoch))
            for each in moved:
                found = self._scratch.entry(each.to_partition, each.to_entry)
                if found is not None:
                    name = Name(each.generation, each.of_partition, each.entry)
                    row = each._replace(to_partition=found[0], to_entry=found[1])
                    to = self._partition_of(hash_chain.place_of(self._target.key, name))
                    self._step(to, partial(_add_numbered, row=row))
            self._write_steps()

    def _write_records(self, records: list[tuple[int, IdempotencyRecord]]) -> None:
        by_partition: dict[int, list[IdempotencyRecord]] = {}
        for to, stored in records:
            by_partition.setdefault(to, []).append(stored)
        for to, of_partition in by_partition.items():
            self._step(to, partial(_store_records, records=of_partition))
        self._write_steps()


def _put_charge(
    transaction: Transaction, entry: Entry, charge: PricedMechanism, label: EntryLabel | None, note: str | None
) -> None:
    number = transaction.store_priced_mechanism(*charge[1:5], charge.costs, charge.collection)
    _, labelled, salt = label or (None, None, None)
    transaction.put(entry._replace(priced_mechanism=number), labelled, salt, note)


def _put_record(transaction: Transaction, record: AdminLogEntry) -> None:
    transaction.put_record(record)


def _keep_period(transaction: Transaction, period: str, since: int) -> None:
    transaction.keep_period(period, since)


def _bury(transaction: Transaction, tombstone: Any) -> None:
    if not transaction.is_erased(tombstone.user_hash):
        transaction.import_tombstone(tombstone)


def _store_records(transaction: Transaction, records: list[IdempotencyRecord]) -> None:
    """Store the records that are not there yet."""
    users, keys = [each.user_hash for each in records], [each.key_hash for each in records]
    found = transaction.rows.idempotency_records([*dict.fromkeys(users)], keys)
    there = {(each.user_hash, each.key_hash) for each in found}
    for each in records:
        if (each.user_hash, each.key_hash) not in there:
            transaction.store_idempotency_record(
                each.user_hash, each.key_hash, each.entry, each.request_digest, each.response
            )


def _add_numbered(transaction: Transaction, row: BatchRunRecord | KeyEpoch | MovedEntry) -> None:
    """Store a row unless it is there."""
    if transaction.rows.numbered(type(row), *row[1 : 1 + NUMBERED[type(row)].key]) is None:
        transaction.add_numbered(row)


def _end(ledger: Ledger, partition: int) -> PartitionHead:
    with ledger.reading(partition) as reading:
        return reading.end
