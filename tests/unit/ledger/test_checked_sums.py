"""Balances of all accounts: equal to those of each user, in columns, and none of a row that was changed by hand."""

from __future__ import annotations

import sqlite3
from decimal import Decimal
from pathlib import Path

import pytest

from case_files import case_table
from contract.acts import CURVE, coin, promising
from fixed_clock import Clock
from ldp_budget import Accountant, LedgerError, Limit
from ldp_budget.accounting.plans import Plan
from ldp_budget.ledger import checked_sums

pytestmark = pytest.mark.slow
USERS = [f"user {number}" for number in range(30)]


def filled(accountant: Accountant, clock: Clock) -> Accountant:
    """Users with equal and other sums, labels, quotas, an erasure, and charges of two days."""
    accountant.set_policy("default", [Limit("lifetime", 30), Limit("month", 28), Limit("day", 20)])
    accountant.set_policy("planned", ["lifetime=9,1e-3"], plan=Plan(((coin(1), 2),), Decimal("1e-6")))
    accountant.spend_many(USERS, coin(1))
    accountant.spend(USERS[3], promising(CURVE), label="home")
    accountant.spend(USERS[4], coin(1), policy="planned")
    accountant.erase(USERS[5])
    clock.advance(days=1)
    accountant.spend_many(USERS[10:20], coin("0.25"))
    return accountant


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_sums, "_FIRST", 2)
    monkeypatch.setattr(checked_sums, "_TOGETHER", 7)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("later", [0, 1, 40])
@pytest.mark.parametrize("policy", ["default", "planned"])
def test_balances_of_all_accounts_are_those_of_their_users(clock: Clock, later: int, policy: str) -> None:
    with filled(Accountant(":memory:", clock=clock), clock) as accountant:
        clock.advance(days=later)
        every = list(accountant.balances(policy=policy))
        assert [each.place["account"] for each in every] == [*range(1, 31)]
        assert [each.erased for each in every].count(True) == 1
        # Accounts of one batch are numbered in the order of their hashes, so balances are compared as a multiset.
        of_users = [each for each in accountant.balances(USERS, policy) if not each.erased]
        shown = [(each.limits, each.quotas) for each in every if not each.erased]
        assert sorted(map(repr, shown)) == sorted(repr((each.limits, each.quotas)) for each in of_users)


@pytest.mark.usefixtures("small_parts")
def test_balances_after_a_repair_of_the_clock_are_those_of_their_users(clock: Clock) -> None:
    with filled(Accountant(":memory:", clock=clock), clock) as accountant:
        clock.advance(days=-1)
        accountant.repair_clock()
        accountant.spend(USERS[11], coin(1))
        shown = [each.limits for each in accountant.balances() if not each.erased]
        of_users = [each.limits for each in accountant.balances(USERS) if not each.erased]
        assert sorted(map(repr, shown)) == sorted(map(repr, of_users))


CHANGES = case_table("checked_sums", "CHANGES")


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("change", CHANGES)
def test_balances_of_all_accounts_with_a_changed_row_are_refused(tmp_path: Path, clock: Clock, change: str) -> None:
    path = tmp_path / "budget.db"
    filled(Accountant(path, clock=clock), clock).close()
    with sqlite3.connect(path) as connection:
        today = "SELECT account FROM window_sums WHERE window_name = 'day 2026-11-22'"
        (of,) = connection.execute(f"{today} LIMIT 1").fetchone()
        others = f"SELECT account FROM users WHERE user_hash IS NOT NULL AND account NOT IN ({today}) LIMIT 1"
        (other,) = connection.execute(others).fetchone()
        assert connection.execute(CHANGES[change], {"of": of, "other": other}).rowcount
    connection.close()
    with Accountant(path, create=False, clock=clock) as accountant, pytest.raises(LedgerError, match="changed"):
        list(accountant.balances())
