"""Columns of ticks: which columns are those of the options, and what their cells say."""

from __future__ import annotations

import pytest

from ldp_budget.errors import OutsideDomain
from ldp_budget.sdk.tick_sets import ticks_in
from ldp_budget_surveys.commands.tick_columns import option_columns, ticked

OPTIONS = ("bus", "train")


@pytest.mark.parametrize("form", ["{}/{}", "{}.{}", "{}_{}", "{} [{}]", "{}: {}"])
def test_option_columns_of_form_tools_are_found(form: str) -> None:
    columns = ["user", *(form.format("transport", option) for option in reversed(OPTIONS))]
    assert option_columns(columns, "transport", OPTIONS) == columns[:0:-1]


def test_option_columns_are_none_unless_every_option_has_one() -> None:
    assert option_columns(["transport/bus"], "transport", OPTIONS) is None


@pytest.mark.parametrize(
    ("cells", "answer"),
    [
        (["1", "0"], "bus"),
        (["1", "1"], "bus; train"),
        (["0", "0"], "none"),
        (["TRUE", "FALSE"], "bus"),
        (["bus", ""], "bus"),
        (["", "1.0"], "train"),
        (["", ""], ""),
        (["2", "0"], "bus: 2"),
        (["0", "maybe"], "train: maybe"),
    ],
)
def test_cells_of_options_are_one_answer(cells: list[str], answer: str) -> None:
    assert ticked(cells, OPTIONS) == answer


@pytest.mark.parametrize(
    ("options", "cells"),
    [
        (("a; b", "a", "b"), ["0", "1", "1"]),
        (("a;b", "c"), ["1", "1"]),
        (("a, b", "a", "b"), ["0", "1", "1"]),
        (("a b", "a", "b"), ["1", "0", "1"]),
        (("none", "a"), ["1", "0"]),
        (("none", "a"), ["1", "1"]),
    ],
)
def test_cells_of_options_that_hold_separators_are_read_as_these_options(
    options: tuple[str, ...], cells: list[str]
) -> None:
    assert ticks_in(ticked(cells, options), options) == [place for place, cell in enumerate(cells) if cell == "1"]


@pytest.mark.parametrize(
    ("options", "cells"),
    [(("none", "a"), ["0", "0"]), (("a; b", "a, b", "a b", "a", "b"), ["0", "0", "0", "1", "1"])],
)
def test_cells_of_options_without_words_are_refused(options: tuple[str, ...], cells: list[str]) -> None:
    with pytest.raises(OutsideDomain):
        ticks_in(ticked(cells, options), options)
