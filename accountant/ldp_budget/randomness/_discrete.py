"""Uniform integers, weighted choices, subsets and geometric counts, all exact."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from ._bits import bernoulli
from .streams import Stream, blocks
from .thresholds import ONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_MAX_BOUND = 1 << 63
_BLOCK = 1 << 16  # draws; with their 64-bit words and results about a megabyte


def integers(
    stream: Stream, bound: int | npt.NDArray[np.int64] | npt.NDArray[np.uint64], size: int
) -> npt.NDArray[np.int64]:
    """Draw ``size`` independent integers, each exactly uniform on [0, bound).

    Words of 1, 2, 4 or 8 bytes (the fewest that hold ``bound - 1``) are cut to the bits that ``bound - 1``
    needs, and drawn again while they reach the bound: fewer than two words a draw on average.

    Parameters:
        bound: an int in [1, 2**63] for all draws, or an int64 or uint64 array (size,) with one for each.

    Raises:
        TypeError: ``bound`` is not made of integers.
        ValueError: ``bound`` is out of range, or an array of another shape.
    """
    result = np.empty(size, np.int64)
    if not isinstance(bound, np.ndarray):
        bound = operator.index(bound)
        _check_bounds("bound", bound, bound)
        _fill_below(stream, bound, result)
        return result
    if bound.dtype not in (np.int64, np.uint64):
        raise TypeError(f"an array of bounds must be int64 or uint64, not {bound.dtype}")
    if bound.shape != (size,):
        raise ValueError(f"bound must have shape ({size},), got {bound.shape}")
    for part in blocks(size, _BLOCK):
        _fill_below_each(stream, bound[part], result[part])
    return result


def choices(stream: Stream, cumulative: Sequence[int] | npt.NDArray[np.uint64], size: int) -> npt.NDArray[np.int64]:
    """Draw ``size`` independent indices by integer weights given as running totals.

    Index i has probability exactly ``(cumulative[i] - cumulative[i - 1]) / cumulative[-1]``, with
    ``cumulative[-1]`` read as 0 where i is 0.

    Parameters:
        cumulative: non-decreasing integers >= 0, the last of them in [1, 2**63].

    Raises:
        TypeError: ``cumulative`` holds something that is not an integer.
        ValueError: it is empty, decreases somewhere, or its total is out of range.
    """
    totals = _running_totals(cumulative)
    result = np.empty(size, np.int64)
    for part in blocks(size, _BLOCK):
        draws = integers(stream, int(totals[-1]), part.stop - part.start).astype(np.uint64)
        result[part] = np.searchsorted(totals, draws, side="right")
    return result


def subsets(stream: Stream, population: int, size: int, count: int) -> npt.NDArray[np.int64]:
    """Draw ``count`` independent subsets of ``size`` members of range(population), each equally likely.

    Returns:
        Shape (count, size), every row in ascending order, so that the order of drawing leaks nothing.

    Raises:
        ValueError: ``population`` is not in [1, 2**63] or ``size`` not in [0, population].
    """
    _check_bounds("population", population, population)
    if not 0 <= size <= population:
        raise ValueError(f"size must be in [0, {population}], got {size}")
    rows = np.empty((count, size), np.int64)
    left_out = population - size
    # A set and its complement are equally uniform; the smaller one meets fewer repetitions.
    if size <= left_out:
        for part in blocks(count, max(1, _BLOCK // max(1, size))):
            rows[part] = _distinct(stream, population, size, part.stop - part.start)
    else:
        for part in blocks(count, max(1, _BLOCK // population)):
            drawn = _distinct(stream, population, left_out, part.stop - part.start)
            rows[part] = _complement(drawn, population)
    return rows


def geometric(stream: Stream, continue_threshold: int, size: int) -> npt.NDArray[np.int64]:
    """Draw ``size`` independent counts of successes before the first failure.

    A success has probability exactly ``p = continue_threshold / 2**64``, a count c has (1 - p) * p**c for
    every c: the tail is not cut. The work is 1 / (1 - p) bits a draw on average.

    Raises:
        TypeError: ``continue_threshold`` is not an int.
        ValueError: it is not in [0, 2**64): at 2**64 no count would ever end.
    """
    if not 0 <= continue_threshold < ONE:
        raise ValueError(f"continue_threshold must be in [0, 2**64), got {continue_threshold}")
    counts = np.zeros(size, np.int64)
    for part in blocks(size, _BLOCK):
        block = counts[part]
        alive = np.arange(block.size)
        while alive.size:
            alive = alive[bernoulli(stream, continue_threshold, alive.size)]
            block[alive] += 1
    return counts


def _fill_below(stream: Stream, bound: int, result: npt.NDArray[np.int64]) -> None:
    """Fill ``result`` with the first words of the stream that are below the bound once masked."""
    mask = (1 << (bound - 1).bit_length()) - 1
    filled = 0
    while filled < result.size:
        words = _words(stream, min(_BLOCK, result.size - filled), mask) & mask
        accepted = words if bound > mask else words[words < bound]
        result[filled : filled + accepted.size] = accepted
        filled += accepted.size


def _fill_below_each(
    stream: Stream, bounds: npt.NDArray[np.int64] | npt.NDArray[np.uint64], result: npt.NDArray[np.int64]
) -> None:
    largest = int(bounds.max())
    _check_bounds("bound", int(bounds.min()), largest)
    last = bounds.astype(np.uint64) - np.uint64(1)
    masks = _masks(last)
    pending = np.arange(result.size)
    while pending.size:
        words = _words(stream, pending.size, largest - 1) & masks[pending]
        accepted = words <= last[pending]
        result[pending[accepted]] = words[accepted]
        pending = pending[~accepted]


def _words(stream: Stream, count: int, largest: int) -> npt.NDArray[np.unsignedinteger]:
    """Return ``count`` uniform words of the fewest bytes (1, 2, 4 or 8) that hold ``largest``."""
    width = next(width for width in (1, 2, 4, 8) if largest < 1 << (8 * width))
    return np.frombuffer(stream.read(width * count), f"<u{width}", count)


def _masks(last: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return, for each number, the least 2**j - 1 that is not below it."""
    masks = last.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        masks |= masks >> np.uint64(shift)
    return masks


def _distinct(stream: Stream, population: int, size: int, count: int) -> npt.NDArray[np.int64]:
    """Return sorted rows of the first ``size`` distinct members in a sequence of uniform draws.

    No member is favoured by such a sequence, so every subset is equally likely. A row's repetitions are
    replaced by as many fresh draws, never more than it still lacks, so nothing drawn is discarded but
    repetitions.
    """
    rows = integers(stream, population, count * size).reshape(count, size)
    rows.sort(axis=1)
    pending = np.arange(count)
    while True:
        repeated = rows[pending, 1:] == rows[pending, :-1]
        unfinished = repeated.any(axis=1)
        pending, repeated = pending[unfinished], repeated[unfinished]
        if not pending.size:
            return rows
        redrawn = rows[pending]
        redrawn[:, 1:][repeated] = integers(stream, population, int(np.count_nonzero(repeated)))
        redrawn.sort(axis=1)
        rows[pending] = redrawn


def _complement(rows: npt.NDArray[np.int64], population: int) -> npt.NDArray[np.int64]:
    members = np.ones((len(rows), population), np.bool_)
    np.put_along_axis(members, rows, False, axis=1)
    return np.nonzero(members)[1].reshape(len(rows), -1)


def _running_totals(cumulative: Sequence[int] | npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    if not isinstance(cumulative, np.ndarray):
        cumulative = np.array([operator.index(total) for total in cumulative], dtype=object)
    elif cumulative.dtype.kind not in "iu":
        raise TypeError(f"cumulative must be integers, not {cumulative.dtype}")
    if not cumulative.size or cumulative[0] < 0 or (cumulative[1:] < cumulative[:-1]).any():
        raise ValueError("cumulative must be a non-empty, non-decreasing sequence of integers >= 0")
    if not 1 <= cumulative[-1] <= _MAX_BOUND:
        raise ValueError(f"the total of cumulative must be in [1, 2**63], got {cumulative[-1]}")
    return cumulative.astype(np.uint64)


def _check_bounds(name: str, least: int, largest: int) -> None:
    if not 1 <= least <= largest <= _MAX_BOUND:
        found = f"{least}" if least == largest else f"{least} to {largest}"
        raise ValueError(f"{name} must be in [1, 2**63], got {found}")
