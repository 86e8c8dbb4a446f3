"""What draws of a random substitution say of one answer against another: whether, and where, they hold the two.

Given that, the other answers in a report are uniform whichever of the two is the user's. The functions take N, the
number of answers, and l, the draws in a report; probabilities are those of the drawn thresholds.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from ldp_budget.authoring.channels import Comparison, Factor
from ldp_budget.errors import NotSupported

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Rows = NDArray[np.integer]
    Codes = NDArray[np.int64]

# With more draws the outcomes of independent ones are not worth numbering, nor do they fit 64 bits.
_MOST_NUMBERED = 16
# Of ordered draws the outcomes are the pairs of places, and each takes 64 bits for every draw.
_MOST_PLACES = 80


def independent_draws(size: int, draws: int, keep: Fraction) -> Comparison:
    """Each draw is the first answer, the second or another one, with the probability `keep` of the user's own."""
    other = (1 - keep) / (size - 1)
    rest = (size - 2) * other
    draw = Factor(((keep, other), (other, keep), (rest, rest)))
    return Comparison.of(*[draw] * draws)


def number_draws(rows: Rows, first: int, second: int) -> Codes:
    """The outcomes of `independent_draws` for reports (n,) or (n, l)."""
    rows = rows.reshape(len(rows), -1)
    if rows.shape[1] > _MOST_NUMBERED:
        raise NotSupported(f"the outcomes of {rows.shape[1]} draws are too many to number")
    codes = np.zeros(len(rows), dtype=np.int64)
    for draw in rows.T:
        codes = 3 * codes + np.where(draw == first, 0, np.where(draw == second, 1, 2))
    return codes


def distinct_set(size: int, draws: int, include: Fraction) -> Comparison:
    """The set holds both answers, the first alone, the second alone or neither; `include` is π₁."""
    beside, without = Fraction(draws - 1, size - 1), Fraction(draws, size - 1)
    own, other = include * (1 - beside), (1 - include) * without
    both, neither = include * beside, (1 - include) * (1 - without)
    return Comparison.of(Factor(((both, both), (own, other), (other, own), (neither, neither))))


def number_sets(rows: Rows, first: int, second: int) -> Codes:
    """The outcomes of `distinct_set` for reports (n, l)."""
    held = [(rows == answer).any(axis=1) for answer in (first, second)]
    codes: Codes = np.select([held[0] & held[1], held[0], held[1]], [0, 1, 2], 3).astype(np.int64)
    return codes


def distinct_sequence(size: int, hazards: Sequence[Fraction]) -> Comparison:
    """The places 0..l of both answers in the report, l where an answer is not in it; row by row of the first's."""
    draws = len(hazards)
    if draws > _MOST_PLACES:
        raise NotSupported(f"the places of two answers among {draws} draws are too many to list exactly")
    places = list(_own_places(hazards))

    def probability(own: int, other: int) -> Fraction:
        if other < draws:
            return Fraction(0) if own == other else places[own] / (size - 1)
        return places[own] * Fraction(size - draws if own < draws else size - 1 - draws, size - 1)

    every = list(product(range(draws + 1), repeat=2))
    return Comparison.of(Factor(tuple((probability(i, j), probability(j, i)) for i, j in every)))


def _own_places(hazards: Sequence[Fraction]) -> Iterator[Fraction]:
    """How likely the own answer is drawn at each place, and last not at all."""
    absent = Fraction(1)
    for hazard in hazards:
        yield absent * hazard
        absent *= 1 - hazard
    yield absent


def number_sequences(rows: Rows, first: int, second: int) -> Codes:
    """The outcomes of `distinct_sequence` for reports (n, l)."""
    draws = rows.shape[1]
    places = []
    for answer in (first, second):
        is_it = rows == answer
        places.append(np.where(is_it.any(axis=1), is_it.argmax(axis=1), draws))
    codes: Codes = (places[0] * (draws + 1) + places[1]).astype(np.int64)
    return codes
