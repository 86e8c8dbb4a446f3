"""Figures of estimates as rows, and as an Excel file that runs nothing."""

from __future__ import annotations

import io
import math
from typing import Any

import pytest

from ldp_budget_surveys.excel_figures import book_of
from ldp_budget_surveys.excel_tables import read_sheet
from ldp_budget_surveys.figures import COLUMNS, figures, form_of

openpyxl = pytest.importorskip("openpyxl", reason="the extra excel is not installed")


def share(answer: str, **more: Any) -> dict[str, Any]:
    return {
        "answer": answer,
        "count": 4.0,
        "share": 0.4,
        "low": 2,
        "high": 7,
        "share_low": 0.2,
        "share_high": 0.7,
        **more,
    }


def mean(**more: Any) -> dict[str, Any]:
    return {"mean": 5.0, "std_error": 1.0, "low": 3.0, "high": 7.5, **more}


def rows_of(found: dict[str, Any], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.get(name) for name in columns) for row in figures(found)]


# -- rows ----------------------------------------------------------------------------------------------------


def test_figures_of_counts_have_the_interval_of_the_share() -> None:
    (row,) = figures({"reports": 10, "answers": [share("a")]})
    assert row == {
        **{"answer": "a", "figure": "share", "estimate": 0.4, "low": 0.2, "high": 0.7, "count": 4.0},
        "margin": pytest.approx(0.3),
    }


def test_margin_of_a_consistent_share_is_that_of_the_unbiased_one() -> None:
    ((margin,),) = rows_of({"reports": 10, "answers": [share("a", raw_count=5.0)]}, "margin")
    assert margin == pytest.approx(0.3)
    ((margin,),) = rows_of({"reports": 10, "answers": [share("a", raw_count=2.0)]}, "margin")
    assert margin == pytest.approx(0.5)


def test_figures_of_a_survey_name_its_questions_groups_and_differences() -> None:
    gap = {"group": "n", "other": "s", "answer": "a", "difference": 0.1, "low": -0.1, "high": 0.2, "p_value": 0.3}
    mood = {"answers": [share("a")], "groups": [{"group": "n", "answers": [share("a")]}], "differences": [gap]}
    found = {"respondents": 10, "mood": mood, "mean": mean(asked=9), "public": {"columns": ["region"]}}
    assert rows_of(found, "question", "group", "other", "answer", "figure") == [
        ("mood", None, None, "a", "share"),
        ("mood", "n", None, "a", "share"),
        ("mood", "n", "s", "a", "difference of shares"),
        ("mean", None, None, None, "mean"),
    ]


def test_figures_of_a_two_way_table_name_both_answers_of_a_cell() -> None:
    cell = {"q": "a", "r": "b", "share": 0.1, "low": 0.0, "high": 0.2}
    margin = {"question": "q", "answer": "a", "share": 0.3, "low": 0.1, "high": 0.4}
    found = {"respondents": 9, "table": ["q", "r"], "cells": [cell], "margins": [margin]}
    assert rows_of(found, "question", "answer", "estimate") == [("q and r", "a and b", 0.1), ("q", "a", 0.3)]


def test_figures_of_quantiles_bins_and_pairs_each_have_a_row() -> None:
    found = {
        "reports": 9,
        "q": mean(quantiles={"0.5": {"estimate": 4.0, "low": 3.0, "high": 6.0}}),
        "r": mean(
            quantiles={"0.5": 4.0},
            quantile_intervals={"0.5": [3.0, 6.0]},
            bins=[{"low": 0.0, "high": 2.5, "share": 1.0}],
        ),
        "t": {"pairs": [{"answers": ["a", "b"], "share": 0.1, "low": 0.0, "high": 0.3}]},
    }
    assert rows_of(found, "question", "answer", "figure", "estimate", "margin") == [
        ("q", None, "mean", 5.0, 2.5),
        ("q", None, "quantile 0.5", 4.0, 2.0),
        ("r", None, "mean", 5.0, 2.5),
        ("r", None, "quantile 0.5", 4.0, 2.0),
        ("r", "0 to 2.5", "share", 1.0, None),
        ("t", "a and b", "share", 0.1, pytest.approx(0.2)),
    ]


def test_figures_of_rounds_name_their_files() -> None:
    rounds = [{"round": "one", "reports": 10, "answers": [share("a")]}, {"round": "two", "reports": 0, "answers": []}]
    assert rows_of({"rounds": rounds}, "round", "answer") == [("one", "a")]


@pytest.mark.parametrize(
    ("margin", "form"),
    [(0.04, "#,##0.000"), (7.3, "#,##0.0"), (12.0, "#,##0"), (1500.0, "#,##0"), (math.inf, "#,##0.000")],
)
def test_format_of_a_mean_shows_two_digits_of_its_margin(margin: float, form: str) -> None:
    assert form_of({"figure": "mean", "margin": margin}, "estimate") == form


# -- files ---------------------------------------------------------------------------------------------------

RUNNABLE = ["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://x")', "\t=1", "'=1", "#N/A", "_x003D_1", "a\nb"]


def written(rows: list[dict[str, Any]], **facts: Any) -> Any:
    return openpyxl.load_workbook(io.BytesIO(book_of(rows, COLUMNS, form_of, facts)))


@pytest.mark.parametrize("text", RUNNABLE)
def test_text_that_a_spreadsheet_would_run_stays_a_text(text: str) -> None:
    row = {"answer": text, "figure": "share", "estimate": 0.5}
    cell = written([row])["Figures"]["A2"]
    assert (cell.data_type, cell.quotePrefix) == ("s", True)
    found = read_sheet("x.xlsx", io.BytesIO(book_of([row], COLUMNS, form_of, {text: text})), "Figures")
    assert found.rows == [(2, [text, "share", "0.5"])]


def test_book_has_formats_and_explains_the_columns_that_it_has() -> None:
    book = written(list(figures({"reports": 10, "answers": [share("a")]})), reports=10)
    figures_sheet, explanation = book["Figures"], book["Explanation"]
    header = [cell.value for cell in figures_sheet[1]]
    assert header == ["answer", "figure", "estimate", "margin", "low", "high", "count"]
    assert [cell.number_format for cell in figures_sheet[2]][2:] == ["0.0%"] * 4 + ["#,##0"]
    assert (figures_sheet.freeze_panes, figures_sheet["A1"].font.bold) == ("A2", True)
    explained = [tuple(cell.value for cell in row) for row in explanation.iter_rows()]
    assert explained == [
        ("column", "meaning"),
        *((name, COLUMNS[name]) for name in header),
        (None, None),
        ("reports", 10),
    ]


def test_numbers_without_a_place_in_a_sheet_become_texts_or_blanks() -> None:
    rows = [
        {"figure": "mean", "estimate": math.inf, "margin": math.nan},
        {"figure": "mean", "estimate": 1e20, "margin": 1.0},
    ]
    cells = [[cell.value for cell in row] for row in written(rows)["Figures"].iter_rows(min_row=2)]
    assert cells == [["mean", "unbounded", None], ["mean", 1e20, 1]]


def test_control_character_of_an_answer_is_replaced() -> None:
    assert written([{"answer": "a\x01b", "figure": "share"}])["Figures"]["A2"].value == "a\N{REPLACEMENT CHARACTER}b"
