"""The public grid of [lower, upper]: equal cells, reports at their middles, inputs at the points between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_budget.guarantees.amounts import UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.authoring.domain import Interval


def cell_middles(interval: Interval, cells: int) -> tuple[float, float]:
    """(origin, step): the middle of cell k is origin + k·step."""
    step = float(UP.divide(UP.subtract(interval.upper, interval.lower), cells))
    return float(interval.lower) + step / 2, step


def cells_of(reports: Any, grid: tuple[float, float]) -> NDArray[np.int64]:
    """The cells whose middles the reports are; `grid` is that of `cell_middles`."""
    import numpy as np

    origin, step = grid
    return np.rint((np.asarray(reports) - origin) / step).astype(np.int64)


def nearest_points(values: Any, interval: Interval, cells: int) -> NDArray[np.int64]:
    """The grid points 0..cells nearest to the values. Two of them are never more than `cells` apart.

    Raises `OutsideDomain` for a value outside the interval.
    """
    import numpy as np

    numbers = interval.check(values)
    width = float(UP.subtract(interval.upper, interval.lower))
    points = np.rint((numbers - float(interval.lower)) * (cells / width))
    return np.clip(points, 0, cells).astype(np.int64)
