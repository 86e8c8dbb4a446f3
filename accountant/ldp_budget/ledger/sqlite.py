"""The ledger in one SQLite file: opening it safely, and transactions that happen whole or not at all."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LedgerError
from . import keyfile
from .schema import APPLICATION_ID, SCHEMA_VERSION, migrate
from .transaction import Transaction

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = ":memory:"
BUSY_SECONDS = 30.0


class SqliteLedger:
    """The store behind an accountant. Safe to share between threads and to use after a fork."""

    def __init__(self, path: str | os.PathLike[str], *, create: bool) -> None:
        self.path = str(path)
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._pid = os.getpid()
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
        with self._lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            self._connection = None

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        """A transaction that holds the ledger's write lock from its start; all of it happens or nothing."""
        with self._transaction("BEGIN IMMEDIATE") as transaction:
            yield transaction

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        """A transaction that sees one moment of the ledger and writes nothing."""
        with self._transaction("BEGIN") as transaction:
            yield transaction

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Transaction]:
        with self._lock:
            connection = self._current()
            try:
                _begin(connection, begin)
                try:
                    transaction = Transaction(connection, self.key)
                    yield transaction
                    transaction.add_link()
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise LedgerError(self.path, _reason(error)) from error

    def _current(self) -> sqlite3.Connection:
        if self._pid != os.getpid():
            if self.path == MEMORY:
                raise LedgerError(MEMORY, "a ledger in memory does not survive a fork")
            # A connection must not cross a fork; the parent's is left alone, not closed.
            self._pid, self._connection = os.getpid(), self._open()
        if self._connection is None:
            raise LedgerError(self.path, "it is closed")
        return self._connection

    def _open(self) -> sqlite3.Connection:
        connection = _connect(self.path)
        try:
            _check(connection, self.path)
            _check_key(connection, self.key, self.path)
            connection.execute("PRAGMA busy_timeout = 2")  # _begin waits, in short steps
        except BaseException:
            connection.close()
            raise
        return connection


def _create(file: Path) -> None:
    """Make key and ledger; the ledger appears whole, under its name, last."""
    if not file.parent.is_dir():
        raise LedgerError(str(file), f"the folder {file.parent} does not exist")
    secret = keyfile.new_key()
    try:
        keyfile.write_private(keyfile.key_path(file), secret)
    except FileExistsError:
        return  # somebody else is making this very ledger; _require_both waits for it
    except OSError as error:
        raise LedgerError(str(file), f"it cannot be created: {error.strerror}") from None
    draft = file.with_name(f"{file.name}.new")
    keyfile.write_private(draft, b"")
    connection = _connect(str(draft))
    migrate(connection)
    connection.execute("INSERT INTO meta VALUES ('key_check', ?)", (keyfile.Key(secret).hash(b"check", ""),))
    # Leaves write-ahead mode, so that all of it is in the one file that is renamed.
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    os.rename(draft, file)
    keyfile.sync_directory(file.parent)


def _require_both(file: Path) -> None:
    """Ledger and key must be there; a moment's grace where another process is making them."""
    deadline = time.monotonic() + 5
    key = keyfile.key_path(file)
    while key.exists() and not file.exists() and file.with_name(f"{file.name}.new").exists():
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)
    if not file.exists() and not key.exists():
        raise LedgerError(str(file), "there is none; `ldp-budget policy set` or `ldp-budget ledger init` makes one")
    if not file.exists():
        raise LedgerError(str(file), f"its key {key} is there but the ledger is missing; restore it from a backup")
    if not key.exists():
        raise LedgerError(str(file), f"its key {key} is missing; restore it from a backup")


def _begin(connection: sqlite3.Connection, begin: str) -> None:
    """Start a transaction, waiting for other processes.

    SQLite's own waiting backs off to a tenth of a second, so that who has waited longest looks most rarely. Short
    waits, always the same, give every process the same chance.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute(begin)
            return
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _connect(path: str) -> sqlite3.Connection:
    uri = path if path == MEMORY else Path(path).absolute().as_uri() + "?mode=rw"
    try:
        connection = sqlite3.connect(
            uri, uri=path != MEMORY, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise LedgerError(path, f"it cannot be opened: {error}") from None
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        # A bulk run visits the whole index of user hashes with every batch.
        connection.execute("PRAGMA cache_size = -65536")
    except sqlite3.Error as error:
        connection.close()
        raise LedgerError(path, _reason(error)) from None
    return connection


def _check(connection: sqlite3.Connection, path: str) -> None:
    """That this is a ledger of a version this package understands; an older one is brought forward."""
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.Error as error:
        raise LedgerError(path, _reason(error)) from None
    if application != APPLICATION_ID:
        raise LedgerError(path, "this is not an ldp-budget ledger")
    if version > SCHEMA_VERSION:
        raise LedgerError(path, f"it was written by a newer version (schema {version}, known {SCHEMA_VERSION})")
    if version < SCHEMA_VERSION:
        migrate(connection)


def _check_key(connection: sqlite3.Connection, key: keyfile.Key, path: str) -> None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'key_check'").fetchone()
    if row is None or row[0] != key.hash(b"check", ""):
        raise LedgerError(path, f"its key {keyfile.key_path(Path(path))} belongs to another ledger")


def _reason(error: sqlite3.Error) -> str:
    if _is_busy(error):
        return f"others kept it locked for {BUSY_SECONDS:g} s; nothing was charged"
    return f"{error}; nothing was acknowledged"
