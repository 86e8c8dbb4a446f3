"""Days of a time zone: windows of a policy begin at local midnights, by the rules that the policy stores."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget import NotSupported
from ldp_budget.ledger import zones
from ldp_budget.ledger.calendar import gauge_named, gauge_of, name_at, names_on, span_at, to_micros, window_at
from ldp_budget.ledger.zones import Zone, day_of, zone_named, zone_of

NAMES = [
    "Asia/Seoul",
    "Asia/Kathmandu",
    "America/New_York",
    "America/St_Johns",
    "America/Sao_Paulo",
    "Africa/Casablanca",
    "Asia/Beirut",
    "Asia/Gaza",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Pacific/Apia",
    "Pacific/Kiritimati",
]
MOMENTS = st.datetimes(min_value=datetime(1990, 1, 1), max_value=datetime(2090, 1, 1), timezones=st.just(UTC))
HOUR = timedelta(hours=1)


def zone(name: str) -> Zone:
    found = zone_named(name)
    assert found is not None
    return found


def local_day(name: str, moment: datetime) -> date:
    """The naive answer: the latest day that the local calendar has shown so far, second by quarter of an hour."""
    quarter = timedelta(minutes=15)
    before = moment - timedelta(hours=3)
    of = [moment, *(before + quarter * step for step in range(12))]
    return max(each.astimezone(ZoneInfo(name)).date() for each in of if each <= moment)


@given(st.sampled_from(NAMES), MOMENTS)
def test_day_of_is_the_latest_day_that_the_local_calendar_has_shown(name: str, moment: datetime) -> None:
    assert day_of(zone(name), moment) == local_day(name, moment)


@given(st.sampled_from(NAMES), MOMENTS, st.sampled_from(["day", "week", "month"]))
def test_window_contains_its_moment_and_the_next_begins_at_its_end(name: str, moment: datetime, period: str) -> None:
    gauge = gauge_named(period, None, 0, zone(name).key)
    window = window_at(gauge, moment)
    assert window.ends is not None
    assert window.starts <= moment < window.ends
    following = window_at(gauge, window.ends)
    assert following.starts == window.ends
    assert following.name > window.name
    assert window_at(gauge, window.starts) == window == window_at(gauge, window.ends - timedelta(microseconds=1))
    first, day = date.fromisoformat(window.name.rpartition(" ")[2]), day_of(zone(name), moment)
    assert (first, gauge_of(window.name)) == (
        {"day": day, "week": day - timedelta(days=day.weekday()), "month": day.replace(day=1)}[period],
        gauge,
    )


@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3), MOMENTS, st.timedeltas(-24 * HOUR, 24 * HOUR))
def test_span_has_the_same_windows_throughout(names: list[str], moment: datetime, apart: timedelta) -> None:
    gauges = ["day", *(gauge_named("day", None, 0, zone(name).key) for name in names)]
    first, until = span_at(gauges, to_micros(moment))
    assert first <= to_micros(moment) < until
    other = to_micros(moment + apart)
    same = [name_at(gauge, other) for gauge in gauges] == [name_at(gauge, to_micros(moment)) for gauge in gauges]
    assert same == (first <= other < until) or other // 86_400_000_000 != first // 86_400_000_000
    assert {name_at(gauge, to_micros(moment)) for gauge in gauges} <= names_on(gauges, first // 86_400_000_000)


@pytest.mark.parametrize(
    ("name", "day", "starts", "hours"),
    [
        ("America/New_York", date(2026, 3, 8), datetime(2026, 3, 8, 5), 23),
        ("America/New_York", date(2026, 11, 1), datetime(2026, 11, 1, 4), 25),
        ("Australia/Lord_Howe", date(2026, 10, 4), datetime(2026, 10, 3, 13, 30), 23.5),
        ("Asia/Beirut", date(2026, 3, 29), datetime(2026, 3, 28, 22), 23),  # midnight is skipped
        ("America/Sao_Paulo", date(2018, 11, 4), datetime(2018, 11, 4, 3), 23),  # midnight is skipped
        ("America/Sao_Paulo", date(2018, 2, 17), datetime(2018, 2, 17, 2), 25),  # from 0:00 back to 23:00
        ("America/Havana", date(2026, 11, 1), datetime(2026, 11, 1, 4), 25),  # midnight occurs twice
        ("America/St_Johns", date(2010, 11, 7), datetime(2010, 11, 7, 2, 30), 25),  # from 0:01 back to 23:01
        ("America/Toronto", date(1919, 3, 31), datetime(1919, 3, 31, 4, 30), 23.5),  # from 23:30 to 0:30
        ("Pacific/Apia", date(2011, 12, 31), datetime(2011, 12, 30, 10), 24),  # the day before was skipped
    ],
)
def test_day_of_an_irregular_midnight_begins_when_documented(
    name: str, day: date, starts: datetime, hours: float
) -> None:
    start = starts.replace(tzinfo=UTC)
    end = start + hours * HOUR
    assert (zone(name).starts(day), zone(name).starts(day + timedelta(days=1))) == (to_micros(start), to_micros(end))
    second = timedelta(seconds=1)
    assert [day_of(zone(name), each) for each in (start, end - second)] == [day, day]
    assert day_of(zone(name), start - second) < day < day_of(zone(name), end)


def test_day_that_was_skipped_is_empty() -> None:
    apia = zone("Pacific/Apia")
    assert apia.starts(date(2011, 12, 30)) == apia.starts(date(2011, 12, 31))
    gauge = gauge_named("day", None, 0, apia.key)
    names = {window_at(gauge, datetime(2011, 12, 30, tzinfo=UTC) + hour * HOUR).name for hour in range(48)}
    assert sorted(name[-10:] for name in names) == ["2011-12-29", "2011-12-31", "2012-01-01"]


def test_zone_of_a_stored_file_needs_no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = zone("Asia/Seoul").file
    monkeypatch.setattr(zones, "_known", {})
    monkeypatch.setattr(zoneinfo, "TZPATH", ())
    with pytest.raises(NotSupported, match="the rules of the time zone Asia/Seoul~00 are unknown"):
        zone_of("Asia/Seoul~00")
    read = Zone("Asia/Seoul", stored)
    assert zone_of(read.key) == read
    assert read.starts(date(2026, 11, 22)) == to_micros(datetime(2026, 11, 21, 15, tzinfo=UTC))


def test_zone_with_other_rules_has_another_key() -> None:
    seoul, tokyo = zone("Asia/Seoul"), zone("Asia/Tokyo")
    other = Zone("Asia/Seoul", tokyo.file)
    assert other.key != seoul.key
    assert other.name == seoul.name
