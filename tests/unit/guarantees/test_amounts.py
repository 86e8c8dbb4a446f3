"""Amounts are integers: decimals are read exactly, costs are rounded up, capacities down."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget.guarantees.fixed_point import (
    DELTA_DIGITS,
    EPSILON_DIGITS,
    LARGEST,
    MU_SQUARED_DIGITS,
    RHO_DIGITS,
    ZERO,
    Costs,
    canonical,
    decimal,
    exp_down,
    exp_up,
    float_above,
    float_below,
    float_up,
    ln_up,
    to_capacity,
    to_cost,
)

DIGITS = st.sampled_from([EPSILON_DIGITS, DELTA_DIGITS, RHO_DIGITS, MU_SQUARED_DIGITS])

# Amounts up to one with many digits, also far below one unit.
AMOUNTS = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent), st.integers(0, 10**30), st.integers(-60, -30)
)


# -- reading numbers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.1, "0.1", "0.10", "1e-1", Decimal("0.1")])
def test_decimal_of_one_tenth_in_every_spelling_is_equal(value: float | str | Decimal) -> None:
    assert decimal(value) == Decimal("0.1")


@pytest.mark.parametrize(
    "value", ["nan", "inf", "-inf", "snan", math.nan, math.inf, "", "one", "1,5", None, True, False, [], "1 2"]
)
def test_decimal_of_a_non_finite_number_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="number"):
        decimal(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["1e500001", "-1e500001", "1e-500001", "1e999999999", "1e-999999999"])
def test_decimal_beyond_the_arithmetic_is_refused(value: str) -> None:
    """Its conversion to an integer or a fraction would fill the memory, and its rounding underflow to zero."""
    with pytest.raises(ValueError, match="too large or too small"):
        decimal(value)


@pytest.mark.parametrize(
    ("spellings", "text"),
    [
        (["1", "1.0", "1.00", "1e0", "0.1e1"], "1"),
        (["100", "1e2", "1E+2"], "100"),
        (["0.1", ".1", "1e-1"], "0.1"),
        (["0", "-0", "0.000", "0e9"], "0"),
        (["1e-30", "0.1e-29"], "1E-30"),
        (["-2.50", "-2.5"], "-2.5"),
        (["1e20", "100000000000000000000"], "1E+20"),
    ],
)
def test_canonical_text_has_one_spelling_for_a_number(spellings: list[str], text: str) -> None:
    assert {canonical(decimal(spelling)) for spelling in spellings} == {text}


# -- units ---------------------------------------------------------------------------------------------------


@given(AMOUNTS, DIGITS)
def test_cost_rounds_up_and_capacity_down_by_less_than_one_unit(amount: Decimal, digits: int) -> None:
    exact = Fraction(amount) * 10**digits
    assert to_cost(amount, digits) == math.ceil(exact)
    assert to_capacity(amount, digits) == math.floor(exact)


@given(AMOUNTS.filter(bool), DIGITS)
def test_cost_positive_is_at_least_one_unit(amount: Decimal, digits: int) -> None:
    cost = to_cost(amount, digits)
    assert cost is not None
    assert cost >= 1


@pytest.mark.parametrize("tiny", ["1e-10", "1e-300", "1e-499999", "1e-2000000"])
def test_cost_of_the_smallest_decimal_is_one_unit(tiny: str) -> None:
    assert to_cost(Decimal(tiny), EPSILON_DIGITS) == 1


def test_cost_rounding_uses_every_digit() -> None:
    """More digits than any working precision: a cost cut off there would be rounded down."""
    barely_more = Decimal("1." + "0" * 500 + "1")
    barely_less = Decimal("0." + "9" * 500)
    assert to_cost(barely_more, EPSILON_DIGITS) == 10**9 + 1
    assert to_capacity(barely_less, EPSILON_DIGITS) == 10**9 - 1


def test_too_large_number_is_unbounded_as_cost_and_the_maximum_as_capacity() -> None:
    for amount in (Decimal("1e10"), Decimal("1e18"), Decimal("1e400")):
        assert to_cost(amount, EPSILON_DIGITS) is None
        assert to_capacity(amount, EPSILON_DIGITS) == LARGEST


def test_cost_negative_is_refused() -> None:
    with pytest.raises(ValueError, match=r"must be >= 0: got -1"):
        to_cost(Decimal(-1), EPSILON_DIGITS)


# -- sums ----------------------------------------------------------------------------------------------------

AMOUNT = st.one_of(st.none(), st.integers(0, LARGEST))
COSTS = st.builds(Costs, AMOUNT, AMOUNT, AMOUNT, AMOUNT)


@given(COSTS, COSTS)
def test_sums_do_not_depend_on_the_order_and_never_shrink(a: Costs, b: Costs) -> None:
    assert a.plus(b) == b.plus(a)
    for one, total in zip(a, a.plus(b), strict=True):
        assert total is None or (one is not None and total >= one)


@pytest.mark.slow
@given(COSTS, st.integers(0, 20))
def test_multiple_is_the_repeated_sum(cost: Costs, count: int) -> None:
    total = ZERO
    for _ in range(count):
        total = total.plus(cost)
    assert cost.times(count) == total


# -- directed rounding ---------------------------------------------------------------------------------------


@given(st.decimals(min_value="-300", max_value="300", allow_nan=False, places=12))
def test_exponentials_enclose_the_true_value(x: Decimal) -> None:
    with mpmath.workdps(80):
        true = mpmath.exp(mpmath.mpf(str(x)))
        low, high = mpmath.mpf(str(exp_down(x))), mpmath.mpf(str(exp_up(x)))
        assert low < true < high
        assert high - low < true * mpmath.mpf(10) ** -37


@pytest.mark.slow
@given(st.decimals(min_value="1e-30", max_value="1e30", allow_nan=False).filter(lambda x: x > 0))
def test_logarithm_is_an_upper_bound(x: Decimal) -> None:
    with mpmath.workdps(80):
        true = mpmath.log(mpmath.mpf(str(x)))
        bound = mpmath.mpf(str(ln_up(x)))
        assert true < bound < true + mpmath.mpf(10) ** -36


@pytest.mark.slow
@given(st.decimals(min_value="-1e300", max_value="1e300", allow_nan=False))
def test_doubles_are_rounded_outward_in_binary_and_as_they_print(number: Decimal) -> None:
    above, below = float_above(number), float_below(number)
    assert Decimal(below) <= number <= Decimal(above)
    assert Decimal(repr(below)) <= number <= Decimal(repr(above))
    assert above <= math.nextafter(math.nextafter(float(number), math.inf), math.inf)
    assert Decimal(repr(float_up(number))) >= number
