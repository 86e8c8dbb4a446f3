"""A ledger's file: made with its key, opened only where it can be trusted."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from ..._files import alone_in, create_private, sync_folder
from ...errors import LedgerError, LedgerMissing
from .. import keys
from .schema import APPLICATION_ID, SCHEMA_VERSION, fill, migrate

MEMORY = ":memory:"
BUSY_SECONDS = 30.0


def open_connection(path: str, key: keys.Key) -> sqlite3.Connection:
    """A connection to a ledger that is there. Raises `LedgerError` where it is none, damaged, or of another key."""
    connection = _connect(path)
    try:
        _check(connection, path)
        _check_key(connection, key, path)
        _make_durable(connection)
        connection.execute("PRAGMA busy_timeout = 0")  # whoever begins a transaction waits, in short steps
    except BaseException as error:
        connection.close()
        # A damaged file may make SQLite complain in bytes that are no text.
        if isinstance(error, sqlite3.Error | UnicodeError):
            raise LedgerError(path, reason(error)) from None
        raise
    return connection


def open_memory(key: keys.Key) -> sqlite3.Connection:
    """An empty ledger that lives as long as its connection."""
    connection = _connect(MEMORY)
    migrate(connection)
    fill(connection, key)
    return connection


def create(file: Path) -> None:
    """Make key and ledger, unless somebody else just has; the ledger appears whole, under its name, last."""
    if not file.parent.is_dir():
        raise LedgerError(str(file), f"the folder {file.parent} does not exist")
    draft = file.with_name(f"{file.name}.new")
    try:
        with alone_in(file.parent):
            if file.exists() or keys.key_path(file).exists():
                return
            # What a crash may have left was never a ledger: it has no key.
            draft.unlink(missing_ok=True)
            secret = keys.new_key()
            _write_draft(draft, keys.Key(secret))
            create_private(keys.key_path(file), secret)
            os.rename(draft, file)
            sync_folder(file.parent)
    except OSError as error:
        raise LedgerError(str(file), f"it cannot be created: {error.strerror}") from None
    except sqlite3.Error as error:
        raise LedgerError(str(file), f"it cannot be created: {error}") from None


def _write_draft(draft: Path, key: keys.Key) -> None:
    create_private(draft, b"")
    connection = _connect(str(draft))
    try:
        # The journal mode stays in the file, so whoever opens it need not change it. Closing leaves one whole file.
        _make_durable(connection)
        migrate(connection)
        fill(connection, key)
    finally:
        connection.close()


def require_both(file: Path) -> None:
    """Ledger and key must both be there."""
    key = keys.key_path(file)
    has_ledger, has_key = file.exists(), key.exists()
    if has_key and not has_ledger:
        with suppress(OSError), alone_in(file.parent):  # somebody may be between the two just now
            has_ledger = file.exists()
    if not has_ledger and not has_key:
        raise LedgerMissing(str(file))
    if not has_ledger:
        raise LedgerError(str(file), f"its key {key} is there but the ledger is missing; restore it from a backup")
    if not has_key:
        raise LedgerError(str(file), f"its key {key} is missing; restore it from a backup")


def is_busy(error: sqlite3.Error) -> bool:
    """Whether others were in the way. SQLITE_PROTOCOL: they changed the log's index for ten seconds on end."""
    busy = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in busy


def _connect(path: str) -> sqlite3.Connection:
    uri = path if path == MEMORY else Path(path).absolute().as_uri() + "?mode=rw"
    try:
        return sqlite3.connect(
            uri, uri=path != MEMORY, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False
        )
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


def _check_key(connection: sqlite3.Connection, key: keys.Key, path: str) -> None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'key_check'").fetchone()
    if row is None or row[0] != key.hash(b"check", ""):
        raise LedgerError(path, f"its key {keys.key_path(Path(path))} belongs to another ledger")


def reason(error: Exception) -> str:
    if isinstance(error, sqlite3.Error) and is_busy(error):
        return f"others kept it locked for {BUSY_SECONDS:g} s; nothing was charged"
    return f"{error}; nothing was charged"
