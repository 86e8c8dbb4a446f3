"""Policies: named, versioned sets of limits. Plans: fixed lists of reports with a certified price.

Exact composition may be enforced only for a list that was fixed before its first report. A `Plan` is such a list.
Its price is that of all its reports, so any order and any early stop stays within the price. The module also finds
the largest ε per report that a total affords.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .._files import canonical_json
from .._validation import check_instance, check_many, check_name, check_switch, check_text, shown, shown_with_type
from ..composition import Bound, capacity, compose, measure_of, rule_named
from ..composition.rules import crossing, in_pairs, of_one_question, whole
from ..errors import InvalidParameter, NotSupported
from ..guarantees import Guarantee, from_json
from ..guarantees.costs import measure_at, measured
from ..guarantees.fixed_point import (
    DELTA_DIGITS,
    DOWN,
    EPSILON_DIGITS,
    UP,
    Costs,
    canonical,
    decimal,
    exact_sum,
    float_up,
    from_units,
    to_cost,
)
from ..ledger.calendar import LIFETIME, LONGER, PER_YEAR
from ..ledger.zones import UTC_ZONE, Zone, zone_named
from .limits import Limit, Share, check_shares, in_zone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..ledger.snapshot import Price


# -- plans -----------------------------------------------------------------------------------------------------

_UNIT = 1e-9
_MOST_UNITS = 10**15  # no guarantee states a larger ε than a million


@dataclass(frozen=True)
class Plan:
    """A fixed list of reports, priced by exact composition.

    Together the reports are (`epsilon`, `delta`)-LDP; `epsilon` is a certified upper bound. Equal guarantees are
    merged, and the order is canonical.

    Parameters:
        charges: pairs of a mechanism or guarantee and the number of reports that carry it.
        delta: the δ of all reports together, >= 0 and < 1.
        price: an earlier price of the same plan. It may raise `epsilon`, but never lowers it below the upper bound
            that is certified now.

    Raises:
        NotSupported: the list has no finite price.
        InvalidParameter: an argument has the wrong type or is out of range, or `price` is below the certified lower
            bound, so that no composition can have given it.
    """

    charges: tuple[tuple[Guarantee, int], ...]
    delta: Decimal
    price: InitVar[float | None] = None
    epsilon: float = field(init=False)

    def __post_init__(self, price: float | None) -> None:
        charges = _merged(self.charges)
        total = compose(charges, delta=self.delta, rule="exact")
        if math.isinf(total.epsilon):
            raise NotSupported(
                f"the plan has no finite price: a report has no finite loss, or delta is too small: got {self.delta}",
                hint="Use a larger delta.",
            )
        if price is not None and not (isinstance(price, int | float) and abs(price) < math.inf):
            raise InvalidParameter("price", "a finite number", shown(price))
        if price is not None and price < total.lower:
            raise InvalidParameter(
                "price", f"at least {total.lower}, which is the least that these reports can cost", price
            )
        object.__setattr__(self, "charges", charges)
        object.__setattr__(self, "delta", decimal(self.delta))
        # A price between the two bounds may be correct, but nothing here certifies it.
        object.__setattr__(self, "epsilon", total.epsilon if price is None else max(_double(price), total.epsilon))

    def __repr__(self) -> str:
        reports, kinds = sum(count for _, count in self.charges), len(self.charges)
        of = "one guarantee" if kinds == 1 else f"{kinds} guarantees"
        return f"<Plan: {reports} reports of {of}, ε = {self.epsilon:.9g} at δ = {self.delta:.9g} together>"

    @cached_property
    def identity(self) -> str:
        """A hash of the declaration: charges and δ. The price is not part of it, because the price is computed."""
        return hashlib.sha256(canonical_json(self._declared()).encode()).hexdigest()

    @cached_property
    def counts(self) -> Mapping[Guarantee, int]:
        """The number of reports of each guarantee that the plan admits."""
        return MappingProxyType(dict(self.charges))

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal plan, including the price.

        Numbers are exact text.
        """
        return {**self._declared(), "epsilon": canonical(decimal(self.epsilon))}

    def _declared(self) -> dict[str, Any]:
        charges = [{"guarantee": guarantee.to_json(), "count": count} for guarantee, count in self.charges]
        return {"charges": charges, "delta": canonical(self.delta)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Plan:
        """A plan from the JSON object that `to_json` returned. Its price is certified again.

        Parameters:
            data: the JSON object.

        Raises:
            ValueError: `data` is not such an object.
            NotSupported: its reports no longer have a finite price.
        """
        try:
            charges = tuple((from_json(charge["guarantee"]), charge["count"]) for charge in data["charges"])
            return cls(charges, data["delta"], price=float(data["epsilon"]))
        except (LookupError, TypeError) as error:
            raise ValueError(f"not a plan: {error}") from None


def _double(price: float) -> float:
    """A price as a double, rounded up. Raises `InvalidParameter` if the price is too large for a double."""
    try:
        return float_up(decimal(price))
    except OverflowError:
        raise InvalidParameter("price", "a finite number", shown(price)) from None


def _merged(charges: Iterable[tuple[Any, Any]]) -> tuple[tuple[Guarantee, int], ...]:
    counts: dict[Guarantee, int] = {}
    for guarantee, count in in_pairs(charges):
        counts[guarantee] = counts.get(guarantee, 0) + whole(count)
    return tuple(sorted(counts.items(), key=lambda charge: canonical_json(charge[0].to_json())))


# -- the largest ε of a report ---------------------------------------------------------------------------------


def largest_epsilon(
    make_guarantee: Callable[[Decimal], Guarantee],
    reports: int,
    total_epsilon: float | str | Decimal,
    total_delta: float | str | Decimal,
    rule: str,
) -> Decimal | None:
    """The largest ε of one report, in whole billionths, for which all reports fit the total; None if none fits.

    `make_guarantee(ε)` returns the guarantee of one report, and raises `InvalidParameter` for an ε that is not
    available. Its loss must grow with ε. Under a filter, the integer costs of all `reports` also fit a limit of
    (`total_epsilon`, `total_delta`), so that a ledger accepts the plan. Memoised reports are assumed to answer one
    question, and are charged under their labels. A `Plan` counts reports without their questions, so under exact
    they are priced like in a `Plan`.
    Raises `NotSupported` if the rule does not apply.
    """
    count, most = whole(reports), decimal(total_epsilon)
    if most <= 0:
        raise InvalidParameter("total_epsilon", "a number > 0", shown(total_epsilon))
    spare = _spare(make_guarantee, count, most, decimal(total_delta), rule)
    start = float(UP.divide(most, Decimal(count)))
    low, high = map(_units, crossing(lambda epsilon: spare(_units(epsilon)), start, start / 4, width=_UNIT))
    while high - low > 1:  # a few billionths at most
        middle = (low + high) // 2
        low, high = (middle, high) if spare(middle) > 0 else (low, middle)
    return from_units(low, EPSILON_DIGITS) if low else None


def _units(epsilon: float) -> int:
    return math.floor(DOWN.scaleb(Decimal(epsilon), EPSILON_DIGITS))


def _spare(
    make_guarantee: Callable[[Decimal], Guarantee], reports: int, most: Decimal, delta: Decimal, rule: str
) -> Callable[[int], float]:
    """A function of ε in billionths: the unused part of the total, > 0 if and only if the reports fit."""
    is_filter = rule_named(rule).is_filter

    def spare(units: int) -> float:
        if not 0 < units <= _MOST_UNITS:
            return -math.inf
        try:
            guarantee = make_guarantee(from_units(units, EPSILON_DIGITS))
        except InvalidParameter:
            return -math.inf
        charge = of_one_question(guarantee, reports, rule) if is_filter else (guarantee, reports)
        bound = compose([charge], delta=delta, rule=rule)
        named = rule if bound.order is None else measure_at(bound.order)
        fits = _fits(bound, most) and (not is_filter or _accepted(named, *charge, most, delta))
        left = float(most) - bound.epsilon
        return max(left, _UNIT) if fits else min(left, -_UNIT)

    return spare


def _accepted(rule: str, guarantee: Guarantee, reports: int, most: Decimal, delta: Decimal) -> bool:
    """True if a ledger's limit of (`most`, `delta`) under a filter admits this number of reports."""
    each = guarantee.aside() if rule not in ("basic", "gdp") else None
    aside = from_units((to_cost(each, DELTA_DIGITS) or 0) * reports, DELTA_DIGITS) if each else Decimal(0)
    if aside and aside >= delta:
        return False
    measure = measure_of(rule, aside)
    cost = guarantee.costs() if measure is None else measured(guarantee, measure)
    return _within(cost.times(reports), capacity(rule, most, delta, aside))


def enforceable(epsilon: float, charge: tuple[Guarantee, int], delta: Decimal, rule: str) -> float:
    """The total ε of reports, or the next larger double whose limit under a filter admits them.

    A limit's capacity is rounded down to whole units of the rule, so the limit of the exact total may refuse the last
    report. The total itself if no such limit admits the reports.
    """
    step = epsilon
    for _ in range(_MOST_STEPS):
        if math.isinf(step):
            break
        if _accepted(rule, *charge, decimal(step), delta):
            return step
        step = max(epsilon + 2 * (step - epsilon), epsilon + math.ulp(epsilon), epsilon * (1 + _LEAST_STEP))
    return epsilon


_MOST_STEPS = 20
_LEAST_STEP = 1e-13


def _fits(bound: Bound, most: Decimal) -> bool:
    return not math.isinf(bound.epsilon) and decimal(bound.epsilon) <= most


def _within(costs: Costs, limit: Costs) -> bool:
    return all(most is None or (cost is not None and cost <= most) for cost, most in zip(costs, limit, strict=True))


# -- policies --------------------------------------------------------------------------------------------------

ANY_RELATION = "any"


@dataclass(frozen=True)
class PlanTerms:
    """A plan as a policy stores it: the number of reports of each guarantee, and the price of all of them.

    The price comes from exact composition, which is not a filter. That is sound because the charges were fixed
    beforehand: any order and any early stop is within the price. The full price of a succeeding plan is added to
    the prices before it. A plan keeps the price with which it was first stored, even if a later computation
    differs. Only a price that is proved impossible is replaced: then the plan is set again at the certified price.
    """

    identity: str
    quotas: tuple[tuple[str, int], ...]
    epsilon: Decimal
    delta: Decimal

    def __repr__(self) -> str:
        reports = sum(count for _, count in self.quotas)
        return f"<PlanTerms: {reports} reports at ε = {self.epsilon:.9g}, δ = {self.delta:.9g}>"

    @classmethod
    def of(cls, plan: Plan) -> PlanTerms:
        """The terms of a plan."""
        quotas = tuple((canonical_json(guarantee.to_json()), count) for guarantee, count in plan.charges)
        return cls(plan.identity, quotas, decimal(plan.epsilon), plan.delta)

    @property
    def price(self) -> Price:
        """(ε, δ) of the whole plan."""
        return self.epsilon, self.delta

    def count(self, promise: str) -> int:
        """The number of reports in the plan with a guarantee, given in canonical JSON."""
        return dict(self.quotas).get(promise, 0)

    def to_json(self) -> dict[str, Any]:
        return {
            "identity": self.identity,
            "quotas": [list(quota) for quota in self.quotas],
            "epsilon": canonical(self.epsilon),
            "delta": canonical(self.delta),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> PlanTerms:
        quotas = tuple((promise, count) for promise, count in data["quotas"])
        return cls(data["identity"], quotas, decimal(data["epsilon"]), decimal(data["delta"]))


@dataclass(frozen=True)
class Policy:
    """A named, versioned set of limits, all of which a charge must fit.

    A policy has a lifetime limit or a plan, or is `unbounded`. With `relation` "any", it refuses guarantees that
    hold only for neighbors of the same change pattern. With `checked`, it refuses mechanisms whose guarantee was
    not checked, see `registry.certification`. With a plan, it admits only the plan's charges, each up to its quota;
    `earlier` are the charged plans that it succeeds. `shares` are parts of its limits, which callers that are bound
    to one must fit as well. Days, weeks and months begin at midnight in `zone`, an IANA time zone. `zone_rules` is the
    zone's file of the time zone database, compressed, in Base64; without it, that of this machine is taken.

    Raises:
        InvalidParameter: an argument has the wrong type, there is no limit and no plan, a period has two limits of
            one rule, the shares of a limit exceed it, there is no lifetime limit and `unbounded` is False, or no
            time zone has that name.
        NotSupported: this machine has no time zone database.
        ValueError: `zone_rules` are no such file.
    """

    name: str
    limits: tuple[Limit, ...]
    version: int = 1
    relation: str | None = None
    unbounded: bool = False
    plan: PlanTerms | None = None
    earlier: tuple[PlanTerms, ...] = ()
    checked: bool = False
    shares: tuple[Share, ...] = ()
    zone: str = UTC_ZONE
    zone_rules: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidParameter("name", "a string of at least one character", shown(self.name))
        check_name("name", self.name)
        check_switch("unbounded", self.unbounded), check_switch("checked", self.checked)
        given = tuple(check_many("limits", self.limits, "a list of `Limit` objects"))
        for limit in given:
            if not isinstance(limit, Limit):
                raise InvalidParameter("limits", "a list of `Limit` objects", f"{shown_with_type(limit)} in it")
        zone = Zone(self.zone, self.zone_rules) if self.zone_rules else zone_named(self.zone)
        object.__setattr__(self, "zone_rules", "" if zone is None else zone.file)
        key = None if zone is None else zone.key
        object.__setattr__(self, "limits", tuple([in_zone(limit, key) for limit in given]))
        if not (self.plan is None or isinstance(self.plan, PlanTerms)):
            raise InvalidParameter("plan", "`PlanTerms` or None", shown_with_type(self.plan))
        if not self.limits and self.plan is None:
            raise InvalidParameter("limit", "at least one limit", hint="For example: lifetime=4")
        seen = [(limit.period, limit.rule) for limit in self.limits]
        for pair in seen:
            if seen.count(pair) > 1:
                raise InvalidParameter(
                    "limit", "given once for each period and rule", f"{' '.join(pair)} more than once"
                )
        for share in self.shares:
            check_instance("shares", share, Share, "a list of `Share` objects")
        object.__setattr__(self, "shares", tuple([share.in_zone(key) for share in self.shares]))
        check_shares(self.shares, self.limits)
        if not (self.relation is None or (isinstance(self.relation, str) and self.relation == ANY_RELATION)):
            raise InvalidParameter("relation", f"{ANY_RELATION!r} or None", shown(self.relation))
        if LIFETIME not in self.periods and self.plan is None and not self.unbounded:
            raise InvalidParameter(
                "limit",
                f"given for the lifetime as well in policy {self.name!r}",
                f"only {', '.join(self.periods)}",
                hint="Add lifetime=EPSILON, or set unbounded=True to allow an unlimited total.",
            )

    def __repr__(self) -> str:
        more = {"relation any": self.relation, "unbounded": self.unbounded, "checked": self.checked}
        plan = [] if self.plan is None else [repr(self.plan).strip("<>")]
        zone = [] if self.zone == UTC_ZONE else [f"days of {self.zone}"]
        parts = [*map(str, self.all_limits), *plan, *[name for name, is_so in more.items() if is_so], *zone]
        return f"<Policy {self.name}, version {self.version}: {'; '.join(parts)}>"

    @property
    def periods(self) -> tuple[str, ...]:
        """The periods with a limit, each once."""
        return tuple(dict.fromkeys(limit.period for limit in self.limits))

    @property
    def gauges(self) -> tuple[str, ...]:
        """The gauges of its limits and of its shares' limits, each once."""
        return tuple(dict.fromkeys(limit.gauge for limit in self.all_limits))

    @property
    def all_limits(self) -> tuple[Limit, ...]:
        """Its limits, followed by those of each share."""
        return (*self.limits, *(limit for share in self.shares for limit in share.limits))

    def share(self, name: str | None) -> Share | None:
        """The share with that name, or None.

        Parameters:
            name: the name of the share; None gives None.
        """
        return next((share for share in self.shares if share.name == name), None)

    def limits_for(self, share: str | None) -> tuple[Limit, ...]:
        """The limits that a charge through a share must fit; with None those of a charge without a share.

        Parameters:
            share: the name of the share.
        """
        found = self.share(share)
        return self.limits if found is None else (*self.limits, *found.limits)

    def limits_shown_to(self, share: str | None) -> tuple[Limit, ...]:
        """The limits that apply to a caller with a share; without a share all limits, including those of all shares.

        Parameters:
            share: the name of the share.
        """
        return self.all_limits if share is None else self.limits_for(share)

    @property
    def lifetimes(self) -> tuple[Limit, ...]:
        """The lifetime limits, one for each rule."""
        return tuple([limit for limit in self.limits if limit.period == LIFETIME])

    def planned(self, others: Iterable[Price] | None = None) -> Price:
        """(ε, δ) of its plan and of others, added up; zeros without any.

        Parameters:
            others: the (ε, δ) of other plans, as decimals; by default those of the earlier plans.

        Raises:
            InvalidParameter: `others` are not pairs of decimals.
        """
        given = (
            [plan.price for plan in self.earlier] if others is None else check_many("others", others, _POLICIES_PAIRS)
        )
        priced = [_price("others", other) for other in given]
        prices = [*priced, *([] if self.plan is None else [self.plan.price])]
        return exact_sum(epsilon for epsilon, _ in prices), exact_sum(delta for _, delta in prices)

    def overdrawn_by(self, price: Price) -> Limit | None:
        """The lifetime limit that all plans together exceed; None if they fit every lifetime limit.

        Parameters:
            price: (ε, δ) of all plans together, as decimals.

        Raises:
            InvalidParameter: `price` is not a pair of decimals.
        """
        epsilon, delta = _price("price", price)
        over = [limit for limit in self.lifetimes if epsilon > limit.epsilon or delta > limit.delta]
        return over[0] if over else None

    def worst_epsilon_per_year(self) -> float | None:
        """The largest ε of one year under an unbounded policy, by its `basic` limits; None without such limits."""
        if LIFETIME in self.periods or self.plan is not None:
            return None
        totals = [limit.epsilon * PER_YEAR[limit.period] for limit in self.limits if limit.rule == "basic"]
        return float_up(min(totals)) if totals else None

    def idle_limits(self) -> list[tuple[Limit, Limit]]:
        """The limits that never bind: each is above a limit of a longer period by the same rule.

        Each is paired with the least such limit.
        """
        above = [
            (limit, longer)
            for limit in self.limits
            for longer in sorted(self.limits, key=lambda each: each.epsilon, reverse=True)
            if longer.period in LONGER[limit.period] and limit.is_above(longer)
        ]
        return list({limit: (limit, longer) for limit, longer in above}.values())

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal policy."""
        return {
            "name": self.name,
            "version": self.version,
            "limits": [limit.to_json() for limit in self.limits],
            "relation": self.relation,
            "unbounded": self.unbounded,
            "checked": self.checked,
            "plan": None if self.plan is None else self.plan.to_json(),
            "earlier": [plan.to_json() for plan in self.earlier],
            **({"shares": [share.to_json() for share in self.shares]} if self.shares else {}),
            **({} if self.zone == UTC_ZONE else {"zone": self.zone, "zone_rules": self.zone_rules}),
        }

    @classmethod
    def read(cls, definition: str) -> Policy:
        """A policy from its definition, as the ledger stores it.

        Parameters:
            definition: the JSON text of an object that `to_json` returned.

        Raises:
            ValueError: `definition` is not such a text.
        """
        return _read(check_text("definition", definition))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Policy:
        """A policy from the JSON object that `to_json` returned.

        Parameters:
            data: the JSON object.

        Raises:
            ValueError: `data` is not such an object.
        """
        try:
            plan = data["plan"]
            return cls(
                name=data["name"],
                limits=tuple(Limit.from_json(limit) for limit in data["limits"]),
                version=data["version"],
                relation=data["relation"],
                unbounded=data["unbounded"],
                checked=data.get("checked", False),
                plan=None if plan is None else PlanTerms.from_json(plan),
                earlier=tuple(PlanTerms.from_json(earlier) for earlier in data["earlier"]),
                shares=tuple(Share.from_json(share) for share in data.get("shares", ())),
                **{name: data[name] for name in ("zone", "zone_rules") if "zone" in data},
            )
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"not a policy: {shown(data)} ({error})") from None


_POLICIES_PAIRS = "a pair of ε and δ, each a Decimal"


def _price(option: str, price: Price) -> Price:
    """Return a pair of decimals. Raises `InvalidParameter`."""
    if not (isinstance(price, tuple) and len(price) == 2 and all(isinstance(part, Decimal) for part in price)):
        raise InvalidParameter(option, _POLICIES_PAIRS, shown(price))
    return price


@lru_cache(maxsize=1024)
def _read(definition: str) -> Policy:
    try:
        data = json.loads(definition)
    except ValueError as error:
        raise ValueError(f"not a policy: {shown(definition)} ({error})") from None
    return Policy.from_json(data)
