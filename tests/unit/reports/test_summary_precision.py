"""Precision on the page of a survey: margins, open answers that are as precise, scales, and margins of a plan."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget import mechanism
from ldp_budget.reports.estimation import margin_of_interval
from ldp_budget_surveys.pages.summary_blocks import Grid
from ldp_budget_surveys.pages.summary_charts import Scale
from ldp_budget_surveys.pages.summary_precision import expected_margins, open_answers
from ldp_budget_surveys.pages.survey_summary import Question
from ldp_budget_surveys.pages.translations import texts
from ldp_budget_surveys.planning.margins import Precision, Z


def row(shares: Any, variances: Any, people: int) -> dict[str, Any]:
    """A row of `estimate --json` with intervals of a normal distribution."""
    errors = np.sqrt(variances)
    return {
        "reports": people,
        "answers": [
            {"answer": str(at), "share": f, "share_std_error": s, "share_low": f - Z * s, "share_high": f + Z * s}
            for at, (f, s) in enumerate(zip(shares, errors, strict=True))
        ],
    }


@pytest.mark.parametrize("people", [100, 3000])
def test_open_answers_of_a_sample_without_noise_are_its_answers(people: int) -> None:
    shares = np.array([0.5, 0.3, 0.2])
    assert open_answers(row(shares, 0 * shares, people), weighted=False) == people
    found = open_answers(row(shares, shares * (1 - shares) / people, people), weighted=True)
    assert found in (people - 1, people)  # rounded down


@pytest.mark.parametrize("epsilon", ["0.5", "1", "3"])
def test_open_answers_are_those_with_the_variance_of_the_noisy_ones(epsilon: str) -> None:
    built = mechanism("grr").calibrate(epsilon=epsilon, domain_size=4)
    shares, people = np.array([0.4, 0.3, 0.2, 0.1]), 5000
    noise = np.array([Precision.of(built).variance_at(share, people) for share in shares])
    found = open_answers(row(shares, noise, people), weighted=False)
    spread = shares * (1 - shares)
    assert found == int(spread.sum() / (noise + spread / people).sum())
    assert 0 < found < people


def test_open_answers_of_an_interval_cut_on_both_sides_are_by_the_standard_error() -> None:
    wide = row([0.5], [1.0], 10)
    wide["answers"][0] |= {"share_low": 0.0, "share_high": 1.0}
    assert open_answers(wide, weighted=True) == 0


def test_open_answers_of_a_mean_need_its_distribution() -> None:
    mean = {"reports": 100, "mean": 5.0, "std_error": 0.1, "low": 5 - 0.1 * Z, "high": 5 + 0.1 * Z}
    assert open_answers(mean, weighted=True) is None
    bins = [{"low": 0.0, "high": 2.0, "share": 0.5}, {"low": 8.0, "high": 10.0, "share": 0.5}]
    assert open_answers({**mean, "bins": bins}, weighted=True) in (1599, 1600)  # 16/0.1²


@given(st.floats(-0.5, 1.5), st.floats(0.001, 2))
def test_margin_of_an_interval_cut_on_one_side_is_that_of_the_other(share: float, error: float) -> None:
    whole = margin_of_interval(share, share - error, share + error)
    assert whole == pytest.approx(error)
    assert margin_of_interval(share, max(0.0, share - error), share + error) == pytest.approx(max(error, 0))


# -- scales ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=6))
def test_scale_of_shares_holds_all_rows_and_has_whole_percents(rows: list[tuple[float, float]]) -> None:
    scale = Scale.of_shares([{"share": share, "share_high": high} for share, high in rows])
    assert all(max(each) <= scale.most + 1e-9 for each in rows)
    assert scale.marks[0] == scale.least == 0
    assert scale.marks[-1] == scale.most
    assert all(100 * at == pytest.approx(round(100 * at)) for at in scale.marks)
    assert 4 <= len(scale.marks) <= 6


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6))
def test_scale_of_numbers_has_two_to_seven_round_marks_within(least: float, width: float) -> None:
    scale = Scale.of_numbers(least, least + width)
    assert 2 <= len(scale.marks) <= 7
    slack = 1e-6 * max(width, abs(least))
    assert all(least - slack <= at <= least + width + slack for at in scale.marks)


@pytest.mark.parametrize(
    ("ends", "marks"),
    [
        ((0, 14), (0, 5, 10)),
        ((18, 70), (20, 30, 40, 50, 60, 70)),
        ((0, 1), (0, 0.2, 0.4, 0.6, 0.8, 1)),
        ((3, 3), (3,)),
    ],
)
def test_scale_of_numbers_has_marks_that_people_expect(ends: tuple[float, float], marks: tuple[float, ...]) -> None:
    assert Scale.of_numbers(*ends).marks == pytest.approx(marks)


# -- before the first answer -----------------------------------------------------------------------------------------


def planned(built: Any, *, asked: int = 1, questions: int = 1, invited: int | None = None) -> list[Any]:
    question: Any = Question("Q", SimpleNamespace(mechanism=built), None)  # type: ignore[arg-type]
    subject: Any = SimpleNamespace(asked=asked, questions=(question,) * questions)
    return list(expected_margins(texts("en"), question, subject, invited))


def test_expected_margins_are_those_of_the_question_and_its_groups_about_a_large_population() -> None:
    built = mechanism("grr").calibrate(epsilon=1, domain_size=4)
    note, grid = planned(built, asked=1, questions=2, invited=4000)
    assert "if all 4,000 who are invited answer" in note.text
    assert isinstance(grid, Grid)
    assert grid.header == (
        "Among",
        "all 2,000 answers",
        *(f"each of {groups} equal groups of {2000 // groups:,}" for groups in (2, 4, 10)),
    )
    shown = [
        f"± {100 * Precision.of(built).worst(2000 // groups, 1.0).margin:.1f} points" for groups in (1, 2, 4, 10)
    ]
    assert grid.rows == (("Margin (95 %)", *shown),)


def test_expected_margins_of_numbers_are_in_their_unit() -> None:
    built = mechanism("hybrid").calibrate(epsilon=1, lower=0, upper=14)
    note, grid = planned(built)
    assert "if 1,000 people answer" in note.text
    assert grid.rows[0][1] == f"± {14 * Precision.of(built).worst(1000, 1.0).margin:.2f}"


def test_expected_margins_of_answers_that_are_not_listed_are_left_out() -> None:
    assert planned(mechanism("staircase").calibrate(epsilon=1, sensitivity=1)) == []
