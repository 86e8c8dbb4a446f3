"""Calendar windows in UTC: the periods a limit can have, and where one ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

LIFETIME = "lifetime"
PERIODS = (LIFETIME, "day", "week", "month")

# The most windows of each period that touch one year.
PER_YEAR = {"day": 366, "week": 54, "month": 12}

_EPOCH_MONDAY = datetime(1969, 12, 29, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
DAY_MICROS = 86_400_000_000


class Window(NamedTuple):
    """One window: a number that names it in the ledger, its start, and its end (None: never)."""

    code: int
    starts: datetime
    ends: datetime | None


def window_at(period: str, moment: datetime) -> Window:
    """The window of `period` that contains `moment`. Weeks start on Monday."""
    return _window_on(period, (moment - _EPOCH).days)


def code_at(period: str, micros: int) -> int:
    """The number of the window of `period` that contains a moment in microseconds since 1970."""
    return _window_on(period, micros // DAY_MICROS).code


@lru_cache(maxsize=4096)
def _window_on(period: str, days: int) -> Window:
    """The window of `period` that contains a day, counted from 1970. Every spend of a day asks for the same few."""
    if period == LIFETIME:
        return Window(0, datetime.min.replace(tzinfo=UTC), None)
    day = _EPOCH + timedelta(days=days)
    if period == "day":
        return _window(period, days, day, day + timedelta(days=1))
    if period == "week":
        monday = day - timedelta(days=day.weekday())
        return _window(period, (monday - _EPOCH_MONDAY).days // 7, monday, monday + timedelta(days=7))
    first = day.replace(day=1)
    following = (first + timedelta(days=31)).replace(day=1)
    return _window(period, first.year * 12 + first.month - 1, first, following)


def _window(period: str, index: int, starts: datetime, ends: datetime) -> Window:
    return Window(index * len(PERIODS) + PERIODS.index(period), starts, ends)


class Moment:
    """One reading of the clock; shared by everything that one transaction does."""

    __slots__ = ("at", "micros")

    def __init__(self, at: datetime) -> None:
        self.at = at
        self.micros = to_micros(at)

    @property
    def day(self) -> int:
        """Its day, counted from 1970: all moments of a day lie in the same windows."""
        return self.micros // DAY_MICROS

    def window(self, period: str) -> Window:
        """The window of `period` that contains this moment."""
        return _window_on(period, self.day)


def to_micros(moment: datetime) -> int:
    """Whole microseconds since 1970, as the ledger stores time."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """The moment that `to_micros` turned into a number."""
    return _EPOCH + timedelta(microseconds=micros)
