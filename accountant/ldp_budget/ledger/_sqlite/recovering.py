"""Recovery of a database whose last checkpoint was torn by a power cut.

A disk writes sectors, often of 512 bytes, so a power cut can leave a page of the database half old and half new. The
log still has the whole page, and SQLite reads it from there. Only the database without its log is damaged then. A
copy that was put in the database's place is whole without the log. That tells the two apart.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from .. import keys
from . import log
from .rows import SqliteRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..store import Snapshot, Store


def is_torn(path: str, connection: sqlite3.Connection, key: keys.Key) -> bool:
    """Return True if the database is not whole, and is whole together with its log; only with the turn to write.

    Both times everything is verified: a row can be torn where SQLite finds no damage.
    """
    with closing(log.open_bare(path)) as bare:
        return not _is_whole(path, bare, key) and _is_whole(path, connection, key)


def _is_whole(path: str, connection: sqlite3.Connection, key: keys.Key) -> bool:
    """Return True if what a connection reads verifies as a ledger."""
    from ..ledger import Ledger
    from ..verifying import check_integrity

    view = cast("Store", _View(path, connection, keys.Key(key.secret)))
    try:
        return check_integrity(Ledger(view, time.time, half=True)).ok
    except Exception:  # a torn page can hold any bytes, and any code that reads them can fail
        return False


class _View:
    """What verifying needs of a store, over one connection, while nothing is written."""

    partitions = 1
    repeated = MappingProxyType[str, int]({})

    def __init__(self, name: str, connection: sqlite3.Connection, key: keys.Key) -> None:
        self.name, self.key = name, key
        self._connection = connection

    @contextmanager
    def snapshot(self, partition: int = 0) -> Iterator[Snapshot]:
        yield SqliteRows(self._connection)

    def look_at_key(self) -> None:
        """The key is the one that was read when the ledger was opened."""
