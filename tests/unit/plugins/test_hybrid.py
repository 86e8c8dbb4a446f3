"""The hybrid mechanism: its law, moments and promise by enumeration, its grid, and its variance against the paper's."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ldp_budget
from ldp_budget import mechanism
from ldp_budget.guarantees import SymmetricPair
from ldp_budget.guarantees.fixed_point import exp_down
from ldp_budget.sampling import ONE
from ldp_budget.sdk.channels import Comparison
from ldp_budget_mechanisms import _moving_window, hybrid
from ldp_budget_verify.exact import verify
from ldp_budget_verify.exact.dominance import check
from ldp_budget_verify.exact.numeric_grids import check_grid
from ldp_budget_verify.law.all_outcomes import law

Hybrid: Any = ldp_budget.mechanism("hybrid")
EPSILONS = ["0.01", "0.5", "0.61", "0.7", "1", "2", "4", "9"]
POINTS = 16


def made(epsilon: object = 1, lower: object = -1, upper: object = 1) -> Any:
    return Hybrid.calibrate(epsilon=epsilon, lower=lower, upper=upper)


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen steps in place of a million, so that every report of every value can be listed."""
    monkeypatch.setattr(_moving_window, "POINTS", POINTS)
    monkeypatch.setattr(hybrid, "POINTS", POINTS)


def cell_law(mechanism: Any, point: int) -> dict[int, Fraction]:
    """Probability of each cell, from the five draws of the client."""
    keep, window, alpha = Fraction(mechanism.keep, ONE), mechanism.window, Fraction(mechanism.piecewise, ONE)
    low, high = mechanism.numbers
    least, growth = mechanism._upper_one
    upper = Fraction(least + growth * point, ONE)
    chances: dict[int, Fraction] = defaultdict(Fraction)
    for cell in range(mechanism.cells):
        inside = point <= cell < point + window
        chances[cell] += alpha * (keep / window if inside else (1 - keep) / POINTS)
    chances[low] += (1 - alpha) * (1 - upper)
    chances[high] += (1 - alpha) * upper
    return chances


def mean(chances: dict[int, Fraction], power: int = 1) -> Fraction:
    return sum((chance * cell**power for cell, chance in chances.items()), Fraction(0))


# -- what is drawn, on a coarse grid --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_law_of_every_pair_of_points_is_within_the_guarantee(epsilon: str) -> None:
    mechanism = made(epsilon)
    laws = [cell_law(mechanism, point) for point in range(POINTS + 1)]
    assert all(sum(one.values()) == 1 for one in laws)
    pairs = [(p[cell], q[cell]) for p, q in itertools.permutations(laws, 2) for cell in p if p[cell] or q[cell]]
    assert max(first / second for first, second in pairs) <= Fraction(exp_down(Decimal(epsilon)))
    for first, second in itertools.permutations(range(POINTS + 1), 2):
        rows = Comparison.rows(*(list(laws[point].values()) for point in (first, second)))
        assert check(mechanism.guarantee, rows).verdict == "holds"


@pytest.mark.slow
@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
def test_law_of_the_program_is_the_law_of_the_draws(epsilon: str) -> None:
    mechanism = made(epsilon)
    program, (origin, step) = mechanism.client_program(), mechanism.grid()
    for point in (0, 5, POINTS):
        found: dict[int, Fraction] = defaultdict(Fraction)
        for report, chance in law(program, point).items():
            found[round((np.frombuffer(report, "<f8")[0] - origin) / step)] += chance
        expected = {cell: chance for cell, chance in cell_law(mechanism, point).items() if chance}
        assert found == expected


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_moments_are_those_of_the_law_and_reports_are_unbiased(epsilon: str) -> None:
    mechanism = made(epsilon, 3, 7)
    origin, step = mechanism._stretched
    for point in range(POINTS + 1):
        chances = cell_law(mechanism, point)
        level, slope = mechanism.moments.mean
        constant, linear, quadratic = mechanism.moments.square
        assert mean(chances) == level + slope * point
        assert mean(chances, 2) == constant + linear * point + quadratic * point**2
        value = 3 + Fraction(4 * point, POINTS)
        assert origin + mean(chances) * step == value
        variance = (mean(chances, 2) - mean(chances) ** 2) * step**2
        assert mechanism.error_at(float(value)) == (0.0, pytest.approx(float(variance), rel=1e-12))


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize("epsilon", ["0.5", "1", "4"])
def test_compare_adds_up_the_law_over_its_outcomes(epsilon: str) -> None:
    mechanism = made(epsilon)
    origin, step = mechanism.grid()
    reports = origin + np.arange(mechanism.cells) * step
    for first, second in [(0, 16), (3, 4), (5, 12), (7, 8)]:
        values = [-1 + 2 * point / POINTS for point in (first, second)]
        codes = mechanism.outcomes(reports, *values)
        sides = [cell_law(mechanism, point) for point in (first, second)]
        for code, masses in enumerate(mechanism.compare(*values).masses()):
            cells = np.flatnonzero(codes == code).tolist()
            assert masses == tuple(sum((side[cell] for cell in cells), Fraction(0)) for side in sides)


# -- on the grid of the clients -------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.0001", "0.5", "0.62", "1", "3", "10", "20", "50"])
@pytest.mark.parametrize("ends", [(-1, 1), ("0.1", "0.2"), (18, 1000)])
def test_verify_proves_the_promise_for_all_values(epsilon: str, ends: tuple[object, object]) -> None:
    found = verify(made(epsilon, *ends))
    assert (found.verdict, found.program, found.method) == ("holds", "holds", "channel")


def test_verify_finds_a_tau_below_the_true_one() -> None:
    honest = made()
    lower = SymmetricPair(honest.epsilon, honest.guarantee.tau - Decimal("1e-6"))
    found = check_grid(lower, honest.client_program())
    assert found is not None
    assert found.verdict == "violated"
    assert check(lower, honest.compare(-1, 1)).verdict == "violated"


@pytest.mark.parametrize("epsilon", ["0.7", "1", "2", "3", "4", "8"])
def test_variance_is_that_of_the_paper_for_every_value(epsilon: str) -> None:
    """(s+3)/(3s(s-1)) + B²/s, s = e^(ε/2), on [-1, 1]: the same for every value."""
    s = math.exp(float(epsilon) / 2)
    big = (s * s + 1) / (s * s - 1)
    stated = (s + 3) / (3 * s * (s - 1)) + big**2 / s
    for value in (-1, -0.3, 0, 0.5, 1):
        assert made(epsilon).error_at(value)[1] == pytest.approx(stated, rel=2e-4)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("users", [20, 200])
def test_intervals_cover_as_often_as_they_say(users: int) -> None:
    mechanism, surveys, value = made(2), 4000, 0.25
    reports = mechanism.randomize(np.full(users * surveys, value), rng=5).reshape(surveys, users)
    ends = [mechanism.estimate(survey).interval() for survey in reports]
    covered = np.mean([low <= value <= high for low, high in ends])
    assert 0.94 <= covered <= (0.975 if users > 30 else 1)  # few reports take the largest spread


@pytest.mark.parametrize("first", ["client_program", "numbers", "moments", "grid", "mean_error"])
def test_grid_is_the_same_whatever_was_computed_first(first: str) -> None:
    """A report of value 0 has the mean 0, and one of 14 the mean 14, exactly as the client draws."""
    made: Any = mechanism("hybrid")(epsilon=2, lower=0, upper=14)
    reached = getattr(made, first)
    if callable(reached):
        reached(*((1,) if first == "mean_error" else ()))
    origin, step = made.grid()
    (low, high), (least, growth) = made.numbers, made._upper_one
    alpha = made.piecewise / 2**64
    level, slope = (float(each) for each in made.window_moments.mean)
    for point, value in ((0, 0.0), (2**20, 14.0)):
        upper = (least + point * growth) / 2**64
        mean = alpha * (level + slope * point) + (1 - alpha) * (low + (high - low) * upper)
        assert origin + step * mean == pytest.approx(value, abs=1e-8)
