"""The square wave: its bandwidth and law, and the distributions that its server makes of reports."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import ldp_budget
from ldp_budget import Collection, NotSupported
from ldp_budget.guarantees import SymmetricPair
from ldp_budget.guarantees.fixed_point import exp_down
from ldp_budget.reports.estimation import estimate_row
from ldp_budget.sampling import ONE
from ldp_budget.sdk.channels import Comparison
from ldp_budget_mechanisms import _moving_window, square_wave
from ldp_budget_mechanisms._smoothed_distribution import fixed_point, smoothed, transitions
from ldp_budget_verify.exact import verify
from ldp_budget_verify.exact.dominance import check

SquareWave: Any = ldp_budget.mechanism("square-wave")


def made(epsilon: object = 1, **more: Any) -> Any:
    return SquareWave.calibrate(**{"epsilon": epsilon, "lower": 0, "upper": 1, **more})


# -- the client -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.0001", "0.01", "0.5", "1", "2", "4", "10", "30"])
def test_window_is_the_bandwidth_of_the_paper(epsilon: str) -> None:
    """b = (εe^ε - e^ε + 1)/(2e^ε(e^ε - 1 - ε)), to the nearest cell."""
    with mpmath.workdps(60):
        e = mpf(epsilon)
        odds = mpmath.exp(e)
        b = (e * odds - odds + 1) / (2 * odds * (odds - 1 - e))
        expected = max(1, int(mpmath.nint(2 * b * 2**20)))
    mechanism = made(epsilon)
    assert mechanism.window == expected
    assert mechanism.parameters["b"] == expected / 2**21


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("epsilon", ["0.01", "1", "3"])
def test_law_of_every_pair_of_points_is_within_the_guarantee(epsilon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    points = 16
    monkeypatch.setattr(_moving_window, "POINTS", points)
    monkeypatch.setattr(square_wave, "POINTS", points)
    mechanism = made(epsilon)
    keep, window = Fraction(mechanism.keep, ONE), mechanism.window
    laws = [
        [keep / window if point <= cell < point + window else (1 - keep) / points for cell in range(mechanism.cells)]
        for point in range(points + 1)
    ]
    assert all(sum(one) == 1 for one in laws)
    for first, second in itertools.permutations(laws, 2):
        assert max(p / q for p, q in zip(first, second, strict=True)) <= Fraction(exp_down(Decimal(epsilon)))
        assert check(mechanism.guarantee, Comparison.rows(first, second)).verdict == "holds"


@pytest.mark.parametrize("epsilon", ["0.0001", "0.3", "1", "5", "20", "50"])
def test_verify_proves_the_promise_for_all_values(epsilon: str) -> None:
    found = verify(made(epsilon, lower=-3, upper="7.5"))
    assert (found.verdict, found.program) == ("holds", "holds")


def test_guarantee_is_the_pair_of_two_windows_that_do_not_meet() -> None:
    mechanism = made(1)
    kappa, odds = mechanism.window / 2**20, math.e
    assert isinstance(mechanism.guarantee, SymmetricPair)
    assert float(mechanism.guarantee.tau) == pytest.approx(kappa * (odds + 1) / (kappa * odds + 1), rel=1e-8)


# -- the server -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_transitions_are_the_shares_of_reports_in_each_bin() -> None:
    """Against reports of values spread over one bin."""
    mechanism, users = made(1, bins=8), 200_000
    matrix = mechanism._transitions
    assert matrix.sum(axis=0) == pytest.approx(np.ones(256))
    for bin_ in (0, 100, 255):
        values = (bin_ + (np.arange(users) + 0.5) / users) / 256
        counts = mechanism.aggregate(mechanism.randomize(values, rng=bin_)).bins
        off = (counts - users * matrix[:, bin_]) / np.sqrt(users * matrix[:, bin_])
        assert np.abs(off).max() < 5


def test_transitions_of_a_fine_grid_are_exact() -> None:
    """Of 4 points and a window of 2, in 3 bins: by hand, for the first bin of values and the first of reports."""
    matrix = transitions(0.75, 2, 4, 2)
    # Values 0 to 2 have a window from there to 2 more, of which 3 - v - v below cell 3: 1.75 on average.
    assert matrix[0, 0] == pytest.approx(0.75 / 2 * 1.75 + 0.25 / 4 * (3 - 1.75))


def test_fixed_point_is_one_of_the_steps_of_the_paper() -> None:
    mechanism = made(1)
    values = np.random.default_rng(1).beta(5, 2, 20_000)
    counts = mechanism.aggregate(mechanism.randomize(values, rng=1)).bins
    matrix, shares = mechanism._transitions, counts / counts.sum()
    found = fixed_point(matrix, shares)
    assert found.min() > 0
    assert found.sum() == pytest.approx(1)
    again = smoothed(found * (shares / (matrix @ found) @ matrix))
    assert np.abs(again - found).sum() < 1e-8


def on_simplex(shares: Any) -> Any:
    """The nearest shares that are at least 0 and add up to 1."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    return np.maximum(shares - excess[np.flatnonzero(falling > excess)[-1]], 0)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("epsilon", "rounds"), [("2", 6), pytest.param("1", 40, marks=pytest.mark.exhaustive)])
def test_distribution_is_nearer_than_the_best_binning(epsilon: str, rounds: int) -> None:
    """W1 of Beta(5, 2), n = 100,000: at most 0.8 of subset selection on 8, 16 or 32 bins, cut to the simplex."""
    mechanism, users, chance = made(epsilon), 100_000, np.random.default_rng(4)
    errors = {"square-wave": 0.0, 8: 0.0, 16: 0.0, 32: 0.0}
    for round_ in range(rounds):
        values = chance.beta(5, 2, users)
        truth = np.histogram(values, np.linspace(0, 1, 257))[0] / users
        shares = mechanism.estimate(mechanism.randomize(values, rng=round_)).shares
        errors["square-wave"] += np.abs(np.cumsum(shares - truth)).mean()
        for bins in (8, 16, 32):
            subset: Any = ldp_budget.mechanism("subset-selection").calibrate(epsilon=epsilon, domain_size=bins)
            reports = subset.randomize(np.minimum((values * bins).astype(int), bins - 1), rng=round_)
            found = on_simplex(subset.estimate(reports).shares)
            errors[bins] += np.abs(np.cumsum(np.repeat(found, 256 // bins) * bins / 256 - truth)).mean()
    assert errors["square-wave"] <= 0.8 * min(errors[bins] for bins in (8, 16, 32))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("epsilon", "users"), [("0.5", 20_000), ("2", 2_000), ("4", 100_000)])
def test_quantile_intervals_of_smooth_values_cover(epsilon: str, users: int) -> None:
    mechanism, chance, covered = made(epsilon, upper=10), np.random.default_rng(8), []
    for round_ in range(12):
        values = 10 * chance.beta(5, 2, users)
        row = mechanism.estimate(mechanism.randomize(values, rng=round_)).details()
        covered += [
            low <= np.quantile(values, float(name)) <= high for name, (low, high) in row["quantile_intervals"].items()
        ]
    assert np.mean(covered) >= 0.9


def test_mean_is_unbiased_where_the_distribution_is_not_smooth() -> None:
    mechanism, users = made("0.5", upper=100), 50_000
    values = np.where(np.arange(users) % 10 < 7, 3.0, 97.0)
    estimate = mechanism.estimate(mechanism.randomize(values, rng=1))
    assert abs(estimate.mean - values.mean()) < 4.5 * estimate.std_error


@pytest.mark.slow
def test_row_has_the_mean_the_quantiles_and_the_bins() -> None:
    mechanism = made(1, lower=18, upper=70, bins=4)
    collection = Collection("age", mechanism)
    estimate = mechanism.estimate(mechanism.randomize(np.linspace(20, 40, 5000), rng=2))
    row = estimate_row(collection, estimate)
    assert row["reports"] == 5000
    assert row["low"] <= row["mean"] <= row["high"]
    assert list(row["quantiles"]) == ["0.05", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95"]
    assert row["quantiles"]["0.5"] == pytest.approx(30, abs=3)
    values = list(row["quantiles"].values())
    assert values == sorted(values)
    for name, (low, high) in row["quantile_intervals"].items():
        assert 18 <= low <= row["quantiles"][name] <= high <= 70
    assert [(each["low"], each["high"]) for each in row["bins"]] == [(18, 31), (31, 44), (44, 57), (57, 70)]
    assert sum(each["share"] for each in row["bins"]) == pytest.approx(1)
    assert all(0 <= each["share_low"] <= each["share"] <= each["share_high"] <= 1 for each in row["bins"])


def test_aggregates_merge_their_bins() -> None:
    mechanism = made(1)
    reports = mechanism.randomize(np.linspace(0, 1, 500), rng=1)
    whole = mechanism.aggregate(reports)
    merged = mechanism.aggregate(reports[:120]).merge(mechanism.aggregate(reports[120:]))
    assert (merged.bins == whole.bins).all()
    assert (merged.reports, merged.total, merged.total_squares) == (500, whole.total, whole.total_squares)
    with pytest.raises(NotSupported):
        whole.merge(made(2).aggregate(made(2).randomize([0.5])))
