"""One writing transaction on a server: what its lanes write is held back and sent with one statement for each table.

What is read goes out at once, behind what was held back, so that it sees it.
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from ...guarantees.amounts import Costs

if TYPE_CHECKING:
    from collections.abc import Collection

    from psycopg import Connection, Cursor

    from ..entries import End

AMOUNTS = ", ".join(Costs._fields)
ENTRY = f"entry, at, kind, account, charge, policy, reports, {AMOUNTS}, mark, expires, resolves, keyed"
_ENTRY_TYPES = ("int8", "int8", "text", *["int8"] * 8, "bytea", *["int8"] * 3)
COUNTERS = ("accounts", "charges", "policies", "collections", "answers", "checkpoints", "periods")


FEW = 4
"""Up to so many rows are sent one by one; arrays take their time to be made."""


def rows_of(*types: str) -> str:
    """SQL for rows that are sent as one array for each column."""
    return f"unnest({', '.join(f'%b::{each}[]' for each in types)})"


@cache
def few_of(sql: str, count: int) -> str:
    """A statement over `rows_of` for a few rows, whose values are sent one after the other."""
    before, _, rest = sql.partition("unnest(")
    types, _, after = rest.partition(")")
    row = ", ".join(each.strip().replace("%b", "%s").removesuffix("[]") for each in types.split(","))
    rows = ", ".join([f"({row})"] * count)
    name = "" if after.startswith(" AS ") else " AS t"
    return f"{before}(VALUES {rows}){name}{after}"


_USERS = f"INSERT INTO users SELECT * FROM {rows_of('int4', 'int8', 'bytea', 'bytea')}"
_SUMS = (
    f"INSERT INTO accounts SELECT * FROM {rows_of('int4', *['int8'] * 6)} ON CONFLICT (lane, account, slot) DO UPDATE"
    f" SET {', '.join(f'{name} = excluded.{name}' for name in Costs._fields)}"
)
_ANSWERS = f"INSERT INTO keys SELECT * FROM {rows_of('int4', 'bytea', 'bytea', 'int8', 'bytea', 'text', 'bytea')}"
_ENTRIES = f"INSERT INTO journal (lane, {ENTRY}, link) SELECT * FROM {rows_of('int4', *_ENTRY_TYPES, 'bytea')}"
_ENDS = (
    f"UPDATE lanes SET entry = t.entry, at = t.at, link = t.link"
    f" FROM {rows_of('int4', 'int8', 'int8', 'bytea')} AS t(lane, entry, at, link) WHERE lanes.lane = t.lane"
)
_COUNTED = (
    f"UPDATE lanes SET {', '.join(f'{name} = t.{name}' for name in (*COUNTERS, 'seal'))}"
    f" FROM {rows_of('int4', *['int8'] * len(COUNTERS), 'bytea')} AS t(lane, {', '.join(COUNTERS)}, seal)"
    " WHERE lanes.lane = t.lane"
)


class Unit:
    """The statements of one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.users: list[tuple[Any, ...]] = []
        self.sums: dict[tuple[int, int, int], tuple[Any, ...]] = {}
        self.answers: list[tuple[Any, ...]] = []
        self.entries: list[tuple[Any, ...]] = []
        self._ends: dict[int, tuple[Any, ...]] = {}
        self._counted: dict[int, tuple[Any, ...]] = {}
        self._waits = False
        """Whether anything is held back."""

    def hold_back(self) -> None:
        """Say that something was put into the lists, to be written with the next statement or at the end."""
        self._waits = True

    def set_end(self, lane: int, end: End, seal: bytes | None) -> None:
        """Move the end of a lane."""
        self._ends[lane] = (lane, *end[:3])
        if seal is not None:
            self._counted[lane] = (lane, *end.counters, seal)
        self._waits = True

    def run(self, sql: str, values: Any = ()) -> Cursor[Any]:
        """A statement, behind all that was held back; its outcome is not waited for unless it is asked for rows."""
        if self._waits:
            self.flush()
        return self._connection.execute(sql, values, binary=True)

    def ask(self, sql: str, rows: Collection[tuple[Any, ...]], *values: Any) -> Cursor[Any]:
        """A question about rows, of which `sql` has one `rows_of` before all other values."""
        if len(rows) <= FEW:
            return self.run(few_of(sql, len(rows)), [*chain.from_iterable(rows), *values])
        return self.run(sql, [*(list(column) for column in zip(*rows, strict=True)), *values])

    def flush(self) -> None:
        """Send what was held back."""
        self._waits = False
        users, self.users = self.users, []
        sums, self.sums = self.sums, {}
        answers, self.answers = self.answers, []
        entries, self.entries = self.entries, []
        ends, self._ends = self._ends, {}
        counted, self._counted = self._counted, {}
        self._send(_USERS, users)
        self._send(_SUMS, sums.values())
        self._send(_ANSWERS, answers)
        self._send(_ENTRIES, entries)
        self._send(_ENDS, ends.values())
        self._send(_COUNTED, counted.values())

    def _send(self, sql: str, rows: Collection[tuple[Any, ...]]) -> None:
        if not rows:
            return
        if len(rows) <= FEW:
            self._connection.execute(few_of(sql, len(rows)), list(chain.from_iterable(rows)))
        else:
            self._connection.execute(sql, [list(column) for column in zip(*rows, strict=True)])
