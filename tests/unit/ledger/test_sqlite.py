"""The ledger's contract on SQLite: in a file, and in memory."""

from __future__ import annotations

import shutil
import sqlite3
from decimal import Decimal
from pathlib import Path

import pytest

from contract import StoreContract
from contract.acts import check, coin, in_threads, spent
from contract.places import InFile, InMemory
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError
from ledger_inside import store_of, tables, writer_of


class TestInMemory(StoreContract):
    @pytest.fixture
    def place(self) -> InMemory:
        return InMemory()


@pytest.mark.slow
class TestInFile(StoreContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> InFile:
        return InFile(tmp_path / "budget.db")


@pytest.mark.slow
def test_accountants_on_one_file_see_each_others_charges(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as one, Accountant(path, clock=clock) as other:
        one.set_policy("default", ["lifetime=1"])
        assert one.spend("alice", coin("0.5"), key="k")
        assert other.spend("alice", coin("0.5"), key="k").repeated
        other.set_policy("default", ["lifetime=1", "day=0.7"])
        assert one.spend("alice", coin("0.3")).binding == ("day",), (
            "the newest version applies to all accountants at once"
        )
        granted = in_threads(8, lambda n: sum(bool((one, other)[n % 2].spend("bob", coin("0.1"))) for _ in range(3)))
        assert sum(granted) == 7
        assert spent(one, "bob") == spent(other, "bob") == {"lifetime": Decimal("0.7"), "day": Decimal("0.7")}
        assert check(one) == check(other)


def test_spend_is_durable_before_it_returns(tmp_path: Path, clock: Clock) -> None:
    """Every commit waits for the disk, as a copy of the files taken after the answer shows."""
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        with tables(accountant) as transaction:
            assert transaction.execute("PRAGMA synchronous").fetchone() == (2,)
            assert transaction.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        for number in range(3):
            accountant.spend("alice", coin(1))
            copy = tmp_path / f"copy-{number}.db"
            for end in ("", ".key", "-wal"):
                shutil.copy(path.with_name(path.name + end), copy.with_name(copy.name + end))
            with Accountant(copy, create=False, clock=clock) as other:
                assert spent(other, "alice") == {"lifetime": number + 1}


def test_spend_statements_use_indexes(tmp_path: Path, clock: Clock) -> None:
    """A spend after a million others must not read them."""
    seen: list[str] = []
    with Accountant(tmp_path / "budget.db", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9", "day=9"])
        accountant.spend("alice", coin("0.1"), key="k")
        connection = writer_of(accountant)
        assert isinstance(connection, sqlite3.Connection)
        connection.set_trace_callback(seen.append)
        accountant.spend("alice", coin("0.1"), key="l", label="x")
        accountant.void(accountant.reserve("bob", coin("0.1")).receipt or "")
        connection.set_trace_callback(None)
        statements = [text for text in seen if text.split()[0] in ("SELECT", "UPDATE", "INSERT", "DELETE")]
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        assert len(statements) > 10
        for text in statements:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {text}").fetchall()
            scanned = {row[3].split()[1] for row in plan if row[3].startswith("SCAN")} & tables
            # The periods kept are four at most, and the newest entry is the journal's last row.
            assert scanned <= {"periods"} or (scanned == {"journal"} and "LIMIT 1" in text), (text, scanned)


def test_attempt_whose_begin_fails_begins_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a locked database is waited for; any other error of BEGIN is the caller's at once."""
    begun: list[str] = []

    class Broken:
        in_transaction = False

        def execute(self, sql: str) -> None:
            begun.append(sql)
            raise sqlite3.OperationalError("disk I/O error")

    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        with monkeypatch.context() as patch:
            patch.setattr(store_of(accountant), "_writer", Broken())
            with pytest.raises(LedgerError, match="disk I/O error"):
                accountant.spend("alice", coin("0.5"))
        assert begun == ["BEGIN IMMEDIATE"]
        assert accountant.spend("alice", coin("0.5"))
