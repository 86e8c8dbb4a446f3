"""Columns: the values of one expression for many users, as numpy arrays of the smallest type that holds its range.

A column of numbers is an array (n,), of vectors of one length an array (n, size). Coins and comparisons are booleans,
other numbers are unsigned or signed integers of 8 to 64 bits. Beyond 64 bits they are Python integers in an array of
objects. An expression that is the same for all users is a constant: a Python integer, or an array (size,).

Arithmetic in a type is exact only if the type holds all arguments and the result; `type_for` chooses it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .operator_forms import HUGE, RANGES
from .value_ranges import WORD, Span, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..sampling import Stream

Array: TypeAlias = Any
"""An array with a row for each user; or a constant."""
Kind: TypeAlias = Any
"""A numpy type of whole numbers; `object` for numbers of more than 64 bits."""

BIT, WIDE, LONG = np.bool_, np.uint64, np.int64
_LIMITS = [(kind, int(np.iinfo(kind).max)) for kind in (np.uint8, np.uint16, np.uint32, np.int64, np.uint64)]


class Lot:
    """The users who are drawn together, and what their steps have found so far."""

    __slots__ = ("_rows", "columns", "context", "n", "secrets", "stream", "total")

    def __init__(self, n: int, total: int, stream: Stream | None, secrets: list[bytes] | None, context: str) -> None:
        self.n = n
        self.total = total
        """The users of the whole call, for which a table may be worth its time."""
        self.stream: Any = stream
        self.secrets = secrets
        self.context = context
        self.columns: list[Array] = []
        self._rows: Array = None

    @property
    def rows(self) -> Array:
        """The numbers 0..n-1 of the users."""
        if self._rows is None:
            self._rows = np.arange(self.n)
        return self._rows


@dataclass(frozen=True)
class Column:
    """An expression that is compiled.

    Parameters:
        span: the least and the largest value.
        size: the length of a vector, None of a number.
        kind: the type of the array.
        get: computes the array for a lot of users.
        fresh: True if no other expression uses the array, so that a result may overwrite it.
        constant: the value, for an expression that is the same for all users: a number or a list.
    """

    span: Span
    size: int | None
    kind: Kind
    get: Callable[[Lot], Array]
    fresh: bool = False
    constant: int | list[Any] | None = None

    @property
    def number(self) -> int | None:
        """The value of a constant number."""
        return self.constant if isinstance(self.constant, int) else None


def constant(value: Any) -> Column:
    """Return the column of a number, a vector, or a table of vectors that is the same for all users."""
    if isinstance(value, int):
        return Column((value, value), None, kind_of((value, value)), lambda lot: value, constant=value)
    flat = [n for row in value for n in (row if isinstance(row, list) else [row])]
    span = (min(flat, default=0), max(flat, default=0))
    kind = LONG if within(span, WORD) else kind_of(span)
    array = np.array(value, kind)
    array.flags.writeable = False
    return Column(span, len(value), kind, lambda lot: array, constant=value)


def kind_of(span: Span) -> Kind:
    """Return the smallest type that holds a range."""
    low, high = span
    if low < 0:
        return np.int32 if within(span, (-(2**31), 2**31 - 1)) else LONG if within(span, WORD) else object
    return next((kind for kind, most in _LIMITS if high <= most), object)


def holds(kind: Kind, span: Span) -> bool:
    """Return True if a type holds a range."""
    if kind is object:
        return True
    if kind is BIT:
        return within(span, (0, 1))
    return within(span, (int(np.iinfo(kind).min), int(np.iinfo(kind).max)))


def type_for(spans: Sequence[Span], word: Kind) -> Kind:
    """Return `word` if it holds all of these ranges, else the smallest type of 64 bits or more that does."""
    low, high = min(span[0] for span in spans), max(span[1] for span in spans)
    return next(kind for kind in (word, LONG, WIDE, object) if holds(kind, (low, high)))


def cast(column: Column, kind: Kind) -> Column:
    """Return the column in another type, which must hold its range."""
    if column.kind is kind or column.constant is not None:
        if column.constant is None or column.number is not None or column.kind is kind:
            return column
        array = np.array(column.constant, kind)
        return replace(column, kind=kind, get=lambda lot: array)
    get = column.get
    if column.kind is BIT and kind is np.uint8:
        return replace(column, kind=kind, get=lambda lot: get(lot).view(np.uint8))
    if kind is object and column.kind is BIT:
        return replace(column, kind=kind, get=lambda lot: get(lot).astype(np.uint8).astype(object), fresh=True)
    return replace(column, kind=kind, get=lambda lot: get(lot).astype(kind), fresh=True)


def aligned(column: Column, size: int | None) -> Column:
    """Return a column of numbers in a shape that combines with vectors of `size`."""
    if size is None or column.size is not None or column.constant is not None:
        return column
    get = column.get
    return replace(column, get=lambda lot: get(lot)[:, np.newaxis], fresh=False)


def filled(column: Column, kind: Kind | None = None) -> Callable[[Lot], Array]:
    """Return a function that computes the column as a whole array, also where it is constant."""
    get, size = column.get, column.size
    chosen = column.kind if kind is None else kind
    if column.constant is None:
        return cast(column, chosen).get
    return lambda lot: np.full((lot.n,) if size is None else (lot.n, size), get(lot), chosen)


def checked(name: str, wanted: str, column: Column, tight: Callable[[], Span], size: int | None = None) -> Column:
    """Return the column of an argument, which refuses numbers for which the operator is not defined.

    `size`: for a place, the length of the vector.
    """
    least, most = (0, (size or 0) - 1) if wanted == "place" else RANGES.get(wanted, column.span)
    if within(column.span, (least, most)) or (column.constant is None and within(tight(), (least, most))):
        return replace(column, span=(max(column.span[0], least), min(column.span[1], most)))
    what = f"{name} must have a {wanted} from {least} to {most}"
    if column.constant is not None:
        raise ValueError(f"{what}: got {column.constant}")
    return bounded(column, (least, most), what)


def bounded(column: Column, span: Span, what: str) -> Column:
    """Return the column, which raises ValueError with `what` for a number that is not in the range."""
    (least, most), get = span, column.get
    low, high = least > column.span[0], most < column.span[1]

    def refuse_others(lot: Lot) -> Array:
        found = get(lot)
        numbers = np.asarray(found)
        if not numbers.size:
            return found
        smallest = numbers.min() if low else least
        if smallest < least or (high and numbers.max() > most):
            wrong = int(smallest if smallest < least else numbers.max())
            raise ValueError(f"{what}: got {wrong if -HUGE < wrong < HUGE else 'a number of more than 4096 bits'}")
        return found

    return replace(column, get=refuse_others, span=(max(column.span[0], least), min(column.span[1], most)))
