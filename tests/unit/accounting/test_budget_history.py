"""Budget history: the remaining budget over time equals the figure in every receipt."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldp_budget
from contract.acts import coin
from fixed_clock import Clock
from ldp_budget import Accountant

LIMITS = ["lifetime=30,1e-6,zcdp", "lifetime=12", "month=8", "week=5", "day=2"]


def rappor() -> Any:
    return ldp_budget.mechanism("rappor")(bits=32, hashes=2, cohorts=8, f="0.5", p="0.5", q="0.75", domain_size=10)


def at(course: Any, moment: datetime) -> Any:
    """The remaining budget at a moment."""
    return next(left.remaining_units for left in reversed(course) if left.at <= moment)


def test_history_after_a_void_refills_an_open_window(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=4", "day=1"])
    first = accountant.reserve("alice", coin(1), expires=7200)
    clock.advance(hours=1)
    accountant.void(first.receipt or "")
    second = accountant.reserve("alice", coin(1), expires=2 * 86400)
    clock.advance(days=1)
    accountant.void(second.receipt or "")
    lifetime, day = (found.to_json()["course"] for found in accountant.remaining_over_time("alice"))
    assert [each["remaining"]["epsilon"] for each in lifetime] == [4, 3, 4, 3, 4]
    assert [(each["remaining"]["epsilon"], each["refilled"]) for each in day] == [
        *((1, False), (0, False), (1, False), (0, False), (1, True))
    ]


STEPS = st.lists(
    st.tuples(st.integers(0, 40), st.sampled_from(["0.3", "0.9", "label", "reserve", "void"])), max_size=14
)


@pytest.mark.slow
@given(steps=STEPS)
def test_history_equals_the_receipts(steps: list[tuple[int, str]]) -> None:
    clock = Clock()
    with Accountant(":memory:", clock=clock) as accountant:
        accountant.set_policy("default", LIMITS)
        told: list[tuple[datetime, Any]] = []
        held: list[str] = []
        for hours, what in steps:
            clock.advance(hours=hours, microseconds=1)
            if what == "void":
                if not held:
                    continue
                receipt = accountant.void(held.pop())
            elif what == "reserve":
                receipt = accountant.reserve("alice", coin("0.4"), expires=10**7)
                held += [receipt.receipt or ""] if receipt else []
            elif what == "label":
                receipt = accountant.spend("alice", rappor(), label="yes")
            else:
                receipt = accountant.spend("alice", coin(what))
            # A void has the windows of its reservation; the open ones are in the balance.
            limits = accountant.balance("alice").limits if what == "void" else receipt.limits
            told.append((clock.now, limits))
        clock.advance(hours=30)
        over_time = accountant.remaining_over_time("alice")
        told.append((clock.now, accountant.balance("alice").limits))
        charged = over_time[0].course[1].at if len(over_time[0].course) > 1 else clock.now
        for moment, limits in told:
            for state, found in zip(limits, over_time, strict=True):
                assert found.limit == state.limit
                if moment >= charged:
                    assert at(found.course, moment) == state.limit.remaining(state.spent_units)
        for found in over_time:
            moments = [left.at for left in found.course]
            assert moments == sorted(moments)


def test_history_after_a_clock_repair_ends_at_the_balance(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=4", "month=3", "day=1"])
    accountant.spend("alice", coin("0.5"))
    clock.advance(days=400)
    accountant.spend("alice", coin("0.25"))
    clock.advance(days=-399)
    repaired = clock.now
    assert accountant.repair_clock()
    clock.advance(hours=1)
    accountant.spend("alice", coin("0.1"))
    for found, state in zip(accountant.remaining_over_time("alice"), accountant.balance("alice").limits, strict=True):
        moments = [left.at for left in found.course]
        assert moments == sorted(moments)
        assert moments[-1] <= clock.now
        assert repaired in moments, "what was dated later was charged by then"
        assert found.course[-1].remaining_units == state.limit.remaining(state.spent_units)


def test_history_of_a_later_limit_starts_at_its_first_window(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=4"])
    accountant.spend("alice", coin("0.5"))
    clock.advance(days=10)
    accountant.spend("alice", coin("0.25"))
    accountant.set_policy("default", ["lifetime=4", "week=2"])
    lifetime, week = accountant.remaining_over_time("alice")
    assert lifetime.course[0].at == datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert week.course[0].at == datetime(2026, 11, 30, tzinfo=UTC), "the Monday before"
    assert [each["remaining"]["epsilon"] for each in week.to_json()["course"]] == [2, 1.75]


def test_history_of_an_erased_user_is_empty(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=4"])
    accountant.spend("alice", coin(1))
    accountant.erase("alice")
    assert accountant.remaining_over_time("alice") == ()
