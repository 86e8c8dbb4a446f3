"""The bounded Laplace mechanism: its exact loss, its errors, and the client's table of whole numbers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ldp_budget
from ldp_budget.sampling import SeededStream
from ldp_budget_mechanisms._noise_samplers import LaplaceTable
from ldp_budget_mechanisms.bounded_noise import incomplete_gamma
from numeric_checks import density_moments, worst_log_ratio
from step_draws import drawn_cells

BoundedLaplace = ldp_budget.mechanism("bounded-laplace")


def table_losses(table: LaplaceTable) -> float:
    """The largest log-ratio over all pairs of points and all cells, from the exact weights."""
    rows = [cell_probabilities(table, point) for point in range(table.cells + 1)]
    worst = max(p / q for one, other in permutations(rows, 2) for p, q in zip(one, other, strict=True))
    return math.log(worst.numerator) - math.log(worst.denominator)


def cell_probabilities(table: LaplaceTable, point: int) -> list[Fraction]:
    weights = np.diff(table.below).tolist()
    row = [weights[point - 1 - cell if cell < point else cell - point] for cell in range(table.cells)]
    return [Fraction(weight, sum(row)) for weight in row]


# Calibration


@pytest.mark.slow
@given(st.decimals("1e-8", 1000, places=8), st.decimals("1e-6", 1000, places=7))
def test_scale_is_the_width_over_epsilon_rounded_up(epsilon, width):
    mechanism = BoundedLaplace.calibrate(epsilon=epsilon, lower=0, upper=width)
    loss = Fraction(width) / Fraction(mechanism.parameters["scale"])
    assert Fraction(epsilon) * (1 - Fraction(1, 10**9)) <= loss <= Fraction(epsilon)
    assert mechanism.guarantee.epsilon == float(epsilon)
    assert mechanism.guarantee.loss()[0] <= epsilon


def test_mechanism_can_be_built_from_its_scale():
    mechanism = BoundedLaplace(scale=4, lower=10, upper=20)
    assert mechanism.parameters == {"scale": 4.0}
    assert mechanism.guarantee.epsilon == 2.5


@pytest.mark.parametrize("epsilon", ["0.2", "1", "5"])
def test_brute_force_finds_exactly_the_declared_loss(epsilon):
    mechanism = BoundedLaplace.calibrate(epsilon=epsilon, lower=10, upper=20)
    worst = worst_log_ratio(mechanism, np.linspace(10, 20, 81), np.linspace(10, 20, 81))
    assert worst == pytest.approx(float(epsilon), rel=1e-12)


# Errors


@given(st.sampled_from([0, 1, 2]), st.floats(-9, 3).map(lambda x: 10**x))
def test_incomplete_gamma_is_exact_to_the_last_digits(power, end):
    expected = mpmath.gammainc(power + 1, 0, end)
    assert incomplete_gamma(power, end) == pytest.approx(float(expected), rel=1e-14)


@pytest.mark.parametrize("epsilon", ["0.001", "1", "10"])
@pytest.mark.parametrize("value", [10, 12.5, 15, 19])
def test_density_integrates_to_one_and_has_the_stated_errors(epsilon, value):
    mechanism = BoundedLaplace.calibrate(epsilon=epsilon, lower=10, upper=20)
    moments = density_moments(mechanism, value, sorted({10, value, 20}))
    assert moments == pytest.approx((1, *mechanism.error_at(value)), rel=1e-10, abs=1e-10)


# The client


@pytest.mark.slow
@settings(deadline=None)
@given(st.decimals("0.01", 60, places=4), st.integers(8, 14))
def test_table_exact_loss_is_at_most_epsilon(epsilon, cells):
    loss = table_losses(LaplaceTable(epsilon, cells))
    assert loss <= float(epsilon) * (1 + 1e-12)
    if epsilon < 16:
        # The worst pair is that of the two ends: what the grid leaves over is one part in `cells`.
        assert loss == pytest.approx(float(epsilon) * (1 - 1 / cells), rel=1e-6)


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("epsilon", ["1e-8", "0.01", "1", "15.9", "16", "30", "100", "1000"])
def test_table_errors_are_the_stated_ones(epsilon):
    mechanism = BoundedLaplace.calibrate(epsilon=epsilon, lower=0, upper=1)
    table, cells = mechanism.table, mechanism.cells
    weights = np.diff(table.below).astype(float)
    middles = (np.arange(cells) + 0.5) / cells
    for point in (0, cells // 8, cells // 2):
        distances = np.where(np.arange(cells) < point, point - 1 - np.arange(cells), np.arange(cells) - point)
        shares = weights[distances] / weights[distances].sum()
        errors = middles - point / cells
        bias, mse = mechanism.error_at(point / cells)
        assert shares @ errors**2 == pytest.approx(mse, rel=1e-4)
        assert shares @ errors == pytest.approx(bias, abs=1e-6)


def test_totals_stay_below_two_to_the_63():
    for epsilon in ("1e-8", "1", "15.9", "16", "1000"):
        table = LaplaceTable(Decimal(epsilon), 1000)
        assert 2**61 < 2 * int(table.below[500]) < 2**63
        assert (np.diff(table.below) >= 1).all()


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("epsilon", ["0.5", "20"])
def test_draws_have_the_exact_probabilities(epsilon):
    table = LaplaceTable(Decimal(epsilon), 9)
    draws = 100_000
    for point in range(10):
        steps, tables = table.drawing()
        cells = drawn_cells(SeededStream(230 + point), steps, point, draws, last=9, tables=tables).astype(int)
        shares = np.array(cell_probabilities(table, point), dtype=float)
        counts = np.bincount(cells, minlength=9)
        assert (abs(counts - draws * shares) < 4.5 * np.sqrt(draws * shares) + 1).all()
