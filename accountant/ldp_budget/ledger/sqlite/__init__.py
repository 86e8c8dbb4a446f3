"""Store of a ledger in one SQLite file, or in memory.

It holds the connections, the schema, the SQL statements, the write lock and the checks of the database files.
It may import guarantees and the other modules of the ledger.
"""

from __future__ import annotations

from .store import SqliteStore

__all__ = ["SqliteStore"]
