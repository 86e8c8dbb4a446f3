"""The log of a ledger's database (WAL): that it stays short, and belongs to the database that it lies beside.

SQLite takes whatever lies there under the log's name for the log of the database: beside a copy that was put back it
would write the pages of one state over those of another. So whoever starts a log anew notes in it how many entries
the journal had, which the database then has as well. One that has fewer, or an entry that the log does not know, is
another database. (It must be a copy page by page, as `cp` and `backup` make them.)
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from . import files
from .names import LOG
from .turns import STEP_SECONDS

MOST_BYTES = 64 << 20
"""How long the log may be, beside what one transaction writes."""
SHORTENED_BYTES = 40 << 20
"""From which length on it is cut off; a shorter one is written over from its start, which is faster."""

_BRIEF_SECONDS, _LONGER_SECONDS = 0.02, 1.0

_NEWEST = "SELECT entry, link FROM journal ORDER BY entry DESC LIMIT 1"


def note(connection: sqlite3.Connection) -> None:
    """Note in the log, in the transaction that starts it, what the database beside it holds."""
    connection.execute("INSERT OR REPLACE INTO meta SELECT 'log', coalesce(max(entry), 0) FROM journal")


def belongs(path: str, connection: sqlite3.Connection) -> bool:
    """Whether the log was written on top of the database beside it; only with the turn to write."""
    if not length(path):
        return True
    if not files.has_log(connection):
        return False
    try:
        with closing(_bare(path)) as bare:
            newest = bare.execute(_NEWEST).fetchone()
    except sqlite3.DatabaseError:
        return True  # a checkpoint was cut off in its midst, and the log has the rest; a copy can be read
    try:
        started = connection.execute("SELECT value FROM meta WHERE name = 'log'").fetchone()
        entry, link = newest or (0, None)
        known = connection.execute("SELECT link FROM journal WHERE entry = ?", (entry,)).fetchone()
    except sqlite3.DatabaseError:
        return False
    return entry >= (started or (0,))[0] and (not entry or known == (link,))


def started_anew(connection: sqlite3.Connection) -> None:
    """After a checkpoint: once all of the log is in the database, the next transaction starts it anew; this one."""
    _, pages, done = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if pages == done:
        connection.execute("BEGIN IMMEDIATE")
        note(connection)
        connection.execute("COMMIT")


def keep_short(path: str, connection: sqlite3.Connection, before: int, now: int) -> bool:
    """Cut a log that is too long off, if nobody reads it; whether that was tried. `before` and `now` are bytes.

    The longer it is, the longer this waits for readers. As long as there is room on the disk for all of it once more,
    the database can take it in.
    """
    if now < SHORTENED_BYTES and (now <= before or now < _room(path)):
        return False
    empty(connection, _BRIEF_SECONDS if now < MOST_BYTES else _LONGER_SECONDS)
    return True


def empty(connection: sqlite3.Connection, seconds: float) -> bool:
    """Bring the log into the database and cut it to nothing, waiting for who reads it; whether that was done."""
    deadline = time.monotonic() + seconds
    while True:
        if not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(STEP_SECONDS)


def length(path: str) -> int:
    """How many bytes of log lie beside a database."""
    try:
        return os.stat(path + LOG).st_size
    except FileNotFoundError:
        return 0


def _room(path: str) -> int:
    """How many bytes are left on the disk."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def _bare(path: str) -> sqlite3.Connection:
    """The database without its log."""
    uri = Path(path).as_uri() + "?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
