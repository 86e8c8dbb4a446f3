"""The public grid of [lower, upper]: equal cells, reports at their middles, inputs at the points between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_budget.authoring.domain import as_numbers
from ldp_budget.guarantees.amounts import UP

if TYPE_CHECKING:
    from decimal import Decimal

    import numpy as np
    from numpy.typing import NDArray


def cell_middles(lower: Decimal, upper: Decimal, cells: int) -> tuple[float, float]:
    """(origin, step): the middle of cell k is origin + k·step."""
    step = float(UP.divide(UP.subtract(upper, lower), cells))
    return float(lower) + step / 2, step


def cells_of(reports: Any, grid: tuple[float, float]) -> NDArray[np.int64]:
    """The cells whose middles the reports are; `grid` is that of `cell_middles`."""
    import numpy as np

    origin, step = grid
    return np.rint((np.asarray(reports) - origin) / step).astype(np.int64)


def nearest_points(values: Any, lower: Decimal, upper: Decimal, cells: int) -> NDArray[np.int64]:
    """The grid points 0..cells nearest to the values. Two of them are never more than `cells` apart.

    Raises `OutsideDomain` for a value outside [lower, upper].
    """
    import numpy as np

    numbers = as_numbers(values, lower, upper)
    points = np.rint((numbers - float(lower)) * (cells / float(UP.subtract(upper, lower))))
    return np.clip(points, 0, cells).astype(np.int64)
