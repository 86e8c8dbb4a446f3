"""What a report is promised to cost: integer amounts, and the closed vocabulary of guarantees."""

from __future__ import annotations

from .vocabulary import (
    ANY_INPUTS,
    RELATIONS,
    SAME_CHANGE_PATTERN,
    Approximate,
    Copies,
    FinitePair,
    Gaussian,
    Guarantee,
    Laplace,
    Memoised,
    Number,
    Pure,
    SymmetricPair,
    Unbounded,
    ZeroConcentrated,
    from_json,
    mu_squared_of_pure,
    odds,
    rho_of_pure,
)

__all__ = [
    "ANY_INPUTS",
    "RELATIONS",
    "SAME_CHANGE_PATTERN",
    "Approximate",
    "Copies",
    "FinitePair",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Memoised",
    "Number",
    "Pure",
    "SymmetricPair",
    "Unbounded",
    "ZeroConcentrated",
    "from_json",
    "mu_squared_of_pure",
    "odds",
    "rho_of_pure",
]
