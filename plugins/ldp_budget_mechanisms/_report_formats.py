"""Report formats of four mechanisms: how the client draws reports, and how the server checks and counts them.

Randomized response: yes or no, drawn by two coins. Matrix substitution: rows drawn by integer weights, and the
inverse
of the matrix with its errors. 1BitMean: bits drawn by thresholds that are linear in the value's cell, fresh or from a
client's secret. d-bit-flip: the drawn buckets of each user, with one bit each.

If only some of the k buckets are drawn, a d-bit-flip report is an array (d,) of 2·bucket + bit. If all are drawn, it
is their bits alone, packed: bucket j in byte j // 8 at bit j % 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import NotSupported
from ldp_budget.sdk.estimates import SupportLaw
from ldp_budget.sdk.interpreter import as_reports, check_rows, column_sums

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    Reports = NDArray[Any]


# -- randomized response ---------------------------------------------------------------------------------------------


def count_both(reports: Any) -> tuple[int, NDArray[np.int64]]:
    """Return the number of reports, and how many say no and yes. Raises `NotSupported` for anything but 0 and 1."""
    rows = as_reports(reports)
    if rows.ndim != 1 or not np.isin(rows, (0, 1)).all():
        raise NotSupported(f"reports must be 0 or 1, of shape (n,): got {rows.dtype} {rows.shape}")
    yes = int(rows.sum())
    return len(rows), np.array([len(rows) - yes, yes], dtype=np.int64)


# -- matrix substitution ---------------------------------------------------------------------------------------------


def count_rows(reports: Any, kinds: int) -> tuple[int, NDArray[np.int64]]:
    """Return the number of reports, and the count of each of the `kinds`. Raises `NotSupported` for others."""
    rows = as_reports(reports)
    if rows.dtype.kind not in "iu" or rows.ndim != 1:
        raise NotSupported(f"reports must be integers of shape (n,): got {rows.dtype} {rows.shape}")
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < kinds:
        raise NotSupported(f"reports must be from 0 to {kinds - 1}: got {rows.min()} to {rows.max()}")
    return len(rows), np.bincount(rows.astype(np.intp), minlength=kinds)


# -- 1BitMean --------------------------------------------------------------------------------------------------------


PARTS_BITS = 20
"""α is a multiple of S / 2**20, and so is every value before it is rounded."""


def count_ones(reports: Any) -> tuple[int, int]:
    """Return the number of reports, and the number of ones. Raises `NotSupported` for anything but bits."""
    rows = as_reports(reports)
    if rows.ndim != 1 or rows.dtype.kind not in "iub" or not ((rows == 0) | (rows == 1)).all():
        raise NotSupported(f"reports must be 0 or 1, of shape (n,): got {rows.dtype} {rows.shape}")
    return len(rows), int(np.count_nonzero(rows))


# -- d-bit-flip ------------------------------------------------------------------------------------------------------


_COUNTED = 1 << 18


def bit_law(p: Fraction, q: Fraction, stretch: Fraction) -> SupportLaw:
    """Return the law of the count of a bucket that one user in `stretch` reports."""
    at_zero, slope = stretch * p * q / (p - q) ** 2, stretch - 1
    noise, gap, zero, one, rise = (
        np.array([float(figure)]) for figure in (q, p - q, at_zero, at_zero + slope, slope)
    )
    return SupportLaw(1, noise, gap, zero, one, rise, shown=float(1 / stretch))


def count_bits(reports: Any, buckets: int, size: int) -> tuple[int, NDArray[np.int64]]:
    """Return the number of reports, and for each bucket the reports with it and those with a one, shape (2, k).

    Raises `NotSupported` for anything that no client sends.
    """
    rows = as_reports(reports)
    if size == buckets:
        ones = column_sums(rows, buckets)
        return len(rows), np.stack([np.full(buckets, len(rows)), ones])
    _check(rows, buckets, size)
    counts = np.zeros(2 * buckets, dtype=np.int64)
    for start in range(0, len(rows), max(1, _COUNTED // size)):
        block = rows[start : start + max(1, _COUNTED // size)]
        _check_distinct(block)
        counts += np.bincount(block.reshape(-1).astype(np.intp), minlength=2 * buckets)
    return len(rows), np.stack([counts[0::2] + counts[1::2], counts[1::2]])


def check_reports(reports: Any, buckets: int, size: int) -> None:
    """Raise the errors of `count_bits` without counting."""
    if size == buckets:
        check_rows(reports, buckets)
        return
    rows = as_reports(reports)
    _check(rows, buckets, size)
    _check_distinct(rows)


def _check(rows: Reports, buckets: int, size: int) -> None:
    if rows.dtype.kind not in "iu" or rows.ndim != 2 or rows.shape[1] != size:
        raise NotSupported(f"reports must be integers of shape (n, {size}): got {rows.dtype} {rows.shape}")
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < 2 * buckets:
        raise NotSupported(f"reports must be from 0 to {2 * buckets - 1}: got {rows.min()} to {rows.max()}")


def _check_distinct(block: Reports) -> None:
    drawn = np.sort(block >> 1, axis=1)
    if (drawn[:, 1:] == drawn[:, :-1]).any():
        raise NotSupported("each report must have distinct buckets: got a report that repeats one")
