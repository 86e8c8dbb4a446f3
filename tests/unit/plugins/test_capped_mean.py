"""Means of capped values from thresholds: their lengths, and their mean over the exact law of reports."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_budget import mechanism
from ldp_budget.sdk.estimates import MeanEstimate
from ldp_budget_mechanisms._capped_mean import capped_mean, finds_cap

INCOME = mechanism("random-threshold")(epsilon=2, lower=1000, upper=1_000_000, scale="log", cap_at="0.95")
EDGES = np.array(INCOME.edges)
KEEP = INCOME.keep / 2**64


def expected_shares(value: float) -> np.ndarray:
    """The shares of the noes and the yeses of each bin, if all users have this value, at an edge."""
    yes = np.where(np.arange(256) >= np.searchsorted(EDGES, value), KEEP, 1 - KEEP)
    return (np.stack([1 - yes, yes], axis=1) / 256).reshape(-1)


@pytest.mark.parametrize("guess", [0.5, KEEP, "rising"])
@pytest.mark.parametrize(("value_at", "cap_at"), [(60, 200), (200, 60), (180, 181), (255, 256), (3, 256), (0, 1)])
def test_mean_over_the_law_is_the_capped_value_whatever_is_guessed(
    value_at: int, cap_at: int, guess: float | str
) -> None:
    fitted = np.linspace(1 - KEEP, KEEP, 256) if guess == "rising" else np.full(256, float(guess))
    value = float(EDGES[value_at])
    found = capped_mean(expected_shares(value), 1000, KEEP, EDGES, cap_at, fitted, 0.95)
    assert found.cap == EDGES[cap_at]
    # A bin that finds the cap, and says nothing of the mean, is counted by its neighbors: half of its length at most.
    assert found.mean == pytest.approx(min(value, found.cap), rel=0.015)
    assert EDGES[0] <= found.low <= found.high <= found.cap


def test_answers_that_find_the_cap_do_not_move_the_mean() -> None:
    shares, fitted = expected_shares(float(EDGES[100])), np.full(256, 0.5)
    moved = shares.reshape(-1, 2).copy()
    moved[finds_cap(256)] = moved[finds_cap(256)][:, ::-1]
    first = capped_mean(shares, 1000, KEEP, EDGES, 200, fitted, 0.95)
    assert capped_mean(moved.reshape(-1), 1000, KEEP, EDGES, 200, fitted, 0.95) == pytest.approx(first)


def test_standard_error_is_that_of_simulated_surveys() -> None:
    rng = np.random.default_rng(3)
    values = np.clip(rng.lognormal(10.4, 0.6, 2000), 1000, 1_000_000)
    runs = [INCOME.estimate(INCOME.randomize(values, rng=seed)).details() for seed in range(80)]
    errors = [each["mean"] - np.minimum(values, each["cap"]).mean() for each in runs]
    assert np.std(errors) == pytest.approx(np.mean([each["std_error"] for each in runs]), rel=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("more", [{"cap_at": "0.95"}, {"quantiles": "0.5"}])
def test_planned_margin_is_that_of_simulated_surveys(more: dict[str, str]) -> None:
    made = mechanism("random-threshold")(epsilon=2, lower=0, upper=1, **more)
    rng, found = np.random.default_rng(5), []
    for seed in range(60):
        row = made.estimate(made.randomize(rng.random(3000), rng=seed)).details()
        row = row["quantiles"]["0.5"] if "quantiles" in row else {**row, "estimate": row["mean"]}
        found.append(max(row["high"] - row["estimate"], row["estimate"] - row["low"]))
    assert np.mean(found) == pytest.approx(made.planned_margin(3000), rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 3], ids=["simple", "households"])
def test_intervals_of_few_people_cover_the_capped_mean(size: int) -> None:
    made = mechanism("random-threshold")(epsilon=4, lower=1000, upper=1_000_000, scale="log", cap_at="0.95")
    rng = np.random.default_rng(6)
    many = np.clip(rng.lognormal(10.4, 0.6, 20_000), 1000, 1_000_000)
    covered = []
    for seed in range(200):
        values = np.repeat(rng.choice(many, 50 // size + 1), size)[:50]
        bins, number = made.report_bins(made.randomize(values, rng=seed))
        shares = np.bincount(bins, minlength=number) / 50
        groups = np.add.reduceat(np.eye(number)[bins] - shares, np.arange(0, 50, size)) / 50
        covariance = groups.T @ groups * len(groups) / (len(groups) - 1)
        mean = MeanEstimate(50, 0.0, 1.0, freedom=len(groups) - 1)
        row = made.distribution(shares, None if size == 1 else covariance, mean).details()
        covered.append(row["low"] <= np.minimum(many, row["cap"]).mean() <= row["high"])
    assert np.mean(covered) >= 0.95
