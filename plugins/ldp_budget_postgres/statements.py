"""SQL statements on one partition of a PostgreSQL ledger.

Each statement uses an index that begins with the partition. The cost of a charge does not grow with the journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ldp_budget.guarantees.fixed_point import Costs
from ldp_budget.ledger.calendar import DAY_MICROS
from ldp_budget.ledger.models import (
    IN_ROUNDS,
    AccountMac,
    Checkpoint,
    EntryNote,
    IdempotencyRecord,
    KeptPeriod,
    MemoisedCount,
    PartitionHead,
    QuotaUse,
    StoredReport,
    Tombstone,
    User,
    WindowSum,
)
from ldp_budget.ledger.tables import TABLES, Dialect, NamedReads

from .bulk_writes import (
    ACCOUNT_MACS,
    AMOUNTS,
    COUNTERS,
    ENTRIES,
    ENTRY,
    NAMED,
    NOTES,
    NUMBERED_ROWS,
    RECORDS,
    RENEWED,
    REPORTS,
    SUMS,
    USERS,
    BulkStatement,
    PostgresBatch,
    account_rows,
)
from .schema import PARTITIONED, ask_catalog, compare_catalog, created_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ldp_budget.ledger.storage import Renew
    from ldp_budget.ledger.tables import R

    from .bulk_writes import NUMBERED_ROWS, PrefetchedRows, Unit

# Large results are read in parts, as the driver keeps each answer in memory as a whole.
_RECORDS_TOGETHER = 2_000
_CHECKPOINTS_TOGETHER = 50
END = f"SELECT partition, entry, at, chain_hash, {', '.join(COUNTERS)}, row_mac FROM partitions"
_LABELLED = (
    f"SELECT {', '.join(f'j.{name}' for name in ENTRY.split(', '))}, l.label, l.salt FROM journal j"
    " LEFT JOIN entry_labels l ON l.partition = %(here)s AND l.entry = j.entry WHERE j.partition = %(here)s"
)
_RECORD = "SELECT user_hash, key_hash, entry, number, request_digest, response, row_mac FROM idempotency_records"
_ORPHANS = (
    "SELECT l.entry FROM entry_labels l LEFT JOIN journal j ON j.partition = %(here)s AND j.entry = l.entry"
    " WHERE l.partition = %(here)s AND (j.entry IS NULL OR j.account = 0) ORDER BY l.entry LIMIT 10"
)
_STRANGE_META = "SELECT name FROM meta WHERE name NOT IN ('schema', 'identity', 'key_check', 'ledger_id') LIMIT 10"
_STRAY_NOTES = (
    "SELECT n.entry FROM notes n LEFT JOIN journal j ON j.partition = %(here)s AND j.entry = n.entry"
    " LEFT JOIN users u ON u.partition = %(here)s AND u.account = j.account"
    " WHERE n.partition = %(here)s AND u.user_hash IS NULL ORDER BY n.entry LIMIT 10"
)
_CHARGED, _VOIDED = "FILTER (WHERE kind <> 'voided')", "FILTER (WHERE kind = 'voided')"
_CHARGES = "FROM journal WHERE partition = %(here)s AND kind IN ('spent', 'reserved', 'voided')"
_REPORTS, _VOIDED_REPORTS = (f"coalesce(sum(reports) {which}, 0)::int8" for which in (_CHARGED, _VOIDED))
_BY_MECHANISM = (
    f"SELECT priced_mechanism, count(*) {_CHARGED}, {_REPORTS}, count(*) {_VOIDED}, {_VOIDED_REPORTS}, max(at)"
    f" {_CHARGES} GROUP BY priced_mechanism ORDER BY priced_mechanism"
)
_BY_DAY = (
    f"SELECT at / {DAY_MICROS} AS day, count(DISTINCT account) {_CHARGED}, count(*) {_CHARGED}, {_REPORTS},"
    f" {_VOIDED_REPORTS} {_CHARGES} AND at >= %(0)s GROUP BY day ORDER BY day"
)
# The response of a refusal (`Receipt.store`): its status; numbers from policy and time on; the periods that refused.
_REFUSED_AT = "(response::json #>> '{1,1}')::int8"
_REFUSALS_BY_DAY = (
    f"SELECT {_REFUSED_AT} / {DAY_MICROS} AS day, (response::json #>> '{{1,0}}')::int8 AS policy,"
    " response::json #>> '{2,0}' AS periods, count(*) FROM idempotency_records WHERE partition = %(here)s"
    f" AND number IS NOT NULL AND {_REFUSED_AT} >= %(0)s GROUP BY day, policy, periods ORDER BY day, policy, periods"
)
_ALIKE = [name for name in ENTRY.split(", ") if name not in ("entry", "account")]
_FIRST_OTHER = (
    "SELECT o.entry FROM journal s JOIN journal o ON o.partition = %(here)s WHERE s.partition = %(here)s AND s.entry = %(0)s"
    " AND o.entry > %(0)s AND o.entry <= %(1)s AND NOT (o.chain_hash IS NULL AND "
    f"{' AND '.join(f'o.{name} IS NOT DISTINCT FROM s.{name}' for name in _ALIKE)}) ORDER BY o.entry LIMIT 1"
)
_REFUSED_IN_RUNS = (
    "SELECT coalesce(sum(json_array_length(response::json -> 'refused')), 0)::int8 FROM batch_runs"
    " WHERE partition = %(here)s AND kind = 'charged'"
)
_USERS_BY_SUMS = (
    f"SELECT window_name, {AMOUNTS}, count(*) FROM users u JOIN window_sums s"
    " ON s.partition = %(here)s AND s.account = u.account WHERE u.partition = %(here)s AND user_hash IS NOT NULL"
    " AND window_name = ANY(%(0)b::text[])"
    f" GROUP BY window_name, {AMOUNTS}"
)
_STRAY_REPORTS = (
    "SELECT r.number FROM reports r LEFT JOIN journal j ON j.partition = %(here)s AND j.entry = r.entry"
    " LEFT JOIN users u ON u.partition = %(here)s AND u.account = j.account"
    " WHERE r.partition = %(here)s AND r.state = 'waiting' AND u.user_hash IS NULL ORDER BY r.number LIMIT 10"
)
_BUFFERED = {User: USERS, IdempotencyRecord: RECORDS, EntryNote: NOTES, **NUMBERED_ROWS}
"""The statements of rows that are sent together, see `bulk_writes`."""
_RENEWED_TOGETHER = 5_000


def end_of(row: tuple[Any, ...]) -> tuple[PartitionHead, bytes]:
    """Return the head of a partition and the MAC of its counters, from its row."""
    return PartitionHead(*row[1:-1]), row[-1]


_DIALECT = Dialect("%s", "partition", ' COLLATE "C"')
_REPLACE = {
    kind: f"{_DIALECT.insert(kind)} ON CONFLICT (partition, {', '.join(TABLES[kind].key)}) DO UPDATE"
    f" SET {(last := TABLES[kind].columns[-1])} = excluded.{last}"
    for kind in (MemoisedCount, QuotaUse, KeptPeriod)
}
_QUERIES = {
    "entry": f"SELECT {ENTRY} FROM journal WHERE partition = %(here)s AND entry = %(0)s",
    "resolution": f"SELECT {ENTRY} FROM journal WHERE partition = %(here)s AND resolves = %(0)s",
    "repairs": "SELECT entry, at FROM journal WHERE partition = %(here)s AND kind = 'clock' AND entry >= %(0)s"
    " ORDER BY entry",
    "notes_of": "SELECT entry, note, row_mac FROM notes WHERE partition = %(here)s AND entry BETWEEN %(0)s AND %(1)s"
    " AND entry IN (SELECT entry FROM journal WHERE partition = %(here)s AND account = %(2)s) ORDER BY entry",
    "first_other": _FIRST_OTHER,
    "accounts_of": "SELECT account FROM journal WHERE partition = %(here)s AND entry BETWEEN %(0)s AND %(1)s"
    " ORDER BY entry",
    **{
        f"amounts {name}": f"SELECT account, {name} FROM window_sums WHERE partition = %(here)s"
        " AND window_name = %(0)s ORDER BY account"
        for name in Costs._fields
    },
    "was_charged": "SELECT 1 FROM journal WHERE partition = %(here)s AND policy = %(0)s AND priced_mechanism > 0"
    " LIMIT 1",
    "refusals": f"{_RECORD} WHERE partition = %(here)s AND number BETWEEN %(0)s AND %(1)s ORDER BY number",
    "waiting_of": f"SELECT {', '.join(StoredReport._fields)} FROM reports WHERE partition = %(here)s"
    " AND state = 'waiting' AND entry IN (SELECT entry FROM journal WHERE partition = %(here)s AND account = %(0)s)"
    " ORDER BY number",
    "rounds": "SELECT name FROM rounds WHERE partition = %(here)s AND collection = %(0)s AND part = 0 ORDER BY number",
    "report_counts": "SELECT collection, state, count(*) FROM reports WHERE partition = %(here)s"
    f" GROUP BY collection, state UNION ALL SELECT collection, '{IN_ROUNDS}', sum(reports)::int8 FROM rounds"
    " WHERE partition = %(here)s GROUP BY collection",
    "charges_by_mechanism": _BY_MECHANISM,
    "charges_by_day": _BY_DAY,
    "refusals_by_day": _REFUSALS_BY_DAY,
    "refused_in_runs": _REFUSED_IN_RUNS,
    "users_by_sums": _USERS_BY_SUMS,
    # The entries of no account are few, and an index finds them.
    "policies_set": "SELECT policy, api_key FROM journal WHERE partition = %(here)s AND account = 0"
    " AND kind = 'policy' ORDER BY entry",
}
"""The named queries. Each condition of a table names the partition."""
_SLOW = {name for name in _QUERIES if name.startswith(("charges_", "refus", "users_", "report_"))} - {"refusals"}
"""Their time grows with the size of the partition."""


class PostgresRows(NamedReads):
    """One partition of a PostgreSQL ledger inside a transaction; writable if the transaction is."""

    def __init__(
        self, unit: Unit, partition: int, end: tuple[PartitionHead, bytes], ahead: PrefetchedRows | None = None
    ) -> None:
        self._unit = unit
        self._partition = partition
        self._end = end
        self._ahead = ahead

    def _ask(self, sql: str, *values: Any) -> Any:
        return self._unit.run(sql, values)

    def _first(self, sql: str, *values: Any) -> Any:
        return self._unit.run(sql, values).fetchone()

    def _write(self, sql: str, *values: Any) -> None:
        """Write one row of the partition."""
        self._ahead = None
        self._unit.write(1, sql, (self._partition, *values))

    def _delete(self, sql: str, *values: Any) -> None:
        """Delete rows of the partition; deleting none is not an error."""
        self._ahead = None
        self._unit.run(sql, (self._partition, *values))

    def _put(self, statement: BulkStatement, rows: Iterable[tuple[Any, ...]]) -> None:
        self._ahead = None
        self._unit.put(statement, [(self._partition, *row) for row in rows])

    def end(self) -> tuple[PartitionHead, bytes]:
        return self._end

    def set_end(self, end: PartitionHead, row_mac: bytes | None) -> None:
        self._end = end, self._end[1] if row_mac is None else row_mac
        self._unit.set_end(self._partition, end, row_mac)

    # -- tables -------------------------------------------------------------------------------------------

    def select(self, kind: type[R], first: Any = None, last: Any = None, **equal: Any) -> Iterator[R]:
        make: Any = cast("Any", kind)._make
        if kind is Checkpoint:  # one has the heads of all partitions
            return map(make, self._parts_from(first or 1))
        return map(make, self._unit.run(*_DIALECT.select(kind, self._partition, first, last, equal)))

    def _parts_from(self, first: int) -> Iterator[tuple[Any, ...]]:
        while True:
            sql, values = _DIALECT.select(Checkpoint, self._partition, first, None, {})
            part = self._ask(f"{sql} LIMIT {_CHECKPOINTS_TOGETHER}", *values).fetchall()
            yield from part
            if len(part) < _CHECKPOINTS_TOGETHER:
                return
            first = part[-1][0] + 1

    def ask(self, query: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        if query in _SLOW:
            self._unit.be_patient()
        named = {"here": self._partition, **{str(place): value for place, value in enumerate(values)}}
        return iter(self._unit.run(_QUERIES[query], named))

    def insert(self, kind: type[Any], rows: Iterable[tuple[Any, ...]]) -> None:
        buffered = _BUFFERED.get(kind)
        if buffered is not None:
            self._put(buffered, rows)
            return
        for row in rows:
            self._write(_DIALECT.insert(kind), *row)

    def replace(self, kind: type[Any], rows: Iterable[tuple[Any, ...]]) -> None:
        if kind is StoredReport:
            self._put(REPORTS, [(row.number, row.state, row.report, row.row_mac) for row in cast("Any", rows)])
        elif kind in (WindowSum, AccountMac):
            self._put(SUMS if kind is WindowSum else ACCOUNT_MACS, rows)
        else:
            for row in rows:
                self._write(_REPLACE[kind], *row)

    # -- one user -----------------------------------------------------------------------------------------

    def accounts(
        self, asked: Sequence[bytes] | Sequence[int], windows: Sequence[str], by_number: bool = False
    ) -> Iterable[tuple[Any, ...]]:
        if by_number:
            return self._accounts_by_number(cast("Sequence[int]", asked), windows)
        users = cast("Sequence[bytes]", asked)
        if self._ahead is not None:
            known = self._ahead.accounts(self._partition, users, windows)
            if known is not None:
                return known
        return self._accounts_where("u.user_hash = ANY(%(users)b::bytea[])", windows, users=list(users))

    def _accounts_by_number(self, accounts: Sequence[int], windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        some: dict[str, Any] = {"accounts": list(accounts)}
        those = "= ANY(%(accounts)b::int8[])"
        if isinstance(accounts, range):
            some = {"first": accounts.start, "last": accounts.stop - 1}
            those = "BETWEEN %(first)s AND %(last)s"
        return self._accounts_where(f"u.account {those} AND u.user_hash IS NOT NULL", windows, **some)

    def _accounts_where(self, condition: str, windows: Sequence[str], **values: Any) -> Iterable[tuple[Any, ...]]:
        where = f"WHERE {NAMED.format('u')} AND {condition}"
        sql = " ".join((*account_rows("users u", len(windows), NAMED), where))
        named = {f"w{place}": window for place, window in enumerate(windows)}
        return self._unit.run(sql, {"here": self._partition, **named, **values})

    def sums_between(
        self, accounts: Sequence[int], ranges: Sequence[tuple[str, str]]
    ) -> Iterable[tuple[int, str, int | None, int | None, int | None, int | None]]:
        # The names are ASCII; their order by bytes is that of the days.
        sql = (
            f"SELECT account, window_name, {AMOUNTS} FROM window_sums WHERE partition = %s"
            ' AND account = ANY(%b::int8[]) AND window_name COLLATE "C" BETWEEN %s AND %s'
        )
        for each in ranges:
            yield from self._ask(sql, self._partition, list(accounts), *each)

    def erased(self, users: Sequence[bytes]) -> Iterable[bytes]:
        sql = "SELECT user_hash FROM tombstones WHERE partition = %s AND user_hash = ANY(%b::bytea[])"
        return [hashed for (hashed,) in self._ask(sql, self._partition, list(users))]

    def idempotency_records(self, users: Sequence[bytes], keys: Sequence[bytes]) -> Iterable[IdempotencyRecord]:
        if self._ahead is not None:
            known = self._ahead.idempotency_records(self._partition, users, keys)
            if known is not None:
                return known
        sql = f"{_RECORD} WHERE partition = %s AND user_hash = ANY(%b::bytea[]) AND key_hash = ANY(%b::bytea[])"
        return map(IdempotencyRecord._make, self._ask(sql, self._partition, list(users), list(keys)))

    # -- the journal --------------------------------------------------------------------------------------

    def entries(self, first: int, last: int) -> Iterator[tuple[tuple[Any, ...], bytes | None]]:
        sql = (
            f"SELECT {ENTRY}, chain_hash FROM journal WHERE partition = %s AND entry BETWEEN %s AND %s ORDER BY entry"
        )
        for row in self._ask(sql, self._partition, first, last):
            yield row[:-1], row[-1]

    def histories(
        self, first: int, last: int, since: int | None = None, after: int = 0, most: int | None = None
    ) -> Iterator[tuple[Any, ...]]:
        late = "" if since is None else f" AND j.at >= {since:d}"
        late += f" AND j.entry > {after:d}" if after else ""
        sql = f"{_LABELLED} AND account BETWEEN %(first)s AND %(last)s{late} ORDER BY account, entry LIMIT %(most)s"
        return iter(self._unit.run(sql, {"here": self._partition, "first": first, "last": last, "most": most}))

    def reserved(self, after: int, account: int | None = None) -> Iterator[tuple[Any, ...]]:
        mine = "" if account is None else f" AND account = {account:d}"
        ended = "SELECT 1 FROM journal e WHERE e.partition = %(here)s AND e.resolves = j.entry"
        where = f"j.partition = %(here)s AND j.expires > %(after)s{mine} AND NOT EXISTS ({ended})"
        sql = f"SELECT {ENTRY} FROM journal j WHERE {where} ORDER BY entry"
        return iter(self._unit.run(sql, {"here": self._partition, "after": after}))

    def add_entries(self, rows: list[tuple[Any, ...]], chain_hash: bytes | None, last: int) -> None:
        if not rows:
            sql = "UPDATE journal SET chain_hash = %s WHERE partition = %s AND entry = %s"
            self._unit.write(1, sql, (chain_hash, self._partition, last))
            return
        *before, newest = rows
        self._put(ENTRIES, [*((*row, None) for row in before), (*newest, chain_hash)])

    def forget(self, tombstone: Tombstone, cut_off: User | None) -> None:
        self._write("INSERT INTO tombstones VALUES (%s, %s, %s)", *tombstone)
        self._delete("DELETE FROM idempotency_records WHERE partition = %s AND user_hash = %s", tombstone.user_hash)
        if cut_off is not None:
            account = cut_off.account
            mine = "entry IN (SELECT entry FROM journal WHERE partition = %s AND account = %s)"
            self._delete(f"DELETE FROM entry_labels WHERE partition = %s AND {mine}", self._partition, account)
            self._delete(f"DELETE FROM notes WHERE partition = %s AND {mine}", self._partition, account)
            self._delete("DELETE FROM memoised_counts WHERE partition = %s AND account = %s", account)
            self._delete("DELETE FROM account_macs WHERE partition = %s AND account = %s", account)
            self._delete(
                "DELETE FROM window_sums WHERE partition = %s AND account = %s AND window_name <> 'lifetime'", account
            )
            sql = "UPDATE users SET user_hash = NULL, row_mac = %s WHERE partition = %s AND account = %s"
            self._unit.write(1, sql, (cut_off.row_mac, self._partition, account))

    def renew(self, tables: Mapping[str, Renew]) -> None:
        self._ahead = None
        self._unit.be_patient()
        for table, renew in tables.items():
            statement, columns = RENEWED[table]
            found = self._ask(f"SELECT {columns} FROM {table} WHERE partition = %s", self._partition).fetchall()
            rows = [(self._partition, *renew(row)) for row in found]
            self._unit.run(f"DELETE FROM {table} WHERE partition = %s", (self._partition,))
            for first in range(0, len(rows), _RENEWED_TOGETHER):
                some = rows[first : first + _RENEWED_TOGETHER]
                self._unit.write_rows(statement, some)

    def batch(self, users: list[bytes], windows: list[str]) -> PostgresBatch:
        known = None if self._ahead is None else self._ahead.batch(self._partition, users, windows)
        self._ahead = None
        return PostgresBatch(self._unit, self._partition, users, windows, known)

    # -- mechanisms, policies, collections and the administrative log -------------------------------------

    # -- all rows of a table ------------------------------------------------------------------------------

    def idempotency_records_after(self, position: int, most: int) -> tuple[Iterable[IdempotencyRecord], int | None]:
        return self._every_answer(), None

    def _every_answer(self) -> Iterator[IdempotencyRecord]:
        where = "partition = %s"
        values: tuple[Any, ...] = (self._partition,)
        while True:
            sql = f"{_RECORD} WHERE {where} ORDER BY user_hash, key_hash LIMIT {_RECORDS_TOGETHER}"
            part = self._ask(sql, *values).fetchall()
            yield from map(IdempotencyRecord._make, part)
            if len(part) < _RECORDS_TOGETHER:
                return
            where, values = "partition = %s AND (user_hash, key_hash) > (%b, %b)", (self._partition, *part[-1][:2])

    def counts(self) -> dict[str, Any]:
        self._unit.be_patient()

        def count(rows: str) -> int:
            return int(self._first(f"SELECT count(*) FROM {rows}", self._partition)[0])

        kinds = "SELECT kind, count(*) FROM journal WHERE partition = %s GROUP BY kind ORDER BY kind"
        return {
            "engine": {"postgresql": self._first("SHOW server_version")[0].split()[0]},
            "users": count("users WHERE partition = %s AND user_hash IS NOT NULL"),
            "erased": count("tombstones WHERE partition = %s"),
            "cut_off": count("users WHERE partition = %s AND user_hash IS NULL"),
            "keys": count("idempotency_records WHERE partition = %s") + count("batch_runs WHERE partition = %s"),
            "notes": count("notes WHERE partition = %s"),
            "entries_by_kind": dict(self._ask(kinds, self._partition).fetchall()),
        }

    def damage(self) -> Iterator[str]:
        self._unit.be_patient()
        if self._partition == 0:
            yield from compare_catalog(ask_catalog(self._unit), self._unit.aside)
            yield from self._strange_partitions()
            for (name,) in self._ask(_STRANGE_META):
                yield f"meta: there is a row {name!r}, which no ledger has"
        for (entry,) in self._unit.run(_ORPHANS, {"here": self._partition}):
            yield f"entry_labels: there is a label of entry {entry}, which has none"
        for (entry,) in self._unit.run(_STRAY_NOTES, {"here": self._partition}):
            yield f"notes: there is a note of entry {entry}, which has none"
        for (number,) in self._unit.run(_STRAY_REPORTS, {"here": self._partition}):
            yield f"reports: report {number} is of an entry that is not there, or of an erased user"

    def _strange_partitions(self) -> Iterator[str]:
        """Yield a message for each table with rows of partitions that do not exist.

        Each table's key begins with the partition, so the index finds the lowest and highest partition fast.
        """
        (partitions,) = self._first("SELECT count(*) FROM partitions")
        for table in sorted({*PARTITIONED} - created_tables(self._unit.aside)):
            for end in ("min", "max"):
                (partition,) = self._first(f"SELECT {end}(partition) FROM {table}")
                if partition is not None and not 0 <= partition < partitions:
                    yield f"{table}: there are rows of partition {partition}, and the ledger has {partitions} partitions"
