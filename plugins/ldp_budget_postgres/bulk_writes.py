"""Write buffer, prefetch and set-based charges of a transaction on PostgreSQL.

- `Unit` buffers the rows that the partitions of one transaction write, and sends one statement for each table. A read
  first sends the buffered rows, so it sees them.
- `PrefetchedRows` reads in the round trip that takes the locks what the transaction will need first.
- `PostgresBatch` charges many users of one partition the same costs. It sends their hashes as arrays and uses no
  temporary tables, so it works with poolers and sharded engines.
"""

from __future__ import annotations

from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, get_type_hints

from ldp_budget.guarantees.fixed_point import LARGEST, Costs
from ldp_budget.ledger.models import NUMBERED, IdempotencyRecord, PartitionHead
from ldp_budget.ledger.storage import NO_SUM

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from psycopg import Connection, Cursor

    from ldp_budget.ledger.storage import Prefetch, Rooms


# -- statements over rows ------------------------------------------------------------------------------------

AMOUNTS = ", ".join(Costs._fields)
ENTRY = (
    f"entry, at, kind, account, priced_mechanism, policy, reports, {AMOUNTS}, label_commitment, expires, resolves,"
    " has_record, has_note, api_key, sub_limit, period"
)
CHARGE = f"priced_mechanism, fingerprint, mechanism, declared, guarantee, {AMOUNTS}, collection, row_mac"
POLICY = "policy, name, version, created_at, definition, row_mac"
COUNTERS = PartitionHead._fields[3:]

_LONG_SECONDS = 3600.0
FEW = 4
"""Largest number of rows that are sent as values; building arrays takes longer for few rows."""


HERE = "ANY(%(here)b::int4[])"
"""The partitions of a statement on a sharded engine, which are in one shard: each clause of a table compares with them."""
ONE = "%(here)s::int4"
"""The same for one partition, which such an engine plans faster."""
_ALL_FROM = " SELECT * FROM"
MOST_VALUES = 8
"""Largest number of rows that a sharded engine inserts as values, in which it reads the partitions without a plan."""


class BulkStatement:
    """Statement over rows with columns of `types`: it sends few rows as values, many as one array for each column.

    Of buffered rows with the same first `same` values, only the last is sent. `sharded` has the parts before and after
    the rows for a sharded engine: there each table is compared with `HERE`, so that the engine asks one shard. Or it
    inserts few rows as values, with `values` after them.
    """

    def __init__(
        self, before: str, types: str, after: str, same: int, sharded: tuple[str, str], values: str | None = None
    ) -> None:
        self._row = f"({', '.join(f'%s::{each}' for each in types.split())})"
        arrays = ", ".join(f"%b::{each}[]" for each in types.split())
        named = ", ".join(f"%(c{place})b::{each}[]" for place, each in enumerate(types.split()))
        self._few = [f"{before} (VALUES {', '.join([self._row] * count)}) {after}" for count in range(1, FEW + 1)]
        self._many = f"{before} unnest({arrays}) {after}"
        self.sharded = f"{sharded[0]} unnest({named}) {sharded[1]}"
        self._of_one = self.sharded.replace(HERE, ONE)
        self._before, self._values = before, values
        self.same = same

    def bind(self, rows: Collection[tuple[Any, ...]], *values: Any) -> tuple[str, list[Any]]:
        """Return the SQL and its values for at least one row; `values` are those that `after` needs."""
        if len(rows) <= FEW:
            return self._few[len(rows) - 1], [*chain.from_iterable(rows), *values]
        return self._many, [*(list(column) for column in zip(*rows, strict=True)), *values]

    def bind_sharded(self, rows: Collection[tuple[Any, ...]], *values: Any) -> tuple[str, Any]:
        """Return the SQL and its values for at least one row; all rows are of one shard."""
        if self._values is not None and len(rows) <= MOST_VALUES:
            into = self._before.removesuffix(_ALL_FROM)
            return f"{into} VALUES {', '.join([self._row] * len(rows))} {self._values}", [*chain.from_iterable(rows)]
        columns = [list(column) for column in zip(*rows, strict=True)]
        here = sorted({*columns[0]})
        bound: dict[str, Any] = {f"c{place}": column for place, column in enumerate(columns)}
        bound.update((f"w{place}", value) for place, value in enumerate(values))
        if len(here) == 1:
            return self._of_one, {**bound, "here": here[0]}
        return self.sharded, {**bound, "here": here}


def _insert(into: str, types: str, conflict: str = "", same: int = 0) -> BulkStatement:
    """Return the statement that inserts rows.

    A sharded engine inserts on the shard what it selects there. So for many rows, its statement joins them with their
    partitions.
    """
    _, *columns = (f"c{place}" for place in range(len(types.split())))
    here = (
        f"INSERT INTO {into} SELECT p.partition, {', '.join(f't.{each}' for each in columns)} FROM partitions p JOIN",
        f"AS t(partition, {', '.join(columns)}) ON p.partition = t.partition WHERE p.partition = {HERE} {conflict}",
    )
    return BulkStatement(f"INSERT INTO {into}{_ALL_FROM}", types, f"AS t {conflict}", same, here, conflict)


def _update(table: str, sets: str, types: str, columns: str, also: str = "", same: int = 1) -> BulkStatement:
    """Return the statement that updates the rows of partitions."""
    before = f"UPDATE {table} SET {sets} FROM"
    after = f"AS t({columns}) WHERE {table}.partition = t.partition{also}"
    return BulkStatement(before, types, after, same, (before, f"{after} AND {table}.partition = {HERE}"))


_AMOUNT_TYPES = "int8 " * len(Costs._fields)
_NUMBERED = ", ".join((*COUNTERS, "row_mac"))

USERS = _insert("users", "int4 int8 bytea bytea")
SUMS = _insert(
    "window_sums",
    f"int4 int8 text {_AMOUNT_TYPES}",
    "ON CONFLICT (partition, account, window_name) DO UPDATE"
    f" SET {', '.join(f'{name} = excluded.{name}' for name in Costs._fields)}",
    same=3,
)
ACCOUNT_MACS = _insert(
    "account_macs",
    "int4 int8 int8 bytea",
    "ON CONFLICT (partition, account) DO UPDATE SET day = excluded.day, row_mac = excluded.row_mac",
    same=2,
)
NAMED = "{0}.partition = %(here)s"
"""Condition on a table of a statement over one partition."""
GROUPED = "{0}.partition = u.partition"
"""Condition on a table that is joined with the accounts `u`, of a statement over several partitions of one server."""
SHARDED = f"{GROUPED} AND {{0}}.partition = {HERE}"
"""The same on a sharded engine."""


def newest(at: str) -> str:
    """Return SQL for the newest charge of an account `u`; `at` is `NAMED`, `GROUPED` or `SHARDED`."""
    return (
        f"(SELECT j.entry FROM journal j WHERE {at.format('j')} AND j.account = u.account"
        " AND j.kind IN ('spent', 'reserved', 'voided') ORDER BY j.entry DESC LIMIT 1)"
    )


def counted(at: str) -> str:
    """Return SQL that is true if an account `u` has memoised counts or used quotas."""
    return (
        f"(EXISTS (SELECT FROM memoised_counts l WHERE {at.format('l')} AND l.account = u.account)"
        f" OR EXISTS (SELECT FROM quotas q WHERE {at.format('q')} AND q.account = u.account))"
    )


@cache
def account_rows(accounts: str, windows: int, at: str, more: str = "") -> tuple[str, str]:
    """Return the query of the rows of accounts `u`, with their sums in a number of windows, before and after FROM."""
    sums, joins = "", ""
    for place in range(windows):
        name, value = f"a{place}", "%s" if at is GROUPED else f"%(w{place})s"
        sums += "".join(f", {name}.{column}" for column in ("window_name", *Costs._fields))
        joins += (
            f" LEFT JOIN window_sums {name} ON {at.format(name)} AND {name}.account = u.account"
            f" AND {name}.window_name = {value}"
        )
    macs = f" LEFT JOIN account_macs s ON {at.format('s')} AND s.account = u.account"
    state = f"u.user_hash, u.account, {newest(at)}, s.day, s.row_mac, {counted(at)}"
    return f"SELECT {more}{state}{sums} FROM", f"{accounts}{macs}{joins}"


RECORDS = _insert("idempotency_records", "int4 bytea bytea int8 int8 bytea text bytea")
ENTRIES = _insert(
    f"journal (partition, {ENTRY}, chain_hash)",
    f"int4 int8 int8 text int8 int8 int8 int8 {_AMOUNT_TYPES} bytea int8 int8 int8 int8 int8 int8 text bytea",
)
_TYPES = {int: "int8", bytes: "bytea", str: "text"}


def _types(kind: type[Any]) -> str:
    """Return the types of the columns of a class of `NUMBERED`."""
    return " ".join(["int4", *(_TYPES[each] for each in get_type_hints(kind).values())])


NUMBERED_ROWS = {kind: _insert(f"{table.name}", _types(kind)) for kind, table in NUMBERED.items()}
NOTES = _insert("notes", "int4 int8 text bytea")
REPORTS = _update(
    "reports",
    "state = t.state, report = t.report, row_mac = t.row_mac",
    "int4 int8 text bytea bytea",
    "partition, number, state, report, row_mac",
    " AND reports.number = t.number",
    same=2,
)
_ENDS = _update(
    "partitions",
    "entry = t.entry, at = t.at, chain_hash = t.chain_hash",
    "int4 int8 int8 bytea",
    "partition, entry, at, chain_hash",
)
_COUNTED = _update(
    "partitions",
    ", ".join(f"{name} = t.{name}" for name in (*COUNTERS, "row_mac")),
    f"int4 {'int8 ' * len(COUNTERS)} bytea",
    f"partition, {_NUMBERED}",
)
_TOGETHER = (USERS, SUMS, ACCOUNT_MACS, RECORDS, ENTRIES, NOTES, *NUMBERED_ROWS.values(), _ENDS)
# The parts of one statement do not see each other's rows, and may not change a row twice.
_ORDER = (_TOGETHER, (REPORTS,), (_COUNTED,))

MISCOUNTED = "22012"
"""SQLSTATE of the division by zero that ends a transaction if a statement wrote fewer rows than it was given."""


def _checked(parts: Sequence[tuple[str, int]]) -> str:
    """Return one statement that writes several times, and fails unless each part writes its number of rows."""
    writes = ", ".join(f"w{place} AS ({sql} RETURNING 1)" for place, (sql, _) in enumerate(parts))
    counts = " AND ".join(f"(SELECT count(*) FROM w{place}) = {rows:d}" for place, (_, rows) in enumerate(parts))
    return f"WITH {writes} SELECT 1 / ({counts})::int"


# For each table, the statement that inserts its rewritten rows, and its columns without the partition.
RENEWED = {
    "users": (USERS, "account, user_hash, row_mac"),
    "tombstones": (_insert("tombstones", "int4 bytea bytea"), "user_hash, row_mac"),
    "idempotency_records": (RECORDS, "user_hash, key_hash, entry, number, request_digest, response, row_mac"),
    "memoised_counts": (
        _insert("memoised_counts", "int4 int8 bytea int8 text int8"),
        "account, label, priced_mechanism, window_name, reports",
    ),
    "entry_labels": (
        _insert("entry_labels", "int4 int8 bytea bytea"),
        "entry, label, salt",
    ),
    "notes": (NOTES, "entry, note, row_mac"),
    "collections": (
        _insert("collections", "int4 int8 text text text bytea"),
        "number, name, fingerprint, definition, row_mac",
    ),
    "priced_mechanisms": (
        _insert(
            "priced_mechanisms",
            "int4 int8 text text text text int8 int8 int8 int8 text bytea",
        ),
        CHARGE,
    ),
    "policies": (_insert("policies", "int4 int8 text int8 int8 text bytea"), POLICY),
    **{table.name: (NUMBERED_ROWS[kind], ", ".join(kind._fields)) for kind, table in NUMBERED.items()},
}


# -- the write buffer ----------------------------------------------------------------------------------------


class Unit:
    """Statements of one transaction; `schema` is the schema of the ledger's tables.

    On a sharded engine, `shards` has the shard of each partition. A statement over rows is then sent to one shard.
    """

    def __init__(self, connection: Connection, schema: str, shards: Sequence[int] | None = None) -> None:
        self._connection = connection
        self.schema = schema
        self.shards = shards
        self.aside: frozenset[Any] = frozenset()
        """Facts of the catalog that a verification leaves aside, see `migrations`."""
        self._held: dict[BulkStatement, dict[Any, tuple[Any, ...]]] = {}
        self._written: list[tuple[Cursor[Any], int]] = []

    def put(self, statement: BulkStatement, rows: Iterable[tuple[Any, ...]]) -> None:
        """Buffer rows; the next statement or the end of the transaction writes them."""
        held = self._held.setdefault(statement, {})
        for row in rows:
            held[row[: statement.same] or len(held)] = row

    def set_end(self, partition: int, end: PartitionHead, row_mac: bytes | None) -> None:
        """Set the head of a partition."""
        self.put(_ENDS, [(partition, *end[:3])])
        if row_mac is not None:
            self.put(_COUNTED, [(partition, *end.counters, row_mac)])

    def run(self, sql: str, values: Any = ()) -> Cursor[Any]:
        """Send a statement after all buffered rows. Only fetching rows from the cursor waits for its result."""
        if self._held:
            self.flush()
        return self._connection.execute(sql, values, binary=True)

    def ask(self, statement: BulkStatement, rows: Collection[tuple[Any, ...]], *values: Any) -> Iterable[Any]:
        """Send a query about rows; on a sharded engine, one for each shard."""
        if self.shards is None:
            return self.run(*statement.bind(rows, *values))
        parts = self._by_shard(rows, self.shards)
        return chain.from_iterable([self.run(*statement.bind_sharded(part, *values)) for part in parts])

    def _by_shard(self, rows: Iterable[tuple[Any, ...]], shards: Sequence[int]) -> Collection[list[tuple[Any, ...]]]:
        parts: dict[int, list[tuple[Any, ...]]] = {}
        for row in rows:
            parts.setdefault(shards[row[0]], []).append(row)
        return parts.values()

    def write(self, count: int, sql: str, values: Any = ()) -> None:
        """Send a statement that must write `count` rows, see `miscounted`."""
        self._written.append((self.run(sql, values), count))

    def write_rows(self, statement: BulkStatement, rows: Collection[tuple[Any, ...]]) -> None:
        """Send rows of one partition, or of one shard, now."""
        bind = statement.bind if self.shards is None else statement.bind_sharded
        self.write(len(rows), *bind(rows))

    def be_patient(self) -> None:
        """Wait longer for answers: the time of the next statements grows with the size of the partition."""
        self._connection.patience = _LONG_SECONDS  # type: ignore[attr-defined]

    def flush(self) -> None:
        """Send the buffered rows."""
        held, self._held = self._held, {}
        if self.shards is not None:
            self._flush_sharded(held, self.shards)
            return
        for together in _ORDER:
            parts, values = [], []
            for statement in together:
                rows = held.get(statement)
                if rows:
                    sql, bound = statement.bind(rows.values())
                    parts.append((sql, len(rows)))
                    values += bound
            if parts:
                self._connection.execute(_checked(parts), values)

    def _flush_sharded(self, held: dict[BulkStatement, dict[Any, tuple[Any, ...]]], shards: Sequence[int]) -> None:
        """Send the buffered rows, a statement for each table and shard."""
        for statement in chain.from_iterable(_ORDER):
            for rows in self._by_shard(held.get(statement, {}).values(), shards):
                self.write_rows(statement, rows)

    @property
    def has_written(self) -> bool:
        """True if there are statements whose rows must be counted, see `miscounted`."""
        return bool(self._written)

    def miscounted(self) -> tuple[int, int] | None:
        """Return the written and the expected row count of a statement that differ; None if all agree.

        Call it when all answers have arrived.
        """
        counts = ((cursor.rowcount, count) for cursor, count in self._written)
        return next((each for each in counts if each[0] != each[1]), None)


# -- the prefetch --------------------------------------------------------------------------------------------


@cache
def _accounts(windows: int) -> BulkStatement:
    """Return the statement that reads accounts of some users with their sums in a number of windows."""
    users = "AS n(partition, user_hash) JOIN users u ON u.partition = n.partition AND u.user_hash = n.user_hash"
    before, after = account_rows(users, windows, GROUPED, "u.partition, ")
    sharded = account_rows(f"{users} AND u.partition = {HERE}", windows, SHARDED, "u.partition, ")
    return BulkStatement(before, "int4 bytea", after, 0, sharded)


def _records() -> BulkStatement:
    """Return the statement that reads the idempotency records of some keys."""
    columns = ", ".join(f"k.{each}" for each in ("partition", *IdempotencyRecord._fields))
    before = f"SELECT {columns} FROM"
    after = (
        "AS n(partition, user_hash, key_hash) JOIN idempotency_records k"
        " ON k.partition = n.partition AND k.user_hash = n.user_hash AND k.key_hash = n.key_hash"
    )
    return BulkStatement(before, "int4 bytea bytea", after, 0, (before, f"{after} AND k.partition = {HERE}"))


_RECORDS = _records()


class PrefetchedRows:
    """Accounts of some users in some windows, and idempotency records of their keys; valid until the first write."""

    def __init__(self, unit: Unit, hint: Prefetch) -> None:
        self._windows = hint.windows
        self._users = {(partition, user) for partition, user, _ in hint.needs}
        self._keys = {(partition, user, key) for partition, user, key in hint.needs if key is not None}
        self._asked_accounts: Iterable[Any] = ()
        self._asked_records: Iterable[Any] = ()
        if self._windows is not None and self._users:
            self._asked_accounts = unit.ask(_accounts(len(self._windows)), self._users, *self._windows)
        if self._keys:
            self._asked_records = unit.ask(_RECORDS, self._keys)
        # Asked first for all partitions, so that the server reads while the earlier ones are charged.
        windows = None if hint.windows is None else list(hint.windows)
        self._batches = {} if windows is None else hint.batches
        self._asked_batches = {
            partition: ask_batch(unit, partition, users, windows or []) for partition, users in self._batches.items()
        }

    def batch(self, partition: int, users: list[bytes], windows: list[str]) -> Cursor[Any] | None:
        """Return the answer of `ask_batch`; None if it was not prefetched."""
        same = self._windows is not None and list(self._windows) == windows and self._batches.get(partition) == users
        return self._asked_batches.get(partition) if same else None

    def read(self) -> None:
        """Read the results of the queries."""
        self._found_accounts: dict[tuple[int, bytes], list[tuple[Any, ...]]] = {}
        self._found_records: dict[tuple[int, bytes, bytes], IdempotencyRecord] = {}
        for partition, *row in self._asked_accounts:
            self._found_accounts.setdefault((partition, row[0]), []).append(tuple(row))
        for partition, *row in self._asked_records:
            self._found_records[partition, row[0], row[1]] = IdempotencyRecord._make(row)

    def accounts(
        self, partition: int, users: Sequence[bytes], windows: Sequence[str]
    ) -> list[tuple[Any, ...]] | None:
        """Return the rows of `Snapshot.accounts`; None if they were not prefetched."""
        if self._windows is None or list(windows) != list(self._windows):
            return None
        if any((partition, user) not in self._users for user in users):
            return None
        return [row for user in users for row in self._found_accounts.get((partition, user), ())]

    def idempotency_records(
        self, partition: int, users: Sequence[bytes], keys: Sequence[bytes]
    ) -> list[IdempotencyRecord] | None:
        """Return the records of the users' keys, pair by pair; None if one was not prefetched."""
        wanted = [(partition, user, key) for user, key in zip(users, keys, strict=True)]
        if any(each not in self._keys for each in wanted):
            return None
        return [self._found_records[each] for each in wanted if each in self._found_records]


# -- batches -------------------------------------------------------------------------------------------------


@cache
def _batch_query(windows: int) -> str:
    """Return the query of a batch's users, in order, with their accounts and sums in a number of windows."""
    columns = f"u.account, t.user_hash, {newest(NAMED)}, s.day, s.row_mac, {counted(NAMED)}"
    # LATERAL looks up each row by its index. For plain joins and EXISTS, the planner hashes the whole partition,
    # or all partitions if it has no row counts yet.
    here = "WHERE partition = %(here)s"
    joins = [
        _found("u", f"partition, account FROM users {here} AND user_hash = b.user_hash"),
        _found("t", f"user_hash FROM tombstones {here} AND user_hash = b.user_hash"),
        _found("s", f"day, row_mac FROM account_macs {here} AND account = u.account"),
    ]
    for place in range(windows):
        columns += "".join(f", a{place}.{name}" for name in ("window_name", *Costs._fields))
        where = f"{here} AND account = u.account AND window_name = %(w{place})s"
        joins.append(_found(f"a{place}", f"window_name, {AMOUNTS} FROM window_sums {where}"))
    users = "unnest(%(users)b::bytea[]) WITH ORDINALITY AS b(user_hash, place)"
    return f"SELECT {columns} FROM {users} {' '.join(joins)} ORDER BY b.place"


_SUMS_FROM = 6
"""The place of the first window in a row of `_batch_query`: its name, None without a sum, and four amounts."""


def ask_batch(unit: Unit, partition: int, users: list[bytes], windows: list[str]) -> Cursor[Any]:
    """Send the query of a batch's users."""
    named = {f"w{place}": window for place, window in enumerate(windows)}
    return unit.run(_batch_query(len(windows)), {"here": partition, "users": users, **named})


class PostgresBatch:
    """Batch of at least one distinct user, as sorted hashes; `answer` is that of `ask_batch`, if it was prefetched."""

    def __init__(
        self, unit: Unit, partition: int, users: list[bytes], windows: list[str], answer: Cursor[Any] | None
    ) -> None:
        self._unit = unit
        self._partition = partition
        self._users = users
        self._windows = windows
        self._answer = ask_batch(unit, partition, users, windows) if answer is None else answer
        self._accounts: list[int] = []
        self._known: list[tuple[int, bytes, tuple[Any, ...]]] = []
        self._new: list[bytes] = []

    def refuse(self, rooms: Rooms) -> list[bytes]:
        refused = []
        never = any(room is None for _, room in rooms)
        limits = [
            (_SUMS_FROM + 5 * self._windows.index(window), _places(room))
            for window, room in rooms
            if room is not None
        ]
        for user, row in zip(self._users, self._answer.fetchall(), strict=True):
            account, erased = row[:2]
            if never or (account is None and erased is not None) or (account is not None and _is_over(row, limits)):
                refused.append(user)
            elif account is None:
                self._new.append(user)
            else:
                self._known.append((account, user, row))
        self._known.sort()
        self._accounts = [account for account, _, _ in self._known]
        return refused

    def unknown(self) -> list[bytes]:
        return self._new

    def stored_macs(self, day: int, windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        firsts = [_SUMS_FROM + 5 * self._windows.index(window) for window in windows]
        for account, user, row in self._known:
            newest, of_day, row_mac, counted = row[2:_SUMS_FROM]
            sums: list[int | None] = []
            for first in firsts:
                name, amount, *others = row[first : first + 5]
                # No negative amount was ever stored, and it must not pass for a missing sum.
                sums += [NO_SUM if name is None else NO_SUM - 1 if amount is not None and amount < 0 else amount]
                sums += others
            yield account, user, newest, row_mac if of_day == day and not counted else None, *sums

    def open_accounts(self, first: int, users: list[bytes], row_macs: list[bytes]) -> None:
        numbers = range(first, first + len(users))
        self._unit.put(USERS, zip([self._partition] * len(users), numbers, users, row_macs, strict=True))
        self._accounts += numbers

    def charge(self, windows: Iterable[str], cost: Costs) -> None:
        adds = ", ".join(_add(name, amount) for name, amount in zip(Costs._fields, cost, strict=True))
        for window in windows:
            self._unit.write(
                len(self._accounts),
                "INSERT INTO window_sums AS a SELECT p.partition, t.account, %s, %s::int8, %s::int8, %s::int8, %s::int8"
                f" FROM partitions p CROSS JOIN unnest(%b::int8[]) AS t(account) WHERE p.partition = %s"
                f" ON CONFLICT (partition, account, window_name) DO UPDATE SET {adds}",
                (window, *cost, self._accounts, self._partition),
            )

    def append(self, first: int, common: tuple[Any, ...], bound: tuple[int, int, int]) -> list[int]:
        self._unit.write(
            len(self._accounts),
            f"INSERT INTO journal (partition, entry, at, kind, account, priced_mechanism, policy, reports, {AMOUNTS},"
            " has_record, has_note, api_key, sub_limit)"
            " SELECT p.partition, %s + t.place, %s, %s, t.account, %s, %s, 1, %s::int8, %s::int8, %s::int8, %s::int8,"
            " 0, %s, %s, %s FROM partitions p CROSS JOIN unnest(%b::int8[]) WITH ORDINALITY AS t(account, place)"
            " WHERE p.partition = %s",
            (first - 1, *common, *bound, self._accounts, self._partition),
        )
        return self._accounts

    def set_macs(self, day: int, row_macs: list[bytes]) -> None:
        self._unit.write(
            len(row_macs),
            "INSERT INTO account_macs SELECT p.partition, t.account, %s, t.row_mac FROM partitions p"
            " CROSS JOIN unnest(%b::int8[], %b::bytea[]) AS t(account, row_mac) WHERE p.partition = %s"
            " ON CONFLICT (partition, account) DO UPDATE SET day = excluded.day, row_mac = excluded.row_mac",
            (day, self._accounts, row_macs, self._partition),
        )


def _found(name: str, what: str) -> str:
    """Return SQL that looks up at most one row for each user."""
    return f"LEFT JOIN LATERAL (SELECT {what} LIMIT 1) AS {name} ON true"


def _places(room: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return the places of limited amounts among the five values of a window, with the largest sum."""
    return [(1 + Costs._fields.index(name), most) for name, most in room.items()]


def _is_over(row: Sequence[Any], limits: Sequence[tuple[int, list[tuple[int, int]]]]) -> bool:
    """True if a limit has no room left for the user of a row."""
    for first, room in limits:
        if row[first] is not None:
            for place, most in room:
                amount = row[first + place]
                if amount is None or amount > most:
                    return True
    return False


def _add(name: str, amount: int | None) -> str:
    """Return SQL that adds an amount to a sum; a sum too large to count becomes unbounded."""
    if amount is None:
        return f"{name} = NULL"
    return f"{name} = CASE WHEN a.{name} <= {LARGEST - amount} THEN a.{name} + {amount} END"
