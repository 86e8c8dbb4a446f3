"""Survey weights: the number of people of the population that each respondent represents.

A weight is a function of the public attributes. Weights multiply contributions after the noise, so they cost no
privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget._lookalikes import difference
from ldp_budget._number_parsing import NO_NUMBER, number_in
from ldp_budget.errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from .moments import Moments

    Floats = NDArray[np.float64]

LARGEST = 1e30
"""The largest weight or total, and the inverse of the least weight: sums of squares neither overflow nor vanish."""


@dataclass(frozen=True)
class Weights:
    """The weight of a respondent in each cell of `Moments`.

    Parameters:
        values: the weights, shape (K,).
        margins: the indicators of the categories to which the weights are raked, (K, c); None without raking. A
            variance uses the residuals of a regression on them.
        known: True if the weights sum to the population, so that counts of people can be estimated.
    """

    values: Floats
    margins: Floats | None = None
    known: bool = False

    def total(self, moments: Moments) -> float:
        """Return the sum of the weights of all respondents."""
        return float(self.values @ moments.counts)

    def kish(self, moments: Moments) -> float:
        """Return Kish's design effect of unequal weights, n·Σw²/(Σw)²: 1 for equal weights."""
        return float(moments.reports * (self.values**2 @ moments.counts) / self.total(moments) ** 2)


def equal_weights(moments: Moments) -> Weights:
    """Return the weight 1 for each respondent."""
    return Weights(np.ones(len(moments.cells)))


def column_weights(moments: Moments, column: str) -> Weights:
    """Return the weights that a public column holds.

    Parameters:
        moments: the moments of the reports.
        column: a public column of numbers >= 0.

    Raises:
        InvalidParameter: there is no such column, or a value is not a number >= 0.
    """
    place = moments.place(column, "weights")
    return Weights(np.array([_weight(column, cell[place]) for cell in moments.cells]), known=True)


def table_weights(moments: Moments, rows: Sequence[Mapping[str, str]]) -> Weights:
    """Return the weights that a table states: a row for each combination of public attributes, with its `weight`.

    Parameters:
        moments: the moments of the reports.
        rows: rows with the same columns: `weight`, and one or more public columns.

    Raises:
        InvalidParameter: a column is missing or not public; a combination has no row, or two; or a weight is not a
            number >= 0.
    """
    columns = [name for name in (rows[0] if rows else {}) if name != "weight"]
    if not columns or "weight" not in rows[0]:
        raise InvalidParameter("weights", "columns for public attributes and a column weight", ", ".join(columns))
    table: dict[tuple[str, ...], float] = {}
    for row in rows:
        cell = tuple(row[name] for name in columns)
        if cell in table:
            raise InvalidParameter("weights", "one row for each combination", f"{', '.join(cell)} twice")
        table[cell] = _weight(", ".join(cell), row["weight"])
    codes, levels = moments.codes(columns, "weights")
    for level in levels:
        if level not in table:
            expected = f"a row for each combination of {', '.join(columns)} in the reports"
            raise InvalidParameter(
                "weights", expected, f"none for {', '.join(level)}", hint=_unused(level, table, levels)
            )
    return Weights(np.array([table[level] for level in levels])[codes], known=True)


def _unused(level: tuple[str, ...], table: Mapping[tuple[str, ...], float], levels: Sequence[Any]) -> str:
    """Return what the rows of a table that no report uses may mean by a combination, and their list."""
    unused = [", ".join(cell) for cell in table if cell not in levels]
    if not unused:
        return "Add a row for it."
    apart = difference(", ".join(level), unused)
    more = f" and {len(unused) - _MOST_NAMED} more" if len(unused) > _MOST_NAMED else ""
    return f"{apart} Rows that no report uses: {'; '.join(unused[:_MOST_NAMED])}{more}.".lstrip()


_MOST_NAMED = 5


def _weight(place: str, text: Any) -> float:
    try:
        weight, hint = number_in(text), ""
    except ValueError as error:
        weight, hint = math.nan, "" if str(error) == NO_NUMBER else f"{error}."
    if weight != 0 and not 1 / LARGEST <= weight <= LARGEST:
        expected, hint = (
            f"numbers from {1 / LARGEST:.0e} to {LARGEST:.0e}",
            hint or "A weight of 0 leaves reports out.",
        )
        raise InvalidParameter("weights", expected, f"{text!r} for {place}", hint=hint)
    return weight
