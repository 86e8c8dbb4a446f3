"""Exact discrete draws: Bernoulli bits, uniform integers, weighted choices, subsets and geometric counts.

A threshold t means the probability t / 2**64. A Bernoulli draw succeeds if a uniform 64-bit integer is below t. The
top byte decides alone unless it equals the top byte of t (once in 256 draws). Only then the seven lower bytes are
read. Order of the bytes: one for each draw of a block, then seven (little-endian) for each tie of that block. An
int threshold reads nothing when it is 0 or 2**64, and nothing for ties when its lower 56 bits are zero.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from ..guarantees.fixed_point import ONE
from .rng import BLOCK_BYTES, Stream, blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


_LOW_BITS = 56
_LOW_MASK = (1 << _LOW_BITS) - 1
_BLOCK = BLOCK_BYTES // 4  # the bytes, the bits and the ties of a block share the cache


# -- Bernoulli draws -------------------------------------------------------------------------------------------


def bernoulli(stream: Stream, threshold: int | npt.NDArray[np.uint64], size: int) -> npt.NDArray[np.bool_]:
    """Draw ``size`` independent bits, each True with probability exactly ``threshold / 2**64``.

    Parameters:
        threshold: an int in [0, 2**64] for all draws, or a uint64 array (size,) with one for each.

    Raises:
        TypeError: ``threshold`` is an array of another type than uint64, or not an integer.
        ValueError: ``threshold`` is out of range, or an array of another shape.
    """
    bits = np.empty(size, np.bool_)
    if isinstance(threshold, np.ndarray):
        _check_thresholds(threshold, size)
        for part in blocks(size, _BLOCK):
            _fill_each(stream, threshold[part], bits[part])
    else:
        _check_threshold(threshold)
        for part in blocks(size, _BLOCK):
            _fill(stream, threshold, bits[part])
    return bits


def _fill(stream: Stream, threshold: int, bits: npt.NDArray[np.bool_]) -> None:
    if threshold in (0, ONE):
        bits[:] = threshold == ONE
        return
    top, low = threshold >> _LOW_BITS, threshold & _LOW_MASK
    draws = np.frombuffer(stream.read(bits.size), np.uint8, bits.size)
    np.less(draws, top, out=bits)
    if low:
        ties = np.flatnonzero(draws == top)
        bits[ties] = _low_words(stream, ties.size) < low


def _fill_each(stream: Stream, thresholds: npt.NDArray[np.uint64], bits: npt.NDArray[np.bool_]) -> None:
    tops = (thresholds >> np.uint64(_LOW_BITS)).astype(np.uint8)
    draws = np.frombuffer(stream.read(bits.size), np.uint8, bits.size)
    np.less(draws, tops, out=bits)
    ties = np.flatnonzero(draws == tops)
    bits[ties] = _low_words(stream, ties.size) < (thresholds[ties] & np.uint64(_LOW_MASK))


def _low_words(stream: Stream, count: int) -> npt.NDArray[np.uint64]:
    """Return ``count`` uniform integers in [0, 2**56), seven bytes each."""
    words = np.zeros((count, 8), np.uint8)
    words[:, :7] = np.frombuffer(stream.read(7 * count), np.uint8, 7 * count).reshape(count, 7)
    return words.view("<u8").reshape(count).astype(np.uint64, copy=False)


def _check_threshold(threshold: int) -> None:
    if not isinstance(threshold, int):
        raise TypeError(f"threshold must be an int or a uint64 array: got {type(threshold).__name__}")
    if not 0 <= threshold <= ONE:
        raise ValueError(f"threshold must be in [0, 2**64]: got {threshold}")


def _check_thresholds(thresholds: npt.NDArray[np.uint64], size: int) -> None:
    if thresholds.dtype != "uint64":
        raise TypeError(f"an array of thresholds must be uint64: got {thresholds.dtype}")
    if thresholds.shape != (size,):
        raise ValueError(f"threshold must have shape ({size},): got {thresholds.shape}")


# -- integers, choices, subsets, counts ------------------------------------------------------------------------

_MAX_BOUND = 1 << 63
_DISCRETE_BLOCK = 1 << 16  # draws; with their 64-bit words and results about a megabyte


def integers(
    stream: Stream, bound: int | npt.NDArray[np.int64] | npt.NDArray[np.uint64], size: int
) -> npt.NDArray[np.int64]:
    """Draw ``size`` independent integers, each exactly uniform on [0, bound).

    Words of 1, 2, 4 or 8 bytes (the fewest that hold ``bound - 1``) are cut to the bits that ``bound - 1`` needs.
    A word that reaches the bound is drawn again: fewer than two words a draw on average.

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
        raise TypeError(f"an array of bounds must be int64 or uint64: got {bound.dtype}")
    if bound.shape != (size,):
        raise ValueError(f"bound must have shape ({size},): got {bound.shape}")
    for part in blocks(size, _DISCRETE_BLOCK):
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
    for part in blocks(size, _DISCRETE_BLOCK):
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
        raise ValueError(f"size must be in [0, {population}]: got {size}")
    rows = np.empty((count, size), np.int64)
    left_out = population - size
    # A set and its complement are equally uniform; the smaller one meets fewer repetitions.
    if size <= left_out:
        for part in blocks(count, max(1, _DISCRETE_BLOCK // max(1, size))):
            rows[part] = _distinct(stream, population, size, part.stop - part.start)
    else:
        for part in blocks(count, max(1, _DISCRETE_BLOCK // population)):
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
        raise ValueError(f"continue_threshold must be in [0, 2**64): got {continue_threshold}")
    counts = np.zeros(size, np.int64)
    for part in blocks(size, _DISCRETE_BLOCK):
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
        words = _words(stream, min(_DISCRETE_BLOCK, result.size - filled), mask) & mask
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

    Such a sequence treats all members alike, so every subset is equally likely. The repetitions in a row are
    replaced by as many fresh draws, never more than the row lacks. So only repetitions are discarded.
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
        raise TypeError(f"cumulative must be integers: got {cumulative.dtype}")
    if not cumulative.size or cumulative[0] < 0 or (cumulative[1:] < cumulative[:-1]).any():
        raise ValueError("cumulative must be a non-empty, non-decreasing sequence of integers >= 0")
    if not 1 <= cumulative[-1] <= _MAX_BOUND:
        raise ValueError(f"the total of cumulative must be in [1, 2**63]: got {cumulative[-1]}")
    return cumulative.astype(np.uint64)


def _check_bounds(name: str, least: int, largest: int) -> None:
    if not 1 <= least <= largest <= _MAX_BOUND:
        found = f"{least}" if least == largest else f"{least} to {largest}"
        raise ValueError(f"{name} must be in [1, 2**63]: got {found}")
