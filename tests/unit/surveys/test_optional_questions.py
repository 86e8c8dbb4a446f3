"""Optional questions: "no answer" is an answer of the domain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ldp_budget.errors import InvalidParameter, OutsideDomain
from ldp_budget_cli.app import cli
from ldp_budget_surveys.questionnaires.surveys import Survey
from ldp_budget_surveys.survey_planning import plan_survey

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
        ('kind = "scale"\nlower = 1\nupper = 5\noptional = true', 'Take report = "shares" or "top-box"'),
        ('kind = "tick"\nat_most = 3\ncategories = ["a", "b"]\noptional = true', "from 1 to the number of options, 2"),
        ('categories = ["a", "no answer"]\noptional = true', "categories must be without 'no answer'"),
        ('categories = ["a", "b"]\noptional = 1', "optional must be true or false"),
    ],
)  # fmt: skip
def test_optional_question_that_cannot_be_is_refused(tmp_path: Path, question: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        read(tmp_path, f'[survey]\nname = "q"\nepsilon = 1\n[[question]]\nname = "a"\n{question}\n')


TICKS = """
[survey]
name = "trips"
epsilon = 4

[[question]]
name = "used"
kind = "tick"
categories = ["bus", "train", "car"]
at_most = 2
optional = true
languages.de = { categories = ["Bus", "Bahn", "Auto"] }
"""


def test_optional_ticks_have_one_more_option(tmp_path: Path) -> None:
    survey = read(tmp_path, TICKS)
    [asked] = survey.questionnaire().questions
    assert asked.categories == ("bus", "train", "car", "no answer")
    assert asked.domain.most == 2
    assert Survey.from_json(survey.to_json()) == survey
    [found] = survey.definition("0" * 64, survey.questionnaire())["questions"]
    assert found["answers"][-1] == "no answer"
    assert found["languages"]["de"]["answers"] == ["Bus", "Bahn", "Auto", "keine Angabe"]


def test_no_answer_beside_ticks_is_refused(tmp_path: Path) -> None:
    asked = read(tmp_path, TICKS).questionnaire()
    assert len(asked.read_values([{"used": each} for each in ("no answer", "none", "bus; train")])) == 3
    with pytest.raises(OutsideDomain, match="no answer alone"):
        asked.read_values([{"used": "bus; no answer"}])


def test_plan_of_optional_ticks_has_a_margin(tmp_path: Path) -> None:
    row, plain = (
        plan_survey(read(tmp_path, text), 1000)["designs"][0]["questions"][0]
        for text in (TICKS, TICKS.replace("optional = true", ""))
    )
    assert plain["margin"] < row["margin"] < 2 * plain["margin"]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["one column", "a column for each option"])
def test_blank_cells_of_optional_ticks_are_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDP_BUDGET_LEDGER", str(tmp_path / "budget.db"))
    read(tmp_path, TICKS.replace("epsilon = 4", "epsilon = 12"))
    lines = ["used,n", *("bus; train,1", "none,2", ",3") * 100]
    if form != "one column":
        lines = ["used/bus,used/train,used/car", *("1,1,0", "0,0,0", ",,") * 100]
    Path("a.csv").write_text("\n".join(lines), encoding="utf-8")
    for words in (["survey", "add", "health.toml"], ["randomize", "trips", "a.csv", "--out", "a.reports"]):
        assert (done := CliRunner().invoke(cli, words)).exit_code == 0, done.output
    done = CliRunner().invoke(cli, ["estimate", "trips", "a.reports", "--json"])
    shares = {each["answer"]: each["share"] for each in json.loads(done.stdout)["used"]["answers"]}
    assert shares == pytest.approx({"bus": 1 / 3, "train": 1 / 3, "car": 0, "no answer": 1 / 3}, abs=0.05)
