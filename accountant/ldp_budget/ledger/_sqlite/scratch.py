"""What a copy of a ledger remembers while it runs: where accounts and entries went, and what was charged."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TABLES = (
    """CREATE TABLE window_sums (
        partition INTEGER, account INTEGER, hash BLOB, to_partition INTEGER NOT NULL, number INTEGER,
        PRIMARY KEY (partition, account)) WITHOUT ROWID""",
    """CREATE TABLE entries (
        partition INTEGER, entry INTEGER, to_partition INTEGER NOT NULL, number INTEGER NOT NULL,
        PRIMARY KEY (partition, entry)) WITHOUT ROWID""",
    """CREATE TABLE sums (
        partition INTEGER, account INTEGER, window INTEGER,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER,
        PRIMARY KEY (partition, account, window)) WITHOUT ROWID""",
)


class SqliteScratch:
    """A database of its own that SQLite keeps in memory while it is small, and then in a file without a name."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._execute = self._connection.execute
        self._execute_many = self._connection.executemany
        for statement in _TABLES:
            self._execute(statement)
        self._execute("PRAGMA synchronous = OFF")
        self._execute("PRAGMA journal_mode = OFF")

    def add_accounts(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._together("INSERT INTO window_sums (partition, account, hash, to_partition) VALUES (?, ?, ?, ?)", rows)

    def account(self, partition: int, account: int) -> tuple[int, int | None, bytes | None] | None:
        sql = "SELECT to_partition, number, hash FROM window_sums WHERE partition = ? AND account = ?"
        row: tuple[int, int | None, bytes | None] | None = self._execute(sql, (partition, account)).fetchone()
        return row

    def number_account(self, partition: int, account: int, number: int) -> None:
        self._execute(
            "UPDATE window_sums SET number = ? WHERE partition = ? AND account = ?", (number, partition, account)
        )

    def users(self, to_partition: int) -> Iterator[tuple[int, bytes | None]]:
        return self._execute(
            "SELECT number, hash FROM window_sums WHERE to_partition = ? ORDER BY number", (to_partition,)
        )

    def add_entry(self, partition: int, entry: int, to_partition: int, number: int) -> None:
        self._execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (partition, entry, to_partition, number))

    def entry(self, partition: int, entry: int) -> tuple[int, int] | None:
        row: tuple[int, int] | None
        sql = "SELECT to_partition, number FROM entries WHERE partition = ? AND entry = ?"
        row = self._execute(sql, (partition, entry)).fetchone()
        return row

    def add_sums(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._together("INSERT INTO sums VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def sums(self, to_partition: int) -> Iterator[tuple[Any, ...]]:
        return self._execute(
            "SELECT a.number, s.window, s.epsilon, s.delta, s.rho, s.mu_squared FROM window_sums a"
            " JOIN sums s ON s.partition = a.partition AND s.account = a.account WHERE a.to_partition = ? ORDER BY 1, 2",
            (to_partition,),
        )

    def _together(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self._execute("BEGIN")
        self._execute_many(sql, rows)
        self._execute("COMMIT")

    def close(self) -> None:
        self._connection.close()
