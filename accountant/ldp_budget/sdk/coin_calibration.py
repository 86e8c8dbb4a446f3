"""Calibration of `draw.coin()`: the largest 64-bit threshold with which a client program loses at most ε.

The loss falls up to the threshold at which the coin says nothing, and rises from there. So the threshold is found by
bisection. The law of the program at that threshold is exact, so the result does not rely on the search.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from ..sampling import ONE
from .report_law import law_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .client_program import Program

_MOST_COINS = 12
"""The most coins of a report whose probabilities are interpolated."""
_GRID = sorted({ONE * 2**k // (2**k + 1) for k in range(41)} | {ONE // (1 + 2**k) for k in range(1, 41)})
"""Thresholds with the odds 2**k."""
_ENDLESS = Fraction(ONE) ** 9
"""A ratio above that of any two reports, in place of an infinite one."""


def largest_threshold(program_at: Callable[[int], Program], coins: int, most: Fraction) -> tuple[int, bool]:
    """Return the largest threshold with which e^ε is at most `most`, and True; else the one of the least loss, and False.

    Parameters:
        program_at: the program with a threshold, in units of 2**-64.
        coins: the number of bits with that threshold in a report.
        most: e^ε, rounded down.

    Raises:
        NotSupported: no rule finds the law of the program.
    """
    ratio_at = _ratio_of(program_at, coins)

    def loss(t: int) -> Fraction:
        ratio = ratio_at(t)
        return _ENDLESS if ratio is None else ratio

    place = min(range(len(_GRID)), key=lambda k: loss(_GRID[k]))
    low, high = _GRID[max(0, place - 1)], _GRID[min(place + 1, len(_GRID) - 1)]
    start = _GRID[place]
    while loss(start) > most and high - low > 2:
        a, b = low + (high - low) // 3, high - (high - low) // 3
        low, high = (low, b) if loss(a) < loss(b) else (a, high)
        start = (low + high) // 2
    if loss(start) > most:
        return start, False
    low, high = start, ONE
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if loss(middle) <= most else (low, middle)
    exact = law_of(program_at(low)).ratio
    return low, exact is not None and exact <= most


def _ratio_of(program_at: Callable[[int], Program], coins: int) -> Callable[[int], Fraction | None]:
    """Return e^ε as a function of the threshold.

    Each probability is a polynomial in the threshold, of a degree up to the number of coins. One more law than that gives
    the polynomials of all outcomes, and another one tests them.
    """
    if coins <= _MOST_COINS:
        points = [ONE * (2 * place + 1) // (2 * coins + 5) for place in range(coins + 2)]
        tables = [law_of(program_at(t)).pairs() for t in points]
        flat = [[mass for pair in pairs for masses in pair for mass in masses] for pairs in tables]
        if len({len(row) for row in flat}) == 1:
            columns = list(zip(*flat, strict=True))
            curves = {column: _interpolated(points[:-1], column[:-1]) for column in set(columns)}
            if all(_at(curve, points[-1]) == column[-1] for column, curve in curves.items()):
                both = {(curves[p], curves[q]) for p, q in zip(columns[::2], columns[1::2], strict=True)}
                return lambda t: _largest([(_at(p, t), _at(q, t)) for p, q in both])
    return lambda t: law_of(program_at(t)).ratio


def _interpolated(points: Sequence[int], values: Sequence[Fraction]) -> tuple[tuple[int, Fraction], ...]:
    """Return the polynomial through these values, in Newton's form: (node, coefficient) of each factor."""
    differences = list(values)
    for order in range(1, len(points)):
        for place in reversed(range(order, len(points))):
            step = points[place] - points[place - order]
            differences[place] = (differences[place] - differences[place - 1]) / step
    return tuple(zip(points, differences, strict=True))


def _at(curve: tuple[tuple[int, Fraction], ...], t: int) -> Fraction:
    total = Fraction(0)
    for node, coefficient in reversed(curve):
        total = total * (t - node) + coefficient
    return total


def _largest(masses: list[tuple[Fraction, Fraction]]) -> Fraction | None:
    """Return the largest ratio of two probabilities of a report; None if it is infinite."""
    if any((not p) != (not q) for p, q in masses):
        return None
    return max((max(p / q, q / p) for p, q in masses if p), default=Fraction(1))
