"""Windows: every moment is in exactly one day, one week from Monday, one month and the lifetime, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget.ledger.calendar import LIFETIME, PERIODS, from_micros, to_micros, window_at, windows_per_year

CALENDAR = [period for period in PERIODS if period != LIFETIME]

MOMENTS = st.datetimes(min_value=datetime(1800, 1, 1), max_value=datetime(2400, 1, 1), timezones=st.just(UTC))


@pytest.mark.slow
@given(MOMENTS, st.sampled_from(CALENDAR))
def test_window_contains_its_moment_and_the_next_begins_at_its_end(moment: datetime, period: str) -> None:
    window = window_at(period, moment)
    assert window.ends is not None
    assert window.starts <= moment < window.ends
    following = window_at(period, window.ends)
    assert following.starts == window.ends
    assert following.name > window.name
    assert window_at(period, window.starts) == window
    assert window_at(period, window.ends - timedelta(microseconds=1)) == window


@pytest.mark.slow
@given(MOMENTS, MOMENTS, st.sampled_from(PERIODS), st.sampled_from(PERIODS))
def test_window_name_of_two_moments_is_one_only_in_one_window(
    one: datetime, other: datetime, period: str, second: str
) -> None:
    first_window, second_window = window_at(period, one), window_at(second, other)
    same = period == second and first_window.starts == second_window.starts
    assert (first_window.name == second_window.name) == same


@given(MOMENTS, st.sampled_from(CALENDAR), st.integers(-14 * 60, 14 * 60))
def test_window_does_not_depend_on_the_time_zone_of_the_clock(moment: datetime, period: str, minutes: int) -> None:
    elsewhere = moment.astimezone(timezone(timedelta(minutes=minutes)))
    assert window_at(period, elsewhere) == window_at(period, moment)


@given(MOMENTS)
def test_lifetime_is_one_window_that_never_ends(moment: datetime) -> None:
    window = window_at(LIFETIME, moment)
    assert window.name == LIFETIME
    assert window.starts <= moment
    assert window.ends is None


@pytest.mark.slow
@pytest.mark.parametrize("period", CALENDAR)
def test_year_touches_at_most_the_counted_windows(period: str) -> None:
    most = 0
    for year in range(1990, 2040):
        days = (datetime(year, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in range(366))
        most = max(most, len({window_at(period, day).name for day in days if day.year == year}))
    assert most == windows_per_year(period)


@given(MOMENTS)
def test_time_is_stored_to_the_microsecond(moment: datetime) -> None:
    assert from_micros(to_micros(moment)) == moment
