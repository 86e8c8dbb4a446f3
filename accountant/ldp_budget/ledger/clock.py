"""The clock of a ledger: it never runs behind the newest entry, and within a process it never runs away.

What a clock says is believed only as far as it can be checked. Whatever charges refuses a clock that cannot be
believed; whatever reads or erases goes by the newest entry then, and so works whatever the clock says.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from .._checks import shown
from ..errors import ClockError, InvalidParameter
from .windows import Moment, from_micros, to_micros

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
        return self.moment(newest) if is_set else self.moment_to_keep_house(newest)

    def moment_to_keep_house(self, newest: int | None) -> Moment:
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
