"""How well any two inputs of the bounded staircase mechanism can be told apart, as it is stated and as it is drawn.

On [0, 1] let a = A/B, and let the windows of two inputs have the lengths c and c' and the length o in common, so that
their densities are a/N or 1/N, N = 1 + (a-1)c, and a/N' or 1/N'. The likelihood ratio is largest in the first window
alone, smallest in the second one alone, and equal in all the rest. So, with T those parts taken one after the other,

    H(λ) = max(0, V, 1 - λ + λV'),      V = (c-o)(a/N - λ/N'),      V' = (c'-o)(a/N' - (1/λ)/N),

where V' is V for the inputs swapped and 1/λ. Both fall in o, wherever they are not negative, and windows at opposite
ends of the range have no more in common than they must: o = max(0, c+c'-1). A window may have any length from γ to
w = min(2γ, 1). While c + c' <= 1, V = ac/N - λc/N' grows with c'; beyond, V = (1-c')(a/N - λ/N') falls in c. So V is
largest on one of the edges

    (A)  c' = w,  γ <= c <= 1-w        (B)  c' = 1-c,  γ <= c, c' <= w        (C)  c = γ,  1-γ <= c' <= w

and on each of them it is a concave function, whose derivative is zero where

    (A)  N = √(aN'/λ)                  (B)  N' = √λ·N                         (C)  N' = √(λN).

All of it holds as well for windows of whole cells, with a = high/low, as they are drawn: those have some of these
lengths. Only their largest ratio is smaller, as no window covers all but less than one cell; it is known exactly.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ldp_budget.guarantees import Guarantee, Pure
from ldp_budget.guarantees.amounts import UP

from ._curve_pair import LARGEST_LISTED, largest_odds, pair_of_curve
from ._window import WIDE, fitted, worst_odds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ONE = Decimal(1)
# Far more than eighty digits are rounded by, as nothing here is above e^{2ε} for the ε that are listed.
_GIVEN_AWAY = Decimal("1e-40")


def window_pair(epsilon: Decimal, gamma: Decimal, epsilon_hat: float, cells: int) -> Guarantee:
    """The pair that dominates any two inputs, as stated and as drawn.

    `Pure` where ε is too large for it, or nothing can be told, or the largest ratio is not certain to the last digit.
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
    """The density is `odds` times as high within `gamma` of the input, which lies in [0, 1]."""

    odds: Decimal
    gamma: Decimal

    def bound(self, slope: Decimal) -> Decimal:
        """H(λ) of any two inputs, rounded up."""
        with localcontext(WIDE):
            found = max(Decimal(0), self._largest(slope), 1 - slope + slope * self._largest(1 / slope))
            return UP.plus(found + _GIVEN_AWAY * (1 + slope))

    def _largest(self, slope: Decimal) -> Decimal:
        """V where it is largest."""
        return max(_largest(value, low, high, flat) for value, low, high, flat in self._edges(slope) if low <= high)

    def _edges(self, slope: Decimal) -> Iterator[Edge]:
        a, gamma = self.odds, self.gamma
        widest, root = min(2 * gamma, _ONE), slope.sqrt()

        def alone(c: Decimal, other: Decimal) -> Decimal:
            """V where the windows have nothing in common."""
            return c * (a / self._norm(c) - slope / self._norm(other))

        def apart(other: Decimal) -> Decimal:
            """V where the first window is the narrowest, and all that the second leaves is in it."""
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


if TYPE_CHECKING:
    Edge = tuple[Callable[[Decimal], Decimal], Decimal, Decimal, Decimal]


def _largest(value: Callable[[Decimal], Decimal], low: Decimal, high: Decimal, flat: Decimal) -> Decimal:
    """The largest value of a concave function on [low, high] whose derivative is zero at `flat`."""
    return value(min(max(low, flat), high))
