"""Exact Laplace deviates by von Neumann's comparisons: no arithmetic on reals, and a tail that is not cut.

Let U1 > U2 > ... > Un be the longest falling run at the start of a sequence of uniform deviates. Given U1 = x, n is
odd with probability exp(-x). So if U1 is kept as the fraction of an exponential deviate when n is odd, and
otherwise one is added to its whole part and a new sequence begun, the deviate is exactly exponential.

Source: J. von Neumann, "Various techniques used in connection with random digits", National Bureau of Standards
Applied Mathematics Series 12, 1951, pages 36-38.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._bits import bernoulli
from ._deviates import Deviates
from .streams import Stream, blocks
from .thresholds import ONE

if TYPE_CHECKING:
    import numpy.typing as npt

_HALF = ONE // 2
_MAX_BITS = 40
_BLOCK = 1 << 16


def laplace(stream: Stream, bits: int, size: int) -> npt.NDArray[np.int64]:
    """Draw ``size`` independent values of floor(2**bits * L), L exactly of density exp(-abs(x)) / 2.

    Parameters:
        bits: binary places kept, in [0, 40].

    Raises:
        ValueError: ``bits`` is out of range.
    """
    if not 0 <= bits <= _MAX_BITS:
        raise ValueError(f"bits must be in [0, {_MAX_BITS}], got {bits}")
    result = np.empty(size, np.int64)
    for part in blocks(size, _BLOCK):
        magnitude = _exponential(stream, bits, part.stop - part.start)
        # floor(-y) is -floor(y) - 1, which is ~floor(y): a real deviate is an integer with probability 0.
        result[part] = np.where(bernoulli(stream, _HALF, magnitude.size), ~magnitude, magnitude)
    return result


def _exponential(stream: Stream, bits: int, size: int) -> npt.NDArray[np.int64]:
    """Return floor(2**bits * E), E exactly of density exp(-x) on x > 0."""
    result = np.zeros(size, np.int64)
    pending = np.arange(size)
    while pending.size:
        odd, fraction = _falling_runs(stream, pending.size)
        # Two shifts, as one by 64 (bits = 0) is not defined everywhere.
        places = fraction[odd] >> np.uint64(1) >> np.uint64(63 - bits)
        result[pending[odd]] += places.astype(np.int64)
        pending = pending[~odd]
        result[pending] += 1 << bits
    return result


def _falling_runs(stream: Stream, size: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint64]]:
    """Return for each slot whether its falling run has an odd length, and the first 64 bits of its U1."""
    odd = np.ones(size, np.bool_)
    falling = np.arange(size)
    last, fresh = Deviates(size), Deviates(size)
    last.draw(stream, falling)
    first = last.first.copy()
    while falling.size:
        fresh.draw(stream, falling)
        falling = falling[fresh.less(stream, last, falling)]
        odd[falling] ^= True
        last, fresh = fresh, last
    return odd, first
