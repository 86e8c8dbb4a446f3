"""Raking: weights under which the respondents agree with known totals of the population.

Iterative proportional fitting multiplies the weights of each category by a factor, variable by variable, until all
totals agree (Deming and Stephan 1940). Raking on one variable, or on a cross of several, is post-stratification. The
variance of an estimate with raked weights is that of its residuals after a weighted regression on the categories
(Deville and Särndal 1992).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget._lookalikes import difference
from ldp_budget._number_parsing import NO_NUMBER, number_in
from ldp_budget.errors import InvalidParameter, NotSupported

from .weights import LARGEST, Weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .moments import Moments

    Floats = NDArray[np.float64]

    Totals = Mapping[str, Mapping[str, float]]
    """For each variable, the number of people in each of its categories."""

CROSS = ":"
"""Joins the columns of a cross, and the values of its categories: `region:age`, `north:18-34`."""
_MOST_ROUNDS = 20_000
_CHECKED, _FALLING = 1000, 0.9
"""After so many rounds, the largest error must have fallen to this part of itself: else there are no weights."""
_CLOSE = 1e-10
_SAME = 1e-6


def read_totals(rows: Sequence[Mapping[str, str]]) -> dict[str, dict[str, float]]:
    """Return the totals in a table with the columns variable, value and total.

    Parameters:
        rows: one for each category of each variable.

    Raises:
        InvalidParameter: a column is missing, a category appears twice, a total is not a number >= 0, or the totals of
            two variables have different sums.
    """
    totals: dict[str, dict[str, float]] = {}
    if not rows or not {"variable", "value", "total"} <= set(rows[0]):
        found = ", ".join(rows[0]) if rows else "no rows"
        raise InvalidParameter("rake", "the columns variable, value and total", found)
    for row in rows:
        categories = totals.setdefault(row["variable"], {})
        if row["value"] in categories:
            raise InvalidParameter("rake", "one total for each category", f"two for {row['variable']} {row['value']}")
        categories[row["value"]] = _total(row)
    sums = {variable: math.fsum(categories.values()) for variable, categories in totals.items()}
    first = next(iter(sums))
    whole = next((each for each in _WHOLES if all(_is_about(each, people) for people in sums.values())), sums[first])
    for variable, people in sums.items():
        if not people > 0 or not _is_about(whole, people):
            expected = f"the same number of people in each variable ({first} has {sums[first]:.12g})"
            raise InvalidParameter("rake", expected, f"{people:.12g} in {variable}")
        if abs(people - whole) > _SAME * whole:
            totals[variable] = {name: each * (whole / people) for name, each in totals[variable].items()}
    return totals


_WHOLES = (100.0, 1.0)
"""The sums of percentages and of shares."""
_ROUNDED = 0.005
"""The largest part by which rounded totals may miss their sum."""


def _is_about(whole: float, people: float) -> bool:
    return abs(people - whole) <= _ROUNDED * whole


def scaled_totals(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return a note for each variable whose totals `read_totals` has scaled, because they miss their sum by rounding.

    Parameters:
        rows: the rows of the table of totals.

    Raises:
        InvalidParameter: as `read_totals` does.
    """
    scaled, notes = read_totals(rows), []
    for variable, categories in scaled.items():
        given = math.fsum(_total(row) for row in rows if row["variable"] == variable)
        whole = math.fsum(categories.values())
        if abs(given - whole) > _SAME * whole:
            notes.append(f"the totals of {variable} add up to {given:.12g}: scaled to {whole:.12g}")
    return notes


def _total(row: Mapping[str, str]) -> float:
    try:
        total, hint = number_in(row["total"]), ""
    except ValueError as error:
        total, hint = math.nan, "" if str(error) == NO_NUMBER else f"{error}."
    if not 0 <= total <= LARGEST:
        expected = f"totals that are numbers from 0 to {LARGEST:.0e}"
        hint = "Write the number without %." if row["total"].endswith("%") else hint
        raise InvalidParameter("rake", expected, f"{row['total']!r} for {row['value']}", hint=hint)
    return total


def rake(moments: Moments, totals: Totals, base: Weights, *, within: Sequence[str] = ()) -> Weights:
    """Return the weights that agree with the totals and are nearest to the given ones.

    Parameters:
        moments: the moments of the reports.
        totals: as `read_totals` returns them. A variable is a public column, or a cross of columns such as
            `region:age`.
        base: the weights before raking.
        within: columns in each combination of which the totals hold separately, such as the rounds of a survey.

    Raises:
        InvalidParameter: a variable is not a public column; or a category has respondents and no total, or a total and
            no respondents.
        NotSupported: no weights agree with all the totals.
    """
    groups, levels = moments.codes(within)
    margins = [_margin(moments, variable, categories, groups, levels) for variable, categories in totals.items()]
    weights = base.values.astype(np.float64)
    before = math.inf
    for number in range(1, _MOST_ROUNDS + 1):
        for codes, wanted in margins:
            weights = weights * (wanted / np.bincount(codes, weights * moments.counts, len(wanted)))[codes]
        worst = max(_error(codes, wanted, weights * moments.counts) for codes, wanted in margins)
        if worst <= _CLOSE:
            break
        if number % _CHECKED == 0:
            if number == _MOST_ROUNDS or worst > _FALLING * before:
                raise _no_weights(number, worst)
            before = worst
    indicators = [np.eye(len(wanted))[codes] for codes, wanted in margins]
    return Weights(weights, np.concatenate(indicators, axis=1), known=True)


def _no_weights(rounds: int, worst: float) -> NotSupported:
    return NotSupported(
        f"raking does not converge: after {rounds} rounds a category is still off by {100 * worst:.2g} %. "
        "Combinations without respondents leave no weights that meet all totals",
        hint="Join rare categories, or rake on fewer variables.",
    )


def _margin(
    moments: Moments, variable: str, categories: Mapping[str, float], groups: Any, levels: Any
) -> tuple[Any, Floats]:
    """Return the category of each cell, numbered through all groups, and the total of each category."""
    columns = [variable] if variable in moments.columns else variable.split(CROSS)
    found, values = moments.codes(columns, "rake")
    names = [CROSS.join(value) for value in values]
    for name in names:
        if not categories.get(name, 0) > 0:
            raise InvalidParameter(
                "rake",
                f"a total above 0 for each {variable} of the reports",
                f"{'total 0' if name in categories else 'none'} for {name!r}",
                hint=_hint(name, categories, names),
            )
    seen = set(zip(groups.tolist(), found.tolist(), strict=True))
    for name in (name for name, total in categories.items() if total > 0):
        for group, level in enumerate(levels):
            if name not in names or (group, names.index(name)) not in seen:
                raise InvalidParameter(
                    "rake",
                    f"reports in each category of {variable} with a total",
                    f"no report from {name!r}" + (f" in {', '.join(level)}" if level else ""),
                    hint="Join the category with another one.",
                )
    wanted = np.array([categories[name] for name in names])
    return groups * len(names) + found, np.tile(wanted, len(levels))


def _hint(name: str, categories: Mapping[str, float], names: Sequence[str]) -> str:
    """Return what to do about a category of the reports without a total, and the totals that no report uses."""
    if name not in categories and (apart := difference(name, categories)):
        return f"{apart} Write both in one way."
    alike = [each for each in categories if each != name and each.casefold().split() == name.casefold().split()]
    if alike:
        return f"The totals name {alike[0]!r}. Write {name!r} there, as in the reports."
    unused = [each for each in categories if each not in names]
    listed = f"Totals that no report uses: {', '.join(unused[:_MOST_NAMED])}. " if unused else ""
    return (
        f"{listed}Write a row with the value {name!r} and a total above 0. To leave these people out of the next round, "
        "remove their rows from the table before you randomize it."
    )


_MOST_NAMED = 5


def _error(codes: Any, wanted: Floats, weighted: Floats) -> float:
    return float(np.abs(np.bincount(codes, weighted, len(wanted)) / wanted - 1).max())
