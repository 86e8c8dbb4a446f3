"""Readers never block writers, however slow, and in any thread."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from contract.acts import check, coin
from contract.places import InFile, InMemory, Place
from ldp_budget import Accountant
from ldp_budget.ledger import chain_verification, snapshot
from ldp_budget.ledger.sqlite.statements import SqliteRows
from ledger_inside import tables, transact

pytestmark = pytest.mark.policy("lifetime=9")


@pytest.fixture(params=["file", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return InMemory() if request.param == "memory" else InFile(tmp_path / "budget.db")


@pytest.fixture
def accountant(accountant: Accountant) -> Accountant:
    """A ledger with charges of twenty users."""
    accountant.spend_many([f"user-{n}" for n in range(20)], coin("0.1"))
    return accountant


def in_another_thread(work: object) -> None:
    thread = threading.Thread(target=work, daemon=True)  # type: ignore[arg-type]
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def test_journal_read_by_half_blocks_no_writer(accountant: Accountant) -> None:
    rows = accountant.journal()
    assert next(rows)["kind"] == "policy"
    assert accountant.spend("alice", coin("0.1"))
    in_another_thread(lambda: accountant.spend("bob", coin("0.1")))
    assert len(list(rows)) == 20, "as one moment of the ledger saw it"


def test_readers_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("alice", coin("0.1"))

        def look(rows: object) -> None:
            def all_of_it() -> None:
                assert accountant.balance("alice").limits[0].spent_units.epsilon == 10**8
                assert accountant.verify().ok
                assert accountant.stats()["entries"] == len(list(accountant.journal())) == 2

            in_another_thread(all_of_it)

        transact(accountant, look)


def test_reader_connection_in_use_is_not_shared(tmp_path: Path) -> None:
    """An error keeps its frames, which keep the cursor of the interrupted read."""

    def fail(kept: list[object]) -> None:
        with tables(accountant) as connection:
            kept.append(connection.execute("SELECT * FROM priced_mechanisms"))
            raise ZeroDivisionError

    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend("alice", coin("0.1"))
        with pytest.raises(ZeroDivisionError):
            fail(kept := [])
        accountant.spend("alice", coin("0.1"))
        assert accountant.balance("alice").limits[0].spent_units.epsilon == 2 * 10**8
        assert len(accountant.history("alice")) == 2
        assert kept


@pytest.mark.slow
def test_verify_reads_stored_answers_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` held one snapshot while it read all stored answers, so the log grew and every commit waited for it."""
    monkeypatch.setattr(snapshot, "_RECORDS_TOGETHER", 10)
    read: list[int] = []
    idempotency_records_after = SqliteRows.idempotency_records_after

    def counted(self: SqliteRows, position: int, most: int) -> Any:
        part, following = idempotency_records_after(self, position, most)
        read.append(len(list(part)))
        return part, following

    monkeypatch.setattr(SqliteRows, "idempotency_records_after", counted)
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        for number in range(45):
            accountant.spend(f"user-{number}", coin("0.1"), key="k")
        check(accountant)
    assert read == [10, 10, 10, 10, 5]


@pytest.mark.slow
@pytest.mark.parametrize("refused", [True, False])
def test_verify_during_erasures_and_spends_raises_no_false_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """An erasure moves stored answers while the parts are read: some come twice, some never."""
    monkeypatch.setattr(snapshot, "_RECORDS_TOGETHER", 3)
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        asked = coin("2" if refused else "0.1")
        for number in range(30):
            accountant.spend(f"user-{number % 10}", asked, key=f"k{number}")
        users = ["user-0", "user-9", "user-5", "user-1", "user-8"]

        def in_parts(open_reading: Any) -> Any:
            def write_before() -> Any:
                if users:
                    accountant.erase(users[0])
                    accountant.spend("new", asked, key=users.pop(0))
                return open_reading()

            return snapshot.idempotency_records_in_parts(write_before)

        monkeypatch.setattr(chain_verification, "idempotency_records_in_parts", in_parts)
        check(accountant)
        assert not users
        check(accountant)
