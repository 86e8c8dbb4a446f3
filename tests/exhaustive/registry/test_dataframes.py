"""Columns and DataFrames of pandas, Polars, Arrow and numpy in place of lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ldp_budget import Accountant, InvalidParameter, OutsideDomain, mechanism
from ldp_budget.registry.collections import Collection

pa = pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
pd = pytest.importorskip("pandas", reason="no pandas: pip install 'ldp-budget[interop]'")
pl = pytest.importorskip("polars", reason="no polars: pip install 'ldp-budget[interop]'")

OUE = mechanism("oue")(epsilon=1, domain_size=2)
POLL = Collection("poll", OUE, ("yes", "no"))
AGE = Collection("age", mechanism("laplace")(epsilon=1, lower=18, upper=70))
WORDS = Collection("words", mechanism("cms")(epsilon=1, hashes=4, width=16))

ANSWERS = ["yes", "no", "no"]
TEXTS = {
    "pandas": pd.Series(ANSWERS),
    "pandas, another index": pd.Series(ANSWERS, index=[2, 0, 1]),
    "pandas, an index of texts": pd.Series(ANSWERS, index=["no", "no", "yes"]),
    "pandas, objects": pd.Series(ANSWERS, dtype=object),
    "pandas, categories": pd.Series(ANSWERS, dtype="category"),
    "pandas, of Arrow": pd.Series(ANSWERS, dtype="string[pyarrow]"),
    "pandas, an index itself": pd.Index(ANSWERS),
    "polars": pl.Series(ANSWERS),
    "polars, categories": pl.Series(ANSWERS, dtype=pl.Categorical),
    "polars, an enumeration": pl.Series(ANSWERS, dtype=pl.Enum(["no", "other", "yes"])),
    "arrow": pa.array(ANSWERS),
    "arrow, large": pa.array(ANSWERS, pa.large_string()),
    "arrow, views": pa.array(ANSWERS, pa.string_view()),
    "arrow, a dictionary": pa.array(ANSWERS).dictionary_encode(),
    "arrow, chunks": pa.chunked_array([["yes"], [], ["no", "no"]]),
    "numpy": np.array(ANSWERS),
    "numpy, objects": np.array(ANSWERS, dtype=object),
}
HOLES = {
    "pandas": pd.Series(["yes", None]),
    "pandas, objects": pd.Series(["yes", pd.NA], dtype=object),
    "pandas, categories": pd.Series(["yes", None], dtype="category"),
    "polars": pl.Series(["yes", None]),
    "arrow": pa.array(["yes", None]),
    "arrow, chunks": pa.chunked_array([["yes"], [None]]),
}
FRAMES = {
    "pandas": pd.DataFrame({"user": ["ann", "bob", "cy"], "answer": ANSWERS}),
    "polars": pl.DataFrame({"user": ["ann", "bob", "cy"], "answer": ANSWERS}),
    "arrow": pa.table({"user": ["ann", "bob", "cy"], "answer": ANSWERS}),
    "a batch of arrow": pa.record_batch({"user": ["ann", "bob", "cy"], "answer": ANSWERS}),
    "a mapping": {"user": ["ann", "bob", "cy"], "answer": ANSWERS},
}


@pytest.fixture
def ledger() -> Any:
    with Accountant(":memory:") as made:
        made.set_policy("default", ["lifetime=1"])
        yield made


@pytest.mark.parametrize("kind", TEXTS)
def test_column_of_texts_equals_a_list(ledger: Any, kind: str) -> None:
    column = TEXTS[kind]
    assert POLL.read_values(column).tolist() == [0, 1, 1]
    assert np.array_equal(WORDS.read_values(column), WORDS.read_values(ANSWERS))
    assert len(WORDS.randomize(column)) == 3
    # The same users, however they came: a run that is repeated with a list is the same run.
    assert ledger.spend_many(column, OUE, key="run").spent == 2
    assert ledger.spend_many(ANSWERS, OUE, key="run").repeated == 2
    assert [balance.user for balance in ledger.balances(column)] == ANSWERS


@pytest.mark.parametrize("kind", HOLES)
def test_column_with_a_missing_value_is_refused_with_its_row(ledger: Any, kind: str) -> None:
    for read in (POLL.read_values, WORDS.read_values, WORDS.randomize):
        with pytest.raises(OutsideDomain) as caught:
            read(HOLES[kind])
        assert caught.value.position == 1
    with pytest.raises(InvalidParameter, match="user must be a string"):
        ledger.spend_many(HOLES[kind], OUE)
    assert ledger.balance("yes").limits[0].spent.epsilon == 0


@pytest.mark.parametrize("column", [pd.Series([7, 8]), pl.Series([7, 8]), pa.array([7, 8]), np.array([7, 8])])
def test_column_of_whole_numbers_is_read_as_decimals(ledger: Any, column: Any) -> None:
    ledger.spend_many(column, OUE)
    assert ledger.balance("7").limits[0].spent.epsilon == 1
    assert Collection("seven", OUE, ("7", "8")).read_values(column).tolist() == [0, 1]


@pytest.mark.parametrize("column", [pd.Series([7.0, None]), pl.Series([7.5]), pa.array([True]), pd.Series([1, "a"])])
def test_column_of_users_without_one_text_form_is_refused(ledger: Any, column: Any) -> None:
    with pytest.raises(InvalidParameter, match="user must be a string"):
        ledger.spend_many(column, OUE)


def test_column_of_numbers_is_read_exactly() -> None:
    for column in (pd.Series([20.5, 70]), pl.Series([20.5, 70]), pa.array([20.5, 70])):
        assert AGE.read_values(column).tolist() == [20.5, 70]
    for column in (pd.Series([1.5]), [1.5]):
        with pytest.raises(OutsideDomain):
            Collection("numbered", OUE).read_values(column)
    with pytest.raises(OutsideDomain, match="position 1"):
        AGE.read_values(pd.Series([20.5, None]))


@pytest.mark.parametrize("kind", FRAMES)
def test_column_of_a_dataframe_is_randomized_by_row(kind: str) -> None:
    assert POLL.randomize_column(FRAMES[kind], "answer").shape == (3, 1)
    with pytest.raises(InvalidParameter, match=r"column must be one of the columns user, answer: got 'town'"):
        POLL.randomize_column(FRAMES[kind], "town")
    with pytest.raises(OutsideDomain, match="position 0 is outside the domain, one of yes, no: got 'ann'"):
        POLL.randomize_column(FRAMES[kind], "user")
