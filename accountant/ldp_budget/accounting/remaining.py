"""What was left of a user's limits from the first charge until now, worked out again from the journal."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ..guarantees.amounts import ZERO, Costs
from ..ledger.entries import CHARGES
from ..ledger.replay import Replay, promises
from ..ledger.windows import Moment, from_micros, is_lifetime, to_micros
from .limits import Limit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..ledger import Reading


class Left(NamedTuple):
    """What was left of a limit from a moment on: after a charge or a void, or where it `refilled`.

    In the ledger's whole units, see `LimitState`.
    """

    at: datetime
    spent_units: Costs
    remaining_units: Costs
    refilled: bool = False


class Remaining(NamedTuple):
    """A limit, and what was left of it, oldest first; the last one holds until `until`.

    A limit that was set later than the first charge is told from the start of the first window it was filled for.
    """

    limit: Limit
    course: tuple[Left, ...]
    until: datetime

    def __repr__(self) -> str:
        last = "; ".join(f"{name} = {left}" for name, left in self.to_json()["course"][-1]["remaining"].items())
        steps = f"{len(self.course)} steps until {self.until.isoformat()}"
        return f"<Remaining {self.limit.label} ({self.limit.rule}): {steps}, {last} left>"

    def to_json(self) -> dict[str, Any]:
        """The amounts as numbers, as in a balance.

        Raises:
            Nothing.
        """
        limit = self.limit
        return {
            "period": limit.label,
            "rule": limit.rule,
            "capacity": limit.amounts(limit.capacity),
            "course": [
                {
                    "at": left.at.isoformat().replace("+00:00", "Z"),
                    "remaining": limit.amounts(left.remaining_units),
                    "refilled": left.refilled,
                }
                for left in self.course
            ],
            "until": self.until.isoformat().replace("+00:00", "Z"),
        }


def remaining_of(reading: Reading, limits: Sequence[Limit], account: int | None) -> tuple[Remaining, ...]:
    """What was left of each of some limits as they are now; full throughout where there is no account."""
    now = reading.moment.micros
    charged = [] if account is None else list(_charged(reading, account))
    since = reading.periods()
    replay = Replay(since, promises(reading), reading.repairs())
    gauges = dict.fromkeys(limit.gauge for limit in limits)
    courses = {gauge: _Course(gauge, since[gauge], charged[0][0] if charged else now) for gauge in gauges}
    for at, entry, label in charged:
        replay.add(entry, label)
        for course in courses.values():
            course.go_on(replay, at)
    for course in courses.values():
        course.end(now)
    until = from_micros(max([now, *(at for at, _, _ in charged)]))
    return tuple(Remaining(limit, tuple(_left(limit, courses[limit.gauge])), until) for limit in limits)


def _charged(reading: Reading, account: int) -> Iterator[tuple[int, Any, bytes | None]]:
    """The entries that charge or give back, with their labels, and when that was.

    What a clock that was ahead dated later than its repair was before that.
    """
    repairs = reading.repairs()
    for entry, label in reading.history(account):
        if entry.kind in CHARGES:
            yield min([entry.at, *(repair.at for repair in repairs if repair.entry > entry.number)]), entry, label


class _Course:
    """The sums in the windows of one gauge, one after the other."""

    def __init__(self, gauge: str, since: int, first: int) -> None:
        self.gauge = gauge
        self._since = since
        start = first if is_lifetime(gauge) else max(first, since)
        self._window = Moment(from_micros(start)).window(gauge)
        self.sums: list[tuple[datetime, Costs, bool]] = [(from_micros(start), ZERO, False)]

    def go_on(self, replay: Replay, at: int) -> None:
        """Take down what is spent in the window of a moment, after an entry."""
        if at < self._since:
            return
        self._refill(at)
        spent = replay.spent_in(self._window.code)
        if spent != self.sums[-1][1]:
            self.sums.append((from_micros(at), spent, False))

    def end(self, now: int) -> None:
        """Nothing more is charged."""
        self._refill(now)

    def _refill(self, at: int) -> None:
        """Go to the window of a moment. Where something was spent in the one before, its end made the limit full."""
        ends = self._window.ends
        if ends is None or at < to_micros(ends):
            return
        if self.sums[-1][1] != ZERO:
            self.sums.append((ends, ZERO, True))
        self._window = Moment(from_micros(at)).window(self.gauge)


def _left(limit: Limit, course: _Course) -> Iterator[Left]:
    sums: Sequence[tuple[datetime, Costs, bool]] = course.sums
    return (Left(at, spent, limit.remaining(spent), refilled) for at, spent, refilled in sums)
