"""The public grid of an interval: equal cells, with reports at their middles and inputs at the points between them.

Inputs are the points 0..G between the cells 0..G-1 of the range. The cells of a run are equally likely under the
first
of two inputs, and equally likely under the second. So a report reveals only the run that it falls in.

`with_noise` and `noise_program` add noise on a public grid without ends. `WindowChannel` is the window of
`_bounded_staircase_profile` on a public grid: its comparison of two inputs, and its draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.guarantees.fixed_point import UP
from ldp_budget.sdk.client_program import Program, float64, floored, whole
from ldp_budget.sdk.interpreter import as_reports

from ._bounded_staircase_profile import fitted, worst_odds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from decimal import Decimal

    from numpy.typing import NDArray

    from ldp_budget.sdk.domain import Interval

    Integers = NDArray[np.int64]


def read_floats(reports: Any, name: str) -> NDArray[Any]:
    """Return reports that are numbers, (n,), as an array. Raises `NotSupported` for anything else."""
    rows = as_reports(reports)
    if rows.ndim != 1 or rows.dtype.kind not in "iuf":
        raise NotSupported(f"reports of {name} must be numbers of shape (n,): got {rows.dtype} of shape {rows.shape}")
    return rows


@dataclass(frozen=True)
class CellGrid:
    """`cells` cells of one width over `interval`; cell k is between the points k and k+1."""

    interval: Interval
    cells: int

    @property
    def middles(self) -> tuple[float, float]:
        """(origin, step): the middle of cell k is origin + k·step."""
        step = float(UP.divide(UP.subtract(self.interval.upper, self.interval.lower), self.cells))
        return float(self.interval.lower) + step / 2, step

    @property
    def per_unit(self) -> float:
        """The number of cells in an interval of length one, as a double."""
        return self.cells / float(UP.subtract(self.interval.upper, self.interval.lower))

    def points(self, values: Any) -> Integers:
        """Return the points 0..cells nearest to the values. Two of them are never more than `cells` apart.

        Raises `OutsideDomain` for a value outside the interval.
        """
        numbers = self.interval.check(values)
        points = np.rint((numbers - float(self.interval.lower)) * self.per_unit)
        return np.clip(points, 0, self.cells).astype(np.int64)

    def point(self, value: float) -> int:
        """Return the point nearest to one value."""
        return int(self.points([value])[0])

    def cells_of(self, reports: Any) -> Integers:
        """Return the cells whose middles the reports are."""
        origin, step = self.middles
        return np.rint((np.asarray(reports) - origin) / step).astype(np.int64)

    def inside(self, reports: Any) -> NDArray[np.float64]:
        """Return `reports` as an array. Raises `NotSupported` for a non-number or one outside the interval."""
        given = as_reports(reports)
        if given.dtype.kind not in "iuf":
            raise NotSupported(f"reports must be numbers: got {given.dtype} {given.shape}")
        rows: NDArray[np.float64] = given.astype(np.float64)
        lower, upper = self.interval.ends
        if not ((rows >= lower) & (rows <= upper)).all():
            raise NotSupported(
                f"reports must be from {self.interval.lower} to {self.interval.upper}: "
                f"got {rows.min()} to {rows.max()}"
            )
        return rows


# -- runs of cells ---------------------------------------------------------------------------------------------------


def runs(starts: Iterable[int], cells: int) -> list[tuple[int, int]]:
    """Return the runs [start, end) of the cells 0..cells-1 that begin at the given ones."""
    borders = sorted({0, cells, *(start for start in starts if 0 < start < cells)})
    return list(pairwise(borders))


def number_runs(cells: NDArray[np.int64], parts: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Return the run of each cell."""
    starts = [start for start, _ in parts]
    return (np.searchsorted(starts, cells, side="right") - 1).astype(np.int64)


def noise_program(noise: str, bits: int, interval: Interval, grid: tuple[float, float], width: Fraction) -> Program:
    """Return the client of a mechanism with that `noise`, an operator that draws it with so many binary places."""
    origin, step = grid
    steps = (("noise", [noise, bits]), ("noisy", ["add", "value", "noise"]))
    given = floored(interval, step, int(width / Fraction(step)))
    return Program(given, steps, float64("noisy", origin, step, 1))


@dataclass(frozen=True)
class WindowChannel:
    """The window on a grid of `cells` cells, for inputs at the points 0..cells between them.

    A cell within `reach` of the point has the weight `high`, any other one `low`. Weights are integers, with every
    total
    below 2**63, so that one uniform integer draws a report with exactly these odds.
    """

    cells: int
    reach: int
    high: int
    low: int

    @classmethod
    def fit(cls, epsilon: Decimal, gamma: Decimal, cells: int) -> WindowChannel:
        """Return the channel with the reach of γ and the largest weights whose loss is at most ε."""
        return cls(cells, *fitted(epsilon, gamma, cells))

    def total(self, inside: int) -> int:
        """Return the sum of the weights when `inside` cells are in the window."""
        return self.low * self.cells + (self.high - self.low) * inside

    def worst_odds(self) -> Fraction:
        """Return e^ε of the channel as it is drawn, exactly; by the derivation of the profile, in cells."""
        return worst_odds(self.cells, self.reach, self.high, self.low)

    def critical_points(self) -> list[int]:
        """Return the ends, the center, and the points whose window first touches an end or covers all cells but one."""
        reach, cells = self.reach, self.cells
        return [0, 1, reach - 1, reach, reach + 1, cells // 2, *(cells - reach + k for k in (-1, 0, 1)), cells]

    def drawing(self) -> tuple[tuple[str, Any], ...]:
        """Return the same draw as steps of a program, from the point `value`."""
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
