"""Rules of composition: canonical lists of charges, rules and filters, rule `basic`, and root finding.

A list of charges has one canonical form, so that every regrouping of a list gives the same total.
A `Rule` adds up guarantees. Only a `Filter` may enforce a limit.
Rule `basic`: the ε add up and the δ add up (Dwork, McSherry, Nissim, Smith 2006; Rogers et al. 2016, filters).
"""

from __future__ import annotations

import dataclasses
import math
import operator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

from .._files import canonical_json
from .._validation import check_many, shown
from ..errors import InvalidParameter, NotSupported
from ..guarantees import ANY_INPUTS, Copies, Guarantee, Memoised
from ..guarantees.fixed_point import (
    DELTA_DIGITS,
    EPSILON_DIGITS,
    LARGEST,
    UP,
    Costs,
    float_down,
    float_up,
    to_capacity,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..guarantees import Guarantee
    from ..guarantees.fixed_point import Costs

    Charges = tuple[tuple[Guarantee, int], ...]

    class HasGuarantee(Protocol):
        """An object with a guarantee, such as a mechanism."""

        @property
        def guarantee(self) -> Guarantee: ...


# -- lists of charges ------------------------------------------------------------------------------------------


def canonical_charges(charges: Iterable[tuple[Guarantee | HasGuarantee, int]]) -> Charges:
    """Each guarantee once with the number of its reports, copies resolved, sorted by canonical JSON."""
    counts: dict[Guarantee, int] = {}
    for guarantee, count in in_pairs(charges):
        reports = whole(count)
        while isinstance(guarantee, Copies):
            reports *= guarantee.count
            guarantee = guarantee.of
        counts[guarantee] = counts.get(guarantee, 0) + reports
    return tuple(sorted(counts.items(), key=lambda charge: canonical_json(charge[0].to_json())))


def of_one_question(guarantee: Guarantee, reports: int, rule: str) -> tuple[Guarantee, int]:
    """The charge to compose for `reports` reports of one question by one secret, at most their total possible loss.

    Reports of a memoised value are drawn from the one draw for that value, and use nothing else of the input. Each
    of `values` such draws is `cap`-DP, given all earlier outputs. That holds for any next value and for any way of
    choosing it. So any number of reports is a post-processing of at most `values` adaptive steps. These compose
    like independent steps at the cap. Under `basic` this is charged if it is less than charging each report as the
    first of another value.

    It holds for neighbors of the guarantee's `relation`. It never holds for the reports of two questions, or of two
    secrets, together: their draws have nothing in common, although their guarantees are equal.
    """
    if not isinstance(guarantee, Memoised) or guarantee.values is None or reports <= guarantee.values:
        return guarantee, reports
    most = UP.multiply(guarantee.cap, guarantee.values)
    if rule == "basic" and UP.multiply(guarantee.loss()[0], reports) <= most:
        return guarantee, reports
    return dataclasses.replace(guarantee, curve=(guarantee.cap,)), guarantee.values


_PAIRS = "pairs of a mechanism or guarantee and a count, such as [(mechanism, 3)]"


def in_pairs(charges: Iterable[Any]) -> Iterator[tuple[Guarantee, Any]]:
    """Yield each charge as a guarantee and its count. Raises `InvalidParameter` for other items than such pairs.

    Accepts an object with a guarantee, such as a mechanism, in place of the guarantee.
    """
    for item, count in items_in_pairs(charges):
        guarantee = item if isinstance(item, Guarantee) else getattr(item, "guarantee", None)
        if not isinstance(guarantee, Guarantee):
            raise InvalidParameter("charges", _PAIRS, shown(item))
        yield guarantee, count


def items_in_pairs(charges: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield each charge as an item and its count. Raises `InvalidParameter` for anything but pairs."""
    for charge in check_many("charges", charges, _PAIRS):
        if not isinstance(charge, tuple | list) or len(charge) != 2:
            raise InvalidParameter("charges", _PAIRS, shown(charge))
        item, count = charge
        yield item, count


def whole(count: Any) -> int:
    """Return a number of reports. Raises `InvalidParameter` unless it is a whole number >= 1."""
    try:
        reports = operator.index(count)
    except TypeError:
        raise InvalidParameter("count", "a whole number >= 1", shown(count)) from None
    if reports < 1 or isinstance(count, bool):
        raise InvalidParameter("count", "a whole number >= 1", shown(count))
    return reports


def weakest_relation(charges: Charges) -> str:
    """The neighbors for which the whole list is guaranteed: those of its narrowest guarantee."""
    return next((guarantee.relation for guarantee, _ in charges if guarantee.relation != ANY_INPUTS), ANY_INPUTS)


# -- rules and filters -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """A certified total: the charges together are (`epsilon`, `delta`)-LDP.

    `epsilon` is rounded up, and infinite where nothing can be guaranteed. `lower` is a certified lower bound of the
    best ε that the rule could have given at this `delta`. `relation` names the neighbors for which the bound holds.
    `order` is the order of the added divergences under rule `renyi`.
    """

    epsilon: float
    lower: float
    delta: float
    relation: str = ANY_INPUTS
    order: Decimal | None = None

    def __repr__(self) -> str:
        more = ("" if self.order is None else f", order {self.order}") + (
            "" if self.relation == ANY_INPUTS else f", for {self.relation}"
        )
        return f"<Bound: ε = {self.epsilon!r} at δ = {self.delta!r}, and no rule's is below {self.lower!r}{more}>"


class Total(NamedTuple):
    """The total of a list of charges under a rule: ε between two certified doubles, at δ, and the order of `renyi`."""

    lower: float
    upper: float
    delta: Decimal
    order: Decimal | None = None


class Rule:
    """A rule of composition: a way to add up guarantees. Only a `Filter` may enforce a limit."""

    name: ClassVar[str]
    is_filter: ClassVar[bool] = False

    def total(self, charges: Charges, delta: Decimal) -> Total:
        """The total of `charges` at `delta` in [0, 1). Raises `NotSupported` if the rule does not apply."""
        raise NotImplementedError


class Filter(Rule):
    """An additive rule: each next mechanism may be chosen after seeing the outputs of the earlier ones.

    Its totals are sums of one or two amounts of each charge, so a limit is a capacity for these sums.
    """

    is_filter = True

    def capacity(self, epsilon: Decimal, delta: Decimal, aside: Decimal = Decimal(0)) -> Costs:
        """The largest sums, in integer units, that stay within (ε, δ); None for amounts that the rule does not add.

        `aside` is the part of δ that zcdp and renyi set aside for reports with a δ of their own.
        """
        raise NotImplementedError


def added(charges: Charges, amount: Callable[[Guarantee], Decimal | None], refusal: str) -> Decimal:
    """The sum of one amount over all reports, rounded up. Raises `NotSupported` if a guarantee lacks this amount."""
    total = UP.create_decimal(0)
    for guarantee, count in charges:
        each = amount(guarantee)
        if each is None:
            raise NotSupported(refusal.format(guarantee.kind))
        total = UP.add(total, UP.multiply(each, count))
    return total


def needs_delta(rule: str, delta: Decimal) -> None:
    """Raise `NotSupported` at δ = 0, where the conversion of zcdp and gdp to (ε, δ) is infinite."""
    if delta <= 0:
        raise NotSupported(
            f"rule {rule} needs delta > 0, for the conversion to (epsilon, delta): got {delta}",
            hint="Pass a delta, such as 1e-6.",
        )


def nothing_aside(rule: str, aside: Decimal) -> None:
    """Raise `NotSupported` if a part of δ is to be set aside by a rule without this feature."""
    if aside:
        raise NotSupported(f"rule {rule} cannot set a delta aside: got {aside}", hint="Use rule zcdp or renyi.")


def largest_units(holds: Callable[[int], bool]) -> int:
    """The largest number of units up to `LARGEST` for which `holds` is true. It must be true for zero."""
    low, high = 0, 1
    while high < LARGEST and holds(high):
        low, high = high, min(2 * high, LARGEST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


# -- rule basic ------------------------------------------------------------------------------------------------

_REFUSAL = "rule basic cannot add a guarantee of kind {} that has no (epsilon, delta) of its own"


class Basic(Filter):
    """Σε and Σδ. The δ of the total is the sum; if it exceeds the requested δ, ε is infinite."""

    name = "basic"

    def total(self, charges: Charges, delta: Decimal) -> Total:
        epsilon = added(charges, lambda guarantee: guarantee.amounts().epsilon, _REFUSAL)
        spent = added(charges, lambda guarantee: guarantee.amounts().delta, _REFUSAL)
        if spent > delta:
            return Total(math.inf, math.inf, spent)
        return Total(max(0.0, float_down(epsilon)), float_up(epsilon), spent)

    def capacity(self, epsilon: Decimal, delta: Decimal, aside: Decimal = Decimal(0)) -> Costs:
        nothing_aside(self.name, aside)
        return Costs(to_capacity(epsilon, EPSILON_DIGITS), to_capacity(delta, DELTA_DIGITS), None, None)


# -- root finding ----------------------------------------------------------------------------------------

_RELATIVE_WIDTH = 2e-14
_MAX_STEPS = 200  # a dozen are usual
_LARGEST = 1e300
_SMALLEST = 1e-12


def crossing(excess: Callable[[float], float], guess: float, step: float, width: float = 0.0) -> tuple[float, float]:
    """(low, high) with excess(low) > 0 >= excess(high), almost equal; (0, 0) if no positive value was found.

    `excess` is decreasing on ε >= 0, up to rounding. It crosses zero at a distance of the order of `step` from
    `guess`. The ends differ by about three times `width`, or three units of the last place if that is more. Both
    ends were evaluated, so their signs are certain even if rounding makes `excess` waver. Regula falsi, Illinois
    variant.
    """
    low = high = guess
    above = below = excess(guess)
    while above <= 0:
        if low == 0:
            return 0.0, 0.0
        high, below = low, above
        low, step = max(low / 16, guess - step), 2 * step
        if low < _SMALLEST * guess:
            low = 0.0
        above = excess(low)
    while below > 0:
        low, above = high, below
        high, step = guess + step, 2 * step
        if high > _LARGEST:
            return low, math.inf
        below = excess(high)
    side = 0
    for _ in range(_MAX_STEPS):
        finest = max(width, _RELATIVE_WIDTH * high)
        if high - low <= 3 * finest:
            break
        middle = _secant(low, above, high, below)
        # At least `finest` away from both ends, so that the bracket closes from both sides.
        middle = min(max(middle, low + finest), high - finest)
        value = excess(middle)
        if value > 0:
            low, above, below = middle, value, below / 2 if side == 1 else below
            side = 1
        else:
            high, below, above = middle, value, above / 2 if side == -1 else above
            side = -1
    return low, high


def _secant(low: float, above: float, high: float, below: float) -> float:
    if math.isinf(above) or math.isinf(below) or above == below:
        return (low + high) / 2
    return high - below * (high - low) / (below - above)
