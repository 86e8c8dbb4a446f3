"""1BitMean: the bit, its memoized form with α-point rounding, and the loss of reports over time, by enumeration.

The oracle is mpmath with fifty digits; what is drawn is enumerated with exact fractions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

import ldp_budget
from exact_numbers import exact, secrets
from ldp_budget import Accountant, InvalidParameter, Limit
from ldp_budget.guarantees import ANY_INPUTS, SAME_CHANGE_PATTERN, Memoised, Pure, SymmetricPair, Unbounded
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.charged_release import release
from ldp_budget.sampling import ONE

OneBitMean: Any = ldp_budget.mechanism("one-bit-mean")

epsilons = st.decimals("1e-8", "60", places=8)
flips = st.decimals("0.000001", "0.499999", places=6)

FRESH = OneBitMean.calibrate(epsilon=1, maximum=77)
KEPT = OneBitMean.calibrate(epsilon=1, maximum=77, rounding=11)
FLIPPED = OneBitMean.calibrate(epsilon=1, maximum=77, rounding=11, flip="0.2")
TWO_BITS = OneBitMean.calibrate(epsilon=1, maximum=1, rounding=1, flip="0.2")


# -- one report -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", "1", "4", "20"])
def test_one_has_the_probability_of_document_002(epsilon: str) -> None:
    e = mpmath.exp(mpf(epsilon))
    made = OneBitMean.calibrate(epsilon=epsilon, maximum=50)
    for share, drawn in zip((0, 1), made.ends, strict=True):
        stated = 1 / (e + 1) + share * (e - 1) / (e + 1)
        assert abs(exact(drawn) - stated) <= mpf(2) ** -33


@pytest.mark.slow
@given(epsilon=st.decimals("1e-8", "40", places=8), steps=st.integers(1, 50))
def test_loss_between_any_two_points_of_the_grid_is_at_most_epsilon(epsilon: Decimal, steps: int) -> None:
    made = OneBitMean.calibrate(epsilon=epsilon, maximum=steps, rounding=1)
    least, growth = made.thresholds
    ones = [least + growth * cell for cell in range(steps + 1)]
    odds = max(
        max(Fraction(p, q), Fraction(ONE - p, ONE - q)) for p, q in itertools.permutations((ones[0], ones[-1]), 2)
    )
    assert ones == sorted(ones)
    assert ones[-1] < ONE
    assert exact(odds) <= mpmath.exp(exact(epsilon))
    # Little is lost: the rounding moves either threshold by less than two and one for each step.
    assert mpmath.log(exact(odds)) >= exact(epsilon) - 2 * mpf(steps + 2) / least


@pytest.mark.parametrize("epsilon", ["1e-8", "0.5", "1", "10", "1000"])
def test_loss_at_the_ends_of_the_fine_grid_is_within_the_guarantee(epsilon: str) -> None:
    made = OneBitMean.calibrate(epsilon=epsilon, maximum="0.3")
    low, high = made.ends
    assert made.guarantee == SymmetricPair(epsilon, 1)
    assert exact(max(high / low, (1 - low) / (1 - high))) <= mpmath.exp(mpf(epsilon))
    assert high > low


def test_estimate_is_that_of_document_002() -> None:
    reports = np.array([1, 1, 0, 1, 0], dtype=np.uint8)
    e = math.e
    estimate = FRESH.estimate(reports)
    assert estimate.mean == pytest.approx(
        77 / 5 * sum((b * (e + 1) - 1) / (e - 1) for b in reports.tolist()), rel=1e-8
    )


@pytest.mark.parametrize("value", [0.0, 20.0, 77.0])
def test_variance_of_an_estimate_is_the_stated_one(value: float) -> None:
    surveys, users = 20_000, 10
    reports = FRESH.randomize(np.full(surveys * users, value), rng=5).reshape(surveys, users)
    origin, step = FRESH.grid()
    estimates = origin + step * reports.mean(axis=1)
    assert estimates.var() == pytest.approx(FRESH.error_at(value)[1] / users, rel=0.03)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("made", [FRESH, OneBitMean.calibrate(epsilon=4, maximum=77)], ids=repr)
def test_intervals_of_the_population_mean_have_their_nominal_coverage(made: Any) -> None:
    surveys, users = 2000, 300
    values = np.random.default_rng(8).uniform(0, 50, surveys * users)
    covered = 0
    for survey in made.randomize(values, rng=6).reshape(surveys, users):
        low, high = made.estimate(survey).interval(0.95)
        covered += low <= 25 <= high
    assert abs(covered / surveys - 0.95) <= 0.02


def test_standard_error_is_exact_for_equal_users_and_never_zero() -> None:
    estimate = FRESH.estimate(FRESH.randomize(np.full(200_000, 30.0), rng=2))
    assert estimate.std_error == pytest.approx((FRESH.error_at(30.0)[1] / 200_000) ** 0.5, rel=0.01)
    # Bits that are all ones are likely enough; they prove nothing about the other reports there might have been.
    assert FRESH.estimate(np.ones(4, dtype=np.uint8)).std_error == pytest.approx(FRESH.error_at(77.0)[1] ** 0.5 / 2)


def test_declaration_has_a_maximum_or_both_ends() -> None:
    assert FRESH.interval.ends == (0, 77)
    assert list(FRESH.declared) == ["any_inputs", "epsilon", "flip", "maximum"], "as ever, so is its fingerprint"
    assert FRESH.fingerprint == "8db0668b48acb1930acaa29213faa68aa0cd69e2148aefcfb4b18e9ddb2049fc"
    shifted = OneBitMean.calibrate(epsilon=1, lower=18, upper="70.5")
    assert shifted.interval.ends == (18, 70.5)
    for target, option in (
        ({"maximum": 1, "lower": 0}, "maximum must be left out if lower is given"),
        ({"maximum": 1, "upper": 1}, "maximum must be left out if upper is given"),
        ({"lower": 0}, "upper is missing: it must be a finite number. Give both lower and upper."),
        ({"upper": 1}, "lower is missing: it must be a finite number. Give both lower and upper."),
        ({}, "maximum is missing: it must be a number >= 1E-100 and <= 1E\\+100. Or give lower and upper."),
        ({"lower": 2, "upper": 2}, "upper must be greater than lower, 2: got 2"),
        ({"lower": 1, "upper": 3, "rounding": "0.3"}, "rounding must be upper - lower = 2 divided by a whole number"),
    ):
        with pytest.raises(InvalidParameter, match=option):
            OneBitMean.calibrate(epsilon=1, **target)


@pytest.mark.slow
@pytest.mark.parametrize("users", [10_000, pytest.param(40_000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("target", [{}, {"rounding": 11}, {"rounding": 11, "flip": "0.2"}], ids=str)
def test_range_that_begins_elsewhere_is_shifted(target: dict[str, Any], users: int) -> None:
    made = OneBitMean.calibrate(epsilon=1, maximum=77, **target)
    moved = OneBitMean.calibrate(epsilon=1, lower=-20, upper=57, **target)
    assert moved.guarantee == made.guarantee
    assert (moved.thresholds, moved.cells, moved.ends) == (made.thresholds, made.cells, made.ends)
    assert moved.error_at(57 - 77 / 3) == pytest.approx(made.error_at(77 - 77 / 3))
    assert moved.critical_inputs() == pytest.approx([value - 20 for value in made.critical_inputs()])
    assert moved.grid() == pytest.approx((made.grid()[0] - 20, made.grid()[1]))
    values = 77 * np.random.default_rng(3).beta(0.5, 4, users)
    estimate = moved.estimate(moved.randomize(values - 20, rng=11, secrets=secrets(len(values))))
    assert abs(estimate.mean - (values.mean() - 20)) < 4.5 * estimate.std_error


# -- α-point rounding and memoisation -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("value", [0, 1, 11, 16.5, 40.0, 76.9, 77])
def test_rounding_is_to_a_neighboring_multiple_and_unbiased_over_alpha(value: float) -> None:
    users = 20_000
    cells = KEPT.memoised(np.full(users, value), secrets(users))
    assert set(cells.tolist()) <= {math.floor(value / 11), math.ceil(value / 11)}
    up = value / 11 - math.floor(value / 11)
    assert abs(cells.mean() * 11 - value) <= 4.5 * 11 * (up * (1 - up) / users) ** 0.5 + 1e-12


def test_secret_repeats_the_same_bits() -> None:
    values, own = np.linspace(0, 77, 500), secrets(500)
    first = KEPT.randomize(values, secrets=own)
    assert (KEPT.randomize(values, rng=1, secrets=own) == first).all()
    # For every other user in the batch.
    assert (KEPT.randomize(values[100:200], secrets=own[100:200]) == first[100:200]).all()
    assert (KEPT.randomize(values, secrets=secrets(500, start=500)) != first).any()
    # The bits of one multiple say nothing about those of the next, nor of another collection's parameters.
    other = KEPT.replace(epsilon="1.1").randomize(values, secrets=own)
    assert 0.3 < np.mean(other == first) < 0.7


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("cell", [0, 3, 7])
def test_memoized_bits_have_the_probabilities_of_fresh_ones(cell: int) -> None:
    users = 40_000
    low, high = map(float, FLIPPED.ends)
    one = low + (high - low) * cell / 7
    reports = FLIPPED.randomize(np.full(users, 11 * cell), rng=3, secrets=secrets(users))
    assert abs(reports.mean() - one) < 4.5 * (one * (1 - one) / users) ** 0.5


@pytest.mark.parametrize("made", [KEPT, FLIPPED], ids=repr)
def test_memoized_bits_need_a_secret_of_every_user(made: Any) -> None:
    for found in (None, secrets(2), [b"short"] * 3, "a text of some length", b"short"):
        with pytest.raises(InvalidParameter, match=r"secrets (is missing: it )?must be bytes"):
            made.randomize([1, 2, 3], secrets=found)


# -- what reports of one multiple give away -------------------------------------------------------------------


def stream_law(made: Any, cells: Iterable[int]) -> tuple[Fraction, ...]:
    """The exact probabilities of all sequences of reports when the memoised bits are those of `cells` in turn."""
    least, growth = made.thresholds
    flip = Fraction(made._flip, ONE)
    cells = tuple(cells)
    result = []
    for reports in itertools.product((0, 1), repeat=len(cells)):
        mass = Fraction(1)
        for cell in set(cells):
            own = [report for report, at in zip(reports, cells, strict=True) if at == cell]
            one = Fraction(least + growth * cell, ONE)
            if_one = (1 - flip) ** sum(own) * flip ** (len(own) - sum(own))
            if_zero = flip ** sum(own) * (1 - flip) ** (len(own) - sum(own))
            mass *= one * if_one + (1 - one) * if_zero
        result.append(mass)
    return tuple(result)


def loss(one: tuple[Fraction, ...], other: tuple[Fraction, ...]) -> mpf:
    """The largest log-ratio; infinite where the other law cannot make what this one can."""
    if any(q == 0 < p for p, q in zip(one, other, strict=True)):
        return mpmath.inf
    return mpmath.log(exact(max(p / q for p, q in zip(one, other, strict=True) if q)))


def pattern(cells: tuple[int, ...]) -> tuple[int, ...]:
    """Group reports by their multiple."""
    return tuple(map(cells.index, cells))


@cache
def laws(made: Any, reports: int) -> dict[tuple[int, ...], tuple[Fraction, ...]]:
    return {cells: stream_law(made, cells) for cells in itertools.product(range(made.cells + 1), repeat=reports)}


def worst(made: Any, reports: int, *, same_pattern: bool) -> mpf:
    """The largest loss over all pairs of streams of so many reports."""
    pairs = itertools.permutations(laws(made, reports).items(), 2)
    return max(loss(p, q) for (x, p), (y, q) in pairs if not same_pattern or pattern(x) == pattern(y))


def test_guarantee_states_its_relation() -> None:
    assert FRESH.guarantee.relation == ANY_INPUTS
    assert KEPT.guarantee == Memoised((1,), 1, 8, SAME_CHANGE_PATTERN)
    assert KEPT.replace(any_inputs=True).guarantee == Unbounded()
    flipped = FLIPPED.guarantee
    assert (flipped.relation, flipped.cap, flipped.values) == (SAME_CHANGE_PATTERN, 1, 8)
    assert flipped.curve[0] == Decimal("0.569445196043")
    assert FLIPPED.replace(any_inputs=True).guarantee.epsilon == pytest.approx(math.log(4), abs=1e-15)
    assert flipped.describe()["lifetime_epsilon"] == 8


@pytest.mark.parametrize("made", [TWO_BITS, TWO_BITS.replace(epsilon=3, flip="0.05")], ids=repr)
def test_curve_is_the_exact_loss_of_repeated_reports(made: Any) -> None:
    for reports in range(1, 8):
        constant = [stream_law(made, [cell] * reports) for cell in (0, 1)]
        found = max(loss(*constant), loss(*reversed(constant)))
        assert 0 <= exact(made.guarantee.curve[reports - 1]) - found <= mpf("2e-12")


@pytest.mark.slow
@given(epsilon=epsilons, flip=flips)
def test_curve_is_above_the_formula_concave_and_ends_at_the_cap(epsilon: Decimal, flip: Decimal) -> None:
    curve = OneBitMean.calibrate(epsilon=epsilon, maximum=1, rounding=1, flip=flip).guarantee.curve
    odds, once = mpmath.exp(exact(epsilon)), (1 - exact(flip)) / exact(flip)
    for reports, point in enumerate(curve[:50], start=1):
        power = once**reports
        assert 0 <= exact(point) - mpmath.log((odds * power + 1) / (odds + power)) <= mpf("1.1e-12")
        # So reports that are charged as if each were the first of a new value are charged enough.
        assert point <= reports * curve[0]
    assert curve[-1] == epsilon or len(curve) == 1000


def test_same_change_pattern_costs_the_curve_of_each_memoized_multiple() -> None:
    made = OneBitMean.calibrate(epsilon=1, maximum=2, rounding=1, flip="0.2")
    curve = [exact(point) for point in made.guarantee.curve]
    for (x, p), (y, q) in itertools.permutations(laws(made, 3).items(), 2):
        if pattern(x) == pattern(y):
            charged = sum(curve[x.count(cell) - 1] for cell in set(x))
            assert loss(p, q) <= charged <= 3 * curve[0] + mpf("1e-9")


def test_same_pattern_without_a_flip_costs_epsilon_per_multiple_and_another_pattern_everything() -> None:
    made = OneBitMean.calibrate(epsilon=1, maximum=1, rounding=1)
    assert worst(made, 3, same_pattern=True) == pytest.approx(2, abs=1e-15)
    assert worst(made, 2, same_pattern=False) == mpmath.inf
    assert any("unbounded" in note for note in made.notes)


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("flip", ["0.2", "0.45", "0.01"])
@pytest.mark.parametrize("reports", [1, 2, 3, 4])
def test_loss_for_any_inputs_is_at_most_that_of_the_flip(reports: int, flip: str) -> None:
    made = TWO_BITS.replace(flip=flip, any_inputs=True)
    assert isinstance(made.guarantee, Pure)
    assert worst(made, reports, same_pattern=False) <= reports * exact(made.guarantee.bound)
    # Below that, no bound would do: known bits show as much.
    assert exact(made.guarantee.bound) == pytest.approx(math.log(1 / float(flip) - 1), rel=1e-14)


# -- the ledger -----------------------------------------------------------------------------------------------


def test_policy_with_relation_any_admits_the_flip() -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon=8)], relation="any")
        assert not accountant.spend("alice", FLIPPED)
        assert not accountant.spend("alice", KEPT.replace(any_inputs=True))
        assert accountant.spend("alice", FLIPPED.replace(any_inputs=True), reports=5)
        assert accountant.spend("alice", FRESH)


def test_reports_of_one_multiple_are_charged_along_the_curve() -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon=2)])
        costs = [accountant.spend("alice", FLIPPED, label="4").cost_units.epsilon for _ in range(40)]
        assert np.cumsum(costs).tolist() == [
            math.ceil(point * 10**9) for point in (*FLIPPED.guarantee.curve, *[1] * 40)[:40]
        ]
        assert sum(costs) == 10**9
        assert accountant.spend("alice", FLIPPED, label="5")


def test_released_reports_are_charged_by_the_multiple_and_not_by_the_value(tmp_path: Path) -> None:
    collection, [secret] = Collection("visits", KEPT), secrets(1)
    values = [40.0, 40.125, 62.0]
    first, again, other = KEPT.memoised(values, secret).tolist()
    assert first == again != other
    spent = []
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon=4)])
        for turn, value in enumerate(values):
            out = tmp_path / str(turn)
            release(out, collection, accountant, np.array([value]), ["alice"], policy="default", secrets=[secret])
            [state] = accountant.balance("alice").limits
            spent.append(state.spent_units.epsilon)
    assert spent == [10**9, 10**9, 2 * 10**9]
