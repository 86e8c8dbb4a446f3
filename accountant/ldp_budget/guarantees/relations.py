"""Neighbours: which histories of answers a guarantee compares. The one definition that all other texts repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

ANY_INPUTS = "any inputs"
"""Any two histories of one user."""

SAME_CHANGE_PATTERN = "same change pattern"
"""Two histories that are equal in the same places, see `are_equal_in_same_places`."""

RELATIONS = (ANY_INPUTS, SAME_CHANGE_PATTERN)

EQUAL_IN_SAME_PLACES = (
    "histories that are equal in the same places: wherever the one repeats an earlier answer, "
    "the other repeats its own answer from the same earlier place, and the other way round"
)
"""The definition in words; documentation quotes this sentence."""


def are_equal_in_same_places(first: Sequence[Hashable], second: Sequence[Hashable]) -> bool:
    """Whether two histories are equal in the same places: (A, B, A) and (C, D, C), and not (C, D, E).

    It is not enough that they change at the same moments: the third report of the first history repeats the noise of
    its first, and that of (C, D, E) does not, which shows. Where a report is drawn from a cell that a value falls
    into, the histories are those of the cells; where a secret decides the cells, they must be so for every secret.

    Raises:
        Nothing.
    """
    if len(first) != len(second):
        return False
    pairs = set(zip(first, second, strict=True))
    return len(pairs) == len(set(first)) == len(set(second))
