"""Reports to the Hadamard count mean sketch: the number of a hash function and of a coefficient, and its sign."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.authoring.packing import as_reports
from ldp_budget.errors import NotSupported
from ldp_budget.randomness import bernoulli, integers

from ._sketch_server import SketchAggregate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.randomness import Stream

    from ._hashing import HashFamily, Words

    Cells = NDArray[np.int64]
    Reports = NDArray[Any]

_BLOCK = 1 << 13
"""Reports drawn at a time: the words of a block stay in the cache while it is hashed."""

_COUNTED = 1 << 20


def draw_reports(stream: Stream, family: HashFamily, points: Words, keep: int) -> Reports:
    """2(j·m + l) + s for the sign (-1)^s of coefficient l under function j, kept with probability `keep` / 2**64."""
    reports = np.empty(len(points), dtype=np.min_scalar_type(2 * family.count * family.width - 1))
    for start in range(0, len(points), _BLOCK):
        some = points[start : start + _BLOCK]
        places = integers(stream, family.count * family.width, len(some))
        kept = bernoulli(stream, keep, len(some))
        cells = family(places >> cell_bits(family), some)
        # Bits of the function's number stand above those of any cell, so AND leaves them out.
        reports[start : start + _BLOCK] = 2 * places + (_odd(places & cells) ^ ~kept)
    return reports


def cell_bits(family: HashFamily) -> int:
    """Bits of the number of a cell, the lowest of those of a place."""
    return family.width.bit_length() - 1


def number_reports(reports: Reports, family: HashFamily, first: int, second: int) -> Cells:
    """Whether the sign is that of the first of two values; 2 where theirs are the same."""
    rows = reports.astype(np.int64)
    places = rows >> 1
    signs = [_odd(places & family.cells_of(value)[places >> cell_bits(family)]) for value in (first, second)]
    return np.where(signs[0] == signs[1], 2, signs[0] == (rows & 1).astype(np.bool_))


def check_reports(reports: Any, family: HashFamily) -> None:
    """Raise `NotSupported` for anything but reports."""
    _check(as_reports(reports), 2 * family.count * family.width - 1)


def count_reports(reports: Any, family: HashFamily, fingerprint: str) -> SketchAggregate:
    """The sum of the signs sent for each coefficient. Raises `NotSupported` for anything but reports."""
    rows = as_reports(reports)
    _check(rows, 2 * family.count * family.width - 1)
    signs = np.zeros(family.count * family.width, dtype=np.int64)
    used = np.zeros(family.count, dtype=np.int64)
    for start in range(0, len(rows), _COUNTED):
        block = rows[start : start + _COUNTED].astype(np.int64)
        np.add.at(signs, block >> 1, 1 - 2 * (block & 1))
        used += np.bincount(block >> (1 + cell_bits(family)), minlength=family.count)
    return SketchAggregate(fingerprint, len(rows), np.flatnonzero(used), signs.reshape(family.count, -1))


def _check(rows: Reports, largest: int) -> None:
    if rows.dtype.kind not in "iu" or rows.ndim != 1:
        raise NotSupported(f"expected reports of hcms, integers (n,); found {rows.dtype} of shape {rows.shape}")
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) <= largest:
        raise NotSupported(f"expected reports from 0 to {largest}; found {rows.min()} to {rows.max()}")


def _odd(numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the number of ones among the lowest 32 bits is odd."""
    parity = numbers.astype(np.uint32)
    for shift in (16, 8, 4, 2, 1):
        parity ^= parity >> np.uint32(shift)
    return (parity & np.uint32(1)).astype(np.bool_)


def hadamard(rows: Cells) -> Cells:
    """`rows` times the Hadamard matrix of equation (2) of Jeong, Hong and Seo 2020, for (r, m) with m a power of two.

    The fast transform: each of log2 m passes takes sums and differences of neighbours and puts the sums first, which
    moves the next bit of the column number into place.
    """
    columns = rows.shape[1]
    for _ in range(columns.bit_length() - 1):
        even, odd = rows[:, 0::2], rows[:, 1::2]
        rows = np.concatenate((even + odd, even - odd), axis=1)
    return rows
