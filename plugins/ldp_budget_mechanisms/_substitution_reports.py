"""Sequences of distinct answers, the reports of ordered draws: how they compare two answers.

A report compares two answers only by which of them it holds, and where. Given that, its other answers are uniform for
both. The functions take N, the number of answers, and l, the draws in a report; probabilities are those of the drawn
thresholds.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.sdk.channels import Comparison, Factor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Rows = NDArray[np.integer]
    Codes = NDArray[np.int64]

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
