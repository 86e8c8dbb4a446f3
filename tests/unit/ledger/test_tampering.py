"""Tampering in SQLite: changes by an attacker who can write the file but has no key are found."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import ldp_budget
from case_files import case_table
from contract.acts import CURVE, check, coin, made, promising, send, write_record
from contract.rotation import exchange
from fixed_clock import Clock
from ldp_budget import Accountant, Limit
from ldp_budget.accounting.plans import Plan
from ldp_budget.registry.collections import Collection

Rows = dict[str, list[tuple[Any, ...]]]

# Not used for charging: bookkeeping of the format.
APART = ("meta", "_sqlite_migrations")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


def live(path: Path, clock: Clock) -> None:
    """Something in every table: two users with a label each, keys, a refusal, a bulk run, plans, collections."""
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", [Limit("lifetime", 30), Limit("day", 20)])
        accountant.set_policy("planned", ["lifetime=9,1e-3"], plan=Plan(((coin(1), 2),), Decimal("1e-6")))
        poll = ldp_budget.mechanism("oue")(epsilon=1, domain_size=2)
        surveys = [Collection(name, poll, ("a", "b"), minimum_group=1) for name in ("poll", "survey")]
        for survey in surveys:
            accountant.add_collection(survey)
        made(accountant, "team-a")
        for user in ("alice", "bob", "carol"):
            accountant.spend(user, promising(CURVE), label="home", key="home")
            accountant.spend(user, promising(CURVE), label=f"work of {user}")
            accountant.spend(user, coin(1), policy="planned")
            accountant.spend(user, coin("0.25"), key="k", note=f"{user} at the door")
            for survey in surveys:
                accountant.spend(user, survey)
            accountant.spend(user, coin(100), key="refused")
            send(accountant, user, user.encode(), "report", surveys[0])
        accountant.void(accountant.reserve("bob", coin(1), key="held").receipt or "")
        accountant.checkpoint()
        accountant.spend_many(["alice", "bob"], coin("0.5"), key="run", note="the second wave")
        accountant.checkpoint()


def later(path: Path, clock: Clock) -> None:
    """Activity after an attacker took a copy: charges, refusals, erasures, another collection."""
    clock.advance(hours=1)
    with Accountant(path, create=False, clock=clock) as accountant:
        accountant.erase("alice")
        accountant.erase("carol")
        accountant.checkpoint()
        accountant.reports.seal("poll", "one")
        send(accountant, "dave", b"dave", "report", accountant.collection("poll"))
        for user in ("bob", "dave"):
            accountant.spend(user, coin("0.125"), key="later", note="later")
            accountant.spend(user, coin(50), key="refused later")
        third = ldp_budget.mechanism("oue")(epsilon=2, domain_size=2)
        accountant.add_collection(Collection("third", third, ("a", "b")))
        write_record(accountant, "key-revoked", "team-a", {})


def tables(path: Path) -> Rows:
    connection = sqlite3.connect(path)
    try:
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names if name not in APART}
    finally:
        connection.close()


def holds(path: Path, clock: Clock, expect: str | None = None) -> bool:
    """True if the ledger opens and verifies."""
    try:
        with Accountant(path, create=False, clock=clock) as accountant:
            return accountant.verify(expect).ok
    except ldp_budget.LedgerError:
        return False


def attempt(path: Path, clock: Clock, attack: Callable[[sqlite3.Connection], None]) -> bool:
    """True if the ledger still verifies after an attack, which is undone; None if a constraint stops it."""
    before = path.read_bytes()
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        attack(connection)
        connection.commit()
    except sqlite3.IntegrityError:
        return False
    finally:
        connection.close()
    held = holds(path, clock)
    for companion in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + companion).unlink(missing_ok=True)
    path.write_bytes(before)
    return held


def rowids(path: Path, table: str) -> list[tuple[str, tuple[Any, ...]]]:
    """Every row of a table by a condition that holds of it alone."""
    connection = sqlite3.connect(path)
    try:
        info = connection.execute(f"SELECT name FROM pragma_table_info('{table}') WHERE pk ORDER BY pk").fetchall()
        names = [name for (name,) in info]
        rows = connection.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall()
        return [(" AND ".join(f"{name} = ?" for name in names), row) for row in rows]
    finally:
        connection.close()


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Clock]:
    """A ledger to which everything has happened, and the time then."""
    path, clock = tmp_path_factory.mktemp("lived") / "budget.db", Clock()
    live(path, clock)
    later(path, clock)
    with Accountant(path, create=False, clock=clock) as accountant:
        check(accountant)
    assert attempt(path, clock, lambda connection: None), "looking at it breaks nothing"
    return path, clock


@pytest.fixture
def ledger(path: Path, clock: Clock, lived: tuple[Path, Clock]) -> Path:
    """A copy of it, to tamper with."""
    before, then = lived
    for file in before.parent.iterdir():
        shutil.copy2(file, path.with_name(file.name))
    clock.now = then.now
    return path


TABLES = case_table("tampering", "TABLES")


@pytest.mark.slow
def test_tested_tables_are_all_tables(ledger: Path) -> None:
    assert sorted(tables(ledger)) == TABLES


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("table", TABLES)
def test_verify_with_a_restored_row_finds_it(path: Path, clock: Clock, table: str) -> None:
    """Put a row of an older copy in the place of today's, or add it; and all such rows."""
    live(path, clock)
    old = tables(path)[table]
    later(path, clock)
    new = tables(path)[table]
    replayed = [row for row in old if row not in new]

    def put_back(rows: list[tuple[Any, ...]]) -> Callable[[sqlite3.Connection], None]:
        def attack(connection: sqlite3.Connection) -> None:
            for row in rows:
                places = ", ".join("?" * len(row))
                connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", row)

        return attack

    for rows in [*([row] for row in replayed), *([replayed] if replayed else [])]:
        assert not attempt(path, clock, put_back(rows)), rows


@pytest.mark.some(24)
@pytest.mark.parametrize("table", TABLES)
def test_verify_with_swapped_values_finds_it(ledger: Path, clock: Clock, table: str, thorough: bool) -> None:
    """In every column, of every row and the next ones."""
    reach = 3 if thorough else 1
    connection = sqlite3.connect(ledger)
    columns = [row[0] for row in connection.execute(f"SELECT name FROM pragma_table_info('{table}') WHERE NOT pk")]
    connection.close()
    keys = rowids(ledger, table)
    for column in columns:
        for number, (where, one) in enumerate(keys):
            for _, other in keys[number + 1 : number + 1 + reach]:
                if not _equal(ledger, table, column, where, one, other):
                    attack = _swap(table, column, where, one, other)
                    assert not attempt(ledger, clock, attack), (column, one, other)


def _value(connection: sqlite3.Connection, table: str, column: str, where: str, row: tuple[Any, ...]) -> Any:
    return connection.execute(f"SELECT {column} FROM {table} WHERE {where}", row).fetchone()[0]


def _equal(path: Path, table: str, column: str, where: str, one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    connection = sqlite3.connect(path)
    try:
        return bool(_value(connection, table, column, where, one) == _value(connection, table, column, where, other))
    finally:
        connection.close()


def _swap(
    table: str, column: str, where: str, one: tuple[Any, ...], other: tuple[Any, ...]
) -> Callable[[sqlite3.Connection], None]:
    def attack(connection: sqlite3.Connection) -> None:
        values = [_value(connection, table, column, where, row) for row in (one, other)]
        for row, value in ((one, values[1]), (other, values[0])):
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value, *row))

    return attack


@pytest.mark.slow
@pytest.mark.parametrize(
    "attack",
    case_table("tampering", "test_verify_with_a_targeted_change_finds_it"),
    ids=lambda attack: " ".join(attack.split())[:50],
)
def test_verify_with_a_targeted_change_finds_it(ledger: Path, clock: Clock, attack: str) -> None:
    assert not attempt(ledger, clock, lambda connection: connection.executescript(attack))


@pytest.mark.slow
def test_verify_of_any_rollback_with_the_head_finds_it(path: Path, clock: Clock) -> None:
    """Of charges, and of what moves without one: a refusal under a key, a collection."""
    with Accountant(path, clock=clock) as accountant:
        empty = check(accountant)
        accountant.set_policy("default", ["lifetime=1"])
        heads = [empty, check(accountant)]
        steps: list[Callable[[], Any]] = [
            lambda: accountant.spend("alice", coin(1)),
            lambda: accountant.spend("alice", coin(1), key="refused"),
            lambda: accountant.add_collection(
                Collection("poll", ldp_budget.mechanism("oue")(epsilon=1, domain_size=2), ("a", "b"), minimum_group=1)
            ),
        ]
        copies = []
        for step in steps:
            step()
            heads.append(check(accountant))
    for head in heads:
        assert holds(path, clock, head)
    assert len(set(heads)) == len(heads)
    copies.append(path.read_bytes())
    with Accountant(path, create=False, clock=clock) as accountant:
        accountant.spend("bob", coin(100), key="refused later")
        newest = check(accountant)
    assert holds(path, clock, newest)
    path.write_bytes(copies[0])
    assert holds(path, clock), "alone, an older copy is a ledger as good as any"
    assert not holds(path, clock, newest)
    assert not holds(path, clock, "11" * 42), "the head of another ledger"


@pytest.mark.slow
def test_verify_of_a_fork_with_equal_last_entries_and_the_other_head_finds_it(path: Path, clock: Clock) -> None:
    """The ledger was restored from a copy, and only the charge before the last one was another one."""
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=1"])
    copy, heads = path.read_bytes(), []
    for epsilon in ("1", "0.5"):
        path.write_bytes(copy)
        with Accountant(path, create=False, clock=clock) as accountant:
            accountant.spend("alice", coin(epsilon))
            accountant.spend("bob", coin("0.25"))
            heads.append(check(accountant))
    assert holds(path, clock, heads[1])
    assert not holds(path, clock, heads[0])


def test_verify_with_the_labels_of_an_erased_user_put_back_finds_it(path: Path, clock: Clock) -> None:
    """And with the counts of the labels, so that labels and counts agree."""
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("alice", promising(CURVE), label="home")
        before = tables(path)
        accountant.erase("alice")
        check(accountant)

    def put_back(connection: sqlite3.Connection) -> None:
        for table in ("entry_labels", "memoised_counts"):
            [row] = before[table]
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)

    assert not attempt(path, clock, put_back)


@pytest.mark.parametrize(
    ("insert", "problem"),
    [
        (
            "INSERT INTO partitions SELECT 1, {counters}, row_mac FROM partitions",
            "partitions: there is a partition 1",
        ),
        ("INSERT INTO entry_labels VALUES (999, x'00', x'01')", "entry_labels: there is a label of entry 999"),
        ("INSERT INTO entry_labels VALUES (1, x'00', x'01')", "entry_labels: there is a label of entry 1,"),
    ],
    ids=["another partition", "no such entry", "an entry of no user"],
)
def test_verify_with_an_orphaned_row_finds_it(ledger: Path, clock: Clock, insert: str, problem: str) -> None:
    connection = sqlite3.connect(ledger)
    names = [row[1] for row in connection.execute("PRAGMA table_info(partitions)")]
    connection.execute(insert.format(counters=", ".join(names[1:-1])))
    connection.commit()
    connection.close()
    with Accountant(ledger, create=False, clock=clock) as accountant:
        assert [found for found in accountant.verify().problems if problem in found]


@pytest.mark.slow
@pytest.mark.parametrize("table", ["closings", "key_epochs", "moved_entries"])
def test_verify_of_a_moved_ledger_with_a_changed_row_finds_it(path: Path, clock: Clock, table: str) -> None:
    """Rows of a moved ledger with a rotated key: each row deleted, each value changed."""
    with Accountant(path.with_name("first.db"), clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.reserve("alice", coin(1))
        exchange(accountant)
        accountant.reserve("bob", coin(1))
        accountant.ledger.move_to(path)
    assert attempt(path, clock, lambda connection: None), "looking at it breaks nothing"
    rows = tables(path)[table]
    assert rows
    for where, row in rowids(path, table):
        assert not attempt(
            path, clock, lambda c, where=where, row=row: c.execute(f"DELETE FROM {table} WHERE {where}", row)
        )
    connection = sqlite3.connect(path)
    columns = [row[0] for row in connection.execute(f"SELECT name FROM pragma_table_info('{table}')")]
    connection.close()
    for number, *values in rows:
        for column, value in zip(columns, (number, *values), strict=True):
            other = value + {int: 1, str: "x", bytes: b"x"}[type(value)]
            change = f"UPDATE {table} SET {column} = ? WHERE number = ?"
            assert not attempt(path, clock, lambda c, s=change, v=(other, number): c.execute(s, v)), (column, number)
