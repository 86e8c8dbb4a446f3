"""What must be true of the names of a ledger's files before it is made or opened."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from ...errors import LedgerError
from .. import keys

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
            why = f"there is none, but {stray} lies there and belongs to one; restore that, or move the file away"
            raise LedgerError(str(file), why)


def check_names(file: Path) -> None:
    """That the ledger has one name and no others, and no stranger's journal beside it."""
    journal = companion(file, JOURNAL)
    if journal.exists():
        raise LedgerError(str(file), f"{journal} lies beside it, which is none of its own; move it away")
    if file.stat().st_nlink != 1:
        raise LedgerError(str(file), LINKED)
    if str(file) in _mount_points():
        raise LedgerError(str(file), "it is mounted as a single file, and would have two logs; mount its folder")


def check_modes(file: Path) -> None:
    """That a ledger, its key and its log are their owner's alone."""
    private = (file, keys.key_path(file), companion(file, LOG), companion(file, INDEX))
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
    log = companion(file, LOG)
    if read_only and log.exists() and log.stat().st_size:
        raise LedgerError(str(file), f"it cannot be written, and without that its log {log} cannot be read")
    return read_only


def _mount_points() -> set[str]:
    """Every mount point that this process sees; none where the system has no such list."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return set()
    return {_unescaped(line.split(" ")[4]) for line in lines}


def _unescaped(name: str) -> str:
    """A name of that list, where space, tab, line end and backslash are written in octal."""
    for code in ("040", "011", "012", "134"):
        name = name.replace(f"\\{code}", chr(int(code, 8)))
    return name
