"""Limits and policies: decisions in whole units, parsing, and validation."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from case_files import case_table
from ldp_budget import InvalidParameter, Limit
from ldp_budget.accounting.limits import as_limits
from ldp_budget.accounting.policies import Policy
from ldp_budget.guarantees.fixed_point import LARGEST, Costs

AMOUNT = st.one_of(st.none(), st.integers(0, 10**6), st.integers(0, LARGEST))
COSTS = st.builds(Costs, AMOUNT, AMOUNT, AMOUNT, AMOUNT)
LIMITS = st.builds(
    Limit,
    st.just("lifetime"),
    st.decimals(min_value="1e-9", max_value=4, allow_nan=False).filter(lambda number: number > 0),
    st.decimals(min_value=0, max_value="0.9", allow_nan=False),
)


# -- one limit -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(LIMITS, COSTS, COSTS)
def test_affordable_is_exactly_the_count_that_fits(limit: Limit, spent: Costs, cost: Costs) -> None:
    count = limit.affordable(spent, cost)
    if count:
        assert limit.fits(spent, cost.times(count))
    if count < LARGEST:
        assert not limit.fits(spent, cost.times(count + 1))


@pytest.mark.slow
@given(LIMITS, COSTS)
def test_remaining_is_between_zero_and_the_capacity(limit: Limit, spent: Costs) -> None:
    for most, left in zip(limit.capacity, limit.remaining(spent), strict=True):
        assert (most is None) == (left is None)
        assert most is None or left is None or 0 <= left <= most


def test_limit_of_one_fits_ten_tenths_only() -> None:
    limit, tenth = Limit("lifetime", epsilon=1), Costs(10**8, 0, 0, 0)
    assert limit.affordable(Costs(0, 0, 0, 0), tenth) == 10
    assert limit.fits(tenth.times(9), tenth)
    assert not limit.fits(tenth.times(10), tenth)


def test_limit_fits_to_the_last_unit() -> None:
    limit, unit = Limit("lifetime", epsilon=1, delta="1e-6"), Costs(1, 0, 0, 0)
    assert limit.fits(Costs(10**9 - 1, 0, 0, 0), unit)
    assert not limit.fits(Costs(10**9, 0, 0, 0), unit)
    assert not limit.fits(Costs(0, 10**12, 0, 0), Costs(0, 1, 0, 0))


def test_capacity_rounds_down_and_a_cost_never_to_zero() -> None:
    limit = Limit("lifetime", epsilon="0.9999999999")
    assert limit.capacity.epsilon == 999_999_999
    assert Limit("day", epsilon="1e-10").affordable(Costs(0, 0, 0, 0), Costs(1, 0, 0, 0)) == 0


def test_limit_refuses_an_unbounded_cost_and_everything_after_one() -> None:
    limit = Limit("lifetime", epsilon="1e12", delta="0.5")
    some, endless = Costs(1, 0, 0, 0), Costs(None, 0, 0, 0)
    assert not limit.fits(Costs(0, 0, 0, 0), endless)
    assert limit.affordable(Costs(0, 0, 0, 0), endless) == 0
    assert not limit.fits(endless, some)
    assert limit.remaining(endless).epsilon == 0


def test_limit_lowered_below_the_spent_sum_admits_nothing() -> None:
    limit, nothing = Limit("lifetime", epsilon=1), Costs(0, 0, 0, 0)
    assert limit.affordable(Costs(2 * 10**9, 0, 0, 0), nothing) == 0
    assert not limit.fits(Costs(2 * 10**9, 0, 0, 0), nothing)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("lifetime=4", Limit("lifetime", Decimal(4))),
        ("day=0.5,1e-6", Limit("day", Decimal("0.5"), Decimal("1e-6"))),
        (" week = 1 , 0 , basic ", Limit("week", Decimal(1))),
    ],
)
def test_limit_from_text_is_parsed(text: str, limit: Limit) -> None:
    assert Limit.parse(text) == limit
    assert as_limits([text, limit]) == (limit, limit)


@pytest.mark.parametrize(("text", "message"), case_table("policy", "test_limit_with_invalid_values_raises"))
def test_limit_with_invalid_values_raises(text: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message) as caught:
        Limit.parse(text)
    assert caught.value.option == "limit"


# -- a policy ------------------------------------------------------------------------------------------------


def policy(*limits: str, **options: Any) -> Policy:
    return Policy("default", as_limits(limits), **options)


def test_policy_without_lifetime_limit_needs_unbounded() -> None:
    with pytest.raises(
        InvalidParameter, match=r"given for the lifetime as well in policy .default.: got only day, week"
    ):
        policy("day=1", "week=2")
    assert policy("day=1", unbounded=True).worst_epsilon_per_year() == 366
    assert policy("day=1", "month=5", unbounded=True).worst_epsilon_per_year() == 60
    assert policy("lifetime=4", "day=1").worst_epsilon_per_year() is None


@pytest.mark.parametrize(
    ("limits", "options", "message"),
    [
        ([], {}, "at least one limit"),
        (["lifetime=1", "lifetime=2"], {}, "given once for each period and rule: got lifetime basic more than once"),
        (["lifetime=1"], {"relation": "some"}, "relation must be 'any' or None: got 'some'"),
    ],
)
def test_policy_with_invalid_limits_raises(limits: list[str], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        policy(*limits, **options)


@pytest.mark.slow
@given(st.lists(LIMITS, min_size=1, max_size=1), st.booleans(), st.sampled_from([None, "any"]))
def test_policy_round_trips_through_json(limits: list[Limit], unbounded: bool, relation: str | None) -> None:
    made = Policy("default", tuple(limits), 3, relation, unbounded)
    twin = Policy.from_json(made.to_json())
    assert twin == made
    assert [limit.capacity for limit in twin.limits] == [limit.capacity for limit in made.limits]
