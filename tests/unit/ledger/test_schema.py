"""The tables of a ledger in SQLite, as they are made with and without sqlite-utils."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import pytest

from ldp_budget.ledger.sqlite import migrations, schema


@pytest.mark.slow
def test_new_ledger_has_the_tables_of_the_migrations() -> None:
    def made(by: Callable[[sqlite3.Connection], None]) -> tuple[list[tuple[object, ...]], ...]:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        by(connection)
        found = (
            connection.execute("SELECT * FROM sqlite_schema WHERE tbl_name <> '_sqlite_migrations'").fetchall(),
            # How sqlite-utils spells its own is its affair.
            connection.execute("PRAGMA table_info(_sqlite_migrations)").fetchall(),
            connection.execute("SELECT name, \"unique\" FROM pragma_index_list('_sqlite_migrations')").fetchall(),
            connection.execute("SELECT id, migration_set, name FROM _sqlite_migrations").fetchall(),
            connection.execute("SELECT typeof(applied_at), length(applied_at) FROM _sqlite_migrations").fetchall(),
            connection.execute("SELECT * FROM pragma_application_id, pragma_user_version").fetchall(),
            connection.execute("SELECT * FROM periods").fetchall(),
        )
        connection.close()
        return found

    def laid_out_and_migrated(connection: sqlite3.Connection) -> None:
        schema.create_tables(connection)
        migrations.migrate(connection)

    assert made(schema.create_tables) == made(migrations.migrate) == made(laid_out_and_migrated)
