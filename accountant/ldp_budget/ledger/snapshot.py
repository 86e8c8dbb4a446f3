"""One moment of a ledger, as the accounting asks about it.

What an account was charged, worked out again from its history: to fill windows, to void, and to verify.
"""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache, partial
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..errors import LedgerError, LedgerKeyMissing, UnknownName
from ..guarantees import Guarantee, Memoised, from_json
from ..guarantees.costs import ZCDP, LabelCount, cost_in_window, count_in_window, measured, refund_in_window
from ..guarantees.fixed_point import LARGEST, ZERO, Costs
from .calendar import LIFETIME, code_at, gauge_of, holds, is_lifetime, measure_in, share_in
from .hash_encryption import decrypting_view
from .models import (
    CHARGES,
    NUMBERED,
    RESERVED,
    VOIDED,
    AccountMacState,
    Entry,
    Numbered,
    PartitionHead,
    PricedMechanism,
    Repair,
    StoredPolicy,
)
from .store import FIRST_RECORD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from decimal import Decimal

    from .calendar import Clock, Moment, Window
    from .keyfile import Key, Secret
    from .models import IdempotencyRecord, StoredCollection
    from .store import N, Snapshot


_USERS_TOGETHER = 500
"""About how many users one question is asked."""
_RECORDS_TOGETHER = 5_000
"""How many stored answers are read in one moment."""

Price: TypeAlias = "tuple[Decimal, Decimal]"
"""(ε, δ) of a plan, whole."""


class Account(NamedTuple):
    """A user's account, `number` None before the first charge, and what was charged to it in each open window.

    Windows are named by their gauge, a period or a period and a measure.

    What only some requests depend on is filled in for them: whether the user was `erased`, the reports of one label
    in each window, how much of one quota was used, and for a label whether the clock was `repaired`.
    """

    number: int | None
    spent: dict[str, Costs]
    erased: bool = False
    reported: Mapping[str, int] = MappingProxyType({})
    quota_used: int = 0
    repaired: bool = False

    def label_count(self, gauge: str, window: Window) -> LabelCount:
        """The reports of the label that the next ones are charged after in a window."""
        broken = self.repaired or bool(window.share)
        return count_in_window(self.reported[LIFETIME], self.reported[gauge], broken=broken)


class Reading:
    """What one moment of the ledger says. Everything else that it holds stands in `rows`."""

    def __init__(self, rows: Snapshot, key: Key, clock: Clock, partition: int = 0, partitions: int = 1) -> None:
        self.key = key
        self.partition, self.partitions = partition, partitions
        """Which partition this is, of how many."""
        self.end, self.counters_mac = rows.end()
        """Where the journal ends, and the MAC of what was numbered beside it."""
        self.stored = rows
        """The rows as they are stored."""
        self.go_by_secret(self.end)
        self._clock = clock
        self._moment: Moment | None = None
        self._windows: dict[str, Window] | None = None

    def go_by_secret(self, end: PartitionHead) -> None:
        """Go by the secret that is in force in the partition when it ends there."""
        self.secret = secret_of(self.key, end.secret)
        self.rows = decrypting_view(self.stored, self.secret)

    @property
    def ledger_name(self) -> str:
        """The ledger as messages name it."""
        return self._clock.ledger

    # -- time ---------------------------------------------------------------------------------------------

    @property
    def moment(self) -> Moment:
        """The moment of this reading or transaction, the same throughout.

        A transaction goes by the clock; whatever only reads goes by the newest entry where the clock is not to be
        believed, unless it was told to `go_by_the_clock`.
        """
        if self._moment is None:
            self._moment = self._clock.moment_to_read(self.newest_at)
        return self._moment

    def go_by_the_clock(self) -> Moment:
        """The moment that a charge would be made at. Raises `ClockError`."""
        self._moment = self._clock.moment(self.newest_at)
        return self._moment

    @property
    def newest_at(self) -> int | None:
        """When the newest entry was written."""
        return self.end.at

    @property
    def windows(self) -> dict[str, Window]:
        """The windows that are kept and contain the moment, by gauge."""
        if self._windows is None:
            moment = self.moment
            self._windows = {period: moment.window(period) for period in self.periods()}
        return self._windows

    def periods(self) -> dict[str, int]:
        """The gauges for which windows are kept, and when the first of them starts."""
        return self.rows.periods()

    def repairs(self) -> tuple[Repair, ...]:
        """The repairs of the clock, in order."""
        return tuple(self.rows.repairs())

    def is_over(self, reservation: Entry) -> bool:
        """Whether the time of a reservation is over.

        A repair of the clock ends every one made before it, for nobody knows how old they are.
        """
        if reservation.expires is not None and reservation.expires <= self.moment.micros:
            return True
        return next(self.rows.repairs(reservation.number), None) is not None

    def noted(self, entry: int, note: str) -> tuple[object, ...]:
        """What the MAC of a note covers."""
        return "note", self.partition, entry, note

    @property
    def generation(self) -> int:
        """How often the ledger was copied on its way here."""
        return self.end.generation

    # -- one user -----------------------------------------------------------------------------------------

    def account(self, user: bytes) -> Account:
        """A user's account in the windows of the moment."""
        return self._read_accounts([user])[user]

    def accounts(self, users: Sequence[bytes]) -> dict[bytes, Account]:
        """The accounts of many users, by a few questions; it says as well who of them was erased."""
        accounts: dict[bytes, Account] = {}
        for first in range(0, len(users), _USERS_TOGETHER):
            part = [*dict.fromkeys(users[first : first + _USERS_TOGETHER])]
            accounts.update(self._read_accounts(part))
            unknown = [user for user in part if accounts[user].number is None]
            for user in self.rows.erased(unknown) if unknown else ():
                accounts[user] = accounts[user]._replace(erased=True)
        return accounts

    def is_erased(self, user: bytes) -> bool:
        """Whether a user was erased."""
        return user in self.rows.erased([user])

    def _read_accounts(self, users: list[bytes]) -> dict[bytes, Account]:
        windows = self.windows
        accounts = {user: Account(None, dict.fromkeys(windows, ZERO)) for user in users}
        for user, number, window, *rest in self.rows.accounts(users, [each.code for each in windows.values()]):
            account = accounts[user]
            if account.number is None:
                account = accounts[user] = Account(number, account.spent)
                self._see_mac(number, AccountMacState._make(rest[4:]))
            if window is not None:
                account.spent[gauge_of(window)] = Costs._make(rest[:4])
        return accounts

    def _see_mac(self, account: int, sealed: AccountMacState) -> None:
        """The MAC of an account that is being read; whoever decides by the sums checks it."""

    def number_of(self, user: bytes) -> int | None:
        """The number of a user's account; None before the first charge."""
        for row in self.rows.accounts([user], ()):
            return int(row[1])
        return None

    def idempotency_record(self, user: bytes, key: bytes) -> IdempotencyRecord | None:
        """What a user asked and was answered under an idempotency key. Raises `LedgerError` if changed."""
        stored = next(iter(self.rows.idempotency_records([user], [key])), None)
        return None if stored is None else self.checked_idempotency_record(stored)

    def checked_idempotency_record(self, stored: IdempotencyRecord) -> IdempotencyRecord:
        """A stored answer, once its MAC holds. Raises `LedgerError`."""
        if self.secret.row_mac(*stored[:-1]) != stored.row_mac:
            why = "the idempotency record of a key was changed; nothing was charged. Run: ldp-budget ledger verify"
            raise LedgerError(self.ledger_name, why)
        return stored

    def numbered(self, kind: type[N], *key: Any) -> N | None:
        """The row of a class of `NUMBERED` with these values after its number. Raises `LedgerError` if changed."""
        row = self.rows.numbered(kind, *key)
        if row is not None and self.secret.row_mac(*covered(row, self.partition)) != row.row_mac:
            table = NUMBERED[kind].name
            raise LedgerError(self.ledger_name, f"a row of {table} was changed. Run: ldp-budget ledger verify")
        return row

    def memoised_reports(self, account: int | None, label: bytes, charge: int | None, window: int) -> int:
        """How many reports of a memoised value were charged in a window."""
        return 0 if account is None or charge is None else self.rows.memoised_reports(account, label, charge, window)

    def quota_used(self, account: int | None, plan: str, promise: str) -> int:
        """How much of a plan's quota was used."""
        return 0 if account is None else self.rows.quota_used(account, plan, promise)

    def plans_used(self, account: int | None) -> list[str]:
        """The plans of which an account has used a quota."""
        return [] if account is None else list(self.rows.plans_used(account))

    def history(self, account: int, first: int = 1, most: int | None = None) -> list[tuple[Entry, bytes | None]]:
        """An account's entries from a number on, at most so many, each with its label."""
        return [(Entry.of(row), row[-2]) for row in self.rows.history(account, first, most)]

    # -- what was set -------------------------------------------------------------------------------------

    def priced_mechanism_number(self, fingerprint: str, guarantee: str, collection: str) -> int | None:
        """The number of a stored charge."""
        return self.rows.priced_mechanism_number(fingerprint, guarantee, collection)

    def priced_mechanism(self, number: int) -> PricedMechanism:
        """A stored charge by its number."""
        return next(self.rows.priced_mechanisms(number))

    def policy(self, name: str) -> StoredPolicy:
        """The newest version of a policy. Raises `UnknownName`."""
        found = self.find_policy(name)
        if found is None:
            raise UnknownName("policy", name, [policy.name for policy in self.newest_policies()])
        return found

    def find_policy(self, name: str) -> StoredPolicy | None:
        """The newest version of a policy, if there is one of that name."""
        return self.rows.policy(name)

    def newest_policies(self) -> list[StoredPolicy]:
        """The newest version of every policy, by name."""
        newest = {policy.name: policy for policy in self.rows.policies()}
        return [newest[name] for name in sorted(newest)]

    def collection(self, name: str) -> StoredCollection | None:
        """A collection, once its MAC holds. Raises `LedgerError`."""
        stored = self.rows.collection(name)
        return None if stored is None else self._checked_collection(stored)

    def collections(self) -> list[StoredCollection]:
        """All collections by name, once their MACs hold. Raises `LedgerError`."""
        return [self._checked_collection(stored) for stored in self.rows.collections()]

    def _checked_collection(self, stored: StoredCollection) -> StoredCollection:
        if self.secret.row_mac(*stored[:-1]) != stored.row_mac:
            why = f"collection {stored.name} was changed. Run: ldp-budget ledger verify"
            raise LedgerError(self.ledger_name, why)
        return stored

    def policy_version(self, number: int) -> StoredPolicy:
        """One version of a policy, by its number."""
        return next(self.rows.policies(number))


def covered(row: Numbered, partition: int) -> tuple[object, ...]:
    """Return what the MAC of a row of `NUMBERED` covers: its table, its partition, and all other columns.

    The numbers of a partition begin at 1, so without the partition two rows of the same number could be exchanged.
    """
    return NUMBERED[type(row)].name, partition, *row[:-1]


def secret_of(key: Key, number: int) -> Secret:
    """A secret that is known, as who opened the transaction has seen to. Raises `LedgerKeyMissing`."""
    secret = key.at(number)
    if secret is None:
        raise LedgerKeyMissing("of this key", number)
    return secret


def idempotency_records_in_parts(
    open_reading: Callable[[], AbstractContextManager[Reading]],
) -> Iterator[tuple[Reading, Iterable[IdempotencyRecord]]]:
    """The stored answers in parts, each with a reading of its own, so that no moment is held for long.

    What is erased meanwhile can come twice, or not at all: a hole takes the place of such an answer.
    """
    following: int | None = FIRST_RECORD
    while following is not None:
        with open_reading() as reading:
            part, following = reading.rows.idempotency_records_after(following, _RECORDS_TOGETHER)
            yield reading, part


def parts(last: int, size: int) -> Iterator[tuple[int, int]]:
    """The numbers from 1 to `last` in parts, each for a reading of its own: the first and the last of each."""
    return ((first, min(last, first + size - 1)) for first in range(1, last + 1, size))


if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    pass

    Promises = Callable[[int], Guarantee]
    """The guarantee of a charge by its number."""

_LIFETIME_WINDOW = 0


class _Sum:
    """An exact sum of costs: unbounded ones are counted, and no number is too large."""

    __slots__ = ("_known", "_unbounded")

    def __init__(self) -> None:
        self._known = [0, 0, 0, 0]
        self._unbounded = [0, 0, 0, 0]

    def add(self, costs: Costs, times: int) -> None:
        """Add costs; `times` is -1 where they are given back, and then negative already, as far as they are known."""
        for place, amount in enumerate(costs):
            if amount is None:
                self._unbounded[place] += times
            else:
                self._known[place] += amount

    def copy(self) -> _Sum:
        """One that goes on from here by itself."""
        other = _Sum()
        other._known, other._unbounded = [*self._known], [*self._unbounded]
        return other

    def costs(self) -> Costs:
        """The sum as an account keeps it: None where it is unbounded, or too large to count."""
        pairs = zip(self._known, self._unbounded, strict=True)
        return Costs(*[None if unbounded or known > LARGEST else known for known, unbounded in pairs])


class Replay:
    """The charges of one account that were not voided, added up in the windows of some gauges.

    `since`: each gauge and where its first window starts. `labels` count reports by label, charge and window.

    A charge counts in the windows of the time it is dated, and at each later one of the `repairs` of the clock that
    is before that time in the windows of the repair as well: by then it was made, whatever it is dated. So a repair
    refills no window, and what was charged under a wrong clock counts more often rather than less.

    An account with labels is replayed from the first entry on: what labelled reports cost depends on all before them.
    """

    def __init__(self, since: dict[str, int], promises: Promises, repairs: Sequence[Repair]) -> None:
        self._since = since
        self._promises = promises
        self._repairs = repairs
        self._reserved: dict[int, tuple[int, int, bytes | None]] = {}
        self._sums: dict[int, _Sum] = defaultdict(_Sum)
        self.labels: dict[tuple[bytes, int, int], int] = defaultdict(int)
        self._reported: dict[tuple[bytes, int], int] = defaultdict(int)

    def copy(self) -> Replay:
        """One that goes on from here by itself."""
        other = Replay(self._since, self._promises, self._repairs)
        other._reserved.update(self._reserved)
        other._sums.update((window, total.copy()) for window, total in self._sums.items())
        other.labels.update(self.labels)
        other._reported.update(self._reported)
        return other

    @property
    def sums(self) -> dict[int, Costs]:
        """What was charged in each window."""
        return {window: total.costs() for window, total in self._sums.items()}

    def spent_in(self, window: int) -> Costs:
        """What was charged in one window."""
        return self._sums[window].costs() if window in self._sums else ZERO

    def add(self, entry: Entry, label: bytes | None) -> None:
        """Add the account's next entry; what charges nothing and gives nothing back adds nothing."""
        if entry.kind not in CHARGES:
            return
        number, at, times = entry.number, entry.at, 1
        if entry.kind == RESERVED:
            self._reserved[number] = number, at, label
        elif entry.kind == VOIDED:
            # A void takes back what its reservation charged, in the windows of that reservation.
            number, at, label = self._reserved.get(entry.resolves or 0, (0, -1, None))
            times = -1
        if label is not None:
            self._reported[label, entry.priced_mechanism] += times * entry.reports
        moments = self._moments(number, at) if self._repairs else (at,)
        for gauge, since in self._since.items():
            if not holds(gauge, entry.sub_limit):
                continue
            if is_lifetime(gauge):
                windows = {code_at(gauge, 0)}
            else:
                windows = {code_at(gauge, moment) for moment in moments if moment >= since}
            for window in windows:
                self._add(entry, label, gauge, window, times)

    def _moments(self, number: int, at: int) -> list[int]:
        """When a charge counts: where it is dated, and at the repairs of a clock that had dated it too late."""
        return [at, *[repair.at for repair in self._repairs if repair.entry > number and repair.at < at]]

    def _add(self, entry: Entry, label: bytes | None, gauge: str, window: int, times: int) -> None:
        measure = measure_in(gauge)
        if label is not None:
            costs = self._step(entry, label, gauge, window)
        else:
            costs = (
                entry.costs if measure is None else cost_under(measure, entry, self._promises(entry.priced_mechanism))
            )
        if window == _LIFETIME_WINDOW:
            costs = entry.costs
        elif entry.labelled and label is None:
            return  # the user was erased, and only the lifetime is kept
        self._sums[window].add(costs, times)

    def _step(self, entry: Entry, label: bytes, gauge: str, window: int) -> Costs:
        """What a labelled entry costs in a window, whose count of the label it changes."""
        key, measure, reports = (label, entry.priced_mechanism, window), measure_in(gauge), entry.reports
        curve = curve_of(self._promises(entry.priced_mechanism), entry.priced_mechanism)
        broken = bool(share_in(gauge)) or any(repair.entry < entry.number for repair in self._repairs)
        done, reported = self.labels[key], self._reported[label, entry.priced_mechanism]
        if entry.kind == VOIDED:
            self.labels[key] = done = done - reports
            over = code_at(gauge, entry.at) != window
            return ZERO.minus(refund_in_window(measure, curve, reported, done, reports, broken=broken, over=over))
        self.labels[key] += reports
        return cost_in_window(measure, curve, count_in_window(reported - reports, done, broken=broken), reports)


def cost_under(measure: str, entry: Entry, guarantee: Guarantee) -> Costs:
    """What the reports of an entry cost under a measure, negative for a void; they repeat no memoised value.

    Where nothing is set aside, ρ is what the entry was charged, whatever a newer release works out.
    """
    if measure == ZCDP and not guarantee.aside() and guarantee.concentrated() is not None:
        return Costs(0, 0, entry.costs.rho, 0)
    costs = measured(guarantee, measure).times(entry.reports)
    return ZERO.minus(costs) if entry.kind == VOIDED else costs


def by_account(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[int, Iterator[tuple[Any, ...]]]]:
    """Rows of histories, account by account."""
    return groupby(rows, key=itemgetter(3))


def promises(reading: Reading) -> Promises:
    """The guarantee of a charge by its number, each read once."""
    return cache(partial(promise, reading))


def promise(reading: Reading, charge: int) -> Guarantee:
    """The guarantee of a charge by its number."""
    return from_json(json.loads(reading.priced_mechanism(charge).guarantee))


def curve_of(guarantee: Guarantee, charge: int) -> Memoised:
    """The guarantee of a charge whose entries have labels. Raises `ValueError` unless it is memoised."""
    if not isinstance(guarantee, Memoised):
        raise ValueError(f"an entry of charge {charge} has a label, and the charge is not memoised")
    return guarantee
