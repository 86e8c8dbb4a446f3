"""The ledger in one SQLite file, or in memory: the only place that speaks SQL."""

from __future__ import annotations

from .scratch import SqliteScratch
from .store import SqliteStore

__all__ = ["SqliteScratch", "SqliteStore"]
