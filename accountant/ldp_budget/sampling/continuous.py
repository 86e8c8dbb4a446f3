"""Exact Laplace, normal and discrete normal deviates, by comparisons of uniform deviates instead of arithmetic on reals.

Uniform deviates (`Deviates`) are compared exactly: digits are drawn as far as a comparison needs them, and kept.

**Laplace**, by von Neumann's comparisons, with a tail that is not cut. Let U1 > U2 > ... > Un be the longest
falling run at the start of a sequence of uniform deviates. Given U1 = x, n is odd with probability exp(-x). If n is
odd, U1 is kept as the fraction of an exponential deviate. Otherwise one is added to its whole part and a new
sequence begins. The result is exactly exponential.

Source: J. von Neumann, "Various techniques used in connection with random digits", National Bureau of Standards
Applied Mathematics Series 12, 1951, pages 36-38.

**Normal**, by Karney's Algorithm N. A deviate k + x is proposed (k a non-negative integer, x uniform on (0, 1))
with probability proportional to exp(-k/2) and accepted with probability exp(-k(k-1)/2) * exp(-x(2k+x)/2): together
exp(-(k+x)**2 / 2). Every factor is a von Neumann trial: count how long a sequence of uniform deviates falls.

Source: C. F. F. Karney, "Sampling exactly from the normal distribution", ACM Transactions on Mathematical Software
42(1), article 3, 2016.

**Discrete normal**, by Algorithm D of the same source, for a standard deviation of 2**bits: there the fraction x is one
of the 2**bits equal steps of (0, 1), and every comparison with it is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from ..guarantees.fixed_point import ONE
from .discrete import bernoulli, integers
from .rng import Stream, blocks

if TYPE_CHECKING:
    import numpy.typing as npt

    Slots = npt.NDArray[np.intp]
    Flags = npt.NDArray[np.bool_]


class Deviates:
    """Uniform deviates on (0, 1), one for each slot, known to as many 64-bit digits as were needed.

    The first digit nearly always decides a comparison. Otherwise further digits are drawn and kept, so that a
    deviate enters every comparison with the same digits. So each comparison is exactly that of two real numbers.
    """

    def __init__(self, size: int) -> None:
        self.first = np.empty(size, np.uint64)
        self._further: dict[int, list[int]] = {}

    def draw(self, stream: Stream, slots: Slots) -> None:
        """Put fresh deviates into the slots. The caller must no longer use the other slots."""
        self.first[slots] = stream.words(slots.size)
        self._further.clear()

    def less(self, stream: Stream, other: Deviates, slots: Slots) -> Flags:
        """Return, for each of the slots, True where this deviate is less than the other one."""
        mine, others = self.first[slots], other.first[slots]
        result = mine < others
        for tie in np.flatnonzero(mine == others):
            result[tie] = self._break_tie(stream, other, int(slots[tie]))
        return result

    def _break_tie(self, stream: Stream, other: Deviates, slot: int) -> bool:
        for depth in count():
            mine, others = self._digit(stream, slot, depth), other._digit(stream, slot, depth)
            if mine != others:
                return mine < others
        raise AssertionError("count() does not end")

    def _digit(self, stream: Stream, slot: int, depth: int) -> int:
        digits = self._further.setdefault(slot, [])
        if depth == len(digits):
            digits.append(int(stream.words(1)[0]))
        return digits[depth]


class Dyadics(Deviates):
    """Known fractions places / 2**bits, one for each slot, for exact comparisons with deviates: no further digits."""

    def __init__(self, places: npt.NDArray[np.int64], bits: int) -> None:
        super().__init__(places.size)
        # Two shifts, as one by 64 (bits = 0) is not defined everywhere.
        self.first[:] = places.astype(np.uint64) << np.uint64(63 - bits) << np.uint64(1)

    def _digit(self, stream: Stream, slot: int, depth: int) -> int:
        return 0


# -- Laplace ---------------------------------------------------------------------------------------------------

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
        raise ValueError(f"bits must be in [0, {_MAX_BITS}]: got {bits}")
    result = np.empty(size, np.int64)
    for part in blocks(size, _BLOCK):
        magnitude = _exponential(stream, bits, part.stop - part.start)
        result[part] = _signed(stream, magnitude)
    return result


def _signed(stream: Stream, magnitude: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return floor(y) or floor(-y) by a fair coin, given floor(y) of each deviate y > 0."""
    # floor(-y) is -floor(y) - 1, which is ~floor(y): a real deviate is an integer with probability 0. And ~k is k ^ -1.
    minus = bernoulli(stream, _HALF, magnitude.size).astype(np.int64)
    np.negative(minus, out=minus)
    minus ^= magnitude
    return minus


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
    """Return, for each slot, True where its falling run has an odd length, and the first 64 bits of its U1."""
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


# -- normal ----------------------------------------------------------------------------------------------------


def normal(stream: Stream, bits: int, size: int) -> npt.NDArray[np.int64]:
    """Draw ``size`` independent values of floor(2**bits * Z), Z exactly standard normal.

    Parameters:
        bits: binary places kept, in [0, 40].

    Raises:
        ValueError: ``bits`` is out of range.
    """
    return _drawn(_accepted, stream, bits, size)


def discrete_normal(stream: Stream, bits: int, size: int) -> npt.NDArray[np.int64]:
    """Draw ``size`` independent whole numbers n, each with a probability exactly proportional to exp(-n**2 / 2 / 4**bits).

    Parameters:
        bits: the standard deviation is 2**bits, in [0, 40].

    Raises:
        ValueError: ``bits`` is out of range.
    """
    return _drawn(_accepted_steps, stream, bits, size)


def _drawn(
    accepted_of: Callable[[Stream, int, int], npt.NDArray[np.int64]], stream: Stream, bits: int, size: int
) -> npt.NDArray[np.int64]:
    """Return the first ``size`` accepted proposals; `accepted_of` makes a number of proposals. Raises `ValueError`."""
    if not 0 <= bits <= _MAX_BITS:
        raise ValueError(f"bits must be in [0, {_MAX_BITS}]: got {bits}")
    result = np.empty(size, np.int64)
    filled = 0
    while filled < size:
        wanted = size - filled
        # About half of the proposals are accepted. They are independent: the first ones are as good as any.
        accepted = accepted_of(stream, bits, min(_BLOCK, 2 * wanted + 8))[:wanted]
        result[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return result


def _accepted_steps(stream: Stream, bits: int, proposals: int) -> npt.NDArray[np.int64]:
    """Return those of the proposals ±(k + j / 2**bits)·2**bits that Algorithm D accepts; zero has one sign only."""
    whole = _whole_parts(stream, proposals)
    places = integers(stream, 1 << bits, whole.size)
    magnitude = (whole << bits) + places
    minus = bernoulli(stream, _HALF, whole.size)
    fraction = Dyadics(places, bits)
    accepted = _all_succeed(whole + 1, lambda slots: _trial(stream, whole, fraction, slots))
    accepted &= ~minus | (magnitude > 0)
    return np.where(minus, -magnitude, magnitude)[accepted]


def _accepted(stream: Stream, bits: int, proposals: int) -> npt.NDArray[np.int64]:
    """Return floor(2**bits * Z) for those of the proposals that Algorithm N accepts (steps N1 to N5)."""
    whole = _whole_parts(stream, proposals)
    fraction = Deviates(whole.size)
    fraction.draw(stream, np.arange(whole.size))
    accepted = _all_succeed(whole + 1, lambda slots: _trial(stream, whole, fraction, slots))
    # Two shifts, as one by 64 (bits = 0) is not defined everywhere.
    places = (fraction.first[accepted] >> np.uint64(1) >> np.uint64(63 - bits)).astype(np.int64)
    magnitude = (whole[accepted] << bits) + places
    return _signed(stream, magnitude)


def _whole_parts(stream: Stream, proposals: int) -> npt.NDArray[np.int64]:
    """Return the k of the proposals that survive, P(k) proportional to exp(-k**2 / 2) (steps N1 and N2)."""
    whole = np.zeros(proposals, np.int64)
    alive = np.arange(proposals)
    while alive.size:
        alive = alive[_half_exponential(stream, alive.size)]
        whole[alive] += 1
    kept = _all_succeed(whole * (whole - 1), lambda slots: _half_exponential(stream, slots.size))
    return whole[kept]


def _all_succeed(trials: npt.NDArray[np.int64], attempt: Callable[[Slots], Flags]) -> Flags:
    """Return, for each slot, True where ``trials[slot]`` independent attempts all succeed."""
    failed = np.zeros(trials.size, np.bool_)
    alive = np.flatnonzero(trials)
    for done in count(1):
        if not alive.size:
            break
        success = attempt(alive)
        failed[alive[~success]] = True
        alive = alive[success]
        alive = alive[trials[alive] > done]
    return ~failed


def _half_exponential(stream: Stream, size: int) -> Flags:
    """Draw ``size`` bits, each True with probability exp(-1/2) (Algorithm H).

    The longest n with 1/2 > U1 > ... > Un is even with that probability.
    """
    even = np.ones(size, np.bool_)
    falling = np.arange(size)
    last, fresh = Deviates(size), Deviates(size)
    last.draw(stream, falling)
    falling = np.flatnonzero(last.first < _HALF)
    while falling.size:
        even[falling] ^= True
        fresh.draw(stream, falling)
        falling = falling[fresh.less(stream, last, falling)]
        last, fresh = fresh, last
    return even


def _trial(stream: Stream, whole: npt.NDArray[np.int64], fraction: Deviates, slots: Slots) -> Flags:
    """Draw a bit for each slot, True with probability exp(-x(2k+x) / (2k+2)) (Algorithm B).

    The longest n with x > U1 > ... > Un and every Vi < (2k+x) / (2k+2) is even with that probability.
    """
    even = np.ones(whole.size, np.bool_)
    last, fresh, spare = fraction, Deviates(whole.size), Deviates(whole.size)
    falling = slots
    while falling.size:
        fresh.draw(stream, falling)
        falling = falling[fresh.less(stream, last, falling)]
        falling = falling[_below_ratio(stream, whole, fraction, falling)]
        even[falling] ^= True
        last, fresh, spare = fresh, spare, fresh
    return even[slots]


def _below_ratio(stream: Stream, whole: npt.NDArray[np.int64], fraction: Deviates, slots: Slots) -> Flags:
    """Draw V for each slot and return True where V < (2k+x) / (2k+2) (Algorithm C).

    V is in one of 2k+2 equal intervals. In the last interval V is above the ratio. In the last but one, V's
    position within the interval is compared with x. In all others V is below the ratio.
    """
    twice = 2 * whole[slots]
    interval = integers(stream, twice + 2, slots.size)
    below = interval < twice
    undecided = np.flatnonzero(interval == twice)
    place = Deviates(whole.size)
    place.draw(stream, slots[undecided])
    below[undecided] = place.less(stream, fraction, slots[undecided])
    return below
