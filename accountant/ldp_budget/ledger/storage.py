"""Storage protocols: a store keeps the ledger's rows and runs work atomically.

The accounting decides, a store stores. Any implementation of these protocols can hold a ledger: `sqlite` does,
`postgres` does, and the tests run the same contract on a dictionary. A store knows no rules, policies or prices. Its
rows are those of `models`, and an iteration is in the order of their first fields.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from decimal import DecimalException
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from ..errors import LedgerError
from ..guarantees.fixed_point import Costs
from .keyfile import Key
from .models import (
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

N = TypeVar("N", bound=Numbered)
"""A row class of `NUMBERED`."""

FIRST_RECORD = -(2**63)
"""The position from which idempotency records are read in parts."""

NO_SUM = -1
"""The first amount where there is no sum. A stored amount that is negative was changed, and is read as one less."""

Rooms = Sequence[tuple[str, dict[str, int] | None]]
"""For each window, the largest sums to which a charge can be added, by amount; None if no sum is small enough."""


class UnstorableError(LedgerError):
    """A value of one work item that the engine cannot store. Other work items are not affected."""


# What Python raises for a value of another form, such as a text that is no JSON, or a time outside of all years.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, DecimalException, AssertionError)


def unreadable(ledger: str, error: Exception, then: str = "") -> LedgerError:
    """Return the error for an error of code that reads stored values: a value changed by hand can raise any."""
    why = f"a stored value cannot be read: {error or type(error).__name__}{then}"
    return LedgerError(ledger, why, hint="Run: ldp-budget ledger verify")


class Prefetch(NamedTuple):
    """The first look-ups of a transaction: accounts of users, and idempotency records under their keys."""

    needs: Sequence[tuple[int, bytes, bytes | None]]
    """Partition, user, and key or None."""
    windows: Sequence[str] | None
    """The windows of the accounts, if they are known."""
    some: bool = False
    """True if the first partition suffices, with those of the others that are free."""
    batches: Mapping[int, list[bytes]] = {}
    """By partition, the sorted users of the first batch, see `Rows.batch`."""


class Snapshot(Protocol):
    """A snapshot of a partition, to read. Its iterators are valid as long as the snapshot is."""

    def end(self) -> tuple[PartitionHead, bytes]:
        """Return the partition head, and the MAC of its counters."""

    # -- one user -----------------------------------------------------------------------------------------

    def accounts(self, users: Sequence[bytes], windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        """Yield a row for each user with an account: (user, account, MAC state, sums).

        The MAC state is four values: the number of the account's newest charge, the day of its MAC, the MAC, and a
        flag that is true if the account has label counts or used quotas. The sums are five values for each window:
        its name, None if nothing was charged there, and the four amounts.
        """

    def accounts_by_number(self, accounts: Sequence[int], windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        """Yield the same rows for those accounts with these numbers that have a user; a range is read in one scan."""

    def erased(self, users: Sequence[bytes]) -> Iterable[bytes]:
        """Return those of `users` who were erased."""

    def is_erased_account(self, account: int) -> bool:
        """True if an account is that of an erased user."""

    def spent(self, account: int, window: str) -> Costs | None:
        """Return the amounts charged to an account in a window; None if there are none."""

    def memoised_reports(self, account: int, label: bytes, charge: int, window: str) -> int:
        """Return the number of reports of a memoised value that were charged in a window."""

    def quota_used(self, account: int, plan: str, promise: str) -> int:
        """Return the used part of a plan's quota."""

    def plans_used(self, account: int) -> Iterable[str]:
        """Return the plans of which an account has used a quota, each once."""

    def idempotency_records(self, users: Sequence[bytes], keys: Sequence[bytes]) -> Iterable[IdempotencyRecord]:
        """Return the idempotency records of pairs: each of `users` with the key at the same place.

        Others may come too, and a record may come twice.
        """

    # -- the journal --------------------------------------------------------------------------------------

    def entries(self, first: int, last: int) -> Iterator[tuple[tuple[Any, ...], bytes | None]]:
        """Yield the flat rows of the entries `first` to `last`, each with its chain hash if it ends a transaction."""

    def alike(self, number: int, last: int) -> list[int]:
        """Return the accounts of entry `number` and of those after it, up to `last`, that differ in number and account only.

        None of those after it ends a transaction. A store may return fewer than there are.
        """

    def entry(self, number: int) -> tuple[Any, ...] | None:
        """Return the flat row of an entry."""

    def resolution(self, number: int) -> tuple[Any, ...] | None:
        """Return the flat row of the entry that ended a reservation."""

    def repairs(self, first: int = 1) -> Iterator[Repair]:
        """Yield the clock repairs from an entry on, in order."""

    def label(self, number: int) -> EntryLabel | None:
        """Return the label of an entry."""

    def history(self, account: int, first: int = 1, most: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield the flat rows of an account's entries from number `first` on, at most `most`.

        Each row is followed by its label and the salt of its label commitment.
        """

    def histories(self, first: int, last: int, since: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield the same for the accounts `first` to `last`, account by account, of entries since `since`."""

    def notes(self, first: int, last: int, account: int | None = None) -> Iterator[EntryNote]:
        """Yield the notes on the entries `first` to `last`, of one account or all."""

    def reserved(self, after: int, account: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield the flat rows of unresolved reservations that expire after a time, of one account or all."""

    # -- what was set -------------------------------------------------------------------------------------

    def periods(self) -> dict[str, int]:
        """Return the periods with kept windows, and the start of the first window of each."""

    def priced_mechanism_number(self, fingerprint: str, guarantee: str, collection: str) -> int | None:
        """Return the number of a stored priced mechanism."""

    def priced_mechanisms(self, first: int = 1) -> Iterator[PricedMechanism]:
        """Yield the priced mechanisms from a number on."""

    def policies(self, first: int = 1) -> Iterator[StoredPolicy]:
        """Yield every version of every policy, from a number on."""

    def was_charged(self, policy: int) -> bool:
        """True if a user was charged under this version of a policy."""

    def collection(self, name: str) -> StoredCollection | None:
        """Return the collection of that name."""

    def collections(self) -> Iterator[StoredCollection]:
        """Yield every collection, by name."""

    def admin_log(self, first: int = 1) -> Iterator[AdminLogEntry]:
        """Yield the administrative records from a number on; they are stored in the first partition."""

    def checkpoints(self, first: int = 1) -> Iterator[Checkpoint]:
        """Yield the checkpoints from a number on, in order; they are stored in the first partition."""

    # -- everything ---------------------------------------------------------------------------------------

    def users(self, first: int, last: int) -> Iterator[User]:
        """Yield the users of the accounts `first` to `last`."""

    def tombstones(self) -> Iterator[Tombstone]:
        """Yield the tombstones of all erased users."""

    def sums(self, first: int, last: int) -> Iterator[WindowSum]:
        """Yield the sums of the accounts `first` to `last`."""

    def window_amounts(self, window: str, amount: str) -> Iterator[tuple[int, int | None]]:
        """Yield every account with a sum in a window, with one of its four amounts, in the order of the accounts."""

    def account_macs(self, first: int, last: int) -> Iterator[AccountMac]:
        """Yield the MACs of the accounts `first` to `last`."""

    def memoised_counts(self, first: int, last: int) -> Iterator[MemoisedCount]:
        """Yield the memoised counts of the accounts `first` to `last`."""

    def quotas(self, first: int, last: int) -> Iterator[QuotaUse]:
        """Yield the used quotas of the accounts `first` to `last`."""

    def idempotency_records_after(self, position: int, most: int) -> tuple[Iterable[IdempotencyRecord], int | None]:
        """Return a part of all idempotency records, and the position of the next part; None after the last.

        The first part begins at `FIRST_RECORD`. A part has at most `most` records. An engine whose readers delay no
        writer may return everything as one part.
        """

    def refusals(self, first: int, last: int) -> Iterator[IdempotencyRecord]:
        """Yield the records of refusals, which belong to no entry, from one number to another."""

    def numbered(self, kind: type[N], *key: Any) -> N | None:
        """Return the row of a `NUMBERED` class with these values after its number."""

    def all_numbered(self, kind: type[N], first: int, last: int) -> Iterator[N]:
        """Yield the rows of a `NUMBERED` class from one number to another."""

    def waiting_reports(self, *, collection: str | None = None, account: int | None = None) -> Iterator[StoredReport]:
        """Yield the waiting reports of a collection, of an account, or all, in the order of their numbers."""

    def rounds(self, collection: str) -> list[str]:
        """Return the names of a collection's rounds in the order of their sealing; they are in the first partition."""

    def report_counts(self) -> Mapping[tuple[str, str], int]:
        """Return the number of reports by collection and state, and that in each collection's rounds."""

    def counts(self) -> dict[str, Any]:
        """Return the counts of `users`, `erased`, `cut_off`, `keys`, `notes`, `entries_by_kind`, and the `engine`.

        `cut_off` counts the accounts of erased users, `keys` the idempotency records and batch runs. `engine` is the
        engine's name and version.
        """

    # -- usage statistics: aggregates without users, whose time grows with the partition ------------------

    def charges_by_mechanism(self) -> Iterable[tuple[int, int, int, int, int, int]]:
        """Yield (priced mechanism, charges, reports, voided charges, voided reports, newest time), in order."""

    def charges_by_day(self, since: int) -> Iterable[tuple[int, int, int, int, int]]:
        """Yield (day since 1970, charged accounts, charges, reports, voided reports) of entries since a time."""

    def refusals_by_day(self, since: int) -> Iterable[tuple[int, int, str, int]]:
        """Yield (day since 1970, policy, the periods that refused as a JSON array, number) of records since a time."""

    def refused_in_runs(self) -> int:
        """Return the number of users whom batch runs refused."""

    def users_by_sums(self, windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        """Yield (window, four sums, number of users) for the distinct sums in these windows, without erased users."""

    def policies_set(self) -> Iterable[tuple[int, int]]:
        """Yield (policy, API key) of the journal's entries that set policies."""

    # -- the engine ---------------------------------------------------------------------------------------

    def damage(self) -> Iterator[str]:
        """Yield the problems that the engine itself finds, as text: damage, and orphaned rows."""


Renew = Callable[[tuple[Any, ...]], tuple[Any, ...]]
"""Converts a row to its new value."""


class Batch(Protocol):
    """Distinct users who are charged alike, by set-based statements."""

    def refuse(self, rooms: Rooms) -> list[bytes]:
        """Remove the users whom a limit or a tombstone refuses, and return them."""

    def unknown(self) -> list[bytes]:
        """Return the remaining users who have no account, in order."""

    def stored_macs(self, day: int, windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        """Yield (account, user, newest charge, MAC, sums) of the remaining users with an account.

        It is called after `unknown`. The MAC is None unless it is of that day and there are neither label counts nor
        used quotas. The sums are the amounts in each of the windows. In a window without a row, the first amount is
        `NO_SUM`.
        """

    def open_accounts(self, first: int, users: list[bytes], row_macs: list[bytes]) -> None:
        """Open accounts for the unknown users, numbered from `first`."""

    def charge(self, windows: Iterable[str], cost: Costs) -> None:
        """Add the cost to the sums of every account. An amount that grows too large to store becomes unbounded."""

    def append(self, first: int, common: tuple[Any, ...], bound: tuple[int, int, int]) -> list[int]:
        """Append an entry of one report for every account, numbered from `first`; return the accounts in order.

        `common` holds time, kind, priced mechanism, policy and the four amounts. `bound` ends each row: the note
        flag, the number of the API key and the number of the sub-limit.
        """

    def set_macs(self, day: int, row_macs: list[bytes]) -> None:
        """Replace the MACs of all accounts, which are in order."""


class Rows(Snapshot, Protocol):
    """A partition inside a write transaction: it has no other writer, and reads see its own writes."""

    def add_user(self, user: User) -> None:
        """Add a new user with an account."""

    def set_sums(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Replace sums; rows are as `WindowSum`."""

    def set_account_macs(self, rows: Sequence[AccountMac]) -> None:
        """Replace the MACs of accounts."""

    def set_memoised_reports(self, row: MemoisedCount) -> None:
        """Replace a count of a memoised value."""

    def set_quota_used(self, row: QuotaUse) -> None:
        """Replace the used part of a quota."""

    def add_idempotency_records(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add idempotency records; rows are as `IdempotencyRecord`."""

    def add_entries(self, rows: list[tuple[Any, ...]], chain_hash: bytes | None) -> None:
        """Append flat rows to the journal; `chain_hash` belongs to the last of them."""

    def set_chain_hash(self, number: int, chain_hash: bytes) -> None:
        """Set the chain hash of an entry that was appended in this transaction."""

    def add_label(self, label: EntryLabel) -> None:
        """Store the memoised value that an entry repeats."""

    def add_notes(self, notes: Sequence[EntryNote]) -> None:
        """Store notes on entries."""

    def add_priced_mechanism(self, charge: PricedMechanism) -> None:
        """Store a priced mechanism."""

    def add_policy(self, policy: StoredPolicy) -> None:
        """Store a version of a policy."""

    def add_period(self, period: str, since: int) -> None:
        """Keep windows of a period, or change the start from which they are kept."""

    def add_collection(self, collection: StoredCollection) -> None:
        """Store a collection."""

    def add_record(self, record: AdminLogEntry) -> None:
        """Store an administrative record."""

    def add_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store a checkpoint."""

    def add_numbered(self, row: Numbered) -> None:
        """Store a row of a `NUMBERED` class."""

    def set_reports(self, rows: Sequence[StoredReport]) -> None:
        """Replace the states, bytes and MACs of stored reports."""

    def forget(self, tombstone: Tombstone, cut_off: User | None) -> None:
        """Erase a user: add the tombstone, and replace the account's user with `cut_off`.

        The user's idempotency records, labels and notes are deleted, and all sums except that of the lifetime.
        """

    def idempotency_records_of(self, user: bytes) -> Iterator[IdempotencyRecord]:
        """Yield all idempotency records of a user."""

    def batch(self, users: list[bytes], windows: list[str]) -> Batch:
        """Return a batch of distinct users, at least one, in order; `windows` are those that it will look at."""

    def renew(self, tables: Mapping[str, Renew]) -> None:
        """Replace every row of some tables with its converted value.

        Rows are as `User`, `Tombstone`, `IdempotencyRecord`, `MemoisedCount`, `EntryLabel`, `EntryNote`,
        `StoredCollection`, `PricedMechanism`, `StoredPolicy`, and those of `NUMBERED`.
        """

    def set_end(self, end: PartitionHead, row_mac: bytes | None) -> None:
        """Set the partition head; `row_mac` is None if none of its counters has changed."""


Partitions: TypeAlias = "Mapping[int, Rows]"
"""The rows of each partition of a transaction, by its number."""


class Attempt:
    """One attempt of a write transaction: `with attempt as rows`. An error in it is for the generator that yields it.

    That generator begins before it yields. Afterwards it commits or, if there is an `error`, rolls back and raises it.
    A caller that is interrupted between these steps drops the generator, which then rolls back too.
    """

    __slots__ = ("error", "rows")

    def __init__(self, rows: Partitions) -> None:
        self.rows = rows
        self.error: BaseException | None = None

    def __enter__(self) -> Partitions:
        return self.rows

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        self.error = error
        return True


class Store(Protocol):
    """Stores one ledger of one or more partitions. Safe to share between threads.

    A partition is a whole ledger with its own numbers, journal and hash chain, and its own copies of policies, priced
    mechanisms and periods. All rows of a user are in one partition. Writers of different partitions share nothing.
    """

    name: str
    """The ledger's name in messages."""
    key: Key
    """The secrets that hash users, keys and labels, and make every MAC."""
    partitions: int
    """The number of partitions, fixed when the ledger is made; they are numbered from 0."""
    writers: int
    """The number of transactions, in different partitions, that it can write at the same time."""

    @property
    def identity(self) -> str:
        """An identifier that is the same under each of the ledger's names; no other ledger has it, except backups."""

    # A store may have a property `place`: text that differs between a ledger and a copy of all its rows elsewhere, as
    # far as the engine can tell. Without it, `identity` is used.

    @property
    def repeated(self) -> Mapping[str, int]:
        """The number of times this process retried work, by the engine's error code."""

    def attempts(self, partitions: Sequence[int] = (0,), hint: Prefetch | None = None) -> Iterator[Attempt]:
        """Yield attempts of one write transaction of some partitions, until one is durable:

            for attempt in store.attempts(partitions):
                with attempt as rows:
                    ...

        `rows` are those of each partition. All that is done with them happens or, on an exception, nothing. If it
        writes nothing, what it has read must be as durable when the attempt ends. An attempt that the engine asks to
        repeat ends without an error, and another one follows. Otherwise raises `LedgerError` if the engine fails, with
        `unknown` if the engine cannot say whether it has committed, and `UnstorableError` if a value is the cause. A
        store may ignore `hint`.
        """

    def snapshot(self, partition: int = 0) -> AbstractContextManager[Snapshot]:
        """Read a snapshot of a partition, on a connection of its own: no writer waits for it."""

    def entries(self) -> Sequence[int]:
        """Return the number of the newest entry of each partition, from the first partition on, in one query."""

    def check_key(self) -> None:
        """Raise `LedgerError` unless the key file is in its original place, with the key that this store uses."""

    def check_writable(self) -> None:
        """Raise `LedgerError` if no write could begin now, as far as can be determined without writing."""

    def change_key(self, change: Callable[[Key], bytes]) -> None:
        """Replace the content of the key file with the result of `change`, and update the key; one call at a time."""

    def clear_log(self) -> bool:
        """Allow deleted data to be overwritten; False if an active reader prevented that."""

    def backup(self, path: str | os.PathLike[str], check: Callable[[Snapshot], None]) -> None:
        """Copy a snapshot of the ledger to a path that does not exist yet; others may write meanwhile.

        `check` may refuse the snapshot by an exception; then nothing is written.
        """

    def close(self) -> None:
        """Close the store; it cannot be used any more."""
