"""The clock of a ledger: it never runs behind the newest entry, and within a process it never runs away.

What a clock says is believed only as far as it can be checked. Whatever charges refuses a clock that cannot be
believed; whatever reads or erases goes by the newest entry then, and so works whatever the clock says.

Calendar windows in UTC: the periods a limit can have, and where one ends.

Sums are kept by *gauge*. A plain one is a period, and holds the four amounts of charges. One with a measure, such as
`lifetime renyi:3`, has the windows of its period once more, apart from the plain ones, and holds what charges cost
under that measure (`guarantees.orders`), in the places of δ and ρ. One of a share, such as `lifetime share:3`, holds
only what was charged through that share. So whoever has no such limit keeps nothing for it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .._validation import shown
from ..errors import ClockError, InvalidParameter
from ..guarantees.costs import MEASURES

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


def window_start_micros(gauge: str, micros: int) -> int:
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


Read = Callable[[], datetime | float]

# A clock up to this far behind the newest entry counts as equal to it; further behind, nothing is trusted.
TOLERANCE_MICROS = 5_000_000

BOUND_SECONDS = 3600.0
"""How far the default clock may run away from the one that never jumps."""

# Windows and reservations end later than they begin, so the calendar's last years cannot be told.
_EARLIEST, _LATEST = 0, to_micros(datetime(9998, 1, 1, tzinfo=UTC))
_EXPECTED = "an aware datetime or seconds since 1970, before the year 9998"

# A clock that never jumps and, where there is such a one, goes on while the machine sleeps.
_STEADY: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def steady() -> float:
    """Seconds on a clock that nobody sets."""
    return time.monotonic() if _STEADY is None else time.clock_gettime(_STEADY)


def check_bound(bound: float) -> None:
    """Raise `InvalidParameter` unless a clock may be held to that many seconds."""
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not bound > 0:
        raise InvalidParameter("clock_bound", "seconds > 0, or infinity", shown(bound))


class Clock:
    """Reads the time for one ledger; `read` answers with an aware datetime, or with seconds since 1970.

    The default clock, time.time, is held to a steady one: once they are `bound` seconds further apart or closer than
    when this was made, it is refused. An idle ledger is no jump, for both go on. Any other clock may go forward as it
    likes. That of a `sandbox` is set by whoever plays it: set to a time before the newest entry, it is refused even
    to read by, for what was meant is not what would be shown.
    """

    def __init__(self, read: Read, ledger: str, bound: float = BOUND_SECONDS, *, sandbox: bool = False) -> None:
        check_bound(bound)
        self._read = read
        self._ledger = ledger
        self._bound = bound
        self._sandbox = sandbox
        self._apart = time.time() - steady() if read is time.time and not math.isinf(bound) else None

    @property
    def ledger(self) -> str:
        """The ledger as messages name it."""
        return self._ledger

    def moment(self, newest: int | None) -> Moment:
        """Now, to charge by: never before the newest entry, of that time.

        Raises `ClockError` where the clock is far behind it or has run away, `InvalidParameter` where it says none.
        """
        moment = self._now()
        if newest is None or moment.micros >= newest:
            return moment
        if newest - moment.micros > TOLERANCE_MICROS:
            raise self._behind(moment, from_micros(newest))
        return Moment(from_micros(newest))

    def _behind(self, moment: Moment, newest: datetime) -> ClockError:
        why = f"expected a clock at most 5 s behind its newest entry of {newest}; found {moment.at}"
        why += "; nothing was charged"
        if self._sandbox:
            return ClockError(self._ledger, f"{why}. A sandbox goes on from its newest entry", newest=newest)
        why += ". If the clock is right now, its time can be repaired"
        return ClockError(self._ledger, why, repairable=True, newest=newest)

    def moment_to_read(self, newest: int | None) -> Moment:
        """Now, or the time of the newest entry where the clock is not to be believed.

        Raises `ClockError` where the clock of a sandbox was set to a time before that.
        """
        is_set = self._sandbox and self._read is not time.time
        return self.moment(newest) if is_set else self.maintenance_time(newest)

    def maintenance_time(self, newest: int | None) -> Moment:
        """The same for what waits for no clock, whoever set it: erasing, copying, checkpoints."""
        try:
            return self.moment(newest)
        except (ClockError, InvalidParameter):
            return Moment(from_micros(newest or 0))

    def moment_to_repair(self, newest: int | None) -> Moment | None:
        """The moment of a repair: now, if that is too far behind the newest entry to charge by; None if it is not.

        Raises `ClockError` where the clock has run away, `InvalidParameter` where it says no time.
        """
        moment = self._now()
        behind = newest is not None and newest - moment.micros > TOLERANCE_MICROS
        return moment if behind else None

    def _now(self) -> Moment:
        """What the clock says, if that is a time and it has not run away."""
        said = self._read()
        moment = _moment_of(said)
        if moment is None:
            raise InvalidParameter("clock", _EXPECTED, repr(said))
        if self._apart is not None:
            self._check_bound(moment)
        return moment

    def _check_bound(self, moment: Moment) -> None:
        ahead = moment.micros / 1e6 - steady() - (self._apart or 0.0)
        if abs(ahead) > self._bound:
            where = "ahead of" if ahead > 0 else "behind"
            raise ClockError(
                self._ledger,
                f"the clock, at {moment.at}, is more than {self._bound:g} s {where} what has passed since this"
                " process opened the ledger; nothing was charged. Opened anew, it takes the clock as it is",
            )


def _moment_of(said: Any) -> Moment | None:
    """The moment that a clock means; None if it says no time, or none that can be reckoned with."""
    if isinstance(said, bool):
        return None
    try:
        now = said if isinstance(said, datetime) else datetime.fromtimestamp(said, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    if now.utcoffset() is None:
        return None
    moment = Moment(now)
    return moment if _EARLIEST <= moment.micros < _LATEST else None
