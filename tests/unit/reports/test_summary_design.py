"""Weighted results on the page of a survey: shares outside 0 and 1, differences, and the form of a two-way table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ldp_budget_surveys.pages.summary_blocks import Marked, Note, p_value
from ldp_budget_surveys.pages.summary_charts import Scale
from ldp_budget_surveys.pages.summary_design import group_blocks, standing_out, two_way_section, within_bounds
from ldp_budget_surveys.pages.survey_summary import Question, Weighting
from ldp_budget_surveys.pages.translations import texts


def test_within_bounds_keeps_shares_that_are_inside() -> None:
    row = {"share": 0.25, "share_low": 0.0, "share_high": 0.5, "count": 10.0}
    assert within_bounds([row]) == ([row], False)


def test_within_bounds_cuts_a_share_outside_and_keeps_its_interval() -> None:
    low = {"share": -0.1, "share_low": 0.0, "share_high": 0.05, "count": -4.0}
    high = {"share": 1.25, "share_low": 0.875, "share_high": 1.0, "count": 50.0}
    assert within_bounds([low, high]) == (
        [{**low, "share": 0.0, "count": 0.0}, {**high, "share": 1.0, "count": 40.0}],
        True,
    )


def test_p_value_has_four_decimals() -> None:
    assert [p_value(each) for each in (0.00009, 0.0001, 0.05, 1.0)] == ["< 0.0001", "0.0001", "0.0500", "1.0000"]


def blocks(rows: int, columns: int, test: dict[str, Any] | None = None) -> list[Any]:
    """The blocks of a table of that many answers, each a share of its own."""
    figures = iter({"share": at / 1000, "std_error": 0.25, "low": 0.0, "high": 1.0} for at in range(1, 1000))
    cells = [{"a": f"r{r}", "b": f"c{c}", **next(figures)} for r in range(rows) for c in range(columns)]
    margins = [{"question": "a", "answer": f"r{r}", **next(figures)} for r in range(rows)]
    margins += [{"question": "b", "answer": f"c{c}", **next(figures)} for c in range(columns)]
    found = {"statistic": 2.5, "freedom": [1.0, 99.0], "p_value": 0.04, "least_expected": 2.5, "is_rough": True}
    table = {
        "table": ["a", "b"],
        "respondents": 100,
        "design_effect": 1.6,
        "cells": cells,
        "margins": margins,
        **(found if test is None else test),
    }
    weighting = Weighting("", (), (), None, None, None, 1.0, table=table)
    asked: Any = [SimpleNamespace(name=name) for name in "ab"]
    questions = [Question(each.name.upper(), each, None) for each in asked]
    summary: Any = SimpleNamespace(subject=SimpleNamespace(questions=questions))
    (section,) = two_way_section(texts("en"), summary, weighting)
    return list(section.blocks)


def test_two_way_table_says_the_test_and_the_open_answers_that_are_as_precise() -> None:
    first, *_, last = blocks(2, 2)
    # The farther ends of the intervals are about 1 away from shares of 0.001 to 0.004: no open answer is so imprecise.
    assert (
        "The design effect of the table is 1.60. As many open answers without noise are as precise: 0." in first.text
    )
    assert "the probability p = 0.0400 (F = 2.50 with 1.0 and 99 degrees of freedom" in last.text
    assert "A p-value below 0.05 speaks for a relation" in last.text
    assert "A cell would hold only 2.5 people if the answers were independent, so p is a rough guide." in last.text


# -- differences -----------------------------------------------------------------------------------------------------


def gap(first: str, second: str, answer: str, difference: float, p_value: float) -> dict[str, Any]:
    ends = {"low": difference - 0.05, "high": difference + 0.05}
    return {"group": first, "other": second, "answer": answer, "difference": difference, "p_value": p_value, **ends}


def differences(gaps: list[dict[str, Any]]) -> list[Any]:
    """The blocks of the differences of a question."""
    question: Any = Question("Q", SimpleNamespace(name="q"), None, words={"yes": "ja"})  # type: ignore[arg-type]
    answers = [{"answer": "yes", "count": 5, "share": 0.5, "share_low": 0.4, "share_high": 0.6}]
    groups = [{"group": "a", "respondents": 10, "answers": answers}]
    row = {"answers": answers, "groups": groups, "differences": gaps}
    found = list(group_blocks(texts("en"), question, row, "by", Scale.of_shares(answers)))
    return found[2:]


def test_differences_are_a_matrix_of_answers_and_pairs_with_signs() -> None:
    gaps = [
        gap("a", "b", "yes", 0.1234, 0.0001),
        gap("a", "b", "no", -0.02, 0.4),
        gap("a", "c", "yes", 0.0001, 0.9),
        gap("a", "c", "no", -0.3, 0.0002),
    ]
    _, note, grid = differences(gaps)
    assert isinstance(note, Note)
    assert "There are 4 tests for this question." in note.text
    assert grid.header == ("Answer", "a − b", "a − c")
    assert grid.rows == (("ja", "+12.3 ± 5.0 *", "0.0 ± 5.0"), ("no", "−2.0 ± 5.0", "−30.0 ± 5.0 *"))
    assert [[isinstance(cell, Marked) for cell in row[1:]] for row in grid.rows] == [[True, False], [False, True]]


def test_differences_of_many_groups_are_several_matrices_of_five_pairs() -> None:
    names = "abcd"
    gaps = [gap(one, two, "yes", 0.1, 0.5) for at, one in enumerate(names) for two in names[at + 1 :]]
    *_, first, second = differences(gaps)
    assert len(first.header) == 6
    assert second.header == ("Answer", "c − d")


@pytest.mark.parametrize(
    ("p_values", "found"),
    [
        ([0.04], [True]),
        ([0.04, 0.6], [False, False]),
        ([0.03, 0.02], [True, True]),
        ([0.03, 0.01, 0.04], [False, True, False]),  # 0.01 <= 0.05/3, and 0.03 > 0.05/2
        ([0.016, 0.04, 0.024], [True, True, True]),
        ([], []),
    ],
)
def test_standing_out_is_by_the_correction_of_holm(p_values: list[float], found: list[bool]) -> None:
    assert standing_out(p_values) == found
