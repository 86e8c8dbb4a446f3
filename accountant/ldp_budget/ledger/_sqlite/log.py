"""The log of a ledger's database (WAL): that it stays short, and belongs to the database that it lies beside.

SQLite takes whatever lies there under the log's name for the log of the database: beside a copy that was put back it
would write the pages of one state over those of another. So whoever starts a log anew notes in it how many entries
the journal had, which the database then has as well. One that has fewer, or an entry that the log does not know, is
another database. (It must be a copy page by page, as `cp` and `backup` make them.)
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from . import files
from .names import LOG
from .turns import STEP_SECONDS

SHORTENED_BYTES = 40 << 20
"""From which length on it is cut off; a shorter one is written over from its start, which is faster."""
MOST_BYTES = 64 << 20
"""From which length on it is waited for readers."""
ATTEMPT_SECONDS = 0.05
"""How long no other attempt to cut it off is made after one in vain."""
WAIT_SECONDS = 0.05
"""How long an attempt waits for readers, holding up others who write."""
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
"""How long no attempt waits after one that waited in vain: at first, and at most."""

_NEWEST = "SELECT entry, chain_hash FROM journal ORDER BY entry DESC LIMIT 1"


def note(connection: sqlite3.Connection) -> None:
    """Note in the log, in the transaction that starts it, what the database beside it holds."""
    connection.execute("INSERT OR REPLACE INTO meta SELECT 'log', coalesce(max(entry), 0) FROM journal")


def belongs(path: str, connection: sqlite3.Connection) -> bool:
    """Whether the log was written on top of the database beside it; only with the turn to write.

    After a power cut the answer may be no although the log belongs: see `recovering`.
    """
    if not length(path):
        return True
    if not files.has_log(connection):
        return False
    try:
        with closing(open_bare(path)) as bare:
            newest = bare.execute(_NEWEST).fetchone()
    except sqlite3.DatabaseError:
        return True  # a checkpoint was cut off in its midst, and the log has the rest; a copy can be read
    try:
        started = connection.execute("SELECT value FROM meta WHERE name = 'log'").fetchone()
        entry, chain_hash = newest or (0, None)
        known = connection.execute("SELECT chain_hash FROM journal WHERE entry = ?", (entry,)).fetchone()
    except sqlite3.DatabaseError:
        return False
    return entry >= (started or (0,))[0] and (not entry or known == (chain_hash,))


def newest_of(connection: sqlite3.Connection) -> tuple[int, bytes | None]:
    """The number and the link of the newest entry; (0, None) of an empty journal."""
    return connection.execute(_NEWEST).fetchone() or (0, None)


def holds(path: str, newest: tuple[int, bytes | None]) -> bool:
    """Return True if a database whose log is empty has an entry; only with the turn to write.

    It is asked over a new connection: the others go by what they have in memory, as the log did not change.
    """
    number, chain_hash = newest
    try:
        with closing(open_bare(path)) as bare:
            found = bare.execute("SELECT chain_hash FROM journal WHERE entry = ?", (number,)).fetchone()
    except sqlite3.DatabaseError:
        return False
    return not number or found == (chain_hash,)


def started_anew(connection: sqlite3.Connection) -> None:
    """After a checkpoint: once all of the log is in the database, the next transaction starts it anew; this one."""
    _, pages, done = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if pages == done:
        connection.execute("BEGIN IMMEDIATE")
        note(connection)
        connection.execute("COMMIT")


class LogLimit:
    """Keeps the log of one open ledger short, without holding up spends for long.

    A reader, such as a backup or a shell, can hold one moment for hours, and the log cannot be cut off meanwhile. So
    an attempt does not wait, and the next one comes a moment later. Where readers come and go without a gap, only
    waiting helps: that is brief, and twice as rare after each time in vain.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._next_attempt = self._next_wait = -math.inf
        self._pause = PAUSE_SECONDS

    def keep(self, connection: sqlite3.Connection, before: int, now: int) -> bool:
        """Cut off a log that is too long, if no reader needs it; return True if that was tried.

        `before` and `now` are its bytes before and after a transaction. A shorter log is cut off only where the disk
        has no room for all of it once more, as the database may have to take it in.
        """
        if now < SHORTENED_BYTES and (now <= before or now < _room(self._path)):
            return False
        at = time.monotonic()
        if at < self._next_attempt:
            return False
        waits = now >= MOST_BYTES and at >= self._next_wait
        emptied = empty(connection, WAIT_SECONDS if waits else 0.0)
        # SQLite's own attempt with each commit costs a sixth of a spend, and is in vain as well.
        connection.execute(f"PRAGMA wal_autocheckpoint = {files.CHECKPOINT_PAGES if emptied else 0}")
        if emptied:
            self._next_wait, self._pause = -math.inf, PAUSE_SECONDS
            return True
        self._next_attempt = time.monotonic() + ATTEMPT_SECONDS
        if waits:
            self._next_wait = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        return True


def empty(connection: sqlite3.Connection, seconds: float) -> bool:
    """Bring the log into the database and cut it to nothing; return True if no reader prevented that so long."""
    deadline = time.monotonic() + seconds
    while True:
        if not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            return True
        if time.monotonic() >= deadline:
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


def open_bare(path: str) -> sqlite3.Connection:
    """The database without its log."""
    uri = Path(path).as_uri() + "?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
