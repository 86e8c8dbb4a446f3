"""What must be true of the names of a ledger's files before it is made or opened."""

from __future__ import annotations

import os
import shlex
import stat
import sys
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
