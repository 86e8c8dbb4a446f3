"""Options that were ticked together, in samples with weights, groups and a finite population."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from ldp_budget import mechanism
from ldp_budget_cli.app import cli
from ldp_budget_surveys.designs.finite_population import FinitePopulation, Noise
from ldp_budget_surveys.designs.moments import moments_of
from ldp_budget_surveys.designs.weighted_means import MeansEstimate, Survey
from ldp_budget_surveys.designs.weights import equal_weights, table_weights

DESIGNS = [{"domain_size": 5, "at_most": 2, "pairs": True}, {"domain_size": 5, "pairs": True}]
FIRST = 5  # the place of options 0 and 1 together


def reports_of(made: Any, groups: list[str], seed: int) -> Any:
    """Return reports of people of whom 60 % of group a, and 10 % of group b, ticked options 0 and 1."""
    rng = np.random.default_rng(seed)
    both = rng.random(len(groups)) < np.where(np.array(groups) == "a", 0.6, 0.1)
    sets = np.zeros((len(groups), 5), bool)
    sets[both, :2] = True
    sets[~both, rng.integers(0, 5, (~both).sum())] = True
    return made.randomize(sets, rng=seed)


def means(
    made: Any, reports: Any, groups: list[str], people: float | None = None, *, weighted: bool
) -> MeansEstimate:
    moments = moments_of(made.pair_contributions(reports), {"group": groups})
    rows = [{"group": "a", "weight": "1"}, {"group": "b", "weight": "4"}]
    weights = table_weights(moments, rows) if weighted else equal_weights(moments)
    population = None if people is None else FinitePopulation(people, Noise(*made.pair_noise))
    return Survey(moments, weights, law=made.pair_law, population=population).means()


@pytest.mark.parametrize("declared", DESIGNS, ids=str)
def test_pairs_of_equal_weights_are_those_of_a_simple_sample(declared: dict[str, Any]) -> None:
    made: Any = mechanism("ticks").calibrate(epsilon=3, **declared)
    groups = ["a", "b"] * 100
    reports = reports_of(made, groups, 1)
    found, simple = means(made, reports, groups, weighted=False), made.estimate(reports).pairs(0, 1)
    low, high = found.interval()
    assert found.values[FIRST] == pytest.approx(simple.share)
    assert (low[FIRST], high[FIRST]) == pytest.approx((simple.low, simple.high), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("declared", DESIGNS, ids=str)
def test_intervals_of_weighted_pairs_cover_the_share_of_the_population(declared: dict[str, Any]) -> None:
    made: Any = mechanism("ticks").calibrate(epsilon=3, **declared)
    groups = ["a", "b"] * 75
    covered = []
    for seed in range(300):
        low, high = means(made, reports_of(made, groups, seed), groups, weighted=True).interval()
        covered.append(low[FIRST] <= 0.2 <= high[FIRST])  # (0.6 + 4 · 0.1)/5
    assert 0.92 <= np.mean(covered) <= 0.99


@pytest.mark.parametrize("declared", DESIGNS, ids=str)
def test_error_of_pairs_in_a_census_is_that_of_the_noise(declared: dict[str, Any]) -> None:
    made: Any = mechanism("ticks").calibrate(epsilon=3, **declared)
    groups = ["a", "b"] * 1000
    reports = reports_of(made, groups, 1)
    census, sample = (means(made, reports, groups, people, weighted=False) for people in (2000, None))
    share = census.values[FIRST]
    gap = sample.std_errors[FIRST] ** 2 - census.std_errors[FIRST] ** 2
    assert gap == pytest.approx(share * (1 - share) / 2000, rel=0.35)


@pytest.mark.slow
def test_estimate_with_weights_and_groups_has_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDP_BUDGET_LEDGER", str(tmp_path / "budget.db"))

    def run(*words: str) -> str:
        done = CliRunner().invoke(cli, list(words))
        assert done.exit_code == 0, done.output
        return done.stdout

    options = '[survey]\nname = "trips"\nepsilon = 4\n[[question]]\nname = "used"\nkind = "tick"\n'
    Path("trips.toml").write_text(options + 'categories = ["bus", "train", "car"]\nat_most = 2\npairs = true\n')
    lines = [f"{('bus; train', 'car')[n % 2]},{'ab'[n % 3 == 0]},{1 + n % 3}" for n in range(600)]
    Path("a.csv").write_text("\n".join(["used,group,weight", *lines]))
    run("survey", "add", "trips.toml")
    run("randomize", "trips", "a.csv", "--public", "group", "--public", "weight", "--out", "a.reports")
    words = ("estimate", "trips", "a.reports", "--weights", "weight", "--by", "group")
    row = json.loads(run(*words, "--json"))["used"]
    for each in (row, *row["groups"]):
        assert each["pairs"][0]["answers"] == ["bus", "train"]
        assert 0 <= each["pairs"][0]["low"] < 0.5 < each["pairs"][0]["high"] < 1
    assert run(*words).count("Ticked together") == 3
