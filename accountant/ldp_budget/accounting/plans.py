"""Plans: fixed lists of reports with a certified price.

Exact composition may be enforced only for a list that was fixed before its first report. A `Plan` is such a list.
Its price is that of all its reports, so any order and any early stop stays within the price. The module also finds
the largest ε per report that a total affords.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from decimal import Decimal
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .._files import canonical_json, json_digest
from .._validation import shown
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
    float_up,
    from_units,
    to_cost,
)

if TYPE_CHECKING:
    from collections.abc import Iterable


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
        return json_digest(self._declared())

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
