"""Certified upper bounds of the Rényi divergences of a pair of distributions over finitely many outcomes.

With L = ln P/Q the privacy loss, and u = α - 1 > 0,

    K(u) = ln E_P[e^{uL}],    D_α(P‖Q) = K(u)/u,    ρ = sup over α > 1 of D_α/α = sup over u > 0 of K(u)/(u(1+u))

(Rényi 1961; Bun and Steinke 2016, Definition 1.1). K is convex. So between two values of u it is below its chord
mu - c, and (mu - c)/(u(1+u)) has one maximum, m²/(√(m+c) + √c)² at u = (c + √(c²+mc))/m. Below the first value of u,
D_α/α is at most the D at that value, as D grows with α. Beyond the last value it is at most the largest loss divided
by α.

If the losses are small and P, Q are complete distributions, there is a tighter bound for small u, with K ≤ M and

    M(u) = E_P[e^{uL}] - 1,    M(u)/(u(1+u)) = ∫ t^{u-1} dν(t) for some measure ν >= 0

(the power divergence of Cressie and Read 1984, as a mixture over the second derivative of its generator). So the
logarithm of M(u)/(u(1+u)) is convex in u, and from 0 to u the quotient is at most the larger of its two ends. Its
limit at 0 is E_P[L].

The bounds before this one are also valid if P is only a part of a distribution and has less mass than one.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from functools import cached_property

# Sums of a few hundred terms near one, whose digits down to 1e-25 matter: fifty digits leave ten to spare.
_UP = Context(prec=50, rounding=ROUND_CEILING)
_DOWN = Context(prec=50, rounding=ROUND_FLOOR)
_ABOUT = Context(prec=28, rounding=ROUND_HALF_EVEN)

RHO_LOOSENESS = Decimal("5e-4")
"""Largest relative excess of `Law.rho` over the supremum. The excess is mostly below 1e-7.

It may be larger if K(u)/(u(1+u)) is nearly constant for many u, as for losses of ±ε with a probability near ⅓, or for
discrete Gaussians. There the search ends after `_MOST_SPLITS` splits.
"""
_SEARCHED = 9e-8
"""Relative accuracy of the search in doubles; the certificate adds almost nothing."""
_MOST_SPLITS = 500
# Beyond this exponent e^{uL} does not fit the arithmetic, and a bound below the largest loss has no use.
_LARGEST_EXPONENT = 1_000_000
_SMALL = Decimal("0.03")
"""Largest loss below which the losses count as small. Above it the search needs few values of u near 0."""
_LEAST = Decimal("0.99999999999999999999999999999999999999")  # least true part of a probability that was rounded up
_SMALLEST = Decimal("1e-280")  # below it a search in doubles is impossible; D_∞ bounds ρ as well


@dataclass(frozen=True)
class Law:
    """Distribution of the privacy loss under P: pairs of a probability and a loss, both rounded up."""

    outcomes: tuple[tuple[Decimal, Decimal], ...]

    @cached_property
    def most(self) -> Decimal:
        """The largest loss, D_∞; never below zero."""
        return max((Decimal(0), *(loss for _, loss in self.outcomes)))

    def divergence(self, order: Decimal) -> Decimal:
        """Return D_α at an order α > 1, rounded up; never below zero."""
        excess = _DOWN.subtract(order, Decimal(1))
        if not self.most or excess <= 0:
            return self.most
        # The larger u gives the larger e^{uL}, the smaller u the larger quotient.
        above = _UP.subtract(order, Decimal(1))
        if _UP.multiply(above, self.most) > _LARGEST_EXPONENT:
            return self.most
        return min(self.most, _UP.divide(max(self._log_moment(above), Decimal(0)), excess))

    def rho(self) -> Decimal:
        """Return the ρ of zCDP, the supremum of D_α/α, rounded up by at most `RHO_LOOSENESS` of it."""
        if self.most < _SMALLEST or self.most > _LARGEST_EXPONENT:
            return self.most
        at_zero = self._mean_of_small()
        points = _Search(self.outcomes, self.most, at_zero).points()
        if _UP.multiply(points[-1], self.most) > _LARGEST_EXPONENT:
            return self.most
        moments = [max(self._log_moment(point), Decimal(0)) for point in points]
        rho = max(
            _UP.divide(moments[0], points[0]) if at_zero is None else max(at_zero, self._power(points[0])),
            _UP.divide(self.most, _DOWN.add(points[-1], Decimal(1))),
        )
        for left, right, low, high in zip(points, points[1:], moments, moments[1:], strict=False):
            rho = max(rho, _largest_between(left, right, low, high))
        return rho

    def _mean_of_small(self) -> Decimal | None:
        """Return E_P[L], rounded up, if the losses are small and P is complete; else None."""
        total = mean = Decimal(0)
        for probability, loss in self.outcomes:
            total = _UP.add(total, probability)
            mean = _UP.add(mean, _UP.multiply(probability if loss > 0 else _DOWN.multiply(probability, _LEAST), loss))
        return max(mean, Decimal(0)) if total >= 1 and self.most < _SMALL else None

    def _power(self, excess: Decimal) -> Decimal:
        """Return M(u)/(u(1+u)), rounded up."""
        moment = _UP.subtract(self._moment(excess), Decimal(1))
        return _UP.divide(max(moment, Decimal(0)), _DOWN.multiply(excess, _DOWN.add(excess, Decimal(1))))

    def _log_moment(self, excess: Decimal) -> Decimal:
        """Return K(u), rounded up."""
        return _UP.ln(self._moment(excess)).next_plus(_UP)

    def _moment(self, excess: Decimal) -> Decimal:
        """Return E_P[e^{uL}], rounded up."""
        total = Decimal(0)
        for probability, loss in self.outcomes:
            grown = _UP.exp(_UP.multiply(excess, loss)).next_plus(_UP) if loss else Decimal(1)
            total = _UP.add(total, _UP.multiply(probability, grown))
        return total


def _largest_between(left: Decimal, right: Decimal, low: Decimal, high: Decimal) -> Decimal:
    """Return an upper bound of K(u)/(u(1+u)) for u from `left` to `right`, where K is at most `low` and `high`."""
    at_left = _UP.divide(low, _DOWN.multiply(left, _DOWN.add(left, Decimal(1))))
    # A line through the left point that is nowhere below the chord: its slope is rounded up.
    slope = _UP.divide(
        _UP.subtract(high, low), _DOWN.subtract(right, left) if high > low else _UP.subtract(right, left)
    )
    offset = _DOWN.subtract(_DOWN.multiply(slope, left), low)
    if slope <= 0 or offset <= 0:
        return at_left
    root = _DOWN.sqrt(_DOWN.multiply(offset, _DOWN.add(offset, slope))).next_minus(_DOWN)
    where = _DOWN.divide(_DOWN.add(offset, root), slope)
    if where < _DOWN.multiply(left, _JUST_BELOW_ONE):
        return at_left
    if where > _UP.multiply(right, _JUST_ABOVE_ONE):
        there = _UP.subtract(_UP.multiply(slope, right), offset)
        return _UP.divide(there, _DOWN.multiply(right, _DOWN.add(right, Decimal(1))))
    roots = _DOWN.add(_DOWN.sqrt(_DOWN.add(slope, offset)).next_minus(_DOWN), _DOWN.sqrt(offset).next_minus(_DOWN))
    return _UP.divide(_UP.multiply(slope, slope), _DOWN.multiply(roots, roots))


_JUST_BELOW_ONE, _JUST_ABOVE_ONE = Decimal("0.99999999999999999999"), Decimal("1.00000000000000000001")


class _Search:
    """Search, in doubles, for values of u between which the chords bound K(u)/(u(1+u)) tightly.

    Any values give a valid bound. The search splits the interval with the largest bound, until no bound exceeds the
    best value by more than `_SEARCHED`.
    """

    def __init__(self, outcomes: tuple[tuple[Decimal, Decimal], ...], most: Decimal, at_zero: Decimal | None) -> None:
        self._outcomes = [(float(probability), float(loss)) for probability, loss in outcomes]
        total = Decimal(0)
        for probability, _ in outcomes:
            total = _ABOUT.add(total, probability)
        self._missing = float(max(Decimal(0), _ABOUT.subtract(Decimal(1), total)))
        self._most = float(most)
        self._at_zero = None if at_zero is None else float(at_zero)
        self._best = self._at_zero or 0.0

    def points(self) -> list[Decimal]:
        """Return the values of u, ascending."""
        first = (1e-3 if self._at_zero is None else 2e-4) / self._most
        moments = {u: self._moment(u) for u in (first * 4**k for k in range(60)) if u == first or self._open(u)}
        found = sorted(moments)
        heap: list[tuple[float, float, float]] = []

        def consider(left: float, right: float) -> None:
            if not left and self._at_zero is not None:
                bound = max(self._at_zero, math.expm1(moments[right]) / (right * (1 + right)))
            elif not left:
                bound = moments[right] / right
            elif math.isinf(right):
                bound = self._most / (1 + left)
            else:
                bound = float(_between(left, right, moments[left], moments[right]))
            heapq.heappush(heap, (-bound, left, right))

        for left, right in zip([0.0, *found], [*found, math.inf], strict=True):
            consider(left, right)
        for _ in range(_MOST_SPLITS):
            bound, left, right = heap[0]
            if -bound <= self._best * (1 + _SEARCHED):
                break
            heapq.heappop(heap)
            middle = right / 16 if not left else left * 4 if math.isinf(right) else math.sqrt(left * right)
            if not left < middle < right:
                break
            moments[middle] = self._moment(middle)
            consider(left, middle)
            consider(middle, right)
        return [Decimal(u) for u in sorted(moments)]

    def _open(self, u: float) -> bool:
        """True if the bound by the largest loss does not yet rule out a better value beyond u."""
        return self._best * (1 + u) < 16 * self._most and u < 1e300

    def _moment(self, u: float) -> float:
        """Return K(u) and remember the best value of K(u)/(u(1+u))."""
        highest = u * self._most
        if highest < 30:
            grown = math.fsum(probability * math.expm1(u * loss) for probability, loss in self._outcomes)
            moment = math.log1p(max(grown - self._missing, -0.999))
        else:
            scaled = math.fsum(probability * math.exp(u * loss - highest) for probability, loss in self._outcomes)
            moment = highest + math.log(scaled) if scaled else 0.0
        moment = max(moment, 0.0)
        self._best = max(self._best, moment / (u * (1 + u)))
        return moment


def _between(left: float, right: float, low: float, high: float) -> float:
    """Return `_largest_between`, computed in doubles."""
    slope = (high - low) / (right - left)
    offset = slope * left - low
    if slope <= 0 or offset <= 0:
        return low / (left * (1 + left))
    where = (offset + math.sqrt(offset * (offset + slope))) / slope
    if where <= left:
        return low / (left * (1 + left))
    if where >= right:
        return high / (right * (1 + right))
    return (slope / (math.sqrt(slope + offset) + math.sqrt(offset))) ** 2
