"""Tampering on PostgreSQL: changes by an attacker who can write to the server but has no key are found."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import ldp_budget
from case_files import case_table
from contract.acts import CURVE, check, coin, made, promising, send, write_record
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError, Limit
from ldp_budget.accounting.plans import Plan
from ldp_budget.ledger.keyed_hashing import KEY_BYTES
from ldp_budget.ledger.ledger import Ledger
from ldp_budget.ledger.verification import check_integrity
from ldp_budget.registry.collections import Collection
from postgres_places import new_ledger

PARTITIONS = 3

KEYS = case_table("integration_postgres_tampering", "KEYS")
"""The tables, each with the columns of its key."""

OF_MOVED = ("closings", "key_epochs", "moved_entries")
"""Those of a ledger that was moved, or whose key was rotated: this one has no rows there."""


Row = dict[str, Any]
Statement = tuple[str, tuple[Any, ...]]
Attack = list[Statement]


class Attacked:
    """A ledger on a server, with copies of its tables at several times."""

    def __init__(self, key_file: Path) -> None:
        import psycopg
        from psycopg.rows import dict_row

        from ldp_budget_postgres import PostgresStore

        # The same key each time, so that the users are in the same partitions.
        key_file.write_bytes(bytes(range(KEY_BYTES)))
        key_file.chmod(0o600)
        self.address = new_ledger(PARTITIONS)
        self.clock = Clock()
        self.heads: dict[str, str] = {}
        with Accountant(self.address, clock=self.clock) as accountant:
            users = self.live(accountant)
            self._connection = psycopg.connect(self.address.partition("?")[0], autocommit=True, row_factory=dict_row)
            self.keep("early", accountant)
            self.later(accountant, users)
            self.keep("today", accountant)
        self.rows = {table: self.ask(f"SELECT * FROM {table} ORDER BY {', '.join(KEYS[table])}") for table in KEYS}
        self.store = PostgresStore(self.address, create=False)

    def live(self, accountant: Accountant) -> list[str]:
        """Something in every table of every partition."""
        accountant.set_policy("default", [Limit("lifetime", 30), Limit("day", 20)])
        accountant.set_policy("planned", ["lifetime=9,1e-3"], plan=Plan(((coin(1), 2),), Decimal("1e-6")))
        poll = ldp_budget.mechanism("oue")(epsilon=1, domain_size=2)
        surveys = [Collection(name, poll, ("a", "b"), minimum_group=1) for name in ("poll", "survey")]
        for survey in surveys:
            accountant.add_collection(survey)
        made(accountant, "team-a")
        ledger = accountant._ledger
        by_partition: list[list[str]] = [[] for _ in range(PARTITIONS)]
        for number in range(60):
            user = f"user {number}"
            by_partition[ledger.partition_of(ledger.key.hash(b"user", user))].append(user)
        users = [user for partition in by_partition for user in partition[:3]]
        for user in users:
            accountant.spend(user, promising(CURVE), label="home", key="home")
            accountant.spend(user, promising(CURVE), label=f"work of {user}")
            accountant.spend(user, coin(1), policy="planned")
            accountant.spend(user, coin(100), key="refused")
            for survey in surveys:
                accountant.spend(user, survey, note=f"{user} in {survey.name}")
            send(accountant, user, user.encode(), "report", surveys[0])
        accountant.void(accountant.reserve(users[0], coin(1), key="held").receipt or "")
        accountant.erase(users[0])
        check(accountant)
        accountant.spend_many(users[1:], coin("0.5"), key="run", note="the second wave")
        return users

    def later(self, accountant: Accountant, users: list[str]) -> None:
        """Activity after an attacker took a copy."""
        self.clock.advance(hours=1)
        for place in (3, 6):
            accountant.erase(users[place])
        check(accountant)
        accountant.reports.seal("poll", "one", 3)
        for user in (users[1], users[4], users[7], "dave"):
            send(accountant, user, user.encode(), "another", accountant.collection("poll"))
            accountant.spend(user, coin("0.125"), key="later", note="later")
            accountant.spend(user, coin(50), key="refused later")
        third = ldp_budget.mechanism("oue")(epsilon=2, domain_size=2)
        accountant.add_collection(Collection("third", third, ("a", "b")))
        write_record(accountant, "key-revoked", "team-a", {})

    def ask(self, sql: str, values: tuple[Any, ...] = ()) -> list[Row]:
        cursor = self._connection.execute(sql, values)  # type: ignore[call-overload, unused-ignore]
        return cursor.fetchall() if cursor.description else []

    def keep(self, name: str, accountant: Accountant) -> None:
        """Copy the tables."""
        self.heads[name] = check(accountant)
        self.ask(f"CREATE SCHEMA {name}")
        for table in (*KEYS, "meta"):
            self.ask(f"CREATE TABLE {name}.{table} AS TABLE public.{table}")

    def put_back(self, name: str, where: str = "true") -> None:
        """Let the tables be what they were."""
        with self._connection.transaction(), self._connection.pipeline():
            for table in KEYS:
                self.ask(f"DELETE FROM {table} WHERE {where}")
                self.ask(f"INSERT INTO {table} SELECT * FROM {name}.{table} WHERE {where}")

    def open(self) -> Accountant:
        """An accountant without any memory of the ledger."""
        return Accountant(self.address, create=False, clock=self.clock)

    def holds(self, expect: str | None = None, opens: bool = False) -> bool:
        """True if the ledger verifies, and `opens` again."""
        try:
            if opens:
                with self.open() as accountant:
                    return accountant.verify(expect).ok
            return check_integrity(Ledger(self.store, self.clock), expect).ok
        except LedgerError:
            return False

    def survives(self, attack: Attack, opens: bool = False) -> bool:
        """True if the ledger still verifies after an attack, which is undone; the tables' constraints may stop it."""
        from psycopg import errors

        try:
            with self._connection.transaction():
                for statement in attack:
                    self.ask(*statement)
        except errors.IntegrityError:
            return False
        try:
            return self.holds(opens=opens)
        finally:
            self.put_back("today")

    def close(self) -> None:
        self.store.close()
        self._connection.close()


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    pytest.importorskip("psycopg")
    with pytest.MonkeyPatch.context() as environment:
        file = tmp_path_factory.mktemp("keys") / "ledger.key"
        environment.setenv("LDP_BUDGET_KEY", str(file))
        made = Attacked(file)
        yield made
        made.close()


@pytest.fixture
def ledger(kept: Attacked) -> Attacked:
    kept.put_back("today")
    return kept


def where(table: str, row: Row) -> Statement:
    """A condition that holds of a row alone."""
    return " AND ".join(f"{name} = %s" for name in KEYS[table]), tuple(row[name] for name in KEYS[table])


def update(table: str, row: Row, new: Row) -> Statement:
    condition, values = where(table, row)
    return f"UPDATE {table} SET {', '.join(f'{name} = %s' for name in new)} WHERE {condition}", (
        *new.values(),
        *values,
    )


def insert(table: str, row: Row) -> Statement:
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(['%s'] * len(row))})", tuple(row.values())


def delete(table: str, row: Row) -> Statement:
    condition, values = where(table, row)
    return f"DELETE FROM {table} WHERE {condition}", values


def others(value: Any, column: str, rows: list[Row]) -> list[Any]:
    """Other values: a neighboring one, one of another row, and none."""
    if column == "partition":  # the others are never read
        return [partition for partition in range(PARTITIONS) if partition != value]
    known = next((row[column] for row in rows if row[column] not in (value, None)), None)
    near: list[Any]
    if isinstance(value, int) or (value is None and isinstance(known, int)):
        near = [(value or 0) + 1, -1, 2**62]
    elif isinstance(value, str):
        near = [value + "x", ""]
    elif isinstance(value, bytes):
        near = [bytes([value[0] ^ 1]) + value[1:] if value else b"x", value[:-1], b""]
    else:
        near = [b"x" * 16] if column in ("label_commitment", "chain_hash", "user_hash") else [1]
    return [each for each in (*near, known, None) if each != value]


def changes(table: str, rows: list[Row]) -> Iterator[Attack]:
    for row in rows:
        for column, value in row.items():
            for other in others(value, column, rows):
                if other is not None or column not in KEYS[table]:
                    yield [update(table, row, {column: other})]


def deletions(table: str, rows: list[Row]) -> Iterator[Attack]:
    return ([delete(table, row)] for row in rows)


def copies(table: str, rows: list[Row]) -> Iterator[Attack]:
    """Copies of rows under another key, and in another partition."""
    for row in rows:
        for column in KEYS[table]:
            for other in others(row[column], column, rows):
                # The label of a missing entry is never read.
                if other is not None and (table, column) != ("entry_labels", "entry"):
                    yield [insert(table, {**row, column: other})]


def moves(table: str, rows: list[Row]) -> Iterator[Attack]:
    for row in rows:
        for partition in range(PARTITIONS):
            if partition != row["partition"]:
                yield [update(table, row, {"partition": partition})]
                there = {**row, "partition": partition}
                yield [
                    delete(table, there),
                    update(table, row, {"partition": partition}),
                ]  # in the place of what is there


def swaps(table: str, rows: list[Row]) -> Iterator[Attack]:
    """The values of two rows, one column and all of them."""
    for number, one in enumerate(rows):
        for other in rows[number + 1 :]:
            columns = [column for column in one if column not in KEYS[table]]
            for names in (*([column] for column in columns), columns):
                if any(one[name] != other[name] for name in names):
                    yield [
                        update(table, one, {name: other[name] for name in names}),
                        update(table, other, {name: one[name] for name in names}),
                    ]


KINDS: list[Callable[[str, list[Row]], Iterator[Attack]]] = [changes, deletions, copies, moves, swaps]


@pytest.mark.some(5)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_verify_with_a_changed_value_finds_it(ledger: Attacked, kind: Any, thorough: bool) -> None:
    """In every table; in every column, of some rows."""
    for table in KEYS:
        attacks = list(kind(table, ledger.rows[table]))
        most = 80 if thorough else 1
        for attack in random.Random(table).sample(attacks, min(most, len(attacks))):
            assert not ledger.survives(attack), attack


def test_verify_with_a_lost_or_added_partition_finds_it(ledger: Attacked) -> None:
    """The number of partitions decides the partition of a user, so users would get fresh budgets."""
    for row in ledger.rows["partitions"]:
        partition = row["partition"]
        assert not ledger.survives([delete("partitions", row)], opens=True)
        assert not ledger.survives([insert("partitions", {**row, "partition": PARTITIONS})], opens=True)
        assert not ledger.survives([update("partitions", row, {"partition": PARTITIONS})], opens=True)
        every = [(f"DELETE FROM {table} WHERE partition = {partition}", ()) for table in KEYS]
        assert not ledger.survives(every, opens=True)
        assert not ledger.survives(every)


def partitions_of(partitions: tuple[int, ...]) -> str:
    return f"partition IN ({', '.join(map(str, partitions))})"


@pytest.mark.some(3)
@pytest.mark.parametrize("partitions", [(0,), (1,), (2,), (1, 2)], ids=str)
def test_verify_with_a_restored_partition_finds_it(ledger: Attacked, partitions: tuple[int, ...]) -> None:
    """With all their rows, and with any activity afterwards."""
    ledger.put_back("early", partitions_of(partitions))
    assert not ledger.holds()
    with ledger.open() as accountant:
        for number in range(30):
            assert accountant.spend(f"later {number}", coin(1))
    assert not ledger.holds()
    assert not ledger.holds(ledger.heads["today"])


@pytest.mark.some(3)
@pytest.mark.parametrize("first", range(PARTITIONS))
def test_verify_with_swapped_partitions_finds_it(ledger: Attacked, first: int) -> None:
    second = (first + 1) % PARTITIONS
    steps = ((first, PARTITIONS), (second, first), (PARTITIONS, second))
    attack = [(f"UPDATE {table} SET partition = {b} WHERE partition = {a}", ()) for table in KEYS for a, b in steps]
    assert not ledger.survives(attack, opens=True)


@pytest.mark.some(6)
@pytest.mark.parametrize("table", sorted(KEYS.keys() - {"partitions", *OF_MOVED}))
@pytest.mark.parametrize("partition", [-1, PARTITIONS])
def test_verify_with_rows_of_missing_partitions_finds_it(ledger: Attacked, table: str, partition: int) -> None:
    row = {**ledger.rows[table][0], "partition": partition}
    assert not ledger.survives([insert(table, row)])
