"""The log of a ledger's database (WAL): that it stays short, and belongs to the database that it lies beside.

SQLite takes whatever lies there under the log's name for the log of the database: beside a copy that was put back it
would write the pages of one state over those of another. So whoever starts a log anew notes in it how many entries
the journal had, which the database then has as well. One that has fewer, or an entry that the log does not know, is
another database. (It must be a copy page by page, as `cp` and `backup` make them.)

Recovery of a database whose last checkpoint was torn by a power cut.

A disk writes sectors, often of 512 bytes, so a power cut can leave a page of the database half old and half new. The
log still has the whole page, and SQLite reads it from there. Only the database without its log is damaged then. A
copy that was put in the database's place is whole without the log. That tells the two apart.

Where a ledger lies: its files are the ones that were opened, and stay so for as long as they are open.

SQLite keeps a database in two files, and trusts their names. Two things can part them behind its back, and each loses
what was acknowledged:

- A process that opens and closes the database on its own (a checksum, a backup, a file response) drops all locks
  that SQLite has on it there, for they are POSIX locks. The next process to close would find itself alone, and delete
  a log that is still written to. Hence the `_Guard`: a shared lock on the same bytes that belongs to an open file
  instead (an "open file description lock", of Linux), which no close of another descriptor drops. While anybody has
  the database open, no SQLite, not even another program's, can take it for itself and remove the log.
- Somebody renames, replaces or deletes a file or its folder. No lock forbids that, so it is looked for: before each
  transaction, and after each commit, before it is acknowledged.
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
from typing import TYPE_CHECKING, cast

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
from .queries import SqliteRows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..keyfile import Key
    from ..store import Snapshot, Store


SHORTENED_BYTES = 40 << 20
"""From which length on it is cut off; a shorter one is written over from its start, which is faster."""
MOST_BYTES = 64 << 20
"""From which length on it is waited for readers."""
ATTEMPT_SECONDS = 0.05
"""How long no other attempt to cut it off is made after one in vain."""
WAIT_SECONDS = 0.05
"""How long an attempt waits for readers, holding up others who write."""
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
"""How long no attempt waits after one that waited in vain: at first, and at most."""

_NEWEST = "SELECT entry, chain_hash FROM journal ORDER BY entry DESC LIMIT 1"


def note(connection: sqlite3.Connection) -> None:
    """Note in the log, in the transaction that starts it, what the database beside it holds."""
    connection.execute("INSERT OR REPLACE INTO meta SELECT 'log', coalesce(max(entry), 0) FROM journal")


def wal_matches_database(path: str, connection: sqlite3.Connection) -> bool:
    """Whether the log was written on top of the database beside it; only with the turn to write.

    After a power cut the answer may be no although the log belongs: see `recovering`.
    """
    if not length(path):
        return True
    if not connections.has_log(connection):
        return False
    try:
        with closing(open_bare(path)) as bare:
            newest = bare.execute(_NEWEST).fetchone()
    except sqlite3.DatabaseError:
        return True  # a checkpoint was cut off in its midst, and the log has the rest; a copy can be read
    try:
        started = connection.execute("SELECT value FROM meta WHERE name = 'log'").fetchone()
        entry, chain_hash = newest or (0, None)
        known = connection.execute("SELECT chain_hash FROM journal WHERE entry = ?", (entry,)).fetchone()
    except sqlite3.DatabaseError:
        return False
    return entry >= (started or (0,))[0] and (not entry or known == (chain_hash,))


def newest_of(connection: sqlite3.Connection) -> tuple[int, bytes | None]:
    """The number and the link of the newest entry; (0, None) of an empty journal."""
    return connection.execute(_NEWEST).fetchone() or (0, None)


def holds(path: str, newest: tuple[int, bytes | None]) -> bool:
    """Return True if a database whose log is empty has an entry; only with the turn to write.

    It is asked over a new connection: the others go by what they have in memory, as the log did not change.
    """
    number, chain_hash = newest
    try:
        with closing(open_bare(path)) as bare:
            found = bare.execute("SELECT chain_hash FROM journal WHERE entry = ?", (number,)).fetchone()
    except sqlite3.DatabaseError:
        return False
    return not number or found == (chain_hash,)


def started_anew(connection: sqlite3.Connection) -> None:
    """After a checkpoint: once all of the log is in the database, the next transaction starts it anew; this one."""
    _, pages, done = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if pages == done:
        connection.execute("BEGIN IMMEDIATE")
        note(connection)
        connection.execute("COMMIT")


class LogLimit:
    """Keeps the log of one open ledger short, without holding up spends for long.

    A reader, such as a backup or a shell, can hold one moment for hours, and the log cannot be cut off meanwhile. So
    an attempt does not wait, and the next one comes a moment later. Where readers come and go without a gap, only
    waiting helps: that is brief, and twice as rare after each time in vain.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._next_attempt = self._next_wait = -math.inf
        self._pause = PAUSE_SECONDS

    def keep(self, connection: sqlite3.Connection, before: int, now: int) -> bool:
        """Cut off a log that is too long, if no reader needs it; return True if that was tried.

        `before` and `now` are its bytes before and after a transaction. A shorter log is cut off only where the disk
        has no room for all of it once more, as the database may have to take it in.
        """
        if now < SHORTENED_BYTES and (now <= before or now < _room(self._path)):
            return False
        at = time.monotonic()
        if at < self._next_attempt:
            return False
        waits = now >= MOST_BYTES and at >= self._next_wait
        emptied = empty(connection, WAIT_SECONDS if waits else 0.0)
        # SQLite's own attempt with each commit costs a sixth of a spend, and is in vain as well.
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
    """Bring the log into the database and cut it to nothing; return True if no reader prevented that so long."""
    deadline = time.monotonic() + seconds
    while True:
        if not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(STEP_SECONDS)


def length(path: str) -> int:
    """How many bytes of log lie beside a database."""
    try:
        return os.stat(path + LOG).st_size
    except FileNotFoundError:
        return 0


def _room(path: str) -> int:
    """How many bytes are left on the disk."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def open_bare(path: str) -> sqlite3.Connection:
    """The database without its log."""
    uri = Path(path).as_uri() + "?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def is_torn(path: str, connection: sqlite3.Connection, key: keyfile.Key) -> bool:
    """Return True if the database is not whole, and is whole together with its log; only with the turn to write.

    Both times everything is verified: a row can be torn where SQLite finds no damage.
    """
    with closing(open_bare(path)) as bare:
        return not _is_whole(path, bare, key) and _is_whole(path, connection, key)


def _is_whole(path: str, connection: sqlite3.Connection, key: keyfile.Key) -> bool:
    """Return True if what a connection reads verifies as a ledger."""
    from ..ledger import Ledger
    from ..verification import check_integrity

    view = cast("Store", _View(path, connection, keyfile.Key(key.secret)))
    try:
        return check_integrity(Ledger(view, time.time, half=True)).ok
    except Exception:  # a torn page can hold any bytes, and any code that reads them can fail
        return False


class _View:
    """What verifying needs of a store, over one connection, while nothing is written."""

    partitions = 1
    repeated = MappingProxyType[str, int]({})

    def __init__(self, name: str, connection: sqlite3.Connection, key: keyfile.Key) -> None:
        self.name, self.key = name, key
        self._connection = connection

    @contextmanager
    def snapshot(self, partition: int = 0) -> Iterator[Snapshot]:
        yield SqliteRows(self._connection)

    def look_at_key(self) -> None:
        """The key is the one that was read when the ledger was opened."""


if sys.platform != "win32":
    import fcntl


CHARGED_NOTHING = "; nothing was charged"
MAYBE_LOST = "; what was written just now may be lost, so ask again by the key whether it was charged"

_OTHER = "another copy was put in its place while it was open"
_STALE = (
    "its log {log} is of another state than the database: a copy was put in its place while the log still lay there. "
    "Keep both files: the log may hold charges that the copy does not. Put back the database that was there before"
)

# How long the close of a connection waits for its turn. Who does not get it is not the last that has the file open.
_CLOSING_SECONDS = 0.2
# Connections that may not be closed, where the system has no guards.
_LEFT_OPEN: list[sqlite3.Connection] = []


class DatabaseFile:
    """The files of one ledger in one process, and whose turn it is to write to them."""

    def __init__(self, path: str, key: Key) -> None:
        self.path = path
        self.is_open = False
        self._key = key
        self._names = (path + LOG, path + INDEX)
        self._guard = _Guard(path)
        self._log_limit = LogLimit(path)

    def open(self) -> sqlite3.Connection:
        """The first connection. Raises `LedgerError` where the files are not the ledger's, or not all of it."""
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
            # An interrupt (Ctrl-C) may come here too.
            try:
                self._end_turn()
            finally:
                self._end_turn()

    def take_turn(self) -> None:
        """Wait for the turn to write. Raises `LedgerError`."""
        try:
            self.turn.take(time.monotonic() + connections.BUSY_SECONDS)
        except LedgerError:
            self._check_database(CHARGED_NOTHING)  # if it is gone with all its folder, that is told
            raise

    def connect(self) -> sqlite3.Connection:
        """One more connection."""
        return connections.open_connection(self.path, self._key, read_only=self._read_only)

    def _first_connection(self, deadline: float) -> sqlite3.Connection:
        logged = not self._read_only and length(self.path) > 0
        if not self._read_only:
            self._guard.open()  # without a connection yet, as this can fail
        if logged:  # so that it stays what it is if it turns out to be strange
            self._guard.take(deadline)
        connection = self.connect()
        try:
            check_modes(Path(self.path))
            if logged and not wal_matches_database(self.path, connection):
                if not is_torn(self.path, connection, self._key):
                    raise LedgerError(self.path, _STALE.format(log=self._names[0]))
                # Others who open it now find it whole, and need not verify it.
                with suppress(sqlite3.Error):
                    empty(connection, 0.0)
            if not self._read_only:
                connections.enable_wal(connection)
                self._guard.take(deadline)
                connections.check_writable(connection, self.path)
            self._opened = _identity(os.stat(self.path)), *map(_identity_of, self._names)
            self._stamp = _stamp(os.stat(self.path))
            self._acknowledged = newest_of(connection)
        except BaseException:
            self._close_apart(connection)
            raise
        return connection

    def close(self, connections: Sequence[sqlite3.Connection]) -> None:
        """Close the last connections there are.

        The last of all processes brings the log into the database and removes it, unless that is another one by now.
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
        """In the child of a fork: what was open stays the parent's."""
        if self.is_open:
            self.turn.leave()
            self._let_go()

    def _end_turn(self) -> None:
        """Of opening: keep what was opened, if all went well."""
        if self.is_open:
            self.turn.release()
        else:
            self._let_go()

    def _close_apart(self, connection: sqlite3.Connection) -> None:
        """Close a connection without touching log and database."""
        if self._guard.is_taken or self._read_only:
            connection.close()
        else:
            _LEFT_OPEN.append(connection)

    def _let_go(self) -> None:
        """A second call changes nothing."""
        self.is_open = False
        self.turn.release()
        self.turn.close()
        self._guard.close()

    # -- are the files still there? -----------------------------------------------------------------------

    @property
    def log_is_empty(self) -> bool:
        """Whether a transaction that begins now starts the log."""
        return not self._read_only and not self._log_before

    def empty_log(self, connection: sqlite3.Connection) -> bool:
        """Bring the log into the database and empty it, with the turn to write; return True if readers let it."""
        self.check_before(connection)
        emptied = empty(connection, WAIT_SECONDS)
        self._stamp = _stamp(os.stat(self.path))
        return emptied

    def make_room(self, connection: sqlite3.Connection) -> bool:
        """After a transaction for which the disk had no room: give back what it took, and what the log holds."""
        with suppress(OSError):
            os.truncate(self._names[0], min(self._log_before, length(self.path)))
        return self.empty_log(connection)

    def check(self, then: str = "") -> tuple[os.stat_result, int]:
        """Raise `LedgerError` unless the files are the ones that were opened; `then` says what that means.

        Returns what the database is now, and how long its log.
        """
        database = self._check_database(then)
        self.check_frozen()
        beside = [_stat(name) for name in self._names]
        for name, found, opened in zip(self._names, beside, self._opened[1:], strict=True):
            if (found and _identity(found)) != opened:
                raise LedgerError(
                    self.path,
                    f"{name} beside it was removed or replaced while it was open{then}",
                    unknown=then is MAYBE_LOST,
                )
        return database, beside[0].st_size if beside[0] else 0

    def check_frozen(self) -> None:
        """Raise `LedgerError` where a file that can only be read here is or was written by others meanwhile."""
        if self._read_only:
            refuse_log(Path(self.path))
            if _stamp(os.stat(self.path)) != self._stamp:
                why = "it was written by others since it was opened here, where it can only be read"
                raise LedgerError(self.path, f"{why}; open it again")

    def check_before(self, connection: sqlite3.Connection) -> None:
        """The same before a transaction, with the turn to write; also where the file was written over."""
        database, self._log_before = self.check(CHARGED_NOTHING)
        self._check_content(database, connection, CHARGED_NOTHING)

    def acknowledge(self, entry: int, chain_hash: bytes) -> None:
        """Remember the newest entry that this process has written, which the files must have from now on."""
        self._acknowledged = entry, chain_hash

    def check_after(self, connection: sqlite3.Connection) -> None:
        """The same after a commit, before it is acknowledged; and see to the log."""
        database, log_now = self.check(MAYBE_LOST)
        changed = _stamp(database) != self._stamp
        if changed:  # this commit has brought the log into the database
            started_anew(connection)
        if self._log_limit.keep(connection, self._log_before, log_now) or changed:
            self._stamp = _stamp(os.stat(self.path))

    def _check_database(self, then: str) -> os.stat_result:
        found = _stat(self.path)
        if found is None:
            raise LedgerError(
                self.path, f"it was moved or deleted while it was open{then}", unknown=then is MAYBE_LOST
            )
        if _identity(found) != self._opened[0]:
            raise LedgerError(
                self.path, f"another file has taken its place while it was open{then}", unknown=then is MAYBE_LOST
            )
        if found.st_nlink != 1:
            raise LedgerError(self.path, LINKED + then, unknown=then is MAYBE_LOST)
        return found

    def _check_content(self, found: os.stat_result, connection: sqlite3.Connection, then: str) -> None:
        """A database that changed since it was looked at: by a checkpoint of another process, or by somebody else."""
        if _stamp(found) != self._stamp:
            belongs = wal_matches_database(self.path, connection)
            if not belongs or (not length(self.path) and not holds(self.path, self._acknowledged)):
                raise LedgerError(self.path, _OTHER + then)
            self._stamp = _stamp(found)

    def _check_log_may_go(self, connection: sqlite3.Connection) -> None:
        """That the log may be brought into the database. It may also where its name is gone: so it is not lost."""
        log_now = _identity_of(self._names[0])
        if log_now not in (None, self._opened[1]):
            raise LedgerError(self.path, "its log was replaced")
        self._check_content(self._check_database(""), connection, "")


class _Guard:
    """Keeps SQLite from removing the log of a database that is open here; where the system has such locks."""

    # The bytes that SQLite locks to read a database, and to have it alone (PENDING_BYTE + 2).
    _BYTES = (0x40000002, 510)

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
            except (BlockingIOError, PermissionError):  # the last of all is just closing
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
        """Close the file; not before SQLite's connections, whose locks go with it."""
        descriptor, self._descriptor, self.is_taken = self._descriptor, -1, False
        if descriptor >= 0:
            os.close(descriptor)

    def _lock(self, kind: int) -> None:
        fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, os.SEEK_SET, *self._BYTES, 0))


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
    """Changes with every write; the second of them also where a copy keeps the time of what it was made from."""
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size
