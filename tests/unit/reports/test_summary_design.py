"""Weighted results on the page of a survey: shares outside 0 and 1, and the form of a two-way table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ldp_budget_surveys.pages.summary_blocks import Facts, Grid, p_value
from ldp_budget_surveys.pages.summary_design import two_way_section, within_bounds
from ldp_budget_surveys.pages.survey_summary import Weighting


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
    figures = iter({"share": at / 1000, "low": 0.0, "high": 1.0} for at in range(1, 1000))
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
    questions = [SimpleNamespace(collection=SimpleNamespace(name=name), text=name.upper()) for name in "ab"]
    summary: Any = SimpleNamespace(subject=SimpleNamespace(questions=questions))
    (section,) = two_way_section(summary, weighting)
    return list(section.blocks)


def test_two_way_table_has_the_second_question_as_columns() -> None:
    _, sides, grid, _ = blocks(2, 3)
    assert sides == Facts((("Rows", "A"), ("Columns", "B")))
    assert grid.header == ("Answer", "c0", "c1", "c2", "All answers")
    assert grid.rows[1] == ("r1", *(f"0.{at} % (0.0 to 100.0)" for at in (4, 5, 6, 8)))
    assert grid.rows[2] == ("All answers", *(f"{at} % (0.0 to 100.0)" for at in ("0.9", "1.0", "1.1")), "100.0 %")


def test_two_way_table_with_many_columns_is_turned() -> None:
    _, sides, grid, _ = blocks(2, 6)
    assert sides == Facts((("Rows", "B"), ("Columns", "A")))
    assert grid.header == ("Answer", "r0", "r1", "All answers")
    assert grid.rows[5][:3] == ("c5", "0.6 % (0.0 to 100.0)", "1.2 % (0.0 to 100.0)")


def test_two_way_table_with_many_answers_to_both_is_a_list() -> None:
    _, grid, _ = blocks(6, 6)
    assert isinstance(grid, Grid)
    assert grid.header == ("A", "B", "Share and 95 % confidence interval")
    assert len(grid.rows) == 36 + 12
    assert grid.rows[7] == ("r1", "c1", "0.8 % (0.0 to 100.0)")


def test_two_way_table_without_a_test_says_why() -> None:
    *_, last = blocks(
        2, 2, {"statistic": None, "freedom": None, "p_value": None, "untested": "the answers do not vary"}
    )
    assert last.text == "Test of independence: not made, because the answers do not vary."


def test_two_way_table_says_the_test_and_the_effective_sample_size() -> None:
    first, *_, last = blocks(2, 2)
    assert "The design effect of the table is 1.60, the effective sample size 62." in first.text
    assert "the probability p = 0.0400 (F = 2.50 with 1.0 and 99 degrees of freedom" in last.text
    assert "A p-value below 0.05 speaks for a relation" in last.text
    assert "A cell would hold only 2.5 people if the answers were independent, so p is a rough guide." in last.text
