"""Set-based writes of a SQLite ledger.

`SqliteBatch` charges many users the same costs by statements over temporary tables, with no statement per user.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from ...guarantees.fixed_point import LARGEST, Costs
from ..keyed_hashing import HASH_BYTES, MAC_BYTES
from ..storage import NO_SUM

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from ..storage import Rooms


# -- batches -------------------------------------------------------------------------------------------------

# One row for each slice of a blob of equal slices; `executemany` takes twice as long.
_SLICES = "WITH RECURSIVE slice(n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM slice WHERE n + 1 < :rows)"

# The index of accounts finds the newest charge, as it has the entries in order.
_NEWEST = (
    "(SELECT j.entry FROM journal j WHERE j.account = {0}.account AND j.kind IN ('spent', 'reserved', 'voided')"
    " ORDER BY j.entry DESC LIMIT 1)"
)
_COUNTED = (
    "(EXISTS (SELECT 1 FROM memoised_counts l WHERE l.account = {0}.account)"
    " OR EXISTS (SELECT 1 FROM quotas q WHERE q.account = {0}.account))"
)
MAC_STATE = f"u.user_hash, u.account, {_NEWEST}, s.day, s.row_mac, {_COUNTED}".format("u")
"""Columns read for the MACs `s` of accounts `u`."""


class SqliteBatch:
    """Batch of at least one distinct user, as sorted hashes: so their index is read in order."""

    def __init__(self, connection: sqlite3.Connection, users: list[bytes]) -> None:
        self._connection = connection
        execute = self._execute = connection.execute
        execute("CREATE TEMP TABLE IF NOT EXISTS batch (user_hash BLOB PRIMARY KEY) WITHOUT ROWID")
        execute("CREATE TEMP TABLE IF NOT EXISTS charged (account INTEGER PRIMARY KEY, user_hash BLOB)")
        execute("DELETE FROM batch")
        execute("DELETE FROM charged")
        values = {"rows": len(users), "hashes": b"".join(users)}
        execute(f"INSERT INTO batch {_SLICES} SELECT {_slice(':hashes', HASH_BYTES)} FROM slice", values)
        self._size = len(users)

    def refuse(self, rooms: Rooms) -> list[bytes]:
        erased = "(u.account IS NULL AND EXISTS (SELECT 1 FROM tombstones t WHERE t.user_hash = b.user_hash))"
        refused = " OR ".join([erased, *(_over(room) for _, room in rooms)])
        sql = f"SELECT b.user_hash FROM batch b LEFT JOIN users u USING (user_hash) WHERE {refused}"
        hashes = self._execute(sql, [window for window, room in rooms if room is not None]).fetchall()
        self._connection.executemany("DELETE FROM batch WHERE user_hash = ?", hashes)
        self._size -= len(hashes)
        return [row[0] for row in hashes]

    def unknown(self) -> list[bytes]:
        # The same statement inserts the known users into `charged`.
        found = "SELECT u.account, b.user_hash FROM batch b CROSS JOIN users u USING (user_hash) ORDER BY account"
        if self._execute(f"INSERT INTO charged {found}").rowcount >= self._size:
            return []
        known = "SELECT 1 FROM users u WHERE u.user_hash = b.user_hash"
        sql = f"SELECT user_hash FROM batch b WHERE NOT EXISTS ({known}) ORDER BY user_hash"
        return [row[0] for row in self._execute(sql)]

    def stored_macs(self, day: int, windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        sums = [f", {_of(place)}" for place in range(len(windows))]
        row_mac = f"CASE WHEN s.day = {day:d} AND NOT {_COUNTED.format('c')} THEN s.row_mac END"
        joins = [
            f" LEFT JOIN window_sums a{place} ON a{place}.account = c.account AND a{place}.window_name = ?"
            for place in range(len(windows))
        ]
        return self._execute(
            f"SELECT c.account, c.user_hash, {_NEWEST.format('c')}, {row_mac}{''.join(sums)} FROM charged c"
            f" LEFT JOIN account_macs s ON s.account = c.account{''.join(joins)}",
            windows,
        )

    def open_accounts(self, first: int, users: list[bytes], row_macs: list[bytes]) -> None:
        row = f":first + n, {_slice(':hashes', HASH_BYTES)}, {_slice(':macs', MAC_BYTES)}"
        values = {"rows": len(users), "first": first, "hashes": b"".join(users), "macs": b"".join(row_macs)}
        self._execute(f"INSERT INTO users {_SLICES} SELECT {row} FROM slice", values)
        self._execute(f"INSERT INTO charged {_SLICES} SELECT :first + n, NULL FROM slice", values)

    def charge(self, windows: Iterable[str], cost: Costs) -> None:
        adds = ", ".join(_add(name, amount) for name, amount in zip(Costs._fields, cost, strict=True))
        for window in windows:
            self._execute(
                "INSERT INTO window_sums SELECT account, ?, ?, ?, ?, ? FROM charged WHERE true ORDER BY account"
                f" ON CONFLICT DO UPDATE SET {adds}",
                (window, *cost),
            )

    def append(self, first: int, common: tuple[Any, ...], bound: tuple[int, int, int]) -> list[int]:
        accounts = [row[0] for row in self._execute("SELECT account FROM charged ORDER BY account")]
        columns = f"entry, at, kind, account, priced_mechanism, policy, reports, {', '.join(Costs._fields)}"
        columns += ", has_record, has_note, api_key, sub_limit"
        self._execute(
            f"INSERT INTO journal ({columns}) SELECT ? + row_number() OVER (ORDER BY account),"
            " ?, ?, account, ?, ?, 1, ?, ?, ?, ?, 0, ?, ?, ? FROM charged ORDER BY account",
            (first - 1, *common, *bound),
        )
        return accounts

    def set_macs(self, day: int, row_macs: list[bytes]) -> None:
        self._execute(
            f"INSERT INTO account_macs SELECT account, :day, {_slice(':macs', MAC_BYTES)} FROM"
            " (SELECT account, row_number() OVER (ORDER BY account) - 1 AS n FROM charged)"
            " WHERE true ON CONFLICT (account) DO UPDATE SET day = excluded.day, row_mac = excluded.row_mac",
            {"day": day, "macs": b"".join(row_macs)},
        )


def _of(place: int) -> str:
    """Return SQL for the amounts of a sum that may be missing."""
    first, *others = [f"a{place}.{name}" for name in Costs._fields]
    return ", ".join(
        [
            f"CASE WHEN a{place}.account IS NULL THEN {NO_SUM} WHEN {first} < 0 THEN {NO_SUM - 1} ELSE {first} END",
            *others,
        ]
    )


def _slice(blob: str, size: int) -> str:
    """Return SQL for the slice in row `n` of the blob in a parameter."""
    return f"substr({blob}, {size} * n + 1, {size})"


def _over(room: dict[str, int] | None) -> str:
    """Return SQL that is true if a limit has no room left in a window, the SQL's parameter; unless `room` is None."""
    if room is None:
        return "1"
    over = " OR ".join(f"a.{name} IS NULL OR a.{name} > {most}" for name, most in room.items())
    return f"EXISTS (SELECT 1 FROM window_sums a WHERE a.account = u.account AND a.window_name = ? AND ({over}))"


def _add(name: str, amount: int | None) -> str:
    """Return SQL that adds an amount to a sum; a sum too large to count becomes unbounded."""
    if amount is None:
        return f"{name} = NULL"
    return f"{name} = CASE WHEN {name} <= {LARGEST - amount} THEN {name} + {amount} END"
