"""Sandbox ledgers: they have a clock of their own, and never become real ones."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contract.acts import CURVE, coin, promising
from fixed_clock import Clock
from ldp_budget import Accountant, ClockError, LedgerError, SandboxError
from ldp_budget.ledger.keyed_hashing import KEY_BYTES
from postgres_places import new_ledger

Address = Callable[[], str]
pytestmark = pytest.mark.usefixtures("own_keys")


@pytest.fixture(params=["file", pytest.param("server", marks=pytest.mark.exhaustive)])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Address:
    """Places where there is nothing yet."""
    made: list[str] = []

    def new() -> str:
        made.append(str(tmp_path / f"{len(made)}.db") if request.param == "file" else new_ledger(3))
        return made[-1]

    return new


def test_sandbox_or_real_is_decided_at_creation(address: Address) -> None:
    real, sandbox = address(), address()
    with Accountant(real) as made:
        assert not made.sandbox
    with Accountant(sandbox, sandbox=True) as made:
        assert made.sandbox
    with pytest.raises(SandboxError, match="this is a sandbox, and a real ledger was asked for") as caught:
        Accountant(sandbox)
    assert caught.value.sandbox
    with pytest.raises(SandboxError, match="this is a real ledger, and a sandbox was asked for"):
        Accountant(real, sandbox=True)
    for place, is_sandbox in ((real, False), (sandbox, True)):
        with Accountant(place, create=False, sandbox=None) as opened:
            assert opened.sandbox is is_sandbox


def test_sandbox_missing_is_not_created_as_the_other_kind(tmp_path: Path) -> None:
    Accountant(tmp_path / "r.db", sandbox=True).close()
    (tmp_path / "r.db").unlink()
    for kind in (True, False, None):
        with pytest.raises(
            LedgerError, match=r"its key file .* exists, but the ledger is missing|a real ledger was asked for"
        ):
            Accountant(tmp_path / "r.db", sandbox=kind)


# -- time -----------------------------------------------------------------------------------------------------


def test_sandbox_time_moves_forward_only_and_the_error_states_it(address: Address, clock: Clock) -> None:
    with Accountant(address(), sandbox=True, clock=clock) as sandbox:
        sandbox.set_policy("default", ["lifetime=4", "day=1"])
        sandbox.spend("alice", coin(1))
        sandbox.reserve("alice", coin("0.1"), expires=60)
        newest = clock()
        clock.advance(seconds=-5)
        assert sandbox.quote("alice", coin(1)).status == "quoted"
        clock.advance(seconds=-1)
        for act in (
            lambda: sandbox.spend("alice", coin(1)),
            lambda: sandbox.quote("alice", coin(1)),
            # What is shown would not be what was asked for.
            lambda: sandbox.balance("alice"),
            lambda: sandbox.spend_many(["alice"], coin(1)),
        ):
            with pytest.raises(ClockError) as caught:
                act()
            assert caught.value.newest == newest
            assert (
                f"the clock shows {clock()}, more than 5 s before the newest entry of {newest}. Nothing was charged."
                in str(caught.value)
            )
            assert not caught.value.repairable
        assert sandbox.verify().ok
        assert sandbox.erase("alice"), "an erasure does not wait for a clock"
        clock.advance(seconds=6)
        assert sandbox.spend("bob", coin(1)).status == "spent"


def test_sandbox_without_a_time_is_read_as_of_its_newest_entry(tmp_path: Path) -> None:
    future = datetime(9000, 1, 31, tzinfo=UTC)
    with Accountant(tmp_path / "r.db", sandbox=True, clock=lambda: future) as sandbox:
        sandbox.set_policy("default", ["lifetime=4", "day=1"])
        sandbox.spend("alice", coin(1))
    with Accountant(tmp_path / "r.db", sandbox=True) as sandbox:
        (_, day) = sandbox.balance("alice").to_json()["limits"]
        assert (day["spent"]["epsilon"], day["resets_at"]) == (1, "9000-02-01T00:00:00Z")
        with pytest.raises(ClockError, match="newest entry of 9000-01-31"):
            sandbox.spend("alice", coin(1))


# -- never the one from the other -----------------------------------------------------------------------------


def full(path: Path, sandbox: bool, clock: Clock) -> None:
    """A ledger with something in most tables."""
    with Accountant(path, sandbox=sandbox, clock=clock) as made:
        made.set_policy("default", ["lifetime=4", "day=2"])
        made.spend("alice", coin(1), key="k")
        made.spend("alice", promising(CURVE), label="home")
        made.spend("bob", coin(9), key="refused")
        made.checkpoint()
        made.erase("bob")


def attacks(path: Path) -> list[tuple[str, str, int, Any]]:
    """Each value in the file: table, column, row and value."""
    found = []
    with closing(sqlite3.connect(path)) as rows, rows:
        for (table,) in rows.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%migrations'"
        ).fetchall():
            columns = [row[1] for row in rows.execute(f"PRAGMA table_info({table})")]
            for number, row in enumerate(rows.execute(f"SELECT * FROM {table}")):
                found += [(table, column, number, value) for column, value in zip(columns, row, strict=True)]
    rows.close()
    return found


def put(path: Path, table: str, column: str, number: int, value: Any) -> None:
    with closing(sqlite3.connect(path)) as rows, rows:
        keys = [row[1] for row in rows.execute(f"PRAGMA table_info({table})") if row[5]]
        names = ", ".join(keys)
        key = rows.execute(f"SELECT {names} FROM {table} LIMIT 1 OFFSET {number}").fetchone()
        where = " AND ".join(f"{name} = ?" for name in keys)
        rows.execute(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {where}", (value, *key))
    rows.close()


def kind_of(path: Path) -> str:
    """Return the kind of a ledger; `refused` if it cannot be opened or does not verify."""
    try:
        with Accountant(path, create=False, sandbox=None) as opened:
            if not opened.verify().ok:
                return "refused"
            return "sandbox" if opened.sandbox else "real"
    except LedgerError:
        return "refused"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sandbox", "real"])
def test_sandbox_cannot_become_real_by_any_changed_value(kind: str, tmp_path: Path, clock: Clock) -> None:
    other = {"sandbox": "real", "real": "sandbox"}[kind]
    for name in (kind, other):
        full(tmp_path / name, name == "sandbox", clock)
    shutil.copy(tmp_path / f"{kind}.key", tmp_path / "changed.key")
    changed = tmp_path / "changed"
    shutil.copy(tmp_path / kind, changed)
    assert kind_of(changed) == kind
    tried = 0
    theirs = {place[:3]: place[3] for place in attacks(tmp_path / other)}
    for *place, value in attacks(tmp_path / kind):
        wrong = theirs.get((place[0], place[1], place[2]), value)
        if wrong != value:
            shutil.copy(tmp_path / kind, changed)
            put(changed, *place, wrong)
            assert kind_of(changed) == "refused", place
            tried += 1
    assert tried > 12, "hashes, seals and links"


def test_sandbox_key_does_not_open_a_real_ledger(tmp_path: Path, clock: Clock) -> None:
    full(tmp_path / "r.db", True, clock)
    full(tmp_path / "b.db", False, clock)
    played, real = (tmp_path / "r.db.key").read_bytes(), (tmp_path / "b.db.key").read_bytes()
    for name, key in (
        ("r.db", played[:KEY_BYTES]),
        ("r.db", real),
        ("r.db", real + played[KEY_BYTES:]),
        ("b.db", real + played[KEY_BYTES:]),
        ("b.db", played),
    ):
        shutil.copy(tmp_path / name, tmp_path / "changed.db")
        (tmp_path / "changed.db.key").write_bytes(key)
        for wanted in (True, False, None):
            with pytest.raises(LedgerError, match=r"belongs to another ledger|was asked for"):
                Accountant(tmp_path / "changed.db", create=False, sandbox=wanted)
    (tmp_path / "r.db.key").write_bytes(played + b"!")
    with pytest.raises(LedgerError, match="has 40 bytes instead of 32"):
        Accountant(tmp_path / "r.db", sandbox=None)


def test_sandbox_key_and_ledger_changed_together_are_found(tmp_path: Path, clock: Clock) -> None:
    """The id of a ledger is bound to its key, so a file with another key and its check does not open."""
    full(tmp_path / "r.db", True, clock)
    key = (tmp_path / "r.db.key").read_bytes()[:KEY_BYTES]
    (tmp_path / "r.db.key").write_bytes(key)
    from ldp_budget.ledger.keyed_hashing import Key

    with closing(sqlite3.connect(tmp_path / "r.db")) as rows, rows:
        rows.execute("UPDATE meta SET value = ? WHERE name = 'key_check'", (Key(key).hash(b"check", ""),))
    rows.close()
    with pytest.raises(LedgerError, match="its table meta was changed: the id in it"):
        Accountant(tmp_path / "r.db", create=False)


@pytest.mark.slow
def test_sandbox_moved_stays_a_sandbox(address: Address, tmp_path: Path, clock: Clock) -> None:
    full(tmp_path / "first.db", True, clock)
    real, there, back = address(), address(), address()
    with Accountant(real) as made:
        made.set_policy("default", ["lifetime=1"])
    with Accountant(tmp_path / "first.db", sandbox=True, clock=clock) as first:
        receipt = first.reserve("carol", coin(1)).receipt or ""
        with pytest.raises(LedgerError, match=r"it is a real ledger, and .* is a sandbox\. Nothing was moved"):
            first.ledger.move_to(real)
        assert first.spend("alice", coin("0.1")), "nothing was closed"
        first.ledger.move_to(there)
    with pytest.raises(SandboxError):
        Accountant(there, create=False)
    with Accountant(there, sandbox=True, clock=clock) as second:
        assert second.commit(receipt).status == "committed"
        second.ledger.move_to(back)
    with Accountant(back, sandbox=True, clock=clock) as third:
        assert third.verify().ok
        assert third.commit(receipt).repeated
    with Accountant(real, create=False) as unchanged:
        assert unchanged.stats()["users"] == 0
        with pytest.raises(LedgerError, match=r"it is a sandbox, and .* is a real ledger"):
            unchanged.ledger.move_to(back)
