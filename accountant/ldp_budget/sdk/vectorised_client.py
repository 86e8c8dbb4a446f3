"""The vectorised client: a client program, run for many users at once.

`VectorisedClient` compiles a program once: each step becomes a function on columns of users (`_columns`). From the
ranges of all values, known before anything is drawn, it chooses the smallest type for each column, and leaves out the
checks that cannot fail. A step that uses a column for the last time overwrites it. Users are drawn in lots, whose
columns stay in the cache.

A program whose vectors have no fixed length, or that fails for certain, is run by the reference interpreter, one user
after the other. So every program runs, and what the interpreter refuses is refused.

The bytes of one user are those of the interpreter, from the same stream and secret. Of several users, a step draws for
the whole lot before the next step, so their reports depend on `lot`.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..sampling.memoisation import secrets_for_each
from . import _vectorised_draws, _vectorised_hashes, _vectorised_operators
from ._columns import BIT, LONG, Column, Lot, bounded, cast, checked, constant, filled, kind_of, type_for
from ._vectorised_operators import Call, rank_in_rows
from .client_program import DRAWS, OPERATORS, Program, record
from .interpreter import StreamDraws, evaluate, pack_rows, run
from .operator_forms import FORMS, HUGE
from .value_ranges import WORD, ValueRanges, last_of, literal, names_in, within

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ..sampling.rng import Stream
    from ._columns import Array
    from .client_program import Expression

_MOST_USERS, _MOST_BITS = 1 << 16, 1 << 18
_BUILDERS = {**_vectorised_operators.BUILDERS, **_vectorised_draws.BUILDERS, **_vectorised_hashes.BUILDERS}
_PLACES = frozenset((("at", 1), ("put", 1), ("onehot", 0)))


class VectorisedClient:
    """A program for many users.

    Parameters:
        program: the client program.
        context: the context of memoised draws, a mechanism's fingerprint.
        lot: the most users who are drawn together; by default as many as have 2**18 entries in their longest vector,
            at most 2**16.
    """

    def __init__(self, program: Program, *, context: str = "", lot: int | None = None) -> None:
        self.program = program
        self.context = context
        self.last = last_of(program)
        self._dtype, self._shape = np.dtype(program.report["dtype"]), tuple(program.report["shape"])
        self._fits = self._dtype.itemsize * math.prod(self._shape) == program.size
        try:
            compiler = _Compiler(program)
            self._steps = [compiler.step(place) for place in range(len(program.steps))]
            self._report: list[_Part] = [compiler.part(part) for part in program.report["parts"]]
        except ValueError:
            self._steps, self._report = [], []
            self.lot = lot or 1
            return
        self._kind = compiler.columns["value"].kind
        self.lot = lot or max(1, min(_MOST_USERS, _MOST_BITS // _padded(compiler.longest)))

    def read(self, answers: Any) -> NDArray[Any]:
        """Return the whole numbers to which answers of the domain are mapped, shape (n,).

        Parameters:
            answers: an array of checked answers, as `Domain.check` returns them.
        """
        given = self.program.input
        if given["kind"] != "number":
            return np.asarray(answers)
        points = np.asarray(answers, np.float64) - float(given["lower"])
        if "times" in given:
            points *= float(given["times"])
            np.rint(points, out=points)
        else:
            points /= float(given["step"])
            np.floor(points, out=points)
        np.clip(points, 0, int(given["last"]), out=points)
        return points.astype(np.int64)

    @functools.cached_property
    def draws(self) -> bool:
        """True if a step draws from the stream."""
        return any(OPERATORS[step[0]].kind == "draw" for _, step in self.program.steps if isinstance(step, list))

    def __call__(self, values: Any, stream: Stream | None, secrets: Any = None) -> NDArray[Any]:
        """Return the reports of users.

        Parameters:
            values: whole numbers as `read` returns them, shape (n,).
            stream: the source of random bytes; may be None if nothing is drawn from it.
            secrets: for a program with a memo, bytes, or one secret for each value; see `memo_words`.

        Returns:
            An array whose rows have the shape and the type of the program's report.

        Raises:
            ValueError: a value is not in the input of the program, or a step is not defined for its numbers.
            InvalidParameter: the program has a memo, and `secrets` are not secrets.
        """
        values = np.asarray(values)
        count = len(values)
        self._check(values)
        own = secrets_for_each(secrets, count) if self.program.memo else None
        if not self._report:
            return self._one_by_one(values, stream, own)
        rows = np.empty((count, self.program.size), np.uint8)
        reports = self._shaped(rows)
        for start in range(0, count, self.lot):
            part = slice(start, min(start + self.lot, count))
            lot = Lot(part.stop - start, count, stream, None if own is None else own[part], self.context)
            lot.columns.append(values[part].astype(self._kind))
            for step in self._steps:
                lot.columns.append(step(lot))
            at = 0
            for size, put in self._report:
                put(lot, rows[part, at : at + size])
                at += size
        return reports

    def _check(self, values: NDArray[Any]) -> None:
        """Raise ValueError unless these are whole numbers of the input, on which all ranges rely."""
        if not values.size:
            return
        if values.dtype.kind not in "iubO":
            raise ValueError(f"values must be whole numbers: got {values.dtype}")
        least, most = (values.min(), values.max()) if values.size > 1 else (values.item(), values.item())
        if not 0 <= least <= most <= self.last:
            raise ValueError(f"values must be from 0 to {self.last}: got {least} to {most}")

    def memos(self, values: Any, secrets: Any) -> NDArray[Any]:
        """Return the part of each answer that its memoised draws depend on, the memo of the program, shape (n,).

        Parameters:
            values: whole numbers as `read` returns them, shape (n,).
            secrets: as for a call.

        Raises:
            ValueError: the memo depends on a draw from the stream, or a step is not defined for its numbers.
            InvalidParameter: `secrets` are not secrets.
        """
        return self._memo_client(values, None, secrets).astype(np.int64)

    @functools.cached_property
    def _memo_client(self) -> VectorisedClient:
        """The client that reports the memo, from the steps that it depends on."""
        program, needed = self.program, {self.program.memo}
        for name, step in reversed(program.steps):
            needed |= {*names_in(step)} if name in needed else set()
        steps = tuple((name, step) for name, step in program.steps if name in needed)
        keeps = any(OPERATORS[step[0]].kind == "memo" for _, step in steps if isinstance(step, list))
        # A part of a report is a step, and the memo may be the value itself. No name is longer than the new one.
        sent = max(("value", *program.tables, *(name for name, _ in program.steps)), key=len) + "_"
        steps = (*steps, (sent, program.memo))
        report = record([["uint", sent, 8, 1]], "<u8", [])
        kept = Program(program.input, steps, report, program.tables, program.memo if keeps else "")
        client = VectorisedClient(kept, context=self.context, lot=self.lot)
        if client.draws:
            raise ValueError("the memo must not depend on a draw from the stream")
        return client

    def _one_by_one(self, values: NDArray[Any], stream: Stream | None, secrets: list[bytes] | None) -> NDArray[Any]:
        own = [None] * len(values) if secrets is None else secrets
        reports = [
            run(self.program, int(value), StreamDraws(stream, secret, self.context))  # type: ignore[arg-type]
            for value, secret in zip(values.tolist(), own, strict=True)
        ]
        return self._shaped(
            np.frombuffer(bytearray().join(reports), np.uint8).reshape(len(values), self.program.size)
        )

    def _shaped(self, rows: NDArray[np.uint8]) -> NDArray[Any]:
        """Return rows of bytes in the shape and type of the report; as they are, if these do not fit."""
        if not self._fits:
            return rows
        reports: NDArray[Any] = rows.reshape(-1).view(self._dtype).reshape(len(rows), *self._shape)
        return reports


def _padded(size: int) -> int:
    """Return the places of a row of bits, which are packed eight to a byte."""
    return 8 * -(-size // 8) if size > 1 else 1


_Part: TypeAlias = "tuple[int, Callable[[Lot, Array], None]]"
"""The bytes of a part of the report, and a function that writes it for a lot."""


class _Compiler:
    """Compiles the steps of a program in order."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.ranges = ValueRanges(program)
        small = [span for span in (*self.ranges.of_name.values(), *self.ranges.seen) if within(span, WORD)]
        self.word = kind_of((min(low for low, _ in small), max(high for _, high in small)))
        self.longest = max((self.ranges.sizes[name] or 1 for name, _ in program.steps), default=1)
        span = self.ranges.of_name["value"]
        value = Column(span, None, type_for([span], self.word), lambda lot: lot.columns[0])
        self.columns: dict[str, Column] = {"value": value}
        self.columns |= {name: constant(table) for name, table in program.table_values.items()}
        self._last_use: dict[str, int] = {}
        for place, (_, expression) in enumerate(program.steps):
            self._last_use |= dict.fromkeys(names_in(expression), place)
        for part in program.report["parts"]:
            self._last_use[part[1]] = len(program.steps)
        self._place = 0
        self._uses: Counter[str] = Counter()

    def step(self, place: int) -> Callable[[Lot], Array]:
        """Compile the step at a place."""
        name, expression = self.program.steps[place]
        self._place, self._uses = place, Counter(names_in(expression))
        found = self._compile(expression)
        if (
            isinstance(expression, str) and found.constant is None
        ):  # two names of one array: neither may be overwritten
            self.columns[expression] = replace(self.columns[expression], fresh=False)
            found = replace(found, fresh=False)
        self.columns[name] = replace(found, get=lambda lot: lot.columns[place + 1])
        return found.get

    def part(self, part: list[Any]) -> _Part:
        """Compile a part of the report."""
        kind, name, *more = part
        column = self.columns[name]
        if kind == "float64":
            return 8, _double(column, *more)
        count, size = more[-1], more[0] if kind == "uint" else 0
        if (column.size or 1) != count or (column.size == 0) != (count == 0):
            raise ValueError(f"a report must have {count} numbers: got {column.size}")
        largest = 256**size - 1 if kind == "uint" else 1
        column = bounded(column, (0, largest), f"a report must have {count} numbers from 0 to {largest}")
        return (size * count, _whole(column, size)) if kind == "uint" else (-(-count // 8), _packed(column))

    def _compile(self, expression: Expression, spare: frozenset[str] = frozenset()) -> Column:
        """Compile an expression. `spare`: the names whose columns the operator around it may overwrite."""
        number = literal(expression)
        if number is not None:
            return constant(number)
        if isinstance(expression, str):
            column = self.columns[expression]
            return column if expression in spare else replace(column, fresh=False)
        name, *given = expression  # type: ignore[misc]
        operator = OPERATORS[name]
        label, arguments = (given[0], given[1:]) if operator.labelled else ("", given)
        spare = self._used_up(expression, arguments)
        columns = [self._compile(each, spare) for each in arguments]
        if operator.kind not in DRAWS and columns and all(each.constant is not None for each in columns):
            return constant(evaluate(expression, self.program.table_values, None))
        if not columns and name == "list":
            return constant([])
        columns = self._refused(name, arguments, columns)
        call = Call(
            name, arguments, columns, self.ranges.of(expression), self.ranges.size_of(expression), self.word, label
        )
        found = self._in_rows(call) or _BUILDERS[name](call)
        return _limited(call, found) if operator.kind == "each" or name in ("join", "floyd") else found

    def _used_up(self, expression: Expression, arguments: list[Expression]) -> frozenset[str]:
        """Return the arguments that are names which nothing outside the expression uses later.

        An operator works its other arguments out before it overwrites one.
        """
        within_it, direct = (
            Counter(names_in(expression)),
            Counter(each for each in arguments if isinstance(each, str)),
        )
        return frozenset(
            name
            for name, times in direct.items()
            if times == 1 and self._last_use.get(name) == self._place and within_it[name] == self._uses[name]
        )

    def _refused(self, name: str, arguments: list[Expression], columns: list[Column]) -> list[Column]:
        """Return the arguments, which refuse numbers for which the operator is not defined."""
        takes = FORMS[name].takes
        wanted = ["any"] * len(columns) if name == "list" else takes[takes[0] == "text" :]
        found = []
        for place, (column, want) in enumerate(zip(columns, wanted, strict=True)):
            if (name, place) in _PLACES:
                size = self.ranges.constant(arguments[1]) if name == "onehot" else columns[0].size
                found.append(checked(name, "place", column, self._tight(arguments[place]), size))
            else:
                found.append(checked(name, want, column, self._tight(arguments[place])))
        return found

    def _tight(self, expression: Expression) -> Callable[[], tuple[int, int]]:
        return lambda: self.ranges.tight(expression)

    def _in_rows(self, call: Call) -> Column | None:
        """Compile `rank` in a row of a table."""
        vector = call.arguments[0] if call.name == "rank" else None
        if not (isinstance(vector, list) and vector[0] == "at" and vector[1] in self.ranges.rows):
            return None
        table: Any = self.columns[vector[1]].constant
        place = checked("at", "place", self._compile(vector[2]), self._tight(vector[2]), len(table))
        return None if place.constant is not None else rank_in_rows(call, table, place, call.columns[1])


def _limited(call: Call, found: Column) -> Column:
    """Return the result, which refuses numbers of more than 4096 bits."""
    if within(call.span, (2 - HUGE, HUGE - 2)):
        return found
    wide = replace(found, span=(-HUGE, HUGE))
    return bounded(wide, (1 - HUGE, HUGE - 1), "a number of a program must have at most 4096 bits")


# -- the report ------------------------------------------------------------------------------------------------------


def _double(column: Column, origin: str, step: str, plus: Any) -> Callable[[Lot, Array], None]:
    """Return a function that writes the doubles origin + (r + plus)·step."""
    more, start, each = int(plus), float(origin), float(step)
    low, high = column.span[0] + more, column.span[1] + more
    fits = within((low, high), WORD) and within(column.span, WORD)
    get = filled(column, LONG if fits else object)
    finite = fits and math.isfinite(abs(start) + float(max(-low, high)) * each) and math.isfinite(each)

    def put_surely(lot: Lot, rows: Array) -> None:
        numbers = get(lot)
        found = (numbers + more if more else numbers) * each
        found += start
        rows.view("<f8")[:] = found[:, np.newaxis]

    def put(lot: Lot, rows: Array) -> None:
        numbers = get(lot)
        try:
            moved = (numbers + more if more else numbers).astype(np.float64)
        except OverflowError:
            moved = np.full(lot.n, np.inf)
        with np.errstate(all="ignore"):
            found = start + moved * each
        if not np.isfinite(found).all():
            raise ValueError("a report must have a number that a double holds: got a larger one")
        rows[:] = found.astype("<f8").view(np.uint8).reshape(lot.n, 8)

    return put_surely if finite else put


def _whole(column: Column, size: int) -> Callable[[Lot, Array], None]:
    """Return a function that writes whole numbers of `size` bytes each, little-endian."""
    if not column.size and column.size is not None:
        return lambda lot, rows: None
    wide = next(each for each in (1, 2, 4, 8) if each >= size)
    kind = np.dtype(f"<u{wide}")
    get = filled(column, kind.type) if column.kind is object else filled(column)

    def put(lot: Lot, rows: Array) -> None:
        numbers = get(lot).reshape(lot.n, -1)
        if wide == size and rows.flags.c_contiguous:
            rows.view(kind)[:] = numbers
        else:
            whole = np.ascontiguousarray(numbers, kind).view(np.uint8).reshape(lot.n, -1, wide)
            rows[:] = whole[:, :, :size].reshape(lot.n, -1)

    return put


def _packed(column: Column) -> Callable[[Lot, Array], None]:
    """Return a function that writes bits, eight to a byte."""
    get = filled(cast(column, BIT) if column.kind is BIT else column)

    def put(lot: Lot, rows: Array) -> None:
        found = get(lot).reshape(lot.n, -1)
        rows[:] = pack_rows(found if found.dtype == BIT else found.astype(BIT))

    return put
