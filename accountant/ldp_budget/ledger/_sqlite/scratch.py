"""What a copy of a ledger remembers while it runs: where accounts and entries went, and what was charged."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_TABLES = (
    """CREATE TABLE accounts (
        lane INTEGER, account INTEGER, hash BLOB, to_lane INTEGER NOT NULL, number INTEGER,
        PRIMARY KEY (lane, account)) WITHOUT ROWID""",
    """CREATE TABLE entries (
        lane INTEGER, entry INTEGER, to_lane INTEGER NOT NULL, number INTEGER NOT NULL,
        PRIMARY KEY (lane, entry)) WITHOUT ROWID""",
    """CREATE TABLE sums (
        lane INTEGER, account INTEGER, window INTEGER,
        epsilon INTEGER, delta INTEGER, rho INTEGER, mu_squared INTEGER,
        PRIMARY KEY (lane, account, window)) WITHOUT ROWID""",
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
        self._together("INSERT INTO accounts (lane, account, hash, to_lane) VALUES (?, ?, ?, ?)", rows)

    def account(self, lane: int, account: int) -> tuple[int, int | None, bytes | None] | None:
        sql = "SELECT to_lane, number, hash FROM accounts WHERE lane = ? AND account = ?"
        row: tuple[int, int | None, bytes | None] | None = self._execute(sql, (lane, account)).fetchone()
        return row

    def number_account(self, lane: int, account: int, number: int) -> None:
        self._execute("UPDATE accounts SET number = ? WHERE lane = ? AND account = ?", (number, lane, account))

    def users(self, to_lane: int) -> Iterator[tuple[int, bytes | None]]:
        return self._execute("SELECT number, hash FROM accounts WHERE to_lane = ? ORDER BY number", (to_lane,))

    def add_entry(self, lane: int, entry: int, to_lane: int, number: int) -> None:
        self._execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (lane, entry, to_lane, number))

    def entry(self, lane: int, entry: int) -> tuple[int, int] | None:
        row: tuple[int, int] | None
        sql = "SELECT to_lane, number FROM entries WHERE lane = ? AND entry = ?"
        row = self._execute(sql, (lane, entry)).fetchone()
        return row

    def add_sums(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._together("INSERT INTO sums VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    def sums(self, to_lane: int) -> Iterator[tuple[Any, ...]]:
        return self._execute(
            "SELECT a.number, s.window, s.epsilon, s.delta, s.rho, s.mu_squared FROM accounts a"
            " JOIN sums s ON s.lane = a.lane AND s.account = a.account WHERE a.to_lane = ? ORDER BY 1, 2",
            (to_lane,),
        )

    def _together(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self._execute("BEGIN")
        self._execute_many(sql, rows)
        self._execute("COMMIT")

    def close(self) -> None:
        self._connection.close()
