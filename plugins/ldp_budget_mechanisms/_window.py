"""A window of higher density around the input, cut off by the ends of the range: its loss and errors.

On [0, 1] a report of t has the density A within γ of t and B elsewhere, divided by B + (A-B)c where c is the length
of the window inside [0, 1]: γ for an input at an end, and never more than min(2γ, 1). The ratio of the densities of
two inputs is largest for a report inside a window of length γ and outside one of length min(2γ, 1), or as close to
1 as leaves something outside. With a = A/B the loss is therefore

    e^ε = a (1 + (a-1)w) / (1 + (a-1)γ),      w = min(2γ, 1).

Solved for a, w = 2γ gives the first row of Theorem 6 of Kim, Park and Lee, and w = 1 the second one as it
should be.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction

# What is computed with this many digits is a lower bound once the last twenty are given away.
WIDE = Context(prec=80, rounding=ROUND_HALF_EVEN)
_GIVEN_AWAY = Decimal("1e-60")
_MOST = 2**63 - 1


def window_odds(epsilon: Decimal, gamma: Decimal, widest: Decimal) -> Decimal:
    """a = A/B for a loss of ε, rounded down; `widest` is w. For 0 <= γ <= 1 and γ <= w <= 1."""
    with localcontext(WIDE):
        growth = epsilon.exp()
        # widest·a² - shift·a - rest = 0, by whichever form of the positive root cancels nothing.
        shift = gamma * growth + widest - 1
        rest = growth * (1 - gamma)
        root = (shift * shift + 4 * widest * rest).sqrt()
        odds = (shift + root) / (2 * widest) if shift > 0 else 2 * rest / (root - shift)
        return odds * (1 - _GIVEN_AWAY)


def window_error(gamma: float, odds: float, value: float) -> tuple[float, float]:
    """(bias, MSE) of a report of `value` in [0, 1], without cancellation."""
    left, right = min(gamma, value), min(gamma, 1 - value)
    more = odds - 1
    norm = 1 + more * (left + right)
    bias = (0.5 - value + more * (right**2 - left**2) / 2) / norm
    mse = (value**3 + (1 - value) ** 3 + more * (left**3 + right**3)) / 3 / norm
    return bias, mse


def window_breakpoints(gamma: float) -> tuple[float, ...]:
    """The values in [0, 1] between which `window_error` is smooth."""
    return tuple(sorted({0.0, gamma, 1 - gamma, 1.0}))


def reach_of(gamma: Decimal, cells: int) -> int:
    """γ in cells, to the nearest; 0 and `cells` are kept for γ = 0 and γ = 1."""
    if gamma in (0, 1):
        return int(gamma) * cells
    return min(max(1, round(Fraction(gamma) * cells)), cells - 1)


def fitted(epsilon: Decimal, gamma: Decimal, cells: int) -> tuple[int, int, int]:
    """The reach of γ in cells, and the largest whole weights (high, low) whose loss is at most ε."""
    reach = reach_of(gamma, cells)
    most = min(2 * reach, cells)
    with localcontext(WIDE):
        odds = window_odds(epsilon, Decimal(reach) / cells, Decimal(_widest(reach, cells)) / cells)
        low = max(1, int(_MOST / (cells + odds * most)))
        high = int(low * odds)
    largest = (_MOST - low * (cells - most)) // max(1, most)
    return reach, max(low, min(high, largest)), low


def worst_odds(cells: int, reach: int, high: int, low: int) -> Fraction:
    """e^ε of a channel with these weights, exactly; the derivation is the one above, in cells."""
    if reach in (0, cells):
        return Fraction(1)
    widest, narrowest = (low * cells + (high - low) * inside for inside in (_widest(reach, cells), reach))
    return Fraction(high * widest, low * narrowest)


def _widest(reach: int, cells: int) -> int:
    """The most cells that a window covers without covering all."""
    return min(2 * reach, cells - 1)
