"""Packed bit reports: uint8 rows, column v in byte v // 8 at bit v % 8, padding zero."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import NotSupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_BLOCK_BYTES = 1 << 17
_HIGHEST = 255
"""Rows whose ones a byte can count: adding bytes to bytes is several times faster than adding them to words."""


def as_reports(reports: Any) -> NDArray[Any]:
    """`reports` as an array, of whatever kind. Raises `NotSupported` for rows that have different lengths."""
    try:
        return np.asarray(reports)
    except ValueError:
        raise NotSupported("expected reports as an array; found rows of different lengths") from None


def pack_rows(bits: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Pack each row of a boolean array (n, columns), shape (n, ceil(columns/8))."""
    rows, columns = bits.shape
    if columns % 8:
        bits = np.pad(bits, ((0, 0), (0, -columns % 8)))
    # Packing whole bytes as one flat array is several times faster than packing row by row.
    return np.packbits(bits, bitorder="little").reshape(rows, -(-columns // 8))


def bit_of(reports: Any, column: int) -> NDArray[np.int64]:
    """The bit of one column in each row of packed reports, shape (n,)."""
    bits: NDArray[np.int64] = (as_reports(reports)[:, column >> 3] >> (column & 7) & 1).astype(np.int64)
    return bits


def check_rows(reports: Any, columns: int) -> NDArray[np.uint8]:
    """`reports` as an array. Raises as `column_sums`, and adds nothing up."""
    rows = _packed_rows(reports, -(-columns // 8))
    if columns % 8 and (rows[:, -1] >> (columns % 8)).any():
        raise _set_padding(columns)
    return rows


def _packed_rows(reports: Any, width: int) -> NDArray[np.uint8]:
    rows = as_reports(reports)
    if rows.dtype != np.uint8 or rows.ndim != 2 or rows.shape[1] != width:
        raise NotSupported(
            f"expected packed reports, uint8 of shape (n, {width}); found {rows.dtype} of shape {rows.shape}"
        )
    return rows


def _set_padding(columns: int) -> NotSupported:
    return NotSupported(f"expected packed reports of {columns} bits; found padding bits that are set")


def column_sums(reports: Any, columns: int) -> NDArray[np.int64]:
    """How many rows have each of the `columns` bits set, shape (columns,).

    Raises `NotSupported` where `reports` is not a uint8 array (n, ceil(columns/8)) with zero padding.
    """
    width = -(-columns // 8)
    rows = _packed_rows(reports, width)
    sums = np.zeros(8 * width, dtype=np.int64)
    for block in _stacks(rows):
        ones = np.unpackbits(block, axis=1, bitorder="little").sum(axis=0, dtype=np.uint8)
        sums += ones.reshape(-1, 8 * width).sum(axis=0, dtype=np.int64)
    if sums[columns:].any():
        raise _set_padding(columns)
    return sums[:columns]


def _stacks(rows: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    """All rows, in blocks that fit the cache unpacked: shape (at most `_HIGHEST`, a multiple of the width)."""
    count, width = rows.shape
    start = 0
    while start < count:
        height = min(_HIGHEST, count - start, max(1, _BLOCK_BYTES // width))
        beside = max(1, min((count - start) // height, _BLOCK_BYTES // (height * width)))
        end = start + height * beside
        yield rows[start:end].reshape(height, beside * width)
        start = end
