"""The law of a client program for a whole range of answers at once.

A number that depends on the answer is then known as a `Range`, from its lowest to its highest value. What cannot be
decided for the whole range, such as a comparison that holds for a part of it, raises `Undecided`, and the range is
halved. In the end every answer lies in some range, so a bound over the ranges is one over all the answers. A step
that is monotone in the answer needs few ranges, however many answers there are; one answer that is treated in another
way than its neighbours ends in a range of its own.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import NotSupported
from .laws import law_of_numerators

if TYPE_CHECKING:
    from ...authoring.programs import Program

MOST_RANGES = 2048
"""Ranges that are tried, halves included."""


class Undecided(Exception):  # noqa: N818 - a reason to halve, no error
    """Something holds for a part of a range alone."""


class Range:
    """A whole number that lies between two others, both included, and is not known better."""

    __slots__ = ("high", "low")

    def __init__(self, low: int, high: int) -> None:
        self.low, self.high = low, high

    def __repr__(self) -> str:
        return f"<Range from {self.low} to {self.high}>"

    def __format__(self, how: str) -> str:
        raise Undecided  # a hash is worked out from the digits

    __str__ = __bool__ = __index__ = __hash__ = lambda self: _undecided()

    # -- arithmetic: the four corners, as each operation is monotone in either number ------------------------

    def __add__(self, other: Any) -> Range:
        low, high = _ends(other)
        return Range(self.low + low, self.high + high)

    __radd__ = __add__

    def __neg__(self) -> Range:
        return Range(-self.high, -self.low)

    def __sub__(self, other: Any) -> Range:
        low, high = _ends(other)
        return Range(self.low - high, self.high - low)

    def __rsub__(self, other: Any) -> Range:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> Range:
        corners = [own * its for own in (self.low, self.high) for its in _ends(other)]
        return Range(min(corners), max(corners))

    __rmul__ = __mul__

    def __floordiv__(self, other: int) -> Range:
        if not isinstance(other, int) or other <= 0:
            raise Undecided
        return Range(self.low // other, self.high // other)

    def __rshift__(self, other: int) -> Range:
        if not isinstance(other, int) or other < 0:
            raise Undecided
        return Range(self.low >> other, self.high >> other)

    # -- comparisons: of the whole range, or undecided -------------------------------------------------------

    def __lt__(self, other: Any) -> bool:
        low, high = _ends(other)
        return _decided(self.high < low, self.low >= high)

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __gt__(self, other: Any) -> bool:
        low, high = _ends(other)
        return _decided(self.low > high, self.high <= low)

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __eq__(self, other: object) -> bool:
        low, high = _ends(other)
        return _decided(self.low == self.high == low == high, self.high < low or self.low > high)

    def __ne__(self, other: object) -> bool:
        return not self == other


def _undecided() -> Any:
    raise Undecided


def _ends(number: Any) -> tuple[int, int]:
    if isinstance(number, Range):
        return number.low, number.high
    if not isinstance(number, int):
        raise Undecided
    return number, number


def _decided(holds: bool, fails: bool) -> bool:
    if holds == fails:
        raise Undecided
    return holds


class Piece(NamedTuple):
    """The answers from `first` to `last`, and between what bounds the probability of each report of theirs lies."""

    first: int
    last: int
    law: dict[bytes, tuple[Fraction, Fraction]]

    @property
    def exact(self) -> bool:
        """Whether all of these answers have one law."""
        return all(low == high for low, high in self.law.values())


def pieces_of(program: Program, answers: int, most: int) -> list[Piece]:
    """The laws of the answers 0..answers-1, range by range; `most` runs of the program in all.

    Raises `NotSupported` where that is not enough, or the draws have endlessly many outcomes.
    """
    waiting, found, tried, left = [(0, answers - 1)], list[Piece](), 0, most
    while waiting:
        first, last = waiting.pop()
        tried += 1
        if tried > MOST_RANGES:
            raise NotSupported(f"the answers fall into more than {MOST_RANGES} ranges")
        try:
            piece = _piece(program, first, last, left)
        except (Undecided, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            if first == last:
                raise
            middle = (first + last) // 2
            waiting += [(middle + 1, last), (first, middle)]
            continue
        left -= len(piece.law)
        found.append(piece)
    return found


def _piece(program: Program, first: int, last: int, most: int) -> Piece:
    value: Any = first if first == last else Range(first, last)
    sums = law_of_numerators(program, [value], most)
    law = {}
    for row, parts in sums.items():
        ends = [(_ends(numerator), denominator) for denominator, numerator in parts.items()]
        low, high = (sum((Fraction(end[side], b) for end, b in ends), Fraction(0)) for side in (0, 1))
        law[row] = low, high
    return Piece(first, last, law)
