"""The bits of 1BitMean: drawn by thresholds that are linear in the value's cell, fresh or from a client's secret."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.authoring.packing import as_reports
from ldp_budget.errors import NotSupported
from ldp_budget.randomness import bernoulli
from ldp_budget.randomness.memoisation import memo_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.randomness import Stream

    Cells = NDArray[np.int64]
    Bits = NDArray[np.uint8]

PARTS_BITS = 20
"""α is a multiple of S / 2**20, and so is every value before it is rounded."""


def fresh_bits(stream: Stream, cells: Cells, thresholds: tuple[int, int]) -> Bits:
    """A bit for each cell, (n,); `thresholds` are that of cell 0 and what every further cell adds to it."""
    return bernoulli(stream, _thresholds_at(cells, thresholds), len(cells)).view(np.uint8)


def kept_bits(
    stream: Stream, cells: Cells, thresholds: tuple[int, int], secrets: Any, context: str, flip: int
) -> Bits:
    """The same from the users' secrets; each is then turned over with probability `flip` / 2**64."""
    words = memo_words(secrets, f"{context} bit", cells, 1)[:, 0]
    bits = words < _thresholds_at(cells, thresholds)
    return (bits ^ bernoulli(stream, flip, len(cells))).view(np.uint8)


def _thresholds_at(cells: Cells, thresholds: tuple[int, int]) -> NDArray[np.uint64]:
    least, growth = thresholds
    return np.uint64(least) + cells.astype(np.uint64) * np.uint64(growth)


def rounded(points: Cells, secrets: Any, context: str) -> Cells:
    """The cells that points, in units of a cell's 2**20th part, are rounded to by each user's own α."""
    words = memo_words(secrets, f"{context} alpha", np.zeros_like(points), 1)[:, 0]
    alphas = (words >> np.uint64(64 - PARTS_BITS)).astype(np.int64)
    return (points + alphas) >> PARTS_BITS


def count_ones(reports: Any) -> tuple[int, int]:
    """How many reports there are, and how many are ones. Raises `NotSupported` for anything but bits."""
    rows = as_reports(reports)
    if rows.ndim != 1 or rows.dtype.kind not in "iub" or not ((rows == 0) | (rows == 1)).all():
        raise NotSupported(f"expected reports of 0 and 1, shape (n,); found {rows.dtype} {rows.shape}")
    return len(rows), int(np.count_nonzero(rows))
