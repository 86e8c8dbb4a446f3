"""Guards of an open ledger file: replaced or moved files, and the writer lock.

The files stay the ones that were opened. SQLite keeps a database in two files and trusts their names. Two events
can separate them without SQLite noticing, and each loses acknowledged charges:

- A process opens and closes the database file itself, for a checksum, a backup or a file response. That drops all
  SQLite locks of this process, for they are POSIX locks. Another process that closes the database would then find
  no other user, and delete a WAL that is still in use. `_Guard` prevents this: a shared lock on the same bytes
  that belongs to an open file (Linux's "open file description lock"). Closing another descriptor does not drop it.
  While any process holds it, no SQLite, not even another program's, can lock the database exclusively and remove
  the WAL.
- A user renames, replaces or deletes a file or its folder. No lock prevents that. So the files are checked before
  each transaction, and after each commit before the commit is acknowledged.

`WriterLock` is an `flock` on the key file, taken before any SQLite lock: see `connection`.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import sys
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ...errors import LedgerError
from .. import key_file, keyed_hashing
from . import connection as connections
from . import wal_recovery
from .connection import (
    INDEX,
    LINKED,
    LOG,
    STEP_SECONDS,
    check_modes,
    check_names,
    is_read_only,
    refuse_log,
)
from .wal_integrity import IndexHeader, WriteAheadLog
from .wal_recovery import (
    LogLimit,
    empty,
    holds,
    is_torn,
    is_whole,
    length,
    newest_of,
    started_anew,
    wal_matches_database,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..keyed_hashing import Key
    from .fork_gate import GatedConnection


# -- the open files ------------------------------------------------------------------------------------------

if sys.platform != "win32":
    import fcntl


CHARGED_NOTHING = ". Nothing was charged."
MAYBE_LOST = ". The last charge may be lost. Repeat the request with the same key."

_OTHER = "it was replaced by another copy while it was open"
_STALE = (
    "its log {log} belongs to another state of the database: the database was replaced by a copy while the log "
    "existed"
)
_ALTERED = (
    "its log {log} is not the one that its processes wrote: another file was copied over it, or it was cut or changed "
    "while it was open"
)
_KEEP_ALL = (
    "Stop all processes that use it and keep its files as they are. Put back the newest files, or restore a backup: "
    "ldp-budget ledger restore BACKUP"
)
_KEEP_BOTH = "Keep both files, because the log may have charges that the copy lacks. Put back the previous database."

# Longest wait of a close for the writer lock. A process that does not get it is not the last one with the file open.
_CLOSING_SECONDS = 0.2
# Connections that must stay open on systems without guard locks.
_LEFT_OPEN: list[sqlite3.Connection] = []


class DatabaseFile:
    """Files of one ledger in one process, with their guard and the writer lock `turn`."""

    def __init__(self, path: str, key: Key, upgrade: bool = False) -> None:
        self.path, self._upgrade = path, upgrade
        self.is_open = False
        self._key = key
        self._names = (path + LOG, path + INDEX)
        self._guard = _Guard(path)
        self._log_limit = LogLimit(path)
        self._log = WriteAheadLog(path)

    def open(self) -> GatedConnection:
        """Return the first connection. Raises `LedgerError` if the files are not, or not all of, the ledger."""
        deadline = time.monotonic() + connections.BUSY_SECONDS
        check_names(Path(self.path))
        self.turn = WriterLock(self.path, self._key)
        try:
            self.turn.take(deadline)
            self._read_only = is_read_only(Path(self.path))
            connection = self._first_connection(deadline)
            self.is_open = True
            return connection
        finally:
            # An interrupt (Ctrl-C) may happen here too.
            try:
                self._end_turn()
            finally:
                self._end_turn()

    def take_turn(self) -> None:
        """Wait for the writer lock. Raises `LedgerError`."""
        try:
            if not self.turn.try_to_take():
                self.turn.take(time.monotonic() + connections.BUSY_SECONDS)
        except LedgerError:
            self._check_database(CHARGED_NOTHING)  # a clearer error if the file is missing together with its folder
            raise

    @property
    def is_guarded(self) -> bool:
        """True if SQLite cannot remove the WAL when a connection is closed."""
        return self._guard.is_taken

    def connect(self) -> GatedConnection:
        """Return one more connection."""
        return connections.open_connection(self.path, self._key, read_only=self._read_only, upgrade=self._upgrade)

    def _first_connection(self, deadline: float) -> GatedConnection:
        logged = not self._read_only and length(self.path) > 0
        if not self._read_only:
            self._guard.open()  # before the connection, as this can fail
        if logged:  # so that the WAL stays unchanged if it turns out to be another ledger's
            self._guard.take(deadline)
        connection = self.connect()
        try:
            check_modes(Path(self.path))
            if logged and wal_matches_database(self.path, connection) is False:
                if not is_torn(self.path, connection, self._key):
                    raise LedgerError(self.path, _STALE.format(log=self._names[0]), hint=_KEEP_BOTH)
                # The next process to open it then finds it consistent, and need not verify it.
                with suppress(sqlite3.Error):
                    empty(connection, 0.0)
            if not self._read_only:
                connections.enable_wal(connection)
                self._guard.take(deadline)
                connections.check_writable(connection, self.path)
                self._open_log(connection)
            self._opened = _identity(os.stat(self.path)), *map(_identity_of, self._names)
            self._stamp = _stamp(os.stat(self.path))
            self._acknowledged = newest_of(connection)
        except BaseException as error:
            self._close_apart(connection)
            if isinstance(error, sqlite3.Error | UnicodeError):
                raise connections.failure(self.path, error) from None
            raise
        return connection

    def _open_log(self, connection: sqlite3.Connection) -> None:
        """Open the WAL and its index. Raises `LedgerError` if they do not agree, or if the database lacks pages."""
        try:
            self._log.open()
            log = os.stat(self._names[0])
        except OSError as error:
            raise LedgerError(self.path, f"its log cannot be opened: {error.strerror}") from None
        if not self._log.agrees(connection, log):
            raise LedgerError(self.path, _ALTERED.format(log=self._names[0]), hint=_KEEP_ALL)
        header = self._log.header(connection)
        if header is not None and not self._has_pages(header):
            raise LedgerError(self.path, "it is truncated, and its log does not have the rest", hint=_KEEP_ALL)

    def close(self, connections: Sequence[sqlite3.Connection]) -> None:
        """Close the last connections of this process.

        The last of all processes checkpoints the WAL and removes it, unless the database was replaced meanwhile.
        """
        try:
            self.turn.take(time.monotonic() + _CLOSING_SECONDS)
            if connections:
                self._check_log_may_go(connections[0])
            self._guard.release()
            for connection in connections:
                connection.close()
        except LedgerError:
            for connection in connections:
                self._close_apart(connection)
        finally:
            try:
                self._let_go()
            finally:
                self._let_go()

    def leave(self) -> None:
        """Drop the open files in the child of a fork: they belong to the parent."""
        if self.is_open:
            self.turn.leave()
            self._let_go()

    def _end_turn(self) -> None:
        """End `open`: release the lock, and close everything if opening failed."""
        if self.is_open:
            self.turn.release()
        else:
            self._let_go()

    def _close_apart(self, connection: sqlite3.Connection) -> None:
        """Close a connection without touching the WAL and the database."""
        if self._guard.is_taken or self._read_only:
            connection.close()
        else:
            _LEFT_OPEN.append(connection)

    def _let_go(self) -> None:
        """Release the lock and close the files. A second call changes nothing."""
        self.is_open = False
        self.turn.release()
        self.turn.close()
        self._log.close()
        self._guard.close()

    # -- checks of the open files -------------------------------------------------------------------------

    def empty_log(self, connection: sqlite3.Connection) -> bool:
        """Checkpoint and truncate the WAL while holding the writer lock; return False if readers prevented it."""
        self.check_before(connection)
        emptied = empty(connection, wal_recovery.WAIT_SECONDS)
        self._stamp = _stamp(os.stat(self.path))
        return emptied

    def make_room(self, connection: sqlite3.Connection) -> bool:
        """Free disk space after a transaction failed on a full disk: cut off what it wrote, and empty the WAL."""
        with suppress(OSError):
            os.truncate(self._names[0], min(self._log_before, length(self.path)))
        return self.empty_log(connection)

    def check(self, then: str = "") -> tuple[os.stat_result, os.stat_result | None]:
        """Raise `LedgerError` unless the files are the ones that were opened.

        `then` is added to the message: it says what the failure means for the charge. Returns the stat results of the
        database and of its WAL.
        """
        if not self._read_only:
            try:
                database, log, index = os.stat(self.path), os.stat(self._names[0]), os.stat(self._names[1])
            except OSError:
                pass
            else:
                found = (database.st_dev, database.st_ino), (log.st_dev, log.st_ino), (index.st_dev, index.st_ino)
                if found == self._opened and database.st_nlink == 1:
                    return database, log
        return self._check_each(then)

    def _check_each(self, then: str) -> tuple[os.stat_result, os.stat_result | None]:
        """Do what `check` does, file by file: it names the one that is not as it was."""
        database = self._check_database(then)
        self.check_frozen()
        log = None
        for place, name in enumerate(self._names, 1):
            found = _stat(name)
            if (found and (found.st_dev, found.st_ino)) != self._opened[place]:
                raise LedgerError(
                    self.path,
                    f"its file {name} was removed or replaced while it was open{then}",
                    unknown=then is MAYBE_LOST,
                )
            if place == 1:
                log = found
        return database, log

    def check_frozen(self) -> None:
        """Raise `LedgerError` if another process writes, or wrote, to a file that is read-only here."""
        if self._read_only:
            refuse_log(Path(self.path))
            if _stamp(os.stat(self.path)) != self._stamp:
                why = "another process wrote to it after it was opened here to be read only"
                raise LedgerError(self.path, why, hint="Open it again.")

    def check_before(self, connection: sqlite3.Connection) -> None:
        """Check the files before a transaction, while holding the writer lock; detects overwritten content too."""
        database, log = self.check(CHARGED_NOTHING)
        self._log_before = log.st_size if log else 0
        self.starts_log = not self._read_only and not self._log_before
        if log is not None and not self._log.agrees(connection, log):
            self._refuse_log(CHARGED_NOTHING)
        if (database.st_mtime_ns, database.st_ctime_ns, database.st_size) != self._stamp:
            self._check_content(database, connection, CHARGED_NOTHING)

    def acknowledge(self, entry: int, chain_hash: bytes) -> None:
        """Remember the newest entry that this process has written. The files must contain it from now on."""
        self._acknowledged = entry, chain_hash

    def check_after(self, connection: sqlite3.Connection) -> None:
        """Check the files after a commit, before it is acknowledged, and keep the WAL short."""
        database, log = self.check(MAYBE_LOST)
        if log is None:
            return
        before = self._log.last
        if not self._log.agrees(connection, log, committed=True):
            self._refuse_log(MAYBE_LOST)
        changed = (database.st_mtime_ns, database.st_ctime_ns, database.st_size) != self._stamp
        if changed:  # this commit has checkpointed the WAL
            self._check_checkpoint(connection, before)
            started_anew(connection)
        size, limit = log.st_size, self._log_limit
        may_be_long = size >= wal_recovery.SHORTENED_BYTES or (size > self._log_before and size >= limit.enough)
        if (may_be_long and limit.keep(connection, self._log_before, size)) or changed:
            self._stamp = _stamp(os.stat(self.path))
            if not self._log.agrees(connection, os.stat(self._names[0]), committed=True):
                self._refuse_log(MAYBE_LOST)

    def _refuse_log(self, then: str) -> NoReturn:
        why = _ALTERED.format(log=self._names[0])
        raise LedgerError(self.path, why + then, hint=_KEEP_ALL, unknown=then is MAYBE_LOST)

    def _check_database(self, then: str) -> os.stat_result:
        found = _stat(self.path)
        if found is None:
            raise LedgerError(
                self.path, f"it was moved or deleted while it was open{then}", unknown=then is MAYBE_LOST
            )
        if _identity(found) != self._opened[0]:
            raise LedgerError(
                self.path, f"another file replaced it while it was open{then}", unknown=then is MAYBE_LOST
            )
        if found.st_nlink != 1:
            raise LedgerError(self.path, LINKED + then, unknown=then is MAYBE_LOST)
        return found

    def _check_content(self, found: os.stat_result, connection: sqlite3.Connection, then: str) -> None:
        """Raise `LedgerError` if the database changed since its last check and the change was not a checkpoint."""
        if _stamp(found) != self._stamp:
            if not self._was_checkpointed(connection):
                raise LedgerError(self.path, _OTHER + then, unknown=then is MAYBE_LOST)
            self._stamp = _stamp(found)

    def _check_checkpoint(self, connection: sqlite3.Connection, before: IndexHeader | None) -> None:
        """Raise `LedgerError` if the database changed since the last check, but this commit made no checkpoint.

        A checkpoint of its own is compared in part only: it was made a moment ago, of thousands of pages.
        """
        now = self._log.last
        if before is None or now is None or (before.salts, before.backfilled) == (now.salts, now.backfilled):
            self._check_content(os.stat(self.path), connection, MAYBE_LOST)
        elif wal_matches_database(self.path, connection) is False:
            raise LedgerError(self.path, _OTHER + MAYBE_LOST, unknown=True)

    def _was_checkpointed(self, connection: sqlite3.Connection) -> bool:
        """Return True if a changed database has what the index of the WAL says it has."""
        header = self._log.header(connection)
        if header is None or not self._has_pages(header):
            return False
        if not header.frames:
            return holds(self.path, self._acknowledged)
        matches = wal_matches_database(self.path, connection)
        if matches is None and not header.backfilled:
            # No checkpoint is under way. A killed process has left a part of one, or the file was overwritten.
            with closing(self.connect()) as fresh:
                return is_whole(self.path, fresh, self._key)
        return matches is not False

    def _has_pages(self, header: IndexHeader) -> bool:
        """Return True if the database has each page that the WAL lacks, and each that a checkpoint has copied."""
        last, logged = header.pages, self._log.pages(header)
        while last in logged:
            last -= 1
        size = header.page_bytes
        if os.stat(self.path).st_size < last * size:
            return False
        pages = self._log.backfilled(header) if header.backfilled else ()
        return all(self._guard.read(size, (page - 1) * size) == content for page, content in pages)

    def _check_log_may_go(self, connection: sqlite3.Connection) -> None:
        """Raise `LedgerError` unless the WAL may be checkpointed.

        A WAL whose name is missing may be: otherwise its entries would be lost.
        """
        log_now = _identity_of(self._names[0])
        if log_now not in (None, self._opened[1]):
            raise LedgerError(self.path, "its log was replaced")
        log = _stat(self._names[0])
        if log is not None and not self._read_only and not self._log.agrees(connection, log):
            raise LedgerError(self.path, "its log was changed")
        self._check_content(self._check_database(""), connection, "")


GUARDED_BYTES = (0x40000002, 510)
"""The bytes that SQLite locks, shared to read a database and exclusively to own it (PENDING_BYTE + 2)."""


class _Guard:
    """Lock that keeps SQLite from removing the WAL of an open database, on systems that have such locks."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self.is_taken = False

    def open(self) -> None:
        """Open the file. Raises `LedgerError`."""
        if self._descriptor < 0:
            try:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                raise LedgerError(self._path, f"it cannot be opened: {error.strerror}") from None

    def take(self, deadline: float) -> None:
        if not hasattr(fcntl, "F_OFD_SETLK"):
            return
        while not self.is_taken:
            try:
                self._lock(fcntl.F_RDLCK)
                self.is_taken = True
            except (BlockingIOError, PermissionError):  # the last other process is just closing
                if time.monotonic() > deadline:
                    raise LedgerError(self._path, connections.busy()) from None
                time.sleep(STEP_SECONDS)
            except OSError:
                return  # a file system without such locks

    def release(self) -> None:
        if self.is_taken:
            self._lock(fcntl.F_UNLCK)
            self.is_taken = False

    def close(self) -> None:
        """Close the file. Close SQLite's connections first: this drops their locks."""
        descriptor, self._descriptor, self.is_taken = self._descriptor, -1, False
        if descriptor >= 0:
            os.close(descriptor)

    def read(self, size: int, at: int) -> bytes:
        """Return bytes of the file. A descriptor of its own must not be closed: see `close`."""
        return os.pread(self._descriptor, size, at)

    def _lock(self, kind: int) -> None:
        fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, *GUARDED_BYTES, 0))


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _identity_of(name: str) -> tuple[int, int] | None:
    found = _stat(name)
    return found and _identity(found)


def _stat(name: str) -> os.stat_result | None:
    try:
        return os.stat(name)
    except OSError:
        return None


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    """Return a stamp that changes with every write.

    The second part, ctime, also changes when a copy keeps the modification time of its source.
    """
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size


# -- the writer lock -----------------------------------------------------------------------------------------

_holders: dict[str, int] = {}
"""The thread that holds the writer lock, by ledger."""


_WAITING_BYTE = 1 << 40
"""A byte far behind the end of the key file: each writer that waits has a shared lock on it."""


def _waiting(kind: int) -> bytes:
    """Return the argument of a call that locks the byte of waiting writers, or asks for its locks."""
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, _WAITING_BYTE, 1, 0)


class WriterLock:
    """Cross-process writer lock of the ledger at a path, held by one thread at a time."""

    def __init__(self, ledger: str, key: keyed_hashing.Key) -> None:
        self._ledger = ledger
        self._key = key
        self._file = key_file.key_path(Path(ledger))
        self._path = str(self._file)  # a faster argument of `os.stat`
        self._descriptor = -1
        self._locked = False  # or about to be locked
        self._open()

    def take(self, deadline: float) -> None:
        """Wait for the lock in short steps of equal length, which give all waiting threads the same chance."""
        if self.try_to_take():
            return
        try:
            self._announce(fcntl.F_RDLCK)
            while not self.try_to_take():
                self._wait(deadline)
        finally:
            self._announce(fcntl.F_UNLCK)

    def is_wanted(self) -> bool:
        """True if another process is known to wait for the lock. Only Linux tells."""
        if not hasattr(fcntl, "F_OFD_GETLK"):
            return False
        with suppress(OSError):
            found = fcntl.fcntl(self._descriptor, fcntl.F_OFD_GETLK, _waiting(fcntl.F_WRLCK))
            return bool(struct.unpack_from("h", found)[0] != fcntl.F_UNLCK)
        return False

    def _announce(self, kind: int) -> None:
        """Let others know that this process waits, or no longer. The lock belongs to the open file."""
        if hasattr(fcntl, "F_OFD_SETLK"):
            with suppress(OSError):  # then others do not know
                fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, _waiting(kind))

    def try_to_take(self) -> bool:
        """Take the lock if it is free; return True if it was taken."""
        self._locked = True
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._locked = False
            return False
        except OSError as error:
            raise LedgerError(self._ledger, f"its key file {self._file} cannot be locked: {error.strerror}") from None
        try:
            found = os.stat(self._path)
            there = self._opened is not None and (
                found.st_ino == self._opened.st_ino
                and found.st_ctime_ns == self._opened.st_ctime_ns
                and found.st_mtime_ns == self._opened.st_mtime_ns
                and found.st_size == self._opened.st_size
                and found.st_dev == self._opened.st_dev
            )
        except OSError:
            there = False
        if not there:  # the path names another file now, or the file was written since
            self._open()
            return False
        _holders[self._ledger] = threading.get_ident()
        return True

    def release(self) -> None:
        """Release the lock. Without the lock this does nothing."""
        if self._descriptor >= 0 and self._locked:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self._locked = False
        if _holders.get(self._ledger) == threading.get_ident():
            del _holders[self._ledger]

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, -1  # another file may get this number immediately
        if descriptor >= 0:
            os.close(descriptor)

    def leave(self) -> None:
        """Close the file in the child of a fork: a lock that is held belongs to the parent."""
        _holders.pop(self._ledger, None)
        self.close()

    def _wait(self, deadline: float) -> None:
        if _holders.get(self._ledger) == threading.get_ident():
            raise LedgerError(self._ledger, "this thread is already writing to it", hint="Finish that first.")
        if time.monotonic() > deadline:
            raise LedgerError(self._ledger, connections.busy())
        time.sleep(STEP_SECONDS)

    def _open(self) -> None:
        """Open the key file, first or again after it was replaced, or written, with the same or a later content."""
        opened = None
        with suppress(OSError):  # `read_key` reports it
            opened = os.stat(self._path)  # before it is read: a later change is found
        if not key_file.read_key(Path(self._ledger)).replaces(self._key):
            raise LedgerError(
                self._ledger, f"its key file {self._file} was replaced by another one while it was open"
            )
        try:
            before, self._descriptor = self._descriptor, os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise LedgerError(self._ledger, f"its key file {self._file} cannot be opened: {error.strerror}") from None
        self._opened = opened
        if before >= 0:
            os.close(before)
