"""Durable state. SQLite first; another store can stand behind the same calls."""

from __future__ import annotations

from ._sqlite.batch import Batch
from ._sqlite.sqlite import SqliteLedger
from ._sqlite.transaction import Transaction
from .journal import Entry

__all__ = ["Batch", "Entry", "SqliteLedger", "Transaction"]
