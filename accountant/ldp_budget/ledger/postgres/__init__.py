"""The ledger on PostgreSQL: in partitions, so that as many machines as there are may write to it at the same time."""

from .store import PostgresStore

__all__ = ["PostgresStore"]
