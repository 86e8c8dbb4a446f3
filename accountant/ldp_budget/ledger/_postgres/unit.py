"""One writing transaction on a server: what its partitions write is held back and sent with one statement for each table.

What is read goes out at once, behind what was held back, so that it sees it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, get_type_hints

from ...guarantees.amounts import Costs
from ..entries import NUMBERED, PartitionHead

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from psycopg import Connection, Cursor

AMOUNTS = ", ".join(Costs._fields)
ENTRY = (
    f"entry, at, kind, account, priced_mechanism, policy, reports, {AMOUNTS}, label_commitment, expires, resolves,"
    " has_record, has_note, api_key, sub_limit"
)
COUNTERS = PartitionHead._fields[3:]

_LONG_SECONDS = 3600.0
FEW = 4
"""Up to so many rows are sent one by one; arrays take their time to be made."""


class OfRows:
    """A statement over rows, each of some `types`: a few of them as values, many as one array for each column.

    Of rows with the same first `same` values that are held back, only the last is sent.
    """

    def __init__(self, before: str, types: str, after: str = "AS t", same: int = 0) -> None:
        row = f"({', '.join(f'%s::{each}' for each in types.split())})"
        arrays = ", ".join(f"%b::{each}[]" for each in types.split())
        self._few = [f"{before} (VALUES {', '.join([row] * count)}) {after}" for count in range(1, FEW + 1)]
        self._many = f"{before} unnest({arrays}) {after}"
        self.same = same

    def bind(self, rows: Collection[tuple[Any, ...]], *values: Any) -> tuple[str, list[Any]]:
        """SQL and its values for at least one row; `values` are those that `after` asks for."""
        if len(rows) <= FEW:
            return self._few[len(rows) - 1], [*chain.from_iterable(rows), *values]
        return self._many, [*(list(column) for column in zip(*rows, strict=True)), *values]


_AMOUNT_TYPES = "int8 " * len(Costs._fields)
_NUMBERED = ", ".join((*COUNTERS, "row_mac"))

USERS = OfRows("INSERT INTO users SELECT * FROM", "int4 int8 bytea bytea")
SUMS = OfRows(
    "INSERT INTO window_sums SELECT * FROM",
    f"int4 int8 int8 {_AMOUNT_TYPES}",
    "AS t ON CONFLICT (partition, account, window_code) DO UPDATE"
    f" SET {', '.join(f'{name} = excluded.{name}' for name in Costs._fields)}",
    same=3,
)
ACCOUNT_MACS = OfRows(
    "INSERT INTO account_macs SELECT * FROM",
    "int4 int8 int8 bytea",
    "AS t ON CONFLICT (partition, account) DO UPDATE SET day = excluded.day, row_mac = excluded.row_mac",
    same=2,
)
NEWEST = (
    "(SELECT j.entry FROM journal j"
    " WHERE j.partition = u.partition AND j.account = u.account AND j.kind IN ('spent', 'reserved', 'voided')"
    " ORDER BY j.entry DESC LIMIT 1)"
)
"""The newest charge of an account `u`."""
COUNTED = (
    "(EXISTS (SELECT FROM memoised_counts l WHERE l.partition = u.partition AND l.account = u.account)"
    " OR EXISTS (SELECT FROM quotas q WHERE q.partition = u.partition AND q.account = u.account))"
)
"""Whether an account `u` has label counts or used quotas."""
_SUM = ", ".join(f"a.{name}" for name in Costs._fields)
MAC_STATE = f"u.account, a.window_code, {_SUM}, {NEWEST}, s.day, s.row_mac, {COUNTED}, u.user_hash"
"""What is read of accounts `u`, sums `a` and MACs `s`."""
RECORDS = OfRows("INSERT INTO idempotency_records SELECT * FROM", "int4 bytea bytea int8 int8 bytea text bytea")
ENTRIES = OfRows(
    f"INSERT INTO journal (partition, {ENTRY}, chain_hash) SELECT * FROM",
    f"int4 int8 int8 text int8 int8 int8 int8 {_AMOUNT_TYPES} bytea int8 int8 int8 int8 int8 int8 bytea",
)
_TYPES = {int: "int8", bytes: "bytea", str: "text"}


def _types(kind: type[Any]) -> str:
    """The types of the columns of a class of `NUMBERED`."""
    return " ".join(["int4", *(_TYPES[each] for each in get_type_hints(kind).values())])


NUMBERED_ROWS = {
    kind: OfRows(f"INSERT INTO {table.name} SELECT * FROM", _types(kind)) for kind, table in NUMBERED.items()
}
NOTES = OfRows("INSERT INTO notes SELECT * FROM", "int4 int8 text bytea")
_ENDS = OfRows(
    "UPDATE partitions SET entry = t.entry, at = t.at, chain_hash = t.chain_hash FROM",
    "int4 int8 int8 bytea",
    "AS t(partition, entry, at, chain_hash) WHERE partitions.partition = t.partition",
    same=1,
)
_COUNTED = OfRows(
    f"UPDATE partitions SET {', '.join(f'{name} = t.{name}' for name in (*COUNTERS, 'row_mac'))} FROM",
    f"int4 {'int8 ' * len(COUNTERS)} bytea",
    f"AS t(partition, {_NUMBERED}) WHERE partitions.partition = t.partition",
    same=1,
)
_ORDER = (USERS, SUMS, ACCOUNT_MACS, RECORDS, ENTRIES, NOTES, *NUMBERED_ROWS.values(), _ENDS, _COUNTED)


class Unit:
    """The statements of one transaction; `schema` is where the ledger's tables are."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self.schema = schema
        self._held: dict[OfRows, dict[Any, tuple[Any, ...]]] = {}
        self._written: list[tuple[Cursor[Any], int]] = []

    def put(self, statement: OfRows, rows: Iterable[tuple[Any, ...]]) -> None:
        """Hold rows back, to be written with the next statement or at the end."""
        held = self._held.setdefault(statement, {})
        for row in rows:
            held[row[: statement.same] or len(held)] = row

    def set_end(self, partition: int, end: PartitionHead, row_mac: bytes | None) -> None:
        """Move the end of a partition."""
        self.put(_ENDS, [(partition, *end[:3])])
        if row_mac is not None:
            self.put(_COUNTED, [(partition, *end.counters, row_mac)])

    def run(self, sql: str, values: Any = ()) -> Cursor[Any]:
        """A statement, behind all that was held back; its outcome is not waited for unless it is asked for rows."""
        if self._held:
            self.flush()
        return self._connection.execute(sql, values, binary=True)

    def ask(self, statement: OfRows, rows: Collection[tuple[Any, ...]], *values: Any) -> Cursor[Any]:
        """A question about rows."""
        return self.run(*statement.bind(rows, *values))

    def write(self, count: int, sql: str, values: Any = ()) -> None:
        """A statement that must write so many rows, see `miscounted`."""
        self._written.append((self.run(sql, values), count))

    def be_patient(self) -> None:
        """Wait longer for answers: what follows takes as long as the partition is large."""
        self._connection.patience = _LONG_SECONDS  # type: ignore[attr-defined]

    def flush(self) -> None:
        """Send what was held back."""
        held, self._held = self._held, {}
        for statement in _ORDER:
            rows = held.get(statement)
            if rows:
                self._written.append((self._connection.execute(*statement.bind(rows.values())), len(rows)))

    @property
    def has_written(self) -> bool:
        """Whether there is anything to count."""
        return bool(self._written)

    def miscounted(self) -> tuple[int, int] | None:
        """How many rows a statement wrote and should have written, once the answers are there; None if all did."""
        counts = ((cursor.rowcount, count) for cursor, count in self._written)
        return next((each for each in counts if each[0] != each[1]), None)
