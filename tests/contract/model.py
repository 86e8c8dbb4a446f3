"""A ledger in plain Python, and a state machine that compares a real one with it step by step.

The model keeps every charge and adds up from scratch: no running sums, no windows opened or filled, no SQL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule

from contract.acts import made, promising
from contract.places import Place
from contract.rotation import exchange
from ldp_budget import Accountant, InvalidParameter, KeyConflict, Limit
from ldp_budget.accounting.plans import Plan
from ldp_budget.errors import ReservationConflict
from ldp_budget.guarantees import (
    SAME_CHANGE_PATTERN,
    Approximate,
    Gaussian,
    Guarantee,
    Memoised,
    Pure,
    ZeroConcentrated,
)
from ldp_budget.guarantees.fixed_point import ZERO, Costs, decimal

START = datetime(2026, 11, 21, 12, tzinfo=UTC)

TENTH, CURVE = Pure("0.1"), Memoised(("0.3", "0.5", "0.6"), "0.65")
FEW = Memoised(("0.2", "0.5"), "0.6", 2)
PATTERN = Memoised(("0.2", "0.35"), "0.5", None, SAME_CHANGE_PATTERN)
SLACK = Approximate("0.3", "1e-7")
# What is drawn more often stands here more often.
GUARANTEES: tuple[Guarantee, ...] = (
    *(TENTH, CURVE) * 3,
    *(PATTERN, SLACK, Pure("0.7"), FEW, FEW),
    *(ZeroConcentrated("0.02"), Gaussian("0.3", "0.6", "1e-8")),
)
MECHANISMS = {guarantee: promising(guarantee) for guarantee in GUARANTEES}
USERS = ("alice", "bob")
LABELS = ("home", "work")
NAMES = ("default", "default", "other", "planned", "planned", "second")
SHARES = ("a", "b")
ONE, TWO = "attribute:one", "purpose:two"
TAGS: tuple[tuple[str, ...], ...] = ((), (), (ONE,), (TWO,), (ONE, TWO), ("attribute:three",))


@cache
def plans() -> tuple[Plan | None, ...]:
    return (None, Plan(((TENTH, 3), (CURVE, 2)), Decimal("1e-6")), Plan(((TENTH, 2), (SLACK, 2)), Decimal("1e-6")))


@dataclass(frozen=True)
class Terms:
    """A policy as a caller sets it."""

    limits: tuple[str, ...]
    unbounded: bool = False
    relation: str | None = None
    plan: int = 0
    shares: tuple[tuple[str, tuple[str, ...]], ...] = ()
    zone: str = "UTC"

    def window_of(self, limit: Limit) -> str:
        """Return the period of a limit with its zone, as `same_window` reads it."""
        return f"{limit.period}@{self.zone}"

    def parsed(self) -> list[Limit]:
        return [parsed(limit) for limit in self.limits]

    def of_share(self, share: str | None) -> list[Limit] | None:
        """Return the limits of a share, or None if the share is unknown."""
        return next(([parsed(limit) for limit in limits] for name, limits in self.shares if name == share), None)


parsed = cache(Limit.parse)


def terms_of(limit: Limit) -> tuple[str, str, Decimal]:
    """Return what may not change once a limit was charged: its rule and its δ."""
    return limit.label, limit.rule, limit.delta


def counts_in(scope: str, tags: tuple[str, ...]) -> bool:
    """True if a limit of a scope counts a charge with these tags."""
    return not scope or not tags or scope in tags


@cache
def costs_of(guarantee: Guarantee) -> Costs:
    return guarantee.costs()


SHARE_OF_B = ("b", ("lifetime=1.7,4e-7", "day=1.2,4e-7"))
MENU = {
    "default": (
        Terms(("lifetime=9,1e-6",)),
        Terms(("lifetime=7,1e-6", "day=3,1e-6")),
        Terms(("lifetime=7,1e-6", "day=3,1e-6"), shares=(("a", ("lifetime=2,4e-7",)), ("b", ("day=1.2,4e-7",)))),
        Terms(("lifetime=9,1e-6", "day=4,1e-6"), shares=(("a", ("lifetime=3,4e-7", "day=1.5,1e-7")), SHARE_OF_B)),
        Terms(("lifetime=9,1e-6,zcdp",), shares=(("b", ("lifetime=2,1e-6,zcdp",)),)),
        Terms(("lifetime=9,1e-6", "week=3,1e-6")),
        Terms(("day=2,3e-7", "month=5,1e-6"), unbounded=True),
        Terms(("lifetime=7,1e-6", "lifetime=9,1e-6,zcdp", "day=5,1e-6,gdp")),
        Terms(("lifetime=15,1e-6,zcdp",)),
        Terms(("lifetime=7,1e-6", "day=3,1e-6"), zone="Asia/Seoul"),
        Terms(("lifetime=7,1e-6", "day=3,1e-6"), shares=(SHARE_OF_B,), zone="America/New_York"),
        Terms(("lifetime=9,1e-6", "week=3,1e-6", "month=5,1e-6"), zone="Asia/Seoul"),
        Terms(("lifetime=4,1e-6",), relation="any"),
        Terms(("lifetime=9,1e-6", f"{ONE}:lifetime=3,1e-6", f"{TWO}:day=1.5,4e-7")),
        Terms(("lifetime=9,1e-6", f"{TWO}:week=3,1e-6", f"{TWO}:lifetime=5,1e-6,zcdp"), zone="Asia/Seoul"),
        Terms(
            ("lifetime=9,1e-6", f"{ONE}:lifetime=4,1e-6", f"{ONE}:day=3,1e-6"),
            shares=(("a", ("lifetime=3,4e-7", f"{ONE}:lifetime=2,4e-7")), ("b", (f"{ONE}:day=1.2,4e-7",))),
        ),
    ),
    "other": (
        Terms(("lifetime=9,1e-6", "day=3,1e-6,zcdp"), relation="any"),
        Terms(("lifetime=9,1e-6",), shares=(("a", ("lifetime=1.5,4e-7",)), ("b", ("lifetime=7.5,4e-7",)))),
        Terms(("month=20,1e-5,gdp",), unbounded=True),
        Terms(("week=5,0.5",), unbounded=True),
    ),
    "planned": (
        Terms((), plan=1),
        Terms((), plan=2),
        Terms(("lifetime=2,1e-3",), plan=1),
        Terms(("lifetime=1.8,1e-3",), plan=2),
        Terms(("lifetime=9,1e-3",), plan=2),
        Terms(("lifetime=90,1e-3",), plan=1),
        Terms(("lifetime=2,1e-3",)),
    ),
    "second": (Terms((), plan=2), Terms(("lifetime=90,1e-3",), plan=2), Terms(("lifetime=2.3,1e-3",), plan=1)),
}


@dataclass
class Charged:
    """Reports that a user was charged."""

    user: str
    at: datetime
    guarantee: Guarantee
    reports: int
    label: str | None
    plan: int
    expires: datetime | None = None
    state: str = "spent"
    share: str | None = None
    entry: Labelled | None = None
    tags: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        return self.state != "voided"


@dataclass
class Model:
    """The expected state of a ledger."""

    now: datetime = START
    newest: datetime = START
    versions: dict[str, list[tuple[Terms, bool]]] = field(default_factory=dict)
    charges: list[Charged] = field(default_factory=list)
    labelled: list[Labelled] = field(default_factory=list)
    erased: set[str] = field(default_factory=set)

    # -- time ---------------------------------------------------------------------------------------------

    @property
    def moment(self) -> datetime:
        return max(self.now, self.newest)

    # -- sums ---------------------------------------------------------------------------------------------

    def spent(self, user: str, period: str, moment: datetime, share: str | None = None, scope: str = "") -> Costs:
        """Return the charge of a user in the window of `period` that contains `moment`: curves by label, the rest added.

        With a share, only what was charged through that; with a scope, what has its tag, or no tags.
        """
        mine = [c for c in self.charges if c.user == user and same_window(period, c.at, moment)]
        mine = [c for c in mine if counts_in(scope, c.tags)]
        mine = [c for c in mine if share in (None, c.share)]
        total = labelled_sum([each for each in self.labelled if each.value[0] == user], period, moment, share)
        for charge in mine:
            if not isinstance(charge.guarantee, Memoised):
                total = total.plus(costs_of(charge.guarantee).times(charge.reports) if charge.counts else ZERO)
        return total

    def cost(
        self, user: str, guarantee: Guarantee, reports: int, label: str | None, period: str, share: str | None = None
    ) -> Costs:
        """Return the cost of more reports in a user's current window, or in that of a share."""
        if not isinstance(guarantee, Memoised):
            return costs_of(guarantee).times(reports)
        mine = [each for each in self.labelled if each.value[0] == user]
        more = Labelled((user, label, guarantee), reports, self.moment, share=share)
        sums = [labelled_sum(each, period, self.moment, share) for each in ([*mine, more], mine)]
        return sums[0].minus(sums[1])

    # -- decisions ----------------------------------------------------------------------------------------

    def terms(self, policy: str) -> Terms:
        return self.versions[policy][-1][0]

    def fits(
        self,
        user: str,
        guarantee: Guarantee,
        reports: int,
        label: str | None,
        policy: str,
        share: str | None = None,
        tags: tuple[str, ...] = (),
    ) -> bool:
        terms = self.terms(policy)
        mine = [] if share is None else terms.of_share(share)
        if mine is None:
            return False
        if user in self.erased or (terms.relation == "any" and guarantee.relation != "any inputs"):
            return False
        if terms.plan and (
            self.quota_left(user, guarantee, terms.plan) < reports
            or not fit_together({terms.plan, *self.plans_used(user)}, terms)
        ):
            return False
        held = [*((limit, None) for limit in terms.parsed()), *((limit, share) for limit in mine)]
        return all(
            within(self.spent(user, terms.window_of(limit), self.moment, of, limit.scope), cost, limit.capacity)
            for limit, of in held
            if counts_in(limit.scope, tags)
            for cost in [self.cost(user, guarantee, reports, label, terms.window_of(limit), of)]
        )

    def plans_used(self, user: str) -> set[int]:
        return {c.plan for c in self.charges if (c.user, c.counts) == (user, True)} - {0}

    def quota_left(self, user: str, guarantee: Guarantee, plan: int) -> int:
        used = sum(
            c.reports
            for c in self.charges
            if (c.user, c.guarantee, c.plan, c.counts) == (user, guarantee, plan, True)
        )
        admitted = plans()[plan]
        assert admitted is not None
        return admitted.counts.get(guarantee, 0) - used

    def charge(
        self,
        user: str,
        guarantee: Guarantee,
        reports: int,
        label: str | None,
        policy: str,
        expires: int | None = None,
        share: str | None = None,
        tags: tuple[str, ...] = (),
    ) -> Charged:
        """Charge what fits."""
        terms, _ = self.versions[policy][-1]
        self.versions[policy][-1] = (terms, True)
        labelled = label if isinstance(guarantee, Memoised) else None
        charge = Charged(user, self.moment, guarantee, reports, labelled, terms.plan, share=share, tags=tags)
        if expires is not None:
            charge.state, charge.expires = "reserved", self.moment + timedelta(seconds=expires)
        self.charges.append(charge)
        if isinstance(guarantee, Memoised):
            self.labelled.append(Labelled((user, label, guarantee), reports, self.moment, share=share))
            charge.entry = self.labelled[-1]
        self.newest = self.moment
        return charge

    def may_follow(self, policy: str, terms: Terms) -> bool:
        """True if a policy may be set so: charged limits keep rule and δ, and all plans fit the lifetime limit."""
        charged = [earlier for earlier, was_charged in self.versions.get(policy, []) if was_charged]
        new = {terms_of(limit) for limit in terms.parsed()}
        for limit in (limit for earlier in charged for limit in earlier.parsed()):
            if any(p == limit.label for p, _, _ in new) and terms_of(limit) not in new:
                return False
        for share in SHARES:
            mine = {terms_of(limit) for limit in terms.of_share(share) or ()}
            for limit in (limit for earlier in charged for limit in earlier.of_share(share) or ()):
                if any(p == limit.label for p, _, _ in mine) and terms_of(limit) not in mine:
                    return False
        if not terms.plan:
            return True
        return fit_together({terms.plan, *(earlier.plan for earlier in charged)} - {0}, terms)

    def erase(self, user: str) -> bool:
        known = any(charge.user == user for charge in self.charges)
        self.erased.add(user)
        for charge in self.charges:
            if charge.user == user:
                charge.user = f"{user}, erased"
        for entry in self.labelled:
            if entry.value[0] == user:
                entry.value = (f"{user}, erased", *entry.value[1:])
        self.newest = self.moment
        return known


def fit_together(numbers: set[int], terms: Terms) -> bool:
    """True if the full prices of plans fit the lifetime limit; several plans need one."""
    priced = [plan for plan in (plans()[number] for number in numbers) if plan is not None]
    lifetimes = [limit for limit in terms.parsed() if limit.label == "lifetime"]
    if not lifetimes:
        return len(priced) == 1
    epsilon = sum((decimal(plan.epsilon) for plan in priced), Decimal(0))
    delta = sum((plan.delta for plan in priced), Decimal(0))
    return all(epsilon <= limit.epsilon and delta <= limit.delta for limit in lifetimes)


def same_window(period: str, one: datetime, other: datetime) -> bool:
    """True if two moments, in UTC, are in one window; `period` may name a zone, such as `day@Asia/Seoul`."""
    period, _, zone = period.partition("@")
    if period == "lifetime":
        return True
    if zone:
        one, other = (each.astimezone(ZoneInfo(zone)) for each in (one, other))
    if period == "week":
        return one.isocalendar()[:2] == other.isocalendar()[:2]
    return one.strftime({"day": "%Y-%m-%d", "month": "%Y-%m"}[period]) == other.strftime(
        {"day": "%Y-%m-%d", "month": "%Y-%m"}[period]
    )


@dataclass(eq=False)
class Labelled:
    """Reports of a memoised value that were charged, or with `ends` the void of those of another charge.

    `moments` are those at which they count; `late`: the clock was repaired before.
    """

    value: Any
    reports: int
    at: datetime
    moments: tuple[datetime, ...] = ()
    share: str | None = None
    late: bool = False
    ends: Labelled | None = None

    def voided(self, at: datetime) -> Labelled:
        return Labelled(self.value, self.reports, at, share=self.share, late=self.late, ends=self)


def labelled_sum(entries: Iterable[Labelled], period: str, moment: datetime, share: str | None = None) -> Costs:
    """Return the charge of a window for memoised reports: each time what they add to the worst loss of all of them.

    A void gives back what the reports would cost now. Where a window has passed, or has gaps, it is not known how
    much that was, and it gives back nothing as long as there are reports elsewhere that may be of the same value.
    """
    total, left = ZERO, list[Labelled]()
    for entry in entries:
        charge = entry.ends or entry
        *owner, label, guarantee = charge.value
        inside = share in (None, charge.share) and any(
            same_window(period, each, moment) for each in (charge.at, *charge.moments)
        )
        if entry.ends is not None:
            left.remove(charge)
        state: dict[str | None, list[int]] = {label: [0, 0]}
        for each in left:
            if (*each.value[:-2], each.value[-1]) == (*owner, guarantee):
                here = share in (None, each.share) and any(
                    same_window(period, seen, moment) for seen in (each.at, *each.moments)
                )
                state.setdefault(each.value[-2], [0, 0])[here] += each.reports
        alike = state.values() if None in state else [state[label]]
        elsewhere, gaps = any(earlier for earlier, _ in alike), share is not None or entry.late
        if (
            inside
            and entry.ends is not None
            and not (elsewhere and (gaps or not same_window(period, entry.at, moment)))
        ):
            total = total.minus(added(guarantee, state, label, charge.reports))
        elif inside and entry.ends is None:
            if gaps and any(earlier for earlier, _ in state.values()):
                for counts in state.values():
                    if None in state or counts[0]:
                        counts[:] = [sum(counts), 0]
            total = total.plus(added(guarantee, state, label, charge.reports))
        if entry.ends is None:
            left.append(charge)
    return total


def added(guarantee: Memoised, state: dict[str | None, list[int]], label: str | None, reports: int) -> Costs:
    """Return what reports of a label add to the worst loss; `state` has earlier and present reports of each label."""
    earlier, done = state[label]
    return worst(guarantee, {**state, label: [earlier, done + reports]}).minus(worst(guarantee, state))


def worst(guarantee: Memoised, state: dict[str | None, list[int]]) -> Costs:
    """Return the worst loss of present reports, given the earlier ones; those without a label may be of any value."""
    before, plain = state.get(None, (0, 0))
    named = [counts for label, counts in state.items() if label is not None and any(counts)]
    present = [(earlier, done) for earlier, done in named if done]
    if not plain and not present:
        return ZERO
    points = (Decimal(0), *guarantee.curve, guarantee.cap)
    step = max(after - each for each, after in pairwise(points))

    def c(reports: int) -> Decimal:
        return points[min(reports, len(points) - 1)]

    def all_of(counts: Iterable[int], unnamed: int) -> Decimal:
        found = sum((c(each) for each in counts), unnamed * step)
        return found if not bounded else min(found, guarantee.cap * (guarantee.values or 0))

    bounded = guarantee.values is not None and len(named) <= guarantee.values
    losses = (
        all_of([sum(each) for each in named], before + plain) + all_of([earlier for earlier, _ in named], before),
        sum((c(earlier + done) + c(earlier) for earlier, done in present), Decimal(0))
        + (2 * step * before if present else 0)
        + 2 * guarantee.cap * plain,
        sum((min(c(earlier + done) + c(earlier) + 2 * step * before, 2 * guarantee.cap) for earlier, done in present))
        + 2 * guarantee.cap * plain,
    )
    each = costs_of(Pure(guarantee.cap + c(before + sum(earlier for earlier, _ in named))))
    total = each.times(plain)
    for earlier, _ in present:
        total = total.plus(costs_of(Pure(guarantee.cap + c(earlier + before))))
    if bounded and plain:
        total = Costs(*(min(pair) for pair in zip(total, each.times(guarantee.values or 0), strict=True)))  # type: ignore[type-var]
    return total._replace(epsilon=costs_of(Pure(min(losses))).epsilon)


def within(spent: Costs, cost: Costs, capacity: Costs) -> bool:
    return all(
        most is None or (used is not None and more is not None and used + more <= most)
        for used, more, most in zip(spent, cost, capacity, strict=True)
    )


@dataclass
class Held:
    """A reservation of both."""

    receipt: str
    charged: Charged


class LedgerMachine(RuleBasedStateMachine):
    """Everything one can do to a ledger. Inherit it and say in `make_place` to which."""

    def make_place(self) -> Place:
        raise NotImplementedError

    held = Bundle("held")
    asked = Bundle("asked")
    runs = Bundle("runs")

    users = st.sampled_from(USERS)
    guarantees = st.sampled_from(GUARANTEES)
    counts = st.integers(1, 3)
    labels = st.sampled_from((None, *LABELS, *LABELS))
    names = st.sampled_from(NAMES)
    shares = st.sampled_from((None, None, *SHARES))
    tags = st.sampled_from(TAGS)

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.place = self.make_place()
        self.accountant: Accountant = self.place.open(self._clock)
        self.heads: list[str] = []
        self.keys = self.steps = 0
        self.callers = {share: made(self.accountant, f"key-of-{share}", share) for share in SHARES}

    def _clock(self) -> datetime:
        return self.model.now

    def by(self, share: str | None) -> Accountant:
        """The ledger as it is used through a share, or through none."""
        return self.accountant if share is None else self.accountant.acting_for(self.callers[share])

    def _key(self) -> str:
        self.keys += 1
        return f"key-{self.keys}"

    @initialize(
        default=st.sampled_from(MENU["default"]),
        other=st.sampled_from(MENU["other"]),
        planned=st.sampled_from(MENU["planned"]),
        second=st.sampled_from(MENU["second"]),
    )
    def start(self, default: Terms, other: Terms, planned: Terms, second: Terms) -> None:
        for name, terms in (("default", default), ("other", other), ("planned", planned), ("second", second)):
            self._set(name, terms)

    # -- policies and time --------------------------------------------------------------------------------

    @rule(data=st.data(), name=names)
    def set_policy(self, data: st.DataObject, name: str) -> None:
        terms = data.draw(st.sampled_from(MENU[name]))
        if not self.model.may_follow(name, terms):
            with pytest.raises(InvalidParameter):
                self._set(name, terms)
        else:
            self._set(name, terms)

    def _set(self, name: str, terms: Terms) -> None:
        self.accountant.set_policy(
            name,
            terms.limits,
            relation=terms.relation,
            unbounded=terms.unbounded,
            plan=plans()[terms.plan],
            shares={share: list(limits) for share, limits in terms.shares},
            zone=terms.zone,
        )
        self.model.versions.setdefault(name, []).append((terms, False))
        self.model.newest = self.model.moment

    @rule(by=st.sampled_from((-5, 1, 2, 3600, 25_000, 3 * 86_400, 19 * 86_400)))
    def wait(self, by: int) -> None:
        """Let time pass; or set the clock back, as far as is tolerated."""
        self.model.now = (self.model.newest if by < 0 else self.model.now) + timedelta(seconds=by)

    # -- one user -----------------------------------------------------------------------------------------

    @rule(
        target=asked,
        user=users,
        guarantee=guarantees,
        reports=counts,
        label=labels,
        policy=names,
        keyed=st.booleans(),
        share=shares,
        tags=tags,
    )
    def spend(
        self,
        user: str,
        guarantee: Guarantee,
        reports: int,
        label: str | None,
        policy: str,
        keyed: bool,
        share: str | None,
        tags: tuple[str, ...],
    ) -> Any:
        tags = () if isinstance(guarantee, Memoised) else tags
        request: dict[str, Any] = {
            "user": user,
            "mechanism": MECHANISMS[guarantee],
            "reports": reports,
            "label": label,
            "policy": policy,
            "tags": tags,
        }
        if keyed:
            request["key"] = self._key()
        self._check_quote(user, guarantee, reports, label, policy, share, tags)
        fits = self.model.fits(user, guarantee, reports, label, policy, share, tags)
        cost = self.model.cost(user, guarantee, reports, label, "lifetime")
        receipt = self.by(share).spend(**request)
        assert (receipt.status, receipt.repeated) == ("spent" if fits else "refused", False)
        assert receipt.cost_units == cost
        if fits:
            self.model.charge(user, guarantee, reports, label, policy, share=share, tags=tags)
        return (request, receipt, share) if keyed else multiple()

    @rule(
        target=held,
        user=users,
        guarantee=guarantees,
        reports=counts,
        label=labels,
        policy=names,
        expires=st.sampled_from((2, 3600, 10**7, 10**7)),
        share=shares,
        tags=tags,
    )
    def reserve(
        self,
        user: str,
        guarantee: Guarantee,
        reports: int,
        label: str | None,
        policy: str,
        expires: int,
        share: str | None,
        tags: tuple[str, ...],
    ) -> Any:
        tags = () if isinstance(guarantee, Memoised) else tags
        request = {"reports": reports, "label": label, "policy": policy, "expires": expires, "tags": tags}
        fits = self.model.fits(user, guarantee, reports, label, policy, share, tags)
        receipt = self.by(share).reserve(user, MECHANISMS[guarantee], **request)
        assert receipt.status == ("reserved" if fits else "refused")
        if not fits:
            return multiple()
        charged = self.model.charge(user, guarantee, reports, label, policy, expires, share, tags)
        return Held(receipt.receipt or "", charged)

    @rule(held=held, step=st.sampled_from(("void", "void", "commit")), share=shares)
    def resolve(self, held: Held, step: str, share: str | None) -> None:
        charged = held.charged
        state = "expired" if charged.state == "reserved" and self._is_over(charged) else charged.state
        repeated = charged.state != "reserved"
        call = getattr(self.by(share), step)
        if state in (("voided",) if step == "commit" else ("committed", "expired")):
            with pytest.raises(ReservationConflict, match=f"is {state}"):
                call(held.receipt)
            return
        if not repeated:
            ends = {"commit": "committed", "void": "voided"}[step]
            charged.state = ends if state == "reserved" else state
            if charged.state == "voided" and charged.entry is not None:
                self.model.labelled.append(charged.entry.voided(self.model.moment))
            self.model.newest = self.model.moment
        receipt = call(held.receipt)
        assert (receipt.status, receipt.repeated) == (charged.state, repeated)

    def _is_over(self, charged: Charged) -> bool:
        return charged.expires is not None and self.model.moment >= charged.expires

    def _check_quote(
        self,
        user: str,
        guarantee: Guarantee,
        reports: int,
        label: str | None,
        policy: str,
        share: str | None,
        tags: tuple[str, ...],
    ) -> None:
        """A quote foretells the answer and how many would fit."""
        asked: dict[str, Any] = {"reports": reports, "label": label, "policy": policy, "tags": tags}
        quote = self.by(share).quote(user, MECHANISMS[guarantee], **asked)
        fits = self.model.fits
        assert (not quote.binding and not quote.why) == fits(user, guarantee, reports, label, policy, share, tags)
        most = min(quote.affordable_reports, 50)
        assert most == 0 or fits(user, guarantee, most, label, policy, share, tags)
        assert most == 50 or not fits(user, guarantee, most + 1, label, policy, share, tags)

    @precondition(lambda self: len(self.model.charges) > 9 and not self.model.erased)
    @rule(user=users)
    def erase(self, user: str) -> None:
        assert self.accountant.erase(user, unknown=True) == self.model.erase(user)
        assert not self.accountant.erase(user)

    # -- keys ---------------------------------------------------------------------------------------------

    @rule(asked=asked, other=st.sampled_from(({"reports": 4}, {"label": "else"}, {"digest": "00"}, {"policy": "x"})))
    def repeat(self, asked: tuple[dict[str, Any], Any, str | None], other: dict[str, Any]) -> None:
        request, first, share = asked
        if request["user"] not in self.model.erased:
            again = self.by(share).spend(**request)
            assert again.to_json() == {**first.to_json(), "repeated": True}
            with pytest.raises(KeyConflict):
                self.by(share).spend(**{**request, **other})

    # -- many users ---------------------------------------------------------------------------------------

    @rule(
        target=runs,
        users=st.lists(users, min_size=1, max_size=4),
        guarantee=guarantees,
        policy=st.sampled_from(NAMES[:3]),
        keyed=st.booleans(),
        share=shares,
        tags=tags,
    )
    def spend_many(
        self,
        users: list[str],
        guarantee: Guarantee,
        policy: str,
        keyed: bool,
        share: str | None,
        tags: tuple[str, ...],
    ) -> Any:
        tags = () if isinstance(guarantee, Memoised) else tags
        request: dict[str, Any] = {"mechanism": MECHANISMS[guarantee], "policy": policy, "tags": tags}
        if keyed:
            request["key"] = self._key()
        refused: Counter[str] = Counter()
        for user in users:
            if self.model.fits(user, guarantee, 1, None, policy, share, tags):
                self.model.charge(user, guarantee, 1, None, policy, share=share, tags=tags)
            else:
                refused[user] += 1
        result = self.by(share).spend_many(iter(users), **request)
        assert result.to_json() == {"spent": len(users) - refused.total(), "refused": refused.total(), "repeated": 0}
        assert Counter(result.refused_users) == refused
        return (users, request, refused, share) if keyed else multiple()

    @rule(run=runs)
    def repeat_run(self, run: tuple[list[str], dict[str, Any], Counter[str], str | None]) -> None:
        users, request, refused, share = run
        again = self.by(share).spend_many(users, **request)
        assert again.to_json() == {"spent": 0, "refused": refused.total(), "repeated": len(users) - refused.total()}
        assert Counter(again.refused_users) == refused
        with pytest.raises(KeyConflict):
            self.by(share).spend_many([*users, "dave"], **request)

    # -- all of it ----------------------------------------------------------------------------------------

    @rule()
    def exchange_key(self) -> None:
        """All results stay the same, and all receipts and keys stay valid."""
        if isinstance(self.accountant, Accountant):  # a service's client cannot
            exchange(self.accountant)
            self.model.newest = self.model.moment

    @rule()
    def restart(self) -> None:
        self.heads.append(self.accountant.stats()["head"])
        self.accountant = self.place.reopen(self.accountant, self._clock)
        self._check_balances(self.model.versions)

    @invariant()
    def balances_are_the_models(self) -> None:
        """Under one policy after each step, in turn: what a charge counts in, it counts in under all of them."""
        policies = list(self.model.versions)
        self.steps += 1
        self._check_balances(policies[self.steps % len(policies) :][:1])

    def _check_balances(self, policies: Iterable[str]) -> None:
        for policy in policies:
            for user in USERS:
                if user not in self.model.erased:
                    for state in self.accountant.balance(user, policy).limits:
                        share = getattr(state.limit, "share", None)
                        window = self.model.terms(policy).window_of(state.limit)
                        expected = self.model.spent(user, window, self.model.moment, share, state.limit.scope)
                        assert state.spent_units == expected, (user, policy, state.limit.label)

    def teardown(self) -> None:
        try:
            heads = list(dict.fromkeys(self.heads))
            for expect in (None, *heads[:: max(1, len(heads) // 3)]):
                verification = self.accountant.verify(expect)
                assert verification.ok, verification.problems
        finally:
            self.accountant.close()
            self.remove_place()

    def remove_place(self) -> None:
        """Remove what `make_place` has made."""
