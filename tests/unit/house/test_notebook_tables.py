"""Notebook tables of results, in which every text is escaped."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from ldp_budget import Accountant, mechanism
from ldp_budget.registry.collections import Collection
from ldp_budget.registry.ranking import rank_frequency

EVIL = "<script>alert('x')</script>&\"'"
OUE = mechanism("oue")(epsilon=1, domain_size=2)
LAPLACE = mechanism("laplace")(epsilon=1, lower=0, upper=1)


def shown(result: Any) -> list[list[str]]:
    """The cells of the rows of a table, which is well formed; its caption is the first of them."""
    table = ElementTree.fromstring(result._repr_html_())
    assert {element.tag for element in table.iter()} <= {"table", "caption", "tr", "th", "td"}
    rows = [[cell.text or "" for cell in row] for row in table.iter("tr")]
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
    assert shown(ledger.balance(EVIL)) == [[f"{EVIL}, policy default: erased"], header]
    assert shown(next(iter(ledger.balances())))[0] == ["account 1, policy default: erased"]


@pytest.mark.slow
def test_batch_and_comparison_tables_show_their_rows(ledger: Any) -> None:
    assert shown(ledger.spend_many(["ann", "bob"], OUE))[1:] == [["spent", "refused", "repeated"], ["2", "0", "0"]]
    ranking = rank_frequency(1, 4, 1000)
    rows = shown(ranking)
    assert [row[1] for row in rows[2:]] == [row["mechanism"] for row in ranking]
    assert ranking == list(ranking)
