"""SQL statements on the tables of a SQLite ledger.

Each statement uses an index. The cost of a charge does not grow with the length of the journal.
"""

from __future__ import annotations

import json
import sqlite3
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ...guarantees.fixed_point import Costs
from ..calendar import DAY_MICROS
from ..models import (
    EMPTY_CHAIN,
    IN_ROUNDS,
    IdempotencyRecord,
    PartitionHead,
    Tombstone,
    User,
)
from ..tables import TABLES, Dialect, NamedReads
from .bulk_charges import MAC_STATE, SqliteBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ..storage import Renew
    from ..tables import R

T = TypeVar("T")
_RENEWED_TOGETHER = 5_000
_FETCHED_TOGETHER = 500
_LAST_ROW = 2**63 - 1
_AMOUNTS = ", ".join(Costs._fields)
_ENTRY = (
    f"entry, at, kind, account, priced_mechanism, policy, reports, {_AMOUNTS}, label_commitment, expires, resolves,"
    " has_record, has_note, api_key, sub_limit, period"
)
_LABELLED = f"SELECT {_ENTRY}, label, salt FROM journal LEFT JOIN entry_labels USING (entry)"
_ALIKE = [name for name in _ENTRY.split(", ") if name not in ("entry", "account")]
_FIRST_OTHER = (
    "SELECT o.entry FROM journal s CROSS JOIN journal o WHERE s.entry = ? AND o.entry > s.entry AND o.entry <= ? AND NOT"
    f" (o.chain_hash IS NULL AND {' AND '.join(f'o.{name} IS s.{name}' for name in _ALIKE)}) ORDER BY o.entry LIMIT 1"
)
_RECORD = "SELECT user_hash, key_hash, entry, number, request_digest, response, row_mac FROM idempotency_records"
_ONE_RECORD = f"{_RECORD} WHERE user_hash = ? AND key_hash = ?"
_SUMS_BETWEEN = (
    f"SELECT account, window_name, {_AMOUNTS} FROM json_each(?) n CROSS JOIN window_sums s ON s.account = n.value"
    " WHERE window_name BETWEEN ? AND ?"
)
_ADD_ENTRY = f"INSERT INTO journal ({_ENTRY}) VALUES ({', '.join('?' * 19)})"
_ADD_LAST_ENTRY = f"INSERT INTO journal ({_ENTRY}, chain_hash) VALUES ({', '.join('?' * 20)})"
_ORPHANS = (
    "SELECT entry FROM entry_labels LEFT JOIN journal j USING (entry) WHERE j.entry IS NULL OR j.account = 0"
    " ORDER BY entry LIMIT 10"
)
_STRAY_NOTES = (
    "SELECT n.entry FROM notes n LEFT JOIN journal j USING (entry) LEFT JOIN users u USING (account)"
    " WHERE u.user_hash IS NULL ORDER BY n.entry LIMIT 10"
)
_CHARGED, _VOIDED = "FILTER (WHERE kind <> 'voided')", "FILTER (WHERE kind = 'voided')"
_CHARGES = "FROM journal WHERE kind IN ('spent', 'reserved', 'voided')"
_REPORTS, _VOIDED_REPORTS = (f"coalesce(sum(reports) {which}, 0)" for which in (_CHARGED, _VOIDED))
_BY_MECHANISM = (
    f"SELECT priced_mechanism, count(*) {_CHARGED}, {_REPORTS}, count(*) {_VOIDED}, {_VOIDED_REPORTS}, max(at)"
    f" {_CHARGES} GROUP BY priced_mechanism ORDER BY priced_mechanism"
)
_BY_DAY = (
    f"SELECT at / {DAY_MICROS} AS day, count(DISTINCT account) {_CHARGED}, count(*) {_CHARGED}, {_REPORTS},"
    f" {_VOIDED_REPORTS} {_CHARGES} AND at >= ? GROUP BY day ORDER BY day"
)
# The response of a refusal (`Receipt.store`): its status; numbers from policy and time on; the periods that refused.
_REFUSALS_BY_DAY = (
    f"SELECT json_extract(response, '$[1][1]') / {DAY_MICROS} AS day, json_extract(response, '$[1][0]') AS policy,"
    " json_extract(response, '$[2][0]') AS periods, count(*) FROM idempotency_records WHERE number IS NOT NULL"
    " AND json_extract(response, '$[1][1]') >= ? GROUP BY day, policy, periods ORDER BY day, policy, periods"
)
_REFUSED_IN_RUNS = (
    "SELECT coalesce(sum(json_array_length(response, '$.refused')), 0) FROM batch_runs WHERE kind = 'charged'"
)
_STRAY_REPORTS = (
    "SELECT r.number FROM reports r LEFT JOIN journal j USING (entry) LEFT JOIN users u USING (account)"
    " WHERE r.state = 'waiting' AND u.user_hash IS NULL ORDER BY r.number LIMIT 10"
)
# The log's note is missing until the log is first used (see `file_guard`). It is a number of entries.
_STRANGE_META = (
    "SELECT CASE WHEN typeof(name) = 'text' THEN name ELSE quote(name) END FROM meta WHERE NOT coalesce("
    "name IN ('key_check', 'ledger_id') AND typeof(value) = 'blob' OR name = 'log' AND typeof(value) = 'integer'"
    " AND value BETWEEN 0 AND (SELECT coalesce(max(entry), 0) FROM journal), false) LIMIT 10"
)
_MISSING_META = (
    'SELECT value FROM json_each(\'["key_check", "ledger_id"]\') WHERE value NOT IN (SELECT name FROM meta)'
)
_COUNTERS = PartitionHead._fields[3:]
_SET_COUNTERS = ", ".join(f"{name} = ?" for name in _COUNTERS)
_END = (
    f"SELECT j.entry, j.at, j.chain_hash, {', '.join(f'p.{name}' for name in _COUNTERS)}, p.row_mac FROM partitions p"
    " LEFT JOIN journal j ON j.entry = (SELECT max(entry) FROM journal) WHERE p.partition = 0"
)


_DIALECT = Dialect("?")
_QUERIES = {
    "entry": f"SELECT {_ENTRY} FROM journal WHERE entry = ?",
    "resolution": f"SELECT {_ENTRY} FROM journal WHERE resolves = ?",
    "repairs": "SELECT entry, at FROM journal WHERE kind = 'clock' AND entry >= ? ORDER BY entry",
    "notes_of": "SELECT entry, note, row_mac FROM notes WHERE entry BETWEEN ? AND ?"
    " AND entry IN (SELECT entry FROM journal WHERE account = ?) ORDER BY entry",
    "first_other": _FIRST_OTHER,
    "accounts_of": "SELECT account FROM journal WHERE entry BETWEEN ? AND ? ORDER BY entry",
    **{
        f"amounts {name}": f"SELECT account, {name} FROM window_sums WHERE window_name = ? ORDER BY account"
        for name in Costs._fields
    },
    "was_charged": "SELECT 1 FROM journal WHERE policy = ? AND priced_mechanism > 0 LIMIT 1",
    "refusals": f"{_RECORD} WHERE number BETWEEN ? AND ? ORDER BY number",
    "waiting_of": "SELECT * FROM reports WHERE state = 'waiting'"
    " AND entry IN (SELECT entry FROM journal WHERE account = ?) ORDER BY number",
    "rounds": "SELECT name FROM rounds WHERE collection = ? AND part = 0 ORDER BY number",
    "report_counts": "SELECT collection, state, count(*) FROM reports GROUP BY collection, state UNION ALL"
    f" SELECT collection, '{IN_ROUNDS}', sum(reports) FROM rounds GROUP BY collection",
    "charges_by_mechanism": _BY_MECHANISM,
    "charges_by_day": _BY_DAY,
    "refusals_by_day": _REFUSALS_BY_DAY,
    "refused_in_runs": _REFUSED_IN_RUNS,
    # From each user to the few windows asked for: the sums of a long history are never read through.
    "users_by_sums": f"SELECT window_name, {_AMOUNTS}, count(*) FROM users CROSS JOIN window_sums USING (account)"
    " WHERE user_hash IS NOT NULL AND window_name IN (SELECT value FROM json_each(?))"
    f" GROUP BY window_name, {_AMOUNTS}",
    # The entries of no account are few, and an index finds them.
    "policies_set": "SELECT policy, api_key FROM journal WHERE account = 0 AND kind = 'policy' ORDER BY entry",
}
_INSERT = {kind: _DIALECT.insert(kind) for kind in TABLES}
_REPLACE = {kind: sql.replace("INSERT", "INSERT OR REPLACE", 1) for kind, sql in _INSERT.items()}


class SqliteRows(NamedReads):
    """One partition of a SQLite ledger inside a transaction of one connection; writable if the transaction is."""

    def __init__(self, connection: sqlite3.Connection, known_end: tuple[PartitionHead, bytes] | None = None) -> None:
        self.known_end = known_end
        """The partition head and the MAC of its counters, if known without a query."""
        self.has_written = False
        """True once the partition has a new head: every change of a ledger gives it one."""
        self._connection = connection
        self._execute = connection.execute
        self._execute_many = connection.executemany

    def end(self) -> tuple[PartitionHead, bytes]:
        if self.known_end is None:
            self.known_end = self._read_end()
        return self.known_end

    def _read_end(self) -> tuple[PartitionHead, bytes]:
        row = self._execute(_END).fetchone()
        if row is None:
            raise sqlite3.DatabaseError("the end of its journal is missing")
        entries, at, chain_hash, *counters, row_mac = row
        return PartitionHead(entries or 0, at, chain_hash or EMPTY_CHAIN, *counters), row_mac

    def set_end(self, end: PartitionHead, row_mac: bytes | None) -> None:
        self.has_written = True
        # The journal's last row has the number, the time and the chain hash: most spends write one page less.
        if row_mac is None:
            self.known_end = end, (self.known_end or self.end())[1]
        else:
            self.known_end = end, row_mac
            self._execute(
                f"UPDATE partitions SET {_SET_COUNTERS}, row_mac = ? WHERE partition = 0", (*end.counters, row_mac)
            )

    # -- tables -------------------------------------------------------------------------------------------

    def select(self, kind: type[R], first: Any = None, last: Any = None, **equal: Any) -> Iterator[R]:
        rows = self._execute(*_DIALECT.select(kind, 0, first, last, equal))
        make: Callable[[Any], R] = cast("Any", kind)._make
        return map(make, rows if equal else _streamed(rows))

    def ask(self, query: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        asked = [json.dumps(value) if isinstance(value, list) else value for value in values]
        return _streamed(self._execute(_QUERIES[query], asked))

    def insert(self, kind: type[Any], rows: Iterable[tuple[Any, ...]]) -> None:
        self._execute_many(_INSERT[kind], rows)

    def replace(self, kind: type[Any], rows: Iterable[tuple[Any, ...]]) -> None:
        self._execute_many(_REPLACE[kind], rows)

    # -- one user -----------------------------------------------------------------------------------------

    def accounts(
        self, asked: Sequence[bytes] | Sequence[int], windows: Sequence[str], by_number: bool = False
    ) -> Iterable[tuple[Any, ...]]:
        if by_number:
            return self._accounts_by_number(cast("Sequence[int]", asked), windows)
        if len(asked) > 1:
            asked = _padded(cast("Sequence[bytes]", asked))
        return self._execute(_accounts(len(windows), len(asked)), (*windows, *asked))

    def _accounts_by_number(self, accounts: Sequence[int], windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        if isinstance(accounts, range):
            return _streamed(
                self._execute(_account_range(len(windows)), (*windows, accounts.start, accounts.stop - 1))
            )
        return self._execute(_numbered_accounts(len(windows)), (f"[{','.join(map(str, accounts))}]", *windows))

    def sums_between(
        self, accounts: Sequence[int], ranges: Sequence[tuple[str, str]]
    ) -> Iterable[tuple[int, str, int | None, int | None, int | None, int | None]]:
        listed = f"[{','.join(map(str, accounts))}]"
        return chain.from_iterable([self._execute(_SUMS_BETWEEN, (listed, *each)).fetchall() for each in ranges])

    def erased(self, users: Sequence[bytes]) -> Iterable[bytes]:
        sql = f"SELECT user_hash FROM tombstones WHERE user_hash IN ({_places(len(users))})"
        return [hashed for (hashed,) in self._execute(sql, users)]

    def idempotency_records(self, users: Sequence[bytes], keys: Sequence[bytes]) -> Iterable[IdempotencyRecord]:
        if len(users) == 1:
            return map(IdempotencyRecord._make, self._execute(_ONE_RECORD, (users[0], keys[0])))
        pairs = _padded([*zip(users, keys, strict=True)])
        return map(IdempotencyRecord._make, self._execute(_records(len(pairs)), [*chain.from_iterable(pairs)]))

    # -- the journal --------------------------------------------------------------------------------------

    def entries(self, first: int, last: int) -> Iterator[tuple[tuple[Any, ...], bytes | None]]:
        sql = f"SELECT {_ENTRY}, chain_hash FROM journal WHERE entry BETWEEN ? AND ? ORDER BY entry"
        for row in _streamed(self._execute(sql, (first, last))):
            yield row[:-1], row[-1]

    def histories(
        self, first: int, last: int, since: int | None = None, after: int = 0, most: int | None = None
    ) -> Iterator[tuple[Any, ...]]:
        late = "" if since is None else f"at >= {since:d} AND "
        late += f"entry > {after:d} AND " if after else ""
        those, values = ("account = ?", (first,)) if first == last else ("account BETWEEN ? AND ?", (first, last))
        sql = f"{_LABELLED} WHERE {late}{those} ORDER BY account, entry LIMIT ?"
        return _streamed(self._execute(sql, (*values, -1 if most is None else most)))

    def reserved(self, after: int, account: int | None = None) -> Iterator[tuple[Any, ...]]:
        # Without statistics, SQLite would read the whole journal in order to find the reservations of all accounts.
        index, mine = ("INDEXED BY reservations", "") if account is None else ("", f" AND account = {account:d}")
        ended = "SELECT 1 FROM journal e WHERE e.resolves = j.entry"
        where = f"expires > ?{mine} AND NOT EXISTS ({ended})"
        return self._execute(f"SELECT {_ENTRY} FROM journal j {index} WHERE {where} ORDER BY entry", (after,))

    def add_entries(self, rows: list[tuple[Any, ...]], chain_hash: bytes | None, last: int) -> None:
        if not rows:
            self._execute("UPDATE journal SET chain_hash = ? WHERE entry = ?", (chain_hash, last))
            return
        *before, newest = rows
        if before:
            self._execute_many(_ADD_ENTRY, before)
        self._execute(_ADD_LAST_ENTRY, (*newest, chain_hash))

    def forget(self, tombstone: Tombstone, cut_off: User | None) -> None:
        self._execute("INSERT INTO tombstones VALUES (?, ?)", tombstone)
        self._execute("DELETE FROM idempotency_records WHERE user_hash = ?", (tombstone.user_hash,))
        if cut_off is not None:
            account = cut_off.account
            mine = "entry IN (SELECT entry FROM journal WHERE account = ?)"
            self._execute(f"DELETE FROM entry_labels WHERE {mine}", (account,))
            self._execute(f"DELETE FROM notes WHERE {mine}", (account,))
            self._execute("DELETE FROM memoised_counts WHERE account = ?", (account,))
            self._execute("DELETE FROM account_macs WHERE account = ?", (account,))
            self._execute("DELETE FROM window_sums WHERE account = ? AND window_name <> 'lifetime'", (account,))
            self._execute(
                "UPDATE users SET user_hash = NULL, row_mac = ? WHERE account = ?", (cut_off.row_mac, account)
            )

    def renew(self, tables: Mapping[str, Renew]) -> None:
        for table, renew in tables.items():
            if table in ("tombstones", "memoised_counts"):
                found = self._execute(f"SELECT * FROM {table}")
                insert = f"INSERT INTO {table} VALUES ({_places(len(found.description))})"
                rows = [renew(row) for row in found]
                self._execute(f"DELETE FROM {table}")
                self._execute_many(insert, rows)
            else:
                self._renew_in_place(table, renew)

    def _renew_in_place(self, table: str, renew: Renew) -> None:
        """Rewrite the rows of a table that has row numbers, `_RENEWED_TOGETHER` at a time."""
        columns = [row[1] for row in self._execute(f"PRAGMA table_info({table})")]
        update = f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in columns)} WHERE rowid = ?"
        last = -(2**63)
        while True:
            sql = f"SELECT rowid, {', '.join(columns)} FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT ?"
            part = self._execute(sql, (last, _RENEWED_TOGETHER)).fetchall()
            if not part:
                return
            self._execute_many(update, [(*renew(row[1:]), row[0]) for row in part])
            last = part[-1][0]

    def batch(self, users: list[bytes], windows: list[str]) -> SqliteBatch:
        return SqliteBatch(self._connection, users)

    # -- mechanisms, policies, collections and the administrative log -------------------------------------

    # -- all rows of a table ------------------------------------------------------------------------------

    def idempotency_records_after(self, position: int, most: int) -> tuple[Iterable[IdempotencyRecord], int | None]:
        sql = (
            "SELECT rowid, user_hash, key_hash, entry, number, request_digest, response, row_mac"
            " FROM idempotency_records WHERE rowid >= ? ORDER BY rowid LIMIT ?"
        )
        rows = self._execute(sql, (position, most)).fetchall()
        following = rows[-1][0] + 1 if len(rows) == most and rows[-1][0] < _LAST_ROW else None
        return [IdempotencyRecord._make(row[1:]) for row in rows], following

    def counts(self) -> dict[str, Any]:
        def count(rows: str) -> int:
            number: int = self._execute(f"SELECT count(*) FROM {rows}").fetchone()[0]
            return number

        return {
            "engine": {"sqlite": sqlite3.sqlite_version},
            "users": count("users WHERE user_hash IS NOT NULL"),
            "erased": count("tombstones"),
            "cut_off": count("users WHERE user_hash IS NULL"),
            "keys": count("idempotency_records") + count("batch_runs"),
            "notes": count("notes"),
            "entries_by_kind": dict(
                self._execute("SELECT kind, count(*) FROM journal GROUP BY kind ORDER BY kind").fetchall()
            ),
        }

    def damage(self) -> Iterator[str]:
        from .migrations import changed_schema, has_strange_steps

        for (line,) in self._execute("PRAGMA integrity_check(10)"):
            if line != "ok":
                yield f"the file is damaged: {line}"
        for kind, name in changed_schema(self._connection):
            yield f"its schema was changed: {kind} {name}"
        for (name,) in self._execute(_STRANGE_META):
            yield f"meta: there is a row {name!r}, which no ledger has, or its value was changed"
        for (name,) in self._execute(_MISSING_META):
            yield f"meta: the row {name!r} is missing"
        if has_strange_steps(self._connection):
            yield "_sqlite_migrations: its rows were changed"
        for (partition,) in self._execute("SELECT partition FROM partitions WHERE partition <> 0"):
            yield f"partitions: there is a partition {partition}, and the ledger has only partition 0"
        for (entry,) in self._execute(_ORPHANS):
            yield f"entry_labels: there is a label of entry {entry}, which has none"
        for (entry,) in self._execute(_STRAY_NOTES):
            yield f"notes: there is a note of entry {entry}, which has none"
        for (number,) in self._execute(_STRAY_REPORTS):
            yield f"reports: report {number} is of an entry that is not there, or of an erased user"


@cache
def _accounts(windows: int, users: int) -> str:
    return f"{_account_rows('users u', windows)} WHERE u.user_hash IN ({_places(users)})"


@cache
def _numbered_accounts(windows: int) -> str:
    listed = "json_each(?) n CROSS JOIN users u ON u.account = n.value"
    return f"{_account_rows(listed, windows)} WHERE u.user_hash IS NOT NULL"


@cache
def _account_range(windows: int) -> str:
    return (
        f"{_account_rows('users u', windows)} WHERE u.account BETWEEN ? AND ? AND u.user_hash IS NOT NULL"
        " ORDER BY u.account"
    )


def _account_rows(accounts: str, windows: int) -> str:
    """Return the query of the rows of accounts `u`, with their sums in a number of windows."""
    sums, joins = "", ""
    for place in range(windows):
        name = f"a{place}"
        sums += "".join(f", {name}.{column}" for column in ("window_name", *Costs._fields))
        joins += f" LEFT JOIN window_sums {name} ON {name}.account = u.account AND {name}.window_name = ?"
    return f"SELECT {MAC_STATE}{sums} FROM {accounts} LEFT JOIN account_macs s ON s.account = u.account{joins}"


@cache
def _records(pairs: int) -> str:
    # Two IN lists would look up every user with every key.
    wanted = ", ".join(["(?, ?)"] * pairs)
    return (
        f"WITH wanted(u, k) AS (VALUES {wanted}) {_RECORD.replace('FROM', 'FROM wanted CROSS JOIN')}"
        " WHERE user_hash = u AND key_hash = k"
    )


def _streamed(cursor: sqlite3.Cursor) -> Iterator[Any]:
    """Yield the rows of a long read. Fetching one costs a lock, see `fork_gate`, so many are fetched at once."""
    while rows := cursor.fetchmany(_FETCHED_TOGETHER):
        yield from rows


def _padded(asked: Sequence[T]) -> Sequence[T]:
    """Return the same values, the last one repeated up to a power of two: so few statements serve any number."""
    count = len(asked)
    return [*asked, *[asked[-1]] * ((1 << (count - 1).bit_length()) - count)] if count else asked


def _places(values: int) -> str:
    return ", ".join("?" * values)
