"""Fixed-point privacy amounts, outward rounding and sampling thresholds.

The unit of ε is 1e-9, of δ 1e-18, of ρ (zCDP) and μ² (Gaussian DP) 1e-12. Costs are rounded up and capacities down.
So a sum of costs that fits a capacity in units also fits it in real numbers. A positive cost is at least one unit.
`None` is an unbounded amount, which fits only an unlimited account.

A float argument means its shortest decimal: 0.1 is one tenth, not the double next to it.

`threshold` converts a probability to a whole number of 2**-64, as clients sample it, rounded to the safe side.

A calibration needs no other arithmetic, so this module does not import numpy.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from .._number_parsing import is_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Amounts = tuple[int | None, ...]
    """Amounts in units, None where unbounded."""

EPSILON_DIGITS = 9
DELTA_DIGITS = 18
RHO_DIGITS = 12
MU_SQUARED_DIGITS = 12

# Amounts are stored in 64-bit columns. A larger amount is treated as unbounded.
LARGEST = 2**62

# Outside these powers of ten the arithmetic below has no room left to round in. No real parameter is that small.
_LARGEST_EXPONENT = 500_000

# Forty digits are far more than any amount stores; the two contexts round the last digit outward.
UP = Context(prec=40, rounding=ROUND_CEILING)
DOWN = Context(prec=40, rounding=ROUND_FLOOR)
# For exact results. The operators of Decimal would round them to the caller's decimal context.
_EXACT = Context(prec=4 * _LARGEST_EXPONENT, rounding=ROUND_CEILING)


def decimal(value: int | float | str | Decimal) -> Decimal:
    """Return the exact, finite decimal that `value` means: 0.1 and "0.1" are both one tenth.

    Raises ValueError for NaN, infinity, a truth value and text that is not a number. A number beyond 10**±500000 is
    too large or too small to compute with, and raises ValueError too.
    """
    if isinstance(value, bool):
        raise ValueError("a truth value is not a number")
    if isinstance(value, float):
        value = repr(float(value))
    elif isinstance(value, str) and not is_number(value.strip()):
        raise ValueError("not a number")  # `Decimal` also reads 1_000 and full-width digits
    try:
        number = Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        raise ValueError("not a number") from None
    if not number.is_finite():
        raise ValueError("not a finite number")
    if not number:
        return Decimal(0)  # without the exponent and sign of the given zero
    if abs(number.adjusted()) > _LARGEST_EXPONENT:
        raise ValueError("too large or too small a number")
    return number


def canonical(number: Decimal) -> str:
    """Return the one spelling of a number, such as `1`, `0.1` or `1E-30`, so that 1, 1.0 and "1.00" are the same."""
    plain = number.normalize(Context(prec=max(1, len(number.as_tuple().digits))))
    if not plain:
        return "0"
    return format(plain, "f") if -12 <= plain.adjusted() <= 18 else str(plain)


def decimal_up(fraction: Fraction) -> Decimal:
    """Return a fraction as a decimal, rounded up."""
    return UP.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))


def decimal_down(fraction: Fraction) -> Decimal:
    """Return a fraction as a decimal, rounded down."""
    return DOWN.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))


def float_up(number: Decimal) -> float:
    """Return the nearest double whose shortest decimal is not below `number`, to display a cost."""
    nearest = float(number)
    while Decimal(repr(nearest)) < number:
        nearest = math.nextafter(nearest, math.inf)
    return nearest


def exact_sum(numbers: Iterable[Decimal]) -> Decimal:
    """Return the exact sum of decimals; `+` would round it to the caller's decimal context."""
    total = Decimal(0)
    for number in numbers:
        total = _EXACT.add(total, number)
    return total


def float_down(number: Decimal) -> float:
    """Return the nearest double whose shortest decimal is not above `number`, to display a remaining budget."""
    return -float_up(number.copy_negate())


_PRINTED_DIGITS = (6, 9, 12, 15, 18)
"""The significant digits of a printed figure: the first number with which figures that differ look different."""


def printed(value: float | Decimal, toward: str, digits: int = 6) -> str:
    """Return a number with so many significant digits, rounded to the safe side, for people who may type it.

    Parameters:
        value: a number; infinity is `unbounded`.
        toward: `ROUND_CEILING` for what is lost or spent, `ROUND_FLOOR` for what may be spent.
        digits: the number of significant digits.
    """
    exact = value if isinstance(value, Decimal) else Decimal(repr(float(value)))
    if not exact.is_finite():
        return "unbounded" if exact > 0 else str(exact)
    text = canonical(Context(prec=digits, rounding=toward).plus(exact))
    return f"{float(text):.{digits}g}" if digits <= 15 else text


def printed_up(value: float | Decimal) -> str:
    """Return a loss with six significant digits, rounded up.

    Parameters:
        value: the loss.
    """
    return printed(value, ROUND_CEILING)


def printed_down(value: float | Decimal) -> str:
    """Return an amount that may be spent with six significant digits, rounded down.

    Parameters:
        value: the amount.
    """
    return printed(value, ROUND_FLOOR)


def printed_apart(*figures: tuple[float | Decimal, str]) -> list[str]:
    """Return figures, each with its rounding, with as many digits as it takes for those that differ to look different.

    Parameters:
        figures: pairs of a number and `ROUND_CEILING` or `ROUND_FLOOR`.
    """
    texts: list[str] = []
    for digits in _PRINTED_DIGITS:
        texts = [printed(value, toward, digits) for value, toward in figures]
        if len(set(texts)) == len({decimal(value) if math.isfinite(value) else value for value, _ in figures}):
            break
    return texts


def exp_up(x: Decimal) -> Decimal:
    """Return an upper bound of e**x, less than two units of the fortieth digit above it."""
    return UP.exp(x).next_plus(UP)


def exp_down(x: Decimal) -> Decimal:
    """Return a lower bound of e**x, less than two units of the fortieth digit below it, and never below 0."""
    return max(Decimal(0), DOWN.exp(x).next_minus(DOWN))


def ln_up(x: Decimal) -> Decimal:
    """Return an upper bound of ln x for x > 0, less than two units of the fortieth digit above it; 0 for x = 1.

    A lower bound of ln x is the negative of `ln_up` of an upper bound of 1/x.
    """
    return UP.ln(x).next_plus(UP) if x != 1 else Decimal(0)


def to_cost(amount: Decimal | None, digits: int) -> int | None:
    """Return `amount` ≥ 0 in units of 10**-digits, rounded up; None if unbounded or too large to count."""
    if amount is None:
        return None
    if amount < 0:
        raise ValueError(f"a privacy cost must be >= 0: got {amount}")
    if amount and amount.adjusted() > 18:
        return None
    units = math.ceil(UP.scaleb(amount, digits))
    return units if units <= LARGEST else None


def to_capacity(amount: Decimal, digits: int) -> int:
    """Return `amount` ≥ 0 in units of 10**-digits, rounded down."""
    if amount and amount.adjusted() > 18:
        return LARGEST
    return min(LARGEST, math.floor(DOWN.scaleb(amount, digits)))


def from_units(units: int, digits: int) -> Decimal:
    """Return the decimal value of `units` of 10**-digits."""
    return Decimal(units).scaleb(-digits, UP)


@lru_cache(maxsize=4096)
def float_of_units(units: int | None, digits: int) -> float | None:
    """Return an amount as a plain number, rounded up; None if it is unbounded. Many users have equal amounts."""
    return None if units is None else float_up(from_units(units, digits))


class Costs(NamedTuple):
    """Costs that one charge adds to an account: four integer amounts, each None if it is unbounded."""

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
        """Return the costs of `count` such charges."""
        return self if count == 1 else Costs(*[_times(amount, count) for amount in self])

    def plus(self, other: Costs) -> Costs:
        """Return the sum of both costs; a sum with an unbounded amount is unbounded."""
        epsilon, delta, rho, mu_squared = self
        try:
            total = epsilon + other[0], delta + other[1], rho + other[2], mu_squared + other[3]  # type: ignore[operator]
        except TypeError:  # an amount is unbounded
            return Costs._make(add_amounts(self, other))
        return costs_of(total) if max(total) <= LARGEST else Costs._make(add_amounts(self, other))

    def minus(self, other: Costs) -> Costs:
        """Return these costs without `other`; an unbounded amount stays unbounded."""
        return Costs(*(None if a is None or b is None else a - b for a, b in zip(self, other, strict=True)))


def add_amounts(amounts: Amounts, others: Amounts) -> Amounts:
    """Return the sums of amounts by position. A sum with an unbounded amount, or too large to count, is unbounded."""
    return tuple([None if a is None or b is None or a + b > LARGEST else a + b for a, b in zip(amounts, others)])  # noqa: B905


costs_of: Callable[[Amounts], Costs] = partial(tuple.__new__, Costs)
"""Returns the `Costs` of a row of four amounts; it does not check the row."""
ZERO = Costs(0, 0, 0, 0)


def _times(amount: int | None, count: int) -> int | None:
    if count == 0:
        return 0
    if amount is None or amount * count > LARGEST:
        return None
    return amount * count


def float_above(number: Decimal) -> float:
    """Return the smallest double that is not below `number`, neither in binary nor as it prints.

    For `parameters` that are safe on the upper side, such as the scale of a noise.
    """
    nearest = float(number)
    while Decimal(nearest) < number or Decimal(repr(nearest)) < number:
        nearest = math.nextafter(nearest, math.inf)
    return nearest


def float_below(number: Decimal) -> float:
    """Return the largest double that is not above `number`, neither in binary nor as it prints.

    For `parameters` that are safe on the lower side, such as the probability of the true answer.
    """
    # Not `-number`: that would round to the precision of the caller's decimal context.
    return -float_above(number.copy_negate())


# -- thresholds ----------------------------------------------------------------------------------------------

ONE = 1 << 64
"""The threshold of probability 1."""


def threshold(probability: Decimal | Fraction, *, up: bool) -> int:
    """Return ``probability * 2**64`` rounded to an integer, up or down; an exact product stays as it is.

    Parameters:
        probability: in [0, 1].
        up: True rounds up, False down. Choose the direction that keeps the true loss at most the declared one.

    Raises:
        TypeError: ``probability`` is a float, which would hide an unintended rounding.
        ValueError: ``probability`` is outside [0, 1] or not a number.
    """
    if isinstance(probability, float):
        raise TypeError(f"probability must be a Decimal or a Fraction: got {probability!r} (float)")
    finite = not isinstance(probability, Decimal) or probability.is_finite()
    if not (finite and 0 <= probability <= 1):
        raise ValueError(f"probability must be in [0, 1]: got {probability!r}")
    scaled = Fraction(probability) * ONE
    return math.ceil(scaled) if up else math.floor(scaled)
