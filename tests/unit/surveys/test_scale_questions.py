"""Scales in surveys: the device recodes an answer before it randomizes it."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldp_budget.errors import InvalidParameter, OutsideDomain
from ldp_budget.sdk.client_program import Program
from ldp_budget.sdk.interpreter import read
from ldp_budget.sdk.report_law import rules
from ldp_budget_surveys.questionnaires.scales import in_report
from ldp_budget_surveys.questionnaires.survey_collection import survey_collection
from ldp_budget_surveys.questionnaires.survey_rows import as_reported, survey_row
from ldp_budget_surveys.questionnaires.surveys import Survey

FILE = """
[survey]
name = "service"
epsilon = {epsilon}

[[question]]
name = "satisfied"
kind = "scale"
lower = {lower}
upper = {upper}
"""
SHARES = {5: [0.08, 0.12, 0.25, 0.35, 0.20], 11: [0.04, 0.02, 0.03, 0.04, 0.05, 0.12, 0.10, 0.15, 0.20, 0.13, 0.12]}
"""The shares of the design note."""


def survey_of(folder: Path, more: str, epsilon: Any = 1, ends: tuple[Any, Any] = (1, 5)) -> Survey:
    text = FILE.format(epsilon=epsilon, lower=ends[0], upper=ends[1]) + more
    (folder / "service.toml").write_text(text, encoding="utf-8")
    return Survey.from_toml(folder / "service.toml")


@pytest.mark.parametrize(
    ("more", "ends", "values", "categories"),
    [
        ("", (1, 5), (1, 2, 3, 4, 5), None),
        ('report = "top-box"', (1, 5), (1, 1, 1, 1, 0), ("top box", "other")),
        ('report = "top-box"\ntop = 2', (-2, 2), (1, 1, 1, 0, 0), ("top box", "other")),
        ('report = "nps"', (0, 10), (*[-1] * 7, 0, 0, 1, 1), None),
        ('report = "top-box"\noptional = true', (1, 3), (1, 1, 0, 2), ("top box", "other", "no answer")),
    ],
)
def test_scale_recodes_each_answer_to_what_it_reports(
    tmp_path: Path, more: str, ends: tuple[int, int], values: tuple[int, ...], categories: tuple[str, ...] | None
) -> None:
    survey = survey_of(tmp_path, more, ends=ends)
    asked = survey.questionnaire().questions[0]
    assert asked.recode is not None
    assert (asked.recode.values, asked.categories) == (values, categories)
    assert asked.recode.answers[: len(range(*ends)) + 1] == tuple(map(str, range(ends[0], ends[1] + 1)))
    assert [asked.number_of(each, 0) for each in asked.recode.answers] == list(map(float, values))
    assert Survey.from_json(survey.to_json()) == survey


def test_scale_of_shares_is_a_choice_of_its_numbers(tmp_path: Path) -> None:
    asked = survey_of(tmp_path, 'report = "shares"\noptional = true', ends=(1, 3)).questionnaire().questions[0]
    assert (asked.categories, asked.recode) == (("1", "2", "3", "no answer"), None)


@pytest.mark.parametrize("answer", ["4", "4.0", 4, 4.0, " 4 "])
def test_scale_reads_a_whole_number_however_it_is_written(tmp_path: Path, answer: Any) -> None:
    assert survey_of(tmp_path, "").questionnaire().questions[0].number_of(answer, 0) == 4


@pytest.mark.parametrize("answer", ["6", "3.5", "", "good", None, True, [4]])
def test_scale_refuses_what_is_none_of_its_numbers(tmp_path: Path, answer: Any) -> None:
    with pytest.raises(OutsideDomain, match="one of 1, 2, 3, 4, 5"):
        survey_of(tmp_path, "").questionnaire().questions[0].number_of(answer, 0)


@pytest.mark.parametrize(
    ("more", "ends", "said"),
    [
        ("", (1, 4.5), "upper must be a whole number"),
        ("", (0, 101), "at most 101 answers"),
        ('report = "median"', (1, 5), "report must be one of mean, shares, top-box, nps"),
        ('report = "nps"', (1, 4), "report must be another one"),
        ("top = 2", (1, 5), "top must be left out"),
        ('report = "top-box"\ntop = 5', (1, 5), "top must be a whole number from 1 to 4"),
        ("optional = true", (1, 5), "optional"),
        ("unit = 3", (1, 5), "unit must be left out"),
        ('mechanism = "oue"', (1, 5), "oue does not randomize a number"),
    ],
)
def test_scale_with_a_wrong_key_is_refused(tmp_path: Path, more: str, ends: tuple[Any, Any], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        survey_of(tmp_path, more, ends=ends).questionnaire()


def test_other_kinds_of_questions_have_no_report(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        '[survey]\nname="a"\nepsilon=1\n[[question]]\nname="b"\nkind="yes-no"\nreport="nps"'
    )
    with pytest.raises(InvalidParameter, match="report must be left out of a question of kind yes-no"):
        Survey.from_toml(tmp_path / "a.toml")


@pytest.mark.parametrize(("report", "ends"), [("top-box", (1, 5)), ("shares", (1, 5))])
def test_program_of_a_scale_loses_what_the_survey_states(tmp_path: Path, report: str, ends: tuple[int, int]) -> None:
    definition = survey_collection(survey_of(tmp_path, f'report = "{report}"', ends=ends)).definition()["questions"][
        0
    ]
    law = rules().AllOutcomes(Program.from_json(definition))
    assert float(definition["guarantee"]["epsilon"]) == 1
    assert law.guarantee(Decimal(1)).loss() == (1, 0)  # it raises for a larger loss
    assert law.ratio > math.exp(1) * (1 - 1e-9)
    assert definition["answers"] == [str(each) for each in range(ends[0], ends[1] + 1)]


@pytest.mark.parametrize(("report", "epsilon"), [("mean", 1), ("nps", 4), ("top-box", 2)])
def test_program_of_a_scale_is_that_of_its_mechanism_after_one_step(
    tmp_path: Path, report: str, epsilon: int
) -> None:
    asked = survey_of(tmp_path, f'report = "{report}"', epsilon).questionnaire().questions[0]
    own, made = asked.mechanism.client_program().to_json(), asked.client_program().to_json()
    assert asked.recode is not None
    first, *rest = made["steps"]
    assert first == ["recoded", ["at", "recode", "value"]]
    assert json.loads(json.dumps(rest).replace('"recoded"', '"value"')) == own["steps"]
    assert (made["report"], made["input"]) == (own["report"], {"kind": "answer", "count": 5, "text": False})
    assert made["tables"].pop("recode") == [
        read(asked.mechanism.client_program(), value) for value in asked.recode.values
    ]
    assert made["tables"] == own["tables"]


@pytest.mark.parametrize(
    ("report", "ends", "epsilon", "noise"),
    [
        ("top-box", (1, 5), 1, 0.921),
        ("top-box", (0, 10), 2, 0.181),
        ("nps", (0, 10), 1, 4.331),
        ("nps", (0, 10), 2, 0.765),
        ("nps", (0, 10), 4, 0.076),
        ("mean", (1, 5), 4, 0.352),
    ],
)
def test_noise_of_a_scale_is_that_of_the_design_note(
    tmp_path: Path, report: str, ends: tuple[int, int], epsilon: int, noise: float
) -> None:
    more = f'report = "{report}"' + ("\ntop = 2" if report == "top-box" else "")
    asked = survey_of(tmp_path, more, epsilon, ends).questionnaire().questions[0]
    assert asked.recode is not None
    mechanism: Any = asked.mechanism
    shares = SHARES[ends[1] - ends[0] + 1]
    if report == "top-box":
        found = mechanism.share_errors(1)[0] ** 2
    else:
        found = sum(
            share * mechanism.error_at(value)[1] for share, value in zip(shares, asked.recode.values, strict=True)
        )
    assert found == pytest.approx(noise, rel=0.01)


def test_estimate_of_a_scale_has_the_figure_that_it_reports(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for report, key, truth in (
        ("mean", "mean", float(np.arange(11) @ SHARES[11])),
        ("top-box", "top_box", 0.25),
        ("nps", "nps", -0.15),
    ):
        more = f'report = "{report}"' + ("\ntop = 2" if report == "top-box" else "")
        collection = survey_collection(survey_of(tmp_path, more, 3, (0, 10)))
        answers = rng.choice(11, 4000, p=SHARES[11])
        reports = collection.mechanism.randomize([{"satisfied": str(each)} for each in answers], rng=rng)
        row = as_reported(collection, survey_row(collection, collection.mechanism.estimate(reports)))["satisfied"]
        assert set(row) == {"asked", key, "std_error", "low", "high"}
        assert abs(row[key] - truth) < 5 * row["std_error"]
        assert row["low"] < row[key] < row["high"]


def test_groups_and_differences_of_a_top_box_keep_its_own_rows() -> None:
    box = {"answer": "top box", "share": 0.4, "share_std_error": 0.1, "share_low": 0.2, "share_high": 0.6}
    rest = {"answer": "other", "share": 0.6}
    gap = {"group": "a", "other": "b", "difference": 0.1}
    row = {"answers": [box, rest], "groups": [{"group": "a", "answers": [box, rest]}]}
    row["differences"] = [{**gap, "answer": "top box"}, {**gap, "answer": "other"}]
    found = {"top_box": 0.4, "std_error": 0.1, "low": 0.2, "high": 0.6}
    expected = {**found, "groups": [{"group": "a", **found}], "differences": [gap]}
    assert in_report(row, "top-box") == expected


def test_standard_error_of_a_score_counts_no_rounding_of_values_that_are_points(tmp_path: Path) -> None:
    """The three values of a net promoter score are the three points, so that the noise at ε = 4 is 0.076 and not 0.3."""
    made = survey_of(tmp_path, 'report = "nps"', 4, (0, 10)).questionnaire()
    (view,) = made.views
    mechanism: Any = view.mechanism
    assert (mechanism.fingerprint, mechanism.rounds) == (made.questions[0].mechanism.fingerprint, False)
    rng = np.random.default_rng(2)
    values = rng.choice([-1.0, 0.0, 1.0], 20_000, p=[0.4, 0.35, 0.25])
    found = mechanism.estimate(mechanism.randomize(values, rng=rng))
    assert found.std_error**2 * len(values) == pytest.approx(0.076, rel=0.05)


def test_values_between_the_points_are_rounded_as_before(tmp_path: Path) -> None:
    (view,) = survey_of(tmp_path, "", 2, (0, 10)).questionnaire().views
    assert view.mechanism.rounds  # type: ignore[attr-defined]
