"""The server's catalog compared with the ledger's own tables: on connecting, before writes, and by verify."""

from __future__ import annotations

import re
from typing import Any

import pytest

from case_files import case_table
from contract.acts import check, coin, spent
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError
from ldp_budget_postgres import schema, store
from ldp_budget_postgres import schema as catalog
from postgres_faults import ask, plain_url, signal_backends
from postgres_places import new_ledger
from postgres_servers import Server, wait_until

pytestmark = pytest.mark.usefixtures("own_keys")

FUNCTION = "CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN {returned}; END'"
NOTHING = FUNCTION.format(name="nothing", returned="NULL")

CHANGES = case_table("integration_postgres_catalog", "CHANGES")
"""By what is reported of each: a change of the catalogue, and what takes it back."""


@pytest.fixture
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue is compared in each transaction."""
    monkeypatch.setattr(store, "_TABLES_SECONDS", 0.0)


@pytest.fixture
def looks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue is compared on connecting alone."""
    monkeypatch.setattr(store, "_TABLES_SECONDS", 1e9)


def problems_of(accountant: Accountant) -> str:
    """All that a check of the ledger says; a table that is not there ends it."""
    try:
        return "\n".join(accountant.verify().problems)
    except LedgerError:
        return str(accountant.ledger.check_up()["schema"])


def test_catalog_change_is_refused_and_found_by_verify(looks_each_time: None) -> None:
    """Triggers, rules, policies and unlogged tables: the ledger opened and charged as if they were not there."""
    address = new_ledger(1)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("alice", coin(1))
        for reported, (change, undo) in CHANGES.items():
            ask(address, change)
            assert f"schema: {reported}" in problems_of(accountant), reported
            refused = pytest.raises(LedgerError, match=re.escape(reported))
            with refused as told:
                accountant.spend("alice", coin(1))
            assert "Nothing was charged" in str(told.value)
            with refused:
                Accountant(address, create=False)
            assert accountant.ledger.check_up()["schema"] is not None
            ask(address, undo)
            assert set(accountant.ledger.check_up().values()) == {None}, reported
        assert spent(accountant, "alice") == {"lifetime": 1}
        check(accountant)


def test_triggers_and_row_security_that_hide_charges_are_refused(looks_each_time: None, clock: Clock) -> None:
    """Two triggers and a row-security policy hid the sums: 6.0 was granted under lifetime 2 and day 1, `ready`."""
    address = new_ledger(2)
    with Accountant(address, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=2", "day=1"])
        assert accountant.spend("alice", coin(1))
        ask(
            address,
            "CREATE TABLE hidden AS SELECT * FROM window_sums WHERE false;"
            " CREATE FUNCTION hide() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN INSERT INTO hidden SELECT NEW.*; NEW.epsilon = 0; RETURN NEW; END';"
            " CREATE TRIGGER one BEFORE INSERT ON window_sums FOR EACH ROW EXECUTE FUNCTION hide();"
            " CREATE TRIGGER two BEFORE UPDATE ON window_sums FOR EACH ROW EXECUTE FUNCTION hide();"
            " CREATE POLICY p ON window_sums USING (epsilon = 0); ALTER TABLE window_sums ENABLE ROW LEVEL SECURITY",
        )
        for user in ("alice", "bob") * 3:
            with pytest.raises(LedgerError, match=r"trigger one.*Nothing was charged"):
                accountant.spend(user, coin(1))
        assert "trigger one" in str(accountant.ledger.check_up()["schema"])
        assert spent(accountant, "alice") == {"lifetime": 1, "day": 1}


def test_write_that_the_server_discards_is_rolled_back(looks_once: None) -> None:
    """A trigger that returns NULL: `INSERT 0 0` was committed, and the spend acknowledged."""
    address = new_ledger(1)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        users = [f"u{number}" for number in range(20)]
        accountant.spend_many(["alice", *users], coin(1))
        before = ask(address, "SELECT count(*) FROM journal")
        ask(address, NOTHING)
        for table, event in (
            ("window_sums", "UPDATE"),
            ("journal", "INSERT"),
            ("idempotency_records", "INSERT"),
            ("batch_runs", "INSERT"),
            ("partitions", "UPDATE"),
        ):
            ask(address, f"CREATE TRIGGER t BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION nothing()")
            if table != "batch_runs":
                with pytest.raises(LedgerError, match=r"wrote fewer rows than .*Nothing was charged") as told:
                    accountant.spend("alice", coin(1), key="k")
                assert not told.value.unknown
            if table != "idempotency_records":
                with pytest.raises(LedgerError, match=r"wrote fewer rows than"):
                    accountant.spend_many(users, coin(1), key="run")
            ask(address, f"DROP TRIGGER t ON {table}")
        assert ask(address, "SELECT count(*) FROM journal") == before
        ask(address, "DROP FUNCTION nothing")
        assert accountant.spend("alice", coin(1), key="k").status == "spent"
        assert accountant.spend_many(users, coin(1), key="run").spent == 20
        check(accountant)


def test_search_path_of_a_role_leads_to_no_other_tables() -> None:
    """A search path set for the database put empty copies before the ledger's tables: a fresh budget for all."""
    address = new_ledger(1)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        assert accountant.spend("alice", coin(1))
        ask(address, "CREATE SCHEMA evil")
        for table in schema.PARTITIONED:
            ask(address, f"CREATE TABLE evil.{table} (LIKE public.{table} INCLUDING ALL)")
        ask(address, "INSERT INTO evil.partitions TABLE public.partitions")
        ask(address, "CREATE FUNCTION evil.count(text) RETURNS int8 LANGUAGE sql AS 'SELECT 0::int8'")
        ask(address, f"ALTER DATABASE {plain_url(address).rpartition('/')[2]} SET search_path = evil, public")
        signal_backends(address, "pg_terminate_backend")
        assert accountant.spend("alice", coin(1)).status == "refused"
        assert accountant.spend("bob", coin(1))
        assert ask(address, "SELECT count(*) FROM evil.journal") == [(0,)]
        check(accountant)


def test_trigger_on_truncate_is_accepted(looks_each_time: None) -> None:
    """Citus puts one on each table that it distributes; the ledger never truncates."""
    address = new_ledger(1)
    with Accountant(address) as accountant:
        ask(address, f"{NOTHING}; CREATE TRIGGER t BEFORE TRUNCATE ON users EXECUTE FUNCTION nothing()")
        accountant.set_policy("default", ["lifetime=1"])
        check(accountant)


def test_extension_with_its_own_types_is_accepted(looks_each_time: None) -> None:
    """Functions and operators over other types cannot be meant by the ledger's statements."""
    address = new_ledger(1)
    ask(address, "CREATE TYPE mood AS ENUM ('sad', 'ok')")
    ask(address, "CREATE FUNCTION lower(mood) RETURNS text LANGUAGE sql AS 'SELECT $1::text'")
    ask(address, "CREATE FUNCTION gen_random_uuid() RETURNS uuid LANGUAGE sql AS 'SELECT NULL::uuid'")
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        check(accountant)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE t (partition int4, at timestamptz, PRIMARY KEY (partition))",
        "CREATE TABLE t (partition int4 DEFAULT 0)",
        "CREATE INDEX i ON t USING hash (partition)",
        "CREATE VIEW v AS SELECT 1",
    ],
)
def test_statement_that_the_comparison_cannot_parse_raises(statement: str) -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        catalog.expect_facts([statement])


def test_acknowledged_spends_survive_a_reload_without_durability(server: Server) -> None:
    """`synchronous_commit=off` by a reload: 200 of 200 acknowledged spends were lost when the server was killed."""
    server.run("ALTER SYSTEM SET wal_writer_delay = '10s'")
    server.run("SELECT pg_reload_conf()")
    address = f"{server.create_database()}?partitions=1&connections=2"
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=900"])
        assert accountant.spend("alice", coin(1))
        server.run("ALTER SYSTEM SET synchronous_commit = off")
        server.run("SELECT pg_reload_conf()")
        wait_until(lambda: server.run("SHOW synchronous_commit") == [("off",)], "no new settings")
        receipts = [accountant.spend("alice", coin(1)) for _ in range(20)]
        server.kill()
    server.restart()
    server.run("ALTER SYSTEM RESET synchronous_commit")
    server.run("SELECT pg_reload_conf()")
    wait_until(lambda: server.run("SHOW synchronous_commit") == [("on",)], "no new settings")
    with Accountant(address, create=False) as accountant:
        assert len(receipts) == 20
        assert spent(accountant, "alice") == {"lifetime": 21}
        check(accountant)


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_reload_without_durability_is_refused_by_open_connections(server: Server, setting: str) -> None:
    """`fsync=off` by a reload was noticed by new connections alone."""
    address = f"{server.create_database()}?partitions=1&connections=1"

    def reload(value: str) -> None:
        server.run(f"ALTER SYSTEM SET {setting} = {value}")
        server.run("SELECT pg_reload_conf()")
        wait_until(lambda: server.run(f"SHOW {setting}") == [(value,)], "no new settings")

    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        reload("off")

        def refused() -> Any:
            try:
                accountant.spend("alice", coin("0.01"))
            except LedgerError as error:
                return "got off, with which it can lose acknowledged charges" in str(error)
            return False

        wait_until(refused, "it is not refused")  # a session takes the new settings with its next statement
        reload("on")
        wait_until(lambda: not refused(), "it is refused still")
        check(accountant)


def test_role_without_a_schema_is_refused_with_the_remedy() -> None:
    """`options=-csearch_path%3Dnowhere`: the error was the server's, about an identifier of no length."""
    with pytest.raises(LedgerError, match=r"no schema of the role's search_path exists\. Create one"):
        Accountant(f"{new_ledger(1)}&options=-csearch_path%3Dnowhere")


def test_schema_of_any_name_is_accepted() -> None:
    address = new_ledger(1)
    ask(address, 'CREATE SCHEMA "a ""b"" c"')
    there = f"{address}&options=-csearch_path%3D%22a%5C%20%22%22b%22%22%5C%20c%22"
    for _ in range(2):
        with Accountant(there) as accountant:
            accountant.set_policy("default", ["lifetime=1"])
            check(accountant)
    assert ask(address, "SELECT schemaname FROM pg_tables WHERE tablename = 'partitions'") == [('a "b" c',)]
