"""Sliding limits, such as `28d=1`: at most ε on any 28 consecutive days of the policy's time zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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


def spent(accountant: Accountant, user: str, period: str) -> int | None:
    """What a limit counts now, in units of ε."""
    [state] = [each for each in accountant.balance(user).limits if each.limit.period == period]
    return state.spent_units.epsilon


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


def test_voided_reservation_gives_its_day_back() -> None:
    accountant, clock = opened("7d=0.25")
    held = accountant.reserve("alice", QUARTER, expires=10 * 86_400)
    clock.advance(days=2)
    assert not accountant.spend("alice", TENTH)
    accountant.void(held.receipt or "")
    assert accountant.spend("alice", TENTH)
    assert spent(accountant, "alice", "7d") == UNIT // 10
    assert accountant.verify().ok


def test_many_users_are_charged_one_by_one_and_refused_alike() -> None:
    accountant, clock = opened("7d=0.25")
    users = [f"user {number}" for number in range(20)]
    assert accountant.spend_many(users[:12], QUARTER).spent == 12
    clock.advance(days=1)
    result = accountant.spend_many(users, QUARTER)
    assert (result.spent, result.refused) == (8, 12)
    assert {balance.limits[0].spent_units.epsilon for balance in accountant.balances()} == {UNIT // 4}
    assert accountant.verify().ok


def test_limit_that_is_added_later_counts_the_days_before() -> None:
    accountant, clock = opened("day=1")
    accountant.spend("alice", QUARTER)
    clock.advance(days=5)
    accountant.set_policy("default", [Limit("day", 1), Limit("7d", "0.3")], unbounded=True)
    assert not accountant.spend("alice", TENTH)
    clock.advance(days=2)
    assert accountant.spend("alice", TENTH)
    assert accountant.verify().ok


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


def test_memoised_reports_cost_their_own_curve_day_by_day() -> None:
    rappor = ldp_budget.mechanism("rappor").calibrate(epsilon=1, epsilon_lifetime=2, bits=16, hashes=2, cohorts=4)
    accountant, clock = opened("7d=20")
    for _ in range(3):
        assert accountant.spend("alice", rappor, label="value")
        clock.advance(days=1)
    total = spent(accountant, "alice", "7d")
    assert total is not None
    assert total >= UNIT
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


# -- against a plain model ----------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["alice", "bob"]),
        st.sampled_from(["0.1", "0.25"]),
        st.sampled_from([0, 0, 1, 5, 24, 26, 71, 24 * 7, 24 * 28]),
        st.sampled_from(["spend", "spend", "many", "erase", "limit"]),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    days=st.sampled_from([2, 3, 7, 28]),
    zone=st.sampled_from([None, "Asia/Seoul", "America/New_York", "Pacific/Apia"]),
    late=st.booleans(),
    steps=STEPS,
)
def test_histories_are_decided_as_by_a_plain_model(
    days: int, zone: str | None, late: bool, steps: list[tuple[str, str, int, str]]
) -> None:
    """The model keeps a list of charges with their local days, and adds those that count."""
    period, capacity = f"{days}d", UNIT // 2
    always = ["day=0.4"]
    accountant, clock = opened(
        *always, *([] if late else [f"{period}=0.5"]), start=datetime(2024, 2, 27, 20, tzinfo=UTC), zone=zone
    )
    charged: dict[str, list[tuple[date, int]]] = {"alice": [], "bob": []}
    erased, local = set[str](), ZoneInfo(zone or "UTC")
    for user, epsilon, hours, act in steps:
        clock.advance(hours=hours)
        today = clock.now.astimezone(local).date()
        if act == "erase":
            accountant.erase(user, unknown=True)
            erased.add(user)
        elif act == "limit" and late:
            accountant.set_policy(
                "default", [Limit.parse(each) for each in (*always, f"{period}=0.5")], unbounded=True, zone=zone
            )
            late = False
        mechanism, cost = (TENTH, UNIT // 10) if epsilon == "0.1" else (QUARTER, UNIT // 4)
        counted = sum(each for day, each in charged[user] if today - timedelta(days=days) < day <= today)
        in_day = sum(each for day, each in charged[user] if day == today)
        fits = user not in erased and in_day + cost <= 4 * UNIT // 10 and (late or counted + cost <= capacity)
        got = (
            accountant.spend_many([user], mechanism).spent == 1
            if act == "many"
            else bool(accountant.spend(user, mechanism))
        )
        assert got == fits
        if got:
            charged[user].append((today, cost))
        if not late and user not in erased:
            assert spent(accountant, user, period) == counted + cost * got
    assert accountant.verify().ok
    accountant.close()
