"""Which pairs of inputs a search compares, where only the domain is known."""

from __future__ import annotations

from itertools import islice, permutations
from typing import TYPE_CHECKING, Any

from ..errors import LdpBudgetError, NotSupported
from ..randomness import integers

if TYPE_CHECKING:
    from ..base import Mechanism
    from ..randomness import Stream

Pair = tuple[Any, Any]

_RANDOM_PAIRS = 2
_UNDECLARED = 64
"""Answers that are tried where their number is not declared."""
_MOST_PAIRS = 12


def candidate_pairs(mechanism: Mechanism, stream: Stream) -> list[Pair]:
    """Ordered pairs of different inputs, no more than a dozen. Raises `NotSupported` where none are known."""
    if hasattr(type(mechanism), "answers"):
        pairs = _of_answers(_answers(mechanism), stream)
    elif hasattr(mechanism, "domain"):
        pairs = _of_numbers(*map(float, mechanism.domain()))
    else:
        pairs = []
    if len(pairs) < _MOST_PAIRS:
        pairs += islice(permutations(_critical(mechanism, needed=not pairs), 2), _MOST_PAIRS - len(pairs))
    return list(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))


def _answers(mechanism: Any) -> int:
    try:
        return mechanism.answers or _UNDECLARED
    except LdpBudgetError:  # of a sketch that was declared without its domain
        return _UNDECLARED


def _critical(mechanism: Mechanism, *, needed: bool) -> list[Any]:
    try:
        return list(mechanism.critical_inputs())
    except NotSupported:
        if needed:
            raise
        return []


def _of_answers(count: int, stream: Stream) -> list[Pair]:
    last = count - 1
    drawn = [int(answer) for answer in integers(stream, count, 2 * _RANDOM_PAIRS)]
    return [(0, 1), (1, 0), (0, last), (last, 0), *zip(drawn[::2], drawn[1::2], strict=True)]


def _of_numbers(lower: float, upper: float) -> list[Pair]:
    """The ends both ways; and an end against inner points, where a report near that end may say more."""
    inner = [lower + (upper - lower) * share for share in (0.5, 0.25, 0.75)]
    return [(lower, upper), (upper, lower), *((lower, point) for point in inner), (inner[0], lower)]
