"""Uniform deviates that are compared exactly: digits are drawn as far as a comparison needs them, and kept."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from .streams import Stream

if TYPE_CHECKING:
    import numpy.typing as npt

    Slots = npt.NDArray[np.intp]
    Flags = npt.NDArray[np.bool_]


class Deviates:
    """Uniform deviates on (0, 1), one for each slot, known to as many 64-bit digits as were asked for.

    The first digit nearly always decides a comparison. Where it does not, further digits are drawn and
    kept, so that a deviate meets every comparison with the same digits: each is exactly that of two real
    numbers.
    """

    def __init__(self, size: int) -> None:
        self.first = np.empty(size, np.uint64)
        self._further: dict[int, list[int]] = {}

    def draw(self, stream: Stream, slots: Slots) -> None:
        """Put fresh deviates into the slots. The other slots are no longer used by the caller."""
        self.first[slots] = stream.words(slots.size)
        self._further.clear()

    def less(self, stream: Stream, other: Deviates, slots: Slots) -> Flags:
        """Return for each of the slots whether this deviate is less than the other one's."""
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
