"""SQL statements on one partition of a PostgreSQL ledger.

Each statement uses an index that begins with the partition. The cost of a charge does not grow with the journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ldp_budget.guarantees.fixed_point import Costs
from ldp_budget.ledger.calendar import DAY_MICROS
from ldp_budget.ledger.models import (
    IN_ROUNDS,
    NUMBERED,
    AccountMac,
    AdminLogEntry,
    Checkpoint,
    EntryLabel,
    EntryNote,
    IdempotencyRecord,
    MemoisedCount,
    Numbered,
    PartitionHead,
    PricedMechanism,
    QuotaUse,
    Repair,
    StoredCollection,
    StoredPolicy,
    StoredReport,
    Tombstone,
    User,
    WindowSum,
)

from .schema import PARTITIONED, ask_catalog, compare_catalog
from .write_buffer import (
    ACCOUNT_MACS,
    AMOUNTS,
    CHARGE,
    COUNTERS,
    ENTRIES,
    ENTRY,
    NOTES,
    NUMBERED_ROWS,
    POLICY,
    RECORDS,
    RENEWED,
    REPORTS,
    SUMS,
    USERS,
    BulkStatement,
    PostgresBatch,
    account_rows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ldp_budget.ledger.storage import N, Renew

    from .write_buffer import NUMBERED_ROWS, PrefetchedRows, Unit

# Large results are read in parts, as the driver keeps each answer in memory as a whole.
_RECORDS_TOGETHER = 2_000
_CHECKPOINTS_TOGETHER = 50
END = f"SELECT partition, entry, at, chain_hash, {', '.join(COUNTERS)}, row_mac FROM partitions"
_LABELLED = (
    f"SELECT {ENTRY}, label, salt FROM journal LEFT JOIN entry_labels USING (partition, entry) WHERE partition = %s"
)
_RECORD = "SELECT user_hash, key_hash, entry, number, request_digest, response, row_mac FROM idempotency_records"
_ORPHANS = (
    "SELECT l.entry FROM entry_labels l LEFT JOIN journal j ON j.partition = l.partition AND j.entry = l.entry"
    " WHERE l.partition = %s AND (j.entry IS NULL OR j.account = 0) ORDER BY l.entry LIMIT 10"
)
_STRANGE_META = "SELECT name FROM meta WHERE name NOT IN ('schema', 'ledger', 'key_check', 'ledger_id') LIMIT 10"
_STRAY_NOTES = (
    "SELECT n.entry FROM notes n LEFT JOIN journal j ON j.partition = n.partition AND j.entry = n.entry"
    " LEFT JOIN users u ON u.partition = n.partition AND u.account = j.account"
    " WHERE n.partition = %s AND u.user_hash IS NULL ORDER BY n.entry LIMIT 10"
)
_CHARGED, _VOIDED = "FILTER (WHERE kind <> 'voided')", "FILTER (WHERE kind = 'voided')"
_CHARGES = "FROM journal WHERE partition = %s AND kind IN ('spent', 'reserved', 'voided')"
_REPORTS, _VOIDED_REPORTS = (f"coalesce(sum(reports) {which}, 0)::int8" for which in (_CHARGED, _VOIDED))
_BY_MECHANISM = (
    f"SELECT priced_mechanism, count(*) {_CHARGED}, {_REPORTS}, count(*) {_VOIDED}, {_VOIDED_REPORTS}, max(at)"
    f" {_CHARGES} GROUP BY priced_mechanism ORDER BY priced_mechanism"
)
_BY_DAY = (
    f"SELECT at / {DAY_MICROS} AS day, count(DISTINCT account) {_CHARGED}, count(*) {_CHARGED}, {_REPORTS},"
    f" {_VOIDED_REPORTS} {_CHARGES} AND at >= %s GROUP BY day ORDER BY day"
)
# The response of a refusal (`Receipt.store`): its status; numbers from policy and time on; the periods that refused.
_REFUSED_AT = "(response::json #>> '{1,1}')::int8"
_REFUSALS_BY_DAY = (
    f"SELECT {_REFUSED_AT} / {DAY_MICROS} AS day, (response::json #>> '{{1,0}}')::int8 AS policy,"
    " response::json #>> '{2,0}' AS periods, count(*) FROM idempotency_records WHERE partition = %s"
    f" AND number IS NOT NULL AND {_REFUSED_AT} >= %s GROUP BY day, policy, periods ORDER BY day, policy, periods"
)
_ALIKE = [name for name in ENTRY.split(", ") if name not in ("entry", "account")]
_FIRST_OTHER = (
    "SELECT o.entry FROM journal s JOIN journal o ON o.partition = s.partition WHERE s.partition = %s AND s.entry = %s"
    " AND o.entry > %s AND o.entry <= %s AND NOT (o.chain_hash IS NULL AND "
    f"{' AND '.join(f'o.{name} IS NOT DISTINCT FROM s.{name}' for name in _ALIKE)}) ORDER BY o.entry LIMIT 1"
)
_REFUSED_IN_RUNS = (
    "SELECT coalesce(sum(json_array_length(response::json -> 'refused')), 0)::int8 FROM batch_runs"
    " WHERE partition = %s AND kind = 'charged'"
)
_USERS_BY_SUMS = (
    f"SELECT window_name, {AMOUNTS}, count(*) FROM users JOIN window_sums USING (partition, account)"
    " WHERE partition = %s AND user_hash IS NOT NULL AND window_name = ANY(%b::text[])"
    f" GROUP BY window_name, {AMOUNTS}"
)
_STRAY_REPORTS = (
    "SELECT r.number FROM reports r LEFT JOIN journal j ON j.partition = r.partition AND j.entry = r.entry"
    " LEFT JOIN users u ON u.partition = r.partition AND u.account = j.account"
    " WHERE r.partition = %s AND r.state = 'waiting' AND u.user_hash IS NULL ORDER BY r.number LIMIT 10"
)
_SET_LABEL = (
    "INSERT INTO memoised_counts VALUES (%s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (partition, account, label, priced_mechanism, window_name) DO UPDATE SET reports = excluded.reports"
)
_SET_PERIOD = (
    "INSERT INTO periods VALUES (%s, %s, %s) ON CONFLICT (partition, period) DO UPDATE SET since = excluded.since"
)
_SET_QUOTA = (
    "INSERT INTO quotas VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT (partition, account, plan, guarantee) DO UPDATE SET used = excluded.used"
)
_RENEWED_TOGETHER = 5_000


def end_of(row: tuple[Any, ...]) -> tuple[PartitionHead, bytes]:
    """Return the head of a partition and the MAC of its counters, from its row."""
    return PartitionHead(*row[1:-1]), row[-1]


class PostgresRows:
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

    def _one(self, sql: str, *values: Any) -> Any:
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

    # -- one user -----------------------------------------------------------------------------------------

    def accounts(self, users: Sequence[bytes], windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        if self._ahead is not None:
            known = self._ahead.accounts(self._partition, users, windows)
            if known is not None:
                return known
        where = "WHERE u.partition = %s AND u.user_hash = ANY(%b::bytea[])"
        sql = " ".join((*account_rows("users u", len(windows)), where))
        return self._ask(sql, *windows, self._partition, list(users))  # type: ignore[no-any-return]

    def accounts_by_number(self, accounts: Sequence[int], windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        asked: tuple[Any, ...] = (list(accounts),)
        those = "= ANY(%b::int8[])"
        if isinstance(accounts, range):
            asked, those = (accounts.start, accounts.stop - 1), "BETWEEN %s AND %s"
        where = f"WHERE u.partition = %s AND u.account {those} AND u.user_hash IS NOT NULL"
        sql = " ".join((*account_rows("users u", len(windows)), where))
        return self._ask(sql, *windows, self._partition, *asked)  # type: ignore[no-any-return]

    def erased(self, users: Sequence[bytes]) -> Iterable[bytes]:
        sql = "SELECT user_hash FROM tombstones WHERE partition = %s AND user_hash = ANY(%b::bytea[])"
        return [hashed for (hashed,) in self._ask(sql, self._partition, list(users))]

    def is_erased_account(self, account: int) -> bool:
        sql = "SELECT 1 FROM users WHERE partition = %s AND account = %s AND user_hash IS NULL"
        return self._one(sql, self._partition, account) is not None

    def spent(self, account: int, window: str) -> Costs | None:
        sql = f"SELECT {AMOUNTS} FROM window_sums WHERE partition = %s AND account = %s AND window_name = %s"
        row = self._one(sql, self._partition, account, window)
        return None if row is None else Costs._make(row)

    def memoised_reports(self, account: int, label: bytes, charge: int, window: str) -> int:
        sql = (
            "SELECT reports FROM memoised_counts WHERE partition = %s AND account = %s AND label = %s"
            " AND priced_mechanism = %s AND window_name = %s"
        )
        row = self._one(sql, self._partition, account, label, charge, window)
        return 0 if row is None else int(row[0])

    def quota_used(self, account: int, plan: str, promise: str) -> int:
        sql = "SELECT used FROM quotas WHERE partition = %s AND account = %s AND plan = %s AND guarantee = %s"
        row = self._one(sql, self._partition, account, plan, promise)
        return 0 if row is None else int(row[0])

    def plans_used(self, account: int) -> Iterable[str]:
        sql = "SELECT DISTINCT plan FROM quotas WHERE partition = %s AND account = %s AND used > 0"
        return [plan for (plan,) in self._ask(sql, self._partition, account)]

    def idempotency_records(self, users: Sequence[bytes], keys: Sequence[bytes]) -> Iterable[IdempotencyRecord]:
        if self._ahead is not None:
            known = self._ahead.idempotency_records(self._partition, users, keys)
            if known is not None:
                return known
        sql = f"{_RECORD} WHERE partition = %s AND user_hash = ANY(%b::bytea[]) AND key_hash = ANY(%b::bytea[])"
        return map(IdempotencyRecord._make, self._ask(sql, self._partition, list(users), list(keys)))

    def idempotency_records_of(self, user: bytes) -> Iterator[IdempotencyRecord]:
        return map(
            IdempotencyRecord._make,
            self._ask(f"{_RECORD} WHERE partition = %s AND user_hash = %s", self._partition, user),
        )

    # -- the journal --------------------------------------------------------------------------------------

    def entries(self, first: int, last: int) -> Iterator[tuple[tuple[Any, ...], bytes | None]]:
        sql = (
            f"SELECT {ENTRY}, chain_hash FROM journal WHERE partition = %s AND entry BETWEEN %s AND %s ORDER BY entry"
        )
        for row in self._ask(sql, self._partition, first, last):
            yield row[:-1], row[-1]

    def alike(self, number: int, last: int) -> list[int]:
        found = self._one(_FIRST_OTHER, self._partition, number, number, last)
        until = last if found is None else found[0] - 1
        sql = "SELECT account FROM journal WHERE partition = %s AND entry BETWEEN %s AND %s ORDER BY entry"
        return [account for (account,) in self._ask(sql, self._partition, number, until)]

    def entry(self, number: int) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None
        row = self._one(f"SELECT {ENTRY} FROM journal WHERE partition = %s AND entry = %s", self._partition, number)
        return row

    def resolution(self, number: int) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None
        row = self._one(
            f"SELECT {ENTRY} FROM journal WHERE partition = %s AND resolves = %s", self._partition, number
        )
        return row

    def repairs(self, first: int = 1) -> Iterator[Repair]:
        sql = "SELECT entry, at FROM journal WHERE partition = %s AND kind = 'clock' AND entry >= %s ORDER BY entry"
        return map(Repair._make, self._ask(sql, self._partition, first))

    def label(self, number: int) -> EntryLabel | None:
        sql = "SELECT entry, label, salt FROM entry_labels WHERE partition = %s AND entry = %s"
        row = self._one(sql, self._partition, number)
        return None if row is None else EntryLabel._make(row)

    def history(self, account: int, first: int = 1, most: int | None = None) -> Iterator[tuple[Any, ...]]:
        sql = f"{_LABELLED} AND account = %s AND entry >= %s ORDER BY entry LIMIT %s"
        return iter(self._ask(sql, self._partition, account, first, most))

    def histories(self, first: int, last: int, since: int | None = None) -> Iterator[tuple[Any, ...]]:
        late = "" if since is None else f" AND at >= {since:d}"
        sql = f"{_LABELLED} AND account BETWEEN %s AND %s{late} ORDER BY account, entry"
        return iter(self._ask(sql, self._partition, first, last))

    def notes(self, first: int, last: int, account: int | None = None) -> Iterator[EntryNote]:
        entries = (
            "" if account is None else f"SELECT entry FROM journal WHERE partition = %s AND account = {account:d}"
        )
        mine = entries and f" AND entry IN ({entries})"
        sql = f"SELECT entry, note, row_mac FROM notes WHERE partition = %s AND entry BETWEEN %s AND %s{mine} ORDER BY entry"
        values = (self._partition, first, last, *([self._partition] if mine else ()))
        return map(EntryNote._make, self._ask(sql, *values))

    def reserved(self, after: int, account: int | None = None) -> Iterator[tuple[Any, ...]]:
        mine = "" if account is None else f" AND account = {account:d}"
        ended = "SELECT 1 FROM journal e WHERE e.partition = j.partition AND e.resolves = j.entry"
        where = f"partition = %s AND expires > %s{mine} AND NOT EXISTS ({ended})"
        return iter(self._ask(f"SELECT {ENTRY} FROM journal j WHERE {where} ORDER BY entry", self._partition, after))

    def add_notes(self, notes: Sequence[EntryNote]) -> None:
        self._put(NOTES, notes)

    def add_entries(self, rows: list[tuple[Any, ...]], chain_hash: bytes | None) -> None:
        *before, last = rows
        self._put(ENTRIES, [*((*row, None) for row in before), (*last, chain_hash)])

    def set_chain_hash(self, number: int, chain_hash: bytes) -> None:
        self._unit.write(
            1,
            "UPDATE journal SET chain_hash = %s WHERE partition = %s AND entry = %s",
            (chain_hash, self._partition, number),
        )

    def add_label(self, label: EntryLabel) -> None:
        self._write("INSERT INTO entry_labels VALUES (%s, %s, %s, %s)", *label)

    # -- changes to accounts ------------------------------------------------------------------------------

    def add_user(self, user: User) -> None:
        self._put(USERS, [user])

    def set_sums(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._put(SUMS, rows)

    def set_account_macs(self, rows: Sequence[AccountMac]) -> None:
        self._put(ACCOUNT_MACS, rows)

    def set_memoised_reports(self, row: MemoisedCount) -> None:
        self._write(_SET_LABEL, *row)

    def set_quota_used(self, row: QuotaUse) -> None:
        self._write(_SET_QUOTA, *row)

    def add_idempotency_records(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._put(RECORDS, rows)

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
                self._unit.write(len(some), *statement.bind(some))

    def batch(self, users: list[bytes], windows: list[str]) -> PostgresBatch:
        known = None if self._ahead is None else self._ahead.batch(self._partition, users, windows)
        self._ahead = None
        return PostgresBatch(self._unit, self._partition, users, windows, known)

    # -- mechanisms, policies, collections and the administrative log -------------------------------------

    def periods(self) -> dict[str, int]:
        return dict(self._ask("SELECT period, since FROM periods WHERE partition = %s", self._partition))

    def add_period(self, period: str, since: int) -> None:
        self._write(_SET_PERIOD, period, since)

    def priced_mechanism_number(self, fingerprint: str, guarantee: str, collection: str) -> int | None:
        sql = (
            "SELECT priced_mechanism FROM priced_mechanisms"
            " WHERE partition = %s AND fingerprint = %s AND guarantee = %s AND collection = %s"
        )
        row = self._one(sql, self._partition, fingerprint, guarantee, collection)
        return None if row is None else int(row[0])

    def priced_mechanisms(self, first: int = 1) -> Iterator[PricedMechanism]:
        sql = f"SELECT {CHARGE} FROM priced_mechanisms WHERE partition = %s AND priced_mechanism >= %s ORDER BY priced_mechanism"
        return map(PricedMechanism._make, self._ask(sql, self._partition, first))

    def add_priced_mechanism(self, charge: PricedMechanism) -> None:
        self._write(f"INSERT INTO priced_mechanisms (partition, {CHARGE}) VALUES ({', '.join(['%s'] * 12)})", *charge)

    def policies(self, first: int = 1) -> Iterator[StoredPolicy]:
        sql = f"SELECT {POLICY} FROM policies WHERE partition = %s AND policy >= %s ORDER BY policy"
        return map(StoredPolicy._make, self._ask(sql, self._partition, first))

    def was_charged(self, policy: int) -> bool:
        sql = "SELECT 1 FROM journal WHERE partition = %s AND policy = %s AND priced_mechanism > 0 LIMIT 1"
        return self._one(sql, self._partition, policy) is not None

    def add_policy(self, policy: StoredPolicy) -> None:
        self._write(f"INSERT INTO policies (partition, {POLICY}) VALUES ({', '.join(['%s'] * 7)})", *policy)

    def collection(self, name: str) -> StoredCollection | None:
        sql = "SELECT number, name, fingerprint, definition, row_mac FROM collections WHERE partition = %s AND name = %s"
        row = self._one(sql, self._partition, name)
        return None if row is None else StoredCollection._make(row)

    def collections(self) -> Iterator[StoredCollection]:
        sql = "SELECT number, name, fingerprint, definition, row_mac FROM collections WHERE partition = %s ORDER BY name"
        return map(StoredCollection._make, self._ask(sql, self._partition))

    def add_collection(self, collection: StoredCollection) -> None:
        self._write("INSERT INTO collections VALUES (%s, %s, %s, %s, %s, %s)", *collection)

    def admin_log(self, first: int = 1) -> Iterator[AdminLogEntry]:
        columns = "number, at, kind, name, body, api_key"
        sql = f"SELECT {columns} FROM admin_log WHERE partition = %s AND number >= %s ORDER BY number"
        return map(AdminLogEntry._make, self._ask(sql, self._partition, first))

    def add_record(self, record: AdminLogEntry) -> None:
        self._write("INSERT INTO admin_log VALUES (%s, %s, %s, %s, %s, %s, %s)", *record)

    def checkpoints(self, first: int = 1) -> Iterator[Checkpoint]:
        sql = (
            "SELECT number, at, heads, chain_hash FROM checkpoints WHERE partition = %s AND number >= %s ORDER BY number"
            f" LIMIT {_CHECKPOINTS_TOGETHER}"
        )
        while True:
            part = self._ask(sql, self._partition, first).fetchall()
            yield from map(Checkpoint._make, part)
            if len(part) < _CHECKPOINTS_TOGETHER:
                return
            first = part[-1][0] + 1

    def add_checkpoint(self, checkpoint: Checkpoint) -> None:
        self._write("INSERT INTO checkpoints VALUES (%s, %s, %s, %s, %s)", *checkpoint)

    # -- all rows of a table ------------------------------------------------------------------------------

    def users(self, first: int, last: int) -> Iterator[User]:
        return map(User._make, self._of_accounts("account, user_hash, row_mac FROM users", "account", first, last))

    def tombstones(self) -> Iterator[Tombstone]:
        sql = "SELECT user_hash, row_mac FROM tombstones WHERE partition = %s ORDER BY user_hash"
        return map(Tombstone._make, self._ask(sql, self._partition))

    def sums(self, first: int, last: int) -> Iterator[WindowSum]:
        rows = self._of_accounts(
            f"account, window_name, {AMOUNTS} FROM window_sums", "account, window_name", first, last
        )
        return map(WindowSum._make, rows)

    def window_amounts(self, window: str, amount: str) -> Iterator[tuple[int, int | None]]:
        assert amount in Costs._fields
        sql = f"SELECT account, {amount} FROM window_sums WHERE partition = %s AND window_name = %s ORDER BY account"
        return iter(self._ask(sql, self._partition, window))

    def account_macs(self, first: int, last: int) -> Iterator[AccountMac]:
        return map(
            AccountMac._make, self._of_accounts("account, day, row_mac FROM account_macs", "account", first, last)
        )

    def memoised_counts(self, first: int, last: int) -> Iterator[MemoisedCount]:
        columns = "account, label, priced_mechanism, window_name, reports FROM memoised_counts"
        return map(
            MemoisedCount._make,
            self._of_accounts(columns, "account, label, priced_mechanism, window_name", first, last),
        )

    def quotas(self, first: int, last: int) -> Iterator[QuotaUse]:
        columns = "account, plan, guarantee, used FROM quotas"
        order = 'account, plan COLLATE "C", guarantee COLLATE "C"'
        return map(QuotaUse._make, self._of_accounts(columns, order, first, last))

    def _of_accounts(self, columns: str, order: str, first: int, last: int) -> Iterator[Any]:
        sql = f"SELECT {columns} WHERE partition = %s AND account BETWEEN %s AND %s ORDER BY {order}"
        return iter(self._ask(sql, self._partition, first, last))

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

    def refusals(self, first: int, last: int) -> Iterator[IdempotencyRecord]:
        sql = f"{_RECORD} WHERE partition = %s AND number BETWEEN %s AND %s ORDER BY number"
        return map(IdempotencyRecord._make, self._ask(sql, self._partition, first, last))

    def numbered(self, kind: type[N], *key: Any) -> N | None:
        table = NUMBERED[kind]
        where = " AND ".join(f"{name} = %s" for name in kind._fields[1 : 1 + table.key])
        sql = f"SELECT {', '.join(kind._fields)} FROM {table.name} WHERE partition = %s AND {where}"
        row = self._one(sql, self._partition, *key)
        return None if row is None else cast("Any", kind)._make(row)

    def all_numbered(self, kind: type[N], first: int, last: int) -> Iterator[N]:
        where = "partition = %s AND number BETWEEN %s AND %s ORDER BY number"
        sql = f"SELECT {', '.join(kind._fields)} FROM {NUMBERED[kind].name} WHERE {where}"
        return map(cast("Any", kind)._make, self._ask(sql, self._partition, first, last))

    def add_numbered(self, row: Numbered) -> None:
        self._put(NUMBERED_ROWS[type(row)], [row])

    def waiting_reports(self, *, collection: str | None = None, account: int | None = None) -> Iterator[StoredReport]:
        where = "partition = %s AND state = 'waiting'"
        values: list[Any] = [self._partition]
        if account is not None:
            where += " AND entry IN (SELECT entry FROM journal WHERE partition = %s AND account = %s)"
            values += [self._partition, account]
        elif collection is not None:
            where += " AND collection = %s"
            values += [collection]
        sql = f"SELECT {', '.join(StoredReport._fields)} FROM reports WHERE {where} ORDER BY number"
        return map(StoredReport._make, self._ask(sql, *values))

    def set_reports(self, rows: Sequence[StoredReport]) -> None:
        self._put(REPORTS, [(row.number, row.state, row.report, row.row_mac) for row in rows])

    def rounds(self, collection: str) -> list[str]:
        sql = "SELECT name FROM rounds WHERE partition = %s AND collection = %s AND part = 0 ORDER BY number"
        return [name for (name,) in self._ask(sql, self._partition, collection)]

    def report_counts(self) -> Mapping[tuple[str, str], int]:
        self._unit.be_patient()
        of = "WHERE partition = %s GROUP BY collection"
        sql = (
            f"SELECT collection, state, count(*) FROM reports {of}, state UNION ALL"
            f" SELECT collection, '{IN_ROUNDS}', sum(reports)::int8 FROM rounds {of}"
        )
        return {(name, state): count for name, state, count in self._ask(sql, self._partition, self._partition)}

    def counts(self) -> dict[str, Any]:
        self._unit.be_patient()

        def count(rows: str) -> int:
            return int(self._one(f"SELECT count(*) FROM {rows}", self._partition)[0])

        kinds = "SELECT kind, count(*) FROM journal WHERE partition = %s GROUP BY kind ORDER BY kind"
        return {
            "engine": {"postgresql": self._one("SHOW server_version")[0].split()[0]},
            "users": count("users WHERE partition = %s AND user_hash IS NOT NULL"),
            "erased": count("tombstones WHERE partition = %s"),
            "cut_off": count("users WHERE partition = %s AND user_hash IS NULL"),
            "keys": count("idempotency_records WHERE partition = %s") + count("batch_runs WHERE partition = %s"),
            "notes": count("notes WHERE partition = %s"),
            "entries_by_kind": dict(self._ask(kinds, self._partition).fetchall()),
        }

    def _aggregate(self, sql: str, *values: Any) -> Any:
        self._unit.be_patient()
        return self._ask(sql, self._partition, *values)

    def charges_by_mechanism(self) -> Iterable[tuple[int, int, int, int, int, int]]:
        return self._aggregate(_BY_MECHANISM)  # type: ignore[no-any-return]

    def charges_by_day(self, since: int) -> Iterable[tuple[int, int, int, int, int]]:
        return self._aggregate(_BY_DAY, since)  # type: ignore[no-any-return]

    def refusals_by_day(self, since: int) -> Iterable[tuple[int, int, str, int]]:
        return self._aggregate(_REFUSALS_BY_DAY, since)  # type: ignore[no-any-return]

    def refused_in_runs(self) -> int:
        return int(self._aggregate(_REFUSED_IN_RUNS).fetchone()[0])

    def users_by_sums(self, windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        return self._aggregate(_USERS_BY_SUMS, list(windows))  # type: ignore[no-any-return]

    def policies_set(self) -> Iterable[tuple[int, int]]:
        # The entries of no account are few, and an index finds them.
        where = "partition = %s AND account = 0 AND kind = 'policy' ORDER BY entry"
        return self._ask(f"SELECT policy, api_key FROM journal WHERE {where}", self._partition)  # type: ignore[no-any-return]

    def damage(self) -> Iterator[str]:
        self._unit.be_patient()
        if self._partition == 0:
            yield from compare_catalog(ask_catalog(self._unit))
            yield from self._strange_partitions()
            for (name,) in self._ask(_STRANGE_META):
                yield f"meta: there is a row {name!r}, which no ledger has"
        for (entry,) in self._ask(_ORPHANS, self._partition):
            yield f"entry_labels: there is a label of entry {entry}, which has none"
        for (entry,) in self._ask(_STRAY_NOTES, self._partition):
            yield f"notes: there is a note of entry {entry}, which has none"
        for (number,) in self._ask(_STRAY_REPORTS, self._partition):
            yield f"reports: report {number} is of an entry that is not there, or of an erased user"

    def _strange_partitions(self) -> Iterator[str]:
        """Yield a message for each table with rows of partitions that do not exist.

        Each table's key begins with the partition, so the index finds the lowest and highest partition fast.
        """
        (partitions,) = self._one("SELECT count(*) FROM partitions")
        for table in PARTITIONED:
            for end in ("min", "max"):
                (partition,) = self._one(f"SELECT {end}(partition) FROM {table}")
                if partition is not None and not 0 <= partition < partitions:
                    yield f"{table}: there are rows of partition {partition}, and the ledger has {partitions} partitions"
