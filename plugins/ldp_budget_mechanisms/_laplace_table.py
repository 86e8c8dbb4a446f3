"""What the bounded Laplace mechanism draws from: whole weights on a public grid."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.authoring.channels import Comparison
from ldp_budget.authoring.programs import falling
from ldp_budget.guarantees.amounts import DOWN, exp_down
from ldp_budget.randomness import integers

from ._grid_channel import runs
from ._laplace_curve import LARGE_LOSS, LaplaceWeights

if TYPE_CHECKING:
    from decimal import Decimal

    from numpy.typing import NDArray

    from ldp_budget.randomness import Stream

_RUNS = 32
# Ratios nearer than this, where a double is all there is, may stand for whole numbers in either order.
_CLOSE = 1e-15


class LaplaceTable:
    """Bounded Laplace on a grid of `cells` = G cells, for inputs at the points 0..G between them.

    A cell with d whole cells between it and the point has the weight w_d = ⌊S·q^d⌋, q = e^{-ε/G}; a report is drawn
    by one uniform integer below the total T_i of the point i, so its odds are exactly those of the weights.

    With q^d itself in place of w_d the loss is (1 - 1/G)ε, by the argument for the continuous case: for the
    cell at one end, the points at both. Each w_d is less than two below S·q^d, and so each T_i less than 2G; with w
    the last of the weights this adds at most 8/w to the loss, which must fit into the ε/G left over.

    For a large ε the last weights would be too small for that. There no weight is less than a floor F, and since
    no total is more than twice another, F = ⌈2S·e^{-ε}⌉ keeps every ratio below e^ε.
    """

    def __init__(self, epsilon: Decimal, cells: int) -> None:
        self.cells = cells
        self._weights = LaplaceWeights.of(epsilon, cells)
        weights = list(self._weights)
        totals = np.cumsum([0, *weights], dtype=np.int64)
        self.below: NDArray[np.int64] = totals
        """below[d]: the sum of the weights w_0, …, w_{d-1}."""
        assert self._holds(epsilon, weights), "the client would lose more than ε"

    def _holds(self, epsilon: Decimal, weights: list[int]) -> bool:
        """Whether the loss is at most ε, decided by whole numbers."""
        last = weights[-1]
        if epsilon < LARGE_LOSS:
            return last * Fraction(epsilon) >= 8 * self.cells
        centre = self.cells // 2
        largest = int(self.below[centre] + self.below[self.cells - centre])
        return weights[0] * largest <= Fraction(exp_down(epsilon)) * last * int(self.below[-1])

    def critical_points(self) -> list[int]:
        """The ends, next to them, and the centre, whose total is the largest."""
        return [0, 1, self.cells // 2, self.cells - 1, self.cells]

    def compare(self, first: int, second: int) -> tuple[list[tuple[int, int]], Comparison]:
        """The likeliest cell and the least likely, by `first` against `second`, alone; the others in a few runs.

        So the largest and the smallest ratio are seen exactly, though no run but those is one of equal odds.
        """
        cells = np.arange(self.cells)
        weights = np.diff(self.below)

        def weights_of(point: int) -> NDArray[np.int64]:
            return weights[np.where(cells < point, point - 1 - cells, cells - point)]

        own, other = weights_of(first), weights_of(second)
        ratios = own.astype(np.longdouble) / other
        extremes = [_extreme(own, other, ratios, sign) for sign in (1, -1)]
        alone = [cell + after for cell in extremes for after in (0, 1)]
        parts = runs([*alone, first, second, *range(0, self.cells, self.cells // _RUNS)], self.cells)
        starts = [start for start, _ in parts]
        sides = []
        for side in (own, other):
            sums = np.add.reduceat(side, starts).tolist()
            sides.append([Fraction(mass, sum(sums)) for mass in sums])
        return parts, Comparison.rows(*sides)

    def draw(self, stream: Stream, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells of reports for users at the given points; cell k lies between the points k and k+1."""
        left = self.below[points]
        drawn = integers(stream, left + self.below[self.cells - points], len(points))
        is_left = drawn < left
        distance = np.searchsorted(self.below, np.where(is_left, drawn, drawn - left), side="right") - 1
        return np.where(is_left, points - 1 - distance, points + distance)

    def drawing(self) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any]]:
        """The same as steps of a program, from the point `value`, and the table of the totals."""
        right: list[Any] = ["at", "below", ["sub", self.cells, "value"]]
        place: list[Any] = ["where", "is_left", "drawn", ["sub", "drawn", "left"]]
        steps = (
            ("left", ["at", "below", "value"]),
            ("drawn", ["below", ["add", "left", right]]),
            ("is_left", ["lt", "drawn", "left"]),
            ("distance", ["sub", ["rank", "below", place], 1]),
            (
                "cell",
                ["where", "is_left", ["sub", ["sub", "value", 1], "distance"], ["add", "value", "distance"]],
            ),
        )
        fall = self._weights
        return steps, {"below": falling(str(fall.largest), str(fall.ratio), DOWN.prec, fall.floor, self.cells)}


def _extreme(own: NDArray[np.int64], other: NDArray[np.int64], ratios: NDArray[np.longdouble], sign: int) -> int:
    """The cell of the largest own/other where `sign` is 1, of the smallest where it is -1, by whole numbers."""
    cells: list[int] = np.flatnonzero(sign * ratios >= (sign * ratios).max() * (1 - sign * _CLOSE)).tolist()
    return max(cells, key=lambda cell: sign * Fraction(int(own[cell]), int(other[cell])))
