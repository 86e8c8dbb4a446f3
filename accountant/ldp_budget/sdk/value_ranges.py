"""The least and the largest value of each expression of a client program, known before anything is drawn.

A range is sound: no run of the program that ends with a report has a value outside it. It may be wider than the values
that occur, as a range forgets which numbers go together. Where that matters, `tight` lists an expression that depends
on the answer alone for every answer.

A draw without an end, `geometric`, `laplace` or `normal`, has the range outside which it lies with a probability below
2**-512. An interpreter that relies on a range checks what it drew.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..guarantees.fixed_point import ONE
from .client_program import OPERATORS
from .operator_forms import FORMS, HUGE, RANGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .client_program import Expression, Program

Span: TypeAlias = tuple[int, int]
"""The least and the largest value; of a vector, those of all its entries."""

WORD: Span = (-(2**63), 2**63 - 1)
_BITS: Span = (0, 1)
_MOST_LISTED = 1 << 21
"""The most answers for which an expression is listed: 16 MB each."""
_LAPLACE, _NORMAL, _GEOMETRIC = 356, 28, 512
"""Limits of a deviate, and of the bits of a geometric tail: beyond them lies less than 2**-512."""


class VaryingSizeError(ValueError):
    """A vector of the program has no fixed length, or a step never has a value that the specification defines."""


def literal(expression: Expression) -> int | None:
    """Return the number that an expression writes out; None for a name or an operator."""
    if isinstance(expression, int):
        return expression
    return int(expression) if isinstance(expression, str) and expression.lstrip("-").isdigit() else None


def names_in(expression: Expression) -> Iterator[str]:
    """Yield the names of an expression, as often as each occurs; also numbers that are written as text."""
    if isinstance(expression, str):
        yield expression
    elif isinstance(expression, list):
        labelled = OPERATORS[expression[0]].labelled
        for each in expression[2 if labelled else 1 :]:
            yield from names_in(each)


def names_read(expression: Expression) -> Iterator[str]:
    """Yield the names that the value of a step depends on: a draw of the secret does not depend on what it is kept for."""
    if isinstance(expression, list) and OPERATORS[expression[0]].kind == "memo":
        for each in expression[3:]:
            yield from names_in(each)
    else:
        yield from names_in(expression)


def last_of(program: Program) -> int:
    """Return the largest `value` of a program."""
    given = program.input
    if given["kind"] == "number":
        return int(given["last"])
    return (256 ** int(given["length"]) if given["kind"] == "word" else int(given["count"])) - 1


class ValueRanges:
    """The ranges and the lengths of the values of a program.

    Parameters:
        program: the program. Its tables and steps are looked at once, in order.

    Raises:
        VaryingSizeError: a vector has no fixed length, or a value is never in the range that an operator needs.
    """

    def __init__(self, program: Program) -> None:
        self.of_name: dict[str, Span] = {"value": (0, last_of(program))}
        """The range of `value`, of each table and of each step."""
        self.sizes: dict[str, int | None] = {"value": None}
        """The length of each table and of each step that is a vector, None of a number. A row of `rows` has its own."""
        self.rows: dict[str, int] = {}
        """The length of the rows of each table of vectors."""
        self.seen: set[Span] = set()
        """The ranges of all numbers that are worked out or drawn."""
        self._definitions: dict[str, Any] = dict(program.steps)
        self._tables = program.table_values
        self._listings: dict[str, Any] = {}
        for name, table in self._tables.items():
            flat = [n for row in table for n in (row if isinstance(row, list) else [row])]
            self.of_name[name] = (min(flat, default=0), max(flat, default=0))
            self.sizes[name] = len(table)
            if table and isinstance(table[0], list):
                self.rows[name] = len(table[0])
        for name, expression in program.steps:
            self.of_name[name] = self.of(expression)
            self.sizes[name] = self.size_of(expression)
            self.seen.add(self.of_name[name])

    # -- ranges ---------------------------------------------------------------------------------------

    def of(self, expression: Expression) -> Span:
        """Return the range of an expression over the names of the program."""
        number = literal(expression)
        if number is not None:
            return number, number
        if isinstance(expression, str):
            return self.of_name[expression]
        found = self._of_call(expression)
        if not _in_a_word(found):
            for name in {*names_in(expression)} & {*self.of_name}:
                self.of_name[name] = self.tight(name)
            found = self._listed_span(expression) or self._of_call(expression)
        self.seen.add(found)
        return found

    def _of_call(self, expression: Any) -> Span:
        name, *given = expression
        inner = given[1:] if OPERATORS[name].labelled else given
        return self.of_call(name, [self.of(each) for each in inner], [self.size_of(each) for each in inner])

    def tight(self, expression: Expression) -> Span:
        """Return the range of an expression from a list of its values for every answer, if it can be listed."""
        return self._listed_span(expression) or self.of(expression)

    def of_call(self, name: str, spans: list[Span], sizes: list[int | None]) -> Span:
        """Return the range of an operator's value from those of its arguments; a label is left out of them.

        Raises:
            VaryingSizeError: the arguments are never in the ranges for which the operator is defined.
        """
        spans = [_clamped(name, *each) for each in zip(_wanted(name, len(spans)), spans, strict=True)]
        if name in _BINARY:
            return _limited(_BINARY[name](*spans))
        if FORMS[name].gives == "each" or name in _UNIONS:
            return _limited(self._chosen(name, spans, sizes))
        return self._drawn(name, spans, sizes)

    def _chosen(self, name: str, spans: list[Span], sizes: list[int | None]) -> Span:
        if name in ("lt", "ge", "eq", "parity"):
            return _BITS
        kept = {"where": spans[1:], "put": spans[::2], "at": spans[:1], "sort": spans, "shuffle": spans}
        if name == "floyd":
            size = sizes[0] or 0
            return spans[0] if size < 2 else _union([spans[0], (spans[1][0], spans[1][1] + size - 2)])
        return _union(kept.get(name, spans))

    def _drawn(self, name: str, spans: list[Span], sizes: list[int | None]) -> Span:
        highs = [high for _, high in spans]
        if name in ("below", "belows", "polynomial", "subset"):
            return 0, {"polynomial": highs[-1]}.get(name, highs[0]) - 1
        if name in ("belows_from", "kept_belows"):
            return 0, min(highs[-2] + max(0, highs[-1] - 1), 2**63) - 1
        if name == "kept_top":
            return 0, (1 << highs[1]) - 1
        if name == "rank":
            return 0, sizes[0] or 0
        if name == "first":
            return 0, max(0, (sizes[0] or 0) - 1)
        if name == "join":
            return 0, min(1 << (sizes[0] or 0), HUGE) - 1
        if name == "geometric":
            chance = highs[0]
            bits = -math.log1p((chance - ONE) / ONE) / math.log(2) if chance else math.inf
            return 0, min(int(_GEOMETRIC / bits) + 1, WORD[1])
        if name in ("laplace", "normal"):
            reach = (_LAPLACE if name == "laplace" else _NORMAL) << highs[0]
            return -reach - 1, reach
        return _BITS  # coins, hashes to bits, and vectors with a single one

    # -- lengths --------------------------------------------------------------------------------------

    def size_of(self, expression: Expression) -> int | None:
        """Return the length of an expression that is a vector, None of one that is a number.

        Raises:
            VaryingSizeError: the length depends on the answer or on a draw, or two lengths differ.
        """
        if literal(expression) is not None:
            return None
        if isinstance(expression, str):
            return self.sizes[expression]
        name, *given = expression  # type: ignore[misc]
        if name == "list":
            return len(given)
        if name == "at":
            return self.rows.get(given[0]) if isinstance(given[0], str) else None
        if FORMS[name].gives == "each":
            sizes = {size for each in given if (size := self.size_of(each)) is not None}
            if len(sizes) > 1:
                raise VaryingSizeError(f"vectors must have one length: got {sorted(sizes)}")
            return next(iter(sizes), None)
        if name in ("bits_each", "shuffle", "put", "sort", "floyd"):
            return self.size_of(given[0])
        places = [place for place, wanted in enumerate(FORMS[name].takes) if wanted == "size"]
        if name == "bloom":
            places = [FORMS[name].takes.index("filter")]
        return self.constant(given[places[0]]) if places else None

    def constant(self, expression: Expression) -> int:
        """Return the only value of an expression. Raises `VaryingSizeError` if there may be several."""
        low, high = self.of(expression)
        if low != high:
            raise VaryingSizeError(f"a length must be fixed: got one from {low} to {high}")
        return low

    # -- lists of all answers -------------------------------------------------------------------------

    def _listed_span(self, expression: Expression) -> Span | None:
        listed = self._listed(expression)
        return None if listed is None or not listed.size else (int(listed.min()), int(listed.max()))

    def _listed(self, expression: Expression) -> Any:
        """Return an expression of the answer alone for every answer, int64, or None.

        Each operation is done in 64 bits only if its result surely fits.
        """
        number = literal(expression)
        if number is not None:
            return np.int64(number) if within((number, number), WORD) else None
        if isinstance(expression, str):
            if expression not in self._listings:
                self._listings[expression] = self._listed_name(expression)
            return self._listings[expression]
        name, *given = expression  # type: ignore[misc]
        if name == "at" and isinstance(given[0], str) and given[0] in self._tables and given[0] not in self.rows:
            return self._looked_up(*given)
        if name not in _EXACT:
            return None
        parts = [self._listed(each) for each in given]
        if any(part is None for part in parts):
            return None
        ends = [(int(part.min()), int(part.max())) for part in parts]
        return _EXACT[name](*parts) if within(_BINARY[name](*ends), WORD) else None

    def _listed_name(self, name: str) -> Any:
        if name == "value":
            last = self.of_name[name][1]
            return np.arange(last + 1, dtype=np.int64) if last < _MOST_LISTED else None
        return self._listed(self._definitions[name]) if name in self._definitions else None

    def _looked_up(self, table: str, place: Expression) -> Any:
        places = self._listed(place)
        inside = places is not None and places.min() >= 0 and places.max() < len(self._tables[table])
        fits = inside and within(self.of_name[table], WORD)
        return np.array(self._tables[table], np.int64)[places] if fits else None


# -- intervals -------------------------------------------------------------------------------------------------------


def _corners(operation: Any) -> Any:
    """Return the interval function of an operation that is monotone in each number when the other is fixed."""

    def of(first: Span, second: Span) -> Span:
        found = [operation(a, b) for a in first for b in second]
        return min(found), max(found)

    return of


def _masked(first: Span, second: Span) -> Span:
    return 0, min(first[1], second[1])


def _exclusive(first: Span, second: Span) -> Span:
    return 0, (1 << max(first[1], second[1]).bit_length()) - 1


def _left_over(first: Span, second: Span) -> Span:
    if first[0] >= 0 and first[1] < second[0]:
        return first
    return 0, min(first[1], second[1] - 1) if first[0] >= 0 else second[1] - 1


_BINARY: dict[str, Any] = {
    "add": _corners(int.__add__),
    "sub": _corners(int.__sub__),
    "mul": _corners(int.__mul__),
    "div": _corners(int.__floordiv__),
    "shr": _corners(int.__rshift__),
    "shl": _corners(int.__lshift__),
    "min": _corners(min),
    "max": _corners(max),
    "and": _masked,
    "xor": _exclusive,
    "mod": _left_over,
}
_UNIONS = frozenset(("list", "at", "put", "sort", "shuffle", "floyd"))
_EXACT: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


def _wanted(name: str, count: int) -> Iterable[str]:
    takes = FORMS[name].takes
    return ["any"] * count if name == "list" else takes[takes[0] == "text" :]


def _clamped(name: str, wanted: str, span: Span) -> Span:
    """Return the part of a range for which an operator is defined, as a run outside it has no report."""
    least, most = RANGES.get(wanted, span)
    if span[1] < least or span[0] > most:
        raise VaryingSizeError(f"{name} must have a {wanted} from {least} to {most}: never has")
    return max(span[0], least), min(span[1], most)


def _limited(span: Span) -> Span:
    """Return the part of a range between -HUGE and HUGE."""
    if span[1] <= -HUGE or span[0] >= HUGE:
        raise VaryingSizeError("a number of a program must have at most 4096 bits: never has")
    return max(span[0], 1 - HUGE), min(span[1], HUGE - 1)


def _union(spans: list[Span]) -> Span:
    return reduce(lambda a, b: (min(a[0], b[0]), max(a[1], b[1])), spans) if spans else (0, 0)


def _in_a_word(span: Span) -> bool:
    """Return True if a machine word holds the range, signed or unsigned."""
    return within(span, WORD) or within(span, (0, 2**64 - 1))


def within(span: Span, other: Span) -> bool:
    """Return True if a range is a part of another one."""
    return other[0] <= span[0] and span[1] <= other[1]
