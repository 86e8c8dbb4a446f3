"""The ledger in one SQLite file, or in memory: the only place that speaks SQL."""

from __future__ import annotations

from .store import SqliteStore
from .write_buffer import SqliteScratch

__all__ = ["SqliteScratch", "SqliteStore"]
