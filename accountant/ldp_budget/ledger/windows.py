"""Calendar windows in UTC: the periods a limit can have, and where one ends.

Sums are kept by *gauge*. A plain one is a period, and holds the four amounts of charges. One with a measure, such as
`lifetime renyi:3`, has the windows of its period once more, apart from the plain ones, and holds what charges cost
under that measure (`guarantees.orders`), in the places of δ and ρ. One of a share, such as `lifetime share:3`, holds
only what was charged through that share. So whoever has no such limit keeps nothing for it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..guarantees.orders import MEASURES

if TYPE_CHECKING:
    from collections.abc import Mapping

LIFETIME = "lifetime"
PERIODS = (LIFETIME, "day", "week", "month")

LONGER = {LIFETIME: (), "day": ("week", "month", LIFETIME), "week": (LIFETIME,), "month": (LIFETIME,)}
"""The periods that contain whole ones of each."""

# The most windows of each period that touch one year.
PER_YEAR = {"day": 366, "week": 54, "month": 12}

_EPOCH_MONDAY = datetime(1969, 12, 29, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
DAY_MICROS = 86_400_000_000

# How far the windows of one measure lie from those of the next; those of a year lie within some thousands. The places
# of the measures come again for each share.
_APART = 2**32
_A_SHARE = 2**12
MOST_SHARES = 2**16
"""How many shares a ledger can know."""
_SHARE = "share:"
_PLACES = {measure: place for place, measure in enumerate(MEASURES, 1)}


class Window(NamedTuple):
    """One window: a number that names it in the ledger, its start, its end (None: never), and what it holds.

    That is the four amounts of charges, or with a `measure` what they cost under it; with the number of a `share`
    only what was charged through that one.
    """

    code: int
    starts: datetime
    ends: datetime | None
    measure: str | None = None
    share: int = 0

    def counts(self, share: int) -> bool:
        """Whether what is charged through a share, 0 for none, counts in it."""
        return self.share in (0, share)


class _Gauge(NamedTuple):
    """What the name of a gauge says."""

    period: str
    measure: str | None
    share: int


def gauge_named(period: str, measure: str | None, share: int = 0) -> str:
    """The gauge of a period, of a measure if there is one, and of a share if it is not 0."""
    return " ".join([period, *([] if measure is None else [measure]), *([f"{_SHARE}{share}"] if share else [])])


@lru_cache(maxsize=4096)
def _read(gauge: str) -> _Gauge:
    period, *more = gauge.split(" ")
    share = int(more.pop().removeprefix(_SHARE)) if more and more[-1].startswith(_SHARE) else 0
    return _Gauge(period, more[0] if more else None, share)


def measure_in(gauge: str) -> str | None:
    """The measure of a gauge; None where it holds the four amounts of charges."""
    return _read(gauge).measure


def share_in(gauge: str) -> int:
    """The number of the share whose charges alone a gauge holds; 0 of one that holds everybody's."""
    return _read(gauge).share


def holds(gauge: str, share: int) -> bool:
    """Whether what is charged through a share, 0 for none, counts in a gauge."""
    return _read(gauge).share in (0, share)


def gauges_in(definition: Mapping[str, Any]) -> list[str]:
    """The gauges of all limits of a policy, and of its shares, from its definition."""
    limits = [*definition["limits"], *(limit for share in definition.get("shares", ()) for limit in share["limits"])]
    return [str(limit.get("gauge", limit["period"])) for limit in limits]


def is_lifetime(gauge: str) -> bool:
    """Whether a gauge has one window for all time."""
    return gauge.partition(" ")[0] == LIFETIME


@lru_cache(maxsize=4096)
def gauge_of(code: int) -> str:
    """The gauge of a window's number."""
    share, place = divmod((code + _APART // 2) // _APART, _A_SHARE)
    measure = None
    if place:
        measure = MEASURES[place - 1] if place <= len(MEASURES) else f"measure:{place}"
    return gauge_named(PERIODS[code % len(PERIODS)], measure, share)


def number_of(gauge: str) -> int:
    """The number of a gauge in the journal: its window of the epoch's day, less what that day adds."""
    return PERIODS.index(_read(gauge).period) + _far(gauge)


def _far(gauge: str) -> int:
    """How far the windows of a gauge lie from those of its period."""
    _, measure, share = _read(gauge)
    return (share * _A_SHARE + (_PLACES[measure] if measure else 0)) * _APART


def since_when(gauge: str, micros: int) -> int:
    """When the window of a gauge that contains a moment starts, in microseconds since 1970; 0 of a lifetime."""
    return 0 if is_lifetime(gauge) else to_micros(_window_on(gauge, micros // DAY_MICROS).starts)


def window_at(period: str, moment: datetime) -> Window:
    """The window of `period` that contains `moment`. Weeks start on Monday."""
    return _window_on(period, (moment - _EPOCH).days)


def code_at(period: str, micros: int) -> int:
    """The number of the window of `period` that contains a moment in microseconds since 1970."""
    return _window_on(period, micros // DAY_MICROS).code


@lru_cache(maxsize=4096)
def _window_on(period: str, days: int) -> Window:
    """The window of `period` that contains a day, counted from 1970. Every spend of a day asks for the same few."""
    far = _far(period)
    if far:
        plain, measure, share = _read(period)
        window = _window_on(plain, days)
        return window._replace(code=window.code + far, measure=measure, share=share)
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
