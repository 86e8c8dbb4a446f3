"""Reports on a public grid: what one of them says of one input against another, as runs of cells.

Inputs are the points 0..G between the cells 0..G-1 of the range. Cells of a run are equally likely under the first
input, and equally likely under the second, so no more is to be seen than which run a report lies in.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ldp_budget.authoring.channels import Comparison, Factor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray


def runs(starts: Iterable[int], cells: int) -> list[tuple[int, int]]:
    """The runs [start, end) of the cells 0..cells-1 that begin at the given ones."""
    borders = sorted({0, cells, *(start for start in starts if 0 < start < cells)})
    return list(pairwise(borders))


def compare_runs(
    parts: Sequence[tuple[int, int]], first: Callable[[int], Fraction], second: Callable[[int], Fraction]
) -> Comparison:
    """The comparison over `parts`, given how likely a single cell is under each input."""
    return Comparison.of(
        Factor(tuple(((end - start) * first(start), (end - start) * second(start)) for start, end in parts))
    )


def number_runs(cells: NDArray[np.int64], parts: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """The run that each cell lies in."""
    starts = [start for start, _ in parts]
    return (np.searchsorted(starts, cells, side="right") - 1).astype(np.int64)
