"""Copying a whole ledger to another place, in as many lanes as that one has.

The secret stays, so users, keys and labels keep their hashes; lanes, numbers and links are new. At no moment can
anybody be charged in both, see `moving`: the place is shut to all before anything stands there; then the source is
shut, for good, in one transaction of all of its lanes; only then anything is copied, so that nothing changes
meanwhile; and the place is opened last, when both ledgers were verified and hold the same. Whoever is killed in
between leaves two ledgers that charge nobody. The same copy begun again goes on: as the source cannot change, every
entry gets the number that it got before, and what stands there already is passed over.

Entries go in the order of time, lane beside lane. What was set in all lanes is taken from the first of them that has
it. Sums are added up again from what was copied, and held against those of the source.
"""

from __future__ import annotations

import heapq
import json
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import LedgerError
from . import exchanging, gate, names
from .entries import (
    CLOCK,
    COLLECTION,
    COPIED,
    ERASED,
    MOVED,
    NOBODY,
    PERIOD,
    POLICY_SET,
    RECORDED,
    REKEYED,
    REOPENED,
    RESERVED,
    End,
    Entry,
    EntryLabel,
    StoredAnswer,
    StoredCharge,
    StoredPolicy,
    StoredRecord,
)
from .filling import write_accounts
from .lanes import lane_of
from .names import Name
from .reading import answers_in_parts, parts
from .windows import LIFETIME, gauge_of, gauges_in, since_when

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .ledger import Ledger
    from .transaction import Transaction

    Step = Callable[[Transaction], Any]
    """Something that a transaction of one lane does."""
    Carry = Callable[[StoredAnswer, Name, int], str]
    """What is kept of an answer, given the name of its entry and the lanes of its ledger."""
    Progress = Callable[[int, int], None]

_ENTRIES_TOGETHER = 5_000
_ENTRIES_HELD = 20_000
"""How many are read ahead, over all lanes of the source."""
_ACCOUNTS_TOGETHER = 2_000
_ANSWERS_TOGETHER = 500


class Scratch(Protocol):
    """Room for what is too much to be held in memory; it goes with the process."""

    def add_accounts(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Lane, account, hash of the user or None, and the lane that it goes to."""

    def account(self, lane: int, account: int) -> tuple[int, int | None, bytes | None] | None:
        """The lane that an account goes to, its number there if it has one by now, and its user."""

    def number_account(self, lane: int, account: int, number: int) -> None:
        """Give it its number there."""

    def users(self, to_lane: int) -> Iterator[tuple[int, bytes | None]]:
        """The numbers and users in a lane of the copy, in order."""

    def add_entry(self, lane: int, entry: int, to_lane: int, number: int) -> None:
        """Where an entry went."""

    def entry(self, lane: int, entry: int) -> tuple[int, int] | None:
        """Lane and number that it has there."""

    def add_sums(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Lane, account, window and four amounts."""

    def sums(self, to_lane: int) -> Iterator[tuple[Any, ...]]:
        """Number, window and amounts in a lane of the copy, in order."""


class _Item(NamedTuple):
    """An entry of the source, with its place in the order of time."""

    at: int
    lane: int
    row: tuple[Any, ...]
    label: EntryLabel | None
    note: str | None
    policy: StoredPolicy | None
    record: StoredRecord | None


@dataclass
class _Lane:
    """How far the plan of a lane of the copy has come; `written` is what stood there before this run."""

    written: End
    there: int
    """How many entries stand there now."""
    entries: int = 0
    accounts: int = 0
    repaired: int | None = None
    """When its clock was last repaired."""
    latest: int = 0
    """The latest that anything is dated since."""
    reserved: bool = False
    """Whether anything was reserved since."""
    kept: dict[str, int] = field(default_factory=dict)
    erasures: list[int] = field(default_factory=lambda: [0, 0])
    """How many erasures it has still to take, of users without and with an account."""


class Copy:
    """The copy of the ledger `source`, which is shut, to `target`, which is being filled."""

    def __init__(self, source: Ledger, target: Ledger, scratch: Scratch, carry: Carry, on_progress: Progress) -> None:
        self._source = source
        self._target = target
        self._scratch = scratch
        self._carry = carry
        self._on_progress = on_progress
        ends = [_end(target, lane) for lane in target.lanes]
        self._lanes = [_Lane(end, end.entries) for end in ends]
        self._steps: dict[int, list[Step]] = {}
        self._policies: set[int] = set()
        self._periods: set[int] = set()
        self._secrets: set[bytes] = set()
        # Of what went from one lane to another: how late it is dated at most, and whether a reservation waits.
        self._latest: dict[tuple[int, int], int] = {}
        self._reserved: set[tuple[int, int]] = set()
        with source.reading() as reading:
            self._generation = reading.generation
        # What was written in a lane itself, and did not come with a copy, has its name from there.
        self._own = [self._generation == 0 for _ in source.lanes]
        self._charges: list[dict[int, StoredCharge]] = []
        for lane in source.lanes:
            with source.reading(lane) as reading:
                self._charges.append({charge.number: charge for charge in reading.rows.charges()})

    def run(self) -> None:
        """Write everything; what is there already is passed over."""
        self._collections()
        self._tombstones()
        self._users()
        self._journal()
        self._accounts()
        self._answers()

    # -- what there is little of --------------------------------------------------------------------------

    def _collections(self) -> None:
        with self._source.reading() as reading:
            stored = sorted(reading.rows.collections())

        def add(transaction: Transaction) -> None:
            for each in stored[transaction.end.collections :]:
                transaction.add_collection(each.name, each.fingerprint, each.definition)

        self._step(0, add)
        self._write_steps()

    def _tombstones(self) -> None:
        """Bury the erased, and share out the erasures: a lane takes as many as it has tombstones.

        Nothing says which account belonged to which tombstone. So those that were cut off go to the first lanes that
        have room for them.
        """
        cut_off = 0
        for lane in self._source.lanes:
            with self._source.reading(lane) as reading:
                cut_off += reading.rows.counts()["cut_off"]
                for tombstone in reading.rows.tombstones():
                    to = self._lane_of(tombstone.hash)
                    self._lanes[to].erasures[0] += 1
                    self._step(to, partial(_bury, tombstone=tombstone))
                    self._write_some()
        self._write_steps()
        for each in self._lanes:
            taken = min(cut_off, each.erasures[0])
            each.erasures[0] -= taken
            each.erasures[1] += taken
            cut_off -= taken

    def _users(self) -> None:
        """Say to which lane every account goes."""
        room = [(lane, each.erasures[1]) for lane, each in enumerate(self._lanes)]
        spare = iter([lane for lane, count in room for _ in range(count)])
        for lane in self._source.lanes:
            for first, last in parts(self._accounts_of(lane), _ACCOUNTS_TOGETHER):
                with self._source.reading(lane) as reading:
                    users = list(reading.rows.users(first, last))
                self._scratch.add_accounts(
                    (lane, user.account, user.hash, self._lane_of(user.hash) if user.hash else next(spare))
                    for user in users
                )

    def _accounts_of(self, lane: int) -> int:
        with self._source.reading(lane) as reading:
            return reading.end.accounts

    def _lane_of(self, hashed: bytes) -> int:
        return lane_of(hashed, len(self._lanes))

    # -- the journal --------------------------------------------------------------------------------------

    def _journal(self) -> None:
        total = sum(_end(self._source, lane).entries for lane in self._source.lanes)
        items = heapq.merge(*(self._items(lane) for lane in self._source.lanes), key=itemgetter(0, 1))
        for done, item in enumerate(items, 1):
            self._take(item)
            if not done % _ENTRIES_TOGETHER:
                self._write_steps()
                self._on_progress(done, total)
        self._write_steps()

    def _items(self, lane: int) -> Iterator[_Item]:
        """The entries of a lane, each at the time by which it was certainly written.

        What is dated later than a later repair of the clock was written before that. So nothing goes back, and what
        a repair follows stands together.
        """
        with self._source.reading(lane) as reading:
            last, repairs = reading.end.entries, reading.repairs()
        by = [*repairs]
        for place in range(len(by) - 1, 0, -1):
            by[place - 1] = by[place - 1]._replace(at=min(by[place - 1].at, by[place].at))
        passed = 0
        for first, until in parts(last, max(20, _ENTRIES_HELD // len(self._source.lanes))):
            with self._source.reading(lane) as reading:
                notes = {each.entry: each.note for each in reading.rows.notes(first, until)}
                items = []
                for row, _ in reading.rows.entries(first, until):
                    label = reading.rows.label(row[0]) if row[11] is not None else None
                    policy = next(reading.rows.policies(row[5])) if row[2] == POLICY_SET else None
                    record = next(reading.rows.records(row[6])) if row[2] == RECORDED else None
                    items.append(_Item(row[1], lane, row, label, notes.get(row[0]), policy, record))
            for item in items:
                while passed < len(by) and by[passed].entry < item.row[0]:
                    passed += 1
                yield item._replace(at=min(item.at, by[passed].at)) if passed < len(by) else item

    def _take(self, item: _Item) -> None:
        """Plan where an entry goes."""
        entry = Entry.of(item.row)
        if entry.kind == COPIED:
            self._own[item.lane] = True
        elif entry.kind == POLICY_SET:
            self._take_policy(item.lane, entry, item.policy)
        elif entry.kind == RECORDED:
            assert item.record is not None
            self._append(item.lane, 0, entry, before=partial(_put_record, record=item.record))
        elif entry.kind == COLLECTION:
            self._append(item.lane, 0, entry)
        elif entry.kind == PERIOD:
            if entry.reports not in self._periods:
                self._periods.add(entry.reports)
                for to in self._target.lanes:
                    self._append(item.lane, to, entry)
                    self._keep(to, [gauge_of(entry.reports)], entry.at)
        elif entry.kind == CLOCK:
            self._take_repair(item.lane, entry)
        elif entry.kind == ERASED:
            to = next(lane for lane, each in enumerate(self._lanes) if each.erasures[entry.reports])
            self._lanes[to].erasures[entry.reports] -= 1
            self._append(item.lane, to, entry)
        elif entry.kind not in (MOVED, REOPENED, REKEYED):
            self._take_charge(item, entry)

    def _take_policy(self, lane: int, entry: Entry, policy: StoredPolicy | None) -> None:
        """Every lane gets a version as the first that has it; the numbers are the same in all."""
        assert policy is not None
        if policy.number in self._policies:
            return
        self._policies.add(policy.number)
        limited = gauges_in(json.loads(policy.definition))
        for to in self._target.lanes:
            self._append(lane, to, entry, before=lambda transaction: transaction.put_policy(policy))
            self._keep(to, limited, entry.at)

    def _take_repair(self, lane: int, entry: Entry) -> None:
        """A repair goes to each lane to which something went that it is for: what is dated later, or was reserved.

        Not where the same one stands there already, with nothing of that kind since.
        """
        for to, there in enumerate(self._lanes):
            wanted = self._latest.get((lane, to), entry.at) > entry.at or (lane, to) in self._reserved
            again = there.repaired == entry.at and there.latest <= entry.at and not there.reserved
            if wanted and not again:
                self._append(lane, to, entry)
                self._keep(to, [*there.kept], entry.at, lower=True)
                there.repaired, there.latest, there.reserved = entry.at, entry.at, False
        self._reserved -= {(lane, to) for to in self._target.lanes}

    def _keep(self, to: int, periods: Iterable[str], at: int, lower: bool = False) -> None:
        """Keep windows of periods since that of a moment, as every lane does by itself."""
        kept = self._lanes[to].kept
        for period in periods:
            if period == LIFETIME or (period in kept and not lower):
                continue
            since = since_when(period, at)
            if since < kept.get(period, since + 1):
                kept[period] = since
                self._step_of_entry(to, partial(_keep_period, period=period, since=since))

    def _take_charge(self, item: _Item, entry: Entry) -> None:
        scratch, lane = self._scratch, item.lane
        found = scratch.account(lane, entry.account)
        if found is None:
            raise LedgerError(
                self._source.name, f"entry {entry.number} is of account {entry.account}, which is missing"
            )
        to, number, hashed = found
        if number is None:
            self._lanes[to].accounts += 1
            number = self._lanes[to].accounts
            scratch.number_account(lane, entry.account, number)
            if number > self._lanes[to].written.accounts:
                self._step(to, lambda transaction: transaction.open_account(hashed))
        charge = self._charges[lane][entry.charge]
        resolves = None if entry.resolves is None else scratch.entry(lane, entry.resolves)
        entry = entry._replace(account=number, resolves=None if resolves is None else resolves[1])
        put = partial(_put_charge, entry=entry, charge=charge, label=item.label, note=item.note)
        new = self._append(lane, to, entry, put)
        place = self._lanes[to].entries
        if entry.kind == RESERVED:
            self._lanes[to].reserved = True
            self._reserved.add((lane, to))
            if new and self._own[lane]:
                self._name(Name(self._generation, lane, entry.number), to, place)
        if entry.kind == RESERVED or entry.keyed:
            scratch.add_entry(lane, entry.number, to, place)

    def _name(self, name: Name, to: int, place: int) -> None:
        """Keep where an entry of this name stands now."""
        key = names.place_of(self._target.key, name)
        answer = names.write(to, place)
        self._step(
            self._lane_of(key),
            lambda transaction: transaction.store_answer(NOBODY, key, None, gate.NO_REQUEST, answer),
        )

    def _append(self, of: int, to: int, entry: Entry, put: Step | None = None, before: Step | None = None) -> bool:
        """Plan the next entry of a lane, which is one of the lane `of`; whether it is not there yet."""
        lane = self._lanes[to]
        lane.entries, lane.latest = lane.entries + 1, max(lane.latest, entry.at)
        self._latest[of, to] = max(self._latest.get((of, to), 0), entry.at)
        if before is not None:
            self._step_of_entry(to, before)
        self._step_of_entry(to, put or (lambda transaction: transaction.put(entry)))
        return lane.entries > lane.written.entries

    def _step_of_entry(self, to: int, step: Step) -> None:
        """A step of the entry that was planned last, which may be there already, with all that belongs to it."""
        if self._lanes[to].entries > self._lanes[to].written.entries:
            self._step(to, step)

    # -- writing ------------------------------------------------------------------------------------------

    def _step(self, to: int, step: Step) -> None:
        self._steps.setdefault(to, []).append(step)

    def _write_some(self) -> None:
        """Write what is planned, if that is much."""
        if sum(map(len, self._steps.values())) >= _ENTRIES_TOGETHER:
            self._write_steps()

    def _write_steps(self) -> None:
        """Do what is planned, in one transaction of all the lanes of it: it stands there whole or not at all."""
        steps, self._steps = self._steps, {}
        lanes = sorted(steps)

        def write(transactions: list[Transaction]) -> None:
            for lane, transaction in zip(lanes, transactions, strict=True):
                end = transaction.end
                if gate.state(end.gate) != gate.FILLING or end.entries != self._lanes[lane].there:
                    why = "somebody else copies to it at the same time; do the same again when they are through"
                    raise LedgerError(self._target.name, why)
                for step in steps[lane]:
                    step(transaction)

        if lanes:
            self._target.run_together(write, lanes, though_shut=True)
            for lane in lanes:
                self._lanes[lane].there = max(self._lanes[lane].there, self._lanes[lane].entries)

    # -- accounts and answers -----------------------------------------------------------------------------

    def _accounts(self) -> None:
        """Add up what every account was charged."""
        for to, lane in enumerate(self._lanes):
            for first, last in parts(lane.accounts, _ACCOUNTS_TOGETHER):
                with self._target.reading(to) as reading:
                    if next(iter(reading.rows.sums(last, last)), None) is not None:
                        continue  # all of them were written together
                self._step(to, partial(write_accounts, accounts=range(first, last + 1)))
                self._write_steps()

    def _answers(self) -> None:
        """Carry the answers over, each to the lane where it is looked for."""
        waiting: list[tuple[int, StoredAnswer]] = []
        for lane in self._source.lanes:
            for _, answers in answers_in_parts(partial(self._source.reading, lane)):
                for stored in answers:
                    waiting += self._carried(lane, stored)
                    if len(waiting) >= _ANSWERS_TOGETHER:
                        self._write_answers(waiting)
                        waiting = []
        self._write_answers(waiting)

    def _carried(self, lane: int, stored: StoredAnswer) -> list[tuple[int, StoredAnswer]]:
        """An answer and the lane it goes to; none of what only the source is concerned with."""
        if stored.user != NOBODY:
            to, text = self._lane_of(stored.user), stored.answer
            place = stored.place
            if place > 0:
                found = self._scratch.entry(lane, place)
                if found is None:
                    raise LedgerError(self._source.name, f"an answer is of entry {place}, which has none")
                place = found[1]
                text = self._carry(stored, Name(self._generation, lane, stored.place), len(self._source.lanes))
            return [(to, stored._replace(place=place, answer=text))]
        to = self._lane_of(stored.key)
        if stored.request != gate.NO_REQUEST:
            text = self._carry(stored, Name(self._generation, lane, 0), len(self._source.lanes))
            return [(to, stored._replace(answer=text))]
        if exchanging.is_note(stored):
            # Receipts of then are asked for in any lane; a ledger that was copied before has it in each.
            again, self._secrets = stored.key in self._secrets, self._secrets | {stored.key}
            return [] if again else [(lane, stored) for lane in self._target.lanes]
        if stored.answer.startswith("["):  # where an entry of an older name stands
            found = self._scratch.entry(*names.read(stored.answer))
            if found is not None:
                return [(to, stored._replace(answer=names.write(*found)))]
        return []

    def _write_answers(self, answers: list[tuple[int, StoredAnswer]]) -> None:
        by_lane: dict[int, list[StoredAnswer]] = {}
        for to, stored in answers:
            by_lane.setdefault(to, []).append(stored)
        for to, of_lane in by_lane.items():
            self._step(to, partial(_store_answers, answers=of_lane))
        self._write_steps()


def _put_charge(
    transaction: Transaction, entry: Entry, charge: StoredCharge, label: EntryLabel | None, note: str | None
) -> None:
    number = transaction.store_charge(*charge[1:5], charge.costs, charge.collection)
    _, labelled, salt = label or (None, None, None)
    transaction.put(entry._replace(charge=number), labelled, salt, note)


def _put_record(transaction: Transaction, record: StoredRecord) -> None:
    transaction.put_record(record)


def _keep_period(transaction: Transaction, period: str, since: int) -> None:
    transaction.keep_period(period, since)


def _bury(transaction: Transaction, tombstone: Any) -> None:
    if not transaction.is_erased(tombstone.hash):
        transaction.bury(tombstone)


def _store_answers(transaction: Transaction, answers: list[StoredAnswer]) -> None:
    """Store those that are not there yet."""
    users, keys = [each.user for each in answers], [each.key for each in answers]
    there = {(each.user, each.key) for each in transaction.rows.answers([*dict.fromkeys(users)], keys)}
    for each in answers:
        if (each.user, each.key) not in there:
            place = each.place if each.place > 0 else None
            transaction.store_answer(each.user, each.key, place, each.request, each.answer)


def _end(ledger: Ledger, lane: int) -> End:
    with ledger.reading(lane) as reading:
        return reading.end
