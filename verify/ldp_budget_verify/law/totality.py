"""A proof that no run of a client program fails: bounds of every number that any step may come to, for all answers.

A report that is missing reveals something of the answer. The checks that list laws run every step for the answers that
they list. Where a few answers, or the cells of a hash, stand for all, the steps that make them are not run for each
answer, and a step that the report does not need may be left out. `cannot_fail` covers all of these at once. It is
cautious: it gives up at draws without bounds, and where bounds alone do not decide.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget.sdk.client_program import OPERATORS, Ascending
from ldp_budget.sdk.operator_forms import HUGE, MOST, check_draw, check_ranges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ldp_budget.sdk.client_program import Expression, Program


_LARGEST_DOUBLE = 2**1023


class _MayFail(Exception):  # noqa: N818 - a reason to give up, no error
    pass


class _Bounds(NamedTuple):
    """The least and the largest of a number, or of the entries of a vector of `size`, or of the rows of a table."""

    low: int
    high: int
    size: int | None = None
    ascending: bool = False
    rows: int | None = None


def cannot_fail(program: Program) -> bool:
    """Return True if every step is defined for every answer and every outcome of the draws, and the report holds it."""
    return bounds_of(program) is not None


def bounds_of(program: Program) -> dict[str, _Bounds] | None:
    """Return bounds of every step, for every answer and every outcome of the draws; None if a run may fail."""
    known = {"value": _Bounds(0, _answers(program) - 1)}
    try:
        known |= {name: _of_table(table) for name, table in program.table_values.items()}
        for name, expression in program.steps:
            known[name] = _of(expression, known)
        for part in program.report["parts"]:
            _check_part(part, known[part[1]])
    except _MayFail:
        return None
    return known


def _answers(program: Program) -> int:
    given = program.input
    if given["kind"] == "word":
        return int(256 ** int(given["length"]))
    return int(given["count"]) if given["kind"] == "answer" else int(given["last"]) + 1


def _of_table(table: list[Any]) -> _Bounds:
    if table and isinstance(table[0], list):
        rows = [_of_table(row) for row in table]
        return _hull(rows)._replace(size=rows[0].size, ascending=all(row.ascending for row in rows), rows=len(rows))
    if not table:
        return _Bounds(0, 0, 0, ascending=True)
    return _Bounds(min(table), max(table), len(table), isinstance(table, Ascending) or table == sorted(table))


def _hull(bounds: Iterable[_Bounds]) -> _Bounds:
    listed = list(bounds)
    return _Bounds(min(each.low for each in listed), max(each.high for each in listed))


def _need(holds: bool) -> None:
    if not holds:
        raise _MayFail


def _check_part(part: list[Any], bounds: _Bounds) -> None:
    kind, _, *sizes = part
    if kind == "float64":
        origin, step, plus = Fraction(sizes[0]), Fraction(sizes[1]), int(sizes[2])
        _need(abs(origin) + abs(step) * max(abs(bounds.low + plus), abs(bounds.high + plus)) < _LARGEST_DOUBLE)
        return
    largest = 1 if kind == "packed" else 256 ** sizes[0] - 1
    _need((1 if bounds.size is None else bounds.size) == sizes[-1])
    _need(not sizes[-1] or (bounds.low >= 0 and bounds.high <= largest))


def _of(expression: Expression, known: dict[str, _Bounds]) -> _Bounds:
    if not isinstance(expression, list):
        if isinstance(expression, str) and expression in known:
            return known[expression]
        return _Bounds(int(expression), int(expression))
    name, *arguments = expression
    operator = OPERATORS[name]
    given = [_of(argument, known) for argument in arguments[operator.labelled :]]
    _check_arguments(name, operator.kind in ("draw", "memo"), given)
    if operator.kind == "each":
        sizes = {each.size for each in given if each.size is not None}
        _need(len(sizes) <= 1)
        found = _each(name, given)._replace(size=sizes.pop() if sizes else None)
    elif operator.kind == "whole":
        found = _whole(name, given)
    else:
        found = _drawn(name, given)
    _need(found.low > -HUGE and found.high < HUGE)
    return found


def _check_arguments(name: str, draws: bool, given: list[_Bounds]) -> None:
    """Both ends of all arguments must be in their ranges. Entries of vectors are checked like numbers."""
    check = check_draw if draws else check_ranges
    try:
        for side in (0, 1):
            check(name, [[each[side]] * bool(each.size) if each.size is not None else each[side] for each in given])
    except ValueError:
        raise _MayFail from None


def _corners(name: str, a: _Bounds, b: _Bounds) -> _Bounds:
    _need(name not in ("shl", "shr") or b.high <= HUGE.bit_length())
    operate = {
        "add": int.__add__, "sub": int.__sub__, "mul": int.__mul__, "div": int.__floordiv__,
        "shr": int.__rshift__, "shl": int.__lshift__,
    }[name]  # fmt: skip
    ends = [operate(one, other) for one in a[:2] for other in b[:2]]
    return _Bounds(min(ends), max(ends))


def _each(name: str, given: list[_Bounds]) -> _Bounds:
    a, b = given[0], given[-1]
    if name in ("add", "sub", "mul", "div", "shr", "shl"):
        return _corners(name, a, b)
    if name == "mod":
        return _Bounds(a.low, a.high) if a.low >= 0 and a.high < b.low else _Bounds(0, b.high - 1)
    if name == "and":
        return _Bounds(0, min(a.high, b.high))
    if name == "xor":
        return _Bounds(0, (1 << max(a.high, b.high).bit_length()) - 1)
    if name in ("min", "max"):
        choose = min if name == "min" else max
        return _Bounds(choose(a.low, b.low), choose(a.high, b.high))
    return _hull(given[1:]) if name == "where" else _Bounds(0, 1)


def _size(bounds: _Bounds) -> int:
    """A length that is the same for all answers and draws."""
    _need(bounds.low == bounds.high and 0 <= bounds.low <= MOST)
    return bounds.low


def _whole(name: str, given: list[_Bounds]) -> _Bounds:
    if name == "list":
        ascending = all(one.high <= other.low for one, other in pairwise(given))
        return (_hull(given) if given else _Bounds(0, 0))._replace(size=len(given), ascending=ascending)
    vector, size = given[0], given[0].size or 0
    if name == "at":
        _need(given[1].low >= 0 and given[1].high < (size if vector.rows is None else vector.rows))
        return vector._replace(rows=None) if vector.rows is not None else _Bounds(vector.low, vector.high)
    if name == "put":
        _need(given[1].low >= 0 and given[1].high < size)
        return _hull([vector, given[2]])._replace(size=size)
    if name == "sort":
        return _Bounds(vector.low, vector.high, size, ascending=True)
    if name == "rank":
        _need(vector.ascending)
        return _Bounds(0, size)
    if name == "onehot":
        length = _size(given[1])
        _need(vector.low >= 0 and vector.high < length)
        return _Bounds(0, 1, length)
    if name == "floyd":
        ends = [_Bounds(given[1].low - 1, given[1].high - 2 + max(size, 1)), vector]
        return _hull(ends)._replace(size=size)
    _need(name == "first" or size < HUGE.bit_length())
    return _Bounds(0, max(0, size - 1)) if name == "first" else _Bounds(0, (1 << size) - 1)


def _drawn(name: str, given: list[_Bounds]) -> _Bounds:
    """Bounds of a draw, or of a public hash."""
    if name in ("bit", "bit_at"):
        return _Bounds(0, 1)
    if name == "bits_each":
        return _Bounds(0, 1, given[0].size)
    if name in ("bits", "kept_bits", "bloom"):
        return _Bounds(0, 1, _size(given[-2 if name == "bloom" else -1]))
    if name in ("below", "polynomial"):
        return _Bounds(0, given[-1].high - 1)
    if name in ("belows", "belows_from", "kept_belows"):
        size = _size(given[-1])
        return _Bounds(0, given[-2].high - 1 + (0 if name == "belows" else max(0, size - 1)), size)
    if name == "subset":
        _need(given[0].low == given[0].high)
        return _Bounds(0, given[0].high - 1, _size(given[1]), ascending=True)
    if name == "shuffle":
        return given[0]._replace(ascending=False)
    _need(name == "kept_top" and given[1].low == given[1].high)
    return _Bounds(0, (1 << given[1].high) - 1)
