"""Store of a ledger in one SQLite file, or in memory: atomic transactions and concurrent readers.

One connection writes, while others read consistent snapshots. All writers of all processes take the writer lock
first.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..._files import sync_file
from ...errors import LedgerError
from .. import key_file, keyed_hashing
from ..storage import Attempt
from . import connection as connections
from . import fork_gate, schema, wal_recovery
from .connection import MEMORY, STEP_SECONDS
from .file_guard import DatabaseFile
from .statements import SqliteRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..models import PartitionHead
    from ..storage import Partitions, Prefetch, Snapshot
    from .fork_gate import GatedConnection

_IDLE_READERS = 4
# Longest time that an erasure tries to empty the WAL while readers need it, and its pause for other writers.
_EMPTYING_SECONDS, _EMPTYING_PAUSE_SECONDS = 1.0, 0.1
_READ, _WRITE = "BEGIN", "BEGIN IMMEDIATE"

# Connections inherited by a fork that must not be closed: kept, and never used.
_OF_PARENTS: list[sqlite3.Connection] = []

# -- forks ---------------------------------------------------------------------------------------------------

_OPEN: weakref.WeakSet[SqliteStore] = weakref.WeakSet()
_DROPPED: list[SqliteStore] = []
"""Stores that the program dropped while another thread forked; they are closed after that."""


def _close_dropped() -> None:
    while _DROPPED:
        with suppress(Exception):
            _DROPPED.pop().close()


def _leave_parent(complete: bool) -> None:
    """In the child: close what belongs to the parent, or keep it unused if a thread was inside SQLite."""
    for store in [*_OPEN, *_DROPPED]:
        store.leave(complete)
    _DROPPED.clear()


fork_gate.at_fork(_close_dropped, _leave_parent)


# -- the store -----------------------------------------------------------------------------------------------


class SqliteStore:
    """Store of one partition in a file: one connection writes, others read. In memory, one connection does both."""

    partitions = writers = 1
    repeated: Mapping[str, int] = MappingProxyType({})  # never retried: a locked database is waited for

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool,
        secret: bytes | None = None,
        sandbox: bool | None = None,
        ledger_id: str | None = None,
        upgrade: bool = False,
    ) -> None:
        self._upgrade = upgrade
        # The real, absolute path: links and later changes of the working folder do not matter.
        self.name = MEMORY if str(path) == MEMORY else os.path.realpath(path)
        # `_lock` is for writing, `_pool` for the list of readers; take them in this order. An interrupt (Ctrl-C) cannot
        # happen between taking such a lock and entering the `with` that releases it.
        fork_gate.give_way()
        self._lock = fork_gate.new_section()
        self._pool = threading.RLock()
        self._writer: GatedConnection | None = None
        # The partition head after a commit. It is valid while the writer's PRAGMA data_version is unchanged, as
        # commits of all other connections change that.
        self._known_end: tuple[int, tuple[PartitionHead, bytes] | None] = (0, None)
        # The data_version of the writer at which everything that it reads is on the disk.
        self._synced = 0
        self._readers: list[GatedConnection] = []
        # The connections of the active readers.
        self._reading: dict[object, GatedConnection] = {}
        self._closed = False
        self._pid = os.getpid()
        self._place: DatabaseFile | None = None
        if self.name == MEMORY:
            self.key = keyed_hashing.Key(secret or keyed_hashing.new_key(sandbox))
            self.key.set_ledger_id(keyed_hashing.new_ledger_id() if ledger_id is None else ledger_id)
            with self._lock:
                self._writer = connections.open_memory(self.key, self.key.ledger_id)
                self._writer.ungate()
        else:
            with self._lock:
                self._open_file(Path(self.name), create, secret, sandbox, ledger_id)
        _OPEN.add(self)

    def _open_file(
        self, file: Path, create: bool, secret: bytes | None, sandbox: bool | None, ledger_id: str | None
    ) -> None:
        if create and not file.exists():
            connections.create(file, secret, sandbox, ledger_id)
        connections.require_both(file, secret)
        self.key = key_file.check_kind(key_file.read_key(file), self.name, sandbox)
        self._place = DatabaseFile(self.name, self.key, self._upgrade)
        # The first operation uses this connection, to read or to write.
        self._readers = [self._place.open()]
        connections.check_ledger_id(self._readers[0], self.key, self.name)

    def __del__(self) -> None:
        if getattr(self, "_closed", True):
            return
        # Do nothing if a thread still holds the lock: the end of the interpreter has stopped that thread.
        if not self._lock.acquire(False):
            if fork_gate.is_held_by_fork():
                _DROPPED.append(self)
            return
        try:
            if self._pool.acquire(False):
                try:
                    with suppress(Exception):
                        self.close()
                finally:
                    self._pool.release()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connections; those of active readers when they finish. The store cannot be used afterwards."""
        if self._pid != os.getpid():
            self._closed = True
            return
        with self._lock, self._pool:
            self._closed = True
            if not self._reading:
                self._close_connections()

    # -- transactions -------------------------------------------------------------------------------------

    def attempts(self, partitions: Sequence[int] = (0,), hint: Prefetch | None = None) -> Iterator[Attempt]:
        """Yield a transaction that holds the ledger's writer lock; another one if it made room on a full disk."""
        if fork_gate.held:
            fork_gate.give_way()
        with self._lock:
            if self._closed or self._writer is None or self._writer.in_transaction:
                self._check_free()
                self._open_place()
            place, made_room = self._place, False
            try:
                if place is not None:
                    place.take_turn()
                while True:
                    connection, committing = self._writer or self._current(), False
                    try:
                        if place is not None:
                            place.check_before(connection)
                        try:
                            connection.execute(_WRITE)
                        except sqlite3.OperationalError as error:
                            if not connections.is_busy(error):
                                raise
                            _begin(connection, _WRITE)
                        if place is not None and place.starts_log:
                            wal_recovery.note(connection)
                        version = connection.execute("PRAGMA data_version").fetchone()[0]
                        # After an interrupted transaction, the head must be read again.
                        known, self._known_end = self._known_end, (0, None)
                        if known[0] != version:  # another connection has committed: it may have a newer format
                            connections.check_version(connection, self.name)
                        synced, self._synced = self._synced, 0
                        rows = SqliteRows(connection, known[1] if known[0] == version else None)
                        attempt = _Attempt({0: rows})
                        yield attempt
                        if attempt.error is not None:
                            raise attempt.error
                        committing = True
                        connection.execute("COMMIT")
                        # A commit that writes makes the whole WAL durable. One that writes nothing returns what other
                        # processes wrote: they may have ended before they made it durable.
                        if not rows.has_written and synced != version:
                            self._sync_log()
                        break
                    except BaseException as error:
                        told = self._taken_back(connection, error, committing)
                        is_full = isinstance(told, LedgerError) and connections.is_full(told.__cause__)
                        if made_room or not is_full or not self._make_room():
                            raise told  # noqa: B904 - it has its cause
                        made_room = True
                self._known_end, self._synced = (version, rows.known_end), version
                if place is not None:
                    if rows.known_end is not None:
                        place.acknowledge(rows.known_end[0].entries, rows.known_end[0].chain_hash)
                    # Check that the commit will last, before it is acknowledged.
                    try:
                        place.check_after(connection)
                    except sqlite3.Error:  # WAL maintenance that fails is retried later
                        self._roll_back(connection)
                    except BaseException:
                        self._roll_back(connection)
                        raise
            finally:
                # An interrupt (Ctrl-C) may happen here too.
                try:
                    if place is not None:
                        place.turn.release()
                finally:
                    if place is not None:
                        place.turn.release()

    def migrate(self, until: str) -> tuple[int, list[str]]:
        """Apply the pending migrations in one transaction; return the version before, and the applied steps."""
        import sqlite_utils  # noqa: F401 - with pandas it takes seconds, in which the writer lock must be free

        from .migrations import migrate

        for attempt in self.attempts():
            with attempt as partitions:
                assert self._writer is not None
                before = schema.version_of(self._writer)
                done = migrate(self._writer, until=until)
                partitions[0].has_written = bool(done)  # type: ignore[attr-defined]
        return before, done

    def _check_free(self) -> None:
        if self._writer is not None and self._writer.in_transaction:
            raise LedgerError(self.name, "this thread is already writing to it", hint="Finish that first.")

    @contextmanager
    def _turn(self) -> Iterator[DatabaseFile | None]:
        """Hold the writer lock, which one thread of all processes has at a time; yield the file, None in memory."""
        place = self._open_place()
        try:
            if place is not None:
                place.take_turn()
            yield place
        finally:
            # An interrupt (Ctrl-C) may happen here too.
            try:
                if place is not None:
                    place.turn.release()
            finally:
                if place is not None:
                    place.turn.release()

    def is_wanted(self) -> bool:
        """True if another process is known to wait for its turn to write."""
        return self._place is not None and self._place.turn.is_wanted()

    def _make_room(self) -> bool:
        """Empty the WAL to free space on a full disk; return True if it was emptied."""
        try:
            return self._place is not None and self._place.make_room(self._current())
        except sqlite3.Error:
            return False

    def _sync_log(self) -> None:
        """Make durable what other processes have committed. Raises `LedgerError`."""
        if self._place is None:
            return
        try:
            with suppress(FileNotFoundError):  # everything is in the database, which the checkpoint made durable
                sync_file(connections.companion(Path(self.name), connections.LOG))
        except OSError as error:
            why = f"its log cannot be made durable: {error.strerror}"
            raise LedgerError(self.name, why, unknown=True, hint="Repeat the request with the same key.") from error

    @contextmanager
    def snapshot(self, partition: int = 0) -> Iterator[Snapshot]:
        """Open a consistent snapshot of the file, for which no writer waits. In memory, it runs between writes."""
        with self._one_moment() as connection:
            yield SqliteRows(connection)

    @contextmanager
    def _one_moment(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a read transaction."""
        if self.name == MEMORY:
            with self._lock:
                self._check_free()
                with self._read(self._current()) as connection:
                    yield connection
            return
        reader = object()
        try:
            with self._read(self._lend_connection(reader)) as connection:
                yield connection
            if self._place is not None:
                self._place.check_frozen()  # otherwise the reads may mix two states of the file
            self._take_back(reader, for_others=True)
        finally:
            # An interrupt (Ctrl-C) may happen here too.
            try:
                self._take_back(reader)
            finally:
                self._take_back(reader)

    @contextmanager
    def _read(self, connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        try:
            _begin(connection, _READ)
            connections.check_version(connection, self.name)
            yield connection
            if self._pid == os.getpid():  # in the child of a fork, the connection is closed
                connection.execute("COMMIT")
        except BaseException as error:
            raise self._taken_back(connection, error)  # noqa: B904 - it has its cause

    def _taken_back(
        self, connection: sqlite3.Connection, error: BaseException, committing: bool = False
    ) -> BaseException:
        """Roll back a transaction that an error has ended; return the error for the caller."""
        self._roll_back(connection)
        if not isinstance(error, sqlite3.Error | UnicodeError):
            return error
        told = connections.failure(self.name, error, committing=committing)
        told.__cause__ = error
        return told

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        """Roll back an open transaction. If that fails, close the connection, which rolls back too."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            if self.name != MEMORY:
                connection.close()
                if connection is self._writer:
                    self._writer = None

    def entries(self) -> Sequence[int]:
        """Return the number of the newest entry of the only partition."""
        with self.snapshot() as rows:
            return (rows.end()[0].entries,)

    def check_key(self) -> None:
        """Raise `LedgerError` unless the key file is next to the ledger. A ledger in memory has no key file."""
        if self.name != MEMORY:
            self._check_key(key_file.read_key(Path(self.name)))

    def check_writable(self) -> None:
        """Raise `LedgerError` if no write can begin now. A write that is already running is not an error."""
        place = self._open_place()
        if place is None or not self._lock.acquire(False):
            return
        try:
            self._check_free()
            if place.turn.try_to_take():
                connections.check_writable(self._current(), self.name)
        finally:
            try:
                place.turn.release()
            finally:
                place.turn.release()
                self._lock.release()

    def _check_key(self, found: keyed_hashing.Key) -> None:
        if not found.replaces(self.key):
            raise LedgerError(self.name, f"its key file {key_file.key_path(Path(self.name))} has another key")

    def change_key(self, change: Callable[[keyed_hashing.Key], bytes]) -> None:
        """Replace the key file with what `change` makes of it, while holding the writer lock on that file."""
        if self.name == MEMORY:
            self.key.learn(keyed_hashing.Key(change(self.key)))
            return
        with self._lock:
            self._check_free()
            with self._turn():
                found = key_file.read_key(Path(self.name))
                self._check_key(found)
                content = change(found)
                key_file.replace(key_file.key_path(Path(self.name)), self.name, content)
                self.key.learn(keyed_hashing.Key(content))

    def clear_log(self) -> bool:
        """Checkpoint and truncate the WAL; return False if readers prevented that."""
        deadline = time.monotonic() + _EMPTYING_SECONDS
        while True:
            with self._lock:
                self._check_free()
                with self._turn() as place:
                    if place is None or self._empty_log(place):
                        return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_EMPTYING_PAUSE_SECONDS)  # others write meanwhile

    def _empty_log(self, place: DatabaseFile) -> bool:
        try:
            return place.empty_log(self._current())
        except sqlite3.Error:
            return False

    @property
    def identity(self) -> str:
        """The identity of the file, the same under all of its names. A ledger in memory has its own identity."""
        if self.name == MEMORY:
            return f"memory {id(self)}"
        found = os.stat(self.name)
        return f"file {found.st_dev} {found.st_ino}"

    @property
    def key_file(self) -> str:
        """The path of the key file; empty for a ledger in memory."""
        return "" if self.name == MEMORY else str(key_file.key_path(Path(self.name)))

    def backup(self, path: str | os.PathLike[str], check: Callable[[Snapshot], None]) -> None:
        """Copy the ledger, as of one moment, and its key to a path where no file exists yet."""
        fork_gate.give_way()
        with fork_gate.section(), self._one_moment() as connection:
            rows = SqliteRows(connection)
            check(rows)
            # The key may have been rotated since that moment.
            key = self.key.at_moment(rows.end()[0].secret)
            connections.copy(connection, key, Path(os.path.realpath(path)))

    # -- connections --------------------------------------------------------------------------------------

    def _current(self) -> GatedConnection:
        if self._closed:
            raise LedgerError(self.name, "this accountant is closed", hint="Open a new one.")
        if self._writer is None:
            self._writer, self._known_end, self._synced = self._new_writer(), (0, None), 0
        return self._writer

    def _new_writer(self) -> GatedConnection:
        connection = self._idle_connection()
        connection.ungate()
        try:
            connections.check_writable(connection, self.name)
            connections.cache_for_writing(connection)
        except BaseException:
            with self._pool:
                self._give_up(connection)  # another connection may be able to write
            raise
        return connection

    def _idle_connection(self) -> GatedConnection:
        with self._pool:
            place = self._open_place()
            assert place is not None
            return self._readers.pop() if self._readers else place.connect()

    def _open_place(self) -> DatabaseFile | None:
        """Return the database file; None for a ledger in memory."""
        if self._closed:
            raise LedgerError(self.name, "this accountant is closed", hint="Open a new one.")
        return self._place

    def _lend_connection(self, reader: object) -> GatedConnection:
        with self._pool:
            place = self._open_place()
            assert place is not None
            place.check()
            connection = self._idle_connection()
            self._reading[reader] = connection
            return connection

    def _take_back(self, reader: object, for_others: bool = False) -> None:
        """End a reader; a second call changes nothing. Its connection is reused only if all went well.

        A caller that keeps an error may keep a cursor of its frames as well, which still reads the old snapshot.
        """
        with self._pool:
            connection = self._reading.pop(reader, None)
            if connection is not None and for_others and not _is_closed(connection):
                self._readers.append(connection)
            elif connection is not None:
                self._give_up(connection)
            # Also if an interrupt has ended the first call here: a close waits for this.
            if self._closed and not self._reading:
                self._close_connections()
            elif len(self._readers) > _IDLE_READERS:
                self._readers.pop().close()

    def _give_up(self, connection: sqlite3.Connection) -> None:
        """Close a connection; before the last, open another: without a guard lock SQLite would remove the WAL."""
        if self._pid != os.getpid():
            _OF_PARENTS.append(connection)
            return
        if self._place is not None and not (self._writer or self._readers or self._reading):
            with suppress(LedgerError):
                fresh = self._place.connect()
                self._place.check()  # otherwise it may be a connection to another file
                self._readers.append(fresh)
        connection.close()

    def _close_connections(self) -> None:
        """Close the file, which no thread uses now."""
        with fork_gate.section():
            connections = [each for each in (self._writer, *self._readers) if each is not None]
            self._writer, self._readers = None, []
            if self._place is None:
                for connection in connections:
                    connection.close()
            elif self._place.is_open:
                self._place.close(connections)

    def leave(self, complete: bool) -> None:
        """In a forked child: leave the connections to the parent, and close the files that it has locked.

        SQLite's memory in the child counts the locks of the parent's connections as its own, which they are not. So
        the connections are closed here, if no thread was inside SQLite (`complete`). The guard lock, which the child
        shares with its parent, keeps that from touching the files.
        """
        every = [each for each in (self._writer, *self._readers, *self._reading.values()) if each is not None]
        writer, can_close = self._writer, complete and self._place is not None and self._place.is_guarded
        self._writer, self._readers, self._reading = None, [], {}
        for connection in every:
            if can_close and not (connection is writer and connection.in_transaction):
                with suppress(sqlite3.Error):
                    connection.close()
            else:
                _OF_PARENTS.append(connection)
        if self._place is not None:
            self._place.leave()


class _Attempt(Attempt):
    """An attempt on this engine. Its methods are those of `Attempt`: the path of a charge stays within this file."""

    __slots__ = ()

    def __init__(self, rows: Partitions) -> None:
        self.rows, self.error = rows, None

    def __enter__(self) -> Partitions:
        return self.rows

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        self.error = error
        return True


def _is_closed(connection: sqlite3.Connection) -> bool:
    """True if the connection was closed because a rollback failed."""
    try:
        return bool(connection.in_transaction)  # always False for a reader that has finished
    except sqlite3.ProgrammingError:
        return True


def _begin(connection: sqlite3.Connection, begin: str) -> None:
    """Start a transaction, waiting for other processes. A read transaction sees the ledger as it is now.

    SQLite's own waiting backs off to a tenth of a second, so the process that has waited longest tries most rarely.
    Short waits of equal length give every process the same chance. A writer that spends without a break leaves the
    ledger free for only a tenth of a millisecond between two spends.

    This is the only place that waits. Once a transaction has begun, no lock blocks its reads and writes. A reader has
    its snapshot of the WAL, which other processes may neither overwrite nor recover; a writer has the lock.
    """
    deadline = time.monotonic() + connections.BUSY_SECONDS
    while True:
        try:
            connection.execute(begin)
            if begin == _READ:
                # The transaction really begins with its first statement, which may find the WAL under recovery.
                connection.execute("SELECT 1 FROM partitions WHERE partition = 0").fetchone()
            return
        except sqlite3.OperationalError as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if not connections.is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(STEP_SECONDS)
