"""A ledger with the tables of an older release is brought forward when it is opened: whole, or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import ldp_budget
from conftest import Clock
from ldp_budget import Accountant, KeyConflict, LedgerError
from ldp_budget.ledger._sqlite import schema
from ledger_contract import check, coin
from ledger_places import as_nobody, closed_copy
from postgres_places import FIRST_TABLES, SECOND_TABLES, new_ledger

SCRIPT = Path(__file__).parent / "version1.sql"
OUE = ldp_budget.mechanism("oue")(epsilon=1, domain_size=2)
WRITTEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


def noted(name: str) -> str:
    """What stands behind a name in the first lines of the script."""
    return next(
        line.rpartition(f"{name}: ")[2] for line in SCRIPT.read_text(encoding="utf-8").splitlines() if name in line
    )


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A ledger as the first version of the tables holds it, with its key."""
    path = tmp_path / "older.db"
    connection = sqlite3.connect(path)
    connection.executescript(SCRIPT.read_text(encoding="utf-8"))
    connection.close()
    path.with_name("older.db.key").write_bytes(bytes.fromhex(noted("Key")))
    for file in (path, path.with_name("older.db.key")):
        file.chmod(0o600)
    return path


def version(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return schema.version_of(connection)
    finally:
        connection.close()


def at_work(path: Path) -> Accountant:
    clock = Clock()
    clock.now = WRITTEN + timedelta(minutes=5)
    return Accountant(path, create=False, clock=clock)


def test_what_was_written_before_holds_and_what_comes_has_its_collection(older: Path) -> None:
    with at_work(older) as accountant:
        check(accountant, noted("Head"))
        assert [row["collection"] for row in accountant.journal()] == [None] * 9
        assert accountant.spend("alice", OUE, key="first").repeated
        party = accountant.collection("party")
        assert accountant.spend("alice", party, key="second", note="at the door")
        assert accountant.void(noted("Receipt")).status == "voided"
        with pytest.raises(KeyConflict):
            accountant.spend("alice", party, key="first")
        assert [row["collection"] for row in accountant.history("alice")][-1] == "party"
        head = check(accountant, noted("Head"))
    assert version(older) == schema.SCHEMA_VERSION
    with at_work(older) as accountant:
        check(accountant, head)
        accountant.erase("alice")
        check(accountant, head)


def test_its_log_may_hold_what_is_not_in_the_database_yet(older: Path) -> None:
    """And the log that the change starts belongs to the database: both are opened again, as they lie there."""
    connection = sqlite3.connect(older)
    connection.executescript("PRAGMA journal_mode = WAL; UPDATE meta SET value = value WHERE name = 'log';")
    with at_work(older) as accountant:
        accountant.spend("alice", coin("0.125"), note="first")
        copy = older.with_name("copy.db")
        for ending in ("", "-wal", ".key"):
            copy.with_name(copy.name + ending).write_bytes(older.with_name(older.name + ending).read_bytes())
            copy.with_name(copy.name + ending).chmod(0o600)
    connection.close()
    with at_work(copy) as accountant:
        assert [row["note"] for row in accountant.history("alice")][-1] == "first"
        check(accountant, noted("Head"))


def test_who_is_stopped_halfway_leaves_it_as_it_was(older: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(schema, "_SECOND", (*schema._SECOND[:4], "INSERT INTO nowhere VALUES (1)"))
        with pytest.raises(LedgerError, match="of an older version, cannot be brought forward: no such table"):
            at_work(older)
    assert version(older) == 1
    with at_work(older) as accountant:
        check(accountant, noted("Head"))


def test_another_key_changes_nothing(older: Path) -> None:
    older.with_name("older.db.key").write_bytes(bytes(32))
    with pytest.raises(LedgerError, match="belongs to another ledger"):
        at_work(older)
    assert version(older) == 1


def test_where_nobody_may_write_it_says_what_to_do(older: Path) -> None:
    said = "of an older version; open it once where it can be written"
    with closed_copy(older.parent) as folder, as_nobody(), pytest.raises(LedgerError, match=said):
        at_work(folder / older.name)


def test_the_tables_of_the_second_version_are_brought_forward(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "second.db"
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=20"])
        accountant.spend("alice", OUE, note="at the door")
        head = check(accountant)
    connection = sqlite3.connect(path)
    connection.executescript(
        "DROP TABLE records; DROP INDEX answers_apart;"
        "DELETE FROM _sqlite_migrations WHERE name = 'v3_records'; PRAGMA user_version = 2"
    )
    connection.close()
    with Accountant(path, create=False, clock=clock) as accountant:
        check(accountant, head)
        assert accountant.record("key", "team-a", {}, expected=0).number == 1
        check(accountant, head)
    assert version(path) == schema.SCHEMA_VERSION


def test_a_new_ledger_has_the_tables_that_migrating_makes() -> None:
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

    def and_brought_forward(connection: sqlite3.Connection) -> None:
        schema.lay_out(connection)
        schema.migrate(connection)

    assert made(schema.lay_out) == made(schema.migrate) == made(and_brought_forward)


@pytest.mark.slow
@pytest.mark.parametrize("older_tables", [FIRST_TABLES, SECOND_TABLES], ids=["first", "second"])
def test_the_tables_on_a_server_are_brought_forward_too(own_keys: None, clock: Clock, older_tables: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    address = new_ledger(4)
    with Accountant(address, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=20"])
        accountant.spend("alice", OUE, key="first")
        head = check(accountant)
    with psycopg.connect(address.partition("?")[0], autocommit=True) as connection:
        connection.execute(older_tables)

    with Accountant(address, create=False, clock=clock) as accountant:
        check(accountant, head)
        assert accountant.spend("alice", OUE, key="first").repeated
        assert accountant.spend("alice", OUE, note="at the door")
        assert accountant.record("key", "team-a", {}, expected=0).number == 1
        check(accountant, head)
    with Accountant(address, create=False, clock=clock) as accountant:
        assert [row["note"] for row in accountant.history("alice")] == [None, "at the door"]
