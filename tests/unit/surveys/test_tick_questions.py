"""Questions *tick all that apply* of a survey: the TOML file, the questionnaire, estimates and plans."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldp_budget.errors import InvalidParameter, OutsideDomain
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.survey_rows import survey_row
from ldp_budget_surveys.questionnaires.surveys import Survey
from ldp_budget_surveys.survey_planning import plan_survey

TEXT = """
[survey]
name = "health"
epsilon = 4
answer = {answer}

[[question]]
name = "smoke"
kind = "yes-no"

[[question]]
name = "transport"
kind = "tick"
categories = ["bus", "train", "car", "bicycle", "on foot"]
{more}
"""


def survey_of(folder: Path, more: str = "at_most = 2", answer: str = '"all"') -> Survey:
    (folder / "health.toml").write_text(TEXT.format(more=more, answer=answer), encoding="utf-8")
    return Survey.from_toml(folder / "health.toml")


@pytest.mark.parametrize(
    ("more", "declared"),
    [
        ("at_most = 2", {"at_most": 2, "pairs": False}),
        ("at_most = 2\npairs = true", {"at_most": 2, "pairs": True}),
        ('at_most = "any"', {"pairs": False}),
        ("", {"pairs": False}),
    ],
)
def test_tick_question_has_the_mechanism_of_its_sets(tmp_path: Path, more: str, declared: dict[str, Any]) -> None:
    survey = survey_of(tmp_path, more)
    made = survey.questionnaire().questions[1]
    assert made.mechanism.declared == {"domain_size": 5, "epsilon": "2", **declared}
    assert Survey.from_json(survey.to_json()) == survey
    found = survey_collection(survey).definition()["questions"][1]
    assert (found["kind"], found["at_most"], len(found["answers"])) == ("tick", declared.get("at_most", 5), 5)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("at_most = 6", "at_most"),
        ("at_most = 0", "at_most"),
        ("at_most = true", "at_most"),
        ('at_most = "all"', "at_most"),
        ("pairs = 1", "pairs"),
        ("lower = 1", "lower"),
        ('unit = "rides"', "unit"),
        ('mechanism = "oue"', "mechanism"),
    ],
)
def test_tick_question_with_a_wrong_key_is_refused(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        survey_of(tmp_path, more).questionnaire()


def test_other_kinds_of_questions_take_no_ticks(tmp_path: Path) -> None:
    text = TEXT.format(more="", answer='"all"').replace('kind = "yes-no"', 'kind = "yes-no"\nat_most = 1')
    (tmp_path / "health.toml").write_text(text)
    with pytest.raises(InvalidParameter, match="at_most"):
        Survey.from_toml(tmp_path / "health.toml")


@pytest.mark.parametrize("answer", ["1", '"all"'])
@pytest.mark.parametrize("more", ["at_most = 2", "", "at_most = 2\npairs = true"])
def test_estimate_of_ticks_in_a_survey_covers_the_truth(tmp_path: Path, answer: str, more: str) -> None:
    questionnaire = survey_of(tmp_path, more, answer).questionnaire()
    people = [{"smoke": "yes", "transport": each} for each in ("bus; train", "car", "none", ["bus"])] * 500
    values = questionnaire.read_values(people)
    if answer == "1":  # a seed chooses each respondent's question
        values["asked"] = np.random.default_rng(4).choice([1, 2], len(people))
    reports = questionnaire.randomize(values, rng=3)
    found = questionnaire.estimate(reports).questions["transport"]
    assert found.answers == ("bus", "train", "car", "bicycle", "on foot")
    low, high = found.interval(0.999)
    assert ((low <= [1000, 500, 500, 0, 0]) & (high >= [1000, 500, 500, 0, 0])).all()
    if "pairs" in more:
        both = found.pairs(0, 1, 0.999)
        assert both.low <= 0.25 <= both.high


@pytest.mark.parametrize("answer", ["bus; train; car", "bus; bus", "plane", ["bus", "plane"], 1])
def test_answer_of_too_many_ticks_is_refused(tmp_path: Path, answer: Any) -> None:
    with pytest.raises(OutsideDomain, match="transport"):
        survey_of(tmp_path).questionnaire().randomize([{"smoke": "no", "transport": answer}])


def test_plan_of_ticks_has_the_margin_of_simulated_surveys(tmp_path: Path) -> None:
    survey = survey_of(tmp_path, answer="1")
    [design] = [each for each in plan_survey(survey, 400)["designs"] if each["answer"] == 1]
    [row] = [each for each in design["questions"] if each["name"] == "transport"]
    assert Decimal(row["epsilon"]) == 4
    made = survey.questionnaire().questions[1].mechanism
    rng = np.random.default_rng(8)
    # The worst share: of one half, among the 200 who are asked of 400 respondents.
    errors = []
    for seed in range(600):
        sets = rng.random((200, 5)) < [0.5, 0, 0, 0, 0]
        errors.append(made.estimate(made.randomize(sets, rng=seed)).shares[0] - 0.5)
    assert 1.96 * np.std(errors) == pytest.approx(row["population_margin"], rel=0.12)


def test_row_of_a_tick_question_with_pairs_holds_the_share_of_each_two_options(tmp_path: Path) -> None:
    collection = survey_collection(survey_of(tmp_path, "at_most = 2\npairs = true"))
    people = [{"smoke": "yes", "transport": each} for each in ("bus; train", "car", "none", "bus")] * 500
    result = collection.mechanism.estimate(collection.mechanism.randomize(people, rng=3))
    for consistent in (False, True):
        row = survey_row(collection, result, level=0.999, consistent=consistent)["transport"]
        found = {tuple(each["answers"]): each for each in row["pairs"]}
        assert len(found) == 10
        assert row["pairs"][0]["share"] == max(each["share"] for each in row["pairs"])
        assert found["bus", "train"]["low"] <= 0.25 <= found["bus", "train"]["high"]
        assert found["car", "bicycle"]["low"] == 0


def test_row_of_a_tick_question_without_pairs_holds_none(tmp_path: Path) -> None:
    collection = survey_collection(survey_of(tmp_path))
    people = [{"smoke": "yes", "transport": "bus; train"}] * 50
    result = collection.mechanism.estimate(collection.mechanism.randomize(people, rng=3))
    assert "pairs" not in survey_row(collection, result)["transport"]
