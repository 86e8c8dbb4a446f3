"""A window of higher density around the input, cut off by the ends of the range: its loss, errors and client.

On [0, 1] a report of t has the density A within γ of t and B elsewhere, divided by B + (A-B)c where c is the length
of the window inside [0, 1]: γ for an input at an end, and never more than min(2γ, 1). The ratio of the densities of
two inputs is largest for a report inside a window of length γ and outside one of length min(2γ, 1), or as close to
1 as leaves something outside. With a = A/B the loss is therefore

    e^ε = a (1 + (a-1)w) / (1 + (a-1)γ),      w = min(2γ, 1).

Solved for a, w = 2γ gives the first row of document 001's Theorem 6, and w = 1 the second one as it should be.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

from ldp_budget.randomness import integers

from ._grid_channel import compare_runs, runs

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.authoring.channels import Comparison
    from ldp_budget.randomness import Stream

_MOST = 2**63 - 1
# What is computed with this many digits is a lower bound once the last twenty are given away.
_DIGITS = 80
_GIVEN_AWAY = Decimal("1e-60")


def window_odds(epsilon: Decimal, gamma: Decimal, widest: Decimal) -> Decimal:
    """a = A/B for a loss of ε, rounded down; `widest` is w. For 0 <= γ <= 1 and γ <= w <= 1."""
    with localcontext(prec=_DIGITS):
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
    return min(max(1, int((gamma * cells).to_integral_value(ROUND_HALF_EVEN))), cells - 1)


@dataclass(frozen=True)
class WindowChannel:
    """The window on a grid of `cells` cells, for inputs at the points 0..cells between them.

    A cell within `reach` of the point has the weight `high`, any other one `low`; whole numbers, with every
    total below 2**63, so that one uniform integer draws a report with exactly these odds.
    """

    cells: int
    reach: int
    high: int
    low: int

    @classmethod
    def fit(cls, epsilon: Decimal, gamma: Decimal, cells: int) -> WindowChannel:
        """The channel with the reach of γ and the largest weights whose loss is at most ε."""
        reach = reach_of(gamma, cells)
        most = min(2 * reach, cells)
        with localcontext(prec=_DIGITS):
            odds = window_odds(epsilon, Decimal(reach) / cells, Decimal(_widest(reach, cells)) / cells)
            low = max(1, int(_MOST / (cells + odds * most)))
            high = int(low * odds)
        largest = (_MOST - low * (cells - most)) // max(1, most)
        return cls(cells, reach, max(low, min(high, largest)), low)

    def total(self, inside: int) -> int:
        """The sum of the weights when `inside` cells are in the window."""
        return self.low * self.cells + (self.high - self.low) * inside

    def worst_odds(self) -> Fraction:
        """e^ε of the channel as it is drawn, exactly; the derivation is the one above, in cells."""
        if self.reach in (0, self.cells):
            return Fraction(1)
        widest = self.total(_widest(self.reach, self.cells))
        return Fraction(self.high * widest, self.low * self.total(self.reach))

    def compare(self, first: int, second: int) -> tuple[list[tuple[int, int]], Comparison]:
        """Runs of cells that lie alike in the windows of the points `first` and `second`, and their odds."""

        def cell_of(point: int) -> Callable[[int], Fraction]:
            low, high = max(point - self.reach, 0), min(point + self.reach, self.cells)
            total = self.total(high - low)
            return lambda cell: Fraction(self.high if low <= cell < high else self.low, total)

        ends = [point + side for point in (first, second) for side in (-self.reach, self.reach)]
        parts = runs(ends, self.cells)
        return parts, compare_runs(parts, cell_of(first), cell_of(second))

    def critical_points(self) -> list[int]:
        """The ends, the centre, and the points around which a window first touches an end or covers all but one."""
        reach, cells = self.reach, self.cells
        return [0, 1, reach - 1, reach, reach + 1, cells // 2, *(cells - reach + k for k in (-1, 0, 1)), cells]

    def draw(self, stream: Stream, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells of reports for users at the given points; cell k lies between the points k and k+1."""
        import numpy as np

        first = np.maximum(points - self.reach, 0)
        inside = np.minimum(points + self.reach, self.cells) - first
        in_window = self.high * inside
        drawn = integers(stream, in_window + self.low * (self.cells - inside), len(points))
        other = (drawn - in_window) // self.low
        other += np.where(other >= first, inside, 0)
        return np.where(drawn < in_window, first + drawn // self.high, other)


def _widest(reach: int, cells: int) -> int:
    """The most cells that a window covers without covering all."""
    return min(2 * reach, cells - 1)
