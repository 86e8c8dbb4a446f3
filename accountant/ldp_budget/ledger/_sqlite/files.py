"""A ledger's file: made with its key, opened only where it can be trusted."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..._files import alone_in, create_private, sync_file, sync_folder
from ...errors import LedgerError, LedgerMissing
from .. import keys
from .names import INDEX, JOURNAL, LOG, companion, refuse_strays
from .schema import APPLICATION_ID, SCHEMA_VERSION, fill, lay_out, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MEMORY = ":memory:"
BUSY_SECONDS = 30.0
_NEW, _COPY = ".new", ".copy"
"""The endings of drafts: of a new ledger, and of a copy of one that exists."""
CHECKPOINT_PAGES = 4000
"""After so many pages of log SQLite brings them into the database; then the log can be started anew."""


def open_connection(path: str, key: keys.Key, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection to a ledger that is there. Raises `LedgerError` where it is none, damaged, or of another key.

    With `read_only`, for a file that nobody writes: without locks, and without a log beside it.
    """
    connection = _connect(path, "mode=ro&immutable=1" if read_only else "mode=rw")
    try:
        _check(connection, path)
        _check_key(connection, key, path)
        _make_durable(connection)
        connection.execute("PRAGMA busy_timeout = 0")  # whoever begins a transaction waits, in short steps
    except BaseException as error:
        connection.close()
        # A damaged file may make SQLite complain in bytes that are no text.
        if isinstance(error, sqlite3.Error | UnicodeError):
            raise failure(path, error) from None
        raise
    return connection


def check_writable(connection: sqlite3.Connection, path: str) -> None:
    """Raise `LedgerError` where a connection can only read; only with the turn to write.

    Where SQLite cannot open a file or the log's index to write, as with too many open files, it opens them to read
    and says nothing. Every connection of the process shares that index, so none could write.
    """
    try:
        connection.execute("UPDATE meta SET value = value WHERE name IS NULL")
    except sqlite3.OperationalError as error:
        if is_busy(error):
            return  # another program writes; that is waited for when a transaction begins
        why = f"it can only be read: {error}. Check its permissions and the limit on open files (ulimit -n)"
        raise LedgerError(path, f"{why}; nothing was charged") from None


def open_memory(key: keys.Key, ledger_id: str) -> sqlite3.Connection:
    """An empty ledger that lives as long as its connection."""
    connection = _connect(MEMORY)
    lay_out(connection)
    fill(connection, key, ledger_id)
    return connection


def check_ledger_id(connection: sqlite3.Connection, key: keys.Key, path: str) -> None:
    """Let the key learn the id of its ledger. Raises `LedgerError` where that was changed."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'ledger_id'").fetchone()
    ledger_id = keys.read_ledger_id(key, row[0]) if row is not None and isinstance(row[0], bytes) else None
    if ledger_id is None:
        raise LedgerError(path, "its table meta was changed: the id in it. Restore the ledger from a backup")
    key.set_ledger_id(ledger_id)


def create(
    file: Path, secret: bytes | None = None, sandbox: bool | None = None, ledger_id: str | None = None
) -> None:
    """Make key and ledger, unless somebody else just has; the ledger appears whole, under its name, last.

    `secret`, `ledger_id`: the key and the id of the ledger which is to be copied here.
    """
    if not file.parent.is_dir():
        raise LedgerError(str(file), f"the folder {file.parent} does not exist")
    with _created(file), alone_in(file.parent):
        if file.exists():
            return
        if has_key(file, secret):
            _finish(file)
            return
        draft = _draft_of(file, _COPY if secret else _NEW)
        secret = secret or keys.new_key(sandbox)
        refuse_strays(file)
        ledger_id = keys.new_ledger_id() if ledger_id is None else ledger_id
        _put(file, draft, secret, lambda: _write_empty(draft, keys.Key(secret), ledger_id))


def copy(connection: sqlite3.Connection, key: keys.Key, file: Path) -> None:
    """Make a copy of a ledger and of its key, of one moment, while others write; it appears under its name, last."""
    if not file.parent.is_dir():
        raise LedgerError(str(file), f"the folder {file.parent} does not exist")
    with _created(file), alone_in(file.parent):
        for name in (file, keys.key_path(file)):
            if os.path.lexists(name):
                raise LedgerError(str(name), "it is there already; name another file")
        refuse_strays(file)
        draft = _draft_of(file, _COPY)
        _put(file, draft, key.secret, lambda: _write_copy(draft, connection))


@contextmanager
def _created(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LedgerError(str(file), f"it cannot be created: {error.strerror}") from None
    except sqlite3.Error as error:
        raise LedgerError(str(file), f"it cannot be created: {error}") from None


def _put(file: Path, draft: Path, secret: bytes, write: Callable[[], None]) -> None:
    """Put a ledger that `write` writes to a draft, and its key, where there is none."""
    # What a crash may have left was never a ledger: it has no key.
    for ending in ("", LOG, INDEX, JOURNAL):
        companion(draft, ending).unlink(missing_ok=True)
    create_private(draft, b"")
    try:
        write()
        sync_folder(file.parent)  # a key without a draft would say that a ledger was lost
        if not keys.key_path(file).exists():
            create_private(keys.key_path(file), secret)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    os.rename(draft, file)
    sync_folder(file.parent)


def _write_copy(draft: Path, connection: sqlite3.Connection) -> None:
    """All pages as they stand, so that a log of the original is found not to belong to the copy."""
    target = _connect(str(draft))
    try:
        target.execute("PRAGMA synchronous = FULL")
        connection.backup(target, progress=_stop_waiting(str(draft)))
        give_log(target)
    finally:
        target.close()


def _finish(file: Path) -> None:
    """Give a new ledger its name where a crash came just before that: its key and its draft are whole.

    Nobody was charged in it yet. The draft of a backup or of a copy is left alone: its ledger may be in use.
    """
    draft = _draft_of(file, _NEW)
    if not draft.exists() or any(companion(draft, ending).exists() for ending in (LOG, INDEX, JOURNAL)):
        return
    try:
        connection = _connect(str(draft), "mode=ro&immutable=1")
        try:
            _check(connection, str(draft))
            _check_key(connection, keys.read_key(file), str(draft))
            is_new = connection.execute("SELECT count(*) FROM journal").fetchone()[0] == 0
            is_new = is_new and connection.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
        finally:
            connection.close()
    except (LedgerError, sqlite3.Error, UnicodeError):
        return
    if is_new:
        refuse_strays(file)
        os.rename(draft, file)
        sync_folder(file.parent)


def _draft_of(file: Path, ending: str) -> Path:
    return file.with_name(f"{file.name}{ending}")


def _stop_waiting(path: str) -> Callable[[int, int, int], None]:
    """Make a check of a copy's steps that raises `LedgerError` after too long without one: Python tries for ever."""
    deadline = time.monotonic() + BUSY_SECONDS

    def check(status: int, remaining: int, total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > deadline:
            raise LedgerError(path, f"it stayed locked for {BUSY_SECONDS:g} s; the copy was not made")

    return check


def _write_empty(draft: Path, key: keys.Key, ledger_id: str) -> None:
    """A draft that is cut off is thrown away, so it need not reach the disk before it is whole."""
    connection = _connect(str(draft))
    try:
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = OFF")
        lay_out(connection)
        fill(connection, key, ledger_id)
        give_log(connection)
    finally:
        connection.close()
    sync_file(draft)


def has_key(file: Path, secret: bytes | None = None) -> bool:
    """Whether a key lies there already; not if it is the given one, as a copy that was stopped leaves it alone."""
    key = keys.key_path(file)
    return key.exists() and (secret is None or file.exists() or key.read_bytes() != secret)


def require_both(file: Path, secret: bytes | None = None) -> None:
    """Ledger and key must both be there; `secret` as for `has_key`."""
    key = keys.key_path(file)
    has_ledger, key_is_there = file.exists(), has_key(file, secret)
    if key_is_there and not has_ledger:
        with suppress(OSError), alone_in(file.parent):  # somebody may be between the two just now
            has_ledger = file.exists()
    if not has_ledger and not key_is_there:
        raise LedgerMissing(str(file))
    if not has_ledger:
        raise LedgerError(str(file), f"its key {key} is there but the ledger is missing; restore it from a backup")
    if not key_is_there:
        raise LedgerError(str(file), f"its key {key} is missing; restore it from a backup")


def is_busy(error: sqlite3.Error) -> bool:
    """Whether others were in the way. SQLITE_PROTOCOL: they changed the log's index for ten seconds on end."""
    return _code(error) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


def has_log(connection: sqlite3.Connection) -> bool:
    """Whether the database is kept with a log (WAL)."""
    mode: str = connection.execute("PRAGMA journal_mode").fetchone()[0]
    return mode == "wal"


def give_log(connection: sqlite3.Connection) -> None:
    """Keep the database with a log; that stays in the file, so whoever opens it need not change it."""
    if not has_log(connection):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # which makes the log


def busy() -> str:
    """Why somebody who has waited gives up."""
    return f"others kept it locked for {BUSY_SECONDS:g} s; nothing was charged"


def _connect(path: str, how: str = "mode=rw") -> sqlite3.Connection:
    uri = path if path == MEMORY else f"{Path(path).absolute().as_uri()}?{how}"
    try:
        return sqlite3.connect(
            uri, uri=path != MEMORY, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False
        )
    except sqlite3.Error as error:
        raise LedgerError(path, f"it cannot be opened: {error}") from None


def _make_durable(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    # What is erased is overwritten, not only unlinked.
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    # A bulk run visits the whole index of user hashes with every batch.
    connection.execute("PRAGMA cache_size = -65536")


def _check(connection: sqlite3.Connection, path: str) -> None:
    """That this is a ledger of a version this package understands. It only reads: what is strange stays as it is."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = version_of(connection)
    if application != APPLICATION_ID:
        raise LedgerError(path, "this is not an ldp-budget ledger")
    if version != SCHEMA_VERSION:
        raise LedgerError(path, f"its tables are of version {version}; this package knows version {SCHEMA_VERSION}")
    _check_size(connection, path)


def _check_size(connection: sqlite3.Connection, path: str) -> None:
    """SQLite reads a last page that was cut off as zeros; a lost account would look like a new one."""
    page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
    log = Path(f"{path}-wal")
    recovers = log.exists() and log.stat().st_size > 0
    if os.path.getsize(path) % page_bytes and not recovers:
        raise LedgerError(path, "it is truncated; restore it from a backup")


def _check_key(connection: sqlite3.Connection, key: keys.Key, path: str) -> None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'key_check'").fetchone()
    if row is None or row[0] != _key_check(key):
        raise LedgerError(path, f"its key {keys.key_path(Path(path))} belongs to another ledger")


def _key_check(key: keys.Key) -> bytes:
    return key.hash(b"check", "")


def failure(ledger: str, error: Exception, *, committing: bool = False) -> LedgerError:
    """What to tell of an error of SQLite, above all whether anything was charged."""
    if isinstance(error, sqlite3.Error) and is_busy(error):
        return LedgerError(ledger, busy())
    if committing and not _came_before_the_end(error):
        why = f"{error}; it may or may not have been charged: ask again by the key"
        return LedgerError(ledger, why, unknown=True)
    return LedgerError(ledger, f"{error}; nothing was charged")


def is_full(error: BaseException | None) -> bool:
    """Whether the disk had no room."""
    return _code(error) & 0xFF == sqlite3.SQLITE_FULL


def _came_before_the_end(error: BaseException) -> bool:
    """Whether an error of a commit left its last page unwritten. Of any other, the page may be on the disk."""
    return _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_READONLY)


def _code(error: BaseException | None) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code
