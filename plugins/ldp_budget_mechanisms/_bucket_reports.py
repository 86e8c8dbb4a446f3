"""The reports of d-bit-flip: which buckets a report tells of, one bit for each, and how they are stored and counted.

Where only some of the k buckets are drawn, a report is an array (d,) of 2·bucket + bit. Where all of them are, it is
their bits alone, packed: bucket j in byte j // 8 at bit j % 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ldp_budget.authoring.packing import column_sums, pack_rows
from ldp_budget.errors import NotSupported

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Reports = NDArray[Any]

_COUNTED = 1 << 18


def draw_buckets(draw: Callable[[int], NDArray[np.integer]], buckets: int, size: int, count: int) -> Reports:
    """`count` uniform sets of `size` of the buckets, shape (count, size); the order within a row says nothing.

    `draw(bound)` gives `count` uniform integers below `bound`. Floyd's algorithm: the bound grows to `buckets`, and
    a repeated draw becomes the newest bucket, which no draw before it could be (Bentley and Floyd, CACM 30, 1987).
    """
    import numpy as np

    chosen = np.empty((size, count), dtype=np.min_scalar_type(2 * buckets - 1))
    for place, newest in enumerate(range(buckets - size, buckets)):
        drawn = draw(newest + 1).astype(chosen.dtype)
        repeated = np.zeros(count, dtype=np.bool_)
        for earlier in chosen[:place]:
            repeated |= earlier == drawn
        np.copyto(drawn, newest, where=repeated)
        chosen[place] = drawn
    return chosen.T


def own_bits(answers: Ints, drawn: Reports | None, buckets: int) -> NDArray[np.bool_]:
    """Whether each drawn bucket is the user's own, shape (n, d); None stands for all the buckets in order."""
    import numpy as np

    bits: NDArray[np.bool_]
    if drawn is None:
        bits = np.zeros((len(answers), buckets), dtype=np.bool_)
        bits[np.arange(len(answers)), answers] = True
    else:
        bits = drawn == answers.astype(drawn.dtype)[:, np.newaxis]
    return bits


def encode(drawn: Reports | None, bits: NDArray[np.bool_]) -> Reports:
    """The reports of these buckets, all of them where None, and their bits (n, d)."""
    return pack_rows(bits) if drawn is None else 2 * drawn + bits


def empty_reports(count: int, buckets: int, size: int) -> Reports:
    """An array for the reports of `count` users."""
    import numpy as np

    if size == buckets:
        return np.empty((count, -(-buckets // 8)), dtype=np.uint8)
    return np.empty((count, size), dtype=np.min_scalar_type(2 * buckets - 1))


def count_bits(reports: Any, buckets: int, size: int) -> tuple[int, NDArray[np.int64]]:
    """The number of reports, and how many told of each bucket and how many of those with a one, shape (2, k).

    Raises `NotSupported` for anything that `encode` could not have made.
    """
    import numpy as np

    rows = np.asarray(reports)
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


def _check(rows: Reports, buckets: int, size: int) -> None:
    if rows.dtype.kind not in "iu" or rows.ndim != 2 or rows.shape[1] != size:
        raise NotSupported(f"expected reports of integers, shape (n, {size}); found {rows.dtype} {rows.shape}")
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < 2 * buckets:
        raise NotSupported(f"expected reports from 0 to {2 * buckets - 1}; found {rows.min()} to {rows.max()}")


def _check_distinct(block: Reports) -> None:
    import numpy as np

    drawn = np.sort(block >> 1, axis=1)
    if (drawn[:, 1:] == drawn[:, :-1]).any():
        raise NotSupported("expected reports of distinct buckets; found a report that repeats one")
