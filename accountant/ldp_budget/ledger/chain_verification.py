"""Verification of one partition's journal: recompute its hash chain, its MACs and the rows that its entries name."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from ..guarantees import from_json
from ..guarantees.fixed_point import Costs
from .account_sums import HIGHEST, LOWEST, Past
from .calendar import LIFETIME, gauges_in, window_start_micros
from .hash_chain import Run, canonical_transaction, counters_mac, runs_in
from .models import (
    CLOCK,
    COMMITTED,
    COPIED,
    EMPTY_CHAIN,
    ERASED,
    EXPIRED,
    IMPORTING,
    MOVED,
    MOVED_AWAY,
    MOVING,
    NUMBERED,
    PERIOD,
    POLICY_SET,
    RECORDED,
    REKEYED,
    REOPENED,
    RESERVED,
    SPENT,
    VOIDED,
    Entry,
    EntryProblem,
    Numbered,
    PartitionHead,
    StoredReport,
    ranges,
)
from .snapshot import covered, idempotency_records_in_parts, parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from .account_sums import Open, Progress
    from .keyed_hashing import Secret
    from .snapshot import Reading

    Keys = Callable[[], dict[int, str | None]]

_GRANTED = (SPENT, RESERVED)
_JOURNAL = "journal: entries "
_OF_ACCOUNTS = (*_GRANTED, COMMITTED, VOIDED, EXPIRED)
_RECORD, _NOTE, _TWICE = 1, 2, 4
"""The flags of an entry: it has a record, it has a note, and it has another record than the one stored for it."""
_ENTRIES_TOGETHER = 20_000


class Expected(NamedTuple):
    """The recorded head of a partition, which may have grown since, but may not have been rolled back."""

    head: str
    """The head as it was recorded."""
    chain_hash: bytes
    numbered_rows: int
    collections: int


class Whole:
    """The small tables, read in one snapshot; the growing tables are checked up to the head of this snapshot."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.end: PartitionHead = reading.end
        # Look-ups by fingerprint or name also find rows with a number that was never assigned.
        self.charges = list(reading.rows.priced_mechanisms(LOWEST))
        self.policies = list(reading.rows.policies(LOWEST))
        self.records = list(reading.rows.admin_log(LOWEST))
        self._counts = reading.rows.counts()
        self._tombstones = list(reading.rows.tombstones())
        self.numbered = min(self.end.entries, sum(self._counts["entries_by_kind"].values()))
        """The number of entries to check at most: a number that was changed may be a large one."""
        self.opened = min(self.end.accounts, self._counts["users"] + self._counts["cut_off"])
        """The number of accounts to check at most, likewise."""
        self.rekeyed = self._counts["entries_by_kind"].get(REKEYED, 0)
        """The number of times that the key was rotated."""
        self.erased_users = {tombstone.user_hash for tombstone in self._tombstones}
        self._collections = list(reading.rows.collections())
        self.periods = reading.periods()

    def secret(self, number: int) -> Secret | None:
        """Return a secret of the key, which may have been rotated since."""
        return self._reading.key.at(number)

    def check(self) -> Iterator[str]:
        """Yield the problems that the engine finds, and those of MACs and costs."""
        yield from self._reading.rows.damage()
        yield from self.macs()
        yield from self._costs()

    def macs(self) -> Iterator[str]:
        """Yield the problems of the MACs of the small tables, and of their counts."""
        secret, end = self._reading.secret, self.end
        if counters_mac(secret, end) != self._reading.counters_mac:
            yield "partitions: its counters were changed"
        for tombstone in self._tombstones:
            if secret.row_mac(*tombstone[:-1]) != tombstone.row_mac:
                yield f"tombstones: the row {tombstone.user_hash.hex()} was changed"
            elif (
                self._reading.key.partition_of(tombstone.user_hash, self._reading.partitions)
                != self._reading.partition
            ):
                yield f"tombstones: the row {tombstone.user_hash.hex()} is of another partition"
        for charge in self.charges:
            if secret.row_mac(*charge.covered) != charge.row_mac:
                yield f"priced_mechanisms: priced mechanism {charge.number} was changed"
        for policy in self.policies:
            if secret.row_mac(*policy.covered) != policy.row_mac:
                yield f"policies: policy {policy.number} was changed"
        for collection in self._collections:
            if secret.row_mac(*collection[:-1]) != collection.row_mac:
                yield f"collections: {collection.name} was changed"
        if sorted(each.number for each in self._collections) != [*range(1, end.collections + 1)]:
            yield f"collections: there are {len(self._collections)}, and {end.collections} were added"
        kinds = self._counts["entries_by_kind"]
        if sum(kinds.values()) > end.entries:
            yield f"journal: there are {sum(kinds.values())} entries, and {end.entries} were written"
        if len(self._tombstones) != kinds.get(ERASED, 0):
            yield f"tombstones: there are {len(self._tombstones)}, and {kinds.get(ERASED, 0)} users were erased"

    def _costs(self) -> Iterator[str]:
        """Check that no stored cost is below the certain cost of its guarantee."""
        for charge in self.charges:
            # It may be above: an older release may have known no better bound, and what was charged stays charged.
            guarantee = from_json(json.loads(charge.guarantee))
            bounds = zip(Costs._fields, charge.costs, guarantee.costs(), guarantee.least_costs(), strict=True)
            for name, amount, cost, least in bounds:
                if amount is not None and (least is None or amount < least):
                    priced = f"priced_mechanisms: priced mechanism {charge.number}"
                    yield f"{priced} has {name} {amount}, below the {cost} its guarantee costs"

    def check_periods(self, turns: list[Entry]) -> Iterator[str]:
        """Check since when windows of each period are kept; `turns` began, limited or repaired them, in order."""
        limited = {policy.number: gauges_in(json.loads(policy.definition)) for policy in self.policies}
        first: dict[str, int] = {}
        for turn in turns:
            periods: Iterable[str] = limited.get(turn.policy, ())
            if turn.kind == CLOCK:
                periods = first.keys()
            elif turn.kind == PERIOD and turn.period is not None:
                periods = [turn.period]
            for period in periods:
                if turn.kind == CLOCK or period not in first:
                    starts = window_start_micros(period, turn.at)
                    first[period] = min(first.get(period, starts), starts)
        first[LIFETIME] = 0
        for period, since in first.items():
            if self.periods.get(period) != since:
                yield f"periods: {period} is kept since {self.periods.get(period)}, and was limited since {since}"
        for period in self.periods.keys() - first.keys():
            yield f"periods: {period} is kept, and no policy limits it"

    def cut_off(self, chain: Chain) -> Iterator[str]:
        """Check that as many accounts are detached from their users as the journal says."""
        if self._counts["cut_off"] != chain.cut_off:
            yield f"users: there are {self._counts['cut_off']} of erased users, and {chain.cut_off} were erased"

    def check_records(self, open_reading: Open, chain: Chain) -> Iterator[str]:
        """Check every idempotency record: its MAC, entry, and that its user is not erased; and all numbered rows."""
        yield from self.cut_off(chain)
        counted = bytearray(self.end.numbered_rows + 1)
        for reading, records in idempotency_records_in_parts(open_reading):
            row_mac = reading.secret.row_mac
            for record in records:
                row = f"idempotency_records: the row {record.key_hash.hex()}"
                if row_mac(*record[:-1]) != record.row_mac:
                    yield f"{row} was changed"
                if record.user_hash in self.erased_users:
                    yield f"{row} is of an erased user"
                elif reading.key.partition_of(record.user_hash, reading.partitions) != reading.partition:
                    yield f"{row} is of another partition"
                if record.number is not None:
                    yield from self._count(counted, reading, record.number, row)
                elif record.entry is not None and 0 < record.entry <= self.end.entries:
                    chain.answered(record.entry)
                elif record.entry is None or not 0 < record.entry <= reading.end.entries:
                    yield f"{row} is of an entry that is not there"
        yield from self._check_numbered(open_reading, counted, chain)
        for number in range(1, len(counted)):
            if counted[number] != 1:
                with open_reading() as reading:  # an erasure may have changed it while the parts were read
                    rows = reading.rows
                    count = len(list(rows.refusals(number, number)))
                    count += sum(len(list(rows.all_numbered(kind, number, number))) for kind in NUMBERED)
                if count != 1:
                    yield f"partitions: {count} rows have the number {number} that one was given"

    def _check_numbered(self, open_reading: Open, counted: bytearray, chain: Chain) -> Iterator[str]:
        """Check the MACs and the numbers of the rows of all `NUMBERED` classes, and the entries of reports."""
        last = self.end.numbered_rows
        for size, of_size in groupby(sorted(NUMBERED, key=_together), key=_together):
            kinds = list(of_size)
            for first, until in ((LOWEST, 0), *parts(last, size), (last + 1, HIGHEST)):
                with open_reading() as reading:
                    for kind in kinds:
                        for each in reading.rows.all_numbered(kind, first, until):
                            yield from self._check_row(reading, counted, chain, each)

    def _check_row(self, reading: Reading, counted: bytearray, chain: Chain, each: Numbered) -> Iterator[str]:
        row = f"{NUMBERED[type(each)].name}: the row {each.number}"
        if reading.secret.row_mac(*covered(each, reading.partition)) != each.row_mac:
            yield f"{row} was changed"
        yield from self._count(counted, reading, each.number, row)
        if isinstance(each, StoredReport) and not chain.charges_collection(each.entry):
            yield f"{row} is of entry {each.entry}, which charges no report of a collection"

    @staticmethod
    def _count(counted: bytearray, reading: Reading, number: int, row: str) -> Iterator[str]:
        if 0 < number < len(counted):
            counted[number] = min(2, counted[number] + 1)
        elif not 0 < number <= reading.end.numbered_rows:
            yield f"{row} has a number that was not given"


def _together(kind: type[Numbered]) -> int:
    return NUMBERED[kind].together


class Chain:
    """The keyed hash chain over the journal."""

    def __init__(self, open_reading: Open, whole: Whole, expected: Sequence[Expected], on_progress: Progress) -> None:
        self._open = open_reading
        self._whole = whole
        self._expected = expected
        self._wanted = {each.chain_hash for each in expected}
        self._seen = {EMPTY_CHAIN}
        self._on_progress = on_progress
        self._charges = _Ahead(charge.covered for charge in whole.charges)
        self._policies = _Ahead(policy.covered for policy in whole.policies)
        self._records = _Ahead(whole.records)
        # For each entry: the flags that it claims, and the flags that were found.
        self._kept = bytearray(whole.numbered + 1)
        self._found = bytearray(whole.numbered + 1)
        # The numbers of API keys and sub-limits in entries, with the number of the policy if they charge.
        self._callers: set[tuple[int, int, int]] = set()
        # The secret in use at the current position of the walk.
        self._secret = whole.end.secret - whole.rekeyed
        # For each entry: 1 if it charges a report of a collection.
        self._charged = bytearray(whole.numbered + 1)
        self._of_collections = {charge.number for charge in whole.charges if charge.collection_name}
        self.cut_off = 0
        """The number of accounts that were detached from their users."""
        self.turns: list[Entry] = []
        """The entries that set policies, began periods or repaired the clock, in order."""
        self._copied = 0

    def past(self) -> Past:
        """Return the settings of the partition, once the chain was walked; charges are decided again by them."""
        whole = self._whole
        if whole.end.state == IMPORTING:  # so far it has copied entries only
            self._copied = whole.end.entries
        return Past(whole.policies, whole.charges, self.turns, whole.periods, self._copied, whole.end.entries)

    def check(self, take: Callable[[list[Run]], None] = lambda runs: None) -> Iterator[str]:
        """Walk the chain from the first entry; every chain hash must follow from the one before.

        `take` gets the runs of each part. They are confirmed if no problem is found.
        """
        end = self._whole.end
        runs: list[Run] = []
        head, number, newest_at = EMPTY_CHAIN, 0, None
        moved: int | None = None
        for run in self._runs(self._whole.numbered, take):
            row, accounts, chain_hash = run
            runs.append(run)
            if row[2] in (CLOCK, PERIOD, POLICY_SET):
                self.turns.append(Entry.of(row))
            if newest_at is not None and row[1] < newest_at and row[2] != CLOCK:
                yield f"journal: entry {row[0]} is dated before the one before it"
            number, newest_at = number + 1, row[1]
            if row[0] != number:
                yield f"journal: entry {row[0]} is at the place of entry {number}"
                number = row[0]
            if row[2] == ERASED:
                self.cut_off += row[6]
            elif row[2] == COPIED:
                self._copied = row[0]
            elif row[2] in (MOVED, REOPENED):
                moved = row[0] if row[2] == MOVED else None
            if row[16] or row[17]:
                self._callers.add((row[16], row[17], row[5] if row[2] in _GRANTED else 0))
            many = len(accounts)
            if 0 < row[0] <= len(self._kept) - many:
                place = slice(row[0], row[0] + many)
                self._kept[place] = bytes([_RECORD * bool(row[14]) + _NOTE * bool(row[15])]) * many
                self._charged[place] = bytes([row[2] == SPENT and row[4] in self._of_collections]) * many
            number += many - 1
            if chain_hash is not None:
                yield from self._chain_hash(runs, head, chain_hash)
                head, runs = chain_hash, []
        if runs:
            yield f"journal: entries {runs[0].row[0]} to {number} have no link"
        if moved is not None and end.state not in (MOVING, MOVED_AWAY):
            yield f"partitions: the ledger can be written to, and entry {moved} says that it was moved"
        tables = (
            ("priced_mechanisms", "priced mechanism", self._charges),
            ("policies", "policy", self._policies),
            ("admin_log", "record", self._records),
        )
        for table, name, left in tables:
            for row in left.until(HIGHEST):
                yield f"{table}: {name} {row[0]} is in no transaction"
        if (number, newest_at, head, self._charges.last, self._policies.last) != (*end[:3], *end[4:6]):
            yield f"partitions: the end of the journal is not where it was written: {end.entries} entries, found {number}"

    def _runs(self, last: int, take: Callable[[list[Run]], None] = lambda runs: None) -> Iterator[Run]:
        for first, until in parts(last, _ENTRIES_TOGETHER):
            with self._open() as reading:
                part = list(runs_in(reading.rows, first, until))
            take(part)
            yield from part
            self._on_progress(min(last, first + _ENTRIES_TOGETHER - 1), last + self._whole.opened)

    def _chain_hash(self, runs: list[Run], before: bytes, chain_hash: bytes) -> Iterator[str]:
        rows = [run.row for run in runs]
        charges = self._charges.until(max(row[4] for row in rows))
        policies = self._policies.until(max(row[5] for row in rows))
        records = self._records.until(max([0, *[row[6] for row in rows if row[2] == RECORDED]]))
        entries = ", ".join([run.canonical() for run in runs])
        covered = canonical_transaction(before, entries, charges, policies, records)
        for row in rows:
            if row[2] == REKEYED:
                self._secret += 1
                if row[6] != self._secret:
                    yield f"journal: entry {row[0]} names secret {row[6]} of the key, and {self._secret} came next"
        secret = self._whole.secret(self._secret)
        if secret is None or secret.chain_hash(covered) != chain_hash:
            last = rows[-1][0] + len(runs[-1].accounts) - 1
            yield (
                f"journal: the link of entries {rows[0][0]} to {last} does not hold; "
                "an entry, a charge, a policy or a record was changed"
            )
        if chain_hash in self._wanted:
            self._seen.add(chain_hash)

    def check_callers(self, keys: Keys) -> Iterator[str]:
        """Check that each writer's API key exists and has the entry's sub-limit; keys are read after the entries."""
        made: dict[int, str | None] = {0: None, **keys()} if self._callers else {}
        for number in sorted({by for by, _, _ in self._callers} - made.keys()):
            written = self._written({each for each in self._callers if each[0] == number})
            why = f" were written by the key of record {number}, which has made none"
            of_users = [entry for entry, kind in written if kind in _OF_ACCOUNTS]
            if of_users:
                yield EntryProblem(_JOURNAL, of_users, why, "writer")
            others = [entry for entry, kind in written if kind not in _OF_ACCOUNTS]
            if others:
                yield f"{_JOURNAL}{ranges(others)}{why}"
        shares: dict[int, dict[str | None, int]] = {0: {}}
        for policy in self._whole.policies:
            named = json.loads(policy.definition).get("shares", ())
            shares[policy.number] = {share["name"]: share["number"] for share in named}
        for by, share, charged in sorted(self._callers):
            if charged and by in made and shares.get(charged, {}).get(made[by], 0) != share:
                found = [entry for entry, _ in self._written({(by, share, charged)})]
                key = f"by the key of record {by}" if by else "by no key"
                problem = EntryProblem(
                    _JOURNAL, found, f" of policy {charged} {key} have another share, {share}", "share"
                )
                # A writer who is bound to a sub-limit may have evaded it. Others only had a sub-limit too many.
                yield problem if made[by] is None else str(problem)

    def _written(self, callers: set[tuple[int, int, int]]) -> list[tuple[int, str]]:
        """Return the entries of some callers, by number and kind; the walk kept only the callers."""
        return [
            (number, row[2])
            for row, accounts, _ in self._runs(self._whole.numbered)
            if (row[16], row[17], row[5] if row[2] in _GRANTED else 0) in callers
            for number in range(row[0], row[0] + len(accounts))
        ]

    def holds(self) -> Iterator[str]:
        """Yield the recorded heads that the ledger does not contain."""
        for each in self._expected:
            if each.chain_hash not in self._seen:
                yield f"the head {each.head} is not in the chain: the ledger was rolled back, or it is another ledger"
            elif each.numbered_rows > self._whole.end.numbered_rows or each.collections > self._whole.end.collections:
                yield f"what was stored before the head {each.head} is not all there: the ledger was rolled back"

    def answered(self, entry: int) -> None:
        """Register that the record of an entry was found."""
        if entry < len(self._found):
            self._found[entry] |= _TWICE if self._found[entry] & _RECORD else _RECORD

    def charges_collection(self, entry: int) -> bool:
        """True if an entry charges a report of a collection, or was appended after the chain was walked."""
        return entry >= len(self._charged) or (entry > 0 and self._charged[entry] == 1)

    def check_notes(self) -> Iterator[str]:
        """Check every note: its MAC, and that its entry claims to have one."""
        for first, last in (
            (LOWEST, 0),
            *parts(len(self._found) - 1, _ENTRIES_TOGETHER),
            (len(self._found), HIGHEST),
        ):
            with self._open() as reading:
                for entry, note, row_mac in reading.rows.notes(first, last):
                    if reading.secret.row_mac(*reading.noted(entry, note)) != row_mac:
                        yield f"notes: the note of entry {entry} was changed"
                    if 0 < entry < len(self._found):
                        self._found[entry] |= _NOTE
                    elif not 0 < entry <= reading.end.entries:
                        yield f"notes: there is a note of entry {entry}, which is not there"

    def missing(self) -> Iterator[str]:
        """Yield missing records and notes of users who are not erased, and those that no entry claims."""
        if self._kept == self._found:
            return
        with self._open() as reading:
            for entry, (kept, found) in enumerate(zip(self._kept, self._found, strict=True)):
                if kept != found:
                    row = reading.rows.entry(entry)
                    if found & ~kept or row is None or not reading.rows.is_erased_account(row[3]):
                        yield from _of_others(entry, kept, found)


def _of_others(entry: int, kept: int, found: int) -> Iterator[str]:
    """Yield the problems of an entry whose record or note is missing, or which has one that it does not claim."""
    kinds = (
        (_RECORD | _TWICE, "record", "idempotency_records", "record that was stored for it"),
        (_NOTE, "note", "notes", "note that was written with it"),
    )
    for flags, code, table, said in kinds:
        if (kept ^ found) & flags:
            problem = EntryProblem(f"{table}: entry ", [entry], f" has not the one {said}", code)
            is_missing = not found & ~kept & flags
            yield problem if is_missing else str(problem)


class _Ahead:
    """Numbered rows, taken in order up to a number."""

    def __init__(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._rows = iter(rows)
        self._next = next(self._rows, None)
        self.last = 0

    def until(self, number: int) -> list[tuple[Any, ...]]:
        """Return the remaining rows up to this number."""
        taken = []
        while self._next is not None and self._next[0] <= number:
            taken.append(tuple(self._next))
            self.last = self._next[0]
            self._next = next(self._rows, None)
        return taken
