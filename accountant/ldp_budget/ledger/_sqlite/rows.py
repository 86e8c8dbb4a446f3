"""The statements on a ledger's tables: plain SQL, each indexed, none that grows with the past."""

from __future__ import annotations

import sqlite3
from functools import cache
from typing import TYPE_CHECKING, Any

from ...guarantees.amounts import Costs
from ..entries import (
    NO_LINK,
    End,
    LabelRow,
    QuotaRow,
    StoredAnswer,
    StoredCharge,
    StoredCollection,
    StoredPolicy,
    SumRow,
    Tombstone,
    User,
)
from .batch import SqliteBatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_AMOUNTS = ", ".join(Costs._fields)
_ENTRY = f"entry, at, kind, account, charge, policy, reports, {_AMOUNTS}, labelled, expires, resolves"
_LABELLED = f"SELECT {_ENTRY}, label FROM journal LEFT JOIN entry_labels USING (entry)"
_CHARGE = f"charge, fingerprint, mechanism, declared, guarantee, {_AMOUNTS}"
_POLICY = "policy, name, version, created_at, definition"
_ANSWER = "SELECT key, user, request, answer, seal FROM keys"
_END = (
    "SELECT j.entry, j.at, j.link, l.accounts, l.charges, l.policies FROM lanes l"
    " LEFT JOIN journal j ON j.entry = (SELECT max(entry) FROM journal) WHERE l.lane = 0"
)


class SqliteRows:
    """A lane of a SQLite ledger inside a transaction of one connection, to read and, if it writes, to write."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._execute_many = connection.executemany
        self._end = End()

    def end(self) -> End:
        row = self._execute(_END).fetchone()
        if row is None:
            raise sqlite3.DatabaseError("the end of its journal is missing")
        entries, at, link, *numbers = row
        self._end = End(entries or 0, at, link or NO_LINK, *numbers)
        return self._end

    def set_end(self, end: End) -> None:
        # Number, time and link stand in the journal's last row: one page less to write for each spend.
        if end[3:] != self._end[3:]:
            self._execute("UPDATE lanes SET accounts = ?, charges = ?, policies = ? WHERE lane = 0", end[3:])
        self._end = end

    # -- one user -----------------------------------------------------------------------------------------

    def accounts(self, users: Sequence[bytes], windows: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        return self._execute(_accounts(len(windows), len(users)), (*windows, *users))

    def is_erased(self, user: bytes) -> bool:
        return self._execute("SELECT 1 FROM tombstones WHERE hash = ?", (user,)).fetchone() is not None

    def is_cut_off(self, account: int) -> bool:
        sql = "SELECT 1 FROM users WHERE account = ? AND hash IS NULL"
        return self._execute(sql, (account,)).fetchone() is not None

    def spent(self, account: int, window: int) -> Costs | None:
        sql = f"SELECT {_AMOUNTS} FROM accounts WHERE account = ? AND window = ?"
        row = self._execute(sql, (account, window)).fetchone()
        return None if row is None else Costs._make(row)

    def label_reports(self, account: int, label: bytes, charge: int, window: int) -> int:
        sql = "SELECT reports FROM labels WHERE account = ? AND label = ? AND charge = ? AND window = ?"
        row = self._execute(sql, (account, label, charge, window)).fetchone()
        return 0 if row is None else row[0]

    def quota_used(self, account: int, plan: str, promise: str) -> int:
        sql = "SELECT used FROM quotas WHERE account = ? AND plan = ? AND promise = ?"
        row = self._execute(sql, (account, plan, promise)).fetchone()
        return 0 if row is None else row[0]

    def plans_used(self, account: int) -> Iterable[str]:
        rows = self._execute("SELECT DISTINCT plan FROM quotas WHERE account = ? AND used > 0", (account,))
        return [plan for (plan,) in rows]

    def answers(self, keys: Sequence[bytes]) -> Iterable[StoredAnswer]:
        return map(StoredAnswer._make, self._execute(_answers(len(keys)), keys))

    # -- the journal --------------------------------------------------------------------------------------

    def entries(self, first: int, last: int) -> Iterator[tuple[tuple[Any, ...], bytes | None]]:
        sql = f"SELECT {_ENTRY}, link FROM journal WHERE entry BETWEEN ? AND ? ORDER BY entry"
        for row in self._execute(sql, (first, last)):
            yield row[:-1], row[-1]

    def entry(self, number: int) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None
        row = self._execute(f"SELECT {_ENTRY} FROM journal WHERE entry = ?", (number,)).fetchone()
        return row

    def resolution(self, number: int) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None
        row = self._execute(f"SELECT {_ENTRY} FROM journal WHERE resolves = ?", (number,)).fetchone()
        return row

    def label(self, number: int) -> bytes | None:
        row = self._execute("SELECT label FROM entry_labels WHERE entry = ?", (number,)).fetchone()
        return None if row is None else row[0]

    def history(self, account: int) -> Iterator[tuple[Any, ...]]:
        return self._execute(f"{_LABELLED} WHERE account = ? ORDER BY entry", (account,))

    def histories(self, since: int | None = None) -> Iterator[tuple[Any, ...]]:
        if since is None:
            return self._execute(f"{_LABELLED} ORDER BY account, entry")
        return self._execute(f"{_LABELLED} WHERE at >= ? AND account > 0 ORDER BY account, entry", (since,))

    def add_entries(self, rows: list[tuple[Any, ...]], link: bytes | None) -> None:
        *before, last = rows
        if before:
            self._execute_many(f"INSERT INTO journal ({_ENTRY}) VALUES ({_places(14)})", before)
        self._execute(f"INSERT INTO journal ({_ENTRY}, link) VALUES ({_places(15)})", (*last, link))

    def set_link(self, number: int, link: bytes) -> None:
        self._execute("UPDATE journal SET link = ? WHERE entry = ?", (link, number))

    def add_label(self, number: int, label: bytes) -> None:
        self._execute("INSERT INTO entry_labels VALUES (?, ?)", (number, label))

    # -- what changes with the accounts -------------------------------------------------------------------

    def add_user(self, user: User) -> None:
        self._execute("INSERT INTO users VALUES (?, ?, ?)", user)

    def set_sums(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._execute_many("INSERT OR REPLACE INTO accounts VALUES (?, ?, ?, ?, ?, ?)", rows)

    def set_label_reports(self, row: LabelRow) -> None:
        self._execute("INSERT OR REPLACE INTO labels VALUES (?, ?, ?, ?, ?)", row)

    def set_quota_used(self, row: QuotaRow) -> None:
        self._execute("INSERT OR REPLACE INTO quotas VALUES (?, ?, ?, ?)", row)

    def add_answers(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._execute_many("INSERT INTO keys VALUES (?, ?, ?, ?, ?)", rows)

    def forget(self, tombstone: Tombstone, account: int | None) -> None:
        self._execute("INSERT INTO tombstones VALUES (?, ?, ?)", tombstone)
        self._execute("DELETE FROM keys WHERE user = ?", (tombstone.hash,))
        if account is not None:
            mine = "entry IN (SELECT entry FROM journal WHERE account = ?)"
            self._execute(f"DELETE FROM entry_labels WHERE {mine}", (account,))
            self._execute("DELETE FROM labels WHERE account = ?", (account,))
            self._execute("DELETE FROM accounts WHERE account = ? AND window <> 0", (account,))
            self._execute("UPDATE users SET hash = NULL, seal = NULL WHERE account = ?", (account,))

    def batch(self, users: list[bytes]) -> SqliteBatch:
        return SqliteBatch(self._connection, users)

    # -- what was set -------------------------------------------------------------------------------------

    def periods(self) -> dict[str, int]:
        return dict(self._execute("SELECT period, since FROM periods"))

    def add_period(self, period: str, since: int) -> None:
        self._execute("INSERT INTO periods VALUES (?, ?)", (period, since))

    def charge_number(self, fingerprint: str, guarantee: str) -> int | None:
        sql = "SELECT charge FROM charges WHERE fingerprint = ? AND guarantee = ?"
        row = self._execute(sql, (fingerprint, guarantee)).fetchone()
        return None if row is None else row[0]

    def charges(self, first: int = 1) -> Iterator[StoredCharge]:
        rows = self._execute(f"SELECT {_CHARGE} FROM charges WHERE charge >= ? ORDER BY charge", (first,))
        return map(StoredCharge._make, rows)

    def add_charge(self, charge: StoredCharge) -> None:
        self._execute(f"INSERT INTO charges ({_CHARGE}) VALUES ({_places(9)})", charge)

    def policy(self, name: str) -> StoredPolicy | None:
        sql = f"SELECT {_POLICY} FROM policies WHERE name = ? ORDER BY version DESC LIMIT 1"
        row = self._execute(sql, (name,)).fetchone()
        return None if row is None else StoredPolicy._make(row)

    def policies(self, first: int = 1) -> Iterator[StoredPolicy]:
        rows = self._execute(f"SELECT {_POLICY} FROM policies WHERE policy >= ? ORDER BY policy", (first,))
        return map(StoredPolicy._make, rows)

    def was_charged(self, policy: int) -> bool:
        sql = "SELECT 1 FROM journal WHERE policy = ? AND charge > 0 LIMIT 1"
        return self._execute(sql, (policy,)).fetchone() is not None

    def add_policy(self, policy: StoredPolicy) -> None:
        self._execute(f"INSERT INTO policies ({_POLICY}) VALUES ({_places(5)})", policy)

    def collection(self, name: str) -> StoredCollection | None:
        row = self._execute("SELECT * FROM collections WHERE name = ?", (name,)).fetchone()
        return None if row is None else StoredCollection._make(row)

    def collections(self) -> Iterator[StoredCollection]:
        return map(StoredCollection._make, self._execute("SELECT * FROM collections ORDER BY name"))

    def add_collection(self, collection: StoredCollection) -> None:
        self._execute("INSERT INTO collections VALUES (?, ?, ?, ?)", collection)

    # -- everything ---------------------------------------------------------------------------------------

    def users(self) -> Iterator[User]:
        return map(User._make, self._execute("SELECT account, hash, seal FROM users ORDER BY account"))

    def tombstones(self) -> Iterator[Tombstone]:
        return map(Tombstone._make, self._execute("SELECT hash, at, seal FROM tombstones ORDER BY hash"))

    def sums(self) -> Iterator[SumRow]:
        rows = self._execute(f"SELECT account, window, {_AMOUNTS} FROM accounts ORDER BY account, window")
        return map(SumRow._make, rows)

    def label_counts(self) -> Iterator[LabelRow]:
        sql = "SELECT account, label, charge, window, reports FROM labels ORDER BY account, label, charge, window"
        return map(LabelRow._make, self._execute(sql))

    def quotas(self) -> Iterator[QuotaRow]:
        sql = "SELECT account, plan, promise, used FROM quotas ORDER BY account, plan, promise"
        return map(QuotaRow._make, self._execute(sql))

    def stored_answers(self) -> Iterator[StoredAnswer]:
        return map(StoredAnswer._make, self._execute(_ANSWER))

    def counts(self) -> dict[str, Any]:
        def count(rows: str) -> int:
            number: int = self._execute(f"SELECT count(*) FROM {rows}").fetchone()[0]
            return number

        return {
            "users": count("users WHERE hash IS NOT NULL"),
            "erased": count("tombstones"),
            "keys": count("keys"),
            "collections": count("collections"),
            "entries_by_kind": dict(
                self._execute("SELECT kind, count(*) FROM journal GROUP BY kind ORDER BY kind").fetchall()
            ),
        }

    def damage(self) -> Iterator[str]:
        for (line,) in self._execute("PRAGMA integrity_check(10)"):
            if line != "ok":
                yield line


@cache
def _accounts(windows: int, users: int) -> str:
    return (
        f"SELECT u.hash, u.account, a.window, {', '.join(f'a.{name}' for name in Costs._fields)} FROM users u"
        f" LEFT JOIN accounts a ON a.account = u.account AND a.window IN ({_places(windows)})"
        f" WHERE u.hash IN ({_places(users)})"
    )


@cache
def _answers(keys: int) -> str:
    return f"{_ANSWER} WHERE key IN ({_places(keys)})"


def _places(values: int) -> str:
    return ", ".join("?" * values)
