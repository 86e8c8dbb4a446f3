"""Plans: a fixed list of reports with a certified price for all of it, and the largest ε that a total affords.

Exact composition may be enforced only for a list that was fixed before its first report. A `Plan` is that list. As
its price is that of all its reports, any order and any early stop is within it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import Any

from .._checks import check_many, shown
from .._json import canonical_json
from ..authoring.base import Mechanism
from ..composition import Bound, capacity, compose, measure_of, rule_named
from ..composition.charges import in_pairs, of_one_question, whole
from ..composition.crossing import crossing
from ..errors import InvalidParameter, NotSupported
from ..guarantees import Guarantee, from_json
from ..guarantees.amounts import (
    DELTA_DIGITS,
    DOWN,
    EPSILON_DIGITS,
    UP,
    Costs,
    canonical,
    decimal,
    float_up,
    from_units,
    to_cost,
)
from ..guarantees.orders import measure_at, measured

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
        """A JSON object that `from_json` turns back into an equal plan, price included; numbers as exact text.

        Raises:
            Nothing.
        """
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
            ValueError: it is anything else.
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
