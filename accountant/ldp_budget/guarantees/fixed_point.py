"""Privacy amounts as integers: decimals in, outward rounding, exact sums.

ε is counted in units of 1e-9, δ in 1e-18, ρ (zCDP) and μ² (Gaussian DP) in 1e-12. A cost is rounded up and a
capacity down, so a sum of costs that fits a capacity fits in the reals as well; a positive cost is at least
one unit. `None` stands for an unbounded amount, which fits nothing but an unlimited account.

A float argument means its shortest decimal: 0.1 is one tenth, not the double next to it.

Probabilities as the client draws them: whole numbers of 2**-64, rounded to whichever side is safe.

A calibration needs no more than this, so nothing here loads numpy.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    Amounts = tuple[int | None, ...]
    """Amounts in units, None where unbounded."""

EPSILON_DIGITS = 9
DELTA_DIGITS = 18
RHO_DIGITS = 12
MU_SQUARED_DIGITS = 12

# Amounts are kept in 64-bit columns. What is larger is as good as unbounded, and is treated so.
LARGEST = 2**62

# Outside these powers of ten the arithmetic below has no room left to round in, and nothing is that small.
_LARGEST_EXPONENT = 500_000

# Forty digits are far more than any amount keeps; the two contexts round the last of them outward.
UP = Context(prec=40, rounding=ROUND_CEILING)
DOWN = Context(prec=40, rounding=ROUND_FLOOR)
# What is neither rounded up nor down. The operators of Decimal would round it to the caller's own decimal context.
_EXACT = Context(prec=4 * _LARGEST_EXPONENT, rounding=ROUND_CEILING)


def decimal(value: int | float | str | Decimal) -> Decimal:
    """The finite decimal that `value` means, every digit of it: 0.1 and "0.1" are both one tenth.

    Raises ValueError for NaN, infinity, a truth value, what is no number at all, and a number that is too large or
    too small to compute with, beyond 10**±500000.
    """
    if isinstance(value, bool):
        raise ValueError("a truth value is not a number")
    if isinstance(value, float):
        value = repr(float(value))
    try:
        number = Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        raise ValueError("not a number") from None
    if not number.is_finite():
        raise ValueError("not a finite number")
    if not number:
        return Decimal(0)  # whatever its exponent and sign were
    if abs(number.adjusted()) > _LARGEST_EXPONENT:
        raise ValueError("too large or too small a number")
    return number


def canonical(number: Decimal) -> str:
    """One spelling for each number: `1`, `0.1`, `1E-30`; so that 1, 1.0 and "1.00" have one fingerprint."""
    plain = number.normalize(Context(prec=max(1, len(number.as_tuple().digits))))
    if not plain:
        return "0"
    return format(plain, "f") if -12 <= plain.adjusted() <= 18 else str(plain)


def float_up(number: Decimal) -> float:
    """The nearest double whose shortest decimal is not below `number`: for a cost that is shown."""
    nearest = float(number)
    while Decimal(repr(nearest)) < number:
        nearest = math.nextafter(nearest, math.inf)
    return nearest


def exact_sum(numbers: Iterable[Decimal]) -> Decimal:
    """The sum of decimals, every digit of it, where `+` would round to the caller's decimal context."""
    total = Decimal(0)
    for number in numbers:
        total = _EXACT.add(total, number)
    return total


def float_down(number: Decimal) -> float:
    """The nearest double whose shortest decimal is not above `number`: for what is left of a budget."""
    return -float_up(number.copy_negate())


def exp_up(x: Decimal) -> Decimal:
    """An upper bound of e**x, less than two units of the fortieth digit above it."""
    return UP.exp(x).next_plus(UP)


def exp_down(x: Decimal) -> Decimal:
    """A lower bound of e**x, less than two units of the fortieth digit below it, and never below 0."""
    return max(Decimal(0), DOWN.exp(x).next_minus(DOWN))


def ln_up(x: Decimal) -> Decimal:
    """An upper bound of ln x for x > 0, less than two units of the fortieth digit above it; of ln 1 it is 0.

    For a lower bound give `ln_up` of an upper bound of 1/x, with its sign turned.
    """
    return UP.ln(x).next_plus(UP) if x != 1 else Decimal(0)


def to_cost(amount: Decimal | None, digits: int) -> int | None:
    """`amount` ≥ 0 in units of 10**-digits, rounded up; None if unbounded or too large to count."""
    if amount is None:
        return None
    if amount < 0:
        raise ValueError(f"a privacy cost is never negative; found {amount}")
    if amount and amount.adjusted() > 18:
        return None
    units = math.ceil(UP.scaleb(amount, digits))
    return units if units <= LARGEST else None


def to_capacity(amount: Decimal, digits: int) -> int:
    """`amount` ≥ 0 in units of 10**-digits, rounded down."""
    if amount and amount.adjusted() > 18:
        return LARGEST
    return min(LARGEST, math.floor(DOWN.scaleb(amount, digits)))


def from_units(units: int, digits: int) -> Decimal:
    """The decimal that `units` of 10**-digits stand for."""
    return Decimal(units).scaleb(-digits, UP)


class Costs(NamedTuple):
    """What one charge adds to an account: four integer amounts, each None where it is unbounded."""

    epsilon: int | None
    delta: int | None
    rho: int | None
    mu_squared: int | None

    @classmethod
    def of(
        cls,
        epsilon: Decimal | None,
        delta: Decimal | None,
        rho: Decimal | None,
        mu_squared: Decimal | None,
    ) -> Costs:
        """Round four real amounts up to units."""
        return cls(
            to_cost(epsilon, EPSILON_DIGITS),
            to_cost(delta, DELTA_DIGITS),
            to_cost(rho, RHO_DIGITS),
            to_cost(mu_squared, MU_SQUARED_DIGITS),
        )

    def times(self, count: int) -> Costs:
        """The costs of `count` such charges."""
        return self if count == 1 else Costs(*[_times(amount, count) for amount in self])

    def plus(self, other: Costs) -> Costs:
        """The costs of both; unbounded absorbs."""
        return Costs._make(add_amounts(self, other))

    def minus(self, other: Costs) -> Costs:
        """These costs with `other` taken back; what is unbounded stays so."""
        return Costs(*(None if a is None or b is None else a - b for a, b in zip(self, other, strict=True)))


def add_amounts(amounts: Amounts, others: Amounts) -> Amounts:
    """The sums of amounts, place by place; unbounded absorbs, and what is too large to count is unbounded."""
    return tuple([None if a is None or b is None or a + b > LARGEST else a + b for a, b in zip(amounts, others)])  # noqa: B905


ZERO = Costs(0, 0, 0, 0)
UNBOUNDED = Costs(None, None, None, None)


def _times(amount: int | None, count: int) -> int | None:
    if count == 0:
        return 0
    if amount is None or amount * count > LARGEST:
        return None
    return amount * count


def float_above(number: Decimal) -> float:
    """The least double that is not below `number`, neither in binary nor as it prints.

    For `parameters` that are safe on the upper side, such as the scale of a noise.
    """
    nearest = float(number)
    while Decimal(nearest) < number or Decimal(repr(nearest)) < number:
        nearest = math.nextafter(nearest, math.inf)
    return nearest


def float_below(number: Decimal) -> float:
    """The greatest double that is not above `number`, neither in binary nor as it prints.

    For `parameters` that are safe on the lower side, such as the probability of the true answer.
    """
    # Not `-number`: that would round to the precision of the caller's decimal context.
    return -float_above(number.copy_negate())


ONE = 1 << 64
"""The threshold of probability 1."""


def threshold(probability: Decimal | Fraction, *, up: bool) -> int:
    """Return ``probability * 2**64`` rounded to an integer, up or down; an exact product stays as it is.

    Parameters:
        probability: in [0, 1].
        up: the direction: whichever makes the true loss of the mechanism at most the declared one.

    Raises:
        TypeError: ``probability`` is a float, which would hide a rounding that nobody chose.
        ValueError: ``probability`` is outside [0, 1] or not a number.
    """
    if isinstance(probability, float):
        raise TypeError(f"probability must be a Decimal or a Fraction, not the float {probability!r}")
    finite = not isinstance(probability, Decimal) or probability.is_finite()
    if not (finite and 0 <= probability <= 1):
        raise ValueError(f"probability must be in [0, 1], got {probability!r}")
    scaled = Fraction(probability) * ONE
    return math.ceil(scaled) if up else math.floor(scaled)
