"""Atomic, durable file writes by one process at a time; the user's application folder; canonical and strict JSON."""

from __future__ import annotations

import errno
import json
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        os.fchmod(file.fileno(), PRIVATE)
        file.truncate(0)
        yield file
        file.flush()
        os.fsync(file.fileno())
        os.replace(draft, place)
    except BaseException:
        # Delete while this process holds the lock: after closing, another process may own a draft of the same name.
        with suppress(OSError):
            os.unlink(draft)
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
    import fcntl

    # Not the package filelock: it locks a separate file, which stays behind, and keeps holding a renamed one.
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, PRIVATE), "a+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
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


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold an exclusive lock on this folder, and wait for other holders first. A crash releases the lock."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: created, renamed and deleted files stay so after a power failure."""
    sync_file(folder)


def sync_file(path: Path) -> None:
    """Make the written content of a file durable, including content from other processes."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Created once, because every spend uses it.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical_json(value: Any) -> str:
    """`value` as canonical JSON: sorted keys, no spaces, ASCII only."""
    return _ENCODER.encode(value)


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
