"""Optional questions: "no answer" is an answer of the domain."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldp_budget.errors import InvalidParameter
from ldp_budget_surveys.questionnaires.surveys import Survey

FILE = """
[survey]
name = "health"
epsilon = 2

[[question]]
name = "smoke"
kind = "yes-no"
optional = true

[[question]]
name = "mood"
categories = ["good", "bad"]
optional = true
languages.de = { text = "Wie geht es?", categories = ["gut", "schlecht"] }
"""


def read(tmp_path: Path, text: str = FILE) -> Survey:
    path = tmp_path / "health.toml"
    path.write_text(text, encoding="utf-8")
    return Survey.from_toml(path)


def test_optional_question_has_one_more_answer_that_is_randomized(tmp_path: Path) -> None:
    survey = read(tmp_path)
    asked = survey.questionnaire().questions
    assert [question.categories for question in asked] == [("yes", "no", "no answer"), ("good", "bad", "no answer")]
    assert [question.domain.size for question in asked] == [3, 3]
    assert Survey.from_json(survey.to_json()) == survey


def test_public_definition_of_optional_questions_names_the_answer_in_each_language(tmp_path: Path) -> None:
    survey = read(tmp_path)
    smoke, mood = survey.definition("0" * 64, survey.questionnaire())["questions"]
    assert (smoke["kind"], smoke["answers"]) == ("choice", ["yes", "no", "no answer"])
    assert mood["languages"]["de"]["answers"] == ["gut", "schlecht", "keine Angabe"]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ('lower = 0\nupper = 9\noptional = true', "optional must be false, or left out, for a number"),
        ('kind = "tick"\ncategories = ["a", "b"]\noptional = true', "optional must be false, or left out"),
        ('categories = ["a", "no answer"]\noptional = true', "categories must be without 'no answer'"),
        ('categories = ["a", "b"]\noptional = 1', "optional must be true or false"),
    ],
)  # fmt: skip
def test_optional_question_that_cannot_be_is_refused(tmp_path: Path, question: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        read(tmp_path, f'[survey]\nname = "q"\nepsilon = 1\n[[question]]\nname = "a"\n{question}\n')
