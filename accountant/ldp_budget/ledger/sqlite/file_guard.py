"""Guards of an open ledger file: the size of its WAL, its match with the database, and replaced or moved files.

The module has three parts.

1. The WAL stays short and belongs to its database. SQLite uses any file that has the WAL's name as the WAL of the
   database. Next to a restored copy, such a file would overwrite the pages of one state with those of another. So
   each transaction that resets the WAL writes into it the number of journal entries, which the database then has as
   well. A database with fewer entries, or with an entry that the WAL does not know, is another one. This detects
   copies made page by page, as `cp` and `backup` make them.

2. Recovery of a database whose last checkpoint was torn by a power cut. A disk writes sectors, often of 512 bytes, so
   a power cut can leave a database page half old and half new. The WAL still has the whole page, and SQLite reads it
   from there. So only the database without its WAL is damaged. A copy that replaced the database is consistent
   without the WAL. This difference distinguishes the two cases.

3. The files stay the ones that were opened. SQLite keeps a database in two files and trusts their names. Two events
   can separate them without SQLite noticing, and each loses acknowledged charges:

   - A process opens and closes the database file itself, for a checksum, a backup or a file response. That drops all
     SQLite locks of this process, for they are POSIX locks. Another process that closes the database would then find
     no other user, and delete a WAL that is still in use. `_Guard` prevents this: a shared lock on the same bytes
     that belongs to an open file (Linux's "open file description lock"). Closing another descriptor does not drop it.
     While any process holds it, no SQLite, not even another program's, can lock the database exclusively and remove
     the WAL.
   - A user renames, replaces or deletes a file or its folder. No lock prevents that. So the files are checked before
     each transaction, and after each commit before the commit is acknowledged.
"""

from __future__ import annotations

import math
import os
import sqlite3
import struct
import sys
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn, cast

from ...errors import LedgerError
from .. import keyfile
from . import connection as connections
from .connection import (
    INDEX,
    LINKED,
    LOG,
    STEP_SECONDS,
    WriterLock,
    check_modes,
    check_names,
    is_read_only,
    refuse_log,
)
from .statements import SqliteRows
from .write_ahead_log import IndexHeader, WriteAheadLog

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..keyfile import Key
    from ..storage import Snapshot, Store
    from .fork_gate import GatedConnection


# -- the write-ahead log -------------------------------------------------------------------------------------

SHORTENED_BYTES = 40 << 20
"""WAL size from which it is truncated. A shorter WAL is overwritten from its start, which is faster."""
MOST_BYTES = 64 << 20
"""WAL size from which truncating it waits for readers."""
ATTEMPT_SECONDS = 0.05
"""Pause after a failed attempt to truncate the WAL."""
WAIT_SECONDS = 0.05
"""Longest wait of one attempt for readers; other writers wait meanwhile."""
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
"""First and longest pause between attempts that wait, after one that waited and failed."""

_NEWEST = "SELECT entry, chain_hash FROM journal ORDER BY entry DESC LIMIT 1"


def note(connection: sqlite3.Connection) -> None:
    """Write into the WAL, in the transaction that starts it, the number of journal entries in the database."""
    connection.execute("INSERT OR REPLACE INTO meta SELECT 'log', coalesce(max(entry), 0) FROM journal")


def wal_matches_database(path: str, connection: sqlite3.Connection) -> bool | None:
    """True if the WAL was written on top of this database. Call it only while holding the writer lock.

    After a power cut the result may be False although the WAL belongs: see `is_torn`. None if the database cannot be
    read without its WAL: a checkpoint was interrupted, or readers let it copy a part only, and the WAL has the rest.
    """
    if not length(path):
        return True
    if not connections.has_log(connection):
        return False
    try:
        with closing(open_bare(path)) as bare:
            newest = bare.execute(_NEWEST).fetchone()
    except sqlite3.DatabaseError:
        return None
    try:
        started = connection.execute("SELECT value FROM meta WHERE name = 'log'").fetchone()
        entry, chain_hash = newest or (0, None)
        known = connection.execute("SELECT chain_hash FROM journal WHERE entry = ?", (entry,)).fetchone()
    except sqlite3.DatabaseError:
        return False
    return entry >= (started or (0,))[0] and (not entry or known == (chain_hash,))


def newest_of(connection: sqlite3.Connection) -> tuple[int, bytes | None]:
    """Return the number and the chain hash of the newest entry; (0, None) for an empty journal."""
    return connection.execute(_NEWEST).fetchone() or (0, None)


def holds(path: str, newest: tuple[int, bytes | None]) -> bool:
    """Return True if a database with an empty WAL has the entry `newest`. Call it only while holding the writer lock.

    A new connection reads it: existing connections use their cached pages, as the WAL did not change.
    """
    number, chain_hash = newest
    try:
        with closing(open_bare(path)) as bare:
            found = bare.execute("SELECT chain_hash FROM journal WHERE entry = ?", (number,)).fetchone()
    except sqlite3.DatabaseError:
        return False
    return not number or found == (chain_hash,)


def started_anew(connection: sqlite3.Connection) -> None:
    """Reset the WAL after a checkpoint, if the database has all of it: write a transaction that starts it again."""
    _, pages, done = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if pages == done:
        connection.execute("BEGIN IMMEDIATE")
        note(connection)
        connection.execute("COMMIT")


class LogLimit:
    """Size limit of the WAL of one open ledger. It never delays spends for long.

    A reader, such as a backup or a shell, can hold a snapshot for hours. The WAL cannot be truncated meanwhile. So an
    attempt does not wait, and the next attempt follows after a short pause. If readers overlap without a gap, only
    waiting helps. Each wait is short, and the pause between waits doubles after each failure.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._next_attempt = self._next_wait = -math.inf
        self._pause = PAUSE_SECONDS

    def keep(self, connection: sqlite3.Connection, before: int, now: int) -> bool:
        """Truncate a WAL that is too long, if no reader needs it; return True if that was tried.

        `before` and `now` are its sizes in bytes before and after a transaction. A shorter WAL is truncated only if
        the free disk space is below its size, because a checkpoint may have to copy all of it into the database.
        """
        if now < SHORTENED_BYTES and (now <= before or now < _room(self._path)):
            return False
        at = time.monotonic()
        if at < self._next_attempt:
            return False
        waits = now >= MOST_BYTES and at >= self._next_wait
        emptied = empty(connection, WAIT_SECONDS if waits else 0.0)
        # SQLite's own attempt with each commit takes a sixth of a spend's time, and would fail as well.
        connection.execute(f"PRAGMA wal_autocheckpoint = {connections.CHECKPOINT_PAGES if emptied else 0}")
        if emptied:
            self._next_wait, self._pause = -math.inf, PAUSE_SECONDS
            return True
        self._next_attempt = time.monotonic() + ATTEMPT_SECONDS
        if waits:
            self._next_wait = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        return True


def empty(connection: sqlite3.Connection, seconds: float) -> bool:
    """Checkpoint and truncate the WAL; return False if readers prevented that for all of `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        if not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(STEP_SECONDS)


def length(path: str) -> int:
    """Return the size of a database's WAL in bytes; 0 if it has none."""
    try:
        return os.stat(path + LOG).st_size
    except FileNotFoundError:
        return 0


def _room(path: str) -> int:
    """Return the free space of the disk, in bytes."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def open_bare(path: str) -> sqlite3.Connection:
    """Return a read-only connection to the database without its WAL."""
    uri = Path(path).as_uri() + "?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


# -- recovery after a power cut ------------------------------------------------------------------------------


def is_torn(path: str, connection: sqlite3.Connection, key: keyfile.Key) -> bool:
    """Return True if the database fails verification alone but passes with its WAL.

    Call it only while holding the writer lock. Both checks verify the whole ledger: a row can be torn where SQLite
    finds no damage.
    """
    with closing(open_bare(path)) as bare:
        return not _is_whole(path, bare, key) and _is_whole(path, connection, key)


def _is_whole(path: str, connection: sqlite3.Connection, key: keyfile.Key) -> bool:
    """Return True if the ledger that a connection reads passes verification."""
    from ..ledger import Ledger
    from ..verification import check_integrity

    copy = keyfile.Key(key.secret)
    try:
        connections.check_ledger_id(connection, copy, path)
        view = cast("Store", _View(path, connection, copy))
        return check_integrity(Ledger(view, time.time, half=True)).ok
    except Exception:  # a torn page can hold any bytes, and any code that reads them can fail
        return False


class _View:
    """Minimal read-only store for verification, over one connection, while no process writes."""

    partitions = writers = 1
    repeated = MappingProxyType[str, int]({})

    def __init__(self, name: str, connection: sqlite3.Connection, key: keyfile.Key) -> None:
        self.name, self.key = name, key
        self._connection = connection

    @contextmanager
    def snapshot(self, partition: int = 0) -> Iterator[Snapshot]:
        yield SqliteRows(self._connection)


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

    def __init__(self, path: str, key: Key) -> None:
        self.path = path
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
        return connections.open_connection(self.path, self._key, read_only=self._read_only)

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

    @property
    def log_is_empty(self) -> bool:
        """True if a transaction that begins now starts the WAL."""
        return not self._read_only and not self._log_before

    def empty_log(self, connection: sqlite3.Connection) -> bool:
        """Checkpoint and truncate the WAL while holding the writer lock; return False if readers prevented it."""
        self.check_before(connection)
        emptied = empty(connection, WAIT_SECONDS)
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
        if log is not None and not self._log.agrees(connection, log):
            self._refuse_log(CHARGED_NOTHING)
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
        changed = _stamp(database) != self._stamp
        if changed:  # this commit has checkpointed the WAL
            self._check_checkpoint(connection, before)
            started_anew(connection)
        if self._log_limit.keep(connection, self._log_before, log.st_size) or changed:
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
                return _is_whole(self.path, fresh, self._key)
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
