"""Many users' random histories under sliding and scoped limits, decided as by a plain model that keeps every charge.

Each user has charges with random tags on random days, over a leap day and a change of the clocks. The model adds up from
scratch: it has no sums, and works in whole units.
"""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

import ldp_budget
from fixed_clock import Clock
from ldp_budget import Accountant
from ldp_budget.accounting.batch import Spend

pytestmark = pytest.mark.exhaustive

USERS, ROUNDS = 2_500, 12
HEALTH, ADS = "attribute:health", "purpose:ads"
UNITS = (60_000_000, 100_000_000, 250_000_000)
MADE = [ldp_budget.mechanism("oue").calibrate(epsilon=str(units / 10**9), domain_size=4) for units in UNITS]
TAGS: tuple[tuple[str, ...], ...] = ((), (HEALTH,), (ADS,), (ADS, HEALTH), ("attribute:other",))
LIMITS = (("", "lifetime", 1_100), ("", "7d", 600), (HEALTH, "28d", 550), (ADS, "month", 400), (HEALTH, "3d", 350))


def counted(period: str, day: date, today: date) -> bool:
    if period == "lifetime":
        return True
    if period == "month":
        return (day.year, day.month) == (today.year, today.month)
    return day > today - timedelta(days=int(period[:-1]))


def fits(charges: list[tuple[date, int, tuple[str, ...]]], units: int, tags: tuple[str, ...], today: date) -> bool:
    for scope, period, thousandths in LIMITS:
        if scope and tags and scope not in tags:
            continue
        mine = [
            each
            for day, each, had in charges
            if (not scope or not had or scope in had) and counted(period, day, today)
        ]
        if sum(mine) + units > thousandths * 10**6:
            return False
    return True


@pytest.mark.parametrize("seed", range(20))
def test_histories_of_many_users_are_decided_as_by_a_plain_model(seed: int) -> None:
    draw, clock = random.Random(seed), Clock(datetime(2024, 2, 20, 3, tzinfo=UTC))
    zone = draw.choice(["UTC", "America/New_York", "Asia/Seoul", "Pacific/Apia"])
    charges: list[list[tuple[date, int, tuple[str, ...]]]] = [[] for _ in range(USERS)]
    erased = set[int]()
    with Accountant(":memory:", clock=clock) as accountant:
        limits = [f"{scope}:{period}={thousandths / 1000}".removeprefix(":") for scope, period, thousandths in LIMITS]
        accountant.set_policy("default", limits, zone=zone)
        for _ in range(ROUNDS):
            clock.advance(hours=draw.choice([0, 5, 20, 30, 80, 200]))
            today = clock.now.astimezone(ZoneInfo(zone)).date()
            for user in draw.sample(range(USERS), 20):
                accountant.erase(f"u{user}", unknown=True)
                erased.add(user)
            asked = [(user, draw.randrange(3), draw.choice(TAGS)) for user in range(USERS) if draw.random() < 0.7]
            spends = [Spend(f"u{user}", MADE[kind], tags=tags) for user, kind, tags in asked]
            for (user, kind, tags), receipt in zip(asked, accountant.spend_each(spends), strict=True):
                granted = user not in erased and fits(charges[user], UNITS[kind], tags, today)
                assert bool(receipt) == granted
                if granted:
                    charges[user].append((today, UNITS[kind], tags))
        assert accountant.verify().ok
