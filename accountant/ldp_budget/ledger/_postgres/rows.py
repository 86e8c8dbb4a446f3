"""The statements on one lane of a ledger, each by an index that begins with it, none that grows with the past."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...guarantees.amounts import Costs
from ..entries import (
    Checkpoint,
    End,
    EntryLabel,
    LabelRow,
    QuotaRow,
    Repair,
    SealRow,
    StoredAnswer,
    StoredCharge,
    StoredCollection,
    StoredNote,
    StoredPolicy,
    StoredRecord,
    SumRow,
    Tombstone,
    User,
)
from .batch import PostgresBatch
from .catalog import ask_catalog, compare_catalog
from .schema import LANED
from .unit import AMOUNTS, ANSWERS, COUNTERS, ENTRIES, ENTRY, NOTES, SEALED, SEALS, SUMS, USERS, OfRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..store import Renew
    from .ahead import Ahead
    from .unit import Unit

# What there may be much of is read in parts, for the client's library holds every answer whole.
_ANSWERS_TOGETHER = 2_000
_CHECKPOINTS_TOGETHER = 50
END = f"SELECT lane, entry, at, link, {', '.join(COUNTERS)}, seal FROM lanes"
_LABELLED = f"SELECT {ENTRY}, label, salt FROM journal LEFT JOIN entry_labels USING (lane, entry) WHERE lane = %s"
_CHARGE = f"charge, fingerprint, mechanism, declared, guarantee, {AMOUNTS}, collection, seal"
_POLICY = "policy, name, version, created_at, definition, seal"
_ANSWER = "SELECT owner, key, place, request, answer, seal FROM keys"
_ACCOUNTS = (
    f"SELECT u.hash, {SEALED} FROM users u LEFT JOIN seals s ON s.lane = u.lane AND s.account = u.account"
    " LEFT JOIN accounts a ON a.lane = u.lane AND a.account = u.account AND a.slot = ANY(%b::int8[])"
    " WHERE u.lane = %s AND u.hash = ANY(%b::bytea[])"
)
_OF_ACCOUNTS = (
    f"SELECT {SEALED} FROM users u LEFT JOIN seals s ON s.lane = u.lane AND s.account = u.account"
    " LEFT JOIN accounts a ON a.lane = u.lane AND a.account = u.account AND a.slot = ANY(%b::int8[])"
    " WHERE u.lane = %s AND u.account = ANY(%b::int8[]) AND u.hash IS NOT NULL"
)
_ORPHANS = (
    "SELECT l.entry FROM entry_labels l LEFT JOIN journal j ON j.lane = l.lane AND j.entry = l.entry"
    " WHERE l.lane = %s AND (j.entry IS NULL OR j.account = 0) ORDER BY l.entry LIMIT 10"
)
_STRAY_NOTES = (
    "SELECT n.entry FROM notes n LEFT JOIN journal j ON j.lane = n.lane AND j.entry = n.entry"
    " LEFT JOIN users u ON u.lane = n.lane AND u.account = j.account"
    " WHERE n.lane = %s AND u.hash IS NULL ORDER BY n.entry LIMIT 10"
)
_SET_LABEL = (
    "INSERT INTO labels VALUES (%s, %s, %s, %s, %s, %s)"
    " ON CONFLICT (lane, account, label, charge, slot) DO UPDATE SET reports = excluded.reports"
)
_SET_PERIOD = (
    "INSERT INTO periods VALUES (%s, %s, %s) ON CONFLICT (lane, period) DO UPDATE SET since = excluded.since"
)
_SET_QUOTA = (
    "INSERT INTO quotas VALUES (%s, %s, %s, %s, %s)"
    " ON CONFLICT (lane, account, plan, promise) DO UPDATE SET used = excluded.used"
)
# What becomes of the rows of a table when they are renewed, and their columns but for the lane.
_RENEWED = {
    "users": (USERS, "account, hash, seal"),
    "tombstones": (OfRows("INSERT INTO tombstones SELECT * FROM", "int4 bytea bytea"), "hash, seal"),
    "keys": (ANSWERS, "owner, key, place, request, answer, seal"),
    "labels": (
        OfRows("INSERT INTO labels SELECT * FROM", "int4 int8 bytea int8 int8 int8"),
        "account, label, charge, slot, reports",
    ),
    "entry_labels": (
        OfRows("INSERT INTO entry_labels SELECT * FROM", "int4 int8 bytea bytea"),
        "entry, label, salt",
    ),
    "notes": (NOTES, "entry, note, seal"),
    "collections": (
        OfRows("INSERT INTO collections SELECT * FROM", "int4 int8 text text text bytea"),
        "number, name, fingerprint, definition, seal",
    ),
    "charges": (
        OfRows("INSERT INTO charges SELECT * FROM", "int4 int8 text text text text int8 int8 int8 int8 text bytea"),
        _CHARGE,
    ),
    "policies": (OfRows("INSERT INTO policies SELECT * FROM", "int4 int8 text int8 int8 text bytea"), _POLICY),
}
_RENEWED_TOGETHER = 5_000


def end_of(row: tuple[Any, ...]) -> tuple[End, bytes]:
    """The end of a lane and the seal of its counters, from its row."""
    return End(*row[1:-1]), row[-1]


class PostgresRows:
    """One lane inside a transaction, to read and, if it writes, to write."""

    def __init__(self, unit: Unit, lane: int, end: tuple[End, bytes], ahead: Ahead | None = None) -> None:
        self._unit = unit
        self._lane = lane
        self._end = end
        self._ahead = ahead

    def _ask(self, sql: str, *values: Any) -> Any:
        return self._unit.run(sql, values)

    def _one(self, sql: str, *values: Any) -> Any:
        return self._unit.run(sql, values).fetchone()

    def _write(self, sql: str, *values: Any) -> None:
        """Write one row of the lane."""
        self._ahead = None
        self._unit.write(1, sql, (self._lane, *values))

    def _delete(self, sql: str, *values: Any) -> None:
        """Delete rows of the lane, of which there may be none."""
        self._ahead = None
        self._unit.run(sql, (self._lane, *values))

    def _put(self, statement: OfRows, rows: Iterable[tuple[Any, ...]]) -> None:
        self._ahead = None
        self._unit.put(statement, [(self._lane, *row) for row in rows])

    def end(self) -> tuple[End, bytes]:
        return self._end

    def set_end(self, end: End, seal: bytes | None) -> None:
        self._end = end, self._end[1] if seal is None else seal
        self._unit.set_end(self._lane, end, seal)

    # -- one user -----------------------------------------------------------------------------------------

    def accounts(self, users: Sequence[bytes], windows: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        if self._ahead is not None:
            known = self._ahead.accounts(self._lane, users, windows)
            if known is not None:
                return known
        return self._ask(_ACCOUNTS, list(windows), self._lane, list(users))  # type: ignore[no-any-return]

    def sealed(self, accounts: Sequence[int], windows: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        return self._ask(_OF_ACCOUNTS, list(windows), self._lane, list(accounts))  # type: ignore[no-any-return]

    def erased(self, users: Sequence[bytes]) -> Iterable[bytes]:
        sql = "SELECT hash FROM tombstones WHERE lane = %s AND hash = ANY(%b::bytea[])"
        return [hashed for (hashed,) in self._ask(sql, self._lane, list(users))]

    def is_cut_off(self, account: int) -> bool:
        sql = "SELECT 1 FROM users WHERE lane = %s AND account = %s AND hash IS NULL"
        return self._one(sql, self._lane, account) is not None

    def spent(self, account: int, window: int) -> Costs | None:
        sql = f"SELECT {AMOUNTS} FROM accounts WHERE lane = %s AND account = %s AND slot = %s"
        row = self._one(sql, self._lane, account, window)
        return None if row is None else Costs._make(row)

    def label_reports(self, account: int, label: bytes, charge: int, window: int) -> int:
        sql = (
            "SELECT reports FROM labels WHERE lane = %s AND account = %s AND label = %s AND charge = %s AND slot = %s"
        )
        row = self._one(sql, self._lane, account, label, charge, window)
        return 0 if row is None else int(row[0])

    def quota_used(self, account: int, plan: str, promise: str) -> int:
        sql = "SELECT used FROM quotas WHERE lane = %s AND account = %s AND plan = %s AND promise = %s"
        row = self._one(sql, self._lane, account, plan, promise)
        return 0 if row is None else int(row[0])

    def plans_used(self, account: int) -> Iterable[str]:
        sql = "SELECT DISTINCT plan FROM quotas WHERE lane = %s AND account = %s AND used > 0"
        return [plan for (plan,) in self._ask(sql, self._lane, account)]

    def answers(self, users: Sequence[bytes], keys: Sequence[bytes]) -> Iterable[StoredAnswer]:
        if self._ahead is not None:
            known = self._ahead.answers(self._lane, users, keys)
            if known is not None:
                return known
        sql = f"{_ANSWER} WHERE lane = %s AND owner = ANY(%b::bytea[]) AND key = ANY(%b::bytea[])"
        return map(StoredAnswer._make, self._ask(sql, self._lane, list(users), list(keys)))

    def answers_of(self, user: bytes) -> Iterator[StoredAnswer]:
        return map(StoredAnswer._make, self._ask(f"{_ANSWER} WHERE lane = %s AND owner = %s", self._lane, user))

    # -- the journal --------------------------------------------------------------------------------------

    def entries(self, first: int, last: int) -> Iterator[tuple[tuple[Any, ...], bytes | None]]:
        sql = f"SELECT {ENTRY}, link FROM journal WHERE lane = %s AND entry BETWEEN %s AND %s ORDER BY entry"
        for row in self._ask(sql, self._lane, first, last):
            yield row[:-1], row[-1]

    def entry(self, number: int) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None
        row = self._one(f"SELECT {ENTRY} FROM journal WHERE lane = %s AND entry = %s", self._lane, number)
        return row

    def resolution(self, number: int) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None
        row = self._one(f"SELECT {ENTRY} FROM journal WHERE lane = %s AND resolves = %s", self._lane, number)
        return row

    def repairs(self, first: int = 1) -> Iterator[Repair]:
        sql = "SELECT entry, at FROM journal WHERE lane = %s AND kind = 'clock' AND entry >= %s ORDER BY entry"
        return map(Repair._make, self._ask(sql, self._lane, first))

    def label(self, number: int) -> EntryLabel | None:
        sql = "SELECT entry, label, salt FROM entry_labels WHERE lane = %s AND entry = %s"
        row = self._one(sql, self._lane, number)
        return None if row is None else EntryLabel._make(row)

    def history(self, account: int, first: int = 1, most: int | None = None) -> Iterator[tuple[Any, ...]]:
        sql = f"{_LABELLED} AND account = %s AND entry >= %s ORDER BY entry LIMIT %s"
        return iter(self._ask(sql, self._lane, account, first, most))

    def histories(self, first: int, last: int, since: int | None = None) -> Iterator[tuple[Any, ...]]:
        late = "" if since is None else f" AND at >= {since:d}"
        sql = f"{_LABELLED} AND account BETWEEN %s AND %s{late} ORDER BY account, entry"
        return iter(self._ask(sql, self._lane, first, last))

    def notes(self, first: int, last: int, account: int | None = None) -> Iterator[StoredNote]:
        entries = "" if account is None else f"SELECT entry FROM journal WHERE lane = %s AND account = {account:d}"
        mine = entries and f" AND entry IN ({entries})"
        sql = f"SELECT entry, note, seal FROM notes WHERE lane = %s AND entry BETWEEN %s AND %s{mine} ORDER BY entry"
        values = (self._lane, first, last, *([self._lane] if mine else ()))
        return map(StoredNote._make, self._ask(sql, *values))

    def reserved(self, after: int, account: int | None = None) -> Iterator[tuple[Any, ...]]:
        mine = "" if account is None else f" AND account = {account:d}"
        ended = "SELECT 1 FROM journal e WHERE e.lane = j.lane AND e.resolves = j.entry"
        where = f"lane = %s AND expires > %s{mine} AND NOT EXISTS ({ended})"
        return iter(self._ask(f"SELECT {ENTRY} FROM journal j WHERE {where} ORDER BY entry", self._lane, after))

    def add_notes(self, notes: Sequence[StoredNote]) -> None:
        self._put(NOTES, notes)

    def add_entries(self, rows: list[tuple[Any, ...]], link: bytes | None) -> None:
        *before, last = rows
        self._put(ENTRIES, [*((*row, None) for row in before), (*last, link)])

    def set_link(self, number: int, link: bytes) -> None:
        self._unit.write(1, "UPDATE journal SET link = %s WHERE lane = %s AND entry = %s", (link, self._lane, number))

    def add_label(self, label: EntryLabel) -> None:
        self._write("INSERT INTO entry_labels VALUES (%s, %s, %s, %s)", *label)

    # -- what changes with the accounts -------------------------------------------------------------------

    def add_user(self, user: User) -> None:
        self._put(USERS, [user])

    def set_sums(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._put(SUMS, rows)

    def set_seals(self, rows: Sequence[SealRow]) -> None:
        self._put(SEALS, rows)

    def set_label_reports(self, row: LabelRow) -> None:
        self._write(_SET_LABEL, *row)

    def set_quota_used(self, row: QuotaRow) -> None:
        self._write(_SET_QUOTA, *row)

    def add_answers(self, rows: Iterable[tuple[Any, ...]]) -> None:
        self._put(ANSWERS, rows)

    def forget(self, tombstone: Tombstone, cut_off: User | None, answers: Iterable[StoredAnswer]) -> None:
        self._write("INSERT INTO tombstones VALUES (%s, %s, %s)", *tombstone)
        self._delete("DELETE FROM keys WHERE lane = %s AND owner = %s", tombstone.hash)
        self.add_answers(answers)
        if cut_off is not None:
            account = cut_off.account
            mine = "entry IN (SELECT entry FROM journal WHERE lane = %s AND account = %s)"
            self._delete(f"DELETE FROM entry_labels WHERE lane = %s AND {mine}", self._lane, account)
            self._delete(f"DELETE FROM notes WHERE lane = %s AND {mine}", self._lane, account)
            self._delete("DELETE FROM labels WHERE lane = %s AND account = %s", account)
            self._delete("DELETE FROM seals WHERE lane = %s AND account = %s", account)
            self._delete("DELETE FROM accounts WHERE lane = %s AND account = %s AND slot <> 0", account)
            sql = "UPDATE users SET hash = NULL, seal = %s WHERE lane = %s AND account = %s"
            self._unit.write(1, sql, (cut_off.seal, self._lane, account))

    def renew(self, tables: Mapping[str, Renew]) -> None:
        self._ahead = None
        self._unit.be_patient()
        for table, renew in tables.items():
            statement, columns = _RENEWED[table]
            found = self._ask(f"SELECT {columns} FROM {table} WHERE lane = %s", self._lane).fetchall()
            rows = [(self._lane, *renew(row)) for row in found]
            self._unit.run(f"DELETE FROM {table} WHERE lane = %s", (self._lane,))
            for first in range(0, len(rows), _RENEWED_TOGETHER):
                some = rows[first : first + _RENEWED_TOGETHER]
                self._unit.write(len(some), *statement.bind(some))

    def batch(self, users: list[bytes]) -> PostgresBatch:
        self._ahead = None
        return PostgresBatch(self._unit, self._lane, users)

    # -- what was set -------------------------------------------------------------------------------------

    def periods(self) -> dict[str, int]:
        return dict(self._ask("SELECT period, since FROM periods WHERE lane = %s", self._lane))

    def add_period(self, period: str, since: int) -> None:
        self._write(_SET_PERIOD, period, since)

    def charge_number(self, fingerprint: str, guarantee: str, collection: str) -> int | None:
        sql = "SELECT charge FROM charges WHERE lane = %s AND fingerprint = %s AND guarantee = %s AND collection = %s"
        row = self._one(sql, self._lane, fingerprint, guarantee, collection)
        return None if row is None else int(row[0])

    def charges(self, first: int = 1) -> Iterator[StoredCharge]:
        sql = f"SELECT {_CHARGE} FROM charges WHERE lane = %s AND charge >= %s ORDER BY charge"
        return map(StoredCharge._make, self._ask(sql, self._lane, first))

    def add_charge(self, charge: StoredCharge) -> None:
        self._write(f"INSERT INTO charges (lane, {_CHARGE}) VALUES ({', '.join(['%s'] * 12)})", *charge)

    def policy(self, name: str) -> StoredPolicy | None:
        sql = f"SELECT {_POLICY} FROM policies WHERE lane = %s AND name = %s ORDER BY version DESC LIMIT 1"
        row = self._one(sql, self._lane, name)
        return None if row is None else StoredPolicy._make(row)

    def policies(self, first: int = 1) -> Iterator[StoredPolicy]:
        sql = f"SELECT {_POLICY} FROM policies WHERE lane = %s AND policy >= %s ORDER BY policy"
        return map(StoredPolicy._make, self._ask(sql, self._lane, first))

    def was_charged(self, policy: int) -> bool:
        sql = "SELECT 1 FROM journal WHERE lane = %s AND policy = %s AND charge > 0 LIMIT 1"
        return self._one(sql, self._lane, policy) is not None

    def add_policy(self, policy: StoredPolicy) -> None:
        self._write(f"INSERT INTO policies (lane, {_POLICY}) VALUES ({', '.join(['%s'] * 7)})", *policy)

    def collection(self, name: str) -> StoredCollection | None:
        sql = "SELECT number, name, fingerprint, definition, seal FROM collections WHERE lane = %s AND name = %s"
        row = self._one(sql, self._lane, name)
        return None if row is None else StoredCollection._make(row)

    def collections(self) -> Iterator[StoredCollection]:
        sql = "SELECT number, name, fingerprint, definition, seal FROM collections WHERE lane = %s ORDER BY name"
        return map(StoredCollection._make, self._ask(sql, self._lane))

    def add_collection(self, collection: StoredCollection) -> None:
        self._write("INSERT INTO collections VALUES (%s, %s, %s, %s, %s, %s)", *collection)

    def records(self, first: int = 1) -> Iterator[StoredRecord]:
        columns = "number, at, kind, name, body, made_by"
        sql = f"SELECT {columns} FROM records WHERE lane = %s AND number >= %s ORDER BY number"
        return map(StoredRecord._make, self._ask(sql, self._lane, first))

    def add_record(self, record: StoredRecord) -> None:
        self._write("INSERT INTO records VALUES (%s, %s, %s, %s, %s, %s, %s)", *record)

    def checkpoints(self, first: int = 1) -> Iterator[Checkpoint]:
        sql = (
            "SELECT number, at, heads, link FROM checkpoints WHERE lane = %s AND number >= %s ORDER BY number"
            f" LIMIT {_CHECKPOINTS_TOGETHER}"
        )
        while True:
            part = self._ask(sql, self._lane, first).fetchall()
            yield from map(Checkpoint._make, part)
            if len(part) < _CHECKPOINTS_TOGETHER:
                return
            first = part[-1][0] + 1

    def add_checkpoint(self, checkpoint: Checkpoint) -> None:
        self._write("INSERT INTO checkpoints VALUES (%s, %s, %s, %s, %s)", *checkpoint)

    # -- everything ---------------------------------------------------------------------------------------

    def users(self, first: int, last: int) -> Iterator[User]:
        return map(User._make, self._of_accounts("account, hash, seal FROM users", "account", first, last))

    def tombstones(self) -> Iterator[Tombstone]:
        sql = "SELECT hash, seal FROM tombstones WHERE lane = %s ORDER BY hash"
        return map(Tombstone._make, self._ask(sql, self._lane))

    def sums(self, first: int, last: int) -> Iterator[SumRow]:
        rows = self._of_accounts(f"account, slot, {AMOUNTS} FROM accounts", "account, slot", first, last)
        return map(SumRow._make, rows)

    def seals(self, first: int, last: int) -> Iterator[SealRow]:
        return map(SealRow._make, self._of_accounts("account, day, seal FROM seals", "account", first, last))

    def label_counts(self, first: int, last: int) -> Iterator[LabelRow]:
        columns = "account, label, charge, slot, reports FROM labels"
        return map(LabelRow._make, self._of_accounts(columns, "account, label, charge, slot", first, last))

    def quotas(self, first: int, last: int) -> Iterator[QuotaRow]:
        columns = "account, plan, promise, used FROM quotas"
        order = 'account, plan COLLATE "C", promise COLLATE "C"'
        return map(QuotaRow._make, self._of_accounts(columns, order, first, last))

    def _of_accounts(self, columns: str, order: str, first: int, last: int) -> Iterator[Any]:
        sql = f"SELECT {columns} WHERE lane = %s AND account BETWEEN %s AND %s ORDER BY {order}"
        return iter(self._ask(sql, self._lane, first, last))

    def answers_after(self, position: int, most: int) -> tuple[Iterable[StoredAnswer], int | None]:
        return self._every_answer(), None

    def _every_answer(self) -> Iterator[StoredAnswer]:
        where = "lane = %s"
        values: tuple[Any, ...] = (self._lane,)
        while True:
            sql = f"{_ANSWER} WHERE {where} ORDER BY owner, key LIMIT {_ANSWERS_TOGETHER}"
            part = self._ask(sql, *values).fetchall()
            yield from map(StoredAnswer._make, part)
            if len(part) < _ANSWERS_TOGETHER:
                return
            where, values = "lane = %s AND (owner, key) > (%b, %b)", (self._lane, *part[-1][:2])

    def answers_apart(self, first: int, last: int) -> Iterator[StoredAnswer]:
        sql = f"{_ANSWER} WHERE lane = %s AND place < 0 AND place BETWEEN %s AND %s"
        return map(StoredAnswer._make, self._ask(sql, self._lane, -last, -first))

    def counts(self) -> dict[str, Any]:
        self._unit.be_patient()

        def count(rows: str) -> int:
            return int(self._one(f"SELECT count(*) FROM {rows}", self._lane)[0])

        kinds = "SELECT kind, count(*) FROM journal WHERE lane = %s GROUP BY kind ORDER BY kind"
        return {
            "engine": {"postgresql": self._one("SHOW server_version")[0].split()[0]},
            "users": count("users WHERE lane = %s AND hash IS NOT NULL"),
            "erased": count("tombstones WHERE lane = %s"),
            "cut_off": count("users WHERE lane = %s AND hash IS NULL"),
            "keys": count("keys WHERE lane = %s AND request <> ''::bytea"),
            "notes": count("notes WHERE lane = %s"),
            "entries_by_kind": dict(self._ask(kinds, self._lane).fetchall()),
        }

    def damage(self) -> Iterator[str]:
        self._unit.be_patient()
        if self._lane == 0:
            yield from compare_catalog(ask_catalog(self._unit))
            yield from self._strange_lanes()
        for (entry,) in self._ask(_ORPHANS, self._lane):
            yield f"entry_labels: there is a label of entry {entry}, which has none"
        for (entry,) in self._ask(_STRAY_NOTES, self._lane):
            yield f"notes: there is a note of entry {entry}, which has none"

    def _strange_lanes(self) -> Iterator[str]:
        """Rows of lanes that there are not; each table's key begins with the lane, so its ends are found at once."""
        (lanes,) = self._one("SELECT count(*) FROM lanes")
        for table in LANED:
            for end in ("min", "max"):
                (lane,) = self._one(f"SELECT {end}(lane) FROM {table}")
                if lane is not None and not 0 <= lane < lanes:
                    yield f"{table}: there are rows of lane {lane}, and the ledger has {lanes} lanes"
