"""What must be true of the names of a ledger's files before it is made or opened.

A ledger's file: made with its key, opened only where it can be trusted.

Whose turn it is to write to a ledger: one lock, on its key file, before any of SQLite's.

Whoever has the turn may write and checkpoint; nobody else of all threads and processes does either meanwhile. So what
a commit has put on the disk cannot be taken away before that was checked, and two things need no thought:

- Checkpoints and commits never overlap. That rules out the race on resetting the log which SQLite's notes describe
  (https://sqlite.org/wal.html, "The WAL-Reset Bug"; versions 3.7.0 to 3.51.2, but for 3.44.6 and 3.50.7): it takes a
  commit that starts the log anew while a checkpoint of another connection is under way. The one checkpoint outside of
  a turn is that of the last connection when it closes: SQLite makes it alone with the file (see `place`).
- Who waits for the turn holds no moment of the log, so the log can be started anew between any two transactions.

It is a lock of `flock`: it belongs to the descriptor, and not, as SQLite's do, to whatever the process opens and
closes. The key is there as long as the ledger is, in the same folder, and SQLite never opens it.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..._files import alone_in, create_private, sync_file, sync_folder
from ...errors import LedgerError, LedgerMissing
from .. import keyfile
from .schema import APPLICATION_ID, SCHEMA_VERSION, create_tables, fill, version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


LOG, INDEX, JOURNAL = "-wal", "-shm", "-journal"
"""What SQLite puts beside a database: its log, the log's index, and, in another mode than ours, a journal."""

LINKED = "it has more than one name (hard links), and each would have a log of its own; remove the others"

_MOUNTS = Path("/proc/self/mountinfo")


def companion(file: Path, ending: str) -> Path:
    return file.with_name(file.name + ending)


def refuse_strays(file: Path) -> None:
    """Where no ledger is, nothing of one may lie: a new one would take it for its own."""
    for ending in (LOG, INDEX, JOURNAL):
        if os.path.lexists(companion(file, ending)):
            stray = companion(file, ending)
            why = f"there is none, but {stray} lies there and belongs to one"
            raise LedgerError(str(file), f"{why}; restore that, or give a new ledger another name")


def check_names(file: Path) -> None:
    """That the ledger has one name and no others, and no stranger's journal beside it."""
    journal = companion(file, JOURNAL)
    if journal.exists():
        raise LedgerError(str(file), f"{journal} lies beside it, which is none of its own; move it away")
    if file.stat().st_nlink != 1:
        raise LedgerError(str(file), LINKED)
    if _is_mount_point(file):
        raise LedgerError(str(file), "it is mounted as a single file, and would have two logs; mount its folder")


def check_modes(file: Path) -> None:
    """That a ledger, its key and its log are their owner's alone."""
    private = (file, keyfile.key_path(file), companion(file, LOG), companion(file, INDEX))
    loose = [str(name) for name in private if name.exists() and stat.S_IMODE(name.stat().st_mode) & 0o077]
    if loose:
        names = shlex.join(loose)
        raise LedgerError(str(file), f"others than its owner have rights to it; type: chmod 600 {names}")


def is_read_only(file: Path) -> bool:
    """Whether file or folder cannot be written; then nothing can be put beside it, and SQLite needs no log."""
    effective = os.access in os.supports_effective_ids
    read_only = not (
        os.access(file, os.W_OK, effective_ids=effective) and os.access(file.parent, os.W_OK, effective_ids=effective)
    )
    if read_only:
        refuse_log(file)
    return read_only


def refuse_log(file: Path) -> None:
    """Raise `LedgerError` where a file that cannot be written has a log: what stands in that would not be read.

    Also where the log is empty: another process has the ledger open, and writes to it next.
    """
    for name in (companion(file, LOG), companion(file, INDEX)):
        if name.exists():
            why = f"it cannot be written from here, and without that its log {name} cannot be read"
            raise LedgerError(
                str(file),
                f"{why}: balances would be those of the past. If the ledger is in use, ask the service or read a copy"
                " made by: ldp-budget ledger backup FILE",
            )


def _is_mount_point(file: Path) -> bool:
    """Return True if a file is mounted by itself, as far as the system says so."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # no /proc
        return file.stat().st_dev != file.parent.stat().st_dev or _is_root_of_mount(file)
    return str(file) in {_unescaped(line.split(" ")[4]) for line in lines}


def _is_root_of_mount(file: Path) -> bool:
    """The same by statx(2), which Python does not have: Linux 5.8 and later say it; others say no."""
    import ctypes

    statx = getattr(ctypes.CDLL(None), "statx", None)
    found = ctypes.create_string_buffer(256)
    if statx is None or statx(-100, os.fsencode(file), 0, 0, found):  # AT_FDCWD
        return False
    attributes = int.from_bytes(found.raw[8:16], sys.byteorder)
    return bool(attributes & 0x2000)  # STATX_ATTR_MOUNT_ROOT


def _unescaped(name: str) -> str:
    """A name of that list, where space, tab, line end and backslash are written in octal."""
    for code in ("040", "011", "012", "134"):
        name = name.replace(f"\\{code}", chr(int(code, 8)))
    return name


MEMORY = ":memory:"
BUSY_SECONDS = 30.0
_NEW, _COPY = ".new", ".copy"
"""The endings of drafts: of a new ledger, and of a copy of one that exists."""
CHECKPOINT_PAGES = 4000
"""After so many pages of log SQLite brings them into the database; then the log can be started anew."""


def open_connection(path: str, key: keyfile.Key, *, read_only: bool = False) -> sqlite3.Connection:
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


def open_memory(key: keyfile.Key, ledger_id: str) -> sqlite3.Connection:
    """An empty ledger that lives as long as its connection."""
    connection = _connect(MEMORY)
    create_tables(connection)
    fill(connection, key, ledger_id)
    return connection


def check_ledger_id(connection: sqlite3.Connection, key: keyfile.Key, path: str) -> None:
    """Let the key learn the id of its ledger. Raises `LedgerError` where that was changed."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'ledger_id'").fetchone()
    ledger_id = keyfile.read_ledger_id(key, row[0]) if row is not None and isinstance(row[0], bytes) else None
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
        secret = secret or keyfile.new_key(sandbox)
        refuse_strays(file)
        ledger_id = keyfile.new_ledger_id() if ledger_id is None else ledger_id
        _put(file, draft, secret, lambda: _write_empty(draft, keyfile.Key(secret), ledger_id))


def copy(connection: sqlite3.Connection, key: keyfile.Key, file: Path) -> None:
    """Make a copy of a ledger and of its key, of one moment, while others write; it appears under its name, last."""
    if not file.parent.is_dir():
        raise LedgerError(str(file), f"the folder {file.parent} does not exist")
    with _created(file), alone_in(file.parent):
        for name in (file, keyfile.key_path(file)):
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
        if not keyfile.key_path(file).exists():
            create_private(keyfile.key_path(file), secret)
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
        enable_wal(target)
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
            _check_key(connection, keyfile.read_key(file), str(draft))
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


def _write_empty(draft: Path, key: keyfile.Key, ledger_id: str) -> None:
    """A draft that is cut off is thrown away, so it need not reach the disk before it is whole."""
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
    """Whether a key lies there already; not if it is the given one, as a copy that was stopped leaves it alone."""
    key = keyfile.key_path(file)
    return key.exists() and (secret is None or file.exists() or key.read_bytes() != secret)


def require_both(file: Path, secret: bytes | None = None) -> None:
    """Ledger and key must both be there; `secret` as for `has_key`."""
    key = keyfile.key_path(file)
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


def enable_wal(connection: sqlite3.Connection) -> None:
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


def _check_key(connection: sqlite3.Connection, key: keyfile.Key, path: str) -> None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'key_check'").fetchone()
    if row is None or row[0] != _key_check(key):
        raise LedgerError(path, f"its key {keyfile.key_path(Path(path))} belongs to another ledger")


def _key_check(key: keyfile.Key) -> bytes:
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


if sys.platform != "win32":
    import fcntl  # here, as it is needed while the interpreter ends, too

STEP_SECONDS = 0.0003

_held: dict[str, int] = {}
"""Which thread has the turn, by ledger."""


class WriterLock:
    """The right to write to the ledger at a path, for one thread at a time."""

    def __init__(self, ledger: str, key: keyfile.Key) -> None:
        self._ledger = ledger
        self._key = key
        self._file = keyfile.key_path(Path(ledger))
        self._path = str(self._file)  # faster to look for
        self._descriptor = -1
        self._open()

    def take(self, deadline: float) -> None:
        """Wait for the turn, in short steps, always the same, so that whoever waits has the same chance."""
        while not self.try_to_take():
            self._wait(deadline)

    def try_to_take(self) -> bool:
        """Take the turn if nobody has it; return True if it was taken."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise LedgerError(self._ledger, f"its key {self._file} cannot be locked: {error.strerror}") from None
        if not self._is_there():
            self._open()
            return False
        _held[self._ledger] = threading.get_ident()
        return True

    def release(self) -> None:
        """Let others write; without the turn this does nothing."""
        if _held.get(self._ledger) == threading.get_ident():
            del _held[self._ledger]
        if self._descriptor >= 0:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, -1  # the number may be another file's at once
        if descriptor >= 0:
            os.close(descriptor)

    def leave(self) -> None:
        """Close it in the child of a fork: the turn, if somebody has it, is the parent's."""
        _held.pop(self._ledger, None)
        self.close()

    def _wait(self, deadline: float) -> None:
        if _held.get(self._ledger) == threading.get_ident():
            raise LedgerError(self._ledger, "this thread is writing to it just now; finish that first")
        if time.monotonic() > deadline:
            raise LedgerError(self._ledger, busy())
        time.sleep(STEP_SECONDS)

    def _open(self) -> None:
        """Open the key file, at first or because another one of the same content has taken its place."""
        if not keyfile.read_key(Path(self._ledger)).is_that_of(self._key):
            raise LedgerError(self._ledger, f"its key {self._file} was replaced by another one while it was open")
        try:
            before, self._descriptor = self._descriptor, os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise LedgerError(self._ledger, f"its key {self._file} cannot be opened: {error.strerror}") from None
        self._opened = os.fstat(self._descriptor)
        if before >= 0:
            os.close(before)

    def _is_there(self) -> bool:
        """Whether the key that is locked is the one that others find."""
        try:
            return os.path.samestat(self._opened, os.stat(self._path))
        except OSError:
            return False
