"""Rows are data: each row class has a table, and a store reads and writes tables by a few verbs.

`TABLES` says which columns a row class has, and which of them are its key. Nothing else knows them. `Dialect` makes the
statements of an engine from it. `NamedReads` has the reads of the ledger, in terms of these verbs.

In an engine with partitions, each statement names its partition in a condition of its own.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

from ..guarantees.fixed_point import Costs
from .models import (
    NUMBERED,
    WAITING,
    AccountMac,
    AdminLogEntry,
    Checkpoint,
    EntryLabel,
    EntryNote,
    IdempotencyRecord,
    KeptPeriod,
    MemoisedCount,
    Numbered,
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

R = TypeVar("R", bound=tuple[Any, ...])
"""A row class of `TABLES`."""
N = TypeVar("N", bound=Numbered)
"""A row class of `NUMBERED`."""


class Table(NamedTuple):
    """The table of a row class: its name, its columns in the order of the row's fields, and its key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


def _table(kind: Any, name: str, key: str, number: str = "number") -> Table:
    """Return a table. Its column for the field `number` may have another name."""
    return Table(name, tuple(number if each == "number" else each for each in kind._fields), tuple(key.split()))


TABLES: dict[type[Any], Table] = {
    User: _table(User, "users", "account"),
    Tombstone: _table(Tombstone, "tombstones", "user_hash"),
    WindowSum: _table(WindowSum, "window_sums", "account window_name"),
    AccountMac: _table(AccountMac, "account_macs", "account"),
    MemoisedCount: _table(MemoisedCount, "memoised_counts", "account label priced_mechanism window_name"),
    QuotaUse: _table(QuotaUse, "quotas", "account plan guarantee"),
    IdempotencyRecord: _table(IdempotencyRecord, "idempotency_records", "user_hash key_hash"),
    EntryLabel: _table(EntryLabel, "entry_labels", "entry"),
    EntryNote: _table(EntryNote, "notes", "entry"),
    KeptPeriod: _table(KeptPeriod, "periods", "period"),
    PricedMechanism: _table(PricedMechanism, "priced_mechanisms", "priced_mechanism", "priced_mechanism"),
    StoredPolicy: _table(StoredPolicy, "policies", "policy", "policy"),
    StoredCollection: _table(StoredCollection, "collections", "name"),
    AdminLogEntry: _table(AdminLogEntry, "admin_log", "number"),
    Checkpoint: _table(Checkpoint, "checkpoints", "number"),
    **{kind: _table(kind, table.name, "number") for kind, table in NUMBERED.items()},
}
"""The tables of all row classes but the journal, whose entries are in a chain."""


class Dialect(NamedTuple):
    """How an engine writes its statements.

    `mark` is the place of a value. `partition` is the column of the partition, empty if the engine has only one.
    `by_bytes` orders the texts of a key by their bytes.
    """

    mark: str
    partition: str = ""
    by_bytes: str = ""

    def select(
        self, kind: type[Any], partition: int, first: Any, last: Any, equal: Mapping[str, Any]
    ) -> tuple[str, list[Any]]:
        """Return the statement of `Snapshot.select`, and its values."""
        values = [partition] if self.partition else []
        values += [each for each in (first, last) if each is not None]
        values += [each for each in equal.values() if each is not None]
        nulls = tuple([(name, each is None) for name, each in equal.items()])
        of = cast("Any", kind)
        return _select(self, of, first is not None, last is not None, nulls), values

    def insert(self, kind: type[Any]) -> str:
        """Return the statement that inserts one row; its values begin with the partition, if the engine has several."""
        return _insert(self, cast("Any", kind))


@cache
def _select(
    dialect: Dialect, kind: type[Any], has_first: bool, has_last: bool, equal: tuple[tuple[str, bool], ...]
) -> str:
    table, mark = TABLES[kind], dialect.mark
    where = [f"{dialect.partition} = {mark}"] if dialect.partition else []
    where += [f"{table.key[0]} >= {mark}"] * has_first + [f"{table.key[0]} <= {mark}"] * has_last
    where += [f"{name} IS NULL" if is_null else f"{name} = {mark}" for name, is_null in equal]
    order = [f"{name}{dialect.by_bytes}" if name in ("plan", "guarantee") else name for name in table.key]
    condition = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {', '.join(table.columns)} FROM {table.name}{condition} ORDER BY {', '.join(order)}"


@cache
def _insert(dialect: Dialect, kind: type[Any]) -> str:
    table = TABLES[kind]
    columns = [dialect.partition, *table.columns] if dialect.partition else [*table.columns]
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({', '.join([dialect.mark] * len(columns))})"


class NamedReads(Protocol):
    """The reads of a partition, in terms of the verbs of `storage.Snapshot`, which a store implements."""

    def select(self, kind: type[R], first: Any = None, last: Any = None, **equal: Any) -> Iterator[R]:
        """See `Snapshot.select`."""
        raise NotImplementedError

    def ask(self, query: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        """See `Snapshot.ask`."""
        raise NotImplementedError

    def histories(
        self, first: int, last: int, since: int | None = None, after: int = 0, most: int | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """See `Snapshot.histories`."""
        raise NotImplementedError

    def _one(self, kind: type[R], **equal: Any) -> R | None:
        return next(self.select(kind, **equal), None)

    # -- one user -----------------------------------------------------------------------------------------

    def is_erased_account(self, account: int) -> bool:
        """True if an account is that of an erased user."""
        return self._one(User, account=account, user_hash=None) is not None

    def spent(self, account: int, window: str) -> Costs | None:
        """Return the amounts charged to an account in a window; None if there are none."""
        found = self._one(WindowSum, account=account, window_name=window)
        return None if found is None else Costs._make(found[2:])

    def memoised_reports(self, account: int, label: bytes, charge: int, window: str) -> int:
        """Return the number of reports of a memoised value that were charged in a window."""
        key = {"account": account, "label": label, "priced_mechanism": charge, "window_name": window}
        found = self._one(MemoisedCount, **key)
        return 0 if found is None else found.reports

    def quota_used(self, account: int, plan: str, promise: str) -> int:
        """Return the used part of a plan's quota."""
        found = self._one(QuotaUse, account=account, plan=plan, guarantee=promise)
        return 0 if found is None else found.used

    def plans_used(self, account: int) -> Iterable[str]:
        """Return the plans of which an account has used a quota, each once."""
        return {each.plan for each in self.select(QuotaUse, account=account) if each.used > 0}

    def idempotency_records_of(self, user: bytes) -> Iterator[IdempotencyRecord]:
        """Yield all idempotency records of a user."""
        return self.select(IdempotencyRecord, user_hash=user)

    # -- the journal --------------------------------------------------------------------------------------

    def entry(self, number: int) -> tuple[Any, ...] | None:
        """Return the flat row of an entry."""
        return next(iter(self.ask("entry", number)), None)

    def resolution(self, number: int) -> tuple[Any, ...] | None:
        """Return the flat row of the entry that ended a reservation."""
        return next(iter(self.ask("resolution", number)), None)

    def repairs(self, first: int = 1) -> Iterator[Repair]:
        """Yield the clock repairs from an entry on, in order."""
        return map(Repair._make, self.ask("repairs", first))

    def alike(self, number: int, last: int) -> list[int]:
        """Return the accounts of entry `number` and of those after it, up to `last`, that differ in number and account only.

        None of those after it ends a transaction.
        """
        (other,) = next(iter(self.ask("first_other", number, last)), (last + 1,))
        return [account for (account,) in self.ask("accounts_of", number, other - 1)]

    def history(self, account: int, first: int = 1, most: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield the flat rows of an account's entries from number `first` on, at most `most`, as `histories` does."""
        return self.histories(account, account, after=first - 1, most=most)

    def window_amounts(self, window: str, amount: str) -> Iterable[tuple[Any, ...]]:
        """Yield every account with a sum in a window, with one of its four amounts, in the order of the accounts."""
        return self.ask(f"amounts {amount}", window)

    def label(self, number: int) -> EntryLabel | None:
        """Return the label of an entry."""
        return self._one(EntryLabel, entry=number)

    def notes(self, first: int, last: int, account: int | None = None) -> Iterator[EntryNote]:
        """Yield the notes on the entries `first` to `last`, of one account or all."""
        if account is None:
            return self.select(EntryNote, first, last)
        return map(EntryNote._make, self.ask("notes_of", first, last, account))

    # -- what was set -------------------------------------------------------------------------------------

    def periods(self) -> dict[str, int]:
        """Return the periods with kept windows, and the start of the first window of each."""
        return dict(self.select(KeptPeriod))

    def priced_mechanism_number(self, fingerprint: str, guarantee: str, collection: str) -> int | None:
        """Return the number of a stored priced mechanism."""
        found = self._one(PricedMechanism, fingerprint=fingerprint, guarantee=guarantee, collection=collection)
        return None if found is None else found.number

    def priced_mechanisms(self, first: int = 1) -> Iterator[PricedMechanism]:
        """Yield the priced mechanisms from a number on."""
        return self.select(PricedMechanism, first)

    def policies(self, first: int = 1) -> Iterator[StoredPolicy]:
        """Yield every version of every policy, from a number on."""
        return self.select(StoredPolicy, first)

    def was_charged(self, policy: int) -> bool:
        """True if a user was charged under this version of a policy."""
        return any(True for _ in self.ask("was_charged", policy))

    def collection(self, name: str) -> StoredCollection | None:
        """Return the collection of that name."""
        return self._one(StoredCollection, name=name)

    def collections(self) -> Iterator[StoredCollection]:
        """Yield every collection, by name."""
        return self.select(StoredCollection)

    def admin_log(self, first: int = 1) -> Iterator[AdminLogEntry]:
        """Yield the administrative records from a number on; they are stored in the first partition."""
        return self.select(AdminLogEntry, first)

    def checkpoints(self, first: int = 1) -> Iterator[Checkpoint]:
        """Yield the checkpoints from a number on, in order; they are stored in the first partition."""
        return self.select(Checkpoint, first)

    # -- everything ---------------------------------------------------------------------------------------

    def users(self, first: int, last: int) -> Iterator[User]:
        """Yield the users of the accounts `first` to `last`."""
        return self.select(User, first, last)

    def tombstones(self) -> Iterator[Tombstone]:
        """Yield the tombstones of all erased users."""
        return self.select(Tombstone)

    def sums(self, first: int, last: int) -> Iterator[WindowSum]:
        """Yield the sums of the accounts `first` to `last`."""
        return self.select(WindowSum, first, last)

    def account_macs(self, first: int, last: int) -> Iterator[AccountMac]:
        """Yield the MACs of the accounts `first` to `last`."""
        return self.select(AccountMac, first, last)

    def memoised_counts(self, first: int, last: int) -> Iterator[MemoisedCount]:
        """Yield the memoised counts of the accounts `first` to `last`."""
        return self.select(MemoisedCount, first, last)

    def quotas(self, first: int, last: int) -> Iterator[QuotaUse]:
        """Yield the used quotas of the accounts `first` to `last`."""
        return self.select(QuotaUse, first, last)

    def refusals(self, first: int, last: int) -> Iterator[IdempotencyRecord]:
        """Yield the records of refusals, which belong to no entry, from one number to another."""
        return map(IdempotencyRecord._make, self.ask("refusals", first, last))

    def numbered(self, kind: type[N], *key: Any) -> N | None:
        """Return the row of a `NUMBERED` class with these values after its number."""
        of: Any = kind
        names = of._fields[1 : 1 + NUMBERED[kind].key]
        return cast("N | None", self._one(of, **dict(zip(names, key, strict=True))))

    def all_numbered(self, kind: type[N], first: int, last: int) -> Iterator[N]:
        """Yield the rows of a `NUMBERED` class from one number to another."""
        of: Any = kind
        return cast("Iterator[N]", self.select(of, first, last))

    def waiting_reports(self, *, collection: str | None = None, account: int | None = None) -> Iterator[StoredReport]:
        """Yield the waiting reports of a collection, of an account, or all, in the order of their numbers."""
        if account is not None:
            return map(StoredReport._make, self.ask("waiting_of", account))
        if collection is None:
            return self.select(StoredReport, state=WAITING)
        return self.select(StoredReport, state=WAITING, collection=collection)

    def rounds(self, collection: str) -> list[str]:
        """Return the names of a collection's rounds in the order of their sealing; they are in the first partition."""
        return [name for (name,) in self.ask("rounds", collection)]

    def report_counts(self) -> Mapping[tuple[str, str], int]:
        """Return the number of reports by collection and state, and that in each collection's rounds."""
        return {(name, state): count for name, state, count in self.ask("report_counts")}

    # -- usage statistics: aggregates without users, whose time grows with the partition ------------------

    def charges_by_mechanism(self) -> Iterable[tuple[Any, ...]]:
        """Yield (priced mechanism, charges, reports, voided charges, voided reports, newest time), in order."""
        return self.ask("charges_by_mechanism")

    def charges_by_day(self, since: int) -> Iterable[tuple[Any, ...]]:
        """Yield (day since 1970, charged accounts, charges, reports, voided reports) of entries since a time."""
        return self.ask("charges_by_day", since)

    def refusals_by_day(self, since: int) -> Iterable[tuple[Any, ...]]:
        """Yield (day since 1970, policy, the periods that refused as a JSON array, number) of records since a time."""
        return self.ask("refusals_by_day", since)

    def refused_in_runs(self) -> int:
        """Return the number of users whom batch runs refused."""
        return int(next(iter(self.ask("refused_in_runs")))[0])

    def users_by_sums(self, windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        """Yield (window, four sums, number of users) for the distinct sums in these windows, without erased users."""
        return self.ask("users_by_sums", list(windows))

    def policies_set(self) -> Iterable[tuple[Any, ...]]:
        """Yield (policy, API key) of the journal's entries that set policies."""
        return self.ask("policies_set")
