"""Atomic, durable file writes by one process at a time; the user's application folder; canonical and strict JSON."""

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


# Windows refuses to rename, replace or delete an open file, opens no folder, and has no modes for other users.
_IS_WINDOWS: bool = sys.platform == "win32"
_LOCKED_BYTE = 1 << 30
_STEP_SECONDS = 0.01

PRIVATE = 0o600
"""File mode of every file that this module writes: each is about users or is a secret."""


def application_folder() -> Path:
    """The user's folder for this application, which may not exist yet.

    It holds the default ledger and certificates.
    """
    import platformdirs

    return Path(platformdirs.user_config_dir("ldp-budget", appauthor=False, roaming=True))


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file to write that replaces `path` when the block ends, complete and durable.

    Until then the content is in a neighboring draft file, `path` with `.new`. One process at a time writes it.
    After an exception the draft is deleted and `path` is unchanged. Only the owner can read the file. A symbolic
    link stays a link.

    Raises OSError, also if `path` exists and is not an ordinary file, or if another process is writing it.
    """
    place = Path(os.path.realpath(path))
    if not replaceable(place):
        raise OSError(errno.EINVAL, "it is not a regular file")
    draft = place.with_name(f"{place.name}.new")
    file = open_alone(draft)
    try:
        # A killed process, or another program, may have left content or another mode.
        if not _IS_WINDOWS:
            os.fchmod(file.fileno(), PRIVATE)
        file.truncate(0)
        yield file
        file.flush()
        os.fsync(file.fileno())
        if _IS_WINDOWS:
            file.close()
        os.replace(draft, place)
    except BaseException:
        # Delete while this process holds the lock: after closing, another process may own a draft of the same name.
        with suppress(OSError):
            delete_open(draft, file)
        raise
    finally:
        with suppress(OSError):  # a failed flush was raised above
            file.close()
    sync_folder(place.parent)


def replaceable(path: Path) -> bool:
    """True if a file may replace that path: it is free or an ordinary file, not a folder or a device."""
    return path.is_file() or not path.exists()


def open_alone(path: Path) -> IO[bytes]:
    """Open `path` to read and append, and create it if necessary. Only one process at a time can open it this way.

    The lock ends when the file is closed. Only the owner can read a created file. Raises OSError, also if another
    process has the lock.
    """
    # Not the package filelock: it locks a separate file, which stays behind, and keeps holding a renamed one.
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, PRIVATE), "a+b")
    try:
        _lock(file.fileno())
        # A process that was just ending may have deleted or renamed the file that this one opened.
        if not os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            raise FileNotFoundError
    except OSError:
        file.close()
        raise BlockingIOError(errno.EWOULDBLOCK, "another run is writing it") from None
    return file


def create_private(path: Path, content: bytes) -> None:
    """Create a durable file that only its owner can read. Raises FileExistsError if the file exists."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def others_have_access(file: Path) -> bool:
    """True if the file's mode gives other users access. On Windows the folder decides, so it is False there."""
    return not _IS_WINDOWS and bool(stat.S_IMODE(file.stat().st_mode) & 0o077)


def delete_open(path: Path, file: IO[bytes]) -> None:
    """Delete the file of `open_alone`, while this process still holds its lock where the system allows that."""
    if _IS_WINDOWS:
        file.close()
    path.unlink(missing_ok=True)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on this folder, and wait for other holders first. A crash releases the lock."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT) if _IS_WINDOWS else os.open(folder, os.O_RDONLY)
    try:
        _lock(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool = False) -> None:
    """Lock an open file or folder until it is closed. Raises OSError if another process has the lock, unless `wait`."""
    if not _IS_WINDOWS:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return
    import msvcrt

    locking: Any = msvcrt  # type checkers know the names on Windows only
    while True:
        # A locked byte cannot be read by others, so it is one behind any content.
        at = os.lseek(descriptor, 0, os.SEEK_CUR)
        try:
            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            locking.locking(descriptor, locking.LK_NBLCK, 1)
            return
        except OSError:
            if not wait:
                raise
            time.sleep(_STEP_SECONDS)
        finally:
            os.lseek(descriptor, at, os.SEEK_SET)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: created, renamed and deleted files stay so after a power failure.

    Windows cannot, and needs no such call.
    """
    if not _IS_WINDOWS:
        sync_file(folder)


def sync_file(path: Path) -> None:
    """Make the written content of a file durable, including content from other processes."""
    descriptor = os.open(path, os.O_RDWR if _IS_WINDOWS else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Created once, because every spend uses it.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical_json(value: Any) -> str:
    """`value` as canonical JSON: sorted keys, no spaces, ASCII only."""
    return _ENCODER.encode(value)


def json_digest(value: Any) -> str:
    """Return the SHA-256 of `value` as canonical JSON, in hexadecimal."""
    from hashlib import sha256  # most commands need none

    return sha256(canonical_json(value).encode()).hexdigest()


class RepeatedMemberError(ValueError):
    """A JSON object has two members with one name, so it is not clear which one counts."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def strict_json(text: str | bytes) -> Any:
    """Return a parsed JSON text. Raises `RepeatedMemberError`, and else the errors of `json.loads`.

    Most readers keep the last of two members with the same name. A proxy may check the first one.
    """
    if isinstance(text, str) and not text.startswith("\ufeff"):
        return _STRICT.decode(text)  # `json.loads` makes a decoder each time
    return json.loads(text, object_pairs_hook=_without_repeats)


def _without_repeats(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) != len(members):
        names = [name for name, _ in members]
        raise RepeatedMemberError(next(name for name in names if names.count(name) > 1))
    return found


_STRICT = json.JSONDecoder(object_pairs_hook=_without_repeats)
