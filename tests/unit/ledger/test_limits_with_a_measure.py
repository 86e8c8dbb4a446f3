"""Limits with a measure, in SQLite and in dictionaries: their rows in the file, and refused definitions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contract.acts import check, promising
from contract.measures import OUE, MeasuredContract
from contract.places import InFile, InMemory, InToys, Place
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, Limit
from ldp_budget.ledger import window_backfill


@pytest.mark.slow
class TestInMemory(MeasuredContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return InMemory()


@pytest.mark.exhaustive
class TestInFile(MeasuredContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return InFile(tmp_path / "budget.db")


@pytest.mark.slow
class TestInToys(MeasuredContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        return InToys(3)


@pytest.mark.exhaustive
class TestFilledInSteps(MeasuredContract):
    """As if every journal were a long one."""

    @pytest.fixture
    def place(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Place:
        monkeypatch.setattr(window_backfill, "_MOST_AT_ONCE", 0)
        monkeypatch.setattr(window_backfill, "_ACCOUNTS_TOGETHER", 2)
        return InMemory()


# -- what is in the file -------------------------------------------------------------------------------------


def rows(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(sql).fetchall()


def test_ledger_without_a_measured_limit_stores_nothing_for_it(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9,1e-6,zcdp", "day=9", "month=9,1e-6,gdp"])
        accountant.spend("alice", promising(OUE))
    assert len(rows(path, "SELECT * FROM window_sums")) == 3
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("tight", ["lifetime=9,1e-6,renyi", "day=9"])
        check(accountant)
    assert len(rows(path, "SELECT * FROM window_sums")) == 4


@pytest.mark.parametrize("change", ["rho = rho - 1", "delta = delta + 1", "window_name = 'lifetime renyi:4'"])
def test_verify_with_a_changed_measured_sum_finds_it(tmp_path: Path, clock: Clock, change: str) -> None:
    path = tmp_path / "budget.db"
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9,1e-6,renyi:3"])
        accountant.spend("alice", promising(OUE))
    rows(path, f"UPDATE window_sums SET {change} WHERE window_name <> 'lifetime'")
    with Accountant(path, create=False, clock=clock) as accountant:
        verification = accountant.verify()
        assert [problem for problem in verification.problems if problem.startswith("window_sums:")]


# -- limits that make no sense ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lifetime=1,0,renyi", "DELTA > 0 under rule renyi, which converts"),
        ("lifetime=1,1e-6,renyi:2.9", "2.8 or 3"),
        ("lifetime=1,1e-6,renyi:", "the order must be a number > 1"),
        ("lifetime=1,1e-6,renyi:1.5", "of an order whose conversion leaves some of epsilon"),
        ("lifetime=1,1e-6+1e-6,gdp", "one without a delta set aside under rule gdp"),
        ("lifetime=1,1e-6+1e-6,basic", "one without a delta set aside under rule basic"),
        ("lifetime=1,0+1e-6,zcdp", "sets aside less than its delta, 0.000001"),
        ("lifetime=1,1e-6+,zcdp", "a number >= 0 and < 1 as DELTA"),
        ("lifetime=1,1e-6+x,zcdp", "a number >= 0 and < 1 as DELTA"),
    ],
)
def test_measured_limit_undefined_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message) as caught:
        Limit.parse(text)
    assert caught.value.option == "limit"
