"""Notebook tables of results, in which every text is escaped, with pictures of intervals; and DataFrames."""

from __future__ import annotations

import json
import math
import sys
from typing import Any
from xml.etree import ElementTree

import pytest

from ldp_budget import Accountant, mechanism
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.registry.collections import Collection
from ldp_budget_surveys.margin_planning import plan_question
from ldp_budget_surveys.notebook_tables import html_table
from ldp_budget_surveys.planning.ranking import rank_frequency
from ldp_budget_surveys.regression.analysis import Regression
from ldp_budget_surveys.regression.linear import Coefficient

EVIL = "<script>alert('x')</script>&\"'"
OUE = mechanism("oue")(epsilon=1, domain_size=2)
LAPLACE = mechanism("laplace")(epsilon=1, lower=0, upper=1)


def shown(result: Any) -> list[list[str]]:
    """The cells of the rows of a table, which is well formed; its caption is the first of them."""
    table = ElementTree.fromstring(result._repr_html_())
    drawn = {"svg", "title", "line", "circle"}
    assert {element.tag for element in table.iter()} <= {"table", "caption", "tr", "th", "td"} | drawn
    rows = [
        [cell.text or "" for cell in row if cell.text != "interval" and len(cell) == 0] for row in table.iter("tr")
    ]
    return [[table.findtext("caption") or ""], *rows]


@pytest.fixture
def ledger() -> Any:
    with Accountant(":memory:") as made:
        made.set_policy("default", ["lifetime=1"])
        yield made


def test_estimate_table_shows_answers_with_intervals() -> None:
    collection = Collection("poll", OUE, (EVIL, "no"))
    caption, header, first, _ = shown(collection.estimate(collection.randomize([0, 1, 1])))
    assert caption == ["3 reports; 95 % intervals"]
    assert header == ["answer", "count", "share", "std_error", "low", "high"]
    assert first[0] == EVIL
    assert shown(LAPLACE.estimate(LAPLACE.randomize([0.5, 0.5])))[1] == ["mean", "std_error", "low", "high"]


def test_estimate_table_of_many_answers_shows_the_first() -> None:
    many = mechanism("oue")(epsilon=1, domain_size=1000)
    rows = shown(many.estimate(many.randomize([3, 4])))
    assert len(rows) == 53
    assert rows[-1] == ["… (1000 rows)"]


def test_receipt_and_balance_tables_show_each_limit(ledger: Any) -> None:
    receipt = ledger.spend(EVIL, OUE)
    caption, header, row, *_ = shown(receipt)
    assert caption == [receipt.explain()]
    assert dict(zip(header, row, strict=True)) == {
        "period": "lifetime",
        "rule": "basic",
        "amount": "epsilon",
        "capacity": "1",
        "spent": "1",
        "left": "0",
        "resets": "never",
    }
    assert shown(ledger.balance(EVIL))[0] == [f"{EVIL}, policy default"]
    assert "refused" in shown(ledger.spend(EVIL, OUE))[0][0]
    ledger.erase(EVIL)
    assert shown(ledger.balance(EVIL)) == [[f"{EVIL}, policy default: erased"], []]
    assert shown(next(iter(ledger.balances())))[0] == ["account 1, policy default: erased"]


@pytest.mark.slow
def test_batch_and_comparison_tables_show_their_rows(ledger: Any) -> None:
    assert shown(ledger.spend_many(["ann", "bob"], OUE))[1:] == [["spent", "refused", "repeated"], ["2", "0", "0"]]
    ranking = rank_frequency(1, 4, 1000)
    rows = shown(ranking)
    assert [row[1] for row in rows[2:]] == [row["mechanism"] for row in ranking]
    assert ranking == list(ranking)


# -- pictures ------------------------------------------------------------------------------------------------


def pictures(rows: list[dict[str, Any]]) -> list[tuple[str, list[float]]]:
    """The text of each picture, and the places of its zero, its low and high end and its estimate."""
    table = ElementTree.fromstring(html_table("caption", rows))
    found = []
    for svg in table.iter("svg"):
        zero, line = svg.iter("line")
        dot = svg.find("circle")
        assert svg.get("role") == "img"
        assert svg.get("aria-label") == svg.findtext("title")
        assert svg.get("fill") == svg.get("stroke") == "currentColor"
        assert dot is not None
        places = (zero.get("x1"), line.get("x1"), line.get("x2"), dot.get("cx"))
        found.append((svg.get("aria-label") or "", [float(each or "nan") for each in places]))
    return found


def test_picture_has_a_scale_that_all_rows_of_a_kind_share() -> None:
    rows = [
        {"answer": "a", "count": 5.0, "low": 0.0, "high": 10.0},
        {"answer": "b", "count": -2.0, "low": -5.0, "high": 2.0},
    ]
    (first, places), (second, others) = pictures(rows)
    assert (first, second) == ("5, from 0 to 10", "-2, from -5 to 2")
    assert places == pytest.approx([54.7, 54.7, 156.0, 105.3])
    assert others == pytest.approx([54.7, 4.0, 74.9, 34.4])


def test_picture_of_an_infinite_end_reaches_the_edge_and_says_unbounded() -> None:
    rows = [{"name": "x", "estimate": 1.0, "low": -math.inf, "high": 2.0}]
    ((text, (zero, low, high, dot)),) = pictures(rows)
    assert text == "1, from unbounded to 2"
    assert (zero, low, high, dot) == (4.0, 4.0, 156.0, 80.0)


def test_row_without_an_interval_has_no_picture() -> None:
    assert (
        pictures(
            [{"name": "x", "estimate": None, "low": None, "high": 2.0}, {"mean": math.nan, "low": 1.0, "high": 2.0}]
        )
        == []
    )
    assert "interval" not in html_table("caption", [{"name": EVIL}])


# -- surveys -------------------------------------------------------------------------------------------------


def test_plan_of_a_question_shows_its_margins() -> None:
    plan = plan_question(6, epsilon=1, respondents=3000)
    caption, header, first, *others = shown(plan)
    assert caption == ["6 answers; margins at 95 % for the population"]
    assert header == ["mechanism", "epsilon", "respondents", "margin", "recommended"]
    assert first == [plan["mechanism"], "1", "3000", f"{plan['margin']:.6g}", "yes"]
    assert len(others) == len(plan["table"])
    assert json.loads(json.dumps(plan)) == plan


def test_regression_shows_its_coefficients_with_the_names_escaped() -> None:
    coefficient = Coefficient(EVIL, 0.5, 0.25, 0.0, 1.0, 0.04)
    result = Regression("linear", f"a ~ {EVIL}", "a", 90, None, {}, 88, ((None, coefficient),))
    caption, header, row = shown(result)
    assert caption == [f"a ~ {EVIL}, linear; 90 respondents; 95 % intervals"]
    assert (header[:2], row[:2]) == (["name", "estimate"], [EVIL, "0.5"])


# -- DataFrames ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_results_become_a_frame_of_either_library(ledger: Any, library: str) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed")
    collection = Collection("poll", OUE, (EVIL, "no"))
    estimate = collection.estimate(collection.randomize([0, 1, 1]))
    ledger.spend("ann", OUE)
    for result in (
        estimate,
        ledger.balance("ann"),
        plan_question(6, epsilon=1, respondents=3000),
        rank_frequency(1, 4, 100),
    ):
        frame, rows = result.to_frame(library), result.to_rows()
        header = list(dict.fromkeys(name for row in rows for name in row))
        assert type(frame).__module__.startswith(library)
        assert (len(frame), list(frame.columns)) == (len(rows), header)
    assert list(estimate.to_frame(library)["answer"]) == [EVIL, "no"]


def test_frame_of_an_unknown_or_missing_library_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidParameter, match="library must be pandas or polars: got 'arrow'"):
        rank_frequency(1, 4, 100).to_frame("arrow")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(NotSupported, match="Install it: pip install polars"):
        rank_frequency(1, 4, 100).to_frame("polars")
