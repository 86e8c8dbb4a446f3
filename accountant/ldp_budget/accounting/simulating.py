"""When will each limit of a policy bind? A series of equal reports, held against it by the decisions of a spend.

What is decided is decided by `decision`, as in a ledger, on an account that is kept here: sums of a window begin anew
where the calendar begins a new one. So what this says is what a ledger will do, and nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

from .._checks import shown
from ..errors import InvalidParameter, NotSupported
from ..guarantees import Memoised
from ..guarantees.amounts import ZERO, float_up
from ..ledger.keys import Key, new_key
from ..ledger.reading import Account
from ..ledger.windows import LIFETIME, PERIODS, Moment
from .decision import decide
from .receipts import PLAN
from .request import Request
from .terms import Terms

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from ..authoring.base import Mechanism
    from ..guarantees.amounts import Costs
    from ..ledger.windows import Window
    from .decision import Decision
    from .limits import Limit
    from .policies import Policy

YEARS = 100
"""How far a series is followed: what binds no one within a lifetime binds never."""
EVERY = PERIODS[1:]
"""How often the reports of a series may be asked."""
_BEGIN, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Binding:
    """When a limit of a policy, or its plan, refuses a report of the series for the first time.

    `at` is the moment and `report` the number of the report, counted from 1 over all that were asked, and the first
    of those that were asked together; both are None where it never does, and `never` says until when or why.
    `charged`: how many reports had been charged by then.
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
        """A row of what `policy simulate --json` prints."""
        return {
            "period": self.period,
            "rule": self.rule,
            "epsilon": float_up(self.epsilon),
            "delta": float_up(self.delta),
            "binds_at": None if self.at is None else self.at.isoformat().replace("+00:00", "Z"),
            "report": self.report,
            "charged": self.charged,
            "never": self.never,
        }


def simulate(
    policy: Policy, mechanism: Mechanism, *, every: str, start: datetime, reports: int = 1
) -> tuple[Binding, ...]:
    """When each limit of `policy` binds first for somebody who is asked `reports` reports `every` day, week or month.

    It begins at `start`, with nothing charged before, and goes on, whatever is refused, for 100 years or until
    nothing can be charged any more. Every month is the same day of the month, or its last one. Reports of a mechanism
    that memoises repeat one value, and go along its curve. The plan, if there is one, comes last. Raises
    `InvalidParameter`, and `NotSupported` where the policy admits no such report whatever it costs.
    """
    check_series(every, start)
    memoised = isinstance(mechanism.guarantee, Memoised)
    label = "the value" if memoised else None
    request = Request(Key(new_key()), "somebody", mechanism, reports=reports, policy=policy.name, label=label)
    terms = Terms.of(policy, request.charge, labelled=memoised)
    if terms.why:
        raise NotSupported(terms.why)
    return _Series(terms, request).play(moments(start.astimezone(UTC), every))


def check_series(every: str, start: datetime | None) -> None:
    """Raise `InvalidParameter` unless a series may be asked so, beginning now if no start is given."""
    if not isinstance(every, str) or every not in EVERY:
        found = every if isinstance(every, str) else shown(every)
        raise InvalidParameter("every", f"one of {', '.join(EVERY)}", found)
    if start is None:
        return
    if not isinstance(start, datetime) or start.utcoffset() is None or not _BEGIN <= start < _END:
        raise InvalidParameter("start", "an aware datetime from 1970 to 9997", shown(start))


def moments(start: datetime, every: str) -> Iterator[datetime]:
    """The moments of a series, from `start` on, for 100 years."""
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
    """So many months later: the same day of the month, or its last one."""
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    first = start.replace(year=year, month=month + 1, day=1)
    last = ((first + timedelta(days=31)).replace(day=1) - timedelta(days=1)).day
    return first.replace(day=min(start.day, last))


class _Series:
    """One request, asked again and again of an account that nobody else charges."""

    def __init__(self, terms: Terms, request: Request) -> None:
        self._terms = terms
        self._policy = policy = terms.policy
        self._request = request
        self._gauges = tuple(dict.fromkeys((LIFETIME, *policy.gauges)))
        self._windows: dict[str, Window] = {}
        self._account = Account(None, {}, reported={})
        self._asked = self._charged = 0
        # Of each limit, and None of the plan, when it refused first.
        self._found: dict[Limit | None, Binding] = {}

    def play(self, moments: Iterator[datetime]) -> tuple[Binding, ...]:
        """Ask at each moment, until nothing can be charged any more or every limit has refused."""
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
        """Decide at a moment, and charge if it fits."""
        now = Moment(moment)
        windows = {gauge: now.window(gauge) for gauge in self._gauges}
        new = [gauge for gauge in self._gauges if self._windows.get(gauge) != windows[gauge]]
        self._windows = windows
        if new:
            self._begin(new)
        decision = decide(self._account, self._request, self._terms, windows)
        if decision.fits:
            self._account = decision.after
            self._charged += self._request.reports
        self._asked += self._request.reports
        return decision

    def _begin(self, gauges: list[str]) -> None:
        """Begin new windows, in which nothing was charged yet."""
        spent: dict[str, Costs] = {**self._account.spent, **dict.fromkeys(gauges, ZERO)}
        reported = {**self._account.reported, **dict.fromkeys(gauges, 0)} if self._request.label else {}
        self._account = self._account._replace(spent=spent, reported=reported)

    def _note(self, decision: Decision, moment: datetime) -> None:
        refusing: list[Limit | None] = [*decision.exceeded, *([None] if PLAN in decision.binding else [])]
        for each in refusing:
            if each not in self._found:
                first = self._asked - self._request.reports + 1
                self._found[each] = self._binding(each, at=moment, report=first)

    def _end(self, decision: Decision, moment: datetime) -> str:
        """Why nothing can be charged from now on; empty if something can."""
        if decision.fits:
            return ""
        for limit in decision.exceeded:
            if limit.period == LIFETIME:
                return f"as the {LIFETIME} limit ({limit.rule}) ends it on {moment.date()}"
        if PLAN in decision.binding:
            return f"as the plan is used up on {moment.date()}"
        if not self._charged:  # every window was new, and none will ever hold less
            (limit, *_), asked = decision.exceeded, self._request.reports
            return f"as the {limit.period} limit ({limit.rule}) refuses {asked} at a time from the first on"
        return ""

    def _all(self) -> list[Limit | None]:
        """The limits, and None for the plan if there is one."""
        return [*self._policy.limits, *([] if self._policy.plan is None else [None])]

    def _binding(self, limit: Limit | None, **found: Any) -> Binding:
        if limit is not None:
            terms = limit.period, limit.rule, limit.epsilon, limit.delta
        else:
            assert self._policy.plan is not None
            terms = PLAN, "exact", *self._policy.plan.price
        return Binding(*terms, charged=self._charged, **found)
