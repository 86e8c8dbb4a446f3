"""Budget projections: the remaining budget over time from the journal, and a simulation of future reports.

The first part recomputes from the journal how much of each limit was left, from the user's first charge until now.

The second part simulates a series of equal reports and finds when each limit of a policy first refuses one. It
decides with `admission`, as a ledger does, on an account in memory. The sums of a window restart at the start of the
next calendar window. So the result is what a ledger would decide, and nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from .._validation import shown
from ..errors import InvalidParameter, NotSupported
from ..guarantees import Memoised
from ..guarantees.fixed_point import ZERO, Costs, float_up
from ..ledger.calendar import LIFETIME, PERIODS, Moment, from_micros, is_lifetime, to_micros, utc_text
from ..ledger.keyed_hashing import Key, new_key
from ..ledger.models import CHARGES
from ..ledger.snapshot import Account, Replay, promises
from .admission import ApplicablePolicy, decide
from .charge_request import ChargeRequest, RequestTemplate
from .limits import Limit
from .receipts import PLAN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from decimal import Decimal

    from ..guarantees.fixed_point import Costs
    from ..ledger import Reading
    from ..ledger.calendar import Window
    from ..sdk.mechanism import Mechanism
    from .admission import Decision
    from .limits import Limit
    from .policies import Policy


# -- remaining budget over time ----------------------------------------------------------------------------------


class BudgetPoint(NamedTuple):
    """The remaining budget of a limit from a moment on: after a charge or a void, or after the limit was `refilled`.

    In the ledger's integer units, see `LimitState`.
    """

    at: datetime
    spent_units: Costs
    remaining_units: Costs
    refilled: bool = False


class Remaining(NamedTuple):
    """A limit and its remaining budget, oldest point first; the last point holds until `until`.

    For a limit that was set after the first charge, the series begins with the first window that was backfilled.
    """

    limit: Limit
    course: tuple[BudgetPoint, ...]
    until: datetime

    def __repr__(self) -> str:
        last = "; ".join(f"{name} = {left}" for name, left in self.to_json()["course"][-1]["remaining"].items())
        steps = f"{len(self.course)} steps until {self.until.isoformat()}"
        return f"<Remaining {self.limit.label} ({self.limit.rule}): {steps}, {last} left>"

    def to_json(self) -> dict[str, Any]:
        """A JSON object with the amounts as numbers, as in a balance."""
        limit = self.limit
        return {
            "period": limit.label,
            "rule": limit.rule,
            "capacity": limit.amounts(limit.capacity),
            "course": [
                {
                    "at": utc_text(left.at),
                    "remaining": limit.amounts(left.remaining_units),
                    "refilled": left.refilled,
                }
                for left in self.course
            ],
            "until": utc_text(self.until),
        }


def remaining_of(reading: Reading, limits: Sequence[Limit], account: int | None) -> tuple[Remaining, ...]:
    """Return the remaining budget of each limit, as the limits are now; full throughout without an account."""
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
        course.end(replay, now)
    until = from_micros(max([now, *(at for at, _, _ in charged)]))
    return tuple(Remaining(limit, tuple(_left(limit, courses[limit.gauge])), until) for limit in limits)


def _charged(reading: Reading, account: int) -> Iterator[tuple[int, Any, bytes | None]]:
    """Yield the entries that charge or reverse a charge, each with its time and its label.

    An entry that a wrong clock dated after the clock's repair gets the time of that repair.
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
        """Record the sum in the window of a moment, after an entry."""
        if at < self._since:
            return
        self._refill(replay, at)
        spent = replay.total(self._window)
        if spent != self.sums[-1][1]:
            self.sums.append((from_micros(at), spent, False))

    def end(self, replay: Replay, now: int) -> None:
        """End the series: nothing more is charged."""
        self._refill(replay, now)

    def _refill(self, replay: Replay, at: int) -> None:
        """Move to the window of a moment. If the window before had charges, its end refilled the limit.

        A sliding limit gets back what was charged on the day that no longer counts, day by day.
        """
        ends = self._window.ends
        while self._window.earlier and ends is not None and at >= to_micros(ends) and self.sums[-1][1] != ZERO:
            self._window = Moment(ends).window(self.gauge)
            spent = replay.total(self._window)
            if spent != self.sums[-1][1]:
                self.sums.append((ends, spent, True))
            ends = self._window.ends
        if ends is None or at < to_micros(ends):
            return
        if self.sums[-1][1] != ZERO:
            self.sums.append((ends, ZERO, True))
        self._window = Moment(from_micros(at)).window(self.gauge)


def _left(limit: Limit, course: _Course) -> Iterator[BudgetPoint]:
    sums: Sequence[tuple[datetime, Costs, bool]] = course.sums
    return (BudgetPoint(at, spent, limit.remaining(spent), refilled) for at, spent, refilled in sums)


# -- simulation of future reports --------------------------------------------------------------------------------

YEARS = 100
"""The length of a simulated series: a limit that does not bind within a lifetime never binds."""
EVERY = PERIODS[1:]
"""The permitted intervals between the reports of a series."""
_BEGIN, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Binding:
    """The first time at which a limit of a policy, or its plan, refuses a report of the series.

    `at` is the time, and `report` is the number of the report. Reports are counted from 1 over all that were
    requested; of reports that were requested together, `report` is the first. Both are None if no report is refused,
    and `never` says until when or why. `charged` is the number of reports that had been charged by then.
    """

    period: str
    rule: str
    epsilon: Decimal
    delta: Decimal
    at: datetime | None = None
    report: int | None = None
    charged: int = 0
    never: str | None = None

    def to_json(self) -> dict[str, Any]:
        """A row of the output of `policy simulate --json`."""
        return {
            "period": self.period,
            "rule": self.rule,
            "epsilon": float_up(self.epsilon),
            "delta": float_up(self.delta),
            "binds_at": None if self.at is None else utc_text(self.at),
            "report": self.report,
            "charged": self.charged,
            "never": self.never,
        }


def simulate(
    policy: Policy, mechanism: Mechanism, *, every: str, start: datetime, reports: int = 1
) -> tuple[Binding, ...]:
    """Predict when each limit of `policy` first refuses a user with `reports` reports `every` day, week or month.

    The series begins at `start`, without earlier charges. It continues after refusals, for 100 years or until nothing
    more can be charged. Monthly reports come on the same day of the month, or on its last day. Reports of a memoizing
    mechanism repeat one value and follow its cost curve. The plan, if there is one, comes last. Raises
    `InvalidParameter`. Raises `NotSupported` if the policy never admits such a report, at any budget.
    """
    check_series(every, start)
    memoised = isinstance(mechanism.guarantee, Memoised)
    label = "the value" if memoised else None
    template = RequestTemplate(mechanism, policy=policy.name, reports=reports, label=label)
    request = ChargeRequest(template, Key(new_key()), "a user")
    terms = ApplicablePolicy.of(policy, request.charge)
    if terms.why:
        raise NotSupported(terms.why)
    return _Series(terms, request).play(moments(start.astimezone(UTC), every))


def check_series(every: str, start: datetime | None) -> None:
    """Raise `InvalidParameter` for an invalid interval or start of a series; None starts it now."""
    if not isinstance(every, str) or every not in EVERY:
        raise InvalidParameter("every", f"one of {', '.join(EVERY)}", shown(every))
    if start is None:
        return
    if not isinstance(start, datetime) or start.utcoffset() is None or not _BEGIN <= start < _END:
        raise InvalidParameter("start", "a datetime with a time zone, from 1970 to 9997", shown(start))


def moments(start: datetime, every: str) -> Iterator[datetime]:
    """Yield the times of a series, from `start` on, for 100 years."""
    end = _END if start.year + YEARS >= _END.year else _in_months(start, 12 * YEARS)
    for number in count():
        moment = (
            _in_months(start, number)
            if every == "month"
            else start + timedelta(days=number * (7 if every == "week" else 1))
        )
        if moment >= end:
            return
        yield moment


def _in_months(start: datetime, months: int) -> datetime:
    """Return the time so many months later: the same day of the month, or its last day."""
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    first = start.replace(year=year, month=month + 1, day=1)
    last = ((first + timedelta(days=31)).replace(day=1) - timedelta(days=1)).day
    return first.replace(day=min(start.day, last))


class _Series:
    """One request, repeated on an account that has no other charges."""

    def __init__(self, terms: ApplicablePolicy, request: ChargeRequest) -> None:
        self._terms = terms
        self._policy = policy = terms.policy
        self._request = request
        self._gauges = tuple(dict.fromkeys((LIFETIME, *policy.gauges)))
        self._windows: dict[str, Window] = {}
        self._account = Account(None, {}, reported={})
        self._asked = self._charged = 0
        # The first refusal of each limit; the plan has the key None.
        self._found: dict[Limit | None, Binding] = {}

    def play(self, moments: Iterator[datetime]) -> tuple[Binding, ...]:
        """Request a charge at each moment, until nothing more can be charged or every limit has refused."""
        ends = ""
        for moment in moments:
            decision = self._ask(moment)
            self._note(decision, moment)
            ends = self._end(decision, moment)
            if ends or len(self._found) == len(self._all()):
                break
        never = ends or f"within {YEARS} years"
        return tuple([self._found.get(each) or self._binding(each, never=never) for each in self._all()])

    def _ask(self, moment: datetime) -> Decision:
        """Decide at a moment, and charge if the request fits."""
        now = Moment(moment)
        windows = {gauge: now.window(gauge) for gauge in self._gauges}
        new = [gauge for gauge in self._gauges if self._windows.get(gauge) != windows[gauge]]
        for gauge in new:
            before = self._windows.get(gauge)
            if before is not None and windows[gauge].earlier:
                self._account.same_day[before.name] = self._account.spent[gauge]
        self._windows = windows
        if new:
            self._begin(new)
        decision = decide(self._account, self._request, self._terms, windows)
        if decision.fits:
            decision.charge()
            self._charged += self._request.reports
        self._asked += self._request.reports
        return decision

    def _begin(self, gauges: list[str]) -> None:
        """Start new windows without charges."""
        self._account.spent.update(dict.fromkeys(gauges, ZERO))
        self._account.reported.update((gauge, {}) for gauge in gauges)

    def _note(self, decision: Decision, moment: datetime) -> None:
        refusing: list[Limit | None] = [*decision.exceeded, *([None] if PLAN in decision.binding else [])]
        for each in refusing:
            if each not in self._found:
                first = self._asked - self._request.reports + 1
                self._found[each] = self._binding(each, at=moment, report=first)

    def _end(self, decision: Decision, moment: datetime) -> str:
        """Explain why nothing can be charged from now on; empty if something can."""
        if decision.fits:
            return ""
        for limit in decision.exceeded:
            if limit.period == LIFETIME:
                return f"as the {limit.label} limit ({limit.rule}) ends it on {moment.date()}"
        if PLAN in decision.binding:
            return f"as the plan is used up on {moment.date()}"
        if not self._charged:  # every window was empty, so no later one has more room
            (limit, *_), asked = decision.exceeded, self._request.reports
            return f"as the {limit.label} limit ({limit.rule}) refuses {asked} at a time from the first on"
        return ""

    def _all(self) -> list[Limit | None]:
        """Return the limits, and None for the plan if there is one."""
        return [*self._policy.limits, *([] if self._policy.plan is None else [None])]

    def _binding(self, limit: Limit | None, **found: Any) -> Binding:
        if limit is not None:
            terms = limit.label, limit.rule, limit.epsilon, limit.delta
        else:
            assert self._policy.plan is not None
            terms = PLAN, "exact", *self._policy.plan.price
        return Binding(*terms, charged=self._charged, **found)
