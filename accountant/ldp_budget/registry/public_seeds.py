"""Seeds of public hash functions, drawn when a collection or a survey is made.

A sketch is unbiased over the draw of its hash functions. With one seed for all collections, the same answers would be
counted too high, or too low, in each of them. So each collection draws its seed from the operating system, and its
definition stores it.
"""

from __future__ import annotations

from secrets import randbelow
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..sdk.mechanism import Mechanism

_SEEDS = 2**53
"""The number of seeds: a JSON number of any programming language holds each of them."""


def with_seed(kind: type[Mechanism], options: Mapping[str, Any], known: Mechanism | None = None) -> Mapping[str, Any]:
    """Return options with a seed, if the mechanism has a public seed and the options leave it out.

    `known` is the mechanism that is already stored. If it has the same class, its seed is used again.
    """
    seed = _field(kind)
    if not seed or options.get(seed) is not None:
        return options
    return {**options, seed: getattr(known, seed) if type(known) is kind else randbelow(_SEEDS)}


def _field(kind: type[Mechanism]) -> str:
    """Return the name of the field that seeds public randomness; empty if there is none."""
    return str(getattr(kind, "public_seed", ""))
