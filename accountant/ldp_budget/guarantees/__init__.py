"""Privacy guarantees of one report, and their costs in integer units.

It holds the closed set of guarantee classes, certified bounds in each privacy measure, the calibration of Gaussian
noise, and fixed-point amounts. It imports no other room.
"""

from __future__ import annotations

from ._base import ANY_INPUTS, EQUAL_IN_SAME_PLACES, SAME_CHANGE_PATTERN, are_equal_in_same_places
from .guarantees import (
    Approximate,
    Copies,
    FinitePair,
    Gaussian,
    Guarantee,
    Laplace,
    Memoised,
    Number,
    OneSided,
    Pure,
    SymmetricPair,
    Unbounded,
    ZeroConcentrated,
    from_json,
)

__all__ = [
    "ANY_INPUTS",
    "EQUAL_IN_SAME_PLACES",
    "SAME_CHANGE_PATTERN",
    "Approximate",
    "Copies",
    "FinitePair",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Memoised",
    "Number",
    "OneSided",
    "Pure",
    "SymmetricPair",
    "Unbounded",
    "ZeroConcentrated",
    "are_equal_in_same_places",
    "from_json",
]
