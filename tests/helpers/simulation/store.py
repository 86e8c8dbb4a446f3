"""A simulated store: a disk with a log, the connections of processes to it, and the faults of both.

`Disk` is the machine of the ledger: its log is durable, its memory is not. `Connection` is the `Store` of one process.
A transaction works on copies of its partitions, which a commit appends to the log. So a snapshot never changes.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, count
from random import Random
from typing import Any, NamedTuple

from contract.toy_store import ToyRows
from ldp_budget.errors import LedgerError
from ldp_budget.ledger import models
from ldp_budget.ledger.keyed_hashing import Key
from ldp_budget.ledger.storage import Attempt, Prefetch

FAULTS = {
    "crash": "the process ends at a call of the store, or just before the commit",
    "full": "a call of the store fails, because the disk is full",
    "torn": "the power fails during the commit, and the log has a part of the transaction",
    "lost": "the connection is lost before the commit: the outcome is unknown, and nothing was committed",
    "unheard": "the connection is lost after the commit: the outcome is unknown, and everything was committed",
    "late": "the process ends after the commit, before its clients hear of it",
    "again": "the store rolls the work back, and runs it a second time",
}


class Crash(BaseException):
    """The end of a simulated process."""


class DiskFullError(Exception):
    """A failed call, as the driver of a store reports it. `Connection.attempts` makes a `LedgerError` of it."""


class Fault(NamedTuple):
    """A fault, the number of the call at which it strikes, if it does at one, and of the transactions before it."""

    kind: str
    call: int
    skip: int


class Rows(ToyRows):
    """A version of a partition: the rows of the toy store, with faster look-ups."""

    def copy(self) -> Rows:
        """Return a version that can be changed."""
        twin = copy.copy(self)
        for name, table in vars(self).items():
            if isinstance(table, dict | list):
                setattr(twin, name, table.copy())
        twin._numbered = {name: table.copy() for name, table in self._numbered.items()}
        return twin

    def accounts_by_number(self, accounts: Sequence[int], windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        journal = self._journal
        for account in [each for each in accounts if each in self._users and self._users[each].user_hash is not None]:
            newest_first = (n for n in range(len(journal), 0, -1) if journal[n][3] == account)
            newest = next((n for n in newest_first if journal[n][2] in models.CHARGES), None)
            row_mac = self._macs.get(account, (0, None, None))[1:]
            counted = any(key[0] == account for key in self._memoised_counts)
            sums = [(each, self._sums.get((account, each))) for each in windows]
            flat = chain.from_iterable([None] * 5 if spent is None else (each, *spent) for each, spent in sums)
            yield (self._users[account].user_hash, account, newest, *row_mac, counted, *flat)

    def idempotency_records(
        self, users: Sequence[bytes], keys: Sequence[bytes]
    ) -> Iterable[models.IdempotencyRecord]:
        found = (self._idempotency_records.get(need) for need in zip(users, keys, strict=True))
        return [record for record in found if record is not None]


class FailingRows:
    """A version whose nth call raises an error, counted over all partitions of a transaction."""

    def __init__(self, rows: Rows, calls: Iterator[int], error: BaseException) -> None:
        self._rows, self._calls, self._error = rows, calls, error

    def __getattr__(self, name: str) -> Any:
        if next(self._calls) == 0:
            raise self._error
        return getattr(self._rows, name)


class Disk:
    """The machine of the ledger. A commit is durable once the log has all of it."""

    def __init__(self, key: Key, partitions: int) -> None:
        self.key, self.connections = key, list[Connection]()
        self.rows = {partition: Rows(key) for partition in range(partitions)}
        """The newest version of each partition, in memory."""
        self._log: list[tuple[dict[int, Rows], bool]] = [(dict(self.rows), True)]
        """The versions that each transaction wrote, and False for a transaction that is not complete."""

    def commit(self, written: dict[int, Rows]) -> None:
        """Append a transaction to the log, and then show it to others."""
        self._log.append((written, True))
        self.rows |= written

    def tear(self, written: dict[int, Rows]) -> None:
        """Lose the power during a commit."""
        self._log.append((dict([*written.items()][: len(written) // 2]), False))
        self.lose_power()

    def lose_power(self) -> None:
        """End all processes, and read the log. What is not complete there never happened."""
        for connection in self.connections:
            connection.is_dead = True
        self.connections, self.rows = [], {}
        for written, is_complete in self._log:
            self.rows |= written if is_complete else {}
        self._log = [(dict(self.rows), True)]


class Connection:
    """The store as one process sees it. `between` runs before each transaction and each snapshot."""

    name, identity, writers = "simulated", "simulated disk", 1

    def __init__(self, disk: Disk, random: Random, between: Callable[[], None]) -> None:
        self.disk, self.key, self.partitions, self.repeated = disk, disk.key, len(disk.rows), Counter[str]()
        self._random, self._between = random, between
        self.is_dead = False
        self.fault: Fault | None = None
        self.happened: list[str] = []
        """The faults that struck in this operation."""
        disk.connections.append(self)

    def die(self) -> Crash:
        """End the process."""
        self.is_dead = True
        self.disk.connections = [each for each in self.disk.connections if each is not self]
        return Crash()

    def _let_others_run(self) -> None:
        if not self.is_dead:
            self._between()
        if self.is_dead:
            raise Crash

    def attempts(self, partitions: Sequence[int] = (0,), hint: Prefetch | None = None) -> Iterator[Attempt]:
        """Yield copies of the partitions, and commit them, unless a fault strikes."""
        self._let_others_run()
        if hint is not None and hint.some:  # slow processes hold some of the others
            partitions = [partitions[0], *(each for each in partitions[1:] if self._random.random() < 0.7)]
        fault, kind = self.fault, ""
        if fault is not None:
            self.fault = fault._replace(skip=fault.skip - 1) if fault.skip else None
            kind = "" if fault.skip else fault.kind
        self.happened += [kind] if kind else []
        try:
            written = yield from self._work(partitions, kind, 0 if fault is None else fault.call)
            if kind == "again":
                written = yield from self._work(partitions, "", 0)
            self._commit(written, kind)
        except Crash:
            self.die()
            raise
        except DiskFullError as error:
            raise LedgerError(self.name, "the disk is full. Nothing was charged.") from error

    def _work(self, partitions: Sequence[int], kind: str, call: int) -> Generator[Attempt, None, dict[int, Rows]]:
        written = {partition: self.disk.rows[partition].copy() for partition in partitions}
        fails = kind in ("crash", "full")
        error, calls = Crash() if kind == "crash" else DiskFullError(), count(call, -1)
        given: Any = {each: FailingRows(rows, calls, error) for each, rows in written.items()} if fails else written
        attempt = Attempt(given)
        yield attempt
        if attempt.error is not None:
            raise attempt.error
        if fails:
            raise error
        return written

    def _commit(self, written: dict[int, Rows], kind: str) -> None:
        unknown = LedgerError(self.name, "the connection was lost during the commit", unknown=True)
        if kind == "lost":
            raise unknown
        if kind == "torn":
            self.disk.tear(written)
            raise Crash
        self.disk.commit(written)
        if kind == "unheard":
            raise unknown
        if kind == "late":
            raise Crash

    @contextmanager
    def snapshot(self, partition: int = 0) -> Iterator[Rows]:
        """Read the newest version of a partition."""
        self._let_others_run()
        yield self.disk.rows[partition]

    def entries(self) -> list[int]:
        """Return the number of the newest entry of each partition."""
        return [rows.end()[0].entries for rows in self.disk.rows.values()]

    def close(self, *given: object) -> bool:
        """Do nothing: there are no files."""
        return True

    change_key = backup = check_key = check_writable = clear_log = close
