"""Copy of a whole ledger to an empty one, with as many partitions as the target has.

The secret stays, so users, keys and labels keep their hashes. Partitions, numbers and chain hashes are new. The source
is closed before the copy begins (see `migration_cutover`), so the copy reads one state that does not change. A copy
that is interrupted is not continued: the next one begins with another empty target.

Entries are copied in the order of time, merged over all partitions. Settings that all partitions have are copied from
the first partition that has them. Sums are computed again from the copied entries.

The copy needs 8 bytes of memory for each account and each entry: the new position of each.
"""

from __future__ import annotations

import heapq
import json
from array import array
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from . import hash_chain
from .calendar import LIFETIME, gauges_in, window_start_micros
from .hash_chain import Name
from .models import (
    BOUND,
    CLOCK,
    COLLECTION,
    COPIED,
    ERASED,
    MOVED,
    PERIOD,
    POLICY_SET,
    RECORDED,
    REKEYED,
    REOPENED,
    RESERVED,
    SPENT,
    AdminLogEntry,
    BatchRunRecord,
    Entry,
    EntryLabel,
    IdempotencyRecord,
    KeyEpoch,
    MovedEntry,
    PartitionHead,
    PricedMechanism,
    RoundPart,
    StoredPolicy,
    StoredReport,
)
from .snapshot import idempotency_records_in_parts, parts
from .transaction import Transaction
from .verification import accepted_in
from .window_backfill import write_accounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .ledger import Ledger

    Step = Callable[[Transaction], Any]
    """A step in a transaction of one partition."""
    Carry = Callable[[IdempotencyRecord, Name], str]
    """Returns the response to store in the target, given the record and the name of its entry."""
    Progress = Callable[[int, int], None]

_STEPS_TOGETHER = 5_000
_ENTRIES_HELD = 20_000
"""The number of entries to read ahead, over all partitions of the source."""
_ACCOUNTS_TOGETHER = 2_000
_USERS_A_STEP = 10
"""The number of users that count as one step. Their index is in random order: each transaction writes most of it."""
_RECORDS_TOGETHER = 500


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
    """The plan so far for a partition of the target."""

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


class _Positions:
    """The new positions of the numbered rows of one partition of the source."""

    def __init__(self, last: int, partitions: int) -> None:
        self._partitions = partitions
        self._positions = array("q", bytes(8 * (last + 1)))

    def __setitem__(self, number: int, position: tuple[int, int]) -> None:
        to, place = position
        self._positions[number] = place * self._partitions + to

    def __getitem__(self, number: int) -> tuple[int, int]:
        """Return the partition and the number in the target."""
        place, to = divmod(self._positions[number], self._partitions)
        return to, place


class Copy:
    """The copy of the closed ledger `source` to the empty ledger `target`."""

    def __init__(self, source: Ledger, target: Ledger, carry: Carry, on_progress: Progress) -> None:
        self._source = source
        self._target = target
        self._carry = carry
        self._on_progress = on_progress
        self._partitions = [_Partition() for _ in target.partitions]
        self._steps: dict[int, list[Step]] = {}
        self._planned = 0
        """The number of planned steps; one that writes many rows counts as many."""
        self._policies: set[int] = set()
        self._periods: set[str] = set()
        self._epochs: set[tuple[Any, ...]] = set()
        # By source and target partition: the latest date of a copied entry, and whether a reservation is open.
        self._latest: dict[tuple[int, int], int] = {}
        self._reserved: set[tuple[int, int]] = set()
        self._ends: list[PartitionHead] = []
        self._charges: list[dict[int, PricedMechanism]] = []
        for partition in source.partitions:
            with source.reading(partition) as reading:
                self._ends.append(reading.end)
                self._charges.append({charge.number: charge for charge in reading.rows.priced_mechanisms()})
        self._generation = self._ends[0].generation
        # The entries with acknowledged problems: the administrative log names them by their positions here.
        self._accepted = accepted_in(source)
        # Entries that were written in a partition itself, and did not come with a move, have their names from there.
        self._own = [self._generation == 0 for _ in source.partitions]
        self._accounts = [_Positions(end.accounts, len(target.partitions)) for end in self._ends]
        self._entries = [_Positions(end.entries, len(target.partitions)) for end in self._ends]

    def run(self) -> None:
        """Copy everything."""
        self._copy_collections()
        self._copy_tombstones()
        self._copy_users()
        self._copy_journal()
        self._compute_sums()
        for partition in self._source.partitions:
            self._copy_records(partition)
            self._copy_numbered(partition)
        self._write_steps()

    def _partition_of(self, hashed: bytes) -> int:
        return self._target.partition_of(hashed)

    # -- small tables and users ---------------------------------------------------------------------------

    def _copy_collections(self) -> None:
        with self._source.reading() as reading:
            for each in sorted(reading.rows.collections()):
                _, name, fingerprint, definition, _ = each
                self._step(
                    0, partial(Transaction.add_collection, name=name, fingerprint=fingerprint, definition=definition)
                )

    def _copy_tombstones(self) -> None:
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
                    self._step(to, partial(Transaction.import_tombstone, tombstone=tombstone))
                    self._write_some()
        for each in self._partitions:
            taken = min(cut_off, each.erasures[0])
            each.erasures[0] -= taken
            each.erasures[1] += taken
            cut_off -= taken

    def _copy_users(self) -> None:
        """Open every account in its partition of the target."""
        room = [(partition, each.erasures[1]) for partition, each in enumerate(self._partitions)]
        spare = iter([partition for partition, count in room for _ in range(count)])
        for partition, end in enumerate(self._ends):
            for first, last in parts(end.accounts, _ACCOUNTS_TOGETHER):
                with self._source.reading(partition) as reading:
                    users = list(reading.rows.users(first, last))
                opened: dict[int, list[bytes | None]] = {}
                for user in users:
                    to = self._partition_of(user.user_hash) if user.user_hash else next(spare)
                    self._partitions[to].accounts += 1
                    self._accounts[partition][user.account] = to, self._partitions[to].accounts
                    opened.setdefault(to, []).append(user.user_hash)
                for to, hashes in opened.items():
                    self._step(to, partial(Transaction.copy_accounts, users=hashes), -(-len(hashes) // _USERS_A_STEP))
                self._write_some()

    # -- the journal --------------------------------------------------------------------------------------

    def _copy_journal(self) -> None:
        total = sum(end.entries for end in self._ends)
        items = heapq.merge(*(self._items(partition) for partition in self._source.partitions), key=itemgetter(0, 1))
        for done, item in enumerate(items, 1):
            self._take(item)
            self._write_some()
            if not done % _STEPS_TOGETHER:
                self._on_progress(done, total)

    def _items(self, partition: int) -> Iterator[_Item]:
        """Yield the entries of a partition, each with the latest time at which it can have been written.

        An entry that is dated later than a later clock repair was written before that repair. With these times the
        order never goes back, and the entries before a repair stay together.
        """
        with self._source.reading(partition) as reading:
            by = [*reading.repairs()]
        for place in range(len(by) - 1, 0, -1):
            by[place - 1] = by[place - 1]._replace(at=min(by[place - 1].at, by[place].at))
        passed = 0
        for first, until in parts(self._ends[partition].entries, max(20, _ENTRIES_HELD // len(self._ends))):
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
        if item.row[2] == SPENT and item.label is None and item.note is None and item.row[13] is None:
            self._take_plain(item)
            return
        entry = Entry.of(item.row)
        if entry.kind == COPIED:
            self._own[item.partition] = True
        elif entry.kind == POLICY_SET:
            self._take_policy(item.partition, entry, item.policy)
        elif entry.kind == RECORDED:
            assert item.record is not None
            self._step(0, partial(Transaction.put_record, record=item.record))
            self._append(item.partition, 0, entry)
            place = self._partitions[0].entries
            self._entries[item.partition][entry.number] = 0, place
            if entry.number in self._accepted.get(item.partition, ()):
                self._name(MovedEntry(0, self._generation, item.partition, entry.number, 0, place))
        elif entry.kind == COLLECTION:
            self._append(item.partition, 0, entry)
        elif entry.kind == PERIOD:
            assert entry.period is not None
            if entry.period not in self._periods:
                self._periods.add(entry.period)
                for to in self._target.partitions:
                    self._append(item.partition, to, entry)
                    self._keep(to, [entry.period], entry.at)
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
            self._step(to, partial(Transaction.put_policy, policy=policy))
            self._append(partition, to, entry)
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
                self._step(to, partial(Transaction.keep_period, period=period, since=since))

    def _take_plain(self, item: _Item) -> None:
        """Plan an entry of a charge that has neither label nor note, as nearly all are, together with those like it."""
        of, row = item.partition, item.row
        to, account = self._accounts[of][row[3]]
        planned = self._steps.get(to)
        last = planned[-1] if planned else None
        if not isinstance(last, _Charges) or last.charge.number != row[4] or last.partition != of:
            last = _Charges(of, self._charges[of][row[4]])
            self._step(to, last, 0)
        last.rows.append((*row[:3], account, *row[4:]))
        self._planned += 1
        self._entries[of][row[0]] = to, self._count(of, to, row[1])
        if row[0] in self._accepted.get(of, ()):
            self._name(MovedEntry(0, self._generation, of, row[0], *self._entries[of][row[0]]))

    def _take_charge(self, item: _Item, entry: Entry) -> None:
        of = item.partition
        to, account = self._accounts[of][entry.account]
        charge = self._charges[of][entry.priced_mechanism]
        resolves = None if entry.resolves is None else self._entries[of][entry.resolves][1]
        copied = entry._replace(account=account, resolves=resolves)
        self._append(of, to, copied, partial(_put_charge, entry=copied, charge=charge, item=item))
        place = self._partitions[to].entries
        self._entries[of][entry.number] = to, place
        is_named = entry.number in self._accepted.get(of, ())
        if entry.kind == RESERVED:
            self._partitions[to].reserved = True
            self._reserved.add((of, to))
            is_named = is_named or self._own[of]
        if is_named:
            self._name(MovedEntry(0, self._generation, of, entry.number, to, place))

    def _name(self, row: MovedEntry) -> None:
        """Store the new position of an entry under the hash of its name."""
        name = Name(row.generation, row.of_partition, row.entry)
        to = self._partition_of(hash_chain.place_of(self._target.key, name))
        self._step(to, partial(Transaction.add_numbered, row=row))

    def _append(self, of: int, to: int, entry: Entry, put: Step | None = None) -> None:
        """Plan the next entry of partition `to`, copied from partition `of`."""
        self._count(of, to, entry.at)
        self._step(to, put or partial(Transaction.put, entry=entry))

    def _count(self, of: int, to: int, at: int) -> int:
        """Count the next entry of partition `to`, copied from partition `of`; return its number."""
        partition = self._partitions[to]
        partition.entries += 1
        if at > partition.latest:
            partition.latest = at
        self._latest[of, to] = max(self._latest.get((of, to), 0), at)
        return partition.entries

    # -- writing ------------------------------------------------------------------------------------------

    def _step(self, to: int, step: Step, rows: int = 1) -> None:
        """Plan a step in a partition that counts as this many."""
        self._steps.setdefault(to, []).append(step)
        self._planned += rows

    def _write_some(self) -> None:
        """Write the planned steps if there are many. What belongs to one entry is written together."""
        if self._planned >= _STEPS_TOGETHER:
            self._write_steps()

    def _write_steps(self) -> None:
        """Run the planned steps in one transaction of all their partitions."""
        steps, self._steps, self._planned = self._steps, {}, 0

        def write(transactions: list[Transaction]) -> None:
            for transaction in transactions:
                for step in steps[transaction.partition]:
                    step(transaction)

        if steps:
            self._target.run_in_partitions(write, sorted(steps), allow_closed=True)

    # -- sums, idempotency records and numbered rows ------------------------------------------------------

    def _compute_sums(self) -> None:
        """Compute the sums of every account from the copied entries."""
        self._write_steps()
        for to, partition in enumerate(self._partitions):
            for first, last in parts(partition.accounts, _ACCOUNTS_TOGETHER):
                self._step(to, partial(write_accounts, accounts=range(first, last + 1)))
                self._write_steps()

    def _copy_records(self, partition: int) -> None:
        """Copy the idempotency records."""
        for _, records in idempotency_records_in_parts(partial(self._source.reading, partition)):
            for stored in records:
                record = stored
                if stored.entry is not None:
                    response = self._carry(stored, Name(self._generation, partition, stored.entry))
                    record = stored._replace(entry=self._entries[partition][stored.entry][1], response=response)
                self._step(self._partition_of(stored.user_hash), partial(_store_record, record=record))
                self._write_some()

    def _copy_numbered(self, partition: int) -> None:
        """Copy the numbered rows, except those that concern only the source."""
        for first, until in parts(self._ends[partition].numbered_rows, _RECORDS_TOGETHER):
            with self._source.reading(partition) as reading:
                runs = list(reading.rows.all_numbered(BatchRunRecord, first, until))
                epochs = list(reading.rows.all_numbered(KeyEpoch, first, until))
                moved = list(reading.rows.all_numbered(MovedEntry, first, until))
                reports = list(reading.rows.all_numbered(StoredReport, first, until))
                rounds = list(reading.rows.all_numbered(RoundPart, first, until))
            for run in runs:
                begun = run.partitions or (len(self._ends) if run.kind == BOUND else 0)
                row = run._replace(partitions=begun)
                self._step(self._partition_of(run.key_hash), partial(Transaction.add_numbered, row=row))
            for epoch in epochs:
                # Receipts of that epoch may be asked for in any partition. A ledger that was moved before has the
                # epoch in each.
                if epoch[1:4] not in self._epochs:
                    self._epochs.add(epoch[1:4])
                    for to in self._target.partitions:
                        self._step(to, partial(Transaction.add_numbered, row=epoch))
            for each in moved:
                to, place = self._entries[each.to_partition][each.to_entry]
                self._name(each._replace(to_partition=to, to_entry=place))
            for report in reports:
                to, place = self._entries[partition][report.entry]
                self._step(to, partial(Transaction.add_numbered, row=report._replace(entry=place)))
            for part in rounds:
                self._step(0, partial(Transaction.add_numbered, row=part))
            self._write_some()


# -- steps ------------------------------------------------------------------------------------------------


class _Charges:
    """The step of some charges with one priced mechanism of a partition of the source, without labels and notes."""

    def __init__(self, partition: int, charge: PricedMechanism) -> None:
        self.partition, self.charge = partition, charge
        self.rows: list[tuple[Any, ...]] = []

    def __call__(self, transaction: Transaction) -> None:
        transaction.put_charges(self.rows, _number(transaction, self.charge))


def _number(transaction: Transaction, charge: PricedMechanism) -> int:
    return transaction.store_priced_mechanism(*charge[1:5], charge.costs, charge.collection)


def _put_charge(transaction: Transaction, entry: Entry, charge: PricedMechanism, item: _Item) -> None:
    number = _number(transaction, charge)
    _, label, salt = item.label or (None, None, None)
    transaction.put(entry._replace(priced_mechanism=number), label, salt, item.note)


def _store_record(transaction: Transaction, record: IdempotencyRecord) -> None:
    user, key, entry, _, request, response, _ = record
    transaction.store_idempotency_record(user, key, entry, request, response)
