"""Store of a ledger on a PostgreSQL server, in partitions, so that many machines can write at the same time.

It holds the connection pool, the schema, the SQL statements, the write buffer and the checks of the server.
It imports `ldp_budget`, and of that the ledger and the rooms below it; no other package imports psycopg.
The ledger finds it by the scheme of a URL, in the entry-point group `ldp_budget.stores`.
"""

from .store import PostgresStore

__all__ = ["PostgresStore"]
