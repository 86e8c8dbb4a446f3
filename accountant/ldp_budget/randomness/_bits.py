"""Bernoulli draws by comparing random bytes with 64-bit integer thresholds.

A threshold t stands for the probability t / 2**64. A draw succeeds if a uniform 64-bit integer is below t.
The top byte decides alone unless it equals the top byte of t (once in 256 draws); only then are the seven
lower bytes read. Order of the bytes: one for each draw of a block, then seven (little-endian) for each tie
of that block. An int threshold reads nothing when it is 0 or 2**64, and nothing for ties when its lower 56
bits are zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .streams import BLOCK_BYTES, Stream, blocks
from .thresholds import ONE

if TYPE_CHECKING:
    import numpy.typing as npt

_LOW_BITS = 56
_LOW_MASK = (1 << _LOW_BITS) - 1
_BLOCK = BLOCK_BYTES // 4  # the bytes, the bits and the ties of a block share the cache


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
        _check_threshold("threshold", threshold)
        for part in blocks(size, _BLOCK):
            _fill(stream, threshold, bits[part])
    return bits


def unary_bits(
    stream: Stream, values: npt.NDArray[np.integer], domain_size: int, keep: int, noise: int
) -> npt.NDArray[np.uint8]:
    """Draw a perturbed unary encoding of every value: ``domain_size`` independent bits a row, packed.

    In the row of value v, bit v is 1 with probability ``keep / 2**64``, any other with ``noise / 2**64``.

    Parameters:
        values: integers in [0, domain_size), shape (n,).
        domain_size: bits in a row, at least 1.
        keep: threshold of the value's own bit, in [0, 2**64].
        noise: threshold of the other bits, in [0, 2**64].

    Returns:
        Shape (n, ceil(domain_size / 8)). Bit i is bit ``i % 8`` of byte ``i // 8``, the lowest being bit 0
        (``bitorder="little"`` of ``numpy.packbits``); bits past the domain are 0.

    Raises:
        TypeError: ``values`` are not integers.
        ValueError: a value, a threshold or ``domain_size`` is out of range, or ``values`` has another shape.
    """
    _check_threshold("keep", keep)
    _check_threshold("noise", noise)
    _check_values(values, domain_size)
    width = -(-domain_size // 8)
    rows = np.empty((values.size, width), np.uint8)
    for part in blocks(values.size, max(1, _BLOCK // (8 * width))):
        rows[part] = _unary_block(stream, values[part], domain_size, keep, noise)
    return rows


def _unary_block(
    stream: Stream, values: npt.NDArray[np.integer], domain_size: int, keep: int, noise: int
) -> npt.NDArray[np.uint8]:
    bits = bernoulli(stream, noise, values.size * domain_size).reshape(-1, domain_size)
    # The value's own place is drawn like the others and then overwritten: cheaper than leaving it out.
    bits[np.arange(values.size), values] = bernoulli(stream, keep, values.size)
    if domain_size % 8:
        bits = np.pad(bits, ((0, 0), (0, -domain_size % 8)))
    # Packing whole bytes as one flat array is several times faster than packing row by row.
    return np.packbits(bits, bitorder="little").reshape(values.size, -1)


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


def _check_threshold(name: str, threshold: int) -> None:
    if not isinstance(threshold, int):
        raise TypeError(f"{name} must be an int or a uint64 array, not {type(threshold).__name__}")
    if not 0 <= threshold <= ONE:
        raise ValueError(f"{name} must be in [0, 2**64], got {threshold}")


def _check_thresholds(thresholds: npt.NDArray[np.uint64], size: int) -> None:
    if thresholds.dtype != "uint64":
        raise TypeError(f"an array of thresholds must be uint64, not {thresholds.dtype}")
    if thresholds.shape != (size,):
        raise ValueError(f"threshold must have shape ({size},), got {thresholds.shape}")


def _check_values(values: npt.NDArray[np.integer], domain_size: int) -> None:
    if domain_size < 1:
        raise ValueError(f"domain_size must be at least 1, got {domain_size}")
    if values.dtype.kind not in "iu":
        raise TypeError(f"values must be integers, not {values.dtype}")
    if values.ndim != 1:
        raise ValueError(f"values must have one dimension, got shape {values.shape}")
    if values.size and not 0 <= int(values.min()) <= int(values.max()) < domain_size:
        raise ValueError(f"values must be in [0, {domain_size}), got {values.min()} to {values.max()}")
