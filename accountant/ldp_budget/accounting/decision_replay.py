"""Replay of decisions: checks that every charge in the journal was allowed when it was made.

The verification of a ledger walks over the accounts with their histories and calls this module for each. A charge is
decided again with integers, as the accountant decided it. The replay uses the newest version of the policy at that
entry: its limits, its sub-limit and its plan. It uses the windows of that moment. It counts the earlier charges of
the journal. So it finds every overdraft, also after sums were changed and restored, or a policy was hidden for a
while.

Two things are not replayed, because the ledger does not store them: if a mechanism was checked on that machine, and
the labels of erased users. Labeled reports of erased users count with their lifetime cost, and not in other windows;
for reports without a label beside them, only their least cost is known.

Entries that were copied from another ledger were verified before the copy. They are ordered by time, partition by
partition. So two checks are left out for them: the newest version of a policy, and the time of reservations.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from ..guarantees import Guarantee, Memoised
from ..guarantees.fixed_point import ZERO, Costs, add_amounts
from ..guarantees.memoised_costs import UNLABELLED, cost_in_window, counts_in_window
from ..ledger.calendar import LIFETIME, ByWindows, Moment, holds, is_sliding, measure_in, name_at, share_in
from ..ledger.models import (
    CHARGES,
    CLOCK,
    COMMITTED,
    EXPIRED,
    POLICY_SET,
    RESERVED,
    SPENT,
    VOIDED,
    Entry,
    EntryProblem,
    Repair,
)
from ..ledger.snapshot import Promise, Replay
from .admission import ApplicablePolicy, inadmissible, repeats_unknown_draws
from .policies import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..ledger.account_sums import Past
    from ..ledger.snapshot import Price

    Row = tuple[Any, ...]

_NEVER = 2**63


class _Version(NamedTuple):
    """A version of a policy, with the entry that set it and the entry that set the next version."""

    policy: Policy
    since: int
    until: int = _NEVER


class _PlainCharge(NamedTuple):
    """A charge without label, sub-limit, plan and measures: the entries between which it is allowed, and its limits.

    `names_at` returns the windows of the plain gauges in which it counts at a moment. `limits` has the index of a gauge
    among them, with the largest permitted sum of each amount.
    """

    since: int
    until: int
    limits: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    names_at: ByWindows[tuple[str, ...]]


class DecisionReplay:
    """Replays the decisions of one partition, under the policies that were set there."""

    def __init__(self, past: Past) -> None:
        self._copied, self._last = past.copied, past.last
        self._charges = {charge.number: charge for charge in past.charges}
        self._known: dict[int, Promise] = {}
        self._versions = _versions(past)
        # Among copied entries, the repairs of one partition can be mixed with those of another.
        self._repairs = [
            Repair(turn.number, turn.at) for turn in past.turns if turn.kind == CLOCK and turn.number > past.copied
        ]
        gauges = {gauge for version in self._versions.values() for gauge in version.policy.gauges}
        self._gauges = sorted({LIFETIME, *past.periods, *gauges})
        self._plain_gauges = [each for each in self._gauges if not share_in(each) and measure_in(each) is None]
        self._plain_charges: dict[Row, _PlainCharge | None] = {}
        # By tags, the plain gauges that count such charges, and their windows at a moment.
        self._counting: dict[tuple[str, ...], tuple[list[str], ByWindows[tuple[str, ...]]]] = {}

    def check(self, history: Sequence[Row]) -> Iterator[str]:
        """Yield the entries of an account that were not allowed, in words."""
        if not self._are_plain_and_fit(history):
            yield from _AccountReplay(self).check(history)

    # -- nearly all accounts --------------------------------------------------------------------------------

    def _are_plain_and_fit(self, history: Sequence[Row]) -> bool:
        """True if a history has only plain charges, and each of them was allowed."""
        if self._repairs:
            return False
        sums: dict[str, Row] = {}
        for row in history:
            number = row[0]
            if number > self._last:
                break
            if row[2] != SPENT or row[11] is not None or row[17]:
                return False
            # The columns from `charge` to the amounts decide everything except the time.
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
            amounts, names = row[7:11], found.names_at(row[1])
            for name in names:
                sums[name] = add_amounts(sums[name], amounts) if name in sums else amounts
            for gauge, counted in found.limits:
                total = sums[names[gauge]]
                for place, most in counted:
                    if total[place] is None or total[place] > most:
                        return False
        return True

    def _plain_charge(self, key: Row) -> _PlainCharge | None:
        """Return the conditions of a plain charge; None if it is not plain, or can never have been allowed."""
        charge, number, reports, *amounts = key
        version = self._versions.get(number)
        if version is None or version.policy.plan is not None or charge not in self._charges:
            return None
        guarantee = self.guarantee(charge)
        policy = version.policy
        if inadmissible(policy, guarantee, None) or _is_below(Costs._make(amounts), guarantee, reports):
            return None
        if isinstance(guarantee, Memoised) or repeats_unknown_draws(policy, policy.limits, guarantee):
            return None  # the cost of memoised reports depends on all before
        limits, tags = [], self.known(charge).tags
        if self.known(charge).parts:
            return None
        gauges, names_at = self._counted(tags)
        for limit in policy.limits_for(None, tags):
            if limit.measure is not None or is_sliding(limit.gauge):
                return None
            limits.append((gauges.index(limit.gauge), limit.counted))
        return _PlainCharge(version.since, version.until, tuple(limits), names_at)

    def _counted(self, tags: tuple[str, ...]) -> tuple[list[str], ByWindows[tuple[str, ...]]]:
        """Return the plain gauges that count charges with these tags, and a function that names their windows."""
        if tags not in self._counting:
            gauges = [gauge for gauge in self._plain_gauges if holds(gauge, 0, tags)]
            names_at = ByWindows(gauges, lambda at: tuple([name_at(gauge, at) for gauge in gauges]))
            self._counting[tags] = gauges, names_at
        return self._counting[tags]

    # -- what a replay of one account asks ------------------------------------------------------------------

    def guarantee(self, charge: int) -> Guarantee:
        """Return the guarantee of a priced mechanism."""
        return self.known(charge).guarantee

    def known(self, charge: int) -> Promise:
        """Return the promise of a priced mechanism."""
        if charge not in self._known:
            self._known[charge] = Promise.of(self._charges[charge])
        return self._known[charge]

    def promise(self, charge: int) -> str:
        """Return the guarantee as stored text, by which the quotas of plans are counted."""
        return self._charges[charge].guarantee

    def version(self, number: int) -> _Version | None:
        """Return a version of a policy by its number; None if no journal entry set it."""
        return self._versions.get(number)

    def newest(self, name: str, before: int) -> Policy | None:
        """Return the newest version of a policy before an entry."""
        set_then = [each for each in self._versions.values() if each.policy.name == name and each.since < before]
        return max(set_then, key=lambda each: each.since).policy if set_then else None

    def prices(self, identities: set[str], before: int) -> tuple[Price, ...]:
        """Return (ε, δ) of plans, as they were in the ledger before an entry."""
        found: dict[str, Price] = {}
        for policy, since, *_ in self._versions.values():
            plan = policy.plan
            if plan is not None and plan.identity in identities and since < before:
                known = found.get(plan.identity, plan.price)
                found[plan.identity] = max(known, plan.price, key=lambda price: price[0])
        return tuple(found.values())

    def empty(self, before: int) -> Replay:
        """Return an empty replay, with the clock repairs before an entry."""
        since = dict.fromkeys(self._gauges, -_NEVER)
        return Replay(since, self.known, [repair for repair in self._repairs if repair.entry < before])

    def repairs_between(self, first: int, last: int) -> int:
        """Return the number of clock repairs between two entries."""
        return sum(first < repair.entry < last for repair in self._repairs)

    def is_copied(self, number: int) -> bool:
        """True if an entry was copied from another ledger."""
        return number <= self._copied

    def is_later(self, number: int) -> bool:
        """True if an entry was written after the verification began."""
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
        # The priced mechanisms with labels that were erased, and the ε charged for each memoising one.
        self._unknown: set[int] = set()
        self._charged: Counter[int] = Counter()

    def check(self, history: Sequence[Row]) -> Iterator[str]:
        """Yield the entries that were not allowed, in words."""
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
        """After a clock repair, count entries that are dated later than the repair in its windows too."""
        if self._past.repairs_between(self._newest, number):
            self._sums = self._past.empty(number)
            for entry, label in self._before:
                self._sums.add(entry, label)
        self._newest = number

    def _add(self, entry: Entry, label: bytes | None) -> None:
        self._before.append((entry, label))
        self._sums.add(entry, label)
        if entry.kind in CHARGES:
            self._charged[entry.priced_mechanism] += entry.costs.epsilon or 0
            if entry.labelled and label is None and entry.kind != VOIDED:
                self._unknown.add(entry.priced_mechanism)

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
            after = (
                f" charges under version {policy.version} of policy {policy.name},"
                " which was not its newest one by then"
            )
            problem = EntryProblem("journal: entry ", [entry.number], after, "version")
            yield problem if self._fits_newest(entry, policy.name) else str(problem)
        yield from self._decide(entry, version.policy)

    def _is_superseded(self, entry: Entry, version: _Version) -> bool:
        return entry.number > version.until and not self._past.is_copied(entry.number)

    def _fits_newest(self, entry: Entry, name: str) -> bool:
        """True if the newest version of a policy at an entry, one without a plan, admits it too."""
        newest = self._past.newest(name, entry.number)
        return newest is not None and newest.plan is None and not [*self._decide(entry, newest)]

    def _is_too_cheap(self, entry: Entry, label: bytes | None) -> bool:
        guarantee = self._past.guarantee(entry.priced_mechanism)
        if not isinstance(guarantee, Memoised):
            # A label without a cost curve is reported by the check of the sums.
            return not entry.labelled and _is_below(entry.costs, guarantee, entry.reports)
        if entry.labelled and label is None:
            return False  # user erased
        if entry.priced_mechanism in self._unknown:
            return not _covers(entry.costs, self._least_added(entry, guarantee))
        reported = self._sums.reported(entry.priced_mechanism)
        return not _covers(entry.costs, _cost_after(guarantee, reported, label or UNLABELLED, entry.reports))

    def _least_added(self, entry: Entry, guarantee: Memoised) -> Costs:
        """Return the least ε of reports without a label, where the labels of other reports were erased.

        All reports together were charged the cap over all values, or each of these the most that one adds.
        """
        added = entry.reports * guarantee.added_units
        if guarantee.values is None:
            return ZERO._replace(epsilon=added)
        room = guarantee.values * guarantee.cap_units - self._charged[entry.priced_mechanism]
        return ZERO._replace(epsilon=max(0, min(added, room)))

    def _decide(self, entry: Entry, policy: Policy) -> Iterator[str]:
        """Check a charge, which is already added to the sums, against its policy."""
        where = f"journal: entry {entry.number} of account {entry.account}"
        share = next((each for each in policy.shares if each.number == entry.sub_limit), None)
        if entry.sub_limit and share is None:
            after = f" of account {entry.account} is charged through share {entry.sub_limit}"
            after += f", which policy {policy.name} has not"
            yield EntryProblem("journal: entry ", [entry.number], after, "share")
        promise = self._past.promise(entry.priced_mechanism)
        quota = None if policy.plan is None else policy.plan.count(promise)
        tags = self._past.known(entry.priced_mechanism).tags
        limits = policy.limits_for(None if share is None else share.name, tags)
        guarantee = self._past.guarantee(entry.priced_mechanism)
        why = inadmissible(policy, guarantee, quota) or repeats_unknown_draws(policy, limits, guarantee)
        if why:
            yield f"{where} was not allowed: {why}"
        for limit in limits:
            total = self._sums.total(Moment(None, entry.at).window(limit.gauge))
            if not limit.fits(ZERO, total):
                yield f"{where} overdraws limit {limit} of policy {policy.name}, version {policy.version}"
        if policy.plan is not None and quota is not None:
            used = self._count_used(policy.plan.identity, promise, entry.reports)
            if used > quota:
                yield f"{where} exceeds a quota of the plan of policy {policy.name}: {used} of {quota}"
            others = {plan for (plan, _), count in self._used.items() if count > 0} - {policy.plan.identity}
            crowded = (
                ApplicablePolicy(policy, limits).with_other_plans(self._past.prices(others, entry.number)).crowded
            )
            if crowded:
                yield f"{where} was not allowed: {crowded}"

    def _count_used(self, plan: str, promise: str, reports: int) -> int:
        self._used[plan, promise] += reports
        return self._used[plan, promise]

    # -- ends of reservations -----------------------------------------------------------------------------------

    def _end(self, entry: Entry) -> Iterator[str]:
        """Check the end of a reservation: once only; in time a commit or a void, later an expiry."""
        reservation, label = self._reservations.pop(entry.resolves or 0, (None, None))
        if reservation is None or _identity(reservation) != _identity(entry):
            yield f"journal: entry {entry.number} ends entry {entry.resolves}, which is not an open reservation"
            self._add(entry, None)
            return
        repaired = self._past.repairs_between(reservation.number, entry.number) > 0
        is_over = repaired or (reservation.expires is not None and reservation.expires <= entry.at)
        if is_over != (entry.kind == EXPIRED) and not self._past.is_copied(entry.number):
            state = "was over" if is_over else "was not over"
            after = f" is {entry.kind}, and the time of its reservation {state}"
            problem = EntryProblem("journal: entry ", [entry.number], after, "end")
            # A void gives budget back, although the report may have been sent.
            yield str(problem) if entry.kind == VOIDED else problem
        if not _covers(self._most_given_back(reservation, label, entry), ZERO.minus(entry.costs)):
            yield f"journal: entry {entry.number} gives back more than its reservation charged"
        self._add(entry, None)
        version = self._past.version(entry.policy)
        if entry.kind == VOIDED and version is not None and version.policy.plan is not None:
            self._count_used(version.policy.plan.identity, self._past.promise(entry.priced_mechanism), -entry.reports)

    def _most_given_back(self, reservation: Entry, label: bytes | None, entry: Entry) -> Costs:
        """Return the largest lifetime cost that the end of a reservation may reverse."""
        if entry.kind != VOIDED:
            return ZERO
        guarantee = self._past.guarantee(entry.priced_mechanism)
        if not isinstance(guarantee, Memoised):
            return reservation.costs
        if (entry.labelled and label is None) or entry.priced_mechanism in self._unknown:
            return reservation.costs  # user erased
        # What the remaining reports would be charged stays.
        counted, reported = label or UNLABELLED, dict(self._sums.reported(entry.priced_mechanism))
        reported[counted] = max(0, reported.get(counted, 0) - entry.reports)
        return _cost_after(guarantee, reported, counted, entry.reports)


def _versions(past: Past) -> dict[int, _Version]:
    """Return the versions of policies that the journal set, by number."""
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
    """Return the fields that the end of a reservation has in common with it."""
    return entry.priced_mechanism, entry.policy, entry.reports, entry.sub_limit


def _cost_after(guarantee: Memoised, reported: Mapping[bytes, int], label: bytes, reports: int) -> Costs:
    """Return the lifetime cost of more reports of a label, after those `reported`."""
    counts = counts_in_window(reported, reported, label, broken=False)
    return cost_in_window(None, guarantee, counts, label, reports)


def _is_below(costs: Costs, guarantee: Guarantee, reports: int) -> bool:
    """True if reports without a label were charged less than the least cost of their guarantee."""
    return not _covers(costs, guarantee.least_costs().times(reports))


def _covers(costs: Costs, least: Costs) -> bool:
    """True if each amount is unbounded or at least as large as the other one."""
    return all(a is None or (b is not None and a >= b) for a, b in zip(costs, least, strict=True))
