"""Plans: a fixed list of reports with a certified price for all of it, and the largest ε that a total affords.

Exact composition may be enforced only for a list that was fixed before its first report. A `Plan` is that list. As
its price is that of all its reports, any order and any early stop is within it.

Policies: named, versioned sets of limits, and which version may follow which.
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
from .._validation import check_instance, check_many, check_name, check_switch, check_text, shown
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
from ..sdk.mechanism import Mechanism
from .limits import Limit, Share, check_shares

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..ledger.snapshot import Price


_UNIT = 1e-9
_PAIRS = "pairs of a mechanism or guarantee and a count"
_MOST_UNITS = 10**15  # no guarantee states a larger ε than a million


@dataclass(frozen=True)
class Plan:
    """A fixed list of reports, priced by exact composition.

    Together they are (`epsilon`, `delta`)-LDP; `epsilon` is a certified upper bound. Equal guarantees are merged, and
    the order is canonical.

    Parameters:
        charges: pairs of a mechanism or guarantee and how many reports carry it.
        delta: the δ of all of them together, >= 0 and < 1.
        price: what the same plan was priced at before: it may raise `epsilon`, and never lowers it below the upper
            bound that is certified now.

    Raises:
        NotSupported: the list has no finite price.
        InvalidParameter: something is of another kind or out of range, or `price` is one that no composition could
            have found, as it is below the certified lower bound.
    """

    charges: tuple[tuple[Guarantee, int], ...]
    delta: Decimal
    price: InitVar[float | None] = None
    epsilon: float = field(init=False)

    def __post_init__(self, price: float | None) -> None:
        charges = _merged(check_many("charges", self.charges, _PAIRS))
        total = compose(charges, delta=self.delta, rule="exact")
        if math.isinf(total.epsilon):
            raise NotSupported(
                "a plan needs a finite price: some report is unbounded, or delta is too small for the list"
            )
        if price is not None and not (isinstance(price, int | float) and abs(price) < math.inf):
            raise InvalidParameter("price", "a finite number", shown(price))
        if price is not None and price < total.lower:
            raise InvalidParameter(
                "price", f"a number not below {total.lower}, which these reports cost at least", price
            )
        object.__setattr__(self, "charges", charges)
        object.__setattr__(self, "delta", decimal(self.delta))
        # A price between the two bounds may be right, but nothing here certifies it.
        object.__setattr__(self, "epsilon", total.epsilon if price is None else max(_double(price), total.epsilon))

    def __repr__(self) -> str:
        reports, kinds = sum(count for _, count in self.charges), len(self.charges)
        of = "one guarantee" if kinds == 1 else f"{kinds} guarantees"
        return f"<Plan: {reports} reports of {of}, ε = {self.epsilon:.9g} at δ = {self.delta:.9g} together>"

    @cached_property
    def identity(self) -> str:
        """A hash of what was declared: charges and δ. What they cost is no part of it, for that was worked out."""
        return hashlib.sha256(canonical_json(self._declared()).encode()).hexdigest()

    @cached_property
    def counts(self) -> Mapping[Guarantee, int]:
        """How many reports of each guarantee the plan admits."""
        return MappingProxyType(dict(self.charges))

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal plan, price included; numbers as exact text."""
        return {**self._declared(), "epsilon": canonical(decimal(self.epsilon))}

    def _declared(self) -> dict[str, Any]:
        charges = [{"guarantee": guarantee.to_json(), "count": count} for guarantee, count in self.charges]
        return {"charges": charges, "delta": canonical(self.delta)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Plan:
        """A plan read back from what `to_json` wrote, its price certified anew.

        Parameters:
            data: the JSON object.

        Raises:
            ValueError: the argument has another form.
            NotSupported: its reports have no finite price by now.
        """
        try:
            charges = tuple((from_json(charge["guarantee"]), charge["count"]) for charge in data["charges"])
            return cls(charges, data["delta"], price=float(data["epsilon"]))
        except (LookupError, TypeError) as error:
            raise ValueError(f"not a plan: {error}") from None


def _double(price: float) -> float:
    """A price as a double, not below it. Raises `InvalidParameter` where there is none."""
    try:
        return float_up(decimal(price))
    except OverflowError:
        raise InvalidParameter("price", "a finite number", shown(price)) from None


def _merged(charges: Iterable[tuple[Any, Any]]) -> tuple[tuple[Guarantee, int], ...]:
    counts: dict[Guarantee, int] = {}
    for item, count in in_pairs(charges):
        guarantee = item.guarantee if isinstance(item, Mechanism) else item
        if not isinstance(guarantee, Guarantee):
            raise InvalidParameter("charges", _PAIRS, shown(item))
        counts[guarantee] = counts.get(guarantee, 0) + whole(count)
    return tuple(sorted(counts.items(), key=lambda charge: canonical_json(charge[0].to_json())))


def largest_epsilon(
    make_guarantee: Callable[[Decimal], Guarantee],
    reports: int,
    total_epsilon: float | str | Decimal,
    total_delta: float | str | Decimal,
    rule: str,
) -> Decimal | None:
    """The largest ε of one report, in whole billionths, for which `reports` of them stay within the total.

    `make_guarantee(ε)` is the guarantee of one report; it raises `InvalidParameter` for an ε it cannot offer. It
    must promise less the larger ε is. Under a filter, the integer costs of all reports fit a limit of
    (`total_epsilon`, `total_delta`) as well, so that a ledger accepts what was planned; memoised reports are taken to
    be of one question, and charged under their labels. A `Plan` counts reports and not whose question they answer, so
    under exact they are priced as it prices them. None if no ε will do.
    Raises `NotSupported` where the rule does not apply.
    """
    count, most = whole(reports), decimal(total_epsilon)
    if most <= 0:
        raise InvalidParameter("total_epsilon", "a number > 0", total_epsilon)
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
    """A function of ε in billionths: what is left of the total, > 0 if and only if the reports fit."""
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
    """Whether a ledger's limit of (`most`, `delta`) under a filter takes so many reports."""
    each = guarantee.aside() if rule not in ("basic", "gdp") else None
    aside = from_units((to_cost(each, DELTA_DIGITS) or 0) * reports, DELTA_DIGITS) if each else Decimal(0)
    if aside and aside >= delta:
        return False
    measure = measure_of(rule, aside)
    cost = guarantee.costs() if measure is None else measured(guarantee, measure)
    return _within(cost.times(reports), capacity(rule, most, delta, aside))


def _fits(bound: Bound, most: Decimal) -> bool:
    return not math.isinf(bound.epsilon) and decimal(bound.epsilon) <= most


def _within(costs: Costs, limit: Costs) -> bool:
    return all(most is None or (cost is not None and cost <= most) for cost, most in zip(costs, limit, strict=True))


DEFAULT = "default"
ANY_RELATION = "any"


@dataclass(frozen=True)
class PlanTerms:
    """A plan as a policy holds it: how many reports of each guarantee, and what all of them cost together.

    The price is exact composition's, which is no filter; that is sound because what may be charged was fixed
    beforehand: any order and any early stop lies within it. A successor's full price is added to those before. The
    price with which a plan came into the ledger stays its price, whatever is worked out for it later, unless that
    shows it to be impossible: then the plan is set again at what is certified.
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
        """How many reports with a guarantee, in canonical JSON, the plan holds."""
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
    """A named, versioned set of limits, all of which a spend must fit.

    It has a lifetime limit or a plan, or says `unbounded`. With `relation` "any", guarantees that hold only for
    neighbours of the same change pattern are refused; with `checked`, mechanisms whose promise nobody checked, see
    `certificates`. With a plan, only its charges are admitted, each up to its quota; `earlier` are the plans it
    succeeds that were charged. `shares` are parts of its limits, which whoever is bound to one must fit as well.

    Raises:
        InvalidParameter: something is of another kind, there is no limit and no plan, a period has two limits of one
            rule, the shares of a limit exceed it, or there is no lifetime limit and nobody says `unbounded`.
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

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidParameter("name", "a name of at least one character", shown(self.name))
        check_name("name", self.name)
        check_switch("unbounded", self.unbounded), check_switch("checked", self.checked)
        given = tuple(check_many("limits", self.limits, "limits"))
        for limit in given:
            if not isinstance(limit, Limit):
                raise InvalidParameter("limits", "limits", shown(limit))
        object.__setattr__(self, "limits", given)
        if not (self.plan is None or isinstance(self.plan, PlanTerms)):
            raise InvalidParameter("plan", "the terms of a plan, or None", shown(self.plan))
        if not self.limits and self.plan is None:
            raise InvalidParameter("limit", "at least one limit")
        seen = [(limit.period, limit.rule) for limit in self.limits]
        for pair in seen:
            if seen.count(pair) > 1:
                raise InvalidParameter("limit", "each period at most once for each rule", "=".join(pair))
        for share in self.shares:
            check_instance("shares", share, Share, "shares of its limits")
        check_shares(self.shares, self.limits)
        if not (self.relation is None or (isinstance(self.relation, str) and self.relation == ANY_RELATION)):
            found = self.relation if isinstance(self.relation, str) else shown(self.relation)
            raise InvalidParameter("relation", ANY_RELATION, found)
        if LIFETIME not in self.periods and self.plan is None and not self.unbounded:
            raise InvalidParameter(
                "limit", "a lifetime limit, or unbounded said aloud", f"only {', '.join(self.periods)}"
            )

    def __repr__(self) -> str:
        more = {"relation any": self.relation, "unbounded": self.unbounded, "checked": self.checked}
        plan = [] if self.plan is None else [repr(self.plan).strip("<>")]
        parts = [*map(str, self.all_limits), *plan, *[name for name, is_so in more.items() if is_so]]
        return f"<Policy {self.name}, version {self.version}: {'; '.join(parts)}>"

    @property
    def periods(self) -> tuple[str, ...]:
        """The periods that have a limit, each once."""
        return tuple(dict.fromkeys(limit.period for limit in self.limits))

    @property
    def gauges(self) -> tuple[str, ...]:
        """Where its limits are counted, and those of its shares, each once."""
        return tuple(dict.fromkeys(limit.gauge for limit in self.all_limits))

    @property
    def all_limits(self) -> tuple[Limit, ...]:
        """Its limits, and after them those of each share."""
        return (*self.limits, *(limit for share in self.shares for limit in share.limits))

    def share(self, name: str | None) -> Share | None:
        """The share of that name, if it has one.

        Parameters:
            name: of the share; None for none.
        """
        return next((share for share in self.shares if share.name == name), None)

    def limits_for(self, share: str | None) -> tuple[Limit, ...]:
        """The limits that a charge must fit which is made through a share, or with None through none.

        Parameters:
            share: the name of the share.
        """
        found = self.share(share)
        return self.limits if found is None else (*self.limits, *found.limits)

    def limits_shown_to(self, share: str | None) -> tuple[Limit, ...]:
        """The limits that concern somebody with a share; those of all shares to whoever has none.

        Parameters:
            share: the name of the share.
        """
        return self.all_limits if share is None else self.limits_for(share)

    @property
    def lifetimes(self) -> tuple[Limit, ...]:
        """The limits of a lifetime, one for each rule."""
        return tuple([limit for limit in self.limits if limit.period == LIFETIME])

    def planned(self, others: Iterable[Price] | None = None) -> Price:
        """(ε, δ) of its plan and of others, added up; zeros without any.

        Parameters:
            others: the (ε, δ) of other plans, as decimals; by default those of the earlier ones.

        Raises:
            InvalidParameter: `others` are no pairs of decimals.
        """
        given = (
            [plan.price for plan in self.earlier] if others is None else check_many("others", others, _POLICIES_PAIRS)
        )
        beside = [_price("others", other) for other in given]
        prices = [*beside, *([] if self.plan is None else [self.plan.price])]
        return exact_sum(epsilon for epsilon, _ in prices), exact_sum(delta for _, delta in prices)

    def overdrawn_by(self, price: Price) -> Limit | None:
        """The lifetime limit that does not admit so much for all plans together; None if all do.

        Parameters:
            price: (ε, δ) of all of them, as decimals.

        Raises:
            InvalidParameter: it is no pair of decimals.
        """
        epsilon, delta = _price("price", price)
        over = [limit for limit in self.lifetimes if epsilon > limit.epsilon or delta > limit.delta]
        return over[0] if over else None

    def worst_epsilon_per_year(self) -> float | None:
        """The largest ε one year can cost under an unbounded policy, by its `basic` limits; None if none says."""
        if LIFETIME in self.periods or self.plan is not None:
            return None
        totals = [limit.epsilon * PER_YEAR[limit.period] for limit in self.limits if limit.rule == "basic"]
        return float_up(min(totals)) if totals else None

    def idle_limits(self) -> list[tuple[Limit, Limit]]:
        """The limits above that of a longer period by the same rule, each with the least such one: that binds first."""
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
        }

    @classmethod
    def read(cls, definition: str) -> Policy:
        """A policy from its definition, as the ledger stores it.

        Parameters:
            definition: what `to_json` made, as JSON.

        Raises:
            ValueError: the argument has another form.
        """
        return _read(check_text("definition", definition))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Policy:
        """A policy read back from what `to_json` made.

        Parameters:
            data: the JSON object.

        Raises:
            ValueError: the argument has another form.
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
            )
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"not a policy: {shown(data)} ({error})") from None


_POLICIES_PAIRS = "pairs of ε and δ, as decimals"


def _price(option: str, price: Price) -> Price:
    """A pair of decimals. Raises `InvalidParameter`."""
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
