"""Reports of random substitution: how they compare two answers, how the client draws them, and how the server counts.

A report compares two answers only by which of them it holds, and where. Given that, its other answers are uniform for
both. The functions take N, the number of answers, and l, the draws in a report; probabilities are those of the drawn
thresholds.

The client draws with integers only. It draws everything for every user, for any answer, also draws that are not used.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.sdk.channels import Comparison, Factor
from ldp_budget.sdk.interpreter import as_reports

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Rows = NDArray[np.integer]
    Codes = NDArray[np.int64]
    Reports = NDArray[Any]

# For ordered draws the outcomes are the pairs of places, and each takes 64 bits for every draw.
_MOST_PLACES = 80


def distinct_sequence(size: int, hazards: Sequence[Fraction]) -> Comparison:
    """Compare the places 0..l of both answers in the report, l for an absent answer; row by row of the first's.

    A sequence is least likely for the answers that it does not hold.
    """
    draws = len(hazards)
    if draws > _MOST_PLACES:
        raise NotSupported(f"too many draws in one report to list the places of two answers: {draws}")
    places = list(_own_places(hazards))

    def probability(own: int, other: int) -> Fraction:
        if other < draws:
            return Fraction(0) if own == other else places[own] / (size - 1)
        return places[own] * Fraction(size - draws if own < draws else size - 1 - draws, size - 1)

    every = list(product(range(draws + 1), repeat=2))
    absent = [places[draws] / (place * (size - draws)) for place in places[:draws]] + [Fraction(1)]
    floor = tuple(probability(i, j) * absent[i] for i, j in every)
    return Comparison.of(Factor(tuple((probability(i, j), probability(j, i)) for i, j in every), floor))


def _own_places(hazards: Sequence[Fraction]) -> Iterator[Fraction]:
    """Yield the probability that the own answer is drawn at each place, and last that it is not drawn."""
    absent = Fraction(1)
    for hazard in hazards:
        yield absent * hazard
        absent *= 1 - hazard
    yield absent


def number_sequences(rows: Rows, first: int, second: int) -> Codes:
    """Return the outcomes of `distinct_sequence` for reports (n, l)."""
    draws = rows.shape[1]
    places = []
    for answer in (first, second):
        is_it = rows == answer
        places.append(np.where(is_it.any(axis=1), is_it.argmax(axis=1), draws))
    codes: Codes = (places[0] * (draws + 1) + places[1]).astype(np.int64)
    return codes


_COUNTED = 1 << 20


def checked_reports(reports: Any, size: int, draws: int, *, distinct: bool) -> Reports:
    """Return `reports` as an array, each row of `draws` answers 0..`size` - 1, all different if `distinct`.

    Raises `NotSupported` for any others.
    """
    rows = as_reports(reports)
    shape = () if draws == 1 else (draws,)
    if rows.dtype.kind not in "iu" or rows.ndim != 1 + len(shape) or rows.shape[1:] != shape:
        expected = ", ".join(["n", *map(str, shape)])
        raise NotSupported(f"reports must be integers of shape ({expected}): got {rows.dtype} {rows.shape}")
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < size:
        raise NotSupported(f"reports must be from 0 to {size - 1}: got {rows.min()} to {rows.max()}")
    if distinct and draws > 1:
        ascending = np.sort(rows, axis=1)
        if (ascending[:, 1:] == ascending[:, :-1]).any():
            raise NotSupported("each report must have distinct answers: got a report that repeats one")
    return rows


def count_answers(answers: Reports, size: int) -> NDArray[np.int64]:
    """Return the count of each of 0..`size` - 1."""
    counts = np.zeros(size, dtype=np.int64)
    step = max(_COUNTED, size)
    for start in range(0, len(answers), step):
        # numpy counts machine integers; a block at a time keeps the wider copy small.
        counts += np.bincount(answers[start : start + step].astype(np.intp), minlength=size)
    return counts
