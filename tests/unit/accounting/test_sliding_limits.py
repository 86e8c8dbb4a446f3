"""Sliding limits, such as `28d=1`: at most ε on any 28 consecutive days of the policy's time zone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import ldp_budget
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, Limit
from ldp_budget.errors import LedgerError

UNIT = 10**9
TENTH, QUARTER = (ldp_budget.mechanism("oue").calibrate(epsilon=each, domain_size=4) for each in ("0.1", "0.25"))


def opened(
    *limits: str, start: datetime = datetime(2024, 2, 20, 12, tzinfo=UTC), zone: str | None = None
) -> tuple[Accountant, Clock]:
    clock = Clock(start)
    accountant = Accountant(":memory:", clock=clock)
    accountant.set_policy("default", [Limit.parse(each) for each in limits], unbounded=True, zone=zone)
    return accountant, clock


# -- one user -----------------------------------------------------------------------------------------------------


def test_charge_comes_back_after_as_many_days_as_the_limit_has() -> None:
    accountant, clock = opened("28d=0.25")
    assert accountant.spend("alice", QUARTER)
    clock.advance(days=27)
    refused = accountant.spend("alice", QUARTER)
    assert (refused.status, refused.binding) == ("refused", ("28d",))
    clock.advance(days=1)
    assert accountant.spend("alice", QUARTER), "day D + 28"
    assert accountant.verify().ok


def test_days_are_those_of_the_time_zone_of_the_policy() -> None:
    # 20 February 23:30 in Seoul; half an hour later it is the 21st there.
    accountant, clock = opened("2d=0.25", start=datetime(2024, 2, 20, 14, 30, tzinfo=UTC), zone="Asia/Seoul")
    assert accountant.spend("alice", QUARTER)
    clock.advance(hours=24)
    assert not accountant.spend("alice", QUARTER), "the 21st"
    clock.advance(minutes=30)
    assert accountant.spend("alice", QUARTER), "the 22nd"
    assert accountant.verify().ok


def test_balance_counts_the_days_of_the_window_and_never_resets_as_a_whole() -> None:
    accountant, clock = opened("7d=1")
    for _ in range(3):
        accountant.spend("alice", QUARTER)
        clock.advance(days=3)
    [state] = accountant.balance("alice").limits
    assert (state.spent_units.epsilon, state.resets_at) == (UNIT // 2, None), "the first day no longer counts"
    row = state.to_json()
    assert (row["period"], row["spent"]["epsilon"], row["remaining"]["epsilon"]) == ("7d", 0.5, 0.5)


def test_receipt_of_a_repeated_key_shows_what_the_first_one_showed() -> None:
    accountant, clock = opened("7d=1")
    accountant.spend("alice", QUARTER)
    clock.advance(days=1)
    first = accountant.spend("alice", QUARTER, key="k")
    assert first.limits[0].spent_units.epsilon == UNIT // 2
    assert accountant.spend("alice", QUARTER, key="k") == first._replace(repeated=True)


@pytest.mark.parametrize("rule", ["7d=1,1e-6,zcdp", "7d=1,1e-6,gdp", "7d=4,1e-6,renyi:16"])
def test_every_rule_that_adds_up_slides(rule: str) -> None:
    gaussian = ldp_budget.mechanism("gaussian").calibrate(epsilon="0.4", delta="1e-7", lower=0, upper=1)
    accountant, clock = opened(rule)
    charged = [accountant.spend("alice", gaussian).status for _ in range(200)]
    assert set(charged) == {"spent", "refused"}
    clock.advance(days=6)
    assert not accountant.spend("alice", gaussian)
    clock.advance(days=1)
    assert accountant.spend("alice", gaussian)
    assert accountant.verify().ok


# -- what is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", ["1d", "0d", "367d", "28D", "028d", "-7d", "d", "28 d"])
def test_period_of_other_days_is_refused(period: str) -> None:
    with pytest.raises(InvalidParameter, match="2 to 366 days such as 28d"):
        Limit(period, 1)


def test_changed_sum_of_an_earlier_day_is_refused_and_found(tmp_path: object) -> None:
    import sqlite3

    path = f"{tmp_path}/budget.db"
    clock = Clock(datetime(2024, 2, 20, 12, tzinfo=UTC))
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", [Limit("7d", 1)], unbounded=True)
        for _ in range(3):
            accountant.spend("alice", QUARTER)
            clock.advance(days=1)
    for change in ("DELETE FROM window_sums", "UPDATE window_sums SET epsilon = 1"):
        with sqlite3.connect(path) as database:
            kept = database.execute("SELECT * FROM window_sums WHERE window_name = '7d 2024-02-20'").fetchall()
            database.execute(f"{change} WHERE window_name = '7d 2024-02-20'")
        database.close()
        with Accountant(path, clock=clock) as accountant:
            with pytest.raises(LedgerError, match="were changed"):
                accountant.spend("alice", TENTH)
            assert not accountant.verify().ok
        with sqlite3.connect(path) as database:
            database.executemany("INSERT OR REPLACE INTO window_sums VALUES (?, ?, ?, ?, ?, ?)", kept)
        database.close()
    with Accountant(path, clock=clock) as accountant:
        assert accountant.verify().ok
