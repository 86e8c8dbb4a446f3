"""Questions of kind quantile in surveys."""

from __future__ import annotations

from pathlib import Path

import pytest

from income_survey import income_survey
from ldp_budget.errors import InvalidParameter
from ldp_budget_surveys.questionnaires.surveys import Survey

KIND = "quantile"


def test_quantile_question_gets_random_thresholds_on_its_scale(tmp_path: Path) -> None:
    survey = income_survey(tmp_path, KIND, 'scale = "log"\nquantiles = [0.9, 0.5]')
    made = survey.questionnaire().questions[0].mechanism
    assert (made.name, made.declared["scale"], made.declared["quantiles"]) == ("random-threshold", "log", "0.5,0.9")
    assert Survey.from_json(survey.to_json()) == survey


def test_quantile_question_asks_for_the_median_on_a_linear_scale_by_default(tmp_path: Path) -> None:
    question = income_survey(tmp_path, KIND).questions[0]
    assert (question.scale, [str(each) for each in question.quantiles]) == ("linear", ["0.5"])


def test_public_definition_of_a_quantile_question_asks_for_a_number(tmp_path: Path) -> None:
    survey = income_survey(tmp_path, KIND)
    assert survey.definition("0" * 64, survey.questionnaire())["questions"][0]["kind"] == "number"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('scale = "cubic"', "scale must be one of linear, log"),
        ("quantiles = [0.5, 1]", "quantiles must be a list of numbers above 0 and below 1"),
        ("quantiles = [nan]", "quantiles must be a list of numbers above 0 and below 1"),
        ("quantiles = [0.5, inf]", "quantiles must be a list of numbers above 0 and below 1"),
        ("quantiles = [1e-400]", "quantiles must be numbers above 0 and below 1"),
        ("quantiles = []", "quantiles must be a list of numbers above 0 and below 1"),
        ('mechanism = "hybrid"', "hybrid does not report the quantiles"),
    ],
)
def test_wrong_quantile_question_names_the_key(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        income_survey(tmp_path, KIND, more).questionnaire()


def test_keys_of_quantiles_in_another_kind_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="left out of a question of kind number"):
        income_survey(tmp_path, "number", 'scale = "log"')
