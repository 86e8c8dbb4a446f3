"""Many users charged alike, by set-based statements over temporary tables: none for each user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...guarantees.amounts import LARGEST, Costs
from ..keys import HASH_BYTES, SEAL_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .transaction import Transaction

# The rows of a blob that holds equal slices one after the other; `executemany` takes twice as long.
_SLICES = "WITH RECURSIVE slice(n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM slice WHERE n + 1 < ?1)"

# In each window, the largest sums on top of which the charge fits; None where none do.
Rooms = list[tuple[int, dict[str, int] | None]]


class Batch:
    """Distinct users, at least one, as sorted hashes: their index is then visited in order."""

    def __init__(self, transaction: Transaction, users: list[bytes]) -> None:
        self._transaction = transaction
        execute = self._execute = transaction.execute
        execute("CREATE TEMP TABLE IF NOT EXISTS batch (hash BLOB PRIMARY KEY) WITHOUT ROWID")
        execute("CREATE TEMP TABLE IF NOT EXISTS charged (account INTEGER PRIMARY KEY)")
        execute("DELETE FROM batch")
        execute("DELETE FROM charged")
        execute(
            f"INSERT INTO batch {_SLICES} SELECT {_slice(2, HASH_BYTES)} FROM slice", (len(users), b"".join(users))
        )
        self._size = len(users)

    def refuse(self, rooms: Rooms) -> list[bytes]:
        """Strike out the users whom a limit or a tombstone refuses; returns them."""
        erased = "(u.account IS NULL AND EXISTS (SELECT 1 FROM tombstones t WHERE t.hash = b.hash))"
        refused = " OR ".join([erased, *(_over(window, room) for window, room in rooms)])
        hashes = self._execute(
            f"SELECT b.hash FROM batch b LEFT JOIN users u USING (hash) WHERE {refused}"
        ).fetchall()
        self._transaction.execute_many("DELETE FROM batch WHERE hash = ?", hashes)
        self._size -= len(hashes)
        return [row[0] for row in hashes]

    def open_accounts(self) -> None:
        """Look the accounts up, and give one to those users who have none."""
        found = "SELECT u.account FROM batch b CROSS JOIN users u USING (hash) ORDER BY account"
        if self._execute(f"INSERT INTO charged {found}").rowcount < self._size:
            unknown = "SELECT hash FROM batch b WHERE NOT EXISTS (SELECT 1 FROM users u WHERE u.hash = b.hash)"
            self._open([row[0] for row in self._execute(f"{unknown} ORDER BY hash")])

    def _open(self, users: list[bytes]) -> None:
        first = self._transaction.last_account() + 1
        numbers = range(first, first + len(users))
        seals = self._transaction.key.seals(zip(numbers, users, strict=True))
        row = f"?2 + n, {_slice(3, HASH_BYTES)}, {_slice(4, SEAL_BYTES)}"
        values = (len(users), first, b"".join(users), b"".join(seals))
        self._execute(f"INSERT INTO users {_SLICES} SELECT {row} FROM slice", values)
        self._execute(f"INSERT INTO charged {_SLICES} SELECT ?2 + n FROM slice", values[:2])

    def charge(self, windows: Iterable[int], cost: Costs) -> None:
        """Add the cost to the sums of every account."""
        adds = ", ".join(_add(name, amount) for name, amount in zip(Costs._fields, cost, strict=True))
        for window in windows:
            self._execute(
                "INSERT INTO accounts SELECT account, ?, ?, ?, ?, ? FROM charged WHERE true ORDER BY account"
                f" ON CONFLICT DO UPDATE SET {adds}",
                (window, *cost),
            )

    def append(self, common: tuple[Any, ...]) -> None:
        """Append an entry of one report for every account, `common` as for `JournalEnd.append_batch`."""
        self._transaction.append_batch(common)


def _slice(parameter: int, size: int) -> str:
    """SQL for the part of a blob that stands in row `n`."""
    return f"substr(?{parameter}, {size} * n + 1, {size})"


def _over(window: int, room: dict[str, int] | None) -> str:
    """True where a limit has no room. Only integers stand in it."""
    if room is None:
        return "1"
    over = " OR ".join(f"a.{name} IS NULL OR a.{name} > {most}" for name, most in room.items())
    return f"EXISTS (SELECT 1 FROM accounts a WHERE a.account = u.account AND a.window = {window} AND ({over}))"


def _add(name: str, amount: int | None) -> str:
    """SQL that adds an amount to a sum; what grows too large to count is unbounded."""
    if amount is None:
        return f"{name} = NULL"
    return f"{name} = CASE WHEN {name} <= {LARGEST - amount} THEN {name} + {amount} END"
