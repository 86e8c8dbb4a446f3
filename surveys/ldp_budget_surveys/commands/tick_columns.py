"""Columns of ticks: one column of 0 and 1 for each option, as Kobo, Google Forms and LimeSurvey write them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from ldp_budget._validation import canonical_text
from ldp_budget.errors import OutsideDomain
from ldp_budget.sdk.tick_sets import ticks_in

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMES = "{}/{}", "{}.{}", "{}_{}", "{} [{}]", "{}[{}]", "{}: {}"
"""How the column of an option is named after the column of the question."""
_TICKED = frozenset(("1", "1.0", "true", "yes", "y", "x"))
_MARKS = "; ", ", ", " "
_LEFT = frozenset(("0", "0.0", "false", "no", "n"))


def option_columns(columns: Sequence[str], column: str, options: Sequence[str]) -> list[str] | None:
    """Return the column of each option of a question, in order; None unless the table has one for every option.

    Parameters:
        columns: the columns of the table.
        column: the column that the question would have alone.
        options: the names of the options.
    """
    for pattern in _NAMES:
        wanted = [canonical_text(pattern.format(column, option)) for option in options]
        if all(each in columns for each in wanted):
            return wanted
    return None


def ticked(cells: Sequence[str], options: Sequence[str]) -> str:
    """Return the answer that the cells of the options say, in words; "" if all are empty.

    An empty cell beside others is an option that was not ticked. A cell that says neither is returned with its option, which no
    question accepts.

    Parameters:
        cells: the cell of each option.
        options: the names of the options.
    """
    texts = [canonical_text(cell) for cell in cells]
    if not any(texts):
        return ""
    found = []
    for text, option in zip(texts, options, strict=True):
        if text.casefold() in _TICKED or text == canonical_text(option):
            found.append(option)
        elif text and text.casefold() not in _LEFT:
            return f"{option}: {text}"
    return _words(tuple(found), tuple(options))


@lru_cache(maxsize=4096)
def _words(found: tuple[str, ...], options: tuple[str, ...]) -> str:
    """Return the text that is read as these options: options may hold a separator, or be called none.

    Without such a text, return one that no question accepts.
    """
    for mark in _MARKS:
        text = mark.join(found) or "none"
        try:
            if [options[place] for place in ticks_in(text, options)] == list(found):
                return text
        except OutsideDomain:
            continue
    return " + ".join(found) or "no option"
