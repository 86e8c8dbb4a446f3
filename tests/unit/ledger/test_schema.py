"""The tables of a ledger in SQLite, as they are made with and without sqlite-utils."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ldp_budget import Accountant, LedgerError
from ldp_budget.accounting.upgrade import upgrade
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


@pytest.mark.slow
@pytest.mark.parametrize("step", ["pre", "post"])
def test_upgrade_of_a_changed_ledger_raises(tmp_path: Path, own_keys: None, step: str) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=2"])
    assert upgrade(str(path), step).steps == []
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE policies SET version = 3")
        connection.commit()
    with pytest.raises(LedgerError, match=r"does not verify.*It was not upgraded"):
        upgrade(str(path), step)
