"""Weighted results on the page of a survey: shares outside 0 and 1, and the form of a two-way table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ldp_budget_surveys.pages.summary_blocks import p_value
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


def test_two_way_table_says_the_test_and_the_effective_sample_size() -> None:
    first, *_, last = blocks(2, 2)
    assert "The design effect of the table is 1.60, the effective sample size 62." in first.text
    assert "the probability p = 0.0400 (F = 2.50 with 1.0 and 99 degrees of freedom" in last.text
    assert "A p-value below 0.05 speaks for a relation" in last.text
    assert "A cell would hold only 2.5 people if the answers were independent, so p is a rough guide." in last.text
