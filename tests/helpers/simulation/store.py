"""A simulated store: a disk with a write-ahead log, connections of processes to it, and the faults of both.

`Disk` is the machine that holds the rows. Its log is durable; its tables are memory that a power loss erases.
`Connection` is the `Store` of one process. A fault is armed for one transaction of one connection, see `FAULTS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from random import Random
from typing import Any, NamedTuple

from ldp_budget.errors import LedgerError
from ldp_budget.ledger import models
from ldp_budget.ledger.keyfile import Key
from ldp_budget.ledger.storage import Partitions, Prefetch
from toy_store import ToyRows

FAULTS = {
    "crash": "the process ends at a write",
    "full": "a write fails, because the disk is full",
    "torn": "the power fails while the commit is written: a part of the transaction is in the log",
    "lost": "the connection is lost before the commit: the outcome is unknown, and nothing was committed",
    "unheard": "the connection is lost after the commit: the outcome is unknown, and everything was committed",
    "late": "the process ends after the commit, before the client hears of it",
    "again": "the store rolls the work back, and runs it a second time",
}
MISSING = object()


class Crash(BaseException):  # noqa: N818 - no error, and no code may catch it as one
    """The end of a simulated process."""


class DiskFullError(Exception):
    """A failed write, as the driver of a store reports it; `Connection.run` makes a `LedgerError` of it."""


class Fault(NamedTuple):
    """A fault, the number of the write at which it happens (if it does at one), and the transactions before it."""

    kind: str
    write: int = 0
    skip: int = 0


class Table(dict[Any, Any]):
    """A table whose changes are recorded, so that they can be rolled back or written to the log."""

    def __init__(self, disk: Disk, rows: Any = (), on_set: Callable[[Any, Any], None] | None = None) -> None:
        super().__init__(rows)
        self._disk, self._on_set = disk, on_set

    def __setitem__(self, key: Any, value: Any) -> None:
        self._disk.record(self, key)
        super().__setitem__(key, value)
        if self._on_set is not None:
            self._on_set(key, value)

    def update(self, rows: Any) -> None:  # type: ignore[override]
        for key, value in rows.items() if isinstance(rows, dict) else rows:
            self[key] = value

    def pop(self, key: Any, *default: Any) -> Any:
        self._disk.record(self, key)
        return super().pop(key, *default)

    def put(self, key: Any, value: Any) -> None:
        """Set a row without a record."""
        super().__setitem__(key, value) if value is not MISSING else super().pop(key, None)


class SimulatedRows(ToyRows):
    """A partition of the toy store in recorded tables, with an index for each frequent look-up."""

    def __init__(self, key: Key, disk: Disk) -> None:
        super().__init__(key)
        self._newest, self._resolved, self._account_of, self._counted_accounts = (Table(disk) for _ in range(4))
        indexes = {
            "_journal": self._index_entry,
            "_users": self._index_user,
            "_memoised_counts": lambda count, _: self._counted_accounts.__setitem__(count[0], True),
        }
        for name, value in vars(self).items():
            if isinstance(value, dict) and not isinstance(value, Table):
                setattr(self, name, Table(disk, value, indexes.get(name)))
        self._numbered = {numbered.name: Table(disk) for numbered in models.NUMBERED.values()}
        self._single = Table(disk, {"head": super().end(), "checkpoints": (), "records": ()})
        own = [table for table in vars(self).values() if isinstance(table, Table)]
        self.tables: list[Table] = [*own, *self._numbered.values()]

    def _index_entry(self, number: int, row: tuple[Any, ...]) -> None:
        if row[2] in models.CHARGES:
            self._newest[row[3]] = number
        if row[13] is not None:
            self._resolved[row[13]] = row

    def _index_user(self, account: int, user: models.User) -> None:
        if user.user_hash is not None:
            self._account_of[user.user_hash] = account

    def accounts(self, users: Sequence[bytes], windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        numbers = [self._account_of[user] for user in users if user in self._account_of]
        return self.accounts_by_number(numbers, windows)

    def accounts_by_number(self, accounts: Sequence[int], windows: Sequence[str]) -> Iterable[tuple[Any, ...]]:
        for account in accounts:
            user = self._users.get(account)
            if user is not None and user.user_hash is not None:
                row_mac = self._macs.get(account, (0, None, None))[1:]
                sums = [(each, self._sums.get((account, each))) for each in windows]
                flat = chain.from_iterable([None] * 5 if spent is None else (each, *spent) for each, spent in sums)
                counted = account in self._counted_accounts
                yield (user.user_hash, account, self._newest.get(account), *row_mac, counted, *flat)

    def idempotency_records(
        self, users: Sequence[bytes], keys: Sequence[bytes]
    ) -> Iterable[models.IdempotencyRecord]:
        stored = (self._idempotency_records.get(need) for need in zip(users, keys, strict=True))
        return [record for record in stored if record is not None]

    def resolution(self, number: int) -> tuple[Any, ...] | None:
        return self._resolved.get(number)

    def forget(self, tombstone: models.Tombstone, cut_off: models.User | None) -> None:
        hashed, account = tombstone.user_hash, None if cut_off is None else cut_off.account
        self._tombstones[hashed] = tombstone
        gone: list[tuple[Any, Callable[[Any], bool]]] = [(self._idempotency_records, lambda key: key[0] == hashed)]
        if account is not None:
            self._account_of.pop(hashed)
            self._users[account] = cut_off
            self._macs.pop(account, None)
            gone += [(table, lambda key: self._journal[key][3] == account) for table in (self._entry_labels, self._notes)]
            gone += [(self._memoised_counts, lambda key: key[0] == account)]
            gone += [(self._sums, lambda key: key[0] == account and key[1] != "lifetime")]
        for table, is_gone in gone:
            for key in [key for key in table if is_gone(key)]:
                table.pop(key)

    # Single values, and lists that only grow, are rows of one table.
    def end(self) -> tuple[models.PartitionHead, bytes]:
        return self._single["head"]

    def set_end(self, end: models.PartitionHead, row_mac: bytes | None) -> None:
        self._single["head"] = end, row_mac or self.end()[1]

    def checkpoints(self, first: int = 1) -> Iterator[models.Checkpoint]:
        return iter(self._single["checkpoints"][first - 1 :])

    def add_checkpoint(self, checkpoint: models.Checkpoint) -> None:
        self._single["checkpoints"] = (*self._single["checkpoints"], checkpoint)

    def admin_log(self, first: int = 1) -> Iterator[models.AdminLogEntry]:
        return iter(self._single["records"][first - 1 :])

    def add_record(self, record: models.AdminLogEntry) -> None:
        self._single["records"] = (*self._single["records"], record)


class Disk:
    """The machine of the ledger. One transaction runs at a time; a commit is durable once its record is in the log."""

    def __init__(self, key: Key, partitions: int) -> None:
        self.key = key
        self._changes: list[tuple[Table, Any, Any]] = []
        self._fuse: tuple[int, BaseException] | None = None
        self.rows = [SimulatedRows(key, self) for _ in range(partitions)]
        self.tables = [table for rows in self.rows for table in rows.tables]
        self._base = [dict(table) for table in self.tables]
        self._log: list[tuple[list[tuple[Table, Any, Any]], bool]] = []
        """The durable log since `_base`: the changes of each transaction, and True if they are complete."""
        self.connections: list[Connection] = []
        self.busy = False
        """True while a transaction or a snapshot is open, so no other process may write."""

    def record(self, table: Table, key: Any) -> None:
        """Record a row before it changes, or fail if the fault of this transaction is due."""
        if self._fuse is not None:
            left, error = self._fuse
            self._fuse = (left - 1, error) if left else None
            if not left:
                raise error
        self._changes.append((table, key, table.get(key, MISSING)))

    @contextmanager
    def failing_at(self, write: int, error: BaseException | None) -> Iterator[None]:
        """Raise an error at a write of a transaction, or at its end if it writes less."""
        self._fuse = None if error is None else (write, error)
        try:
            yield
            if self._fuse is not None:
                raise self._fuse[1]
        finally:
            self._fuse = None

    def roll_back(self) -> None:
        for table, key, before in reversed(self._changes):
            table.put(key, before)
        self._changes.clear()

    def commit(self, *, torn: bool = False) -> None:
        """Append the changes to the log; a `torn` transaction only in part, and then the power fails."""
        changes = [(table, key, table.get(key, MISSING)) for table, key, _ in self._changes]
        self._log.append((changes[: len(changes) // 2] if torn else changes, not torn))
        if torn:
            self.roll_back()
            self.fail()
        self._changes.clear()

    def fail(self) -> None:
        """Lose the power: all processes end, and the tables are read again from the log."""
        for connection in self.connections:
            connection.is_dead = True
        self.connections.clear()
        before = [dict(table) for table in self.tables]
        for table, rows in zip(self.tables, self._base, strict=True):
            table.clear()
            dict.update(table, rows)
        for changes, is_complete in self._log:
            for table, key, value in changes if is_complete else ():
                table.put(key, value)
        assert before == self.tables, "the simulator's own log is wrong"
        self._base, self._log = before, []


class Connection:
    """The store as one process sees it."""

    name, identity = "simulated", "simulated disk"

    def __init__(self, disk: Disk, random: Random, between: Callable[[], None]) -> None:
        self.disk, self.key, self.partitions = disk, disk.key, len(disk.rows)
        self.repeated = Counter[str]()
        self._random, self._between = random, between
        self.is_dead = False
        self.fault: Fault | None = None
        self.happened: list[str] = []
        """The faults that happened since the scheduler last cleared this list."""
        disk.connections.append(self)

    def die(self) -> Crash:
        """End the process."""
        self.is_dead = True
        if self in self.disk.connections:
            self.disk.connections.remove(self)
        return Crash()

    def _let_others_run(self) -> None:
        if not self.is_dead and not self.disk.busy:
            self._between()
        if self.is_dead:
            raise Crash

    def run(
        self, work: Callable[[Partitions], Any], partitions: Sequence[int] = (0,), hint: Prefetch | None = None
    ) -> Any:
        self._let_others_run()
        if hint is not None and hint.some:  # other processes hold some of the partitions
            partitions = [partitions[0], *(each for each in partitions[1:] if self._random.random() < 0.7)]
        rows = {partition: self.disk.rows[partition] for partition in partitions}
        fault, self.fault = self.fault, None
        if fault is not None and fault.skip:
            fault, self.fault = None, fault._replace(skip=fault.skip - 1)
        kind = "" if fault is None else fault.kind
        if fault is not None:
            self.happened.append(kind)
        error = {"crash": Crash(), "full": DiskFullError()}.get(kind)
        was_busy, self.disk.busy = self.disk.busy, True
        try:
            with self.disk.failing_at(0 if fault is None else fault.write, error):
                result = work(rows)
                if kind == "again":
                    self.disk.roll_back()
                    result = work(rows)
            self._commit(kind)
            return result
        except BaseException as failed:
            self.disk.roll_back()
            if isinstance(failed, Crash):
                self.die()
            if isinstance(failed, DiskFullError):
                raise LedgerError(self.name, "the disk is full. Nothing was charged.") from failed
            raise
        finally:
            self.disk.busy = was_busy

    def _commit(self, kind: str) -> None:
        unknown = LedgerError(self.name, "the connection was lost during the commit", unknown=True)
        if kind == "lost":
            raise unknown
        self.disk.commit(torn=kind == "torn")
        if kind == "unheard":
            raise unknown
        if kind in ("torn", "late"):
            raise self.die()

    @contextmanager
    def snapshot(self, partition: int = 0) -> Iterator[SimulatedRows]:
        self._let_others_run()
        was_busy, self.disk.busy = self.disk.busy, True
        try:
            yield self.disk.rows[partition]
        finally:
            self.disk.busy = was_busy

    def entries(self) -> list[int]:
        return [rows.end()[0].entries for rows in self.disk.rows]

    def close(self, *given: object) -> bool:
        return True

    change_key = backup = check_key = check_writable = clear_log = close
