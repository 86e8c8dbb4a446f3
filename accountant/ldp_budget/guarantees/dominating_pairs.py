"""Dominating pairs of a finite channel: the pair of distributions that dominates every ordered pair of inputs.

To test an input x against x' from a report, the best test at each false-alarm rate first accepts the outcomes o with
the largest P[o]/Q[o]. The points (Q(T), P(T)) of these tests form a concave curve, which determines how well x and x'
can be distinguished. The concave hull of the curves of all ordered pairs is again such a curve, of one pair. That
pair dominates all of them, and no smaller pair does (Zhu, Dong and Wang 2022, section 3).

Equivalently, H(λ) = sup over T of P(T) - λQ(T) is a convex function of λ. A pair dominates another one if its H is
nowhere smaller. So bounds of H at some values of λ also bound H between them, along the chords.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from itertools import pairwise, permutations
from typing import TYPE_CHECKING

from .fixed_point import UP
from .guarantees import FinitePair

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Point = tuple[Fraction, Fraction]


def dominating_pair(rows: Sequence[Sequence[Fraction]]) -> FinitePair:
    """Return the tightest `FinitePair` over every ordered pair of `rows`, the output distributions of the inputs."""
    distinct = list(dict.fromkeys(tuple(map(Fraction, row)) for row in rows))
    return _pair_above(_tests(p, q) for p, q in permutations(distinct, 2))


def joined(*pairs: FinitePair) -> FinitePair:
    """Return the tightest `FinitePair` that dominates all of `pairs`.

    Mechanisms join the pair of the exact channel and the pair of the channel that the client samples.
    """
    return _pair_above(_tests(*zip(*pair.outcomes, strict=True)) for pair in pairs)


def pair_below(bounds: Iterable[tuple[Decimal, Decimal]]) -> FinitePair:
    """Return the pair that dominates every two inputs, in either order, from bounds (λ, H(λ)) at some λ >= 1.

    Each bound is valid for all ordered pairs of inputs. The bound at the largest λ is 0. For λ < 1, H follows from
    the swapped pair: H(λ) = 1 - λ + λ·H'(1/λ), so the mirrored bounds are valid there. The masses are rounded up to
    12 digits, and the outcome with loss 0 shrinks by as much. Splitting that outcome into two with a loss only raises
    H. Raises ValueError if the bounds are not such bounds.
    """
    stated = {Fraction(slope): Fraction(most) for slope, most in bounds}
    if not stated or min(stated) < 1 or stated[max(stated)]:
        raise ValueError(f"bounds must be at λ >= 1, and 0 at the largest λ: got {stated}")
    mirrored = {1 / slope: 1 - (1 - most) / slope for slope, most in stated.items()}
    # Where H starts: no test, and all of P. It falls from there, so -H has an upper hull.
    points = {(Fraction(0), Fraction(-1)), *((slope, -most) for slope, most in {**mirrored, **stated}.items())}
    hull = _concave_hull(points)
    falls = [(high - low) / (right - left) for (left, low), (right, high) in pairwise(hull)]
    ends = pairwise([*falls, Fraction(0)])
    kinks = [(slope, before - after) for (slope, _), (before, after) in zip(hull[1:], ends, strict=True)]
    telling = [(slope, mass) for slope, mass in kinks if slope > 1]
    for masses in ([(slope, _short(mass)) for slope, mass in telling], telling):
        nothing = 1 - sum(((1 + slope) * mass for slope, mass in masses), Fraction(0))
        if nothing >= 0:
            break
    outcomes = [(slope * mass, mass) for slope, mass in reversed(masses)]
    same = [(nothing, nothing)] if nothing else []
    return FinitePair((*outcomes, *same, *((q, p) for p, q in reversed(outcomes))))


def _short(mass: Fraction) -> Fraction:
    """Return a mass rounded up to 12 digits."""
    return Fraction(_SHORT.plus(UP.divide(Decimal(mass.numerator), Decimal(mass.denominator))))


_SHORT = Context(prec=12, rounding=ROUND_CEILING)


def _pair_above(curves: Iterable[Iterable[Point]]) -> FinitePair:
    """Return the pair whose curve is the concave hull of `curves`."""
    points = {(Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))}.union(*curves)
    steps = pairwise(_concave_hull(points))
    return FinitePair(tuple((p1 - p0, q1 - q0) for (q0, p0), (q1, p1) in steps))


def _tests(p: Sequence[Fraction], q: Sequence[Fraction]) -> Iterator[Point]:
    """Yield (Q(T), P(T)) of the likelihood-ratio tests T of P against Q."""
    outcomes = [(a, b) for a, b in zip(p, q, strict=True) if a or b]
    # a/b descending; a/(a+b) orders the same way and is defined where b is zero.
    outcomes.sort(key=lambda outcome: outcome[0] / (outcome[0] + outcome[1]), reverse=True)
    p_mass = q_mass = Fraction(0)
    for a, b in outcomes:
        p_mass, q_mass = p_mass + a, q_mass + b
        yield q_mass, p_mass


def _concave_hull(points: Iterable[Point]) -> list[Point]:
    """Return the corners of the upper hull, from left to right (Andrew's monotone chain, exact)."""
    hull: list[Point] = []
    for point in sorted(points):
        while len(hull) >= 2 and _turns_up(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _turns_up(a: Point, b: Point, c: Point) -> bool:
    """True if b is on or below the segment from a to c."""
    return (b[0] - a[0]) * (c[1] - a[1]) >= (b[1] - a[1]) * (c[0] - a[0])
