"""Migrations of a ledger on PostgreSQL: numbered SQL files in the folder `sql`.

`0002.pre.sql` and `0002.post.sql` hold the two steps to version 2, see `ledger.storage.Migration`. No release has
needed one yet. On a cluster, a table that they create is distributed by its column `partition`.

The statements of a pre step must do nothing the second time, such as `CREATE TABLE IF NOT EXISTS`: an upgrade that was
killed is run again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_budget.ledger.storage import POST, PRE, Migration, other_tables

from . import citus, schema

if TYPE_CHECKING:
    from psycopg import Connection

FOLDER = Path(__file__).parent / "sql"
_WAIT = "SET LOCAL lock_timeout = '30s'"
# A charge reads the table in its transaction: so it ends before the step, or begins after it and finds the new version.
_LOCK = {PRE: "LOCK TABLE meta IN SHARE ROW EXCLUSIVE MODE", POST: "LOCK TABLE meta IN ACCESS EXCLUSIVE MODE"}


_VERSION = re.compile(rb"[1-9][0-9]{0,8}")


def read_version(stored: bytes) -> int | None:
    """Return the version of the tables that the row `schema` of the table meta holds; None if it is not a number."""
    return int(bytes(stored)) if _VERSION.fullmatch(bytes(stored)) else None


def pending(version: int | None) -> list[Migration]:
    """Return the migrations from a version of the tables to the current one; empty if there is no such way."""
    if version is None:
        return []
    steps = [
        Migration(each, _read(each, PRE), _read(each, POST)) for each in range(version + 1, schema.SCHEMA_VERSION + 1)
    ]
    return steps if all(each.pre or each.post for each in steps) else []


def _read(version: int, step: str) -> tuple[str, ...]:
    file = FOLDER / f"{version:04d}.{step}.sql"
    if not file.exists():
        return ()
    return tuple(each.strip() for each in file.read_text(encoding="utf-8").split(";") if each.strip())


def created(migrations: list[Migration]) -> frozenset[schema.Fact]:
    """Return the facts of the catalog that the migrations make: they are not compared before these are complete."""
    statements = [re.sub(r"IF NOT EXISTS ", "", text) for each in migrations for text in (*each.pre, *each.post)]
    return schema.expect_facts(text for text in statements if text.startswith("CREATE "))


def apply(connection: Connection[Any], ledger: str, until: str, distributed: bool) -> tuple[int, list[str]]:
    """Apply the pending steps in the open transaction; return the version before, and the names of the steps."""
    connection.execute(_WAIT)
    connection.execute(_LOCK[until])  # type: ignore[call-overload, unused-ignore]
    row: Any = connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    before = read_version(row[0])
    steps = pending(before)
    done: list[str] = []
    if before is None or (not steps and before != schema.SCHEMA_VERSION):
        raise other_tables(ledger, schema.SCHEMA_VERSION, before)
    for each in steps:
        for step, statements in ((PRE, each.pre), (POST, each.post)):
            if step == POST and until == PRE:
                return before, done
            for statement in statements:
                connection.execute(statement)  # type: ignore[call-overload, unused-ignore]
                if distributed and statement.startswith("CREATE TABLE"):
                    citus.distribute_created(connection)
            done.append(f"v{each.version}_{step}")
        connection.execute("UPDATE meta SET value = %s WHERE name = 'schema'", (str(each.version).encode(),))
    return before, done
