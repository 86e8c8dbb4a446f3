"""The WAL of a ledger: its size, its match with the database, and recovery after a power cut.

1. The WAL stays short and belongs to its database. SQLite uses any file that has the WAL's name as the WAL of the
   database. Next to a restored copy, such a file would overwrite the pages of one state with those of another. So
   each transaction that resets the WAL writes into it the number of journal entries, which the database then has as
   well. A database with fewer entries, or with an entry that the WAL does not know, is another one. This detects
   copies made page by page, as `cp` and `backup` make them.

2. Recovery of a database whose last checkpoint was torn by a power cut. A disk writes sectors, often of 512 bytes, so
   a power cut can leave a database page half old and half new. The WAL still has the whole page, and SQLite reads it
   from there. So only the database without its WAL is damaged. A copy that replaced the database is consistent
   without the WAL. This difference distinguishes the two cases.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from contextlib import closing, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from .. import keyed_hashing
from . import connection as connections
from .connection import (
    LOG,
    STEP_SECONDS,
)
from .statements import SqliteRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..storage import Snapshot, Store


# -- the write-ahead log -------------------------------------------------------------------------------------

SHORTENED_BYTES = 40 << 20
"""WAL size from which it is truncated. A shorter WAL is overwritten from its start, which is faster."""
MOST_BYTES = 64 << 20
"""WAL size from which truncating it waits for readers."""
_ASKED_AGAIN_BYTES = 1 << 20
"""Growth of the WAL after which the free disk space is asked for again."""
ATTEMPT_SECONDS = 0.05
"""Pause after a failed attempt to truncate the WAL."""
WAIT_SECONDS = 0.05
"""Longest wait of one attempt for readers; other writers wait meanwhile."""
PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 1.0, 60.0
"""First and longest pause between attempts that wait, after one that waited and failed."""

_NEWEST = "SELECT entry, chain_hash FROM journal ORDER BY entry DESC LIMIT 1"


def note(connection: sqlite3.Connection) -> None:
    """Write into the WAL, in the transaction that starts it, the number of journal entries in the database."""
    connection.execute("INSERT OR REPLACE INTO meta SELECT 'log', coalesce(max(entry), 0) FROM journal")


def wal_matches_database(path: str, connection: sqlite3.Connection) -> bool | None:
    """True if the WAL was written on top of this database. Call it only while holding the writer lock.

    After a power cut the result may be False although the WAL belongs: see `is_torn`. None if the database cannot be
    read without its WAL: a checkpoint was interrupted, or readers let it copy a part only, and the WAL has the rest.
    """
    if not length(path):
        return True
    if not connections.has_log(connection):
        return False
    try:
        with closing(open_bare(path)) as bare:
            newest = bare.execute(_NEWEST).fetchone()
    except sqlite3.DatabaseError:
        return None
    try:
        started = connection.execute("SELECT value FROM meta WHERE name = 'log'").fetchone()
        entry, chain_hash = newest or (0, None)
        known = connection.execute("SELECT chain_hash FROM journal WHERE entry = ?", (entry,)).fetchone()
    except sqlite3.DatabaseError:
        return False
    return entry >= (started or (0,))[0] and (not entry or known == (chain_hash,))


def newest_of(connection: sqlite3.Connection) -> tuple[int, bytes | None]:
    """Return the number and the chain hash of the newest entry; (0, None) for an empty journal."""
    return connection.execute(_NEWEST).fetchone() or (0, None)


def holds(path: str, newest: tuple[int, bytes | None]) -> bool:
    """Return True if a database with an empty WAL has the entry `newest`. Call it only while holding the writer lock.

    A new connection reads it: existing connections use their cached pages, as the WAL did not change.
    """
    number, chain_hash = newest
    try:
        with closing(open_bare(path)) as bare:
            found = bare.execute("SELECT chain_hash FROM journal WHERE entry = ?", (number,)).fetchone()
    except sqlite3.DatabaseError:
        return False
    return not number or found == (chain_hash,)


def started_anew(connection: sqlite3.Connection) -> None:
    """Reset the WAL after a checkpoint, if the database has all of it: write a transaction that starts it again."""
    _, pages, done = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if pages == done:
        connection.execute("BEGIN IMMEDIATE")
        note(connection)
        connection.execute("COMMIT")


class LogLimit:
    """Size limit of the WAL of one open ledger. It never delays spends for long.

    A reader, such as a backup or a shell, can hold a snapshot for hours. The WAL cannot be truncated meanwhile. So an
    attempt does not wait, and the next attempt follows after a short pause. If readers overlap without a gap, only
    waiting helps. Each wait is short, and the pause between waits doubles after each failure.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._next_attempt = self._next_wait = -math.inf
        self._pause = PAUSE_SECONDS
        self.enough = 0
        """Size of a growing WAL below which there was enough room."""

    def keep(self, connection: sqlite3.Connection, before: int, now: int) -> bool:
        """Truncate a WAL that is too long, if no reader needs it; return True if that was tried.

        `before` and `now` are its sizes in bytes before and after a transaction. A shorter WAL is truncated only if
        the free disk space is below its size, because a checkpoint may have to copy all of it into the database.
        """
        if now < SHORTENED_BYTES:
            if now <= before or now < self.enough:
                return False
            room = _room(self._path)
            self.enough = min(room, now + _ASKED_AGAIN_BYTES)
            if now < room:
                return False
        at = time.monotonic()
        if at < self._next_attempt:
            return False
        waits = now >= MOST_BYTES and at >= self._next_wait
        emptied = empty(connection, WAIT_SECONDS if waits else 0.0)
        # SQLite's own attempt with each commit takes a sixth of a spend's time, and would fail as well.
        connection.execute(f"PRAGMA wal_autocheckpoint = {connections.CHECKPOINT_PAGES if emptied else 0}")
        if emptied:
            self._next_wait, self._pause = -math.inf, PAUSE_SECONDS
            return True
        self._next_attempt = time.monotonic() + ATTEMPT_SECONDS
        if waits:
            self._next_wait = time.monotonic() + self._pause
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        return True


def empty(connection: sqlite3.Connection, seconds: float) -> bool:
    """Checkpoint and truncate the WAL; return False if readers prevented that for all of `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        if not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(STEP_SECONDS)


def length(path: str) -> int:
    """Return the size of a database's WAL in bytes; 0 if it has none."""
    try:
        return os.stat(path + LOG).st_size
    except FileNotFoundError:
        return 0


def _room(path: str) -> int:
    """Return the free space of the disk, in bytes."""
    disk = os.statvfs(path)
    return disk.f_bavail * disk.f_frsize


def open_bare(path: str) -> sqlite3.Connection:
    """Return a read-only connection to the database without its WAL."""
    uri = Path(path).as_uri() + "?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


# -- recovery after a power cut ------------------------------------------------------------------------------


def is_torn(path: str, connection: sqlite3.Connection, key: keyed_hashing.Key) -> bool:
    """Return True if the database fails verification alone but passes with its WAL.

    Call it only while holding the writer lock. Both checks verify the whole ledger: a row can be torn where SQLite
    finds no damage.
    """
    with closing(open_bare(path)) as bare:
        return not is_whole(path, bare, key) and is_whole(path, connection, key)


def is_whole(path: str, connection: sqlite3.Connection, key: keyed_hashing.Key) -> bool:
    """Return True if the ledger that a connection reads passes verification."""
    from ..ledger import Ledger
    from ..verification import check_integrity

    copy = keyed_hashing.Key(key.secret)
    try:
        connections.check_ledger_id(connection, copy, path)
        view = cast("Store", _View(path, connection, copy))
        return check_integrity(Ledger(view, time.time, half=True)).ok
    except Exception:  # a torn page can hold any bytes, and any code that reads them can fail
        return False


class _View:
    """Minimal read-only store for verification, over one connection, while no process writes."""

    partitions = writers = 1
    repeated = MappingProxyType[str, int]({})

    def __init__(self, name: str, connection: sqlite3.Connection, key: keyed_hashing.Key) -> None:
        self.name, self.key = name, key
        self._connection = connection

    @contextmanager
    def snapshot(self, partition: int = 0) -> Iterator[Snapshot]:
        yield SqliteRows(self._connection)
