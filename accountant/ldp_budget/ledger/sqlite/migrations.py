"""Migrations of a ledger in SQLite, applied by sqlite-utils, and the comparison of a file's schema with its version.

Loaded by an upgrade and a verification only, see `ldp_budget.ledger.migrations`.
"""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING

from ..migrations import POST, PRE
from . import schema

if TYPE_CHECKING:
    from collections.abc import Sequence

_SET, _STEP = schema.MIGRATION

# -- what is there, compared with what should be ---------------------------------------------------------------

_SCHEMA = "SELECT type, name, coalesce(sql, '') FROM sqlite_schema"
_CREATED = re.compile(r"CREATE (?:UNIQUE )?(?:TABLE|INDEX|VIEW|TRIGGER) (\w+)")


def _steps(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute("SELECT migration_set, name FROM _sqlite_migrations").fetchall()


def _is_prepared(connection: sqlite3.Connection) -> bool:
    """True if the pre step to the next version was applied."""
    return (_SET, f"v{schema.version_of(connection) + 1}_{PRE}") in _steps(connection)


def has_strange_steps(connection: sqlite3.Connection) -> bool:
    """True if the recorded migrations are not those to the version of the tables; the next pre step may be there."""
    version, found = schema.version_of(connection), _steps(connection)
    done = [each.version for each in schema.MIGRATIONS if each.version <= version]
    needed = {(_SET, _STEP)} | {(_SET, f"v{each}_{step}") for each in done for step in (PRE, POST)}
    return len(found) != len(set(found)) or {*found} - {(_SET, f"v{version + 1}_{PRE}")} != needed


def changed_schema(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return the unexpected and the missing parts of the schema.

    What a pending migration creates is neither. If the next pre step is one of a version that this one does not know,
    further tables and indexes are not unexpected: no statement of this version sees them.
    """
    found = set(connection.execute(_SCHEMA))
    fresh = sqlite3.connect(":memory:")
    try:
        for statement in (*schema.MIGRATION_TABLES, *schema.TABLES):
            fresh.execute(statement)
        expected = set(fresh.execute(_SCHEMA))
    finally:
        fresh.close()
    pending = [each for each in schema.MIGRATIONS if each.version > schema.version_of(connection)]
    aside = {name for each in pending for text in (*each.pre, *each.post) for name in _CREATED.findall(text)}
    if not pending and _is_prepared(connection):
        names = {name for _, name, _ in expected}
        aside |= {name for kind, name, _ in found if kind in ("table", "index") and name not in names}
    return [row[:2] for row in sorted(found ^ expected) if row[1] not in aside]


def migrate(connection: sqlite3.Connection, *, until: str = POST) -> list[str]:
    """Apply the migrations that are pending, with sqlite-utils, which records each; return their names.

    In an empty database that is the one which creates the tables. With `until` PRE, the newest stops before its post
    step.
    """
    from sqlite_utils import Database, Migrations

    migrations, database = Migrations(_SET), Database(connection)

    def add(name: str, statements: Sequence[str], version: int | None) -> None:
        def run(database: Database) -> None:
            for statement in statements:
                database.execute(statement)
            if version is not None:
                database.execute(f"PRAGMA user_version = {version}")

        migrations(name=name)(run)

    new = not database.table_names()
    add(_STEP, (*schema.TABLES, f"PRAGMA application_id = {schema.APPLICATION_ID}"), schema.SCHEMA_VERSION)
    for each in schema.MIGRATIONS:
        is_last = each is schema.MIGRATIONS[-1]
        add(f"v{each.version}_{PRE}", () if new else each.pre, None)
        if not (is_last and until == PRE):
            add(f"v{each.version}_{POST}", () if new else each.post, each.version)
    pending = [each.name for each in migrations.pending(database)]
    migrations.apply(database)
    return pending
