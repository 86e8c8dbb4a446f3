"""Migrations of a ledger on PostgreSQL: numbered SQL files in the folder `sql`.

`0003.pre.sql` and `0003.post.sql` hold the two steps to version 3, see `ldp_budget.ledger.migrations`. No release has
needed one yet. The statements of a pre step must do nothing the second time, such as `CREATE TABLE IF NOT EXISTS`: an
upgrade that was killed is run again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import LedgerError
from ldp_budget.ledger.migrations import POST, PRE, Migration

from . import schema

if TYPE_CHECKING:
    from psycopg import Connection

FOLDER = Path(__file__).parent / "sql"
_WAIT = "SET LOCAL lock_timeout = '30s'"
# A charge reads the table in its transaction: so it ends before the step, or begins after it and finds the new version.
_LOCK = {PRE: "LOCK TABLE meta IN SHARE ROW EXCLUSIVE MODE", POST: "LOCK TABLE meta IN ACCESS EXCLUSIVE MODE"}


def pending(version: str) -> list[Migration]:
    """Return the migrations from a version of the tables to the current one; empty if there is no such way."""
    found = int(version) if version.isascii() and version.isdigit() else schema.SCHEMA_VERSION
    steps = [
        Migration(each, _read(each, PRE), _read(each, POST)) for each in range(found + 1, schema.SCHEMA_VERSION + 1)
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


def apply(connection: Connection[Any], ledger: str, until: str) -> tuple[int, list[str]]:
    """Apply the pending steps in the open transaction; return the version before, and the names of the steps."""
    connection.execute(_WAIT)
    connection.execute(_LOCK[until])  # type: ignore[call-overload, unused-ignore]
    row: Any = connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    before = bytes(row[0]).decode("ascii", "replace")
    steps = pending(before)
    done: list[str] = []
    if not steps and before != str(schema.SCHEMA_VERSION):
        raise LedgerError(
            ledger, f"no migration leads from version {before} of its tables to {schema.SCHEMA_VERSION}"
        )
    for each in steps:
        for step, statements in ((PRE, each.pre), (POST, each.post)):
            if step == POST and until == PRE:
                return int(before), done
            for statement in statements:
                connection.execute(statement)  # type: ignore[call-overload, unused-ignore]
            done.append(f"v{each.version}_{step}")
        connection.execute("UPDATE meta SET value = %s WHERE name = 'schema'", (str(each.version).encode(),))
    return int(before), done
