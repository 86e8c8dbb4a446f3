"""Relations of reports to answers, and how a server counts them.

A report is related to each answer: a row has a one at its place or not, a set holds it or not, a word has an even or an
odd number of bits in common with its code. What a report says of an answer is this relation. So the server counts, for
each answer, the reports with each relation. The form of the client program decides which relation it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..errors import NotSupported
from ..sampling import open_stream
from .interpreter import as_reports, check_rows, column_sums
from .parities import parities

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from .client_program import Program

    Ints = NDArray[np.int64]

MOST_WORDS = 2**24
"""The most words of which each is counted."""
_BLOCK = 2**20


@dataclass(frozen=True)
class Relation:
    """A relation of reports to the answers 0..answers-1. Subclasses define `of` and `_counts`.

    Parameters:
        program: the client program.
        answers: the number of answers.
    """

    program: Program
    answers: int

    keys: ClassVar[tuple[int, ...]] = (0, 1)
    """The possible relations. `of` gives the place of a relation in them."""

    def check(self, reports: Any) -> NDArray[Any]:
        """Return reports as an array.

        Raises NotSupported for reports that no client sends.
        """
        shape, rows = tuple(self.program.report["shape"]), as_reports(reports)
        if rows.shape[1:] != shape or not rows.ndim or rows.dtype.kind not in "iu":
            expected = ", ".join(["n", *map(str, shape)])
            raise NotSupported(f"reports must be integers of shape ({expected}): got {rows.dtype} {rows.shape}")
        low, high = self.range
        if rows.size and not low <= int(rows.min()) <= int(rows.max()) <= high:
            raise NotSupported(f"reports must be from {low} to {high}: got {rows.min()} to {rows.max()}")
        if shape and self.distinct:
            for block in self._blocks(rows):
                drawn = np.sort(block // self.width, axis=1)
                if (drawn[:, 1:] == drawn[:, :-1]).any():
                    raise NotSupported(f"each report must have distinct {self.noun}: got a report that repeats one")
        return rows

    def _blocks(self, rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield the reports a block at a time, which keeps wider copies of them small."""
        step = max(_BLOCK, self.answers) // max(1, rows[:1].size) + 1
        for start in range(0, len(rows), step):
            yield rows[start : start + step]

    def _numbers(self, rows: NDArray[Any], size: int) -> Ints:
        """Return how often the reports have each of the numbers 0..size-1."""
        counts = np.zeros(size, np.int64)
        for block in self._blocks(rows):
            counts += np.bincount(block.reshape(-1).astype(np.intp), minlength=size)
        return counts

    width: ClassVar[int] = 1
    """How many numbers a report has for one answer."""
    noun: ClassVar[str] = "answers"
    """What the numbers of a report are about."""

    @property
    def range(self) -> tuple[int, int]:
        """The least and the largest number of a report."""
        return 0, self.width * self.answers - 1

    @property
    def distinct(self) -> bool:
        """True if the numbers of one report are about different answers."""
        return draws_distinct(self.program)

    def of(self, rows: NDArray[Any], answer: int) -> Ints:
        """Return the place in `keys` of the relation of each report to an answer, shape (n,)."""
        raise NotImplementedError

    def of_each(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return `of` for all answers, shape (n, answers)."""
        columns = [self.of(rows, answer) for answer in range(self.answers)]
        return np.stack(columns, axis=1) if len(rows) else np.zeros((0, self.answers), np.int64)

    def counts(self, reports: Any) -> tuple[int, Ints]:
        """Return the number of reports, and how many have each relation to each answer, shape (relations, answers).

        Raises NotSupported for reports that no client sends.
        """
        rows = self.check(reports)
        return len(rows), self._counts(rows)

    def _counts(self, rows: NDArray[Any]) -> Ints:
        raise NotImplementedError

    @property
    def repeats(self) -> bool:
        """True if a report has several numbers that may be about one answer."""
        return False


def _table(rows: NDArray[Any]) -> NDArray[Any]:
    """Return reports of one or several numbers as a table with a row for each report."""
    return rows.reshape(len(rows), math.prod(rows.shape[1:]))


class PlaceBit(Relation):
    """Rows of one bit for each answer."""

    def check(self, reports: Any) -> NDArray[Any]:
        return check_rows(reports, self.answers)

    def of(self, rows: NDArray[Any], answer: int) -> Ints:
        bits: Ints = (rows[:, answer >> 3] >> (answer & 7) & 1).astype(np.int64)
        return bits

    def of_each(self, rows: NDArray[Any]) -> NDArray[Any]:
        return np.unpackbits(rows, axis=1, count=self.answers, bitorder="little")

    def counts(self, reports: Any) -> tuple[int, Ints]:
        ones = column_sums(reports, self.answers)
        return len(reports), np.stack([len(reports) - ones, ones])


class Membership(Relation):
    """Answers, or sets or sequences of answers: a report holds an answer or not, and a sequence so many times."""

    @property
    def repeats(self) -> bool:
        return not self.distinct and bool(self.program.report["shape"])

    def of(self, rows: NDArray[Any], answer: int) -> Ints:
        held = rows == answer
        times: Ints = (held if rows.ndim == 1 else held.sum(axis=1)).astype(np.int64)
        return times

    def of_each(self, rows: NDArray[Any]) -> Ints:
        drawn = _table(rows).astype(np.intp)
        times = np.zeros((len(rows), self.answers), np.int64)
        np.add.at(times, (np.arange(len(rows))[:, np.newaxis], drawn), 1)
        return times

    def _counts(self, rows: NDArray[Any]) -> Ints:
        held = self._numbers(rows, self.answers)
        return np.stack([(len(rows) if self.distinct else rows.size) - held, held])


class MarkedPlace(Relation):
    """Places with a bit, 2·place + bit: the bit, or -1 where a report does not show the place of an answer."""

    keys: ClassVar[tuple[int, ...]] = (0, 1, -1)
    width: ClassVar[int] = 2
    noun: ClassVar[str] = "buckets"

    def of(self, rows: NDArray[Any], answer: int) -> Ints:
        shown = _table(rows)
        one, zero = ((shown == 2 * answer + bit).any(axis=1) for bit in (1, 0))
        return np.where(one, 1, np.where(zero, 0, 2)).astype(np.int64)

    def of_each(self, rows: NDArray[Any]) -> Ints:
        shown = _table(rows).astype(np.intp)
        places = np.full((len(rows), self.answers), 2)
        places[np.arange(len(rows))[:, np.newaxis], shown >> 1] = shown & 1
        return places

    def _counts(self, rows: NDArray[Any]) -> Ints:
        zero, one = self._numbers(rows, 2 * self.answers).reshape(-1, 2).T
        return np.stack([zero, one, len(rows) - zero - one])


@dataclass(frozen=True)
class CodeParity(Relation):
    """Words: the parity of the number of bits that a word has in common with the code of an answer.

    `codes`: the code of each answer. `words`: the number of words, a power of two.
    """

    codes: Ints
    words: int

    @property
    def range(self) -> tuple[int, int]:
        return 0, self.words - 1

    def of(self, rows: NDArray[Any], answer: int) -> Ints:
        return parities(rows.astype(np.int64) & self.codes[answer]).astype(np.int64)

    def _counts(self, rows: NDArray[Any]) -> Ints:
        sums = hadamard(self._numbers(rows, self.words))[self.codes]
        even = (len(rows) + sums) // 2
        return np.stack([even, len(rows) - even])


def hadamard(rows: NDArray[Any]) -> Ints:
    """Return Σ_w (-1)^|w & c| n_w for every c and each row n, by the fast Walsh-Hadamard transform.

    The rows have shape (m,) or (r, m), with m a power of two. The matrix is that of Jeong, Hong and Seo 2020, equation (2).
    Each of log2 m passes takes sums and differences of neighbors and puts the sums first, which moves the next bit of the
    column number into place.
    """
    columns = rows.shape[-1]
    for _ in range(columns.bit_length() - 1):
        even, odd = rows[..., 0::2], rows[..., 1::2]
        rows = np.concatenate((even + odd, even - odd), axis=-1)
    return rows


def draws_distinct(program: Program) -> bool:
    """Return True if the numbers of one report are about different answers."""
    return any(isinstance(step, list) and step[0] in ("subset", "floyd", "shuffle") for _, step in program.steps)


def relation_of(program: Program, answers: int) -> Relation:
    """Return the relation of a program's reports to the answers.

    Raises NotSupported if the reports have no form of the module.
    """
    parts = program.report["parts"]
    if len(parts) == 1:
        kind, name, *sizes = parts[0]
        if kind == "packed" and sizes == [answers]:
            return PlaceBit(program, answers)
        if kind == "uint":
            from .value_ranges import ValueRanges

            most = ValueRanges(program).of_name[name][1]
            if (code := _code(program)) is not None and sizes[1] == 1 and not program.report["shape"]:
                return _parity(program, answers, code, most + 1)
            if most == answers - 1:
                return Membership(program, answers)
            if most == 2 * answers - 1:
                return MarkedPlace(program, answers)
    raise NotSupported("a report is no row, answer, set, marked place or word, so it is not counted by answer")


def _parity(program: Program, answers: int, code: Any, words: int) -> CodeParity:
    from .client_program import Program as Steps
    from .client_program import uint
    from .vectorised_client import VectorisedClient

    if words > MOST_WORDS or words & (words - 1):
        raise NotSupported(f"words must be all those of some bits, at most {MOST_WORDS}: got {words} words")
    codes = VectorisedClient(Steps(program.input, (("code", code),), uint("code", words - 1)))(
        np.arange(answers), open_stream(0)
    )
    return CodeParity(program, answers, codes.astype(np.int64), words)


def _code(program: Program) -> Any:
    """Return the code of an answer, an expression of `value` alone that meets a word in a parity; None without any."""
    steps: Mapping[str, Any] = dict(program.steps)
    for _, step in program.steps:
        for call in _calls(step, "parity"):
            if isinstance(call[1], list) and call[1][0] == "and":
                for each in call[1][1:]:
                    full = _inlined(each, steps)
                    if _names(full) == {"value"}:
                        return full
    return None


def _calls(expression: Any, op: str) -> Iterator[list[Any]]:
    if isinstance(expression, list):
        if expression[0] == op:
            yield expression
        for each in expression[1:]:
            yield from _calls(each, op)


def _inlined(expression: Any, steps: Mapping[str, Any]) -> Any:
    if isinstance(expression, str) and expression in steps:
        return _inlined(steps[expression], steps)
    if isinstance(expression, list):
        return [expression[0], *(_inlined(each, steps) for each in expression[1:])]
    return expression


def _names(expression: Any) -> set[str]:
    """Return what an expression depends on: `value`, tables, and draws by their operators."""
    from .client_program import DRAWS, OPERATORS

    if isinstance(expression, list):
        own = {expression[0]} if OPERATORS[expression[0]].kind in (*DRAWS, "hash") else set()
        return own.union(*(_names(each) for each in expression[1:]))
    if isinstance(expression, str) and not expression.lstrip("-").isdecimal():
        return {expression}
    return set()
