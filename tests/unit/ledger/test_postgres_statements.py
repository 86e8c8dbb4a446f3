"""Each statement on a partition of a PostgreSQL ledger names the partition in every clause.

So a sharded engine, such as Citus, sends the statement to one node. The test collects the statements: those of the table
of named queries, and those that each method of a partition's rows sends. `unpinned` finds tables without a partition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ldp_budget.guarantees.fixed_point import Costs
from ldp_budget.ledger.models import AccountMac, PartitionHead, Tombstone, User, WindowSum
from ldp_budget.ledger.tables import TABLES
from ldp_budget_postgres import bulk_writes, statements, store
from ldp_budget_postgres.bulk_writes import BulkStatement, PostgresBatch
from ldp_budget_postgres.schema import PARTITIONED
from ldp_budget_postgres.statements import PostgresRows

_NAMES = "|".join(PARTITIONED)
_TABLE = re.compile(
    rf"\b(FROM|JOIN|UPDATE|INTO)\s+({_NAMES})\b(?:\s+(?:AS\s+)?(?!WHERE|ON|SET|SELECT|VALUES|ORDER|LEFT|CROSS|JOIN)(\w+))?"
)
_PARTITION = r"(?:%s|%\(here\)s(?:::int4)?|ANY\(%b::int4\[\]\)|ANY\(%\(here\)b::int4\[\]\))"


def scopes(sql: str) -> list[str]:
    """The text of each parenthesis that is a query, and of each query of the whole, without the queries in it."""
    found: list[str] = []
    parts = [""]
    kinds = [True]
    for place, letter in enumerate(sql):
        if letter == "(":
            kinds.append(sql[place + 1 :].lstrip().startswith("SELECT"))
            if kinds[-1]:
                parts.append("")
                continue
        elif letter == ")" and kinds.pop():
            found.append(parts.pop())
            continue
        parts[-1] += letter
    return [*found, *parts[0].split("UNION ALL")]


def unpinned(sql: str) -> list[str]:
    """The tables of a statement that it does not compare with a partition."""
    missing = []
    for scope in scopes(" ".join(sql.split())):
        tables = _TABLE.findall(scope)
        for word, table, alias in tables:
            if word == "INTO":  # the partition comes first in its rows
                rows = re.search(rf"{table}\b[^(]*(?:\([^)]*\) )?(VALUES \(%s|SELECT p\.partition,)", scope)
                if rows is None:
                    missing.append(table)
                continue
            name = rf"(?<![\w.]){alias or table}\.partition"
            if len(tables) == 1:
                name = rf"(?:{name}|(?<![\w.])partition)"
            if not re.search(rf"{name} = {_PARTITION}", scope):
                missing.append(table)
    return missing


@pytest.mark.parametrize(
    ("sql", "missing"),
    [
        ("SELECT entry FROM journal", ["journal"]),
        ("SELECT entry FROM journal WHERE partition = %s", []),
        (
            "SELECT entry FROM journal j JOIN notes n ON n.partition = j.partition WHERE j.partition = %(here)s",
            ["notes"],
        ),
        (
            "SELECT entry FROM journal j JOIN notes n USING (partition, entry) WHERE partition = %s",
            ["journal", "notes"],
        ),
        (
            "SELECT 1 FROM users u WHERE u.partition = %s AND EXISTS (SELECT FROM quotas q WHERE q.partition = u.partition)",
            ["quotas"],
        ),
        (
            "SELECT 1 FROM users WHERE partition = %s AND account IN (SELECT account FROM journal WHERE entry = 1)",
            ["journal"],
        ),
        ("INSERT INTO notes SELECT * FROM unnest(%s) AS t", ["notes"]),
        ("INSERT INTO notes (partition, entry) VALUES (%s, %s)", []),
        (
            "UPDATE partitions SET entry = t.entry FROM unnest(%s) AS t WHERE partitions.partition = t.partition",
            ["partitions"],
        ),
        ("SELECT p.partition FROM unnest(%s) AS t JOIN partitions p ON p.partition = ANY(%(here)b::int4[])", []),
    ],
)
def test_unpinned_names_the_tables_without_a_partition(sql: str, missing: list[str]) -> None:
    assert unpinned(sql) == missing


class Cursor:
    """The answer to any query: one row of a count, or none."""

    rowcount = 0

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = rows

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._rows)


class Recorder:
    """A unit that keeps the statements which it is given, as a sharded engine gets them."""

    schema, shards = "public", [7] * 4

    def __init__(self) -> None:
        self.sql: list[str] = []

    def run(self, sql: str, values: Any = ()) -> Cursor:
        self.sql.append(sql)
        return Cursor(
            [("18 a",)] if sql.startswith("SHOW") else [(0,)] if sql.startswith("SELECT count(*) FROM") else []
        )

    def write(self, count: int, sql: str, values: Any = ()) -> None:
        self.sql.append(sql)

    def write_rows(self, statement: BulkStatement, rows: Any) -> None:
        self.sql += of_shard(statement)

    def put(self, statement: BulkStatement, rows: Any) -> None:
        self.sql += of_shard(statement)

    def set_end(self, *values: Any) -> None:
        self.sql += [*of_shard(bulk_writes._ENDS), *of_shard(bulk_writes._COUNTED)]

    def be_patient(self) -> None:
        pass


def of_shard(statement: BulkStatement) -> list[str]:
    """The texts of a statement that are sent to a sharded engine."""
    width = len(re.findall(r"%\(c\d+\)b", statement.sharded))
    one, two = [(1, *["x"] * (width - 1))], [(n, *["x"] * (width - 1)) for n in (1, 2)]
    many = two * bulk_writes.MOST_VALUES
    return [statement.bind_sharded(rows)[0] for rows in (one, two, many, one * (bulk_writes.MOST_VALUES + 1))]


_USERS = [b"a", b"b"]
_CALLS: dict[str, list[Callable[[Any], Any]]] = {
    "select": [lambda rows, kind=kind: [*rows.select(kind, 1, 2)] for kind in TABLES],
    "ask": [lambda rows, name=name: [*rows.ask(name, 1, 2, 3)] for name in statements._QUERIES],
    "insert": [lambda rows, kind=kind: rows.insert(kind, [(1,) * len(TABLES[kind].columns)]) for kind in TABLES],
    "replace": [
        lambda rows, kind=kind: rows.replace(kind, [(1,) * len(TABLES[kind].columns)])
        for kind in (*statements._REPLACE, WindowSum, AccountMac)
    ],
    "accounts": [
        lambda rows: rows.accounts(_USERS, ["lifetime", "day"]),
        lambda rows: rows.accounts([1, 2], ["lifetime"], True),
        lambda rows: rows.accounts(range(1, 3), ["lifetime"], True),
    ],
    "sums_between": [lambda rows: [*rows.sums_between([1, 2], [("2d 2026-11-01", "2d 2026-11-02")])]],
    "erased": [lambda rows: rows.erased(_USERS)],
    "idempotency_records": [lambda rows: [*rows.idempotency_records(_USERS, _USERS)]],
    "entries": [lambda rows: [*rows.entries(1, 2)]],
    "histories": [lambda rows: rows.histories(1, 2), lambda rows: rows.histories(1, 2, 3, 4, 5)],
    "reserved": [lambda rows: rows.reserved(1), lambda rows: rows.reserved(1, 2)],
    "add_entries": [lambda rows: rows.add_entries([], b"", 1), lambda rows: rows.add_entries([(1,)], b"", 1)],
    "forget": [lambda rows: rows.forget(Tombstone(b"", b""), User(1, b"", b""))],
    "renew": [lambda rows: rows.renew(dict.fromkeys(bulk_writes.RENEWED, lambda row: row))],
    "idempotency_records_after": [lambda rows: [*rows.idempotency_records_after(1, 2)[0]]],
    "counts": [lambda rows: rows.counts()],
    "damage": [lambda rows: [*rows.damage()]],
    "set_end": [lambda rows: rows.set_end(PartitionHead(), b"")],
}
_SILENT = {"end", "batch"}
"""Methods without a statement of their own."""


def calls() -> dict[str, Callable[[Any], Any]]:
    return {f"{name} {place}": call for name, some in _CALLS.items() for place, call in enumerate(some)}


def test_calls_cover_every_method_of_a_partition() -> None:
    public = {name for name, value in vars(PostgresRows).items() if callable(value) and not name.startswith("_")}
    assert public == {*_CALLS} | _SILENT


@pytest.mark.parametrize("call", calls())
def test_statement_of_a_partition_names_it_in_every_clause(call: str) -> None:
    recorder = Recorder()
    rows = PostgresRows(recorder, 1, (PartitionHead(), b""))  # type: ignore[arg-type]
    calls()[call](rows)
    assert recorder.sql or call.startswith("replace")
    assert {sql: unpinned(sql) for sql in recorder.sql if unpinned(sql)} == {}


def test_statements_of_batches_name_the_partition_in_every_clause() -> None:
    recorder = Recorder()
    batch = PostgresBatch(recorder, 1, _USERS, ["lifetime", "day"], None)  # type: ignore[arg-type]
    batch.open_accounts(1, _USERS, _USERS)
    batch.charge(["lifetime"], Costs(1, None, 2, 3))
    batch.append(1, (1, "spent", 1, 1, 1, 1, 1, 1), (0, 0, 0))
    batch.set_macs(1, _USERS)
    assert len(recorder.sql) > 4
    assert {sql: unpinned(sql) for sql in recorder.sql if unpinned(sql)} == {}


def test_statements_over_rows_name_their_partitions_in_every_clause() -> None:
    modules = [value for value in vars(bulk_writes).values() if isinstance(value, BulkStatement)]
    tables = [*bulk_writes.NUMBERED_ROWS.values(), *(statement for statement, _ in bulk_writes.RENEWED.values())]
    every = [*modules, *tables, *(bulk_writes._accounts(windows) for windows in range(3))]
    sent = [sql for statement in every for sql in of_shard(statement)]
    assert len(sent) > 60
    assert {sql: unpinned(sql) for sql in [*sent, store._LOCK, store._LOCK_ONE] if unpinned(sql)} == {}
