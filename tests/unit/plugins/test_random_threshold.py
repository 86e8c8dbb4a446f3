"""Random thresholds: laws, quantiles, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget import mechanism
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget_mechanisms._monotone_quantiles import QuantileEstimate, critical_value, isotonic
from ldp_budget_verify.law import law_of

RandomThreshold = mechanism("random-threshold")
INCOME = RandomThreshold(epsilon=1, lower=1000, upper=1_000_000, scale="log")
HOURS = RandomThreshold(epsilon=2, lower=0, upper=24)


@pytest.mark.parametrize("made", [INCOME, HOURS], ids=["log", "linear"])
def test_law_of_every_two_values_is_derived_from_the_program(made: Any) -> None:
    law = law_of(made.client_program())
    assert law.every_pair
    found: Any = law.guarantee(made.epsilon)
    assert found.bound == made.guarantee.bound
    assert float(found.tau) == pytest.approx(1, abs=1e-15)
    assert found.tau <= made.guarantee.tau


@given(st.floats(1000, 1_000_000), st.floats(1000, 1_000_000))
def test_comparison_of_two_values_is_that_of_the_program(first: float, second: float) -> None:
    made = INCOME
    law = law_of(made.client_program())
    points = [made._value_grid.point(value) for value in (first, second)]
    for one, other in (points, points[::-1]):
        found = made.compare(first, second) if one == points[0] else made.compare(second, first)
        assert merged(found) == merged(law.comparison(one, other))


def merged(comparison: Any) -> dict[Fraction, tuple[Fraction, Fraction]]:
    sums: dict[Fraction, tuple[Fraction, Fraction]] = {}
    for p, q in comparison.cases[0].factors[0].masses:
        if p or q:
            a, b = sums.get(p / q, (Fraction(0), Fraction(0)))
            sums[p / q] = a + p, b + q
    return sums


@pytest.mark.parametrize("value", [1000, 20_000, 1_000_000])
def test_contributions_have_the_value_as_their_mean(value: float) -> None:
    reports = INCOME.randomize([value] * 20_000, rng=7)
    found = INCOME.contributions(reports)[:, 0]
    error = INCOME.error_at(value)[1] ** 0.5
    assert found.std() == pytest.approx(error, rel=0.03)
    assert abs(found.mean() - value) < 4 * error / len(found) ** 0.5


def test_partial_aggregates_merge_to_the_same_quantiles() -> None:
    reports = HOURS.randomize(np.linspace(5, 9, 400), rng=1)
    whole, part = HOURS.aggregate(reports), HOURS.aggregate(reports[:150])
    assert HOURS.estimate(part.merge(HOURS.aggregate(reports[150:]))).details() == HOURS.estimate(whole).details()


def test_median_of_many_reports_is_close_and_inside_its_interval() -> None:
    values = np.linspace(4, 12, 20_000)
    found = HOURS.estimate(HOURS.randomize(values, rng=3)).details()["quantiles"]["0.5"]
    assert found["low"] <= 8 <= found["high"]
    assert found["high"] - found["low"] < 1.5
    assert found["estimate"] == pytest.approx(8, abs=0.6)


def test_interval_of_a_single_report_is_the_whole_range() -> None:
    value, low, high = HOURS.estimate(HOURS.randomize([7.0], rng=0)).quantile(0.5)
    assert (low, high) == (0, 24)
    assert 0 <= value <= 24


def test_design_effect_widens_the_interval() -> None:
    plain = HOURS.estimate(HOURS.randomize(np.linspace(4, 12, 3000), rng=3))
    shares = plain.counts / plain.reports
    covariance = np.diag(4 * shares * (1 - shares) / plain.reports)
    wide: QuantileEstimate = HOURS.distribution(shares, covariance, plain)
    (_, low, high), (_, lower, higher) = plain.quantile(0.5), wide.quantile(0.5)
    assert lower <= low <= high <= higher
    assert higher - lower > high - low


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5)), min_size=1, max_size=12))
def test_isotonic_fit_ascends_and_keeps_the_weighted_mean(rows: list[tuple[float, int]]) -> None:
    values, weights = (np.array(each, dtype=np.float64) for each in zip(*rows, strict=True))
    fit = isotonic(values, weights)
    assert len(fit) == len(values)
    used = weights > 0
    assert (np.diff(fit[used]) >= -1e-12).all()
    assert weights[used] @ fit[used] == pytest.approx(weights[used] @ values[used])


def test_critical_values_grow_with_the_level_and_end_in_those_of_chi_squared() -> None:
    levels = [0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999]
    found = [critical_value(level) for level in levels]
    assert found == sorted(found)
    assert critical_value(0.95) == pytest.approx(2.2692)
    assert critical_value(0.999) == pytest.approx(10.8276, rel=1e-4)


def test_logarithmic_scale_without_a_positive_lower_end_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="lower must be above 0 on a logarithmic scale: got 0"):
        RandomThreshold(epsilon=1, lower=0, upper=10, scale="log")
    with pytest.raises(InvalidParameter, match="upper must be at most 10,000,000 times lower"):
        RandomThreshold(epsilon=1, lower=1, upper=10**8, scale="log")


@pytest.mark.parametrize("reports", [[[1]], [0.5], [1024], [-1]])
def test_what_no_client_sends_is_refused(reports: list[Any]) -> None:
    with pytest.raises(NotSupported, match="reports of random-threshold must be"):
        INCOME.estimate(np.array(reports))


@pytest.mark.parametrize("listed", ["1e-400", "0.99999999999999999999", "sNaN", "0.5,sNaN", "nan", "0.5,1e-400"])
def test_random_threshold_refuses_probabilities_that_are_no_doubles_within_0_and_1(listed: str) -> None:
    with pytest.raises(InvalidParameter, match="quantiles"):
        RandomThreshold(epsilon=1, lower=0, upper=1, quantiles=listed)
