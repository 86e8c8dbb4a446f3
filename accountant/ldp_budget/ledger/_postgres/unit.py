"""One writing transaction on a server: what its lanes write is held back and sent with one statement for each table.

What is read goes out at once, behind what was held back, so that it sees it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...guarantees.amounts import Costs

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

    from ..entries import End

AMOUNTS = ", ".join(Costs._fields)
ENTRY = f"entry, at, kind, account, charge, policy, reports, {AMOUNTS}, mark, expires, resolves, keyed"
_ENTRY_TYPES = ("int8", "int8", "text", *["int8"] * 8, "bytea", *["int8"] * 3)
COUNTERS = ("accounts", "charges", "policies", "collections", "answers", "checkpoints")


def rows_of(*types: str) -> str:
    """SQL for rows that are sent as one array for each column."""
    return f"unnest({', '.join(f'%b::{each}[]' for each in types)})"


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
    f" FROM {rows_of('int4', *['int8'] * 6, 'bytea')} AS t(lane, {', '.join(COUNTERS)}, seal)"
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

    def _send(self, sql: str, rows: Any) -> None:
        if rows:
            self._connection.execute(sql, [list(column) for column in zip(*rows, strict=True)])
