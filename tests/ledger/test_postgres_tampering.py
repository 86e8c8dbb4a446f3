"""Whoever can write to the server, and has no key: what they change in the tables of a ledger of lanes is found."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import ldp_budget
from conftest import Clock
from ldp_budget import Accountant, LedgerError, Limit
from ldp_budget.accounting.plans import Plan
from ldp_budget.catalogue.collections import Collection
from ldp_budget.ledger.keys import KEY_BYTES
from ldp_budget.ledger.ledger import Ledger
from ldp_budget.ledger.verifying import check_integrity
from ledger_contract import CURVE, check, coin, made, promising, write_record
from postgres_places import new_ledger

LANES = 3

KEYS = {
    "accounts": ("lane", "account", "slot"),
    "charges": ("lane", "charge"),
    "checkpoints": ("lane", "number"),
    "collections": ("lane", "number"),
    "entry_labels": ("lane", "entry"),
    "journal": ("lane", "entry"),
    "keys": ("lane", "owner", "key"),
    "labels": ("lane", "account", "label", "charge", "slot"),
    "lanes": ("lane",),
    "notes": ("lane", "entry"),
    "periods": ("lane", "period"),
    "policies": ("lane", "policy"),
    "quotas": ("lane", "account", "plan", "promise"),
    "records": ("lane", "number"),
    "seals": ("lane", "account"),
    "tombstones": ("lane", "hash"),
    "users": ("lane", "account"),
}
"""The tables, each with the columns of its key."""

COUNTERS = ("accounts", "charges", "policies", "collections", "answers", "checkpoints", "periods")

Row = dict[str, Any]
Statement = tuple[str, tuple[Any, ...]]
Attack = list[Statement]


class Attacked:
    """A ledger on a server, with copies of its tables at several times."""

    def __init__(self, key_file: Path) -> None:
        import psycopg
        from psycopg.rows import dict_row

        from ldp_budget.ledger._postgres import PostgresStore

        # The same key each time, so that the same users lie in the same lanes.
        key_file.write_bytes(bytes(range(KEY_BYTES)))
        key_file.chmod(0o600)
        self.address = new_ledger(LANES)
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
        """Something in every table of every lane."""
        accountant.set_policy("default", [Limit("lifetime", 30), Limit("day", 20)])
        accountant.set_policy("planned", ["lifetime=9,1e-3"], plan=Plan(((coin(1), 2),), Decimal("1e-6")))
        poll = ldp_budget.mechanism("oue")(epsilon=1, domain_size=2)
        surveys = [Collection(name, poll, ("a", "b")) for name in ("poll", "survey")]
        for survey in surveys:
            accountant.add_collection(survey)
        made(accountant, "team-a")
        ledger = accountant._ledger
        by_lane: list[list[str]] = [[] for _ in range(LANES)]
        for number in range(60):
            user = f"user {number}"
            by_lane[ledger.lane_of(ledger.key.hash(b"user", user))].append(user)
        users = [user for lane in by_lane for user in lane[:3]]
        for user in users:
            accountant.spend(user, promising(CURVE), label="home", key="home")
            accountant.spend(user, promising(CURVE), label=f"work of {user}")
            accountant.spend(user, coin(1), policy="planned")
            accountant.spend(user, coin(100), key="refused")
            for survey in surveys:
                accountant.spend(user, survey, note=f"{user} in {survey.name}")
        accountant.void(accountant.reserve(users[0], coin(1), key="held").receipt or "")
        accountant.erase(users[0])
        check(accountant)
        accountant.spend_many(users[1:], coin("0.5"), key="run", note="the second wave")
        return users

    def later(self, accountant: Accountant, users: list[str]) -> None:
        """What goes on after somebody took a copy."""
        self.clock.advance(hours=1)
        for place in (3, 6):
            accountant.erase(users[place])
        check(accountant)
        for user in (users[1], users[4], users[7], "dave"):
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
        """An accountant whom nobody has told anything."""
        return Accountant(self.address, create=False, clock=self.clock)

    def holds(self, expect: str | None = None, opens: bool = False) -> bool:
        """Whether the ledger verifies, and `opens` anew."""
        try:
            if opens:
                with self.open() as accountant:
                    return accountant.verify(expect).ok
            return check_integrity(Ledger(self.store, self.clock), expect).ok
        except LedgerError:
            return False

    def survives(self, attack: Attack, opens: bool = False) -> bool:
        """Whether the ledger still verifies after an attack, which is taken back; the tables' rules may stop it."""
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
    """Values that are not this one: beside it, one that another row has, and nothing."""
    if column == "lane":  # of the others nobody reads anything
        return [lane for lane in range(LANES) if lane != value]
    known = next((row[column] for row in rows if row[column] not in (value, None)), None)
    beside: list[Any]
    if isinstance(value, int) or (value is None and isinstance(known, int)):
        beside = [(value or 0) + 1, -1, 2**62]
    elif isinstance(value, str):
        beside = [value + "x", ""]
    elif isinstance(value, bytes):
        beside = [bytes([value[0] ^ 1]) + value[1:] if value else b"x", value[:-1], b""]
    else:
        beside = [b"x" * 16] if column in ("mark", "link", "hash") else [1]
    return [each for each in (*beside, known, None) if each != value]


def changes(table: str, rows: list[Row]) -> Iterator[Attack]:
    for row in rows:
        for column, value in row.items():
            for other in others(value, column, rows):
                if other is not None or column not in KEYS[table]:
                    yield [update(table, row, {column: other})]


def deletions(table: str, rows: list[Row]) -> Iterator[Attack]:
    return ([delete(table, row)] for row in rows)


def copies(table: str, rows: list[Row]) -> Iterator[Attack]:
    """Rows beside themselves, under another key; in another lane too."""
    for row in rows:
        for column in KEYS[table]:
            for other in others(row[column], column, rows):
                # The label of an entry that is not there is read by nobody.
                if other is not None and (table, column) != ("entry_labels", "entry"):
                    yield [insert(table, {**row, column: other})]


def moves(table: str, rows: list[Row]) -> Iterator[Attack]:
    for row in rows:
        for lane in range(LANES):
            if lane != row["lane"]:
                yield [update(table, row, {"lane": lane})]
                there = {**row, "lane": lane}
                yield [delete(table, there), update(table, row, {"lane": lane})]  # in the place of what is there


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
def test_what_was_changed_is_found(ledger: Attacked, kind: Any, thorough: bool) -> None:
    """In every table; in every column, of some rows."""
    for table in KEYS:
        attacks = list(kind(table, ledger.rows[table]))
        most = 80 if thorough else 1
        for attack in random.Random(table).sample(attacks, min(most, len(attacks))):
            assert not ledger.survives(attack), attack


@pytest.mark.slow
def test_a_policy_that_nobody_set_is_found(ledger: Attacked) -> None:
    """With a number that is never given; the newest version is the one in force."""
    for row in ledger.rows["policies"]:
        for number in (-(2**63), -1, 0, 2**63 - 1):
            generous = row["definition"].replace("30000000000", "90000000000")
            forged = {**row, "policy": number, "version": 99, "definition": generous}
            assert not ledger.survives([insert("policies", forged)])
    for row in ledger.rows["charges"]:
        assert not ledger.survives([insert("charges", {**row, "charge": -1, "fingerprint": "00"})])


def test_no_lane_is_lost_or_added(ledger: Attacked) -> None:
    """Users' lanes are told by their number, so others would get fresh budgets."""
    for row in ledger.rows["lanes"]:
        lane = row["lane"]
        assert not ledger.survives([delete("lanes", row)], opens=True)
        assert not ledger.survives([insert("lanes", {**row, "lane": LANES})], opens=True)
        assert not ledger.survives([update("lanes", row, {"lane": LANES})], opens=True)
        every = [(f"DELETE FROM {table} WHERE lane = {lane}", ()) for table in KEYS]
        assert not ledger.survives(every, opens=True)
        assert not ledger.survives(every)


def lanes_of(lanes: tuple[int, ...]) -> str:
    return f"lane IN ({', '.join(map(str, lanes))})"


@pytest.mark.some(3)
@pytest.mark.parametrize("lanes", [(0,), (1,), (2,), (1, 2)], ids=str)
def test_lanes_that_were_put_back_whole_are_found(ledger: Attacked, lanes: tuple[int, ...]) -> None:
    """With everything that belongs to them, and whatever goes on there afterwards."""
    ledger.put_back("early", lanes_of(lanes))
    assert not ledger.holds()
    with ledger.open() as accountant:
        for number in range(30):
            assert accountant.spend(f"later {number}", coin(1))
    assert not ledger.holds()
    assert not ledger.holds(ledger.heads["today"])


@pytest.mark.some(3)
@pytest.mark.parametrize("first", range(LANES))
def test_lanes_that_took_each_others_places_are_found(ledger: Attacked, first: int) -> None:
    second = (first + 1) % LANES
    steps = ((first, LANES), (second, first), (LANES, second))
    attack = [(f"UPDATE {table} SET lane = {b} WHERE lane = {a}", ()) for table in KEYS for a, b in steps]
    assert not ledger.survives(attack, opens=True)


@pytest.mark.some(6)
@pytest.mark.parametrize("table", [table for table in sorted(KEYS) if table != "lanes"])
@pytest.mark.parametrize("lane", [-1, LANES])
def test_rows_of_lanes_that_are_not_there_are_found(ledger: Attacked, table: str, lane: int) -> None:
    row = {**ledger.rows[table][0], "lane": lane}
    assert not ledger.survives([insert(table, row)])


@pytest.mark.some(3)
@pytest.mark.parametrize("lane", range(LANES))
def test_labels_of_entries_that_are_not_there_are_found(ledger: Attacked, lane: int) -> None:
    row = ledger.rows["entry_labels"][0]
    of_nobody = next(each["entry"] for each in ledger.rows["journal"] if each["kind"] == "policy")
    for entry in (10**6, -1, of_nobody):
        assert not ledger.survives([insert("entry_labels", {**row, "lane": lane, "entry": entry})])


def test_the_newest_checkpoint_is_missed(ledger: Attacked) -> None:
    newest = ledger.rows["checkpoints"][-1]
    first = ledger.rows["lanes"][0]
    assert not ledger.survives([delete("checkpoints", newest)])
    assert not ledger.survives([delete("checkpoints", row) for row in ledger.rows["checkpoints"]])
    assert not ledger.survives([delete("checkpoints", newest), update("lanes", first, {"checkpoints": 2})])
    # And if it is taken back with the counters as they stood before it, which nothing else has moved since.
    (before,) = ledger.ask("SELECT * FROM lanes WHERE lane = 0")
    with ledger.open() as accountant:
        accountant.spend("dave", coin("0.125"), key="one more")
        accountant.checkpoint()
    (after,) = ledger.ask("SELECT * FROM lanes WHERE lane = 0")
    assert after["checkpoints"] == before["checkpoints"] + 1
    counters = {name: before[name] for name in (*COUNTERS, "seal")}
    ledger.ask("DELETE FROM checkpoints WHERE number = %s", (after["checkpoints"],))
    ledger.ask(*update("lanes", after, counters))
    assert not ledger.holds()


def test_a_whole_ledger_that_was_put_back_is_found_by_a_head_that_was_noted(ledger: Attacked) -> None:
    assert ledger.holds(ledger.heads["early"])
    assert ledger.holds(ledger.heads["today"])
    assert ledger.holds(ledger.heads["today"].upper())
    ledger.put_back("early")
    assert ledger.holds(), "alone, an older copy is a ledger as good as any"
    assert ledger.holds(ledger.heads["early"])
    assert not ledger.holds(ledger.heads["today"])
    # Nor does it help that as many checkpoints are taken again.
    with ledger.open() as accountant:
        while accountant.checkpoint().partition("-")[0] != ledger.heads["today"].partition("-")[0]:
            accountant.spend("dave", coin("0.125"))
    assert ledger.holds()
    assert not ledger.holds(ledger.heads["today"])
    assert not ledger.holds("1-" + "11" * 32)
    assert not ledger.holds("nothing that anybody noted")
