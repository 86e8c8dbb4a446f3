"""Durable state. SQLite first; another store can stand behind the same calls."""

from __future__ import annotations

from .sqlite import SqliteLedger
from .transaction import Entry, Transaction

__all__ = ["Entry", "SqliteLedger", "Transaction"]
