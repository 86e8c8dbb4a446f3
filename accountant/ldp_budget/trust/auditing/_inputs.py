"""Which pairs of inputs a search compares, where only the domain is known."""

from __future__ import annotations

from itertools import islice, permutations
from typing import TYPE_CHECKING, Any

from ...authoring.domain import Categories
from ...errors import NotSupported
from ...randomness import integers

if TYPE_CHECKING:
    from ...authoring.base import Mechanism
    from ...randomness import Stream

Pair = tuple[Any, Any]

_SMALL = 64
"""Of a domain of at most so many answers all are tried, of a larger one a few drawn at random."""
_DRAWN = 16
_UNDECLARED = 64
"""Answers that are tried where their number is not declared."""
_MOST_CRITICAL = 12
_INNER_POINTS = 8
_PRECISION = 1 << 53


def candidate_pairs(mechanism: Mechanism, stream: Stream) -> list[Pair]:
    """Ordered pairs of different inputs, the most promising first. Raises `NotSupported` where none are known."""
    domain = mechanism.domain
    pairs: list[Pair] = []
    if isinstance(domain, Categories):
        pairs = _of_answers(domain.size if domain.listed else _UNDECLARED, stream)
    elif domain is not None:
        pairs = _of_numbers(*domain.ends, stream)
    critical = list(islice(permutations(_critical(mechanism, needed=not pairs), 2), _MOST_CRITICAL))
    return list(dict.fromkeys(pair for pair in (*pairs[:4], *critical, *pairs[4:]) if pair[0] != pair[1]))


def _critical(mechanism: Mechanism, *, needed: bool) -> list[Any]:
    try:
        return list(mechanism.critical_inputs())
    except NotSupported:
        if needed:
            raise
        return []


def _of_answers(count: int, stream: Stream) -> list[Pair]:
    """The first answer against others, both ways: one answer that is treated otherwise shows in one of its pairs."""
    last = count - 1
    others = range(1, count) if count <= _SMALL else [int(answer) for answer in integers(stream, count, _DRAWN)]
    return [(0, 1), (1, 0), (0, last), (last, 0), *(pair for other in others for pair in ((0, other), (other, 0)))]


def _of_numbers(lower: float, upper: float, stream: Stream) -> list[Pair]:
    """The ends both ways; and an end against inner points, where a report near that end may say more."""
    inner = [lower + (upper - lower) * share for share in (0.5, 0.25, 0.75)]
    drawn = [int(share) / _PRECISION for share in integers(stream, _PRECISION, _INNER_POINTS)]
    others = [lower + (upper - lower) * share for share in drawn]
    return [
        *((lower, upper), (upper, lower), *((lower, point) for point in inner), (inner[0], lower)),
        *(pair for other in others for pair in ((lower, other), (other, lower))),
    ]
