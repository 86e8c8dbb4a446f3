"""Durable state. SQLite first; another store can stand behind the same calls."""

from __future__ import annotations

from .batch import Batch
from .journal import Entry
from .sqlite import SqliteLedger
from .transaction import Transaction

__all__ = ["Batch", "Entry", "SqliteLedger", "Transaction"]
