"""Planned margins of every kind of question, beside those of simulated surveys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from income_survey import income_survey
from ldp_budget import mechanism
from ldp_budget.errors import InvalidParameter
from ldp_budget_surveys.questionnaires.surveys import Survey
from ldp_budget_surveys.survey_planning import plan_survey

PEOPLE, SURVEYS = 2000, 300
CHOICES = 'categories = ["a", "b", "c", "d"]'
SCALE = 'kind = "scale"\nlower = 0\nupper = 10\nreport = '
KINDS: dict[str, tuple[str, list[Any]]] = {
    # The keys of the question, and the answers of two halves of the people, of which one is the worst.
    "choice": (CHOICES, ["a", "b"]),
    "yes-no": ('kind = "yes-no"', ["yes", "no"]),
    "number": ('kind = "number"\nlower = 0\nupper = 14', [14, 7]),
    "tick, at most 2": ('kind = "tick"\nat_most = 2\n' + CHOICES, ["a; b", "none"]),
    "tick, any": ('kind = "tick"\nat_most = "any"\n' + CHOICES, ["a; b", "none"]),
    "mean": (SCALE + '"mean"', [10, 5]),
    "shares": (SCALE + '"shares"', [10, 5]),
    "top-box": (SCALE + '"top-box"', [10, 5]),
    "nps": (SCALE + '"nps"', [10, 5]),
}


def survey_of(folder: Path, keys: str) -> Survey:
    text = f'[survey]\nname = "s"\nepsilon = 2\n[[question]]\nname = "q"\n{keys}\n'
    (folder / "s.toml").write_text(text, encoding="utf-8")
    return Survey.from_toml(folder / "s.toml")


def planned(survey: Survey, people: int = PEOPLE) -> dict[str, Any]:
    row: dict[str, Any] = plan_survey(survey, people)["designs"][0]["questions"][0]
    return row


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_planned_margin_of_a_kind_is_that_of_simulated_surveys(tmp_path: Path, kind: str) -> None:
    keys, answers = KINDS[kind]
    survey = survey_of(tmp_path, keys)
    asked, stated, errors = survey.questionnaire(), [], []
    for people in ([answers[0]] * PEOPLE, answers * (PEOPLE // 2), [answers[1]] * PEOPLE):
        values = asked.read_values([{"q": each} for each in people])
        found = [asked.estimate(asked.randomize(values, rng=seed)).questions["q"] for seed in range(SURVEYS)]
        numbers = [(each.counts / PEOPLE, each.std_errors / PEOPLE) for each in found if hasattr(each, "counts")]
        numbers = numbers or [(np.array([each.mean]), np.array([each.std_error])) for each in found]  # type: ignore[union-attr]
        estimates, own = (np.array(each) for each in zip(*numbers, strict=True))
        stated.append(own.mean(axis=0))
        errors.append(estimates.std(axis=0))
    margin = planned(survey)["margin"]
    assert 1.96 * np.max(stated) == pytest.approx(margin, rel=0.05)
    # The errors are as large as they are stated to be: 300 surveys show it to 4 % each.
    assert np.sqrt(np.mean(np.square(errors) / np.square(stated))) == pytest.approx(1, rel=0.05)


INCOMES = "assumed = [[15000, 0.1], [22000, 0.25], [33000, 0.5], [49200, 0.75], [71000, 0.9], [133000, 0.99]]"
"""Points of the lognormal distribution below, as a table of brackets has them."""
THRESHOLDS = [
    # keys, people, and the tolerance; a median is within 5 % at any number of people
    ("quantile", 'scale = "log"', 300, 0.1),
    ("quantile", 'scale = "log"', 3000, 0.05),
    ("capped-mean", 'scale = "log"', 3000, 0.1),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "keys", "people", "tolerance"), THRESHOLDS)
def test_planned_margin_for_assumed_incomes_is_that_of_simulated_surveys(
    tmp_path: Path, kind: str, keys: str, people: int, tolerance: float
) -> None:
    survey = income_survey(tmp_path, kind, f"{keys}\n{INCOMES}")
    asked, rng, margins = survey.questionnaire(), np.random.default_rng(4), []
    made: Any = asked.questions[0].mechanism
    for seed in range(SURVEYS):
        incomes = np.clip(rng.lognormal(10.4, 0.6, people), 1000, 1_000_000)
        row = made.estimate(made.randomize(incomes, rng=seed)).details()
        row = row["quantiles"]["0.5"] if "quantiles" in row else {**row, "estimate": row["mean"]}
        margins.append(max(row["high"] - row["estimate"], row["estimate"] - row["low"]))
    # The cap of a few surveys is far out, and their margins with it: the plan is that of the middle one.
    realised = np.mean(margins) if kind == "quantile" else np.median(margins)
    row = planned(survey, people)
    assert row["assumed"] is True
    assert realised == pytest.approx(row["margin"], rel=tolerance)
    plain = planned(income_survey(tmp_path, kind, keys), people)
    assert plain["assumed"] is False
    assert plain["margin"] > 2 * row["margin"]


def test_planned_margin_of_a_quantile_follows_the_assumed_density() -> None:
    made: Any = mechanism("random-threshold")(epsilon=2, lower=0, upper=1, quantiles="0.5")
    even, narrow = made.planned_margin(10_000), made.planned_margin(10_000, ((0.25, 0), (0.75, 1)))
    # Twice the density: a margin smaller by 2^(2/3), without the bin at each end.
    assert (even - 1 / 256) / (narrow - 1 / 256) == pytest.approx(2 ** (2 / 3), rel=0.02)


def test_assumed_points_are_kept_with_the_question(tmp_path: Path) -> None:
    survey = income_survey(tmp_path, "quantile", INCOMES)
    assert len(survey.questions[0].assumed) == 6
    assert Survey.from_json(survey.to_json()) == survey


@pytest.mark.parametrize(
    "wrong",
    ["[[1, 0.5]]", "[[20000, 2]]", "[[20000, 0.5], [15000, 0.6]]", "[[20000, 0.5, 1]]", "[20000]", "[[20000, nan]]"],
)
def test_wrong_assumed_points_are_refused(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(InvalidParameter, match="share of people at most at it"):
        income_survey(tmp_path, "quantile", f"assumed = {wrong}")
    with pytest.raises(InvalidParameter, match="left out of a question of kind number"):
        income_survey(tmp_path, "number", INCOMES)
