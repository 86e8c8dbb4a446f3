"""Policies in a time zone: nothing is overdrawn at any midnight, and the ledger verifies."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.acts import CURVE, check, coin, made, promising, spent
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, LdpBudgetError
from ldp_budget.accounting import policies
from ldp_budget.ledger import calendar, window_backfill, zones
from ldp_budget_service.approvals import Approvals

SEOUL = "Asia/Seoul"
LIMITS = ["lifetime=90", "day=1"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


def at(accountant_clock: Clock, text: str) -> None:
    accountant_clock.now = datetime.fromisoformat(text).replace(tzinfo=UTC)


def accepted(accountant: Accountant, user: str = "alice", epsilon: Any = 1, policy: str = "default") -> bool:
    return bool(accountant.spend(user, coin(epsilon), policy=policy))


@settings(max_examples=25)
@given(
    st.sampled_from([SEOUL, "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "Australia/Lord_Howe"]),
    st.sampled_from(["day", "week", "month"]),
    st.datetimes(min_value=datetime(2011, 12, 20), max_value=datetime(2040, 1, 1), timezones=st.just(UTC)),
    st.lists(st.tuples(st.integers(1, 60 * 60), st.integers(1, 12), st.sampled_from([0, 1])), max_size=10),
)
@pytest.mark.slow
def test_limit_in_a_zone_agrees_with_a_naive_count_of_local_days(
    zone: str, period: str, start: datetime, steps: list[tuple[int, int, int]]
) -> None:
    clock = Clock()
    clock.now = start
    sums: dict[tuple[object, ...], int] = {}
    with Accountant(":memory:", clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=900", f"{period}=2"], zone=zone)
        accountant.set_policy("utc", ["lifetime=900", f"{period}=3"])
        for minutes, tenths, number in steps:
            clock.advance(minutes=minutes)
            # All charges count in all windows; each policy decides by its own.
            local = [clock.now.astimezone(ZoneInfo(zone)).date(), clock.now.date()]
            names = {"day": 0, "week": 1, "month": 2}
            keys = [
                (place, [each, each - timedelta(each.weekday()), each.replace(day=1)][names[period]])
                for place, each in enumerate(local)
            ]
            fits = sums.get(keys[number], 0) + tenths <= 20 + 10 * number
            mechanism = coin(f"{tenths / 10}")
            assert bool(accountant.spend("alice", mechanism, policy=["default", "utc"][number])) == fits
            for key in keys if fits else ():
                sums[key] = sums.get(key, 0) + tenths
        check(accountant)


def test_batch_across_a_local_midnight_within_a_utc_day_holds(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", LIMITS, zone=SEOUL)
    users = [f"user-{number}" for number in range(5)]
    for time in ("14:00", "14:59:59.999999", "15:00", "23:59"):
        at(clock, f"2026-11-21T{time}")
        accountant.spend_many(users, coin("0.5"))
        accountant.spend("user-0", promising(CURVE), label="home")
    assert [spent(accountant, user)["lifetime"] for user in users[1:]] == [2] * 4
    check(accountant)


def test_reservation_voided_after_the_local_midnight_returns_its_own_day(
    accountant: Accountant, clock: Clock
) -> None:
    accountant.set_policy("default", LIMITS, zone=SEOUL)
    at(clock, "2026-11-21T14:50")
    held = accountant.reserve("alice", coin("0.4"))
    at(clock, "2026-11-21T15:10")
    assert accepted(accountant)
    accountant.void(held.receipt or "")
    assert not accepted(accountant, epsilon="0.1")
    assert spent(accountant, "alice") == {"lifetime": 1, "day": 1}
    accountant.erase("alice")
    check(accountant)


@pytest.mark.parametrize("in_steps", [False, True])
def test_set_policy_with_another_zone_gives_no_fresh_budget(
    accountant: Accountant, clock: Clock, monkeypatch: pytest.MonkeyPatch, in_steps: bool
) -> None:
    if in_steps:
        monkeypatch.setattr(window_backfill, "_MOST_AT_ONCE", 0)
        monkeypatch.setattr(window_backfill, "_ACCOUNTS_TOGETHER", 2)
    at(clock, "2026-11-21T14:00")
    accountant.set_policy("default", [*LIMITS, "month=1.5"])
    for user in ("alice", "bob", "carol"):
        assert accepted(accountant, user)
    at(clock, "2026-11-22T01:00")
    assert (
        accountant.set_policy("default", [*LIMITS, "month=1.5"], zone="America/New_York").zone == "America/New_York"
    )
    assert not accepted(accountant, epsilon="0.1")  # it is still the 21st in New York
    at(clock, "2026-11-22T05:00")
    assert not accepted(accountant, epsilon="0.6")  # November is the same month
    assert accepted(accountant, epsilon="0.5")
    assert accountant.set_policy("default", LIMITS, zone="UTC").zone == "UTC"
    assert not accepted(accountant, epsilon="0.6")
    assert accountant.set_policy("default", LIMITS, zone="America/New_York").version == 4
    assert not accepted(accountant, epsilon="0.6")
    check(accountant)


def test_set_policy_without_a_zone_keeps_it_with_its_rules(accountant: Accountant) -> None:
    first = accountant.set_policy("default", LIMITS, zone=SEOUL)
    second = accountant.set_policy("default", ["lifetime=80"])
    assert (second.zone, second.zone_rules) == (SEOUL, first.zone_rules)
    assert accountant.set_policy("another", LIMITS).zone == "UTC"
    with pytest.raises(InvalidParameter, match="Did you mean Asia/Seoul"):
        accountant.set_policy("default", LIMITS, zone="Asia/Soul")
    assert accountant.policy().version == 2


def test_charges_and_verify_go_by_the_stored_rules_after_the_database_changed(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Accountant(path, clock=clock) as accountant:
        first = accountant.set_policy("default", LIMITS, zone=SEOUL)
        at(clock, "2026-11-21T14:00")
        assert accepted(accountant)
    kathmandu = zones._file("Asia/Kathmandu")
    monkeypatch.setattr(zones, "_known", {})
    monkeypatch.setattr(zones, "_file", lambda name: kathmandu)
    policies._read.cache_clear()
    calendar._windows_on.cache_clear()
    with Accountant(path, create=False, clock=clock) as accountant:
        check(accountant)
        at(clock, "2026-11-21T15:00")
        assert accepted(accountant, epsilon="0.5")
        assert accountant.set_policy("default", LIMITS, zone=SEOUL).zone_rules != first.zone_rules
        assert not accepted(accountant, epsilon="0.1")  # by the new rules, it is still the day of the first charge
        at(clock, "2026-11-21T18:15")
        assert accepted(accountant)
        check(accountant)


def test_verify_finds_a_changed_zone(path: Path, clock: Clock) -> None:
    with Accountant(path, clock=clock) as accountant:
        policy = accountant.set_policy("default", LIMITS, zone=SEOUL)
        assert accepted(accountant)
    data = policy.to_json()
    other = json.dumps({**data, "zone_rules": zones._packed(zones._file("Asia/Tokyo") or b"")})
    for definition in (other, json.dumps({**data, "zone": "Asia/Tokyo"}), json.dumps({**data, "zone_rules": "x"})):
        with closing(sqlite3.connect(path)) as connection, connection:
            (before,) = connection.execute("SELECT definition FROM policies").fetchone()
            connection.execute("UPDATE policies SET definition = ?", (definition,))
        with Accountant(path, create=False, clock=clock) as accountant:
            assert any("polic" in problem for problem in accountant.verify().problems)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE policies SET definition = ?", (before,))


@pytest.mark.parametrize("gauge", ["day@Asia/Seoul~0000000000000000", "day@~", "day@Asia/Tokyo"])
def test_verify_finds_a_kept_period_of_unknown_rules(path: Path, clock: Clock, gauge: str) -> None:
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", LIMITS, zone=SEOUL)
        assert accepted(accountant)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE periods SET period = ? WHERE period <> 'lifetime'", (gauge,))
    with Accountant(path, create=False, clock=clock) as accountant:
        assert any(problem.startswith("periods: ") for problem in accountant.verify().problems)
        with pytest.raises(LdpBudgetError):
            accountant.spend("alice", coin("0.1"))


def test_proposal_of_a_zone_is_approved_and_set(accountant: Accountant) -> None:
    accountant.set_policy("default", LIMITS)
    officers = [accountant.acting_for(made(accountant, name)) for name in ("one", "two")]
    Approvals(officers[0]).demand()
    proposal = Approvals(officers[0]).propose("default", LIMITS, zone=SEOUL)
    assert Approvals(officers[1]).reasons(proposal)[0] == "its days are those of Asia/Seoul, not of UTC"
    Approvals(officers[1]).approve(proposal.number)
    assert Approvals(officers[1]).apply(proposal.number).zone == SEOUL
    back = Approvals(officers[0]).propose("default", LIMITS, zone="UTC")
    Approvals(officers[1]).approve(back.number)
    assert Approvals(officers[1]).apply(back.number).zone == "UTC"
    check(accountant)


def test_clock_repair_after_a_later_local_day_gives_no_fresh_budget(path: Path, clock: Clock) -> None:
    with Accountant(path, clock=clock) as accountant:
        accountant.set_policy("default", LIMITS, zone=SEOUL)
        at(clock, "2026-11-21T15:10")
        assert accepted(accountant)
        at(clock, "2026-11-21T14:50")
        accountant.repair_clock()
        assert not accepted(accountant, epsilon="0.1")
        at(clock, "2026-11-21T15:20")
        assert not accepted(accountant, epsilon="0.1")
        at(clock, "2026-11-22T15:00")
        assert accepted(accountant)
        check(accountant)
