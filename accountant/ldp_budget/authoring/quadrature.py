"""Integration of smooth functions, piece by piece, by the Gauss-Legendre rule with twelve points.

The rule is exact for polynomials up to degree 23, and good to the last digits for a function that is analytic
well beyond its piece. So the caller says where the function bends, and no tolerance has to be chosen.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# (node, weight) on [-1, 1]; each stands for its mirror image, too.
_RULE = (
    (0.1252334085114689154724414, 0.2491470458134027850005624),
    (0.3678314989981801937526915, 0.2334925365383548087608499),
    (0.5873179542866174472967024, 0.2031674267230659217490645),
    (0.7699026741943046870368938, 0.1600783285433462263346525),
    (0.9041172563704748566784659, 0.1069393259953184309602547),
    (0.9815606342467192506905491, 0.0471753363865118271946160),
)


def average(function: Callable[[float], float], breakpoints: Sequence[float]) -> float:
    """The mean of `function` over [first, last] of the ascending `breakpoints`, smooth between neighbours.

    Where these are one point, its value there.
    """
    if breakpoints[0] == breakpoints[-1]:
        return function(breakpoints[0])
    integral = sum(_integral(function, low, high) for low, high in pairwise(breakpoints))
    return integral / (breakpoints[-1] - breakpoints[0])


def _integral(function: Callable[[float], float], low: float, high: float) -> float:
    return sum(weight * function(node) for node, weight in weighted_nodes(low, high))


def weighted_nodes(low: float, high: float) -> list[tuple[float, float]]:
    """(node, weight) of the rule on [low, high]: the integral there is about Σ weight·f(node)."""
    middle, half = (low + high) / 2, (high - low) / 2
    return [(middle + side * half * node, half * weight) for node, weight in _RULE for side in (-1, 1)]
