"""The operators of client programs over columns: arithmetic number by number, and operators on whole vectors.

Each builder takes a `Call`, whose arguments are compiled and checked, and returns the column of the result. An argument
that is `fresh` is used up by the call: its array may become the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._columns import BIT, LONG, Column, aligned, cast, filled, type_for
from .parities import parities

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._columns import Array, Kind, Lot
    from .client_program import Expression
    from .value_ranges import Span


@dataclass(frozen=True)
class Call:
    """An operator with its compiled arguments, without the label.

    Parameters:
        name: the operator.
        arguments: the expressions of the arguments.
        columns: the columns of the arguments.
        span: the range of the result.
        size: its length, None of a number.
        word: the type that holds most numbers of the program.
        label: the label of a kept draw, or the seed of a hash.
    """

    name: str
    arguments: list[Expression]
    columns: list[Column]
    span: Span
    size: int | None
    word: Kind
    label: str = ""

    def result(self, kind: Kind, get: Callable[[Lot], Array]) -> Column:
        """Return the column of a result in a new array."""
        return Column(self.span, self.size, kind, get, fresh=True)


# -- number by number ------------------------------------------------------------------------------------------------


_ARITHMETIC: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.floor_divide,
    "mod": np.remainder,
    "shr": np.right_shift,
    "shl": np.left_shift,
    "and": np.bitwise_and,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
}
_ON_BITS = frozenset(("and", "xor", "min", "max"))
_COMPARED: dict[str, Any] = {"lt": np.less, "ge": np.greater_equal, "eq": np.equal}


def arithmetic(call: Call) -> Column:
    """Compile an operator on two numbers, or on vectors place by place."""
    first, second = call.columns
    bits = first.kind is BIT and second.kind is BIT and call.name in _ON_BITS
    kind = BIT if bits else type_for([first.span, second.span, call.span], call.word)
    operation, divisor = _ARITHMETIC[call.name], second.number
    if call.name in ("div", "mod") and divisor and first.span[0] >= 0 and divisor & (divisor - 1) == 0:
        # Shifts and masks are several times faster than divisions.
        operation, number = (
            (np.right_shift, divisor.bit_length() - 1) if call.name == "div" else (np.bitwise_and, divisor - 1)
        )
        second = Column((number, number), None, kind, lambda lot: number, constant=number)
    parts = [aligned(cast(each, kind), call.size) for each in (first, second)]
    a, b = (part.get for part in parts)
    spare = next((place for place, part in enumerate(parts) if _spare(part, call.size, kind)), None)
    if kind is object:
        return _narrowed(call, lambda lot: operation(a(lot), b(lot)))
    if spare is None:
        return call.result(kind, lambda lot: operation(a(lot), b(lot)))

    def in_place(lot: Lot) -> Array:
        pair = (a(lot), b(lot))
        return operation(*pair, out=pair[spare])

    return call.result(kind, in_place)


def _spare(part: Column, size: int | None, kind: Kind) -> bool:
    """Return True if the array of a part may hold the result."""
    return part.fresh and part.constant is None and part.size == size and part.kind is kind


def _narrowed(call: Call, get: Callable[[Lot], Array]) -> Column:
    """Return the column of Python integers in a machine type, if one holds the result."""
    kind = type_for([call.span], call.word)
    return call.result(kind, get if kind is object else lambda lot: get(lot).astype(kind))


def comparison(call: Call) -> Column:
    """Compile a comparison, whose result is a bit."""
    first, second = call.columns
    if not first.kind is second.kind is BIT:
        kind = type_for([first.span, second.span], call.word)
        first, second = cast(first, kind), cast(second, kind)
    a, b = (aligned(each, call.size).get for each in (first, second))
    compared = _COMPARED[call.name]
    if first.kind is object:
        return call.result(BIT, lambda lot: compared(a(lot), b(lot)).astype(BIT))
    return call.result(BIT, lambda lot: compared(a(lot), b(lot)))


def where(call: Call) -> Column:
    """Compile a choice between two values, both of which are worked out."""
    flags, first, second = call.columns
    if first.kind is second.kind is BIT:
        return _where_bits(call)
    kind = type_for([first.span, second.span], call.word)
    parts = [aligned(cast(each, kind), call.size) for each in (first, second)]
    chosen, (a, b) = _flags(flags, call.size), [_typed(part, kind) for part in parts]
    if kind is object:
        return call.result(kind, lambda lot: np.where(chosen(lot), a(lot), b(lot)))
    spare, full = (
        _spare(parts[0], call.size, kind),
        any(part.constant is None and part.size == call.size for part in parts),
    )
    return call.result(kind, lambda lot: _select(chosen(lot), a(lot), b(lot), spare=spare, full=full))


def _select(chosen: Array, first: Array, second: Array, *, spare: bool, full: bool) -> Array:
    """Return `first` where `chosen`, else `second`, as second ^ ((first ^ second) & chosen).

    Nothing branches on random bits, which is several times faster. `spare`: `first` may be overwritten. `full`: the
    two together have the shape of the result.
    """
    mixed = np.bitwise_xor(first, second, out=first if spare else None)
    into = mixed if full and isinstance(mixed, np.ndarray) else None
    mixed = np.multiply(mixed, chosen, out=into)
    return np.bitwise_xor(mixed, second, out=mixed)


def _where_bits(call: Call) -> Column:
    """Compile a choice between bits."""
    chosen = _flags(call.columns[0], call.size)
    a, b = (aligned(each, call.size).get for each in call.columns[1:])
    same = all(each.size == call.size for each in call.columns)

    def step(lot: Lot) -> Array:
        mask, first, second = chosen(lot), a(lot), b(lot)
        mixed = first ^ second
        if not same:
            return second ^ (mixed & mask)
        mixed &= mask
        mixed ^= second
        return mixed

    return call.result(BIT, step)


def _flags(column: Column, size: int | None) -> Callable[[Lot], Array]:
    """Return a function that computes a column of zeros and ones as booleans."""
    get = aligned(column, size).get
    return get if column.kind is BIT else lambda lot: np.not_equal(get(lot), 0)


def _typed(column: Column, kind: Kind) -> Callable[[Lot], Array]:
    """Return the function of a column whose numbers have the type, also where they are constant."""
    number = column.number
    if number is None:
        return column.get
    typed = np.array(number, object) if kind is object else kind(number)
    return lambda lot: typed


def parity(call: Call) -> Column:
    """Compile the parity of the ones of a number."""
    (column,) = call.columns
    get = column.get
    if column.kind is BIT:
        return call.result(BIT, lambda lot: get(lot).copy())
    if column.kind is object:
        odd = np.frompyfunc(lambda number: number.bit_count() & 1, 1, 1)
        return call.result(BIT, lambda lot: odd(get(lot)).astype(BIT))
    return call.result(BIT, lambda lot: parities(get(lot)).view(BIT))


# -- with whole vectors ----------------------------------------------------------------------------------------------


_FEW = 16
"""Entries of a vector up to which one column after the other is faster than one row after the other."""
_SOME = 256
"""The same where each entry is compared with all before it."""


def listed(call: Call) -> Column:
    """Compile a vector of numbers."""
    bits = all(each.kind is BIT for each in call.columns)
    kind = BIT if bits else type_for([call.span], call.word)
    gets, size = [each.get for each in call.columns], len(call.columns)

    def step(lot: Lot) -> Array:
        rows = np.empty((size, lot.n), kind)
        for row, get in zip(rows, gets, strict=True):
            row[:] = get(lot)
        return rows.T

    return call.result(kind, step)


def at(call: Call) -> Column:
    """Compile an entry of a vector, or a row of a table."""
    vector, place = call.columns
    number = place.number
    if place.kind is BIT:  # numpy would take it for a mask
        place = cast(place, np.uint8)
    if place.kind is np.uint64:
        place = cast(place, LONG)
    index = place.get
    if vector.constant is not None:
        kind = type_for([call.span], call.word)
        table = np.array(vector.constant, kind)
        return call.result(kind, lambda lot: table.take(index(lot), axis=0))
    get = vector.get
    if number is not None:
        return call.result(vector.kind, lambda lot: get(lot)[:, number].copy())
    return call.result(vector.kind, lambda lot: get(lot)[lot.rows, index(lot)])


def put(call: Call) -> Column:
    """Compile a vector in which one entry is replaced."""
    vector, place, number = call.columns
    kind = BIT if vector.kind is number.kind is BIT else type_for([call.span], call.word)
    if place.kind in (BIT, np.uint64):
        place = cast(place, LONG)
    own, index, replaced = _owned(vector, kind), place.get, cast(number, kind).get
    constant = place.number

    def step(lot: Lot) -> Array:
        chosen, entry, rows = index(lot), replaced(lot), own(lot)
        if constant is None:
            rows[lot.rows, chosen] = entry
        else:
            rows[:, constant] = entry
        return rows

    return call.result(kind, step)


def _owned(column: Column, kind: Kind) -> Callable[[Lot], Array]:
    """Return a function that computes a column as an array that may be written to."""
    if column.constant is not None:
        return filled(column, kind)
    typed = cast(column, kind)
    get = typed.get
    return get if typed.fresh else lambda lot: get(lot).copy()


def sort(call: Call) -> Column:
    """Compile the vector in ascending order."""
    (vector,) = call.columns
    own = _owned(vector, vector.kind)

    def step(lot: Lot) -> Array:
        rows = own(lot)
        rows.sort(axis=1)
        return rows

    return call.result(vector.kind, step)


def first(call: Call) -> Column:
    """Compile the place of the first one."""
    (vector,) = call.columns
    if not vector.size:
        return call.result(LONG, lambda lot: np.zeros(lot.n, LONG))
    ones, kind, size = _flags(vector, None), type_for([call.span], call.word), vector.size

    def step(lot: Lot) -> Array:
        flags = ones(lot)
        if size > _FEW:
            return flags.argmax(axis=1).astype(kind)
        found: Array = np.zeros(lot.n, kind)
        for place in reversed(range(size)):  # the last one to be written is the first
            found ^= (found ^ kind(place)) * flags[:, place]
        return found

    return call.result(kind, step)


def onehot(call: Call) -> Column:
    """Compile a vector with a single one."""
    place, size = call.columns[0], call.size or 0
    index = (cast(place, LONG) if place.kind in (BIT, np.uint64) else place).get

    def step(lot: Lot) -> Array:
        rows = np.zeros((lot.n, size), BIT)
        rows[lot.rows, index(lot)] = True
        return rows

    return call.result(BIT, step)


def join(call: Call) -> Column:
    """Compile the number whose bits a vector has."""
    (vector,) = call.columns
    kind = type_for([call.span], call.word)
    get = cast(vector, kind).get

    def step(lot: Lot) -> Array:
        total = np.zeros(lot.n, kind)
        for place, column in enumerate(get(lot).T):
            total += column << place
        return total

    return call.result(kind, step)


def floyd(call: Call) -> Column:
    """Compile Floyd's replacement of entries that occurred before."""
    vector, least = call.columns
    kind = type_for([call.span], call.word)
    own, get, size = _owned(vector, kind), cast(least, kind).get, vector.size or 0
    small = call.span[0] >= 0 and call.span[1] < 1 << 20

    def fits(lot: Lot) -> bool:
        return small and lot.n * (call.span[1] + 1) < 1 << 26

    def by_column(lot: Lot) -> Array:
        rows, lowest = own(lot), get(lot)
        columns = rows.T
        used = np.zeros((lot.n, call.span[1] + 1), BIT) if size > _FEW and fits(lot) else None
        for place, column in enumerate(columns):
            if used is not None:
                repeated = used[lot.rows, column]
            else:
                repeated = np.zeros(lot.n, BIT)
                for earlier in columns[:place]:
                    repeated |= earlier == column
            if place:
                np.copyto(column, lowest + (place - 1), where=repeated, casting="unsafe")
            if used is not None:
                used[lot.rows, column] = True
        return rows

    def by_row(lot: Lot) -> Array:
        rows = own(lot)
        for row, lowest in zip(rows, np.broadcast_to(get(lot), lot.n).tolist(), strict=True):
            entries, used = row.tolist(), set[int]()
            for place, entry in enumerate(entries):
                if entry in used:
                    entries[place] = entry = lowest + (place - 1)
                used.add(entry)
            row[:] = entries
        return rows

    return call.result(kind, lambda lot: by_column(lot) if size <= _SOME or fits(lot) else by_row(lot))


def rank(call: Call) -> Column:
    """Compile the number of entries of an ascending vector that are at most a number."""
    vector, number = call.columns
    entries = vector.constant
    if isinstance(entries, list) and entries == sorted(entries):
        kind = type_for([vector.span, number.span], LONG)
        table, get = np.array(entries, kind), cast(number, kind).get
        return call.result(LONG, lambda lot: table.searchsorted(get(lot), side="right"))
    kind = type_for([vector.span, number.span], call.word)
    all_rows, get = filled(vector, kind), cast(aligned(number, vector.size), kind).get

    def step(lot: Lot) -> Array:
        rows = all_rows(lot)
        if (rows[:, 1:] < rows[:, :-1]).any():
            raise ValueError("rank must have a vector that ascends")
        return (rows <= get(lot)).sum(axis=1)

    return call.result(LONG, step)


def rank_in_rows(call: Call, table: list[list[int]], place: Column, number: Column) -> Column | None:
    """Compile `rank` in a row of a table, with one search for all users of a row; None unless all rows ascend."""
    if any(row != sorted(row) for row in table):
        return None
    flat = [entry for row in table for entry in row]
    kind = type_for([(min(flat, default=0), max(flat, default=0)), number.span], LONG)
    rows, chosen = [np.array(row, kind) for row in table], cast(place, LONG).get
    get = filled(number, kind)

    def step(lot: Lot) -> Array:
        numbers, places = get(lot), chosen(lot)
        found = np.empty(lot.n, LONG)
        users = np.argsort(places, kind="stable")
        ends = np.cumsum(np.bincount(places, minlength=len(rows)))
        start = 0
        for row, end in zip(rows, ends.tolist(), strict=True):
            if end > start:
                same = users[start:end]
                found[same] = row.searchsorted(numbers[same], side="right")
            start = end
        return found

    return call.result(LONG, step)


BUILDERS: dict[str, Callable[[Call], Column]] = {
    **dict.fromkeys(_ARITHMETIC, arithmetic),
    **dict.fromkeys(_COMPARED, comparison),
    "where": where,
    "parity": parity,
    "list": listed,
    "at": at,
    "put": put,
    "sort": sort,
    "first": first,
    "onehot": onehot,
    "join": join,
    "floyd": floyd,
    "rank": rank,
}
