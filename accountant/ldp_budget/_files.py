"""Files and folders: written whole and durably, by one run at a time; and the user's folder for this application.

One spelling for each JSON value: what is stored, hashed and compared.
"""

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
"""The mode of every file that is written here: it says something about users, or is a secret."""


def application_folder() -> Path:
    """The user's folder for this application, which need not be there: the default ledger, and certificates."""
    import platformdirs

    return Path(platformdirs.user_config_dir("ldp-budget", appauthor=False, roaming=True))


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, which takes the place of `path` when the block ends, whole and durable.

    Until then it is a neighbour, `path` with `.new`, that one run writes at a time; after an exception it is gone and
    `path` is as it was. The file is for its owner's eyes alone. A link stays a link. Raises OSError, also where
    `path` is there and is no ordinary file, or where another run is writing it.
    """
    place = Path(os.path.realpath(path))
    if not replaceable(place):
        raise OSError(errno.EINVAL, "it is no ordinary file")
    draft = place.with_name(f"{place.name}.new")
    file = open_alone(draft)
    try:
        # What a run that was killed may have left, or somebody else.
        os.fchmod(file.fileno(), PRIVATE)
        file.truncate(0)
        yield file
        file.flush()
        os.fsync(file.fileno())
        os.replace(draft, place)
    except BaseException:
        # While the draft is ours alone: once it is closed, another run may have one of the same name.
        with suppress(OSError):
            os.unlink(draft)
        raise
    finally:
        with suppress(OSError):  # what could not be flushed is told already
            file.close()
    sync_folder(place.parent)


def replaceable(path: Path) -> bool:
    """Whether a file may take that place: nothing is there, or a file, but no folder and no device."""
    return path.is_file() or not path.exists()


def open_alone(path: Path) -> IO[bytes]:
    """`path`, created if need be, to read and append to; no other run opens it like this until it is closed.

    A file that is created is for its owner's eyes alone. Raises OSError, also where another run has it.
    """
    import fcntl

    # No filelock: that locks a file of its own, which stays behind, and goes on holding one that was renamed.
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, PRIVATE), "a+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # What was opened may be what a run that was just ending has removed, or given another name.
        if not os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            raise FileNotFoundError
    except OSError:
        file.close()
        raise BlockingIOError(errno.EWOULDBLOCK, "another run is writing it") from None
    return file


def create_private(path: Path, content: bytes) -> None:
    """Make a durable file that only its owner can read. Raises FileExistsError if it is there already."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait for everybody else who is alone in this folder, and hold off those who come; a crash ends the hold."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: what was made, renamed or removed there stays so after a power cut."""
    sync_file(folder)


def sync_file(path: Path) -> None:
    """Make what was written to a file durable, by whomever."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Made once, as every spend writes with it.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def canonical_json(value: Any) -> str:
    """`value` as canonical JSON: keys in order, no spaces, ASCII alone."""
    return _ENCODER.encode(value)
