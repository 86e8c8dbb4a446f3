"""A file that one run writes at a time."""

from __future__ import annotations

import errno
import os
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def open_alone(path: Path) -> IO[bytes]:
    """`path`, created if need be, to read and append to; no other run opens it like this until it is closed.

    Raises OSError, also where another run has it.
    """
    import fcntl

    file = open(path, "a+b")  # noqa: SIM115 - it is the caller who closes it
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # What was opened may be what a run that was just ending has removed, or given another name.
        if not os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            raise FileNotFoundError
    except OSError:
        file.close()
        raise BlockingIOError(errno.EWOULDBLOCK, "another run is writing it") from None
    return file
