"""Path checks and connections of a ledger in a SQLite file.

The module has two parts:

- Checks of paths, links, mounts and permissions, before a ledger is created or opened.
- Connections: create a ledger with its key, copy it, and open it only if it passes its checks.

Only the holder of the writer lock (`file_guard.WriterLock`) writes and checkpoints; all other threads and processes
wait. So nothing can remove what a commit wrote to the disk before that commit was checked. Two more things follow:

- Checkpoints and commits never overlap. This rules out the race that SQLite's notes describe as "The WAL-Reset Bug"
  (https://sqlite.org/wal.html; versions 3.7.0 to 3.51.2, except 3.44.6 and 3.50.7). The race needs a commit that
  resets the WAL during a checkpoint of another connection. One checkpoint happens without the lock: that of the last
  connection when it closes. SQLite then has the file to itself (see `file_guard`).
- A process that waits for the lock holds no snapshot of the WAL. So the WAL can be reset between any two
  transactions.

An `flock` belongs to its file descriptor. SQLite's POSIX locks belong to the process, which loses them when it closes
any descriptor of the file. The key file exists as long as the ledger, in the same folder, and SQLite never opens it.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..._files import alone_in, create_private, others_have_access, sync_file, sync_folder
from ...errors import LedgerError, LedgerMissing, LedgerUpgraded
from .. import key_file, keyed_hashing
from ..storage import of_a_candidate, other_tables
from . import schema
from .fork_gate import GatedConnection
from .schema import APPLICATION_ID, CANDIDATE_ID, SCHEMA_VERSION, create_tables, fill, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


# -- paths, links, mounts and permissions --------------------------------------------------------------------

LOG, INDEX, JOURNAL = "-wal", "-shm", "-journal"
"""Endings of SQLite's companion files: the WAL, its index, and the rollback journal of a mode not used here."""

LINKED = "it has more than one name (hard links), and each would have its own log. Remove the other names"

_MOUNTS = Path("/proc/self/mountinfo")


def companion(file: Path, ending: str) -> Path:
    return file.with_name(file.name + ending)


def refuse_strays(file: Path) -> None:
    """Raise `LedgerError` if companion files exist without a database: a new ledger would use them as its own."""
    for ending in (LOG, INDEX, JOURNAL):
        if os.path.lexists(companion(file, ending)):
            stray = companion(file, ending)
            why = f"it does not exist, but {stray} of an earlier ledger does"
            raise LedgerError(str(file), why, hint="Restore that ledger, or choose another name for a new one.")


def check_names(file: Path) -> None:
    """Raise `LedgerError` if the ledger has a second name, a foreign journal or a mount of its own."""
    journal = companion(file, JOURNAL)
    if journal.exists():
        raise LedgerError(str(file), f"{journal} does not belong to it", hint="Move that file away.")
    if file.stat().st_nlink != 1:
        raise LedgerError(str(file), LINKED)
    if _is_mount_point(file):
        raise LedgerError(
            str(file), "it is mounted as a single file, and would have two logs", hint="Mount its folder."
        )


def check_modes(file: Path) -> None:
    """Raise `LedgerError` if other users have rights to the ledger, its key or its WAL."""
    key = key_file.key_path(file)
    private = {file: "it", key: f"its key file {key}"}
    private |= {name: f"its log {name}" for name in (companion(file, LOG), companion(file, INDEX))}
    loose = [name for name in private if name.exists() and others_have_access(name)]
    if loose:
        why = f"other users have access to {' and '.join(private[name] for name in loose)}"
        raise LedgerError(str(file), why, hint=f"Run: chmod 600 {shlex.join(map(str, loose))}")


def is_read_only(file: Path) -> bool:
    """True if the file or its folder is read-only. Then no companion file can be created, and SQLite needs no WAL."""
    effective = os.access in os.supports_effective_ids
    read_only = not (
        os.access(file, os.W_OK, effective_ids=effective) and os.access(file.parent, os.W_OK, effective_ids=effective)
    )
    if read_only:
        refuse_log(file)
    return read_only


def refuse_log(file: Path) -> None:
    """Raise `LedgerError` if a read-only file has a WAL: the entries in the WAL would not be read.

    An empty WAL is refused too: another process has the ledger open and may write to it next.
    """
    for name in (companion(file, LOG), companion(file, INDEX)):
        if name.exists():
            raise LedgerError(
                str(file),
                f"it cannot be written from here, so its log {name} cannot be read and balances would be outdated",
                hint="If the ledger is in use, ask the service, or read a copy made by: ldp-budget ledger backup FILE",
            )


def _is_mount_point(file: Path) -> bool:
    """Return True if the file itself is a mount point, as far as the system reports it."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # no /proc
        return file.stat().st_dev != file.parent.stat().st_dev or _is_root_of_mount(file)
    return str(file) in {_unescaped(line.split(" ")[4]) for line in lines}


def _is_root_of_mount(file: Path) -> bool:
    """Return True if statx(2) reports a mount point. Linux 5.8 and later report it; other systems return False.

    Python has no statx of its own.
    """
    import ctypes

    statx = getattr(ctypes.CDLL(None), "statx", None)
    found = ctypes.create_string_buffer(256)
    if statx is None or statx(-100, os.fsencode(file), 0, 0, found):  # AT_FDCWD
        return False
    attributes = int.from_bytes(found.raw[8:16], sys.byteorder)
    return bool(attributes & 0x2000)  # STATX_ATTR_MOUNT_ROOT


def _unescaped(name: str) -> str:
    """Decode a path of the mount table, which writes space, tab, line end and backslash in octal."""
    for code in ("040", "011", "012", "134"):
        name = name.replace(f"\\{code}", chr(int(code, 8)))
    return name


# -- connections ---------------------------------------------------------------------------------------------

MEMORY = ":memory:"
STEP_SECONDS = 0.0003
"""Pause between two attempts to get a lock."""

BUSY_SECONDS = 30.0
_NEW, _COPY = ".new", ".copy"
"""Endings of draft files: of a new ledger, and of a copy of an existing one."""
_READ_KILOBYTES, _WRITE_KILOBYTES = 8_192, 65_536
"""The pages that a connection keeps. A long read uses most pages once, and a move has four connections open."""
CHECKPOINT_PAGES = 4000
"""WAL size, in pages, at which SQLite checkpoints; after that the WAL can be reset."""


def open_connection(
    path: str, key: keyed_hashing.Key, *, read_only: bool = False, upgrade: bool = False
) -> GatedConnection:
    """Return a connection to an existing ledger; with `upgrade` also to one that migrations make current.

    Raises `LedgerError` if the file is not a ledger, is damaged, or belongs to another key. With `read_only`, the
    connection takes no locks and makes no WAL: use it only for a file that no process writes.
    """
    connection = _connect(path, "mode=ro&immutable=1" if read_only else "mode=rw")
    try:
        _check(connection, path, upgrade)
        _check_key(connection, key, path)
        _make_durable(connection)
        connection.execute("PRAGMA busy_timeout = 0")  # `_begin` in `store` waits instead, in short steps
    except BaseException as error:
        connection.close()
        # For a damaged file, SQLite's error message may hold bytes that are not valid text.
        if isinstance(error, sqlite3.Error | UnicodeError):
            raise failure(path, error) from None
        raise
    return connection


def check_writable(connection: sqlite3.Connection, path: str) -> None:
    """Raise `LedgerError` if a connection can only read. Call it only while holding the writer lock.

    If SQLite cannot open a file or the WAL index for writing, it silently opens them for reading. Too many open files
    are one such cause. All connections of the process share that index, so none of them could write.
    """
    try:
        connection.execute("UPDATE meta SET value = value WHERE name IS NULL")
    except sqlite3.OperationalError as error:
        if is_busy(error):
            return  # another program writes; the begin of a transaction waits for it
        why = f"it can only be read: {error}. Nothing was charged."
        hint = "Check its permissions and the limit on open files (ulimit -n)."
        raise LedgerError(path, why, hint=hint) from None
    except sqlite3.DatabaseError as error:  # the file was overwritten
        raise failure(path, error) from None


def open_memory(key: keyed_hashing.Key, ledger_id: str) -> GatedConnection:
    """Return a connection to a new, empty ledger in memory; closing it deletes the ledger."""
    connection = _connect(MEMORY)
    create_tables(connection)
    fill(connection, key, ledger_id)
    return connection


def check_ledger_id(connection: sqlite3.Connection, key: keyed_hashing.Key, path: str) -> None:
    """Set the ledger id of a key from the table meta. Raises `LedgerError` if the stored id was changed."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'ledger_id'").fetchone()
    ledger_id = keyed_hashing.read_ledger_id(key, row[0]) if row is not None and isinstance(row[0], bytes) else None
    if ledger_id is None:
        raise LedgerError(path, "its table meta was changed: the id in it", hint="Restore the ledger from a backup.")
    key.set_ledger_id(ledger_id)


def create(
    file: Path, secret: bytes | None = None, sandbox: bool | None = None, ledger_id: str | None = None
) -> None:
    """Create a key and a ledger, unless another process has just created them.

    The ledger gets its name last, when it is complete. To copy a ledger here, give its key as `secret` and its id as
    `ledger_id`.
    """
    if not file.parent.is_dir():
        raise LedgerError(str(file), f"the folder {file.parent} does not exist", hint="Create it first.")
    refuse_folder(file)
    with _created(file), alone_in(file.parent):
        if file.exists():
            return
        if has_key(file, secret):
            _finish(file)
            return
        draft = _draft_of(file, _COPY if secret else _NEW)
        secret = secret or keyed_hashing.new_key(sandbox)
        refuse_strays(file)
        ledger_id = keyed_hashing.new_ledger_id() if ledger_id is None else ledger_id
        _put(file, draft, secret, lambda: _write_empty(draft, keyed_hashing.Key(secret), ledger_id))


def copy(connection: sqlite3.Connection, key: keyed_hashing.Key, file: Path) -> None:
    """Copy a ledger and its key as of one moment, while other processes write. The copy gets its name last."""
    if not file.parent.is_dir():
        raise LedgerError(str(file), f"the folder {file.parent} does not exist", hint="Create it first.")
    with _created(file), alone_in(file.parent):
        for name in (file, key_file.key_path(file)):
            if os.path.lexists(name):
                raise LedgerError(str(name), "it already exists. Nothing was written.", hint="Choose another file.")
        refuse_strays(file)
        draft = _draft_of(file, _COPY)
        _put(file, draft, key.secret, lambda: write_copy(draft, connection))


@contextmanager
def _created(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LedgerError(str(file), f"it cannot be created: {error.strerror}") from None
    except sqlite3.Error as error:
        raise LedgerError(str(file), f"it cannot be created: {error}") from None


def _put(file: Path, draft: Path, secret: bytes, write: Callable[[], None]) -> None:
    """Let `write` fill a draft, then store its key and rename the draft to the ledger's name."""
    # A draft that a crash left behind was never a ledger: it has no key.
    for ending in ("", LOG, INDEX, JOURNAL):
        companion(draft, ending).unlink(missing_ok=True)
    create_private(draft, b"")
    try:
        write()
        sync_folder(file.parent)  # a key without a draft would mean that a ledger was lost
        if not key_file.key_path(file).exists():
            create_private(key_file.key_path(file), secret)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    os.rename(draft, file)
    sync_folder(file.parent)


def write_copy(draft: Path, connection: sqlite3.Connection) -> None:
    """Copy all pages unchanged, so that a WAL of the original is later detected as not belonging to the copy."""
    target = _connect(str(draft))
    try:
        target.execute("PRAGMA synchronous = FULL")
        connection.backup(target, progress=_stop_waiting(str(draft)))
        enable_wal(target)
    finally:
        target.close()


def _finish(file: Path) -> None:
    """Rename the draft of a new ledger if a crash prevented that: its key and its draft are complete.

    Such a ledger has no charges yet. The draft of a backup or a copy is left alone: its ledger may be in use.
    """
    draft = _draft_of(file, _NEW)
    if not draft.exists() or any(companion(draft, ending).exists() for ending in (LOG, INDEX, JOURNAL)):
        return
    try:
        connection = _connect(str(draft), "mode=ro&immutable=1")
        try:
            _check(connection, str(draft))
            _check_key(connection, key_file.read_key(file), str(draft))
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
    """Return a progress callback that raises `LedgerError` if a backup stays locked too long.

    Without it, Python's `backup` retries forever.
    """
    deadline = time.monotonic() + BUSY_SECONDS

    def check(status: int, remaining: int, total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > deadline:
            raise LedgerError(path, f"it was locked for {BUSY_SECONDS:g} s. The copy was not made.")

    return check


def _write_empty(draft: Path, key: keyed_hashing.Key, ledger_id: str) -> None:
    """Write an empty ledger to a draft and sync it once at the end; an incomplete draft is discarded anyway."""
    connection = _connect(str(draft))
    try:
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = OFF")
        create_tables(connection)
        fill(connection, key, ledger_id)
        enable_wal(connection)
    finally:
        connection.close()
    sync_file(draft)


def has_key(file: Path, secret: bytes | None = None) -> bool:
    """True if the ledger's key file exists.

    The key of `secret` without a ledger does not count: an interrupted copy leaves it behind.
    """
    key = key_file.key_path(file)
    return key.exists() and (secret is None or file.exists() or key.read_bytes() != secret)


def refuse_folder(file: Path) -> None:
    """Raise `LedgerError` if a folder has the path of the ledger."""
    if file.is_dir():
        hint = f"Name a file, such as {file / 'budget.db'}."
        raise LedgerError(str(file), "this is a folder, and a ledger is a file", hint=hint)


def require_both(file: Path, secret: bytes | None = None) -> None:
    """Raise `LedgerError` unless both the ledger and its key exist; `secret` as for `has_key`."""
    refuse_folder(file)
    key = key_file.key_path(file)
    has_ledger, key_is_there = file.exists(), has_key(file, secret)
    if key_is_there and not has_ledger:
        with suppress(OSError), alone_in(file.parent):  # another process may be between the two steps of creating it
            has_ledger = file.exists()
    if not has_ledger and not key_is_there:
        raise LedgerMissing(str(file))
    if not has_ledger:
        raise LedgerError(str(file), f"its key file {key} exists, but the ledger is missing", hint=_RESTORE)
    if not key_is_there:
        if file.stat().st_size and not _is_database(file):
            raise LedgerError(str(file), "this is not an ldp-budget ledger", hint=_NAME)
        if not file.stat().st_size:
            raise LedgerError(str(file), "the file is empty, and no ledger", hint=_EMPTY)
        raise LedgerError(str(file), f"its key file {key} is missing", hint=_RESTORE)


_NAME = "Name a ledger, such as budget.db."
_EMPTY = (
    "If it never was a ledger, delete it and run the command again. If it was, restore it from a backup with its key."
)
_RESTORE = "Restore it from a backup."


def _is_database(file: Path) -> bool:
    """True if a file begins like a SQLite database, or cannot be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(16) == b"SQLite format 3\0"
    except OSError:
        return True


def is_busy(error: sqlite3.Error) -> bool:
    """True if a lock of another connection caused the error.

    SQLITE_PROTOCOL means that other processes changed the WAL index for ten seconds without a break.
    """
    return _code(error) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


def has_log(connection: sqlite3.Connection) -> bool:
    """True if the database is in WAL mode."""
    mode: str = connection.execute("PRAGMA journal_mode").fetchone()[0]
    return mode == "wal"


def enable_wal(connection: sqlite3.Connection) -> None:
    """Switch the database to WAL mode. The file stores the mode, so later connections need not set it."""
    if not has_log(connection):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # creates the WAL


def busy() -> str:
    """Return the reason that an error states after a wait for a lock has timed out."""
    return f"other processes kept it locked for {BUSY_SECONDS:g} s. Nothing was charged."


def _connect(path: str, how: str = "mode=rw") -> GatedConnection:
    uri = path if path == MEMORY else f"{Path(path).absolute().as_uri()}?{how}"
    try:
        return sqlite3.connect(
            uri,
            uri=path != MEMORY,
            isolation_level=None,
            timeout=BUSY_SECONDS,
            check_same_thread=False,
            factory=GatedConnection,
        )
    except sqlite3.Error as error:
        raise LedgerError(path, f"it cannot be opened: {error}") from None


def _make_durable(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA synchronous = FULL")
    # Overwrite erased content, not only unlink it.
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA cache_size = -{_READ_KILOBYTES}")


def cache_for_writing(connection: sqlite3.Connection) -> None:
    """Let the connection that writes keep more pages: a bulk run reads the whole index of user hashes every time."""
    connection.execute(f"PRAGMA cache_size = -{_WRITE_KILOBYTES}")


def check_version(connection: sqlite3.Connection, path: str) -> None:
    """Raise `LedgerUpgraded` if a newer ldp-budget has upgraded the tables. A transaction calls it first."""
    version = version_of(connection)
    if version > SCHEMA_VERSION:
        raise LedgerUpgraded(path, SCHEMA_VERSION, version)


def _check(connection: sqlite3.Connection, path: str, upgrade: bool = False) -> None:
    """Raise `LedgerError` unless this is a ledger of a known schema version. It only reads the file."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application == CANDIDATE_ID:
        raise of_a_candidate(path)
    if application != APPLICATION_ID:
        raise LedgerError(path, "this is not an ldp-budget ledger", hint=_NAME)
    version = version_of(connection)
    migrates = SCHEMA_VERSION - len(schema.MIGRATIONS) <= version < SCHEMA_VERSION
    if version != SCHEMA_VERSION and not (migrates and upgrade):
        raise other_tables(path, SCHEMA_VERSION, version, migrates=migrates)
    _check_size(connection, path)


def _check_size(connection: sqlite3.Connection, path: str) -> None:
    """Raise `LedgerError` if the file is truncated.

    SQLite reads a truncated last page as zeros, so a lost account would look like a new one.
    """
    page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
    log = Path(f"{path}-wal")
    recovers = log.exists() and log.stat().st_size > 0
    if os.path.getsize(path) % page_bytes and not recovers:
        raise LedgerError(path, "it is truncated", hint=_RESTORE)


def _check_key(connection: sqlite3.Connection, key: keyed_hashing.Key, path: str) -> None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'key_check'").fetchone()
    if row is None or row[0] != _key_check(key):
        raise LedgerError(path, f"its key file {key_file.key_path(Path(path))} belongs to another ledger")


def _key_check(key: keyed_hashing.Key) -> bytes:
    return key.hash(b"check", "")


def failure(ledger: str, error: Exception, *, committing: bool = False) -> LedgerError:
    """Convert an error of SQLite to a `LedgerError` that says if anything was charged."""
    if isinstance(error, sqlite3.Error) and is_busy(error):
        return LedgerError(ledger, busy())
    if committing and not _came_before_the_end(error):
        why = f"{error}. It is unknown whether it was charged."
        return LedgerError(ledger, why, unknown=True, hint="Repeat the request with the same key.")
    return LedgerError(ledger, f"{error}. Nothing was charged.")


def is_full(error: BaseException | None) -> bool:
    """True if the disk was full."""
    return _code(error) & 0xFF == sqlite3.SQLITE_FULL


def _came_before_the_end(error: BaseException) -> bool:
    """True if a failed commit did not write its last page. After other errors the page may be on the disk."""
    return _code(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_READONLY)


def _code(error: BaseException | None) -> int:
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code
