"""The ledger in one SQLite file: opening it safely, and transactions that happen whole or not at all."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import LedgerError
from .. import _forks as forks
from .. import keys as keyfile
from ..replay import define_windows
from .known import Known
from .schema import APPLICATION_ID, SCHEMA_VERSION, migrate
from .transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

MEMORY = ":memory:"
BUSY_SECONDS = 30.0
_STEP_SECONDS = 0.0003
_READ, _WRITE = "BEGIN", "BEGIN IMMEDIATE"

# Connections that came with a fork nobody told of: kept, and never used or closed.
_OF_PARENTS: list[sqlite3.Connection | None] = []


class SqliteLedger:
    """The store behind an accountant. Safe to share between threads and to use after a fork."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool) -> None:
        # Absolute, as the process may change its folder before it opens the ledger again after a fork.
        self.path = MEMORY if str(path) == MEMORY else str(Path(path).absolute())
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._known: Known | None = None
        self._closed = False
        self._pid = os.getpid()
        forks.watch(self)
        if self.path == MEMORY:
            self.key = keyfile.Key(keyfile.new_key())
            self._connection = _connect(MEMORY)
            migrate(self._connection)
            return
        file = Path(self.path)
        if create and not file.exists() and not keyfile.key_path(file).exists():
            _create(file)
        _require_both(file)
        self.key = keyfile.read_key(file)
        self._connection = self._open()

    def close(self) -> None:
        """Close the connection; the ledger can be used no more."""
        if self._pid != os.getpid():
            # The parent's: closing it, or dropping it, would meddle with what the parent is writing.
            _OF_PARENTS.append(self._connection)
            self._connection, self._closed = None, True
            return
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection, self._closed = None, True

    def before_fork(self) -> None:
        """Wait for the transaction that runs, and close the file until after the fork."""
        self._lock.acquire()
        # A transaction of the thread that forks goes on; then the child has a connection that it cannot use.
        if self.path != MEMORY and self._connection is not None and not self._connection.in_transaction:
            self._connection.close()
            self._connection = None

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        self._lock = threading.RLock()
        if self._connection is None:
            self._pid = os.getpid()

    def write(self) -> AbstractContextManager[Transaction]:
        """A transaction that holds the ledger's write lock from its start; all of it happens or nothing."""
        return self._transaction(_WRITE)

    def read(self) -> AbstractContextManager[Transaction]:
        """A transaction that sees one moment of the ledger and writes nothing."""
        return self._transaction(_READ)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Transaction]:
        self._check_process()
        with self._lock:
            connection = self._current()
            if connection.in_transaction:
                raise LedgerError(self.path, "this thread is reading it just now; finish that first")
            try:
                try:
                    _begin(connection, begin)
                    known = self._recall(connection) if begin == _WRITE else Known()
                    transaction = Transaction(connection, self.key, known)
                    yield transaction
                    transaction.finish()
                    connection.execute("COMMIT")
                except BaseException:
                    self._known = None
                    self._roll_back(connection)
                    raise
            except (sqlite3.Error, UnicodeError) as error:
                raise LedgerError(self.path, _reason(error)) from error

    def _recall(self, connection: sqlite3.Connection) -> Known:
        """What the write before knew, unless another connection has written since."""
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        if self._known is None or self._known.version != version:
            self._known = Known(version)
        return self._known

    def clear_log(self) -> None:
        """Bring what was committed into the file and empty the log, as far as nobody reads it just now."""
        with self._lock, suppress(sqlite3.Error):
            self._current().execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        """Undo what was not committed. A connection that cannot do even that is closed, which does it."""
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            if self.path != MEMORY:
                connection.close()
                self._connection = None

    def _check_process(self) -> None:
        """A connection that was open during a fork is of no use in the child (see `forks`)."""
        if self._pid != os.getpid():
            why = "a ledger in memory does not survive a fork"
            if self.path != MEMORY:
                why = "it was in use while the process forked; fork first, or outside a transaction"
            raise LedgerError(self.path, why)

    def _current(self) -> sqlite3.Connection:
        if self._closed:
            raise LedgerError(self.path, "it is closed")
        if self._connection is None:
            self._connection, self._known = self._open(), None
        return self._connection

    def _open(self) -> sqlite3.Connection:
        connection = _connect(self.path)
        try:
            _check(connection, self.path)
            _check_key(connection, self.key, self.path)
            _make_durable(connection)
            connection.execute("PRAGMA busy_timeout = 0")  # _begin waits, in short steps
        except BaseException as error:
            connection.close()
            # A damaged file may make SQLite complain in bytes that are no text.
            if isinstance(error, sqlite3.Error | UnicodeError):
                raise LedgerError(self.path, _reason(error)) from None
            raise
        return connection


def _create(file: Path) -> None:
    """Make key and ledger, unless somebody else just has; the ledger appears whole, under its name, last."""
    if not file.parent.is_dir():
        raise LedgerError(str(file), f"the folder {file.parent} does not exist")
    draft = file.with_name(f"{file.name}.new")
    try:
        with keyfile.making_in(file.parent):
            if file.exists() or keyfile.key_path(file).exists():
                return
            # What a crash may have left was never a ledger: it has no key.
            draft.unlink(missing_ok=True)
            secret = keyfile.new_key()
            _write_draft(draft, keyfile.Key(secret))
            keyfile.write_private(keyfile.key_path(file), secret)
            os.rename(draft, file)
            keyfile.sync_directory(file.parent)
    except OSError as error:
        raise LedgerError(str(file), f"it cannot be created: {error.strerror}") from None
    except sqlite3.Error as error:
        raise LedgerError(str(file), f"it cannot be created: {error}") from None


def _write_draft(draft: Path, key: keyfile.Key) -> None:
    keyfile.write_private(draft, b"")
    connection = _connect(str(draft))
    try:
        # The journal mode stays in the file, so whoever opens it need not change it. Closing leaves one whole file.
        _make_durable(connection)
        migrate(connection)
        connection.execute("INSERT INTO meta VALUES ('key_check', ?)", (key.hash(b"check", ""),))
    finally:
        connection.close()


def _require_both(file: Path) -> None:
    """Ledger and key must both be there."""
    key = keyfile.key_path(file)
    has_ledger, has_key = file.exists(), key.exists()
    if has_key and not has_ledger:
        with suppress(OSError), keyfile.making_in(file.parent):  # somebody may be between the two just now
            has_ledger = file.exists()
    if not has_ledger and not has_key:
        raise LedgerError(str(file), "there is none; `ldp-budget policy set` or `ldp-budget ledger init` makes one")
    if not has_ledger:
        raise LedgerError(str(file), f"its key {key} is there but the ledger is missing; restore it from a backup")
    if not has_key:
        raise LedgerError(str(file), f"its key {key} is missing; restore it from a backup")


def _begin(connection: sqlite3.Connection, begin: str) -> None:
    """Start a transaction, waiting for other processes; a reading one sees the ledger as it is now.

    SQLite's own waiting backs off to a tenth of a second, so that who has waited longest looks most rarely. Short
    waits, always the same, give every process the same chance: a writer that spends without a break leaves the
    ledger free for a tenth of a millisecond between two spends.

    This is the only place that waits. Once a transaction has begun, whatever it reads or writes finds no lock in its
    way: a reader has its moment of the log, which others may neither overwrite nor mend, and a writer the lock.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(begin)
            if begin == _READ:
                # It really begins with its first statement, and that may find others mending the log.
                connection.execute("SELECT 1 FROM periods").fetchone()
            return
        except sqlite3.OperationalError as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(_STEP_SECONDS)


def _is_busy(error: sqlite3.Error) -> bool:
    """Whether others were in the way. SQLITE_PROTOCOL: they changed the log's index for ten seconds on end."""
    busy = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in busy


def _connect(path: str) -> sqlite3.Connection:
    uri = path if path == MEMORY else Path(path).absolute().as_uri() + "?mode=rw"
    try:
        connection = sqlite3.connect(
            uri, uri=path != MEMORY, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False
        )
        define_windows(connection)
        return connection
    except sqlite3.Error as error:
        raise LedgerError(path, f"it cannot be opened: {error}") from None


def _make_durable(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    # What is erased is overwritten, not only unlinked.
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    # A bulk run visits the whole index of user hashes with every batch.
    connection.execute("PRAGMA cache_size = -65536")


def _check(connection: sqlite3.Connection, path: str) -> None:
    """That this is a ledger of a version this package understands; an older one is brought forward.

    It only reads until it knows that it is a ledger: another program's file is left as it is.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise LedgerError(path, "this is not an ldp-budget ledger")
    if version > SCHEMA_VERSION:
        raise LedgerError(path, f"it was written by a newer version (schema {version}, known {SCHEMA_VERSION})")
    _check_size(connection, path)
    if version < SCHEMA_VERSION:
        migrate(connection)


def _check_size(connection: sqlite3.Connection, path: str) -> None:
    """SQLite reads a last page that was cut off as zeros; a lost account would look like a new one."""
    page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
    log = Path(f"{path}-wal")
    recovers = log.exists() and log.stat().st_size > 0
    if os.path.getsize(path) % page_bytes and not recovers:
        raise LedgerError(path, "it is truncated; restore it from a backup")


def _check_key(connection: sqlite3.Connection, key: keyfile.Key, path: str) -> None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'key_check'").fetchone()
    if row is None or row[0] != key.hash(b"check", ""):
        raise LedgerError(path, f"its key {keyfile.key_path(Path(path))} belongs to another ledger")


def _reason(error: Exception) -> str:
    if isinstance(error, sqlite3.Error) and _is_busy(error):
        return f"others kept it locked for {BUSY_SECONDS:g} s; nothing was charged"
    return f"{error}; nothing was charged"
