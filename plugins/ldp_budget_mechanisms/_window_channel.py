"""The window of `_window` on a public grid: what it says of two inputs, and how it is drawn."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.authoring.programs import whole
from ldp_budget.randomness import integers

from ._grid_channel import compare_runs, runs
from ._window import fitted, worst_odds

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal

    from numpy.typing import NDArray

    from ldp_budget.authoring.channels import Comparison
    from ldp_budget.randomness import Stream


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
        return cls(cells, *fitted(epsilon, gamma, cells))

    def total(self, inside: int) -> int:
        """The sum of the weights when `inside` cells are in the window."""
        return self.low * self.cells + (self.high - self.low) * inside

    def worst_odds(self) -> Fraction:
        """e^ε of the channel as it is drawn, exactly; the derivation is the one above, in cells."""
        return worst_odds(self.cells, self.reach, self.high, self.low)

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
        first = np.maximum(points - self.reach, 0)
        inside = np.minimum(points + self.reach, self.cells) - first
        in_window = self.high * inside
        drawn = integers(stream, in_window + self.low * (self.cells - inside), len(points))
        other = (drawn - in_window) // self.low
        other += np.where(other >= first, inside, 0)
        return np.where(drawn < in_window, first + drawn // self.high, other)

    def drawing(self) -> tuple[tuple[str, Any], ...]:
        """The same as steps of a program, from the point `value`."""
        inside: list[Any] = ["sub", ["min", ["add", "value", self.reach], self.cells], "first"]
        total: list[Any] = ["add", "window", ["mul", whole(self.low), ["sub", self.cells, "inside"]]]
        beyond: list[Any] = ["where", ["ge", "beside", "first"], "inside", 0]
        return (
            ("first", ["max", ["sub", "value", self.reach], 0]),
            ("inside", inside),
            ("window", ["mul", whole(self.high), "inside"]),
            ("drawn", ["below", total]),
            ("beside", ["div", ["sub", "drawn", "window"], whole(self.low)]),
            ("other", ["add", "beside", beyond]),
            ("own", ["add", "first", ["div", "drawn", whole(self.high)]]),
            ("cell", ["where", ["lt", "drawn", "window"], "own", "other"]),
        )


def _widest(reach: int, cells: int) -> int:
    """The most cells that a window covers without covering all."""
    return min(2 * reach, cells - 1)
