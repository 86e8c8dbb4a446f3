"""Simulation of a policy, compared with a sandbox ledger that plays each series."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.acts import CURVE, coin, promising
from ldp_budget import Accountant, InvalidParameter, Limit, Mechanism, NotSupported, Plan, UnknownName, mechanism
from ldp_budget.accounting.budget_timeline import Binding, simulate
from ldp_budget.accounting.policies import Policy
from ldp_budget.guarantees import Memoised

NEW_YEAR = datetime(2027, 1, 1, tzinfo=UTC)  # a Friday
RAPPOR = mechanism("rappor")(f="0.5", p="0.5", q="0.75", bits=16, hashes=2, cohorts=4)
GAUSSIAN = mechanism("gaussian")(epsilon="0.5", delta="1e-7", lower=0, upper=1)


def dates(start: datetime, every: str) -> Iterator[datetime]:
    """The moments of a series, worked out by the calendar of the standard library."""
    for number in count():
        if every == "month":
            years, month = divmod(start.month - 1 + number, 12)
            year = start.year + years
            day = min(start.day, calendar.monthrange(year, month + 1)[1])
            yield start.replace(year=year, month=month + 1, day=day)
        else:
            yield start + timedelta(days=number) * {"day": 1, "week": 7}[every]


def played(
    limits: list[str], asked: Mechanism, every: str, start: datetime, reports: int, most: int, **policy: Any
) -> tuple[tuple[Binding, ...], dict[str, tuple[datetime, int, int]], datetime]:
    """The simulation, and the result on a sandbox: the first refusal of each period, and the last moment."""
    now = start
    label = "home" if isinstance(asked.guarantee, Memoised) else None
    found: dict[str, tuple[datetime, int, int]] = {}
    charged = 0
    with Accountant(":memory:", sandbox=True, clock=lambda: now) as sandbox:
        sandbox.set_policy("default", limits, **{"unbounded": True, **policy})
        foretold = sandbox.simulate(asked, every=every, reports=reports)
        for number, now in zip(range(most), dates(start, every), strict=False):
            receipt = sandbox.spend("alice", asked, reports=reports, label=label)
            for period in receipt.binding:
                found.setdefault(period, (now, number * reports + 1, charged))
            charged += reports if receipt else 0
        assert sandbox.verify().ok
    return foretold, found, now


def check(foretold: tuple[Binding, ...], found: dict[str, tuple[datetime, int, int]], until: datetime) -> None:
    """Of each period, the earliest that was foretold is what happened."""
    for period in {binding.period for binding in foretold}:
        at = [each for each in foretold if each.period == period and each.at is not None and each.at <= until]
        if period not in found:
            assert not at, period
            continue
        first = min(at, key=lambda each: each.at or until)
        assert (first.at, first.report, first.charged) == found[period]
    assert found.keys() <= {binding.period for binding in foretold}


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("limits", "asked", "every", "reports", "start"),
    [
        (["lifetime=20", "week=3", "month=9"], coin(1), "day", 1, NEW_YEAR),
        (["lifetime=4"], coin("0.1"), "week", 3, NEW_YEAR),
        (["lifetime=30,1e-6,zcdp", "lifetime=40", "day=1"], coin(1), "day", 1, NEW_YEAR),
        (["lifetime=12,1e-6,renyi", "month=30,1e-6,gdp"], coin("0.5"), "day", 2, NEW_YEAR),
        (["lifetime=3,1e-6+1e-6,zcdp", "week=2,1e-5"], GAUSSIAN, "day", 1, NEW_YEAR),
        (["month=2"], coin("0.5"), "week", 1, datetime(2027, 1, 31, 23, 59, 59, 999999, UTC)),
        (["month=3", "week=1"], coin(1), "month", 1, datetime(2028, 1, 31, tzinfo=UTC)),
        (["month=3"], coin(2), "month", 1, datetime(2028, 2, 29, 12, tzinfo=UTC)),
        (["day=1"], coin(1), "day", 2, NEW_YEAR),
        (["lifetime=0.5"], coin(1), "day", 1, NEW_YEAR),
        (["lifetime=20", "week=3", "month=9"], RAPPOR, "day", 1, NEW_YEAR),
        (["lifetime=20", "week=5,1e-6,zcdp"], RAPPOR, "day", 3, NEW_YEAR),
        (["lifetime=8", "month=1.5"], promising(CURVE), "day", 1, NEW_YEAR),
    ],
)
def test_simulate_equals_a_sandbox_run(
    limits: list[str], asked: Mechanism, every: str, reports: int, start: datetime
) -> None:
    check(*played(limits, asked, every, start, reports, 150))


@settings(max_examples=settings.default.max_examples // 2)
@given(
    limits=st.lists(
        st.sampled_from(["lifetime=6", "lifetime=9,1e-6,zcdp", "day=2", "week=3", "week=4,1e-6,gdp", "month=5"]),
        min_size=1,
        unique=True,
    ),
    asked=st.sampled_from([coin("0.3"), coin(1), promising(CURVE), RAPPOR, GAUSSIAN]),
    every=st.sampled_from(["day", "week", "month"]),
    reports=st.integers(1, 4),
    start=st.datetimes(datetime(2026, 1, 1), datetime(2029, 1, 1), timezones=st.just(UTC)),
)
@pytest.mark.exhaustive
def test_simulate_of_random_series_equals_a_sandbox_run(
    limits: list[str], asked: Mechanism, every: str, reports: int, start: datetime
) -> None:
    check(*played(limits, asked, every, start, reports, 30))


def test_simulate_of_a_plan_ends_with_its_quota() -> None:
    plan = Plan([(coin("0.5"), 5), (coin(1), 3)], delta="1e-6")
    foretold, found, until = played(["lifetime=9,1e-6"], coin("0.5"), "day", NEW_YEAR, 2, 10, plan=plan)
    check(foretold, found, until)
    lifetime, planned = foretold
    assert (planned.period, planned.rule, planned.at, planned.report, planned.charged) == (
        "plan",
        "exact",
        NEW_YEAR + timedelta(days=2),
        5,
        4,
    )
    assert lifetime.at is None
    assert lifetime.never == "as the plan is used up on 2027-01-03"
    with pytest.raises(NotSupported, match="plan of policy default does not include this mechanism"):
        played([], coin(2), "day", NEW_YEAR, 1, 1, plan=plan)


# -- what never binds -----------------------------------------------------------------------------------------


def policy(*limits: str, **more: Any) -> Policy:
    return Policy("default", tuple(map(Limit.parse, limits)), unbounded=True, **more)


@pytest.mark.slow
def test_simulate_without_refusal_in_a_hundred_years_reports_never() -> None:
    (day, lifetime) = simulate(policy("day=1", "lifetime=5218"), coin(1), every="week", start=NEW_YEAR)
    assert (day.at, day.report, day.charged, day.never) == (None, None, 5218, "within 100 years")
    assert lifetime.at is None
    (lifetime,) = simulate(policy("lifetime=5217"), coin(1), every="week", start=NEW_YEAR)
    assert (lifetime.at, lifetime.report) == (NEW_YEAR + timedelta(weeks=5217), 5218)


# -- when it is asked -----------------------------------------------------------------------------------------


def test_simulate_with_invalid_arguments_raises() -> None:
    with pytest.raises(InvalidParameter, match="every must be one of day, week, month: got 'year'"):
        simulate(policy("day=1"), coin(1), every="year", start=NEW_YEAR)
    with pytest.raises(InvalidParameter, match="start must be a datetime with a time zone"):
        simulate(policy("day=1"), coin(1), every="day", start=datetime(2027, 1, 1))
    with pytest.raises(InvalidParameter, match="start must be a datetime with a time zone, from 1970 to 9997"):
        simulate(policy("day=1"), coin(1), every="day", start=datetime(9998, 1, 1, tzinfo=UTC))
    with pytest.raises(InvalidParameter, match="reports must be a whole number from 1"):
        simulate(policy("day=1"), coin(1), every="day", start=NEW_YEAR, reports=0)
    with Accountant(":memory:") as accountant, pytest.raises(UnknownName, match="no policy is named 'survey'"):
        accountant.simulate(coin(1), every="day", policy="survey")


def test_simulate_writes_nothing_and_ignores_other_users() -> None:
    now = NEW_YEAR
    with Accountant(":memory:", sandbox=True, clock=lambda: now) as sandbox:
        sandbox.set_policy("default", ["lifetime=2"])
        sandbox.spend("alice", coin(1))
        head = sandbox.stats()
        (lifetime,) = sandbox.simulate(coin(1), every="day")
        assert (lifetime.at, lifetime.report) == (NEW_YEAR + timedelta(days=2), 3)
        assert sandbox.stats() == head
