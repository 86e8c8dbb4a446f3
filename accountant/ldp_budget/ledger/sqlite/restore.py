"""Restore of a ledger in a SQLite file from a backup, while no process has it open.

A copy by hand onto an open ledger mixes two states: the running processes continue with what they know, and the WAL of
one state lies next to the database of another. `restore` therefore first locks the ledger against all other users.
It verifies the backup in a draft next to the ledger, then puts the old files aside, and gives the draft the ledger's
name last. After a crash, the ledger is the old one, the new one, or missing with its key file there, which nothing
opens; then `restore` is run again.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..._files import alone_in, create_private, sync_folder
from ...errors import LedgerError
from .. import key_file, keyed_hashing
from . import connection as connections
from .connection import INDEX, JOURNAL, LOG, companion, refuse_folder
from .file_guard import GUARDED_BYTES, WriterLock
from .fork_gate import section

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

if sys.platform != "win32":
    import fcntl

_DRAFT, _ASIDE = ".restore", ".before-restore-"
_IN_USE = "another process has it open. Nothing was changed"
_STOP = "Stop the service, and every other program that uses the ledger, first."


def restore(path: str, backup: str, verify: Callable[[str], None]) -> str | None:
    """Replace the ledger at `path` by a backup; return the new name of the old ledger, if there was one.

    The key is that of the backup, `BACKUP.key`; if that file is missing, the key of the ledger. `verify` gets the path
    of a copy of the backup with its key, and raises an error if the copy must not become the ledger.

    Raises:
        LedgerError: the ledger is in use, the backup is missing or is no ledger, or its key does not fit. Nothing was
            changed.
    """
    file, source = Path(os.path.realpath(path)), Path(os.path.realpath(backup))
    for each in (file, source):
        refuse_folder(each)
    if not source.exists():
        raise LedgerError(str(source), "this backup does not exist. Nothing was changed", hint="Name a backup.")
    if file.exists() and file.samefile(source):
        raise LedgerError(str(file), "the backup is the ledger itself. Nothing was changed", hint="Name a backup.")
    if not file.parent.is_dir():
        raise LedgerError(str(file), f"the folder {file.parent} does not exist", hint="Create it first.")
    key = _key_of(file, source)
    try:
        with section(), alone_in(file.parent), _locked(file, source):
            draft = _draft(file, source, key)
            try:
                verify(str(draft))
                return _replace(file, draft, key)
            finally:
                _remove(draft)
    except OSError as error:
        raise LedgerError(str(file), f"it cannot be restored: {error.strerror}") from None


def _key_of(file: Path, source: Path) -> keyed_hashing.Key:
    """Return the key of the restored ledger. Raises `LedgerError` if there is none, or if it is another ledger's."""
    found = [key_file.read_key(each) for each in (source, file) if key_file.key_path(each).exists()]
    if not found:
        why = f"neither {key_file.key_path(source)} nor {key_file.key_path(file)} exists. Nothing was changed"
        raise LedgerError(str(file), why, hint="Put the copy of the key file next to the backup.")
    if not found[0].is_that_of(found[-1]):
        why = f"the key files {key_file.key_path(source)} and {key_file.key_path(file)} belong to different ledgers"
        raise LedgerError(str(file), f"{why}. Nothing was changed", hint="Name a backup of this ledger.")
    return found[0]


@contextmanager
def _locked(file: Path, source: Path) -> Iterator[None]:
    """Keep all processes out of a ledger. Raises `LedgerError` if one has it open."""
    if not file.exists():
        yield
        return
    if not key_file.key_path(file).exists():
        raise LedgerError(
            str(file), f"its key file is missing. It is not known to be a ledger of {source}", hint="Move it away."
        )
    turn = WriterLock(str(file), key_file.read_key(file))
    descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    try:
        if not turn.try_to_take() or not _lock_alone(descriptor):
            raise LedgerError(str(file), _IN_USE, hint=_STOP)
        yield
    finally:
        os.close(descriptor)
        turn.release()
        turn.close()


def _lock_alone(descriptor: int) -> bool:
    """Lock the bytes that each user of an open database has locked; return False if there is one."""
    start, length = GUARDED_BYTES
    try:
        if hasattr(fcntl, "F_OFD_SETLK"):
            lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
        else:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _draft(file: Path, source: Path, key: keyed_hashing.Key) -> Path:
    """Return a copy of the backup, as of one moment, with its key. Raises `LedgerError`."""
    draft = companion(file, _DRAFT)
    _remove(draft)
    create_private(draft, b"")
    create_private(key_file.key_path(draft), key.secret)
    try:
        read_only = connections.is_read_only(source)
        with closing(connections.open_connection(str(source), key, read_only=read_only)) as connection:
            connections.write_copy(draft, connection)
    except sqlite3.Error as error:
        _remove(draft)
        raise LedgerError(str(source), f"it cannot be read: {error}. Nothing was changed") from None
    except BaseException:
        _remove(draft)
        raise
    return draft


def _remove(draft: Path) -> None:
    for name in (draft, *(companion(draft, ending) for ending in (LOG, INDEX, JOURNAL, ".key"))):
        name.unlink(missing_ok=True)


def _replace(file: Path, draft: Path, key: keyed_hashing.Key) -> str | None:
    """Put the old files aside, and give the draft the ledger's name."""
    for ending in (LOG, INDEX, JOURNAL):
        if companion(draft, ending).exists():
            raise LedgerError(str(draft), "another process has opened it. Nothing was changed", hint=_STOP)
    aside = _put_aside(file)
    if key_file.key_path(file).exists():
        key_file.replace(key_file.key_path(file), str(file), key.secret)
    else:
        create_private(key_file.key_path(file), key.secret)
    os.rename(draft, file)
    sync_folder(file.parent)
    return aside


def _put_aside(file: Path) -> str | None:
    """Rename the files of a ledger, and copy its key; return the new name. The database goes first.

    The database without its WAL would be an older state, which a program could open after a crash. The WAL without a
    database is opened by none. A run after a crash finds such a WAL, and puts it next to its database.
    """
    number = 1
    while os.path.lexists(_aside(file, number)):
        number += 1
    name: Path | None = _aside(file, number)
    assert name is not None
    companions = [ending for ending in (LOG, INDEX, JOURNAL) if os.path.lexists(companion(file, ending))]
    if file.exists():
        key_file.key_path(name).unlink(missing_ok=True)  # of a run that ended here
        create_private(key_file.key_path(name), key_file.key_path(file).read_bytes())
        os.rename(file, name)
        sync_folder(file.parent)
    elif companions and number > 1:
        name = _aside(file, number - 1)
    elif not companions:
        return None
    for ending in companions:
        target = companion(name, ending)
        if os.path.lexists(target):
            target = companion(name, f"{ending}.{time.time_ns()}")
        os.rename(companion(file, ending), target)
    sync_folder(file.parent)
    return str(name)


def _aside(file: Path, number: int) -> Path:
    return companion(file, f"{_ASIDE}{number}")
