"""Whose turn it is to write to a ledger: one lock, on its key file, before any of SQLite's.

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
import sys
import threading
import time
from pathlib import Path

from ...errors import LedgerError
from .. import keys
from . import files

if sys.platform != "win32":
    import fcntl  # here, as it is needed while the interpreter ends, too

STEP_SECONDS = 0.0003

_held: dict[str, int] = {}
"""Which thread has the turn, by ledger."""


class Turn:
    """The right to write to the ledger at a path, for one thread at a time."""

    def __init__(self, ledger: str, key: keys.Key) -> None:
        self._ledger = ledger
        self._key = key
        self._file = keys.key_path(Path(ledger))
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

    def give_back(self) -> None:
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
            raise LedgerError(self._ledger, files.busy())
        time.sleep(STEP_SECONDS)

    def _open(self) -> None:
        """Open the key file, at first or because another one of the same content has taken its place."""
        if not keys.read_key(Path(self._ledger)).is_that_of(self._key):
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
