"""Replay of decisions: was each charge in the journal allowed when it was made?

The verifier of the ledger walks the accounts with their histories, and asks here for each. A charge is decided again
by integers, as the accountant decided: under the policy that was the newest of its name at that entry, with its
limits, its share, its plan and the windows of that moment, on top of what the journal says was charged before. So an
overdraft is found however it came about: sums that were changed and put back, a policy that was hidden for a while.

Not repeated is what the ledger does not hold: whether a mechanism was checked on that machine, and labels of erased
users. Their labelled reports count with their lifetime cost, and not in other windows. Entries that were copied from
another ledger, which was verified then, stand in the order of time, partition by partition: of these the newest version of a
policy and the time of reservations are not compared again.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from ..guarantees import Guarantee, Memoised, from_json
from ..guarantees.fixed_point import ZERO, Costs, add_amounts
from ..ledger.calendar import DAY_MICROS, LIFETIME, code_at, measure_in, share_in
from ..ledger.models import CLOCK, COMMITTED, EXPIRED, POLICY_SET, RESERVED, SPENT, VOIDED, Entry, Repair
from ..ledger.snapshot import Replay
from .admission import ApplicablePolicy, inadmissible, lacks_label
from .policies import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..ledger.account_sums import Past
    from ..ledger.snapshot import Price
    from .limits import Limit

    Row = tuple[Any, ...]

_NEVER = 2**63


class _Version(NamedTuple):
    """A version of a policy, between the entry that set it and the one that set the next."""

    policy: Policy
    since: int
    until: int = _NEVER


class _PlainCharge(NamedTuple):
    """A charge without label, share, plan and measures: where it is allowed, and the sums that it must stay within.

    `limits`: which of the plain gauges, and how much of which amount.
    """

    since: int
    until: int
    limits: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


class DecisionReplay:
    """Decides again what was charged in one partition, by what was set there."""

    def __init__(self, past: Past) -> None:
        self._copied, self._last = past.copied, past.last
        self._guarantees: dict[int, Guarantee] = {}
        self._promises = {charge.number: charge.guarantee for charge in past.charges}
        self._versions = _versions(past)
        # Among copied entries the repairs of one partition may stand between those of another.
        self._repairs = [
            Repair(turn.number, turn.at) for turn in past.turns if turn.kind == CLOCK and turn.number > past.copied
        ]
        gauges = {gauge for version in self._versions.values() for gauge in version.policy.gauges}
        self._gauges = sorted({LIFETIME, *past.periods, *gauges})
        self._plain_gauges = [each for each in self._gauges if not share_in(each) and measure_in(each) is None]
        self._plain_charges: dict[Row, _PlainCharge | None] = {}
        self._codes: dict[int, tuple[int, ...]] = {}

    def check(self, history: Sequence[Row]) -> Iterator[str]:
        """The entries of an account that were not allowed, in words."""
        if not self._are_plain_and_fit(history):
            yield from _AccountReplay(self).check(history)

    # -- nearly all accounts --------------------------------------------------------------------------------

    def _are_plain_and_fit(self, history: Sequence[Row]) -> bool:
        """Whether a history is one of plain charges alone, each of which fitted."""
        if self._repairs:
            return False
        sums: dict[int, Row] = {}
        for row in history:
            number = row[0]
            if number > self._last:
                break
            if row[2] != SPENT or row[11] is not None or row[17]:
                return False
            # What stands from `charge` to the amounts decides everything but when that is.
            key = row[4:11]
            found = self._plain_charges.get(key)
            if found is None:
                if key in self._plain_charges:
                    return False
                found = self._plain_charges[key] = self._plain_charge(key)
                if found is None:
                    return False
            if not found.since < number < found.until:
                return False
            amounts, codes = row[7:11], self._codes_on(row[1] // DAY_MICROS)
            for code in codes:
                sums[code] = add_amounts(sums[code], amounts) if code in sums else amounts
            for gauge, counted in found.limits:
                total = sums[codes[gauge]]
                for place, most in counted:
                    if total[place] is None or total[place] > most:
                        return False
        return True

    def _plain_charge(self, key: Row) -> _PlainCharge | None:
        """What a plain charge must meet; None where it is not as plain, or can never have been allowed."""
        charge, number, reports, *amounts = key
        version = self._versions.get(number)
        if version is None or version.policy.plan is not None or charge not in self._promises:
            return None
        guarantee = self.guarantee(charge)
        policy = version.policy
        if inadmissible(policy, guarantee, None) or _is_below(Costs._make(amounts), guarantee, reports):
            return None
        if lacks_label(policy, policy.limits, guarantee, labelled=False):
            return None
        limits = []
        for limit in policy.limits:
            if limit.measure is not None:
                return None
            limits.append((self._plain_gauges.index(limit.gauge), _counted(limit)))
        return _PlainCharge(version.since, version.until, tuple(limits))

    def _codes_on(self, day: int) -> tuple[int, ...]:
        """The windows of the plain gauges, which are the same all day."""
        codes = self._codes.get(day)
        if codes is None:
            codes = self._codes[day] = tuple([code_at(gauge, day * DAY_MICROS) for gauge in self._plain_gauges])
        return codes

    # -- what a replay of one account asks ------------------------------------------------------------------

    def guarantee(self, charge: int) -> Guarantee:
        """The guarantee of a stored charge."""
        if charge not in self._guarantees:
            self._guarantees[charge] = from_json(json.loads(self._promises[charge]))
        return self._guarantees[charge]

    def promise(self, charge: int) -> str:
        """The same as it is stored, by which the quotas of plans are counted."""
        return self._promises[charge]

    def version(self, number: int) -> _Version | None:
        """A version of a policy by its number; None where the journal does not say that it was set."""
        return self._versions.get(number)

    def prices(self, identities: set[str], before: int) -> tuple[Price, ...]:
        """(ε, δ) of plans, as they stood in the ledger before an entry."""
        found: dict[str, Price] = {}
        for policy, since, *_ in self._versions.values():
            plan = policy.plan
            if plan is not None and plan.identity in identities and since < before:
                known = found.get(plan.identity, plan.price)
                found[plan.identity] = max(known, plan.price, key=lambda price: price[0])
        return tuple(found.values())

    def empty(self, before: int) -> Replay:
        """A replay of nothing, with the repairs of the clock before an entry."""
        since = dict.fromkeys(self._gauges, -_NEVER)
        return Replay(since, self.guarantee, [repair for repair in self._repairs if repair.entry < before])

    def repairs_between(self, first: int, last: int) -> int:
        """How many repairs of the clock stand between two entries."""
        return sum(first < repair.entry < last for repair in self._repairs)

    def is_copied(self, number: int) -> bool:
        """Whether an entry came with a copy of another ledger."""
        return number <= self._copied

    def is_later(self, number: int) -> bool:
        """Whether an entry was written since the verification began."""
        return number > self._last


class _AccountReplay:
    """One account, entry by entry."""

    def __init__(self, past: DecisionReplay) -> None:
        self._past = past
        self._before: list[tuple[Entry, bytes | None]] = []
        self._sums = past.empty(0)
        self._newest = 0
        self._reservations: dict[int, tuple[Entry, bytes | None]] = {}
        self._used: Counter[tuple[str, str]] = Counter()

    def check(self, history: Sequence[Row]) -> Iterator[str]:
        """What was not allowed."""
        for row in history:
            entry, label = Entry.of(row), row[-2]
            if self._past.is_later(entry.number):
                return
            self._count_repairs(entry.number)
            if entry.kind in (SPENT, RESERVED):
                yield from self._charge(entry, label)
            elif entry.kind in (COMMITTED, VOIDED, EXPIRED):
                yield from self._end(entry)

    def _count_repairs(self, number: int) -> None:
        """Count what was dated later than a repair of the clock in the windows of that repair too."""
        if self._past.repairs_between(self._newest, number):
            self._sums = self._past.empty(number)
            for entry, label in self._before:
                self._sums.add(entry, label)
        self._newest = number

    def _add(self, entry: Entry, label: bytes | None) -> None:
        self._before.append((entry, label))
        self._sums.add(entry, label)

    # -- charges ----------------------------------------------------------------------------------------------

    def _charge(self, entry: Entry, label: bytes | None) -> Iterator[str]:
        if entry.kind == RESERVED:
            self._reservations[entry.number] = entry, label
        if self._is_too_cheap(entry, label):
            yield f"journal: entry {entry.number} charges less than its guarantee costs"
        self._add(entry, label)
        version = self._past.version(entry.policy)
        if version is None or entry.number < version.since:
            yield f"journal: entry {entry.number} charges under policy {entry.policy}, which was not set by then"
            return
        if self._is_superseded(entry, version):
            policy = version.policy
            yield (
                f"journal: entry {entry.number} charges under version {policy.version} of policy {policy.name},"
                " which was not its newest one by then"
            )
        yield from self._decide(entry, version.policy)

    def _is_superseded(self, entry: Entry, version: _Version) -> bool:
        return entry.number > version.until and not self._past.is_copied(entry.number)

    def _is_too_cheap(self, entry: Entry, label: bytes | None) -> bool:
        guarantee = self._past.guarantee(entry.priced_mechanism)
        if not entry.labelled:
            return _is_below(entry.costs, guarantee, entry.reports)
        if label is None or not isinstance(guarantee, Memoised):
            return False  # the user was erased; or it is no curve, which the sums are checked for
        done = self._sums.labels[label, entry.priced_mechanism, 0]
        return not _covers(entry.costs, guarantee.step(done, entry.reports))

    def _decide(self, entry: Entry, policy: Policy) -> Iterator[str]:
        """Hold a charge, which is added by now, against its policy."""
        where = f"journal: entry {entry.number} of account {entry.account}"
        share = next((each for each in policy.shares if each.number == entry.sub_limit), None)
        if entry.sub_limit and share is None:
            yield f"{where} is charged through share {entry.sub_limit}, which policy {policy.name} has not"
        promise = self._past.promise(entry.priced_mechanism)
        quota = None if policy.plan is None else policy.plan.count(promise)
        limits: tuple[Limit, ...] = (*policy.limits, *(() if share is None else share.limits))
        guarantee = self._past.guarantee(entry.priced_mechanism)
        why = inadmissible(policy, guarantee, quota) or lacks_label(
            policy, limits, guarantee, labelled=bool(entry.labelled)
        )
        if why:
            yield f"{where} was not allowed: {why}"
        for limit in limits:
            total = self._sums.spent_in(code_at(limit.gauge, entry.at))
            if not limit.fits(ZERO, total):
                yield f"{where} overdraws limit {limit} of policy {policy.name}, version {policy.version}"
        if policy.plan is not None and quota is not None:
            used = self._count_used(policy.plan.identity, promise, entry.reports)
            if used > quota:
                yield f"{where} exceeds a quota of the plan of policy {policy.name}: {used} of {quota}"
            others = {plan for (plan, _), count in self._used.items() if count > 0} - {policy.plan.identity}
            crowded = ApplicablePolicy(policy, limits).beside(self._past.prices(others, entry.number)).crowded
            if crowded:
                yield f"{where} was not allowed: {crowded}"

    def _count_used(self, plan: str, promise: str, reports: int) -> int:
        self._used[plan, promise] += reports
        return self._used[plan, promise]

    # -- ends of reservations -----------------------------------------------------------------------------------

    def _end(self, entry: Entry) -> Iterator[str]:
        """A reservation is ended once; in time it is committed or voided, and later it has expired."""
        reservation, label = self._reservations.pop(entry.resolves or 0, (None, None))
        if reservation is None or _identity(reservation) != _identity(entry):
            yield f"journal: entry {entry.number} ends entry {entry.resolves}, which is no such open reservation"
            self._add(entry, None)
            return
        repaired = self._past.repairs_between(reservation.number, entry.number) > 0
        is_over = repaired or (reservation.expires is not None and reservation.expires <= entry.at)
        if is_over != (entry.kind == EXPIRED) and not self._past.is_copied(entry.number):
            state = "was over" if is_over else "was not over"
            yield f"journal: entry {entry.number} is {entry.kind}, and the time of its reservation {state}"
        if not _covers(self._most_given_back(reservation, label, entry), ZERO.minus(entry.costs)):
            yield f"journal: entry {entry.number} gives back more than its reservation charged"
        self._add(entry, None)
        version = self._past.version(entry.policy)
        if entry.kind == VOIDED and version is not None and version.policy.plan is not None:
            self._count_used(version.policy.plan.identity, self._past.promise(entry.priced_mechanism), -entry.reports)

    def _most_given_back(self, reservation: Entry, label: bytes | None, entry: Entry) -> Costs:
        """How much the end of a reservation may take back from the lifetime."""
        if entry.kind != VOIDED:
            return ZERO
        guarantee = self._past.guarantee(entry.priced_mechanism)
        if label is None or not isinstance(guarantee, Memoised):
            return reservation.costs
        # The last steps of the curve go, whichever reports they were charged for.
        done = max(0, self._sums.labels[label, entry.priced_mechanism, 0] - entry.reports)
        return guarantee.step(done, entry.reports)


def _versions(past: Past) -> dict[int, _Version]:
    """The versions of policies that the journal says were set, by number."""
    stored = {policy.number: policy for policy in past.policies}
    versions: dict[int, _Version] = {}
    newest: dict[str, int] = {}
    for turn in past.turns:
        if turn.kind == POLICY_SET and turn.policy in stored:
            policy = Policy.read(stored[turn.policy].definition)
            before = newest.get(policy.name)
            if before is not None:
                versions[before] = versions[before]._replace(until=turn.number)
            newest[policy.name] = turn.policy
            versions[turn.policy] = _Version(policy, turn.number)
    return versions


def _identity(entry: Entry) -> tuple[int, ...]:
    """What the end of a reservation has of it."""
    return entry.priced_mechanism, entry.policy, entry.reports, entry.sub_limit


def _counted(limit: Limit) -> tuple[tuple[int, int], ...]:
    """The amounts that a limit counts: where they stand in `Costs`, and how much of each it admits."""
    return tuple((place, most) for place, most in enumerate(limit.capacity) if most is not None)


def _is_below(costs: Costs, guarantee: Guarantee, reports: int) -> bool:
    """Whether reports without a label were charged less than their guarantee certainly costs."""
    return not _covers(costs, guarantee.least_costs().times(reports))


def _covers(costs: Costs, least: Costs) -> bool:
    """Whether each amount is unbounded, or at least as large as another one."""
    return all(a is None or (b is not None and a >= b) for a, b in zip(costs, least, strict=True))
