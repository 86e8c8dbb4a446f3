"""Store of a ledger on a PostgreSQL server, in partitions, so that many machines can write at the same time.

It holds the connection pool, the schema, the SQL statements, the write buffer and the checks of the server.
It may import guarantees and the other modules of the ledger.
"""

from .store import PostgresStore

__all__ = ["PostgresStore"]
