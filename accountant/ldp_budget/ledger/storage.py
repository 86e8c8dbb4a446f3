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
from typing import Any, NamedTuple, Protocol, TypeAlias

from ..errors import LedgerError, LedgerUpgraded
from ..guarantees.fixed_point import Costs
from .keyed_hashing import Key
from .models import (
    IdempotencyRecord,
    PartitionHead,
    Tombstone,
    User,
)
from .tables import NamedReads, R

FIRST_RECORD = -(2**63)
"""The position from which idempotency records are read in parts."""

NO_SUM = -1
"""The first amount where there is no sum. A stored amount that is negative was changed, and is read as one less."""

Rooms = Sequence[tuple[str, dict[str, int] | None]]
"""For each window, the largest sums to which a charge can be added, by amount; None if no sum is small enough."""


class UnstorableError(LedgerError):
    """A value of one work item that the engine cannot store. Other work items are not affected."""


class PartitionsFailedError(LedgerError):
    """Some partitions cannot be written now, and nothing was written. Work in other partitions is not affected."""

    def __init__(self, path: str, why: str, partitions: Iterable[int], *, hint: str = "") -> None:
        self.partitions = frozenset(partitions)
        super().__init__(path, why, hint=hint)


# What Python raises for a value of another form, such as a text that is no JSON, or a time outside of all years.
UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError, DecimalException, AssertionError)


def other_tables(ledger: str, known: int, found: int | None, migrates: bool = False) -> LedgerError:
    """Return the error of opening a ledger whose tables have another version; None if the version cannot be read."""
    if found is not None and found > known:
        return LedgerUpgraded(ledger, known, found)
    why = f"its tables must be of version {known}: got version {'?' if found is None else found}. Nothing was changed"
    return LedgerError(ledger, why, hint="Back it up, then run: ldp-budget ledger upgrade" if migrates else "")


def of_a_candidate(ledger: str) -> LedgerError:
    """Return the error of opening a ledger that was written before the release of 1.0.0."""
    why = "a release candidate of ldp-budget 1.0.0 wrote it, and no release opens it. Nothing was changed"
    return LedgerError(ledger, why, hint="Start a new ledger under another name.")


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

    def within(self, partitions: Sequence[int]) -> Prefetch:
        """Return the look-ups in some of the partitions."""
        needs = [need for need in self.needs if need[0] in partitions]
        batches = {each: users for each, users in self.batches.items() if each in partitions}
        return self._replace(needs=needs, batches=batches)


class Snapshot(NamedReads, Protocol):
    """A snapshot of a partition, to read. Its iterators are valid as long as the snapshot is.

    A store implements the verbs here. Further reads follow from them, see `tables.NamedReads`.
    """

    def select(self, kind: type[R], first: Any = None, last: Any = None, **equal: Any) -> Iterator[R]:
        """Yield the rows of a class of `TABLES`, in the order of its key.

        `first` and `last` are the least and the greatest value of the first column of the key. `equal` has the values
        of further columns; None finds what has no value.
        """
        raise NotImplementedError

    def ask(self, query: str, *values: Any) -> Iterable[tuple[Any, ...]]:
        """Yield the rows of a named query, which is no selection of rows.

        - `entry`: flat rows: the entry with a number.
        - `resolution`: flat rows: the entry that ended a reservation, by its number.
        - `repairs`: number and time of the clock repairs from an entry on, in order.
        - `notes_of`: the `EntryNote` rows of the entries of an account, from one number to another; values: both, account.
        - `was_charged`: a row if a user was charged under a version of a policy, by its number.
        - `first_other`: the number of the first entry above a number, up to another, that is not alike to an entry, or
          after one that ends a transaction.
        - `accounts_of`: the accounts of the entries from one number to another, in order.
        - `amounts NAME`, for each field of `Costs`: each account with a sum in a window, with that amount, in the order of
          the accounts.
        - `refusals`: the `IdempotencyRecord` rows of refusals, from one number to another, in order.
        - `waiting_of`: the waiting `StoredReport` rows of an account, in order.
        - `rounds`: the names of a collection's rounds, in the order of their sealing.
        - `report_counts`: collection, state and number of its reports, and `IN_ROUNDS` with the number in its rounds.
        - `charges_by_mechanism`, `charges_by_day`, `refusals_by_day`, `refused_in_runs`, `users_by_sums`, `policies_set`: see
          `NamedReads`.
        """
        raise NotImplementedError

    def end(self) -> tuple[PartitionHead, bytes]:
        """Return the partition head, and the MAC of its counters."""

    # -- one user -----------------------------------------------------------------------------------------

    def accounts(
        self, asked: Sequence[bytes] | Sequence[int], windows: Sequence[str], by_number: bool = False
    ) -> Iterable[tuple[Any, ...]]:
        """Yield a row for each user with an account: (user, account, MAC state, sums).

        `asked` are the users or, `by_number`, numbers of accounts, of which some may have no user.

        The MAC state is four values: the number of the account's newest charge, the day of its MAC, the MAC, and a
        flag that is true if the account has label counts or used quotas. The sums are five values for each window:
        its name, None if nothing was charged there, and the four amounts.
        """

    def sums_between(
        self, accounts: Sequence[int], ranges: Sequence[tuple[str, str]]
    ) -> Iterable[tuple[int, str, int | None, int | None, int | None, int | None]]:
        """Return the rows of sums of some accounts whose windows are named in some ranges, each by its first and last."""

    def erased(self, users: Sequence[bytes]) -> Iterable[bytes]:
        """Return those of `users` who were erased."""

    def idempotency_records(self, users: Sequence[bytes], keys: Sequence[bytes]) -> Iterable[IdempotencyRecord]:
        """Return the idempotency records of pairs: each of `users` with the key at the same place.

        Others may come too, and a record may come twice.
        """

    # -- the journal --------------------------------------------------------------------------------------

    def entries(self, first: int, last: int) -> Iterator[tuple[tuple[Any, ...], bytes | None]]:
        """Yield the flat rows of the entries `first` to `last`, each with its chain hash if it ends a transaction."""

    def histories(
        self, first: int, last: int, since: int | None = None, after: int = 0, most: int | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the flat rows of the entries of the accounts `first` to `last`, account by account.

        They are the entries since the time `since` with numbers above `after`, at most `most`. Each row is followed by
        its label and the salt of its label commitment.
        """

    def reserved(self, after: int, account: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Yield the flat rows of unresolved reservations that expire after a time, of one account or all."""

    # -- what was set -------------------------------------------------------------------------------------

    # -- everything ---------------------------------------------------------------------------------------

    def idempotency_records_after(self, position: int, most: int) -> tuple[Iterable[IdempotencyRecord], int | None]:
        """Return a part of all idempotency records, and the position of the next part; None after the last.

        The first part begins at `FIRST_RECORD`. A part has at most `most` records. An engine whose readers delay no
        writer may return everything as one part.
        """

    def counts(self) -> dict[str, Any]:
        """Return the counts of `users`, `erased`, `cut_off`, `keys`, `notes`, `entries_by_kind`, and the `engine`.

        `cut_off` counts the accounts of erased users, `keys` the idempotency records and batch runs. `engine` is the
        engine's name and version.
        """

    # -- usage statistics: aggregates without users, whose time grows with the partition ------------------

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

    def insert(self, kind: type[Any], rows: Iterable[tuple[Any, ...]]) -> None:
        """Add new rows of a class of `TABLES`."""

    def replace(self, kind: type[Any], rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows of a class of `TABLES`, each in place of the row with the same key, if there is one."""

    def add_entries(self, rows: list[tuple[Any, ...]], chain_hash: bytes | None, last: int) -> None:
        """Append flat rows to the journal; `chain_hash` belongs to entry `last`, which this transaction has appended."""

    def forget(self, tombstone: Tombstone, cut_off: User | None) -> None:
        """Erase a user: add the tombstone, and replace the account's user with `cut_off`.

        The user's idempotency records, labels and notes are deleted, and all sums except that of the lifetime.
        """

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


PRE, POST = "pre", "post"


class Migration(NamedTuple):
    """The change of the tables to a version: SQL statements of the two steps.

    `pre` runs while the version before still charges: it may only add a table, which that version does not see, and it
    may take long. `post` runs in one short transaction, after which the tables have the new version. An open process of
    the version before then refuses each charge and read, by `LedgerUpgraded`.
    """

    version: int
    pre: tuple[str, ...] = ()
    post: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, str]:
        """The names under which the two steps are recorded."""
        return f"v{self.version}_{PRE}", f"v{self.version}_{POST}"


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
        `unknown` if the engine cannot say whether it has committed, `UnstorableError` if a value is the cause, and
        `PartitionsFailedError` if only some partitions fail. A store may ignore `hint`.
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
