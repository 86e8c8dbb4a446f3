"""What kind of table a file is: its name says so, and where its first bytes say otherwise, these are believed.

A Parquet file begins with `PAR1` and a byte that no text holds, an Arrow file with `ARROW1`, an Arrow stream with
four bytes 0xff; no CSV file begins so in an encoding of text.
"""

from __future__ import annotations

import os

from ...errors import TableError

CSV, PARQUET, ARROW, STREAM = "a CSV file", "a Parquet file", "an Arrow file", "an Arrow stream"

SUFFIXES = {
    ".parquet": PARQUET,
    ".pq": PARQUET,
    ".arrow": ARROW,
    ".feather": ARROW,
    ".ipc": ARROW,
    ".arrows": STREAM,
}
"""What files are called; any other name is that of a CSV file."""

HEAD = 64
"""How many first bytes tell the kinds apart."""

_TEXT = set(range(0x20, 0x100)) | set(b"\t\r\n\f")


def named_kind(path: str) -> str:
    """What kind a file is by its name.

    Parameters:
        path: a path or an address.

    Raises:
        Nothing.
    """
    return SUFFIXES.get(os.path.splitext(path.partition("?")[0])[1].lower(), CSV)


def kind_of(path: str, shown: str, head: bytes) -> str:
    """What kind a file is by its first bytes, which its name must not contradict where they are no text.

    Parameters:
        path: a path or an address.
        shown: the same for messages.
        head: its first bytes, 64 of them where it has so many.

    Raises:
        TableError: it is named like a Parquet or Arrow file, and neither that nor text.
    """
    if head.startswith(b"ARROW1\0\0"):
        return ARROW
    if head.startswith(b"\xff\xff\xff\xff"):
        return STREAM
    if head.startswith(b"PAR1") and (len(head) < 5 or head[4] not in _TEXT):
        return PARQUET
    named = named_kind(path)
    if head.startswith((b"FEA1", b"PARE")):
        what = "a Feather file of version 1" if head.startswith(b"FEA1") else "an encrypted Parquet file"
        raise TableError(shown, f"it is {what}, which is not read")
    if named != CSV and (not head or not _TEXT.issuperset(head)):
        found = f"begins with {head[:8]!r}" if head else "is empty"
        raise TableError(shown, f"it is named like {named}, and {found}")
    return CSV
