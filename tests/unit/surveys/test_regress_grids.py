"""`regress` of grids, joint yes/no questions and scales, whose reports hold several answers."""

from __future__ import annotations

import csv
import json
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from ldp_budget import Accountant
from ldp_budget.errors import InvalidParameter
from ldp_budget.sampling import SeededStream, rng
from ldp_budget_cli.app import cli
from ldp_budget_surveys.regression import Regression, regress

pytest.importorskip("formulaic")

SURVEY = """
[survey]
name = "visit"
epsilon = 12
joint = true

[[question]]
name = "smoke"
kind = "yes-no"

[[question]]
name = "drink"
kind = "yes-no"

[[question]]
name = "advice"
kind = "scale"
lower = 1
upper = 5
report = "top-box"

[[question]]
name = "clean"
kind = "scale"
lower = 1
upper = 5
report = "mean"

[[grid]]
name = "stay"
items = ["food", "room"]
lower = 1
upper = 3
answer = 1
"""


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that regresses a formula on 1,200 seeded reports of the survey."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDP_BUDGET_LEDGER", "budget.db")
    seeds = count()
    monkeypatch.setattr(rng, "_cryptographic_stream", lambda: SeededStream(next(seeds)))
    Path("visit.toml").write_text(SURVEY, encoding="utf-8")
    numbers = np.random.default_rng(2)
    lines = ["user,region,smoke,drink,advice,clean,stay/food,stay/room"]
    for place in range(1200):
        north = place % 2
        yes = ["yes" if numbers.random() < share else "no" for share in (0.3 + 0.4 * north, 0.5)]
        cells = [f"u{place}", ("east", "north")[north], *yes, 1 + place % 5, 1 + place % 4]
        lines.append(",".join(map(str, [*cells, 1 + (place + north) % 3, 1 + place % 3])))
    Path("a.csv").write_text("\n".join(lines), encoding="utf-8")
    for words in (
        ["survey", "add", "visit.toml"],
        ["randomize", "visit", "a.csv", "--public", "region", "--out", "r"],
    ):
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0, done.output

    def fitted(formula: str, model: str | None = None) -> Regression:
        with Accountant("budget.db") as accountant:
            return regress(accountant.collection("visit"), ["r"], formula, model=model)

    return fitted


def _values(fitted: Regression) -> list[float]:
    return [each.estimate for _, each in fitted.coefficients]


@pytest.mark.slow
def test_joint_question_has_the_logistic_model_of_its_own_bit(found: Any) -> None:
    whole, bit = found("smoke ~ region"), found("smoke.yes ~ region")
    assert _values(whole) == pytest.approx(_values(bit), rel=1e-8)
    assert _values(whole)[1] > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stay/food", "smoke", "advice"])
def test_model_with_a_coefficient_for_each_group_has_the_shares_of_the_groups(found: Any, name: str) -> None:
    logits, linear = found(f"{name} ~ region - 1"), found(f"{name} ~ region - 1", "linear")
    shares = {(answer, each.name): each.estimate for answer, each in linear.coefficients}
    for group in ("region[east]", "region[north]"):
        odds = {answer: np.exp(each.estimate) for answer, each in logits.coefficients if each.name == group}
        for answer, each in odds.items():
            assert each / (1 + sum(odds.values())) == pytest.approx(shares[answer, group], abs=1e-6)


@pytest.mark.slow
def test_top_box_is_modelled_and_a_mean_is_in_the_unit_of_the_scale(found: Any) -> None:
    assert found("advice ~ region").reference == "other"
    [mean] = _values(found("clean ~ 1"))
    assert 1 < mean < 5


@pytest.mark.slow
@pytest.mark.parametrize("formula", ["smoke ~ drink", "clean ~ smoke + drink"])
def test_two_items_of_one_report_in_a_formula_are_refused(found: Any, formula: str) -> None:
    with pytest.raises(InvalidParameter, match="in different formulas, because one report holds both"):
        found(formula)


@pytest.mark.slow
def test_contributions_of_items_average_to_their_estimates(found: Any) -> None:
    assert CliRunner().invoke(cli, ["contributions", "visit", "r", "--out", "x.csv"]).exit_code == 0
    with open("x.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    estimate = json.loads(CliRunner().invoke(cli, ["estimate", "visit", "r", "--json"]).stdout)
    for name in ("smoke", "stay/food"):
        for each in estimate[name]["answers"]:
            cells = [float(row[f"{name}.{each['answer']}"]) for row in rows if row[f"{name}.{each['answer']}"]]
            assert np.mean(cells) == pytest.approx(each["share"], rel=1e-9)
    assert any(not row["stay/food.1"] and row["stay/room.1"] for row in rows)
    assert np.mean([float(row["clean"]) for row in rows]) == pytest.approx(estimate["clean"]["mean"], rel=1e-9)
