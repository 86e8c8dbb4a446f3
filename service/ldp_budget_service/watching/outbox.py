"""Alerts as they stand in the ledger's records: raised, tried, sent or given up, whichever instance does it.

Whoever raises an alert or tries to send it says so first, by a record that is added only if nobody else has added one
meanwhile. So of any number of instances one raises and one sends, and a queue is there after a restart. An instance
that is ended between a try and the record that it was sent leaves an alert that is tried again: a receiver may get it
twice, with the same id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ldp_budget.accounting.access.following import Following
from ldp_budget.accounting.record_kinds import ALERT, ALERT_GIVEN_UP, ALERT_SENT, ALERT_TRIED

from .recording import append

if TYPE_CHECKING:
    from ldp_budget import Accountant
    from ldp_budget.accounting.records import Record

    from .alerts import Alert

BACKOFF = (30.0, 120.0, 600.0, 3600.0, 10_800.0, 21_600.0, 43_200.0)
"""Seconds after each try before the next; each is longer than a try may take."""
MOST_WAITING = 100
"""How many alerts wait at most; of more the oldest are given up."""
MOST_TOLD = 100
"""How many of the newest alerts are remembered, beside those that wait."""


@dataclass(frozen=True)
class Raised:
    """An alert by the number of its record, and what has become of it."""

    number: int
    name: str
    type: str
    data: Mapping[str, Any]
    at: datetime
    by: str | None
    tries: int = 0
    tried: datetime | None = None
    sent: datetime | None = None
    given_up: str | None = None

    @property
    def waits(self) -> bool:
        """Whether it is still to be sent."""
        return self.sent is None and self.given_up is None

    def due(self, backoff: tuple[float, ...]) -> datetime:
        """When to try next."""
        if self.tried is None:
            return self.at
        return self.tried + timedelta(seconds=backoff[min(self.tries, len(backoff)) - 1])

    def message(self) -> dict[str, Any]:
        """What a receiver gets, the same at every try."""
        return {"type": self.type, "timestamp": _iso(self.at), "data": dict(self.data)}

    def to_json(self) -> dict[str, Any]:
        """A JSON object of everything."""
        state = "sent" if self.sent else "given up" if self.given_up else "waiting"
        return {
            "number": self.number,
            "type": self.type,
            "raised": _iso(self.at),
            "by": self.by,
            "data": dict(self.data),
            "state": state,
            "tries": self.tries,
            "tried": None if self.tried is None else _iso(self.tried),
            "sent": None if self.sent is None else _iso(self.sent),
            "why": self.given_up,
        }


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


@dataclass(frozen=True)
class _State:
    alerts: Mapping[int, Raised] = field(default_factory=dict)
    # Only ever added to: whoever still reads an older state sees at most that something was raised since.
    names: set[str] = field(default_factory=set)


def _follow(state: _State, record: Record) -> _State:
    if record.fault is not None:
        return state
    if record.kind == ALERT:
        raised = Raised(record.number, record.name, record.body["type"], record.body["data"], record.at, record.by)
        state.names.add(record.name)
        return replace(state, alerts=_kept({**state.alerts, raised.number: raised}))
    if record.kind not in (ALERT_TRIED, ALERT_SENT, ALERT_GIVEN_UP):
        return state
    found = state.alerts.get(record.body["alert"])
    if found is None:
        return state
    if record.kind == ALERT_TRIED:
        found = replace(found, tries=record.body["try"], tried=record.at)
    elif record.kind == ALERT_SENT:
        found = replace(found, sent=record.at)
    else:
        found = replace(found, given_up=record.body["why"])
    return replace(state, alerts={**state.alerts, found.number: found})


def _kept(alerts: dict[int, Raised]) -> dict[int, Raised]:
    """Those that wait, and the newest of the others."""
    ended = [number for number, each in alerts.items() if not each.waits]
    for number in ended[: max(0, len(ended) - MOST_TOLD)]:
        del alerts[number]
    return alerts


class _Done(Exception):  # noqa: N818
    """Somebody has done it already, or it need not be done."""


class Outbox:
    """The alerts of a ledger."""

    def __init__(self, accountant: Accountant, backoff: tuple[float, ...] = BACKOFF) -> None:
        self._accountant, self._backoff = accountant, backoff
        self._following = Following(accountant, _State(), _follow)

    def newest(self) -> list[Raised]:
        """The alerts that are remembered, newest first."""
        return sorted(self._following.known().alerts.values(), key=lambda each: -each.number)

    def raise_once(self, alert: Alert, accountant: Accountant | None = None) -> Raised | None:
        """Put an alert in the queue, by whoever acts through an accountant; None if that was done before."""
        if alert.name in self._following.known().names:
            return None
        self._make_room()

        def decide(state: _State) -> tuple[str, str, dict[str, Any]]:
            if alert.name in state.names:
                raise _Done
            return ALERT, alert.name, {"type": alert.type, "data": dict(alert.data)}

        try:
            record = append(self._following, accountant or self._accountant, decide)
        except _Done:
            return None
        return self._following.now()[0].alerts[record.number]

    def _make_room(self) -> None:
        waiting = self.waiting()
        for each in waiting[: max(0, len(waiting) - MOST_WAITING + 1)]:
            self.give_up(each, "too many alerts were waiting")

    def waiting(self) -> list[Raised]:
        """Those that are still to be sent, oldest first."""
        alerts = self._following.now()[0].alerts.values()
        return sorted((each for each in alerts if each.waits), key=lambda each: each.number)

    def next_due(self) -> datetime | None:
        """When something is to be tried next; None if nothing is."""
        return min((each.due(self._backoff) for each in self.waiting()), default=None)

    def take(self, raised: Raised, now: datetime) -> Raised | None:
        """Say that a try is made now, and return the alert with it; None where somebody else has made it."""

        def decide(state: _State) -> tuple[str, str, dict[str, Any]]:
            found = state.alerts.get(raised.number)
            if found is None or not found.waits or found.due(self._backoff) > now:
                raise _Done
            return ALERT_TRIED, found.name, {"alert": found.number, "try": found.tries + 1}

        try:
            append(self._following, self._accountant, decide)
        except _Done:
            return None
        return self._following.now()[0].alerts[raised.number]

    def was_sent(self, raised: Raised) -> None:
        """Say that a receiver has taken it."""
        self._end(raised, ALERT_SENT, {"alert": raised.number, "try": raised.tries})

    def give_up(self, raised: Raised, why: str) -> None:
        """Say that it is tried no more."""
        self._end(raised, ALERT_GIVEN_UP, {"alert": raised.number, "why": why})

    def is_last_try(self, raised: Raised) -> bool:
        """Whether there is none after this."""
        return raised.tries > len(self._backoff)

    def _end(self, raised: Raised, kind: str, body: dict[str, Any]) -> None:
        def decide(state: _State) -> tuple[str, str, dict[str, Any]]:
            found = state.alerts.get(raised.number)
            if found is None or not found.waits:
                raise _Done
            return kind, raised.name, body

        try:
            append(self._following, self._accountant, decide)
        except _Done:
            return
