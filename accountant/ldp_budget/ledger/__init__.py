"""Durable state. SQLite first; another store can stand behind the same calls."""

from __future__ import annotations

from .sqlite import SqliteLedger, Transaction

__all__ = ["SqliteLedger", "Transaction"]
