"""The public grid of an interval: equal cells, reports at their middles, inputs at the points between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.authoring.packing import as_reports
from ldp_budget.errors import NotSupported
from ldp_budget.guarantees.amounts import UP
from ldp_budget.randomness.streams import blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ldp_budget.authoring.domain import Interval
    from ldp_budget.randomness import Stream

    Integers = NDArray[np.int64]

_BLOCK = 1 << 16  # users at a time: their numbers stay in the cache


@dataclass(frozen=True)
class CellGrid:
    """`cells` cells of one width over `interval`; cell k lies between the points k and k+1."""

    interval: Interval
    cells: int

    @property
    def middles(self) -> tuple[float, float]:
        """(origin, step): the middle of cell k is origin + k·step."""
        step = float(UP.divide(UP.subtract(self.interval.upper, self.interval.lower), self.cells))
        return float(self.interval.lower) + step / 2, step

    @property
    def per_unit(self) -> float:
        """Cells in a stretch of one, as a double."""
        return self.cells / float(UP.subtract(self.interval.upper, self.interval.lower))

    def points(self, values: Any) -> Integers:
        """The points 0..cells nearest to the values. Two of them are never more than `cells` apart.

        Raises `OutsideDomain` for a value outside the interval.
        """
        numbers = self.interval.check(values)
        points = np.rint((numbers - float(self.interval.lower)) * self.per_unit)
        return np.clip(points, 0, self.cells).astype(np.int64)

    def point(self, value: float) -> int:
        """The point nearest to one value."""
        return int(self.points([value])[0])

    def reports(self, cells: Integers) -> NDArray[np.float64]:
        """The middles of these cells, which may lie beyond the interval."""
        origin, step = self.middles
        reports: NDArray[np.float64] = origin + cells.astype(np.float64) * step
        return reports

    def cells_of(self, reports: Any) -> Integers:
        """The cells whose middles the reports are."""
        origin, step = self.middles
        return np.rint((np.asarray(reports) - origin) / step).astype(np.int64)

    def inside(self, reports: Any) -> NDArray[np.float64]:
        """`reports` as an array. Raises `NotSupported` for one outside the interval, and for what is no number."""
        given = as_reports(reports)
        if given.dtype.kind not in "iuf":
            raise NotSupported(f"expected numbers as reports; found {given.dtype} {given.shape}")
        rows: NDArray[np.float64] = given.astype(np.float64)
        lower, upper = self.interval.ends
        if not ((rows >= lower) & (rows <= upper)).all():
            raise NotSupported(
                f"expected reports from {self.interval.lower} to {self.interval.upper}; "
                f"found {rows.min()} to {rows.max()}"
            )
        return rows


def draw_cells(points: Integers, stream: Stream, draw: Callable[[Stream, Integers], Integers]) -> Integers:
    """What `draw` draws for users at the given points, block by block."""
    cells = np.empty_like(points)
    for part in blocks(len(points), _BLOCK):
        cells[part] = draw(stream, points[part])
    return cells
