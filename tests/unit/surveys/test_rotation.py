"""Rotation of a panel: phases, periods, turns, and the limit that enforces them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget import Accountant, Limit
from ldp_budget.errors import InvalidParameter
from ldp_budget_surveys.questionnaires.surveys import Survey
from ldp_budget_surveys.rotation import Rotation, enforcing_limit, is_enforced, period_for

FILE = """
[survey]
name = "health"
epsilon = 1
rounds = 52
{more}

[[question]]
name = "smoke"
kind = "yes-no"
"""
WEEKS = Rotation(12, 7, b"k" * 32)
MEMBERS = [f"member {number}" for number in range(3000)]


def read(folder: Path, more: str) -> Survey:
    path = folder / "health.toml"
    path.write_text(FILE.format(more=more), encoding="utf-8")
    return Survey.from_toml(path)


def test_each_member_is_asked_in_one_of_the_periods_of_a_turn() -> None:
    first = WEEKS.period_on(date(2026, 1, 1))
    periods = [WEEKS.period_on(first.first + timedelta(weeks=week)) for week in range(24)]
    asked = [
        [user for user, turn in zip(MEMBERS, WEEKS.turns(MEMBERS, each), strict=True) if turn] for each in periods
    ]
    assert sorted(user for each in asked[:12] for user in each) == sorted(MEMBERS)
    assert asked[:12] == asked[12:]


def test_phases_depend_on_the_key_and_are_spread_evenly() -> None:
    counts = Counter(WEEKS.phase(user) for user in MEMBERS)
    assert len(counts) == 12
    assert max(abs(count - 250) for count in counts.values()) < 5 * 250**0.5
    other = Rotation(12, 7, b"l" * 32)
    alike = sum(WEEKS.phase(user) == other.phase(user) for user in MEMBERS)
    assert abs(alike - 250) < 5 * 250**0.5


@given(st.dates(date(1990, 1, 1), date(2100, 1, 1)), st.integers(1, 40), st.integers(2, 30))
def test_period_contains_its_day_and_follows_the_one_before(day: date, days: int, periods: int) -> None:
    rotation = Rotation(periods, days, b"k" * 32)
    period = rotation.period_on(day)
    assert period.first <= day <= period.last
    assert (period.last - period.first).days == days - 1
    before = rotation.period_on(period.first - timedelta(days=1))
    assert (before.number, before.last) == (period.number - 1, period.first - timedelta(days=1))


def test_week_of_a_rotation_begins_on_monday_in_the_zone_of_the_policy() -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="1")], zone="Asia/Seoul")
        survey = Survey.from_json(
            {
                **{"format": "ldp-budget survey", "version": 1, "name": "health", "epsilon": "1", "rotate": 4},
                "questions": [{"name": "smoke", "kind": "yes-no"}],
            }
        )
        rotation = Rotation.of(accountant, survey, accountant.policy("default"))
    assert rotation is not None
    sunday = datetime(2026, 11, 29, 14, 59, tzinfo=UTC)
    period = rotation.period_at(sunday)
    assert (period.first.weekday(), period.last, period.ends) == (
        0,
        date(2026, 11, 29),
        sunday + timedelta(minutes=1),
    )
    assert rotation.period_at(period.ends).first == date(2026, 11, 30)


@pytest.mark.parametrize("every", ["day", "week", "28d"])
def test_two_turns_are_apart_by_the_days_of_the_enforcing_limit(tmp_path: Path, every: str) -> None:
    survey = read(tmp_path, f'rotate = 5\nevery = "{every}"')
    rotation = Rotation(survey.rotate, survey.period_days, b"k" * 32)
    day = date(2026, 1, 1)
    days = [day + timedelta(days=after) for after in range(12 * survey.period_days)]
    apart = []
    for user in MEMBERS[:40]:
        turns = [each for each in days if rotation.asks(user, rotation.period_on(each))]
        apart += [
            (later - earlier).days
            for earlier in turns
            for later in turns
            if (later - earlier).days > survey.period_days
        ]
    assert min(apart) == survey.least_days_between
    assert enforcing_limit(survey) == f"{survey.least_days_between}d=1"


def test_next_turn_is_this_period_or_the_first_later_one() -> None:
    period = WEEKS.period_on(date(2026, 11, 29))
    for user in MEMBERS[:50]:
        turn = WEEKS.next_turn(user, period)
        assert WEEKS.asks(user, turn)
        assert 0 <= turn.number - period.number < 12


@pytest.mark.parametrize(
    ("limit", "enforced"),
    [
        (("22d", "1"), True),
        (("28d", "1.9"), True),
        (("22d", "2"), False),
        (("21d", "1"), False),
        (("week", "1"), False),
    ],
)
def test_limit_enforces_a_rotation_if_no_two_answers_fit(
    tmp_path: Path, limit: tuple[str, str], enforced: bool
) -> None:
    survey = read(tmp_path, "rotate = 4")
    assert is_enforced(survey, [Limit(limit[0], epsilon=limit[1])]) is enforced


def test_limit_of_a_scope_enforces_no_rotation(tmp_path: Path) -> None:
    survey = read(tmp_path, "rotate = 4")
    assert not is_enforced(survey, [Limit("22d", "1", scope="attribute:health")])


def test_limit_enforces_a_rotation_by_what_an_answer_costs(tmp_path: Path) -> None:
    survey = read(tmp_path, "rotate = 4")
    cheap = replace(survey, questions=(replace(survey.questions[0], epsilon=Decimal("0.25")),))
    assert not is_enforced(cheap, [Limit("22d", "1")])
    assert enforcing_limit(cheap) == "22d=0.25"
    assert is_enforced(cheap, [Limit.parse(enforcing_limit(cheap))])


def test_survey_with_a_rotation_is_read_back_from_json(tmp_path: Path) -> None:
    survey = read(tmp_path, 'rotate = 12\nevery = "28d"')
    assert (survey.rotate, survey.period_days, survey.rounds_each) == (12, 28, 5)
    assert Survey.from_json(survey.to_json()) == survey
    assert "rotate" not in read(tmp_path, "").to_json()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('every = "week"', "every must be left out without rotate"),
        ("rotate = 1", "rotate must be a whole number from 2 to 53"),
        ("rotate = 54", "rotate must be a whole number from 2 to 53, so that a sliding limit can enforce it"),
        ('rotate = 4\nevery = "month"', 'every must be "day", "week", or 2 to 366 days such as "28d"'),
        ('rotate = "4"', "rotate must be a whole number"),
    ],
)
def test_wrong_rotation_names_the_key(tmp_path: Path, more: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        read(tmp_path, more)


@pytest.mark.parametrize("day", ["tomorrow", "9999-12-31"])
def test_period_of_a_day_that_is_none_is_refused(day: str) -> None:
    now: Any = datetime(2026, 11, 29, tzinfo=UTC)
    assert period_for(WEEKS, now, None) == period_for(WEEKS, now, "2026-11-25")
    with pytest.raises(InvalidParameter, match=f"period must be a day such as 2026-11-23: got {day}"):
        period_for(WEEKS, now, day)


def test_survey_without_a_rotation_has_none(tmp_path: Path) -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon="1")])
        assert Rotation.of(accountant, read(tmp_path, ""), accountant.policy("default")) is None
        assert Decimal(1) == read(tmp_path, "").epsilon
