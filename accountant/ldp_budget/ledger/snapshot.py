"""Snapshot of one partition as the accounting reads it, and the replay of accounts from their histories.

`Reading` is a consistent view of one partition. `Replay` computes again what an account was charged: for backfills,
voids and verification.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from .._tags import part_of
from ..errors import LedgerError, LedgerKeyMissing, LedgerMoved, UnknownName
from ..guarantees import Guarantee, Memoised, from_json
from ..guarantees.costs import ZCDP, measured
from ..guarantees.fixed_point import LARGEST, ZERO, Costs
from ..guarantees.memoised_costs import UNLABELLED, cost_in_window, counts_in_window, refund_in_window
from .calendar import LIFETIME, holds, is_lifetime, is_sliding, measure_in, name_at, scope_in, share_in, zone_key_in
from .models import (
    CHARGES,
    IMPORTING,
    MOVED_AWAY,
    NUMBERED,
    RESERVED,
    VOIDED,
    AccountMacState,
    Closing,
    Entry,
    Numbered,
    PricedMechanism,
    Repair,
    StoredPolicy,
)
from .storage import FIRST_RECORD
from .zones import knows, zone_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from decimal import Decimal

    from ..guarantees.fixed_point import Amounts
    from ..guarantees.memoised_costs import LabelCount
    from .calendar import Clock, Moment, Window
    from .keyed_hashing import Key, Secret
    from .models import IdempotencyRecord, StoredCollection
    from .storage import Snapshot
    from .tables import N

    Promises = Callable[[int], "Promise"]
    """Returns the promise of a priced mechanism by its number."""

T = TypeVar("T")
USERS_TOGETHER = 500
"""The number of users in one query."""
_RECORDS_TOGETHER = 5_000
"""The number of idempotency records read from one snapshot."""
_UNKNOWN = Closing(0, 0, 0, "", "another ledger", "")

Price: TypeAlias = "tuple[Decimal, Decimal]"
"""(ε, δ) of a whole plan."""


class Promise(NamedTuple):
    """What the ledger knows of a priced mechanism for certain: its guarantee, and the tags of its charges.

    `parts` has the guarantee about single tags where it is another one.
    """

    guarantee: Guarantee
    tags: tuple[str, ...] = ()
    parts: Mapping[str, Guarantee] = {}

    @classmethod
    def of(cls, stored: PricedMechanism) -> Promise:
        """The promise of a stored priced mechanism."""
        parts = {tag: from_json(json.loads(said)) for tag, said in stored.parts.items()}
        return cls(from_json(json.loads(stored.guarantee)), stored.tags, parts)

    def part(self, gauge: str) -> Guarantee | None:
        """Return the guarantee of a report in a gauge's windows, unless it is that of the whole report."""
        return part_of(scope_in(gauge), self.tags, self.parts) if self.parts else None


@dataclass(slots=True)
class Account:
    """A user's account: its number (None before the first charge), and the amounts charged in each open window.

    Windows are named by their gauge, a period or a period and a measure.

    The other fields are filled only where they are needed. `erased`: the user was erased. `reported`: the reports of
    one memoising mechanism in each window, by gauge and label. `quota_used`: the used part of one quota. `repaired`,
    for such reports: the clock was repaired. In a write transaction, `user` is the user's hash and `newest` the
    number of the newest charge. `counts` has the reports of each label by window, priced mechanism and label, and the
    used quotas by plan and guarantee. `changed` has the gauges whose sums changed. `same_day` has the sums in windows that
    are not open now, and were or will be on the same UTC day, as days in a time zone end within a UTC day; and those of
    the earlier days that sliding limits count.
    """

    number: int | None
    spent: dict[str, Costs]
    erased: bool = False
    reported: dict[str, dict[bytes, int]] = field(default_factory=dict)
    quota_used: int = 0
    repaired: bool = False
    user: bytes = b""
    newest: int | None = None
    counts: dict[tuple[int | str | bytes, ...], int] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    same_day: dict[str, Amounts] = field(default_factory=dict)
    before: dict[str, Costs] = field(default_factory=dict)
    """The sums of the earlier days that each open window counts, once they were asked for; cleared if one changes."""

    def count_reports(self, charge: int | None, windows: Mapping[str, str]) -> None:
        """Fill `reported` with the reports of a priced mechanism; `windows` has the gauge of each window's name."""
        self.reported = {gauge: {} for gauge in windows.values()}
        for key, count in self.counts.items():
            window, *rest = key
            if count and window in windows and rest[:-1] == [charge]:
                self.reported[windows[window]][rest[-1]] = count  # type: ignore[index]

    def total(self, gauge: str, window: Window) -> Costs:
        """Return what a limit of a gauge counts in its open window: the sum of it, and of the earlier days that count."""
        total = self.spent[gauge]
        if window.earlier and self.same_day:
            before = self.before.get(window.name)
            if before is None:
                days = [self.same_day[name] for name in window.earlier if name in self.same_day]
                sums = [None if None in amounts else sum(amounts) for amounts in zip(*days, strict=True)]
                before = self.before[window.name] = ZERO if not days else ZERO.plus(Costs._make(sums))
            total = total.plus(before)
        return total

    def sliding_sums(self, gauge: str, window: Window) -> list[tuple[str, Costs]]:
        """Return the sums of the days that a sliding limit counts, with the names of their windows, in order."""
        days = [(name, Costs._make(self.same_day[name])) for name in window.earlier if name in self.same_day]
        return [each for each in (*days, (window.name, self.spent[gauge])) if each[1] != ZERO]

    def totals(self, windows: Mapping[str, Window]) -> dict[str, Costs]:
        """Return what a limit of each gauge counts in its open window."""
        return {gauge: self.total(gauge, window) for gauge, window in windows.items()}

    def label_counts(self, gauge: str, window: Window, label: bytes) -> dict[bytes, LabelCount]:
        """Return the report counts in a window, which determine the cost of the next reports of a label."""
        broken = self.repaired or bool(window.share)
        return counts_in_window(self.reported[LIFETIME], self.reported[gauge], label, broken=broken)


class Reading:
    """A snapshot of one partition. Everything that has no method here is in `rows`."""

    def __init__(self, rows: Snapshot, key: Key, clock: Clock, partition: int = 0, partitions: int = 1) -> None:
        self.key = key
        self.partition, self.partitions = partition, partitions
        """The number of this partition, and the number of all partitions."""
        self.end, self.counters_mac = rows.end()
        """The partition head, and the MAC of its counters."""
        self.rows = rows
        self.secret = key.in_use
        self._clock = clock
        self._moment: Moment | None = None
        self._windows: dict[str, Window] | None = None

    @property
    def ledger_name(self) -> str:
        """The ledger's name in messages."""
        return self._clock.ledger

    # -- lifecycle ----------------------------------------------------------------------------------------

    def closing(self) -> Closing:
        """Return the reason why the ledger is closed."""
        return self.numbered(Closing, self.end.generation, self.end.changes) or _UNKNOWN

    def origin(self) -> Closing:
        """Return the move that filled the ledger, or fills it."""
        return self.numbered(Closing, self.end.generation, 0) or _UNKNOWN

    def refusal(self) -> LedgerError:
        """Return the error with which a ledger that is not open refuses writes."""
        reason = self.closing()
        if self.end.state == IMPORTING:
            why = f"it is being filled by a move from {reason.ledger}. Nothing was charged."
            return LedgerError(self.ledger_name, why, hint="Wait until the move is complete.")
        return LedgerMoved(self.ledger_name, reason.ledger, complete=self.end.state == MOVED_AWAY)

    # -- time ---------------------------------------------------------------------------------------------

    @property
    def moment(self) -> Moment:
        """The time of this reading or transaction, the same throughout.

        A transaction uses the clock. A reading uses the time of the newest entry if the clock is not plausible,
        unless `go_by_the_clock` was called.
        """
        if self._moment is None:
            self._moment = self._clock.moment_to_read(self.newest_at)
        return self._moment

    def go_by_the_clock(self) -> Moment:
        """Return the time at which a charge would be made. Raises `ClockError`."""
        self._moment = self._clock.moment(self.newest_at)
        return self._moment

    @property
    def newest_at(self) -> int | None:
        """The time of the newest entry."""
        return self.end.at

    @property
    def windows(self) -> dict[str, Window]:
        """The kept windows that contain the moment, by gauge."""
        if self._windows is None:
            moment = self.moment
            self._windows = {period: moment.window(period) for period in self.periods()}
        return self._windows

    @property
    def has_sliding_limits(self) -> bool:
        """True if windows of a sliding gauge are kept."""
        return any(map(is_sliding, self.periods()))

    def periods(self) -> dict[str, int]:
        """Return the gauges with kept windows, and the start of the first window of each."""
        kept = self.rows.periods()
        if not all(map(knows, filter(None, map(zone_key_in, kept)))):
            for policy in self.rows.policies():  # reading a zone makes its rules known
                zone_in(json.loads(policy.definition))
        return kept

    def repairs(self) -> tuple[Repair, ...]:
        """Return the clock repairs, in order."""
        return tuple(self.rows.repairs())

    def is_over(self, reservation: Entry) -> bool:
        """True if a reservation has expired.

        A clock repair ends every reservation made before it, because their age is unknown.
        """
        if reservation.expires is not None and reservation.expires <= self.moment.micros:
            return True
        return next(self.rows.repairs(reservation.number), None) is not None

    def noted(self, entry: int, note: str) -> tuple[object, ...]:
        """Return the values that the MAC of a note covers."""
        return "note", self.partition, entry, note

    @property
    def generation(self) -> int:
        """The number of times that the ledger was moved."""
        return self.end.generation

    # -- one user -----------------------------------------------------------------------------------------

    def is_erased(self, user: bytes) -> bool:
        """True if a user was erased."""
        return user in self.rows.erased([user])

    def number_of(self, user: bytes) -> int | None:
        """Return the number of a user's account; None before the first charge."""
        return self.numbers_of([user]).get(user)

    def numbers_of(self, users: Sequence[bytes]) -> dict[bytes, int]:
        """Return the numbers of the accounts of those users who have one."""
        return {
            row[0]: row[1]
            for first in range(0, len(users), USERS_TOGETHER)
            for row in self.rows.accounts(users[first : first + USERS_TOGETHER], ())
        }

    def checked_idempotency_record(self, stored: IdempotencyRecord) -> IdempotencyRecord:
        """Return an idempotency record once its MAC is checked. Raises `LedgerError`."""
        if self.secret.row_mac(*stored[:-1]) != stored.row_mac:
            why = "the idempotency record of a key was changed. Nothing was charged. Run: ldp-budget ledger verify"
            raise LedgerError(self.ledger_name, why)
        return stored

    def numbered(self, kind: type[N], *key: Any) -> N | None:
        """Return the row of a `NUMBERED` class with these values after its number.

        Raises `LedgerError` if it was changed.
        """
        row = self.rows.numbered(kind, *key)
        if row is not None and self.secret.row_mac(*covered(row, self.partition)) != row.row_mac:
            table = NUMBERED[kind].name
            raise LedgerError(self.ledger_name, f"a row of {table} was changed. Run: ldp-budget ledger verify")
        return row

    def memoised_reports(self, account: int | None, label: bytes, charge: int | None, window: str) -> int:
        """Return the number of reports of a memoised value that were charged in a window."""
        return 0 if account is None or charge is None else self.rows.memoised_reports(account, label, charge, window)

    def quota_used(self, account: int | None, plan: str, promise: str) -> int:
        """Return the used part of a plan's quota."""
        return 0 if account is None else self.rows.quota_used(account, plan, promise)

    def plans_used(self, account: int | None) -> list[str]:
        """Return the plans of which an account has used a quota."""
        return [] if account is None else list(self.rows.plans_used(account))

    def history(self, account: int, first: int = 1, most: int | None = None) -> list[tuple[Entry, bytes | None]]:
        """Return an account's entries from number `first` on, at most `most`, each with its label."""
        return [(Entry.of(row), row[-2]) for row in self.rows.history(account, first, most)]

    # -- what was set -------------------------------------------------------------------------------------

    def priced_mechanism_number(self, fingerprint: str, guarantee: str, collection: str) -> int | None:
        """Return the number of a stored priced mechanism."""
        return self.rows.priced_mechanism_number(fingerprint, guarantee, collection)

    def priced_mechanism(self, number: int) -> PricedMechanism:
        """Return a stored priced mechanism by its number."""
        return _found(self.rows.priced_mechanisms(number), f"priced mechanism {number}")

    def check_charge(self, charge: PricedMechanism) -> None:
        """Raise `LedgerError` if a stored priced mechanism was changed."""
        if self.secret.row_mac(*charge.covered) != charge.row_mac:
            why = f"priced mechanism {charge.number} was changed. Nothing was charged. Run: ldp-budget ledger verify"
            raise LedgerError(self.ledger_name, why)

    def policy(self, name: str) -> StoredPolicy:
        """Return the newest version of a policy. Raises `UnknownName`."""
        found = self.find_policy(name)
        if found is None:
            raise UnknownName("policy", name, [policy.name for policy in self.newest_policies()])
        return found

    def find_policy(self, name: str) -> StoredPolicy | None:
        """Return the newest version of a policy, checked; None if no policy has that name. Raises `LedgerError`."""
        return self._checked_policies(self.end.policies).get(name)

    def newest_policies(self) -> list[StoredPolicy]:
        """Return the newest version of every policy by name, checked. Raises `LedgerError`."""
        newest = self._checked_policies(self.end.policies)
        return [newest[name] for name in sorted(newest)]

    def _checked_policies(self, count: int) -> dict[str, StoredPolicy]:
        """Return the newest version of every policy. Raises `LedgerError` unless there are `count` versions, all unchanged."""
        stored = list(self.rows.policies())
        row_mac = self.secret.row_mac
        if len(stored) != count or any(row_mac(*policy.covered) != policy.row_mac for policy in stored):
            why = "its policies were changed. Nothing was charged. Run: ldp-budget ledger verify"
            raise LedgerError(self.ledger_name, why)
        return {policy.name: policy for policy in stored}

    def collection(self, name: str) -> StoredCollection | None:
        """Return a collection once its MAC is checked. Raises `LedgerError`."""
        stored = self.rows.collection(name)
        return None if stored is None else self._checked_collection(stored)

    def collections(self) -> list[StoredCollection]:
        """Return all collections by name, once their MACs are checked. Raises `LedgerError`."""
        return [self._checked_collection(stored) for stored in self.rows.collections()]

    def _checked_collection(self, stored: StoredCollection) -> StoredCollection:
        if self.secret.row_mac(*stored[:-1]) != stored.row_mac:
            why = f"collection {stored.name} was changed. Run: ldp-budget ledger verify"
            raise LedgerError(self.ledger_name, why)
        return stored

    def policy_version(self, number: int) -> StoredPolicy:
        """Return one version of a policy, by its number."""
        return _found(self.rows.policies(number), f"policy {number}")


def sums_in(row: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Return the sums in a row of an account, one for each window: its name, None without a sum, and four amounts."""
    first, size = len(AccountMacState._fields), 1 + len(ZERO)
    return [row[place : place + size] for place in range(first, len(row), size)]


def covered(row: Numbered, partition: int) -> tuple[object, ...]:
    """Return what the MAC of a row of `NUMBERED` covers: its table, its partition, and all other columns.

    The numbers of a partition begin at 1, so without the partition two rows of the same number could be exchanged.
    """
    return NUMBERED[type(row)].name, partition, *row[:-1]


def secret_of(key: Key, number: int) -> Secret:
    """Return a secret of a key; opening the transaction has ensured that it is known. Raises `LedgerKeyMissing`."""
    secret = key.at(number)
    if secret is None:
        raise LedgerKeyMissing("of this key", number)
    return secret


def idempotency_records_in_parts(
    open_reading: Callable[[], AbstractContextManager[Reading]],
) -> Iterator[tuple[Reading, Iterable[IdempotencyRecord]]]:
    """Yield the idempotency records in parts, each with a reading of its own, so that no snapshot is held for long.

    A record that is erased meanwhile can appear twice, or not at all; an `ErasedRecord` takes the place of a refusal.
    """
    following: int | None = FIRST_RECORD
    while following is not None:
        with open_reading() as reading:
            part, following = reading.rows.idempotency_records_after(following, _RECORDS_TOGETHER)
            yield reading, part


def parts(last: int, size: int) -> Iterator[tuple[int, int]]:
    """Return the numbers from 1 to `last` in parts, each for a reading of its own: the first and the last of each."""
    return ((first, min(last, first + size - 1)) for first in range(1, last + 1, size))


class _Sum:
    """An exact sum of costs: unbounded costs are counted, and no number is too large."""

    __slots__ = ("_known", "_unbounded")

    def __init__(self) -> None:
        self._known = [0, 0, 0, 0]
        self._unbounded = [0, 0, 0, 0]

    def add(self, costs: Costs, times: int) -> None:
        """Add costs. If they are given back, `times` is -1, and the known amounts are already negative."""
        for place, amount in enumerate(costs):
            if amount is None:
                self._unbounded[place] += times
            else:
                self._known[place] += amount

    def copy(self) -> _Sum:
        """Return an independent copy."""
        other = _Sum()
        other._known, other._unbounded = [*self._known], [*self._unbounded]
        return other

    def costs(self) -> Costs:
        """Return the sum as an account stores it: None if it is unbounded, or too large to store."""
        pairs = zip(self._known, self._unbounded, strict=True)
        return Costs(*[None if unbounded or known > LARGEST else known for known, unbounded in pairs])


class Replay:
    """The charges of one account that were not voided, summed in the windows of some gauges.

    `since` maps each gauge to the start of its first window. Reports of memoised values are counted by label, priced
    mechanism and window; those without a label are counted under `UNLABELLED`. If the user was `erased`, nothing is
    counted, and only the lifetime sum is valid.

    A charge counts in the windows of its date. It also counts in the windows of each later one of the clock `repairs`
    that is dated before it: the charge had been made by then, although it is dated later. So a repair refills no
    window, and charges under a wrong clock count more often rather than less.

    An account with memoised reports is replayed from its first entry on, because the cost of such reports depends on
    all before.
    """

    def __init__(
        self, since: dict[str, int], promises: Promises, repairs: Sequence[Repair], *, erased: bool = False
    ) -> None:
        self._since = since
        self._promises = promises
        self._repairs = repairs
        self._erased = erased
        self._reserved: dict[int, tuple[int, int, bytes | None]] = {}
        self._sums: dict[str, _Sum] = defaultdict(_Sum)
        self._counts: dict[tuple[int, str], dict[bytes, int]] = defaultdict(dict)
        self._reported: dict[int, dict[bytes, int]] = defaultdict(dict)

    def copy(self) -> Replay:
        """Return an independent copy."""
        other = Replay(self._since, self._promises, self._repairs, erased=self._erased)
        other._reserved.update(self._reserved)
        other._sums.update((window, total.copy()) for window, total in self._sums.items())
        other._counts.update((key, dict(counts)) for key, counts in self._counts.items())
        other._reported.update((charge, dict(counts)) for charge, counts in self._reported.items())
        return other

    @property
    def sums(self) -> dict[str, Costs]:
        """The amounts charged in each window."""
        return {window: total.costs() for window, total in self._sums.items()}

    @property
    def labels(self) -> dict[tuple[bytes, int, str], int]:
        """The number of reports by label, priced mechanism and window."""
        return {
            (label, charge, window): count
            for (charge, window), counts in self._counts.items()
            for label, count in counts.items()
        }

    def reported(self, charge: int) -> dict[bytes, int]:
        """Return the number of reports of each label of a priced mechanism, in all windows together."""
        return self._reported[charge]

    def spent_in(self, window: str) -> Costs:
        """Return the amounts charged in one window."""
        return self._sums[window].costs() if window in self._sums else ZERO

    def total(self, window: Window) -> Costs:
        """Return what a limit counts in a window: what was charged in it, and on the earlier days that count."""
        total = self.spent_in(window.name)
        for name in window.earlier:
            total = total.plus(self.spent_in(name))
        return total

    def add(self, entry: Entry, label: bytes | None) -> None:
        """Add the account's next entry. An entry that neither charges nor gives back adds nothing."""
        if entry.kind not in CHARGES:
            return
        number, at, times = entry.number, entry.at, 1
        if entry.kind == RESERVED:
            self._reserved[number] = number, at, label
        elif entry.kind == VOIDED:
            # A void takes back what its reservation charged, in the windows of that reservation.
            number, at, label = self._reserved.get(entry.resolves or 0, (0, -1, None))
            times = -1
        counted = self._counted_as(entry, label)
        reported = self._reported[entry.priced_mechanism] if counted is not None else {}
        if counted is not None and times < 0:
            reported[counted] = max(0, reported.get(counted, 0) - entry.reports)
        moments = self._moments(number, at) if self._repairs else (at,)
        tags = self._promises(entry.priced_mechanism).tags
        for gauge, since in self._since.items():
            if not holds(gauge, entry.sub_limit, tags):
                continue
            if is_lifetime(gauge):
                windows = {name_at(gauge, 0)}
            else:
                windows = {name_at(gauge, moment) for moment in moments if moment >= since}
            for window in windows:
                self._add(entry, counted, gauge, window, times)
        if counted is not None and times > 0:
            reported[counted] = reported.get(counted, 0) + entry.reports

    def _counted_as(self, entry: Entry, label: bytes | None) -> bytes | None:
        """Return the label under which an entry's reports are counted; None if they repeat no memoised value.

        The labels of an erased user are unknown, so such reports are not counted either.
        """
        if label is not None or self._erased or entry.labelled:
            return label
        return UNLABELLED if isinstance(self._promises(entry.priced_mechanism).guarantee, Memoised) else None

    def _moments(self, number: int, at: int) -> list[int]:
        """Return the times at which a charge counts: its date, and the repairs of a clock that dated it too late."""
        return [at, *[repair.at for repair in self._repairs if repair.entry > number and repair.at < at]]

    def _add(self, entry: Entry, counted: bytes | None, gauge: str, window: str, times: int) -> None:
        if counted is not None:
            costs = self._step(entry, counted, gauge, window)
        else:
            costs = cost_in(gauge, entry, self._promises(entry.priced_mechanism))
        if window == LIFETIME:
            costs = entry.costs
        elif entry.labelled and counted is None:
            return  # the user was erased, and only the lifetime sum is kept
        self._sums[window].add(costs, times)

    def _step(self, entry: Entry, label: bytes, gauge: str, window: str) -> Costs:
        """Return the cost of an entry's memoised reports in a window, and update the window's count of their label."""
        charge, measure, reports = entry.priced_mechanism, measure_in(gauge), entry.reports
        curve = curve_of(self._promises(charge).guarantee, charge)
        broken = bool(share_in(gauge)) or any(repair.entry < entry.number for repair in self._repairs)
        done, reported = self._counts[charge, window], self._reported[charge]
        if entry.kind == VOIDED:
            done[label] = max(0, done.get(label, 0) - reports)
            over = name_at(gauge, entry.at) != window
            refund = refund_in_window(measure, curve, reported, done, label, reports, broken=broken, over=over)
            return ZERO.minus(refund)
        counts = counts_in_window(reported, done, label, broken=broken)
        done[label] = done.get(label, 0) + reports
        return cost_in_window(measure, curve, counts, label, reports)


def cost_in(gauge: str, entry: Entry, promise: Promise) -> Costs:
    """Return the cost of an entry's reports in a gauge's windows, negative for a void; they repeat no memoised value."""
    measure, part = measure_in(gauge), promise.part(gauge)
    if part is None:
        return entry.costs if measure is None else cost_under(measure, entry, promise.guarantee)
    costs = (part.costs() if measure is None else measured(part, measure)).times(entry.reports)
    return ZERO.minus(costs) if entry.kind == VOIDED else costs


def cost_under(measure: str, entry: Entry, guarantee: Guarantee) -> Costs:
    """Return the cost of an entry's reports under a measure, negative for a void; they repeat no memoised value.

    If nothing is set aside, ρ is what the entry was charged, even if a newer release computes another value.
    """
    if measure == ZCDP and not guarantee.aside() and guarantee.concentrated() is not None:
        return Costs(0, 0, entry.costs.rho, 0)
    costs = measured(guarantee, measure).times(entry.reports)
    return ZERO.minus(costs) if entry.kind == VOIDED else costs


def by_account(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Iterator[tuple[Any, ...]]]]:
    """Group the rows of histories by account."""
    return groupby(rows, key=itemgetter(3))


def promises(reading: Reading, checked: bool = True) -> Promises:
    """Return a function that returns the promise of a priced mechanism by its number, and reads each once."""
    return cache(partial(promise, reading, checked=checked))


def promise(reading: Reading, charge: int, checked: bool = True) -> Promise:
    """Return the promise of a priced mechanism by its number. Raises `LedgerError` if it was changed, and is `checked`."""
    stored = reading.priced_mechanism(charge)
    if checked:
        reading.check_charge(stored)
    return Promise.of(stored)


def curve_of(guarantee: Guarantee, charge: int) -> Memoised:
    """Return the guarantee of a priced mechanism whose entries have labels.

    Raises `ValueError` unless it is memoised.
    """
    if not isinstance(guarantee, Memoised):
        raise ValueError(f"an entry of charge {charge} has a label, and the charge is not memoised")
    return guarantee


def _found(rows: Iterator[T], name: str) -> T:
    """Return a row that another row names. Raises `LookupError`, which a reading reports as a changed ledger."""
    for row in rows:
        return row
    raise LookupError(f"{name} is missing")
