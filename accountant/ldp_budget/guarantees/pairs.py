"""Finite channels: the pair of distributions that dominates every ordered pair of inputs.

Testing input x against x' from a report, the best test at each false-alarm rate accepts the outcomes o with the
largest P[o]/Q[o] first. The points (Q(T), P(T)) of these tests form a concave curve that says all there is about
telling x from x' apart. The concave hull of the curves of all ordered pairs is such a curve again: that of one
pair, which dominates them all, and no smaller pair does (Zhu, Dong and Wang 2022, section 3).
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, permutations
from typing import TYPE_CHECKING

from .vocabulary import FinitePair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Point = tuple[Fraction, Fraction]


def dominating_pair(rows: Sequence[Sequence[Fraction]]) -> FinitePair:
    """The tightest `FinitePair` over every ordered pair of `rows`, each the output distribution of one input."""
    distinct = list(dict.fromkeys(tuple(map(Fraction, row)) for row in rows))
    return _pair_above(_tests(p, q) for p, q in permutations(distinct, 2))


def joined(*pairs: FinitePair) -> FinitePair:
    """The tightest `FinitePair` that dominates all of these: that of a channel as it is meant, and as it is drawn."""
    return _pair_above(_tests(*zip(*pair.outcomes, strict=True)) for pair in pairs)


def _pair_above(curves: Iterable[Iterable[Point]]) -> FinitePair:
    """The pair whose curve is the concave hull of these."""
    points = {(Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))}.union(*curves)
    steps = pairwise(_concave_hull(points))
    return FinitePair(tuple((p1 - p0, q1 - q0) for (q0, p0), (q1, p1) in steps))


def _tests(p: Sequence[Fraction], q: Sequence[Fraction]) -> Iterator[Point]:
    """(Q(T), P(T)) of the likelihood-ratio tests of P against Q."""
    outcomes = [(a, b) for a, b in zip(p, q, strict=True) if a or b]
    # a/b descending; a/(a+b) orders the same way and is defined where b is zero.
    outcomes.sort(key=lambda outcome: outcome[0] / (outcome[0] + outcome[1]), reverse=True)
    p_mass = q_mass = Fraction(0)
    for a, b in outcomes:
        p_mass, q_mass = p_mass + a, q_mass + b
        yield q_mass, p_mass


def _concave_hull(points: Iterable[Point]) -> list[Point]:
    """The corners of the upper hull, from (0, 0) to (1, 1) (Andrew's monotone chain, exact)."""
    hull: list[Point] = []
    for point in sorted(points):
        while len(hull) >= 2 and _turns_up(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _turns_up(a: Point, b: Point, c: Point) -> bool:
    """Whether b lies on or below the segment from a to c."""
    return (b[0] - a[0]) * (c[1] - a[1]) >= (b[1] - a[1]) * (c[0] - a[0])
