"""Strict bounds of quantiles: they hold for whole numbers, for values at the ends, and for a handful of reports."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_budget import mechanism
from ldp_budget_mechanisms._distribution_bounds import cumulative, distribution_bounds, margin_of

PROBABILITIES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)


def test_cumulative_probabilities_fall_with_the_value_and_rise_with_the_edge() -> None:
    found = cumulative(0.7, 300, 1000, 64)
    assert found.shape == (63, 65)
    assert (np.diff(found, axis=1) <= 1e-12).all()
    assert (np.diff(found, axis=0) > 0).all()


@pytest.mark.parametrize("window", [40, 400])
@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_bounds_of_expected_reports_hold_the_distribution(window: int, value: float) -> None:
    """Reports as expected of users who all have one value: no margin is needed, so the bounds are as tight as they get."""
    chances = cumulative(0.8, window, 1000, 256)
    below = chances[:, round(256 * value)]
    least, most = distribution_bounds(chances, below, 1e-6)
    truth = np.linspace(0, 1, 257) >= value
    before = np.linspace(0, 1, 257) > value
    assert (least <= truth + 1e-9).all()
    assert (most >= before - 1e-9).all()
    assert (most >= least - 1e-9).all()


def test_bounds_without_reports_of_weight_hold_everything() -> None:
    chances = cumulative(0.8, 300, 1000, 64)
    least, most = distribution_bounds(chances, np.full(63, 0.5), 1.0)
    assert not least[:-1].any()
    assert most.all()


def test_margin_takes_the_larger_of_the_reports_and_of_the_design() -> None:
    assert margin_of(100, 0.95) == pytest.approx((np.log(40) / 200) ** 0.5)
    assert margin_of(100, 0.95, 0.01) == pytest.approx(2 * margin_of(100, 0.95))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize("kind", ["whole hours", "two ends", "one value"])
def test_quantile_intervals_cover_whatever_the_values_are(epsilon: int, kind: str) -> None:
    wave, rng, hits = (
        mechanism("square-wave").calibrate(epsilon=epsilon, lower=0, upper=1),
        np.random.default_rng(1),
        [],
    )
    draw = {
        "whole hours": lambda n: np.round(12 * rng.beta(2, 4, n)) / 12,
        "two ends": lambda n: rng.beta(0.5, 0.5, n),
        "one value": lambda n: np.full(n, 0.3),
    }[kind]
    for users in (1, 4, 400):
        for seed in range(2):
            values = draw(users)
            found = wave.estimate(wave.randomize(values, rng=seed)).quantiles(PROBABILITIES)
            truth = np.quantile(values, PROBABILITIES)
            hits += [row["low"] - 1e-9 <= each <= row["high"] + 1e-9 for row, each in zip(found, truth, strict=True)]
            assert all(row["low"] < row["high"] for row in found)
            assert all(row["low"] <= row["value"] <= row["high"] for row in found)
    assert np.mean(hits) >= 0.95
