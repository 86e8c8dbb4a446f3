"""Clock checks and calendar windows of a ledger.

A ledger's time never runs behind its newest entry, and the default clock cannot run away within a process. A clock is
trusted only as far as it can be checked. Charges refuse a clock that is not plausible. Reads and erasures then use
the time of the newest entry, so they work with any clock.

A limit has a period: lifetime, day, week or month, or a number of days such as `28d`. Sums are kept by *gauge*:

- A plain gauge is a period. It holds the four amounts of charges.
- The days of a gauge are those of UTC, unless its period names the rules of a time zone: `day@Asia/Seoul~5c…`, see
  `zones`. Other rules are another gauge with other windows, and a gauge that is new is backfilled from the journal.
- A gauge with a measure, such as `lifetime renyi:3`, has separate windows of its period. It holds the cost of charges
  under that measure (see `guarantees.costs`), in the columns of δ and ρ.
- A sliding gauge, such as `28d`, keeps a sum for each day. A limit of it counts the open day and the 27 days before:
  each window names these days as `earlier`. A MAC of a day covers the sums of all days that count on it.
- A gauge with a scope, such as `lifetime scope:attribute:health`, holds what charges with that tag cost, and those
  without any tag: nothing says what they depend on.
- A gauge with a sub-limit, such as `lifetime share:3`, holds only what was charged through that sub-limit.

A ledger without such limits stores no sums for them.
"""

from __future__ import annotations

import math
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from .._tags import counts_in
from .._validation import shown
from ..errors import ClockError, InvalidParameter
from .zones import zone_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .zones import Zone

T = TypeVar("T")


# -- windows ----------------------------------------------------------------------------------------------


LIFETIME = "lifetime"
PERIODS = (LIFETIME, "day", "week", "month")

_LONGER = {LIFETIME: (), "day": ("week", "month", LIFETIME), "week": (LIFETIME,), "month": (LIFETIME,)}
"""The periods that contain whole windows of each period."""

MOST_DAYS = 366
"""The longest sliding period, in days."""
_SLIDING = re.compile(r"([1-9][0-9]{0,2})d")

# The largest number of windows of each period that overlap one year.
_PER_YEAR = {"day": 366, "week": 54, "month": 12}


def days_in(period: str) -> int:
    """Return the number of days of a sliding period, such as 28 for `28d`; 0 for any other text."""
    found = _SLIDING.fullmatch(period)
    days = 0 if found is None else int(found[1])
    return days if 2 <= days <= MOST_DAYS else 0


def is_longer(period: str, other: str) -> bool:
    """True if one period always contains the other."""
    days, others = days_in(period), days_in(other)
    if not others:
        others = {"day": 1, "week": 7, "month": 31}.get(other, 0)
        return period in _LONGER[other] if not days else 0 < others < days
    return period == LIFETIME or days > others


def windows_per_year(period: str) -> int:
    """Return the largest number of windows of a period that overlap one year; of a sliding one, that cover a year."""
    days = days_in(period)
    return -(-366 // days) if days else _PER_YEAR[period]


def is_period(period: str) -> bool:
    """True if a limit may have this period."""
    return period in PERIODS or days_in(period) > 0


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
DAY_MICROS = 86_400_000_000

MOST_SHARES = 2**16
"""The largest number of sub-limits in a ledger."""
_SCOPE = "scope:"
_SHARE = "share:"
_ZONE = "@"


class Window(NamedTuple):
    """One window: its name in the ledger, its start, its end (None: never), and what it counts.

    The name is the gauge and the first day of the window, such as `day 2026-11-24` or `week renyi:3 2026-11-23`. In a
    time zone, the first day is a local one. A lifetime has no first day: its window has the name of its gauge.

    Without a measure, a window holds the four amounts of charges. With a `measure`, it holds their cost under that
    measure. With the number of a `share` (sub-limit), it holds only charges through that sub-limit, with a `scope` only
    charges with that tag or without tags. A limit of a sliding gauge also counts the windows named `earlier`, in the
    order of their days. All other limits are full again at `resets_at`, their window's end.
    """

    name: str
    starts: datetime
    ends: datetime | None
    measure: str | None = None
    share: int = 0
    earlier: tuple[str, ...] = ()
    resets_at: datetime | None = None
    scope: str = ""

    def counts(self, share: int, tags: Collection[str]) -> bool:
        """True if a charge with these tags, through a sub-limit (0: none), counts in this window."""
        return self.share in (0, share) and counts_in(self.scope, tags)


class _Gauge(NamedTuple):
    """The parts of a gauge's name; `zone` is the key of a zone, empty for UTC."""

    period: str
    measure: str | None
    share: int
    zone: str
    scope: str


def gauge_named(period: str, measure: str | None, share: int = 0, zone: str | None = None, scope: str = "") -> str:
    """Return the gauge of a period, with a measure unless None, a sub-limit unless 0, a zone by its key, and a scope.

    A lifetime has no days, so it has no zone.
    """
    days = f"{period}{_ZONE}{zone}" if zone and period != LIFETIME else period
    scoped = [f"{_SCOPE}{scope}"] if scope else []
    return " ".join(
        [days, *([] if measure is None else [measure]), *scoped, *([f"{_SHARE}{share}"] if share else [])]
    )


@lru_cache(maxsize=4096)
def _read(gauge: str) -> _Gauge:
    days, *more = gauge.split(" ")
    share = int(more.pop().removeprefix(_SHARE)) if more and more[-1].startswith(_SHARE) else 0
    scope = more.pop().removeprefix(_SCOPE) if more and more[-1].startswith(_SCOPE) else ""
    period, _, zone = days.partition(_ZONE)
    return _Gauge(period, more[0] if more else None, share, zone, scope)


def zone_key_in(gauge: str) -> str:
    """Return the key of a gauge's time zone; empty for UTC."""
    return _read(gauge).zone


def measure_in(gauge: str) -> str | None:
    """Return the measure of a gauge; None if it holds the four amounts of charges."""
    return _read(gauge).measure


def share_in(gauge: str) -> int:
    """Return the number of a gauge's sub-limit; 0 if the gauge counts all charges."""
    return _read(gauge).share


def scope_in(gauge: str) -> str:
    """Return the scope of a gauge; empty if it counts charges of all tags."""
    return _read(gauge).scope


def holds(gauge: str, share: int, tags: Collection[str]) -> bool:
    """True if a charge with these tags, through a sub-limit (0: none), counts in a gauge."""
    read = _read(gauge)
    return read.share in (0, share) and counts_in(read.scope, tags)


def gauges_in(definition: Mapping[str, Any]) -> list[str]:
    """Return the gauges of all limits and sub-limits in a policy's definition."""
    limits = [*definition["limits"], *(limit for share in definition.get("shares", ()) for limit in share["limits"])]
    return [str(limit.get("gauge", limit["period"])) for limit in limits]


def is_sliding(gauge: str) -> bool:
    """True if a limit of a gauge counts several windows: the open day, and the days before it."""
    return days_in(_read(gauge).period) > 0


def is_lifetime(gauge: str) -> bool:
    """True if a gauge has a single window for all time."""
    return gauge.partition(" ")[0] == LIFETIME


def gauge_of(window: str) -> str:
    """Return the gauge of a window, by the window's name."""
    return window if is_lifetime(window) else window.rpartition(" ")[0]


def order_of(gauge: str) -> tuple[int, str, str, int, str]:
    """Return the sort key of a gauge: plain ones first, and the longest period last, after the lifetime."""
    period, measure, share, zone, scope = _read(gauge)
    place = PERIODS.index(period) if period in PERIODS else len(PERIODS) + days_in(period)
    return share, scope, measure or "", place, zone


def window_start_micros(gauge: str, micros: int) -> int:
    """Return the start of a gauge's window that contains a moment, in microseconds since 1970; 0 for a lifetime.

    Of a sliding gauge, it is the start of the first day that counts at that moment.
    """
    if is_lifetime(gauge):
        return 0
    window = _window_at(gauge, micros)
    if not window.earlier:
        return to_micros(window.starts)
    key = zone_key_in(gauge)
    first = date.fromisoformat(window.earlier[0].rpartition(" ")[2])
    return to_micros(_midnight(zone_of(key) if key else None, first))


def window_at(period: str, moment: datetime) -> Window:
    """Return the window of `period` that contains `moment`. Weeks start on Monday."""
    return _window_at(period, to_micros(moment))


def name_at(gauge: str, micros: int) -> str:
    """Return the name of the gauge's window that contains a moment in microseconds since 1970."""
    return _window_at(gauge, micros).name


def names_on(gauges: Iterable[str], day: int) -> frozenset[str]:
    """Return the names of all windows of some gauges that count on a UTC day, counted from 1970."""
    windows = windows_on(gauges, day)
    return frozenset([window.name for window in windows]).union(*[window.earlier for window in windows])


def counted_until(window: str) -> datetime:
    """Return the moment from which on a sliding limit no longer counts one of its days, by the name of its window."""
    gauge, _, first = window.rpartition(" ")
    read = _read(gauge)
    zone = zone_of(read.zone) if read.zone else None
    return _midnight(zone, date.fromisoformat(first) + timedelta(days=days_in(read.period)))


def windows_on(gauges: Iterable[str], day: int) -> list[Window]:
    """Return the windows of some gauges that overlap a UTC day, counted from 1970."""
    return [window for gauge in gauges for window in _windows_on(gauge, day)]


def earlier_on(gauges: Iterable[str], day: int) -> list[tuple[str, str]]:
    """Return, for each sliding gauge, the first and the last name of the windows before those that overlap a UTC day.

    The names of a gauge's windows are in the order of their days.
    """
    sliding = [windows for gauge in gauges if is_sliding(gauge) and (windows := _windows_on(gauge, day))]
    return [(windows[0].earlier[0], windows[-1].earlier[-1]) for windows in sliding]


def _window_at(gauge: str, micros: int) -> Window:
    windows = _windows_on(gauge, micros // DAY_MICROS)
    if len(windows) == 1:
        return windows[0]
    moment = from_micros(micros)
    return next(window for window in windows if window.ends is None or moment < window.ends)


@lru_cache(maxsize=4096)
def _windows_on(gauge: str, day: int) -> tuple[Window, ...]:
    """Return the windows of a gauge that overlap a UTC day, counted from 1970: one in UTC, up to three in a zone.

    Cached: all charges of a day use the same few windows.
    """
    period, measure, share, key, scope = _read(gauge)
    if period == LIFETIME:
        return (Window(gauge, datetime.min.replace(tzinfo=UTC), None, measure, share, scope=scope),)
    zone = zone_of(key) if key else None
    until = (day + 1) * DAY_MICROS
    begins = (_EPOCH + timedelta(days=day)).date() if zone is None else zone.day_of(day * DAY_MICROS)
    windows: list[Window] = []
    covered = day * DAY_MICROS
    while covered < until:
        first, begins = _span(period, begins)
        starts, ends = _midnight(zone, first), _midnight(zone, begins)
        if starts < ends:  # a zone may skip a day as a whole
            before = [first - timedelta(days=back) for back in range(days_in(period) - 1, 0, -1)]
            earlier = tuple([f"{gauge} {each}" for each in before])
            resets_at = None if earlier else ends
            windows.append(Window(f"{gauge} {first}", starts, ends, measure, share, earlier, resets_at, scope))
            covered = to_micros(ends)
    return tuple(windows)


def _span(period: str, day: date) -> tuple[date, date]:
    """Return the first day of the period that contains a day, and the first day of the next period."""
    if period == "day" or days_in(period):
        return day, day + timedelta(days=1)
    if period == "week":
        monday = day - timedelta(days=day.weekday())
        return monday, monday + timedelta(days=7)
    first = day.replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1)


def _midnight(zone: Zone | None, day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if zone is None else from_micros(zone.starts(day))


def _starts_on(gauges: Iterable[str], day: int) -> list[int]:
    """Return the moments within a UTC day at which a window of a gauge begins, in order, without the day's start."""
    windows = [window for gauge in gauges if zone_key_in(gauge) for window in _windows_on(gauge, day)]
    starts = {to_micros(window.starts) for window in windows}
    return sorted(start for start in starts if start > day * DAY_MICROS)


def span_at(gauges: Iterable[str], micros: int) -> tuple[int, int]:
    """Return the part of a moment's UTC day in which the same windows are open: its start, and its end (exclusive)."""
    day = micros // DAY_MICROS
    ends = [day * DAY_MICROS, *_starts_on(gauges, day), (day + 1) * DAY_MICROS]
    place = bisect_right(ends, micros)
    return ends[place - 1], ends[place]


class ByWindows(Generic[T]):
    """A function of a moment whose value changes only where a window of some gauges begins; each value is kept."""

    def __init__(self, gauges: Iterable[str], make: Callable[[int], T]) -> None:
        self._gauges = [*gauges]
        self._make = make
        self._days: dict[int, tuple[list[int], list[T]]] = {}

    def __call__(self, micros: int) -> T:
        day = micros // DAY_MICROS
        found = self._days.get(day)
        if found is None:
            starts = _starts_on(self._gauges, day)
            found = self._days[day] = starts, [self._make(at) for at in (day * DAY_MICROS, *starts)]
        starts, values = found
        return values[bisect_right(starts, micros)] if starts else values[0]


class Moment:
    """One reading of the clock, shared by everything in one transaction."""

    __slots__ = ("_at", "day", "micros")

    def __init__(self, at: datetime | None, micros: int | None = None) -> None:
        self._at = at
        self.micros = to_micros(at or _EPOCH) if micros is None else micros
        self.day = self.micros // DAY_MICROS
        """The UTC day of the moment, counted from 1970."""

    @property
    def at(self) -> datetime:
        """The moment as a datetime, which few need."""
        return from_micros(self.micros) if self._at is None else self._at

    def window(self, gauge: str) -> Window:
        """Return the window of a gauge that contains this moment."""
        return _window_at(gauge, self.micros)


def to_micros(moment: datetime) -> int:
    """Return a moment as whole microseconds since 1970, the ledger's unit of time."""
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    """Return the moment of a number of microseconds since 1970; the inverse of `to_micros`."""
    return _EPOCH + timedelta(microseconds=micros)


def utc_text(moment: datetime) -> str:
    """Return an aware moment in UTC as ISO 8601 text that ends with `Z`."""
    return moment.isoformat().replace("+00:00", "Z")


def micros_text(micros: int) -> str:
    """Return a number of microseconds since 1970 as `utc_text` of its moment."""
    return utc_text(from_micros(micros))


# -- the clock --------------------------------------------------------------------------------------------


Read = Callable[[], datetime | float]

# A clock at most this far behind the newest entry counts as equal to it. Further behind, it is not trusted.
TOLERANCE_MICROS = 5_000_000

BOUND_SECONDS = 3600.0
"""The largest drift of the default clock from the monotonic clock, in seconds."""

# Windows and reservations end later than they begin, so the calendar's last years are excluded.
_EARLIEST, _LATEST = 0, to_micros(datetime(9998, 1, 1, tzinfo=UTC))
_EXPECTED = "a function that returns a datetime with a time zone, or seconds since 1970, before the year 9998"

# A clock that never jumps. If the system has one, a clock that also keeps running while the machine sleeps.
_STEADY: int | None = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))


def steady() -> float:
    """Return the seconds of a monotonic clock."""
    return time.monotonic() if _STEADY is None else time.clock_gettime(_STEADY)


def check_bound(bound: float) -> None:
    """Raise `InvalidParameter` unless `bound` is a positive number of seconds, or infinity."""
    if isinstance(bound, bool) or not isinstance(bound, int | float) or not bound > 0:
        raise InvalidParameter("clock_bound", "a number of seconds > 0, or infinity", shown(bound))


class Clock:
    """Reads the time for one ledger; `read` returns an aware datetime, or seconds since 1970.

    The default clock, time.time, is compared with a monotonic clock. It is refused once the difference between the
    two has changed by more than `bound` seconds since this object was made. An idle ledger causes no jump, because
    both clocks keep running. Any other clock may move forward freely.

    The user of a `sandbox` sets its clock. If that clock is set to a time before the newest entry, even reads refuse
    it: they would show another time than the one meant.
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
        """The ledger's name in messages."""
        return self._ledger

    def moment(self, newest: int | None) -> Moment:
        """Return the time for a charge, never before the time of the newest entry.

        Raises `ClockError` if the clock is far behind the newest entry or has run away. Raises `InvalidParameter` if
        `read` returns no valid time.
        """
        if self._apart is not None:  # the default clock, and nearly all of its readings
            now = self._read()
            if type(now) is float and abs(now - steady() - self._apart) <= self._bound:
                micros = round(now * 1e6)
                if _EARLIEST <= micros < _LATEST and (newest is None or micros >= newest):
                    return Moment(None, micros)
        moment = self._now()
        if newest is None or moment.micros >= newest:
            return moment
        if newest - moment.micros > TOLERANCE_MICROS:
            raise self._behind(moment, from_micros(newest))
        return Moment(from_micros(newest))

    def _behind(self, moment: Moment, newest: datetime) -> ClockError:
        why = f"the clock shows {moment.at}, more than 5 s before the newest entry of {newest}. Nothing was charged."
        if self._sandbox:
            hint = "A sandbox continues from its newest entry."
            return ClockError(self._ledger, why, newest=newest, hint=hint)
        hint = "If the clock is correct now, repair the time of the ledger."
        return ClockError(self._ledger, why, repairable=True, newest=newest, hint=hint)

    def moment_to_read(self, newest: int | None) -> Moment:
        """Return the current time, or the time of the newest entry if the clock is not plausible.

        Raises `ClockError` if the clock of a sandbox was set to a time before the newest entry.
        """
        is_set = self._sandbox and self._read is not time.time
        return self.moment(newest) if is_set else self.maintenance_time(newest)

    def maintenance_time(self, newest: int | None) -> Moment:
        """Return the timestamp for operations that must not fail on a bad clock: erase, copy, checkpoint."""
        try:
            return self.moment(newest)
        except (ClockError, InvalidParameter):
            return Moment(from_micros(newest or 0))

    def moment_to_repair(self, newest: int | None) -> Moment | None:
        """Return the time of a clock repair: now, if the clock is too far behind the newest entry; otherwise None.

        Raises `ClockError` if the clock has run away, `InvalidParameter` if `read` returns no valid time.
        """
        moment = self._now()
        behind = newest is not None and newest - moment.micros > TOLERANCE_MICROS
        return moment if behind else None

    def _now(self) -> Moment:
        """Return the clock's reading if it is a valid time and has not run away."""
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
                f"the clock shows {moment.at}, more than {self._bound:g} s {where} the time that has passed since this"
                " process opened the ledger. Nothing was charged.",
                hint="If the clock is correct now, open the ledger again.",
            )


def _moment_of(said: Any) -> Moment | None:
    """Return the moment of a clock's reading; None if it is not a time or is out of range."""
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
