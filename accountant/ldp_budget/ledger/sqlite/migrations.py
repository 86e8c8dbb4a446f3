"""Migrations of a ledger in SQLite, applied by sqlite-utils, and the comparison of a file's schema with its version.

Loaded by an upgrade and a verification only, see `ldp_budget.ledger.storage.Migration`.
"""

from __future__ import annotations

import re
import sqlite3
from typing import TYPE_CHECKING

from ..storage import POST, Migration
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
    return (_SET, _next_pre_step(schema.version_of(connection))) in _steps(connection)


def _next_pre_step(version: int) -> str:
    """Return the name of the pre step to the version after this one, which need not be known."""
    return Migration(version + 1).names[0]


def has_strange_steps(connection: sqlite3.Connection) -> bool:
    """True if the recorded migrations are not those to the version of the tables; the next pre step may be there."""
    version, found = schema.version_of(connection), _steps(connection)
    done = [name for each in schema.MIGRATIONS if each.version <= version for name in each.names]
    needed = {(_SET, name) for name in (_STEP, *done)}
    return len(found) != len(set(found)) or {*found} - {(_SET, _next_pre_step(version))} != needed


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
        pre, post = each.names
        add(pre, () if new else each.pre, None)
        if until == POST or each is not schema.MIGRATIONS[-1]:
            add(post, () if new else each.post, each.version)
    pending = [each.name for each in migrations.pending(database)]
    migrations.apply(database)
    return pending
