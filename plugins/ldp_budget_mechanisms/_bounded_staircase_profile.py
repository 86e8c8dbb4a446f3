"""The bounded staircase mechanism: its privacy loss, its errors, its dominating pair and its best γ.

The dominating pair of a mechanism on a continuum comes from bounds on how well any two of its inputs can be
distinguished. A mechanism has a bound of H(λ) = sup over x, x' of Σ max(P_x - λP_x', 0) for any λ from 1 to e^ε, where
the bound is 0. The `FinitePair` here has that bound at `_KINKS` values of λ. Its chords between them are above H.

The bounded staircase is a window of higher density around the input, cut off by the ends of the range.

On [0, 1] a report t has the density A within γ of the input and B elsewhere, divided by B + (A-B)c. Here c is the
length of the window inside [0, 1]: γ for an input at an end, and never more than min(2γ, 1). The ratio of the
densities of two inputs is largest for a report inside a window of length γ and outside one of length min(2γ, 1), or as
close to 1 as leaves a part outside. With a = A/B the loss is therefore

    e^ε = a (1 + (a-1)w) / (1 + (a-1)γ),      w = min(2γ, 1).

Solved for a, w = 2γ gives the first row of Theorem 6 of Kim, Park and Lee. w = 1 gives the corrected second row.

How well any two inputs can be distinguished, as stated and as drawn:

On [0, 1] let a = A/B. Let the windows of two inputs have the lengths c and c' and an overlap of length o. Then their
densities are a/N or 1/N, N = 1 + (a-1)c, and a/N' or 1/N'. The likelihood ratio is largest in the first window alone,
smallest in the second one alone, and equal in all the rest. So, adding those parts to a test T one after the other,

    H(λ) = max(0, V, 1 - λ + λV'),      V = (c-o)(a/N - λ/N'),      V' = (c'-o)(a/N' - (1/λ)/N),

where V' is V for the inputs swapped and 1/λ. Both fall in o, wherever they are not negative. Windows at opposite ends
of the range overlap no more than they must: o = max(0, c+c'-1). A window may have any length from γ to w = min(2γ, 1).
While c + c' <= 1, V = ac/N - λc/N' grows with c'; beyond, V = (1-c')(a/N - λ/N') falls in c. So V is largest on one of
the edges

    (A)  c' = w,  γ <= c <= 1-w        (B)  c' = 1-c,  γ <= c, c' <= w        (C)  c = γ,  1-γ <= c' <= w

and on each of them it is a concave function, whose derivative is zero where

    (A)  N = √(aN'/λ)                  (B)  N' = √λ·N                         (C)  N' = √(λN).

All of it also holds for windows of whole cells, with a = high/low, as they are drawn: those have some of these
lengths. Only their largest ratio is smaller, because no window covers all but less than one cell. It is known exactly.

The γ for values spread evenly over the range (`best_gamma`):

The MSE for such values has one minimum in γ, at 1/3 for a small ε and close to e^{-ε/3} for a large one, and it is
flat there. The chosen γ is the widest one within one part in 10,000 of the minimum, in the MSE and in the gain over a
uniform output. Its largest MSE, at the ends of the range, is smaller. This helps if values cluster at the ends, as
clipped values do.
"""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ldp_budget.guarantees import Guarantee, Pure
from ldp_budget.guarantees.dominating_pairs import pair_below
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, float_up
from ldp_budget.sdk.numeric_mechanism import average

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Edge = tuple[Callable[[Decimal], Decimal], Decimal, Decimal, Decimal]

_KINKS = 12
"""Evenly spaced over the loss. At ε = 1, 365 reports cost 0.3 % more with them than with a hundred."""

LARGEST_LISTED = Decimal(32)
"""The largest ε with a listed pair. Above it a pair saves next to nothing, and ε alone is stated."""

_ROUND = Context(prec=8, rounding=ROUND_FLOOR)
# The pair uses this fraction less than e^ε, so that its logarithm rounds up to ε and not beyond.
_GIVEN_AWAY = Decimal("1e-30")


def largest_odds(epsilon: Decimal) -> Decimal:
    """Return the largest likelihood ratio of the pair: e^ε, minus an amount too small to show in ε."""
    return DOWN.multiply(exp_down(epsilon), DOWN.subtract(1, _GIVEN_AWAY))


def pair_of_curve(epsilon: Decimal, bound: Callable[[Decimal], Decimal]) -> Guarantee:
    """Return the pair with the loss `epsilon` and a divergence of at least `bound(λ)`, rounded up, for 1 <= λ < e^ε.

    The caller must ensure that no ratio exceeds `largest_odds(epsilon)`. Returns `Pure` if ε is above
    `LARGEST_LISTED`,
    or has more digits than a pair can have.
    """
    if epsilon > LARGEST_LISTED:
        return Pure(epsilon)
    top = largest_odds(epsilon)
    slopes = {_slope(DOWN.multiply(epsilon, DOWN.divide(place, _KINKS))) for place in range(_KINKS)}
    pair = pair_below([*((slope, min(Decimal(1), bound(slope))) for slope in sorted(slopes)), (top, Decimal(0))])
    return pair if pair.loss()[0] <= epsilon and float_up(pair.loss()[0]) == float_up(epsilon) else Pure(epsilon)


def _slope(loss: Decimal) -> Decimal:
    """Return about e^loss, with few digits above 1."""
    return DOWN.add(1, _ROUND.plus(DOWN.subtract(exp_down(loss), 1))) if loss else Decimal(1)


# -- odds and errors -------------------------------------------------------------------------------------------------


# A result computed with this many digits is a lower bound once the last twenty digits are given up.
WIDE = Context(prec=80, rounding=ROUND_HALF_EVEN)
_DENSITY_GIVEN_AWAY = Decimal("1e-60")
_MOST = 2**63 - 1


def window_odds(epsilon: Decimal, gamma: Decimal, widest: Decimal) -> Decimal:
    """Return a = A/B for a loss of ε, rounded down; `widest` is w. For 0 <= γ <= 1 and γ <= w <= 1."""
    with localcontext(WIDE):
        growth = epsilon.exp()
        # widest·a² - shift·a - rest = 0, by the form of the positive root in which nothing cancels.
        shift = gamma * growth + widest - 1
        rest = growth * (1 - gamma)
        root = (shift * shift + 4 * widest * rest).sqrt()
        odds = (shift + root) / (2 * widest) if shift > 0 else 2 * rest / (root - shift)
        return odds * (1 - _DENSITY_GIVEN_AWAY)


def window_error(gamma: float, odds: float, value: float) -> tuple[float, float]:
    """Return (bias, MSE) of a report of `value` in [0, 1], without cancellation."""
    left, right = min(gamma, value), min(gamma, 1 - value)
    more = odds - 1
    norm = 1 + more * (left + right)
    bias = (0.5 - value + more * (right**2 - left**2) / 2) / norm
    mse = (value**3 + (1 - value) ** 3 + more * (left**3 + right**3)) / 3 / norm
    return bias, mse


def window_breakpoints(gamma: float) -> tuple[float, ...]:
    """Return the values in [0, 1] between which `window_error` is smooth."""
    return tuple(sorted({0.0, gamma, 1 - gamma, 1.0}))


def reach_of(gamma: Decimal, cells: int) -> int:
    """Return γ in cells, rounded to the nearest; 0 and `cells` are reserved for γ = 0 and γ = 1."""
    if gamma in (0, 1):
        return int(gamma) * cells
    return min(max(1, round(Fraction(gamma) * cells)), cells - 1)


def fitted(epsilon: Decimal, gamma: Decimal, cells: int) -> tuple[int, int, int]:
    """Return the reach of γ in cells, and the largest integer weights (high, low) whose loss is at most ε."""
    reach = reach_of(gamma, cells)
    most = min(2 * reach, cells)
    with localcontext(WIDE):
        odds = window_odds(epsilon, Decimal(reach) / cells, Decimal(_widest(reach, cells)) / cells)
        low = max(1, int(_MOST / (cells + odds * most)))
        high = int(low * odds)
    largest = (_MOST - low * (cells - most)) // max(1, most)
    return reach, max(low, min(high, largest)), low


def worst_odds(cells: int, reach: int, high: int, low: int) -> Fraction:
    """Return e^ε of a channel with these weights, exactly; by the derivation above, in cells."""
    if reach in (0, cells):
        return Fraction(1)
    widest, narrowest = (low * cells + (high - low) * inside for inside in (_widest(reach, cells), reach))
    return Fraction(high * widest, low * narrowest)


def _widest(reach: int, cells: int) -> int:
    """Return the most cells that a window covers without covering all."""
    return min(2 * reach, cells - 1)


# -- dominating pair of the window -----------------------------------------------------------------------------------


_ONE = Decimal(1)
# Far more than eighty digits of slack, as nothing here is above e^{2ε} for a listed ε.
_PROFILE_GIVEN_AWAY = Decimal("1e-40")


def window_pair(epsilon: Decimal, gamma: Decimal, epsilon_hat: float, cells: int) -> Guarantee:
    """Return the pair that dominates any two inputs, as stated and as drawn.

    `Pure` if ε is too large for a pair, if reports reveal nothing, or if the largest ratio is uncertain in the last
    digit.
    """
    reach, high, low = fitted(epsilon, gamma, cells)
    if epsilon > LARGEST_LISTED or high == low or reach in (0, cells):
        return Pure(epsilon)
    if worst_odds(cells, reach, high, low) > Fraction(largest_odds(epsilon)):
        return Pure(epsilon)
    with localcontext(WIDE):
        windows = Window(Decimal(epsilon_hat).exp(), gamma), Window(Decimal(high) / low, Decimal(reach) / cells)
    return pair_of_curve(epsilon, lambda slope: max(window.bound(slope) for window in windows))


class Window(NamedTuple):
    """The density is `odds` times as high within `gamma` of the input, which is in [0, 1]."""

    odds: Decimal
    gamma: Decimal

    def bound(self, slope: Decimal) -> Decimal:
        """Return H(λ) of any two inputs, rounded up."""
        with localcontext(WIDE):
            found = max(Decimal(0), self._largest(slope), 1 - slope + slope * self._largest(1 / slope))
            return UP.plus(found + _PROFILE_GIVEN_AWAY * (1 + slope))

    def _largest(self, slope: Decimal) -> Decimal:
        """Return the largest V."""
        return max(_largest(value, low, high, flat) for value, low, high, flat in self._edges(slope) if low <= high)

    def _edges(self, slope: Decimal) -> Iterator[Edge]:
        a, gamma = self.odds, self.gamma
        widest, root = min(2 * gamma, _ONE), slope.sqrt()

        def alone(c: Decimal, other: Decimal) -> Decimal:
            """Return V for windows that do not overlap."""
            return c * (a / self._norm(c) - slope / self._norm(other))

        def apart(other: Decimal) -> Decimal:
            """Return V for the narrowest first window, which holds all that the second one leaves."""
            return (1 - other) * (a / self._norm(gamma) - slope / self._norm(other))

        norm = (a * self._norm(widest)).sqrt() / root
        yield lambda c: alone(c, widest), gamma, min(widest, 1 - widest), self._length(norm)
        crossing = (a - root) / ((a - 1) * (1 + root))
        yield lambda c: alone(c, 1 - c), max(gamma, 1 - widest), min(widest, 1 - gamma), crossing
        yield apart, max(gamma, 1 - gamma), widest, self._length(root * self._norm(gamma).sqrt())

    def _norm(self, length: Decimal) -> Decimal:
        return 1 + (self.odds - 1) * length

    def _length(self, norm: Decimal) -> Decimal:
        return (norm - 1) / (self.odds - 1)


def _largest(value: Callable[[Decimal], Decimal], low: Decimal, high: Decimal, flat: Decimal) -> Decimal:
    """Return the largest value of a concave function on [low, high] whose derivative is zero at `flat`."""
    return value(min(max(low, flat), high))


# -- best γ ----------------------------------------------------------------------------------------------------------


_AS_GOOD = 1e-4
_UNIFORM_OUTPUT = 1 / 6
_PRECISION = 1e-6
# From here on the best window is far narrower than any cell, and e^ε is still a double.
_LARGE_EPSILON = 100.0


def best_gamma(epsilon: float, cells: int) -> float:
    """Return the chosen γ, between that of one cell and ½."""
    narrowest, widest = math.log(1 / cells), math.log(0.5)

    def mse(log_gamma: float) -> float:
        return uniform_mse(min(epsilon, _LARGE_EPSILON), math.exp(log_gamma))

    best = _minimum(mse, narrowest, widest)
    least = mse(best)
    limit = least + _AS_GOOD * min(least, _UNIFORM_OUTPUT - least)
    return math.exp(_last_at_most(mse, limit, best, widest))


def uniform_mse(epsilon: float, gamma: float) -> float:
    """Return the MSE on [0, 1] for values spread evenly over it."""
    exact = Decimal(gamma)
    odds = float(window_odds(Decimal(epsilon), exact, min(WIDE.multiply(exact, 2), Decimal(1))))
    # The two halves of the range are mirror images.
    breakpoints = (0.0, min(gamma, 1 - gamma), 0.5)
    return average(lambda value: window_error(gamma, odds, value)[1], breakpoints)


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the argument of the only minimum of a function in [low, high], by golden sections (Kiefer 1953)."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > _PRECISION:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return (low + high) / 2


def _last_at_most(function: Callable[[float], float], limit: float, low: float, high: float) -> float:
    """Return the place where a function that increases from `low` to `high` reaches `limit`; `high` if it does not."""
    while high - low > _PRECISION:
        middle = (low + high) / 2
        if function(middle) <= limit:
            low = middle
        else:
            high = middle
    return low
