"""The staircase mechanism: its γ, its moments, its promise, and the client's exact probabilities."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import ldp_budget
from ldp_budget.sampling import ONE, SeededStream
from ldp_budget_mechanisms._noise_samplers import StaircaseSteps, digit_thresholds
from ldp_budget_mechanisms.staircase import least_variance_gamma, noise_moments
from numeric_checks import density_moments, worst_log_ratio
from step_draws import drawn_cells

Staircase = ldp_budget.mechanism("staircase")

SIGMAS = 4.5
epsilons = st.decimals("1e-8", 1000, places=8)


def printed_gamma(epsilon: float) -> mpf:
    """Geng and Viswanath's Theorem 7 as it is printed, with digits to spare."""
    with mpmath.workdps(80):
        b = mpmath.exp(-mpf(epsilon))
        return -b / (1 - b) + mpmath.cbrt((b - 2 * b**2 + 2 * b**4 - b**5) / 2) / (1 - b) ** 2


# γ


@pytest.mark.parametrize("epsilon", [1e-8, 1e-3, 0.1, 1, 5, 30, 700])
def test_default_gamma_is_the_printed_one(epsilon):
    assert least_variance_gamma(epsilon) == pytest.approx(float(printed_gamma(epsilon)), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 1, 4, 10])
@pytest.mark.parametrize(("objective", "moment"), [("least-variance", 1), ("least-absolute-error", 0)])
def test_default_gamma_has_the_smallest_error(epsilon, objective, moment):
    gamma = Staircase.calibrate(epsilon=epsilon, objective=objective).parameters["gamma"]
    least = noise_moments(epsilon, gamma)[moment]
    others = [noise_moments(epsilon, other / 500)[moment] for other in range(501)]
    assert least <= min(others) * (1 + 1e-14)
    for near in (gamma * 0.99, gamma * 1.01):
        assert noise_moments(epsilon, near)[moment] > least


# Promise and moments


@pytest.mark.parametrize("gamma", ["0", "0.2", "0.5", "0.8", "1"])
def test_brute_force_finds_the_declared_loss(gamma):
    mechanism = Staircase.calibrate(epsilon="1.5", lower=10, upper=20, gamma=gamma)
    assert mechanism.guarantee.loss() == (Decimal("1.5"), 0)
    # Reports between the values' multiples of a half, so that none is on a step's edge.
    worst = worst_log_ratio(mechanism, np.linspace(10, 20, 21), np.linspace(-10.13, 40.12, 403))
    assert worst == pytest.approx(1.5, rel=1e-12)


@pytest.mark.slow
@pytest.mark.some(5)
@pytest.mark.parametrize(("epsilon", "gamma"), [(1, None), (4, None), (2, "0.7"), (2, "0"), (2, "1")])
def test_density_integrates_to_one_and_has_the_stated_moments(epsilon, gamma):
    mechanism = Staircase.calibrate(epsilon=epsilon, lower=0, upper=1, gamma=gamma)
    share = mechanism.parameters["gamma"]
    steps = sorted({step for k in range(60) for step in (k, k + share)})
    cuts = [0.25 - step for step in reversed(steps)] + [0.25 + step for step in steps[1:]]
    total, bias, mse = density_moments(mechanism, 0.25, cuts)
    assert (total, bias) == pytest.approx((1, 0), abs=1e-12)
    # The stated errors are those of γ in whole cells, 2**-20 of the width.
    assert mechanism.error_at(0.25) == pytest.approx((0, mse), rel=1e-6)
    distances = [mpmath.quad(lambda x: x * mechanism.density(float(x), 0), pair) for pair in pairwise(steps)]
    assert mechanism.utility()["mean_absolute_error"] == pytest.approx(float(2 * sum(distances)), rel=1e-6)


# The client


def digit_probability(thresholds: list[int], count: int) -> Fraction:
    """P[N = count] of the periods of staircase noise, exactly."""
    *digits, above = (Fraction(threshold, ONE) for threshold in thresholds)
    probability = (1 - above) * above ** (count >> len(digits))
    for place, digit in enumerate(digits):
        probability *= digit if count >> place & 1 else 1 - digit
    return probability


@pytest.mark.slow
@settings(deadline=None)
@given(st.decimals("0.02", 5, places=8))
def test_neighboring_counts_differ_by_at_most_epsilon(epsilon):
    thresholds = digit_thresholds(epsilon)
    count = 4 << (len(thresholds) - 1)
    masses = [digit_probability(thresholds, k) for k in range(count)]
    with mpmath.workdps(60):
        ratios = [mpmath.log(mpf((p / q).numerator) / mpf((p / q).denominator)) for p, q in pairwise(masses)]
        target = mpf(str(epsilon))
        assert max(ratios) <= target
        assert min(ratios) >= target * (1 - mpf("1e-9"))


@pytest.mark.parametrize("epsilon", ["0.001", "0.3", "3"])
def test_counts_are_geometric(epsilon):
    periods, digits, *_ = StaircaseSteps(Decimal(epsilon), 1, 1).drawing()
    count = ["add", ["shl", "periods", len(digits[1][1]) - 1], ["join", "digits"]]
    drawn = drawn_cells(SeededStream(191), (periods, digits, ("cell", count)), 0, 200_000)
    mean = 1 / math.expm1(float(epsilon))
    deviation = math.sqrt(mean * (mean + 1))
    assert abs(drawn.mean() - mean) < SIGMAS * deviation / math.sqrt(drawn.size)
    for beyond in (1, round(2 * mean) + 1):
        share = math.exp(-beyond * float(epsilon))
        assert abs((drawn >= beyond).mean() - share) < SIGMAS * math.sqrt(share * (1 - share) / drawn.size)


def exact_channel(steps: StaircaseSteps, periods: int) -> list[dict[int, Fraction]]:
    """For every input point, the probabilities of the cells as far as `periods` periods reach."""
    upper = Fraction(steps.upper, ONE)
    noise = {}
    for place in range(steps.cells):
        inside = place < steps.reach
        share = upper / steps.reach if inside else (1 - upper) / (steps.cells - steps.reach)
        for period in range(periods):
            half = digit_probability(steps.periods, period) * share / 2
            distance = period * steps.cells + place
            noise[distance], noise[~distance] = half, half
    return [{point + cell: mass for cell, mass in noise.items()} for point in range(steps.cells + 1)]


@pytest.mark.slow
@settings(deadline=None)
@given(st.decimals("0.05", 12, places=6), st.integers(0, 6))
def test_client_exact_loss_is_epsilon(epsilon, reach):
    channel = exact_channel(StaircaseSteps(epsilon, reach, 6), periods=9)
    within = range(-6 * 7, 6 * 7)
    worst = max(p[cell] / q[cell] for p, q in permutations(channel, 2) for cell in within)
    with mpmath.workdps(60):
        loss, target = mpmath.log(mpf(worst.numerator) / mpf(worst.denominator)), mpf(str(epsilon))
        assert target * (1 - mpf("1e-9")) <= loss <= target


@pytest.mark.slow
def test_draws_have_the_exact_probabilities():
    steps = StaircaseSteps(Decimal(1), 2, 5)
    draws = drawn_cells(SeededStream(192), steps.drawing(), 3, 10**6, last=5)
    for cell, mass in exact_channel(steps, periods=3)[3].items():
        share = float(mass)
        assert abs((draws == cell).mean() - share) < SIGMAS * math.sqrt(share / draws.size)


@pytest.mark.slow
@settings(deadline=None)
@given(epsilons)
def test_losses_over_the_whole_range_can_be_drawn(epsilon):
    mechanism = Staircase.calibrate(epsilon=epsilon, lower=0, upper=1)
    assert np.isfinite(mechanism.randomize([0, 0.3, 1], rng=SeededStream(198))).all()
