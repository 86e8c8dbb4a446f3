"""Integration of smooth functions, piece by piece, by the Gauss-Legendre rule with twelve points.

The rule is exact for polynomials up to degree 23, and good to the last digits for a function that is analytic
well beyond its piece. So the caller says where the function bends, and no tolerance has to be chosen.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_RIGHT = (
    (0.1252334085114689, 0.2491470458134027),
    (0.3678314989981802, 0.2334925365383546),
    (0.5873179542866175, 0.20316742672306573),
    (0.7699026741943047, 0.16007832854334642),
    (0.9041172563704748, 0.10693932599531907),
    (0.9815606342467192, 0.04717533638651141),
)
_RULE = [*((-node, weight) for node, weight in reversed(_RIGHT)), *_RIGHT]
"""(node, weight) on [-1, 1]. Written out: what is chosen by an integral, as a γ is, is the same on every machine, and
is charged without numpy."""


def average(function: Callable[[float], float], breakpoints: Sequence[float]) -> float:
    """The mean of `function` over [first, last] of the ascending `breakpoints`, smooth between neighbours.

    Where these are one point, its value there.
    """
    if breakpoints[0] == breakpoints[-1]:
        return function(breakpoints[0])
    pieces = [weighted_nodes(low, high) for low, high in pairwise(breakpoints)]
    total = math.fsum(weight for piece in pieces for _, weight in piece)
    # In units of a power of two, which rounds nothing: over a range of 1e100 the integral may be beyond any double.
    unit = math.ldexp(1.0, -math.frexp(total)[1])
    integral = math.fsum(weight * unit * function(node) for piece in pieces for node, weight in piece)
    return integral / (total * unit)


def weighted_nodes(low: float, high: float) -> list[tuple[float, float]]:
    """(node, weight) of the rule on [low, high]: the integral there is about Σ weight·f(node)."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [(middle + half * node, half * weight) for node, weight in _RULE]
