"""Questions of kind capped-mean in surveys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from income_survey import income_survey
from ldp_budget.errors import InvalidParameter
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.survey_rows import survey_row
from ldp_budget_surveys.questionnaires.surveys import Survey

KIND = "capped-mean"


def test_capped_mean_question_gets_random_thresholds_with_a_cap(tmp_path: Path) -> None:
    survey = income_survey(tmp_path, KIND, 'scale = "log"')
    made = survey.questionnaire().questions[0].mechanism
    assert (made.name, made.declared["scale"], made.declared["cap_at"]) == ("random-threshold", "log", "0.95")
    assert Survey.from_json(survey.to_json()) == survey
    assert survey.definition("0" * 64, survey.questionnaire())["questions"][0]["kind"] == "number"


def test_row_of_a_capped_mean_question_has_the_cap(tmp_path: Path) -> None:
    collection = survey_collection(income_survey(tmp_path, KIND, 'scale = "log"'))
    values = np.clip(np.random.default_rng(1).lognormal(10.4, 0.6, 3000), 1000, 1_000_000)
    reports = collection.mechanism.randomize([{"income": each} for each in values], rng=3)
    row = survey_row(collection, collection.mechanism.estimate(reports), level=0.999)["income"]
    assert 60_000 < row["cap"] < 200_000
    assert row["low"] <= np.minimum(values, row["cap"]).mean() <= row["high"] <= row["cap"]
    assert row["std_error"] < 4000


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("quantiles = [0.5]", "quantiles must be left out of a question of kind capped-mean"),
        ('scale = "cubic"', "scale must be one of linear, log"),
        ('mechanism = "hybrid"', "hybrid does not report the mean of capped values"),
        ("optional = true", "optional must be false"),
    ],
)
def test_wrong_capped_mean_question_names_the_key(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        income_survey(tmp_path, KIND, more).questionnaire()
