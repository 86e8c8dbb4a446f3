"""The note of the last verification: believed for an hour, by the ledger that was verified, and as it was written."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from contract.acts import coin
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, LedgerError
from ldp_budget.ledger.sqlite import SqliteStore

pytestmark = pytest.mark.slow


@pytest.fixture
def path(tmp_path: Path, clock: Clock) -> Path:
    with Accountant(tmp_path / "budget.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("alice", coin(1))
        assert accountant.ledger.verify().ok
    return tmp_path / "budget.db"


def head_noted(path: Path, clock: Clock) -> str | None:
    with Accountant(path, create=False, clock=clock) as accountant:
        last = accountant.ledger.last_verification()
        return None if last is None else last.head


def test_note_has_the_time_and_the_head(path: Path, clock: Clock) -> None:
    with Accountant(path, create=False, clock=clock) as accountant:
        last = accountant.ledger.last_verification()
        assert last is not None
        assert (last.at, last.entries) == (round(clock.now.timestamp() * 1e6), 2)
        assert last.head == accountant.stats()["head"]


@pytest.mark.parametrize(("minutes", "is_believed"), [(0, True), (60, True), (61, False), (-1, False)])
def test_note_is_believed_for_an_hour(path: Path, clock: Clock, minutes: int, is_believed: bool) -> None:
    note = path.with_name("budget.db.verified")
    if minutes < 0:  # a ledger without entries has any time
        stored = note.read_bytes()
        with Accountant(path, create=False, clock=clock) as accountant:
            clock.advance(minutes=-minutes)
            accountant.ledger.verify()
        assert note.read_bytes() != stored
        clock.advance(minutes=minutes)
    else:
        clock.advance(minutes=minutes)
    assert (head_noted(path, clock) is not None) is is_believed


@pytest.mark.parametrize("name", ["at", "entries", "head", "mac"])
def test_note_that_was_edited_is_not_believed(path: Path, clock: Clock, name: str) -> None:
    note = path.with_name("budget.db.verified")
    stored = json.loads(note.read_text())
    value = stored[name]
    stored[name] = value + 1 if isinstance(value, int) else f"{'1' if value[0] == '0' else '0'}{value[1:]}"
    note.write_text(json.dumps(stored))
    assert head_noted(path, clock) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "1", "\udcff", "[" * 3000, '{"at": 1, "entries": 2, "head": 3, "mac": 4}']
)
def test_note_that_cannot_be_read_is_not_believed(path: Path, clock: Clock, text: str) -> None:
    path.with_name("budget.db.verified").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert head_noted(path, clock) is None


def test_note_of_another_ledger_with_the_same_key_is_not_believed(path: Path, clock: Clock, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    secret = path.with_name("budget.db.key").read_bytes()
    with Accountant(SqliteStore(other, create=True, secret=secret), clock=clock) as accountant:
        accountant.ledger.verify()
    assert head_noted(other, clock) is not None
    shutil.copyfile(path.with_name("budget.db.verified"), other.with_name("other.db.verified"))
    assert head_noted(other, clock) is None


def test_note_of_an_earlier_secret_is_not_believed(path: Path, clock: Clock) -> None:
    with Accountant(path, create=False, clock=clock) as accountant:
        accountant.ledger.rotate_key()
    assert head_noted(path, clock) is None


def test_note_goes_with_a_verification_that_fails(path: Path, clock: Clock) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE window_sums SET epsilon = 0")
    connection.close()
    with Accountant(path, create=False, clock=clock) as accountant:
        assert not accountant.ledger.verify().ok
    assert not path.with_name("budget.db.verified").exists()


def test_note_that_cannot_be_written_is_no_error(path: Path, clock: Clock) -> None:
    note = path.with_name("budget.db.verified")
    note.unlink()
    note.mkdir()
    with Accountant(path, create=False, clock=clock) as accountant:
        assert accountant.ledger.verify().ok
        assert accountant.ledger.last_verification() is None


def test_ledger_in_memory_has_no_note(clock: Clock) -> None:
    with Accountant(":memory:", clock=clock) as accountant:
        assert accountant.ledger.verify().ok
        assert accountant.ledger.last_verification() is None
        with pytest.raises(InvalidParameter, match="seconds"):
            accountant.ledger.last_verification(-1)


# -- verifications that a service recorded ---------------------------------------------------------------------------


def recorded(accountant: Accountant, ok: bool = True) -> None:
    """Record a verification as a service does."""
    found, number = accountant.verify(), len(accountant.records())
    body = {"ok": ok, "entries": found.entries, "head": found.head, "problems": int(not ok)}
    accountant._record_own("verified", "ledger", body, expected=number)


@pytest.mark.parametrize(("minutes", "is_believed"), [(60, True), (61, False)])
def test_recorded_verification_counts_for_an_hour(clock: Clock, minutes: int, is_believed: bool) -> None:
    with Accountant(":memory:", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        head = accountant.stats()["head"]
        recorded(accountant)
        clock.advance(minutes=minutes)
        last = accountant.ledger.last_verification()
        assert (last is not None and last.head == head) is is_believed
        assert accountant.ledger.confirm(head) == accountant.stats()["head"] != head


def test_recorded_failure_ends_an_earlier_verification(path: Path, clock: Clock) -> None:
    with Accountant(path, create=False, clock=clock) as accountant:
        clock.advance(minutes=1)
        recorded(accountant, ok=False)
        assert accountant.ledger.last_verification() is None
        clock.advance(minutes=1)
        accountant.ledger.verify()
        assert accountant.ledger.last_verification() is not None


@pytest.mark.parametrize("change", ["insert", "update"])
def test_confirm_finds_a_forged_record_of_a_verification(path: Path, clock: Clock, change: str) -> None:
    with Accountant(path, create=False, clock=clock) as accountant:
        clock.advance(minutes=1)
        recorded(accountant, ok=False)
    with closing(sqlite3.connect(path)) as database, database:
        if change == "update":
            database.execute("""update admin_log set body = replace(body, 'false', 'true')""")
        else:
            columns = [row[1] for row in database.execute("pragma table_info(admin_log)")]
            values = [f"{name} + 1" if name == "number" else name for name in columns]
            database.execute(f"insert into admin_log select {', '.join(values)} from admin_log")
            database.execute("""update admin_log set body = replace(body, 'false', 'true') where number = 2""")
    with Accountant(path, create=False, clock=clock) as accountant:
        last = accountant.ledger.last_verification()
        assert last is not None
        with pytest.raises(LedgerError, match="ledger verify"):
            accountant.ledger.confirm(last.head)


@pytest.mark.parametrize("head", ["1" * 84, "1-" + "0" * 64, "x"])
def test_confirm_of_a_head_that_is_not_in_the_chain_is_refused(path: Path, clock: Clock, head: str) -> None:
    with (
        Accountant(path, create=False, clock=clock) as accountant,
        pytest.raises(LedgerError, match="not in the chain"),
    ):
        accountant.ledger.confirm(head)
