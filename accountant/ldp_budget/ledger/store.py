"""What a store is: it keeps the rows of a ledger, and does a piece of work whole or not at all.

The accounting decides, a store keeps. Whatever speaks these protocols can carry a ledger: `_sqlite` does, and the
tests hold a dictionary to the same contract. A store knows no rule, no policy and no price; its rows are those of
`entries`, and the order of an iteration is that of their first fields.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
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
    Tombstone,
    User,
    WindowSum,
)

T = TypeVar("T")
N = TypeVar("N", bound=Numbered)
"""A class of `NUMBERED`."""

FIRST_RECORD = -(2**63)
"""The position from which stored answers are read in parts."""

NO_SUM = -1
"""Where there is no sum, the first of its amounts; a stored one that is negative was changed, and reads one less."""

Rooms = Sequence[tuple[int, dict[str, int] | None]]
"""In each window, the largest sums on top of which a charge fits, by amount; None where none do."""


class UnstorableError(LedgerError):
    """A value of one piece of work is none that the engine stores. It says nothing of other pieces."""


class Prefetch(NamedTuple):
    """What the work of a transaction will ask first: accounts of users, and answers under their keys."""

    needs: Sequence[tuple[int, bytes, bytes | None]]
    """Partition, user, and key or None."""
    windows: Sequence[int] | None
    """The windows of the accounts, if they are known."""
    some: bool = False
    """Whether the first of the partitions will do, with those of the others that nobody holds just now."""


class Snapshot(Protocol):
    """One moment of a partition, to read. What it iterates over is good for as long as the snapshot is."""

    def end(self) -> tuple[PartitionHead, bytes]:
        """Where the partition ends, and the MAC of its counters."""

    # -- one user -----------------------------------------------------------------------------------------

    def accounts(self, users: Sequence[bytes], windows: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        """(user, account, window, four sums, MAC) for each of `users` who has an account and each window charged.

        A user whom no such window was charged comes once, with None for the window. The MAC stands for five values:
        the number of the account's newest charge, the day of its MAC, that, whether there are label counts or
        used quotas of the account, and the user.
        """

    def accounts_by_number(self, accounts: Sequence[int], windows: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        """The same by the numbers of accounts that are of a user: (account, window, four sums, MAC)."""

    def erased(self, users: Sequence[bytes]) -> Iterable[bytes]:
        """Those of `users` who were erased."""

    def is_erased_account(self, account: int) -> bool:
        """Whether an account is that of an erased user."""

    def spent(self, account: int, window: int) -> Costs | None:
        """What was charged to an account in a window; None if nothing was."""

    def memoised_reports(self, account: int, label: bytes, charge: int, window: int) -> int:
        """How many reports of a memoised value were charged in a window."""

    def quota_used(self, account: int, plan: str, promise: str) -> int:
        """How much of a plan's quota was used."""

    def plans_used(self, account: int) -> Iterable[str]:
        """The plans of which an account has used a quota, each once."""

    def idempotency_records(self, users: Sequence[bytes], keys: Sequence[bytes]) -> Iterable[IdempotencyRecord]:
        """The idempotency records of any of `users` under any of `keys`."""

    # -- the journal --------------------------------------------------------------------------------------

    def entries(self, first: int, last: int) -> Iterator[tuple[tuple[Any, ...], bytes | None]]:
        """The flat rows of the entries `first` to `last`, each with its link if it ends a transaction."""

    def entry(self, number: int) -> tuple[Any, ...] | None:
        """The flat row of an entry."""

    def resolution(self, number: int) -> tuple[Any, ...] | None:
        """The flat row of the entry that ended a reservation."""

    def repairs(self, first: int = 1) -> Iterator[Repair]:
        """The repairs of the clock from an entry on, in order."""

    def label(self, number: int) -> EntryLabel | None:
        """The label of an entry."""

    def history(self, account: int, first: int = 1, most: int | None = None) -> Iterator[tuple[Any, ...]]:
        """The flat rows of an account's entries from a number on, at most so many, each followed by its label and
        the salt of its mark."""

    def histories(self, first: int, last: int, since: int | None = None) -> Iterator[tuple[Any, ...]]:
        """The same of the accounts `first` to `last`, account by account, of entries not before a moment."""

    def notes(self, first: int, last: int, account: int | None = None) -> Iterator[EntryNote]:
        """The notes beside the entries `first` to `last`, of an account or all."""

    def reserved(self, after: int, account: int | None = None) -> Iterator[tuple[Any, ...]]:
        """The flat rows of the reservations, of an account or all, that expire after a moment and were not ended."""

    # -- what was set -------------------------------------------------------------------------------------

    def periods(self) -> dict[str, int]:
        """The periods for which windows are kept, and when the first of them starts."""

    def priced_mechanism_number(self, fingerprint: str, guarantee: str, collection: str) -> int | None:
        """The number of a stored charge."""

    def priced_mechanisms(self, first: int = 1) -> Iterator[PricedMechanism]:
        """The charges from a number on."""

    def policy(self, name: str) -> StoredPolicy | None:
        """The newest version of a policy."""

    def policies(self, first: int = 1) -> Iterator[StoredPolicy]:
        """Every version of every policy, from a number on."""

    def was_charged(self, policy: int) -> bool:
        """Whether anybody was charged under this version of a policy."""

    def collection(self, name: str) -> StoredCollection | None:
        """The collection of that name."""

    def collections(self) -> Iterator[StoredCollection]:
        """Every collection, by name."""

    def admin_log(self, first: int = 1) -> Iterator[AdminLogEntry]:
        """The records from a number on; they stand in the first partition."""

    def checkpoints(self, first: int = 1) -> Iterator[Checkpoint]:
        """The checkpoints from a number on, in order; they stand in the first partition."""

    # -- everything ---------------------------------------------------------------------------------------

    def users(self, first: int, last: int) -> Iterator[User]:
        """The users of the accounts `first` to `last`."""

    def tombstones(self) -> Iterator[Tombstone]:
        """Every erased user."""

    def sums(self, first: int, last: int) -> Iterator[WindowSum]:
        """Their sums."""

    def account_macs(self, first: int, last: int) -> Iterator[AccountMac]:
        """Their MACs."""

    def memoised_counts(self, first: int, last: int) -> Iterator[MemoisedCount]:
        """Their counts of memoised values."""

    def quotas(self, first: int, last: int) -> Iterator[QuotaUse]:
        """Their used quotas."""

    def idempotency_records_after(self, position: int, most: int) -> tuple[Iterable[IdempotencyRecord], int | None]:
        """A part of all idempotency records, at most so many, and the position of the next part; None after the last.

        `FIRST_RECORD` is where the first part begins. An engine whose readers hold up no writer may have one part.
        """

    def refusals(self, first: int, last: int) -> Iterator[IdempotencyRecord]:
        """Those that belong to no entry, from one number to another."""

    def numbered(self, kind: type[N], *key: Any) -> N | None:
        """The row of a class of `NUMBERED` with these values after its number."""

    def all_numbered(self, kind: type[N], first: int, last: int) -> Iterator[N]:
        """The rows of a class of `NUMBERED` from one number to another."""

    def counts(self) -> dict[str, Any]:
        """How many `users`, `erased`, `cut_off`, `keys`, `notes` there are, `entries_by_kind`, and `engine`.

        `cut_off` are the accounts of erased users, `keys` the idempotency records and batch runs, `engine` is its
        name and version.
        """

    def damage(self) -> Iterator[str]:
        """What the engine itself finds wrong, in words: damage, and rows that belong to nothing."""


Renew = Callable[[tuple[Any, ...]], tuple[Any, ...]]
"""What makes a row what it is to be."""


class Batch(Protocol):
    """Distinct users who are charged alike, by statements over all of them."""

    def refuse(self, rooms: Rooms) -> list[bytes]:
        """Strike out the users whom a limit or a tombstone refuses; returns them."""

    def unknown(self) -> list[bytes]:
        """Those who are left and have no account, in order."""

    def stored_macs(self, day: int, windows: Sequence[int]) -> Iterable[tuple[Any, ...]]:
        """(account, user, newest charge, MAC, sums) of those left who have an account; asked after `unknown`.

        The MAC is None unless it is of that day and there are neither label counts nor used quotas. The sums are
        the amounts in each of the windows; where it has no row, the first of them is `NO_SUM`.
        """

    def open_accounts(self, first: int, users: list[bytes], row_macs: list[bytes]) -> None:
        """Give accounts to the unknown, numbered from `first`."""

    def charge(self, windows: Iterable[int], cost: Costs) -> None:
        """Add the cost to the sums of every account; what grows too large to count is unbounded."""

    def append(self, first: int, common: tuple[Any, ...], bound: tuple[int, int, int]) -> list[int]:
        """Append an entry of one report for every account, numbered from `first`; returns the accounts in order.

        `common` holds at, kind, charge, policy and the four amounts; `bound` is what ends each
        row: whether it has a note, its API key and its sub-limit.
        """

    def set_macs(self, day: int, row_macs: list[bytes]) -> None:
        """Replace the MACs of all accounts, which are in order."""


class Rows(Snapshot, Protocol):
    """A partition inside a writing transaction: nobody else writes to it, and it reads what it wrote."""

    def add_user(self, user: User) -> None:
        """Give a new user an account."""

    def set_sums(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Replace sums, rows as `SumRow`."""

    def set_account_macs(self, rows: Sequence[AccountMac]) -> None:
        """Replace the MACs of accounts."""

    def set_memoised_reports(self, row: MemoisedCount) -> None:
        """Replace a count of a memoised value."""

    def set_quota_used(self, row: QuotaUse) -> None:
        """Replace how much of a quota was used."""

    def add_idempotency_records(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Bind answers to their keys, rows as `StoredAnswer`."""

    def add_entries(self, rows: list[tuple[Any, ...]], chain_hash: bytes | None) -> None:
        """Append flat rows to the journal; `link` belongs to the last of them."""

    def set_chain_hash(self, number: int, chain_hash: bytes) -> None:
        """Give an entry that was appended in this transaction its link."""

    def add_label(self, label: EntryLabel) -> None:
        """Say which memoised value an entry repeats."""

    def add_notes(self, notes: Sequence[EntryNote]) -> None:
        """Write notes beside entries."""

    def add_priced_mechanism(self, charge: PricedMechanism) -> None:
        """Store a charge."""

    def add_policy(self, policy: StoredPolicy) -> None:
        """Store a version of a policy."""

    def add_period(self, period: str, since: int) -> None:
        """Keep windows of a period, or keep them from another moment on."""

    def add_collection(self, collection: StoredCollection) -> None:
        """Store a collection."""

    def add_record(self, record: AdminLogEntry) -> None:
        """Store a record."""

    def add_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Store a checkpoint."""

    def add_numbered(self, row: Numbered) -> None:
        """Store a row of a class of `NUMBERED`."""

    def forget(self, tombstone: Tombstone, cut_off: User | None) -> None:
        """Add the tombstone, put `cut_off` in the place of the account's user, and delete the user's idempotency
        records, labels, notes and all sums but the lifetime's."""

    def idempotency_records_of(self, user: bytes) -> Iterator[IdempotencyRecord]:
        """Every answer to a user."""

    def batch(self, users: list[bytes]) -> Batch:
        """Distinct users, at least one, in order."""

    def renew(self, tables: Mapping[str, Renew]) -> None:
        """Replace every row of tables, each by what is made of it.

        Rows are as `User`, `Tombstone`, `IdempotencyRecord`, `MemoisedCount`, `EntryLabel`, `EntryNote`,
        `StoredCollection`, `PricedMechanism`, `StoredPolicy`, and those of `NUMBERED`.
        """

    def set_end(self, end: PartitionHead, row_mac: bytes | None) -> None:
        """Move the end of the partition; `MAC` is None where none of its counters has changed."""


Partitions: TypeAlias = "Mapping[int, Rows]"
"""The rows of each partition of a transaction, by its number."""


class Store(Protocol):
    """Keeps one ledger of one or more partitions. Safe to share between threads and to use after a fork.

    A partition is a whole ledger with numbers, journal and chain of its own, and its own copies of policies, charges and
    periods; a user's rows all lie in one. Writers of different partitions share nothing.
    """

    name: str
    """The ledger as messages name it."""
    key: Key
    """The secrets under which users, keys and labels are hashed, and every MAC is made."""
    partitions: int
    """How many partitions there are, fixed when the ledger is made; they are numbered from 0."""

    @property
    def identity(self) -> str:
        """What is the same under each of its names, and different for another ledger, unless that is a backup."""

    @property
    def repeated(self) -> Mapping[str, int]:
        """How often this process did a piece of work again, by the engine's code for why."""

    def run(
        self, work: Callable[[Partitions], T], partitions: Sequence[int] = (0,), hint: Prefetch | None = None
    ) -> T:
        """Do a piece of work in a writing transaction of some partitions, and return its result when that is durable.

        `work` is given the rows of each. All of it happens or, on an exception, nothing. `work` is repeated where the
        engine asks for that. Raises `LedgerError` where the engine fails, with `unknown` where it cannot say whether
        it has committed, and `UnstorableError` where the work itself is why. A store may do with `hint` what it
        likes.
        """

    def snapshot(self, partition: int = 0) -> AbstractContextManager[Snapshot]:
        """Read one moment of a partition, on a connection of its own: no writer waits for it."""

    def entries(self) -> Sequence[int]:
        """The number of the newest entry of each partition, from the first partition on, by one question."""

    def check_key(self) -> None:
        """Raise `LedgerError` unless the key lies where it lay, and is the one that this store goes by."""

    def check_writable(self) -> None:
        """Raise `LedgerError` where no write could begin just now, as far as that can be seen without writing."""

    def look_at_key(self) -> None:
        """Let the key learn what lies in its place now."""

    def change_key(self, change: Callable[[Key], bytes]) -> None:
        """Put in the key's place what is made of the one that lies there, which the key learns; one at a time."""

    def clear_log(self) -> bool:
        """Let what was deleted be overwritten; whether nobody who reads it just now kept that off."""

    def backup(self, path: str | os.PathLike[str], check: Callable[[Snapshot], None]) -> None:
        """Copy one moment of the ledger to a place where there is nothing yet; others may write meanwhile.

        `check` may refuse that moment; then nothing is written.
        """

    def close(self) -> None:
        """Close it; it can be used no more."""
