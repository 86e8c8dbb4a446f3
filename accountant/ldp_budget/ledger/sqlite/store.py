"""The ledger in one SQLite file, or in memory: transactions whole or not at all, and readers beside them."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from ...errors import LedgerError
from .. import group_commit, keyfile
from . import connection as connections
from . import file_guard
from .connection import MEMORY, STEP_SECONDS
from .file_guard import DatabaseFile
from .queries import SqliteRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..models import PartitionHead
    from ..store import Partitions, Prefetch, Snapshot

T = TypeVar("T")

_IDLE_READERS = 4
# How long an erasure tries to empty the log while readers need it, and how long it lets others write in between.
_EMPTYING_SECONDS, _EMPTYING_PAUSE_SECONDS = 1.0, 0.1
_READ, _WRITE = "BEGIN", "BEGIN IMMEDIATE"

# Connections that came with a fork: kept, and never used or closed. Closing one, or dropping it, would meddle with
# what the parent is writing.
_OF_PARENTS: list[sqlite3.Connection] = []


class SqliteStore:
    """A store of one partition in a file, with a connection that writes and others that read; in memory, one does both."""

    partitions = 1
    repeated: Mapping[str, int] = MappingProxyType({})  # whoever finds it locked waits, and begins once

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool,
        secret: bytes | None = None,
        sandbox: bool | None = None,
        ledger_id: str | None = None,
    ) -> None:
        # The file itself, wherever links to it lie, and wherever the process goes before it opens it again.
        self.name = MEMORY if str(path) == MEMORY else os.path.realpath(path)
        self._unlock()
        self._writer: sqlite3.Connection | None = None
        # Where the partition ended after a commit, good while the writer's PRAGMA data_version is as it was then: it
        # changes with the commits of all other connections.
        self._known_end: tuple[int, tuple[PartitionHead, bytes] | None] = (0, None)
        self._readers: list[sqlite3.Connection] = []
        # The readers at work, each with its thread.
        self._reading: dict[object, tuple[int, sqlite3.Connection]] = {}
        self._closed = False
        self._pid = os.getpid()
        self._place: DatabaseFile | None = None
        with group_commit.opening(self):
            if self.name == MEMORY:
                self.key = keyfile.Key(secret or keyfile.new_key(sandbox))
                self.key.set_ledger_id(keyfile.new_ledger_id() if ledger_id is None else ledger_id)
                self._writer = connections.open_memory(self.key, self.key.ledger_id)
            else:
                self._open_file(Path(self.name), create, secret, sandbox, ledger_id)

    def _open_file(
        self, file: Path, create: bool, secret: bytes | None, sandbox: bool | None, ledger_id: str | None
    ) -> None:
        if create and not file.exists():
            connections.create(file, secret, sandbox, ledger_id)
        connections.require_both(file, secret)
        self.key = keyfile.check_kind(keyfile.read_key(file), self.name, sandbox)
        self._place = DatabaseFile(self.name, self.key)
        # Whoever comes first uses it, to read or to write.
        self._readers = [self._place.open()]
        connections.check_ledger_id(self._readers[0], self.key, self.name)

    def __del__(self) -> None:
        # Unless a thread has it still, which the end of the interpreter has stopped.
        if getattr(self, "_closed", True) or not self._lock.acquire(False):
            return
        try:
            if self._pool.acquire(False):
                try:
                    with suppress(Exception), group_commit.closing():
                        self.close()
                finally:
                    self._pool.release()
        finally:
            self._lock.release()

    def _unlock(self) -> None:
        """New locks: one for whoever writes, one for the list of readers; who needs both takes them in this order.

        An interrupt (Ctrl-C) cannot come between such a lock and the `with` that opens it again. It can inside the
        methods of a condition, which are Python's own code: nothing but waiting is done by that.
        """
        self._lock = threading.RLock()
        self._pool = threading.RLock()
        self._reader_is_through = threading.Condition(self._pool)

    def close(self) -> None:
        """Close the connections; a reader's when it is through. The ledger can be used no more."""
        if self._pid != os.getpid():
            self._abandon()
            self._closed = True
            return
        with self._lock, self._pool:
            self._closed = True
            if not self._reading:
                self._close_connections()

    # -- transactions -------------------------------------------------------------------------------------

    def run(
        self, work: Callable[[Partitions], T], partitions: Sequence[int] = (0,), hint: Prefetch | None = None
    ) -> T:
        """Do `work` with the ledger's write lock, held from the start; all of it happens or nothing."""
        self._check_process()
        with self._lock:
            self._check_free()
            return self._in_turn(lambda: self._run(work))

    def _check_free(self) -> None:
        if self._writer is not None and self._writer.in_transaction:
            raise LedgerError(self.name, "this thread is writing to it just now; finish that first")

    def _in_turn(self, act: Callable[[], T]) -> T:
        """Do what only one thread of all processes may do at a time."""
        place = self._open_place()
        if place is None:
            return act()
        try:
            place.take_turn()
            return act()
        finally:
            # An interrupt (Ctrl-C) may come here too.
            try:
                place.turn.release()
            finally:
                place.turn.release()

    def _run(self, work: Callable[[Partitions], T]) -> T:
        try:
            return self._transact(work)
        except LedgerError as error:
            if not connections.is_full(error.__cause__) or not self._make_room():
                raise
        return self._transact(work)

    def _make_room(self) -> bool:
        """On a disk without room the log may have some to give; whether it was emptied."""
        try:
            return self._place is not None and self._place.make_room(self._current())
        except sqlite3.Error:
            return False

    def _transact(self, work: Callable[[Partitions], T]) -> T:
        connection, place, committing = self._current(), self._place, False
        try:
            if place is not None:
                place.check_before(connection)
            _begin(connection, _WRITE)
            if place is not None and place.log_is_empty:
                file_guard.note(connection)
            version = connection.execute("PRAGMA data_version").fetchone()[0]
            # An interrupted transaction leaves nothing that is known behind.
            known, self._known_end = self._known_end, (0, None)
            rows = SqliteRows(connection, known[1] if known[0] == version else None)
            result = work({0: rows})
            committing = True
            connection.execute("COMMIT")
        except BaseException as error:
            raise self._taken_back(connection, error, committing)  # noqa: B904 - it bears its cause
        self._known_end = version, rows.known_end
        if place is not None:
            if rows.known_end is not None:
                place.acknowledge(rows.known_end[0].entries, rows.known_end[0].chain_hash)
            self._look_after(place, connection)
        return result

    def _look_after(self, place: DatabaseFile, connection: sqlite3.Connection) -> None:
        """Before a commit is told: that it will last. House-keeping that fails is done another time."""
        try:
            place.check_after(connection)
        except sqlite3.Error:
            self._roll_back(connection)
        except BaseException:
            self._roll_back(connection)
            raise

    @contextmanager
    def snapshot(self, partition: int = 0) -> Iterator[Snapshot]:
        """One moment of the file, on a connection that no writer waits for; of a ledger in memory, between writes."""
        with self._one_moment() as connection:
            yield SqliteRows(connection)

    @contextmanager
    def _one_moment(self) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction that reads."""
        self._check_process()
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
                self._place.check_frozen()  # what was read may be of two moments
            self._take_back(reader, for_others=True)
        finally:
            # An interrupt (Ctrl-C) may come here too.
            try:
                self._take_back(reader)
            finally:
                self._take_back(reader)

    @contextmanager
    def _read(self, connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
        try:
            _begin(connection, _READ)
            yield connection
            connection.execute("COMMIT")
        except BaseException as error:
            raise self._taken_back(connection, error)  # noqa: B904 - it bears its cause

    def _taken_back(
        self, connection: sqlite3.Connection, error: BaseException, committing: bool = False
    ) -> BaseException:
        """Undo a transaction that an error has ended; returns what the caller is to be told."""
        self._roll_back(connection)
        if not isinstance(error, sqlite3.Error | UnicodeError):
            return error
        told = connections.failure(self.name, error, committing=committing)
        told.__cause__ = error
        return told

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        """Undo what was not committed. A connection that cannot do even that is closed, which does it."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            if self.name != MEMORY:
                connection.close()
                if connection is self._writer:
                    self._writer = None

    def entries(self) -> Sequence[int]:
        """The number of the newest entry of its only partition."""
        with self.snapshot() as rows:
            return (rows.end()[0].entries,)

    def check_key(self) -> None:
        """Raise `LedgerError` unless the key lies beside the file; one in memory has none that could be lost."""
        if self.name != MEMORY:
            self._check_key(keyfile.read_key(Path(self.name)))

    def check_writable(self) -> None:
        """Raise `LedgerError` where no write can begin just now; where another one is under way, it can."""
        self._check_process()
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

    def _check_key(self, found: keyfile.Key) -> None:
        if not found.replaces(self.key):
            raise LedgerError(self.name, f"another key lies in {keyfile.key_path(Path(self.name))}")

    def look_at_key(self) -> None:
        """Let the key learn what lies beside the file now."""
        if self.name != MEMORY:
            found = keyfile.read_key(Path(self.name))
            self._check_key(found)
            self.key.learn(found)

    def change_key(self, change: Callable[[keyfile.Key], bytes]) -> None:
        """Put beside the file what is made of the key that lies there, with the turn to write: that locks the key."""
        if self.name == MEMORY:
            self.key.learn(keyfile.Key(change(self.key)))
            return
        self._check_process()
        with self._lock:
            self._check_free()
            self._in_turn(lambda: self._change_key(change))

    def _change_key(self, change: Callable[[keyfile.Key], bytes]) -> None:
        self.look_at_key()
        content = change(self.key)
        keyfile.replace(keyfile.key_path(Path(self.name)), self.name, content)
        self.key.learn(keyfile.Key(content))

    def clear_log(self) -> bool:
        """Bring what was committed into the file and empty the log; whether nobody who reads it kept that off."""
        self._check_process()
        deadline = time.monotonic() + _EMPTYING_SECONDS
        while True:
            with self._lock:
                self._check_free()
                if self._in_turn(self._empty_log):
                    return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_EMPTYING_PAUSE_SECONDS)  # others write meanwhile

    def _empty_log(self) -> bool:
        try:
            return self._place is None or self._place.empty_log(self._current())
        except sqlite3.Error:
            return False

    @property
    def identity(self) -> str:
        """The file, by whatever name; a ledger in memory has no other."""
        if self.name == MEMORY:
            return f"memory {id(self)}"
        found = os.stat(self.name)
        return f"file {found.st_dev} {found.st_ino}"

    def backup(self, path: str | os.PathLike[str], check: Callable[[Snapshot], None]) -> None:
        """Copy the ledger, as it is at one moment, and its key to a place where there is nothing yet."""
        with self._one_moment() as connection:
            rows = SqliteRows(connection)
            check(rows)
            # It may have been exchanged since that moment.
            key = self.key.at_moment(rows.end()[0].secret)
            connections.copy(connection, key, Path(os.path.realpath(path)))

    # -- connections --------------------------------------------------------------------------------------

    def _current(self) -> sqlite3.Connection:
        if self._closed:
            raise LedgerError(self.name, "it is closed")
        if self._writer is None:
            self._writer, self._known_end = self._new_writer(), (0, None)
        return self._writer

    def _new_writer(self) -> sqlite3.Connection:
        connection = self._idle_connection()
        try:
            connections.check_writable(connection, self.name)
        except BaseException:
            with self._pool:
                self._give_up(connection)  # another one may be able to write
            raise
        return connection

    def _idle_connection(self) -> sqlite3.Connection:
        with self._pool:
            place = self._open_place()
            assert place is not None
            return self._readers.pop() if self._readers else place.connect()

    def _open_place(self) -> DatabaseFile | None:
        """Where the file lies, opened if it is not since a fork."""
        with self._pool:
            if self._closed:
                raise LedgerError(self.name, "it is closed")
            if self._place is not None and not self._place.is_open:
                self._readers.append(self._place.open())
            return self._place

    def _lend_connection(self, reader: object) -> sqlite3.Connection:
        with self._pool:
            place = self._open_place()
            assert place is not None
            place.check()
            connection = self._idle_connection()
            self._reading[reader] = threading.get_ident(), connection
            return connection

    def _take_back(self, reader: object, for_others: bool = False) -> None:
        """The reader is through; a second call changes nothing. Others get its connection only if all went well.

        Whoever holds an error may hold a cursor of its frames as well, which still reads what was then.
        """
        with self._pool:
            _, connection = self._reading.pop(reader, (0, None))
            if connection is not None and for_others and not _is_closed(connection):
                self._readers.append(connection)
            elif connection is not None:
                self._give_up(connection)
            # Also where an interrupt has ended the first call here: who closes, or forks, waits for this.
            if self._closed and not self._reading:
                self._close_connections()
            elif len(self._readers) > _IDLE_READERS:
                self._readers.pop().close()
            self._reader_is_through.notify_all()

    def _give_up(self, connection: sqlite3.Connection) -> None:
        """Close a connection, but never the last one: where no lock guards it, SQLite removes the log with that."""
        if self._pid != os.getpid():
            _OF_PARENTS.append(connection)
            return
        if self._place is not None and not (self._writer or self._readers or self._reading):
            with suppress(LedgerError):
                fresh = self._place.connect()
                self._place.check()  # or it is to another file, which may be gone when somebody writes to it
                self._readers.append(fresh)
        connection.close()

    def _close_connections(self) -> None:
        """Close the file, which nobody uses just now."""
        connections = [each for each in (self._writer, *self._readers) if each is not None]
        self._writer, self._readers = None, []
        if self._place is None:
            for connection in connections:
                connection.close()
        elif self._place.is_open:
            self._place.close(connections)

    # -- forks --------------------------------------------------------------------------------------------

    def hold(self, wait: bool) -> bool:
        """Keep out whoever writes or reads in other threads, if need be by waiting for them."""
        me = threading.get_ident()
        while self._lock.acquire(wait):
            if self._pool.acquire(wait):
                if all(thread == me for thread, _ in self._reading.values()):
                    return True
                # Whoever reads may write before that is over.
                self._lock.release()
                if wait:
                    self._reader_is_through.wait()
                self._pool.release()
            else:
                self._lock.release()
            if not wait:
                break
        return False

    def let_go(self) -> None:
        self._pool.release()
        self._lock.release()

    def before_fork(self) -> None:
        """Close the file until after the fork."""
        # A transaction of the thread that forks goes on; then the child has a connection that it cannot use.
        busy = self._reading or (self._writer is not None and self._writer.in_transaction)
        if self.name != MEMORY and not busy:
            self._close_connections()

    def after_fork_in_child(self) -> None:
        self._unlock()
        if self._writer is None and not self._reading:
            self._pid = os.getpid()
        elif self._place is not None:
            self._place.leave()

    def _abandon(self) -> None:
        """Leave what is the parent's alone."""
        reading = [connection for _, connection in self._reading.values()]
        _OF_PARENTS.extend(each for each in (self._writer, *self._readers, *reading) if each is not None)
        self._writer, self._readers, self._reading = None, [], {}

    def _check_process(self) -> None:
        """A connection that was open during a fork is of no use in the child (see `_forks`)."""
        if self._pid != os.getpid():
            why = "a ledger in memory does not survive a fork"
            if self.name != MEMORY:
                why = "it was in use while the process forked; fork first, or outside a transaction"
            raise LedgerError(self.name, why)


def _is_closed(connection: sqlite3.Connection) -> bool:
    """Whether it was closed, as it could not even be rolled back."""
    try:
        return bool(connection.in_transaction)  # which a reader that is through never is
    except sqlite3.ProgrammingError:
        return True


def _begin(connection: sqlite3.Connection, begin: str) -> None:
    """Start a transaction, waiting for other processes; a reading one sees the ledger as it is now.

    SQLite's own waiting backs off to a tenth of a second, so that who has waited longest looks most rarely. Short
    waits, always the same, give every process the same chance: a writer that spends without a break leaves the
    ledger free for a tenth of a millisecond between two spends.

    This is the only place that waits. Once a transaction has begun, whatever it reads or writes finds no lock in its
    way: a reader has its moment of the log, which others may neither overwrite nor mend, and a writer the lock.
    """
    deadline = time.monotonic() + connections.BUSY_SECONDS
    while True:
        try:
            connection.execute(begin)
            if begin == _READ:
                # It really begins with its first statement, and that may find others mending the log.
                connection.execute("SELECT 1 FROM partitions WHERE partition = 0").fetchone()
            return
        except sqlite3.OperationalError as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if not connections.is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(STEP_SECONDS)
