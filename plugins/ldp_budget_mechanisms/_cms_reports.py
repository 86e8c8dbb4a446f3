"""Reports to the count mean sketch: the number of a hash function, and the cell as m randomized bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.authoring.packing import as_reports, check_rows, column_sums
from ldp_budget.errors import NotSupported
from ldp_budget.randomness import integers, unary_bits

from ._sketch_server import SketchAggregate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.randomness import Stream

    from ._hashing import HashFamily, Words

    Cells = NDArray[np.int64]
    Reports = NDArray[Any]

_BLOCK = 1 << 13
"""Reports drawn at a time: the words of a block stay in the cache while it is hashed."""


def index_bytes(family: HashFamily) -> int:
    """Bytes that hold the number of any function."""
    return max(1, -(-(family.count - 1).bit_length() // 8))


def draw_reports(stream: Stream, family: HashFamily, points: Words, thresholds: tuple[int, int]) -> NDArray[np.uint8]:
    """A row for each point: the number of a function in the first bytes, then the packed bits of the cell."""
    head = index_bytes(family)
    reports = np.empty((len(points), head + -(-family.width // 8)), dtype=np.uint8)
    for start in range(0, len(points), _BLOCK):
        block, some = reports[start : start + _BLOCK], points[start : start + _BLOCK]
        functions = integers(stream, family.count, len(some))
        block[:, :head] = functions.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :head]
        block[:, head:] = unary_bits(stream, family(functions, some), family.width, *thresholds)
    return reports


def number_reports(reports: Reports, family: HashFamily, first: int, second: int) -> Cells:
    """The bits of the cells of two values, 0..3, or 4 where they collide."""
    functions, bits = _functions(reports, family), reports[:, index_bytes(family) :]
    rows = np.arange(len(reports))
    own, other = (family.cells_of(value)[functions] for value in (first, second))
    told = [bits[rows, cells >> 3] >> (cells & 7) & 1 for cells in (own, other)]
    return np.where(own == other, 4, 2 * told[0] + told[1])


def check_reports(reports: Any, family: HashFamily) -> None:
    """Raise `NotSupported` for anything but reports."""
    rows = as_reports(reports)
    _functions(rows, family)
    check_rows(rows[:, index_bytes(family) :], family.width)


def count_reports(reports: Any, family: HashFamily, fingerprint: str) -> SketchAggregate:
    """How many reports of each function have each bit set. Raises `NotSupported` for anything but reports."""
    rows = as_reports(reports)
    numbers = _functions(rows, family)
    order = np.argsort(numbers, kind="stable")
    functions, starts = np.unique(numbers[order], return_index=True)
    cells = np.zeros((family.count, family.width), dtype=np.int64)
    bits = rows[order, index_bytes(family) :]
    for function, start, end in zip(functions, starts, [*starts[1:], len(rows)], strict=False):
        cells[function] = column_sums(bits[start:end], family.width)
    return SketchAggregate(fingerprint, len(rows), functions, cells)


def _functions(rows: Reports, family: HashFamily) -> Cells:
    """The number of the hash function of each report."""
    head = index_bytes(family)
    bytes_each = head + -(-family.width // 8)
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != bytes_each:
        expected = f"reports of cms, uint8 of shape (n, {bytes_each})"
        raise NotSupported(f"expected {expected}; found {rows.dtype} of shape {rows.shape}")
    words = np.zeros((len(rows), 8), dtype=np.uint8)
    words[:, :head] = rows[:, :head]
    numbers = words.view("<i8").reshape(-1).astype(np.int64)
    if numbers.size and numbers.max() >= family.count:
        raise NotSupported(f"expected hash functions 0 to {family.count - 1}; found {numbers.max()}")
    return numbers
