"""Weighted quantiles of a numeric question."""

from __future__ import annotations

import numpy as np
import pytest

from ldp_budget import mechanism
from ldp_budget.errors import NotSupported
from ldp_budget_surveys.designs.moments import EXCLUSIVE, moments_of
from ldp_budget_surveys.designs.quantiles import indicators, quantiles
from ldp_budget_surveys.designs.weighted_means import Survey
from ldp_budget_surveys.designs.weights import equal_weights, table_weights

WAVE = mechanism("square-wave").calibrate(epsilon=3, lower=0, upper=100)


def _found(reports: np.ndarray, groups: list[str], weights: dict[str, float] | None) -> dict[str, object]:
    public = {"region": groups}
    moments = moments_of(WAVE.contributions(reports), public)
    bins = moments_of(indicators(*WAVE.report_bins(reports)), public, EXCLUSIVE)

    def survey(of: object) -> Survey:
        rows = [{"region": name, "weight": str(weight)} for name, weight in (weights or {}).items()]
        return Survey(of, table_weights(of, rows) if rows else equal_weights(of))

    return quantiles(WAVE, survey(moments).means(), survey(bins))


@pytest.mark.slow
def test_quantiles_with_equal_weights_are_those_of_the_mechanism() -> None:
    reports = WAVE.randomize(np.random.default_rng(1).uniform(20, 80, 3000), rng=2)
    found = _found(reports, ["a"] * 3000, None)
    plain = WAVE.estimate(reports).details()
    for name, value in plain["quantiles"].items():
        assert found["quantiles"][name] == pytest.approx(value)
        assert found["quantile_intervals"][name] == pytest.approx(
            plain["quantile_intervals"][name], rel=0.02, abs=0.2
        )


@pytest.mark.slow
def test_quantiles_with_weights_are_those_of_the_population() -> None:
    # The sample has as many people of a region around 30 as around 70; the population has nine times as many around 30.
    rng = np.random.default_rng(3)
    groups = ["low", "high"] * 4000
    values = np.where(np.arange(8000) % 2, rng.uniform(60, 80, 8000), rng.uniform(20, 40, 8000))
    found = _found(WAVE.randomize(values, rng=4), groups, {"low": 9, "high": 1})
    low, high = found["quantile_intervals"]["0.5"]
    truth = float(np.quantile(rng.uniform(20, 40, 90_000), 0.5 / 0.9))
    assert low < truth < high
    assert found["quantiles"]["0.5"] == pytest.approx(truth, abs=2)


def test_quantiles_of_a_mechanism_without_a_distribution_are_refused() -> None:
    with pytest.raises(NotSupported, match="square-wave"):
        mechanism("laplace").calibrate(epsilon=1, lower=0, upper=1).report_bins(np.zeros(3))
