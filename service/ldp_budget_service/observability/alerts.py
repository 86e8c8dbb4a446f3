"""What is worth an alert: limits that many users have nearly or wholly used, many refusals, a ledger that fails.

Each is raised once for its threshold and window; what it is called says both. No alert names a user.

Adding a record that follows from what is known, as the holder of a key.

Verifications of the ledger as they stand in its records: when everything was worked out again, and held.

Alerts as they stand in the ledger's records: raised, tried, sent or given up, whichever instance does it.

Whoever raises an alert or tries to send it says so first, by a record that is added only if nobody else has added one
meanwhile. So of any number of instances one raises and one sends, and a queue is there after a restart. An instance
that is ended between a try and the record that it was sent leaves an alert that is tried again: a receiver may get it
twice, with the same id.

A webhook: signed messages to an address that whoever runs the service has named, as Standard Webhooks has it.

Each is a POST with `webhook-id`, the same at every try; `webhook-timestamp`, in seconds since 1970; and
`webhook-signature`, `v1,` and in base64 the HMAC-SHA256 of `ID.TIMESTAMP.BODY`. A receiver takes a message once by
its id, refuses an old timestamp, and compares the signature in constant time.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import http.client
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

from ldp_budget import InvalidParameter, RecordConflict
from ldp_budget.accounting.admin_records import ALERT, ALERT_GIVEN_UP, ALERT_SENT, ALERT_TRIED, VERIFIED
from ldp_budget.accounting.projection import Projection

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from ldp_budget import Accountant
    from ldp_budget.accounting.admin_log import Record
    from ldp_budget.accounting.projection import Projection
    from ldp_budget.accounting.usage_stats import Overview
    from ldp_budget.ledger.verification import Integrity


LIMIT_USED = "limit.used"
REFUSALS = "refusals.many"
VERIFICATION = "verification.failed"
TEST = "test"


class Rules(NamedTuple):
    """When to raise what.

    `used` are thresholds in percent of a limit, one alert for each that a share of `users` has reached. `refusals` is
    the share of what was asked in the last hour that was refused, if that was at least `least` requests.
    """

    used: tuple[int, ...] = (80, 100)
    users: float = 0.05
    refusals: float = 0.5
    least: int = 100


class Alert(NamedTuple):
    """Something to be told: `name` says what it is about, and that of which it is told once."""

    name: str
    type: str
    data: Mapping[str, Any]


def worth_telling(rules: Rules, overview: Overview, verified: Verified | None, now: datetime) -> Iterator[Alert]:
    """Everything that is worth an alert just now, whether or not it was told before."""
    for limit in overview.limits():
        yield from _of_limit(rules, limit)
    yield from _of_refusals(rules, overview.recent(1), now)
    if verified is not None and not verified.ok:
        yield Alert(f"{VERIFICATION} {verified.record}", VERIFICATION, verified.to_json())


def _of_limit(rules: Rules, limit: Mapping[str, Any]) -> Iterator[Alert]:
    used: Sequence[int] = limit["used"]
    for threshold in rules.used:
        users = sum(used[threshold:])
        if users and users >= rules.users * limit["users"]:
            about = {name: limit[name] for name in ("policy", "period", "rule", "epsilon", "delta", "resets_at")}
            # A limit that was raised is another one, and so is its next window.
            which = sha256("\n".join(map(str, about.values())).encode("utf-8", "surrogatepass")).hexdigest()[:24]
            data = {**about, "used_percent": threshold, "users": users, "of": limit["users"]}
            yield Alert(f"{LIMIT_USED} {threshold} {which}", LIMIT_USED, data)


def _of_refusals(rules: Rules, recent: Mapping[str, int], now: datetime) -> Iterator[Alert]:
    asked = recent["charges"] + recent["refused"]
    if asked >= rules.least and recent["refused"] >= rules.refusals * asked:
        data = {"refused": recent["refused"], "of": asked, "threshold": rules.refusals}
        yield Alert(f"{REFUSALS} {rules.refusals} {now.date().isoformat()}", REFUSALS, data)


S = TypeVar("S")
_MOST_ATTEMPTS = 100


def append(
    following: Projection[S], accountant: Accountant, decide: Callable[[S], tuple[str, str, dict[str, Any]]]
) -> Record:
    """Add the record that `decide` makes of the state, by whoever acts through `accountant`, or raise what it raises.

    Where somebody else adds one meanwhile it is asked again, so of two who see the same one finds it done already.
    """
    for _ in range(_MOST_ATTEMPTS):
        state, newest = following.now()
        kind, name, body = decide(state)
        try:
            return accountant._record_own(kind, name, body, expected=newest)
        except RecordConflict as error:
            conflict = error
    raise conflict


_NAME = "ledger"


class Verified(NamedTuple):
    """What came of a verification: whether everything held, in how many entries, and how many problems there were."""

    record: int
    at: datetime
    ok: bool
    entries: int
    problems: int
    by: str | None

    def to_json(self) -> dict[str, Any]:
        """A JSON object of everything."""
        return {**self._asdict(), "at": self.at.isoformat().replace("+00:00", "Z")}


def _follow(last: Verified | None, record: Record) -> Verified | None:
    if record.kind != VERIFIED or record.fault is not None:
        return last
    body = record.body
    return Verified(record.number, record.at, body["ok"], body["entries"], body["problems"], record.by)


class Verifications:
    """The verifications of a ledger."""

    def __init__(self, accountant: Accountant) -> None:
        self._accountant = accountant
        self._last = Projection[Verified | None](accountant, None, _follow)

    def last(self) -> Verified | None:
        """The newest one; None if there was none."""
        return self._last.known()

    def run(self, accountant: Accountant | None = None, expect: str | None = None) -> Integrity:
        """Verify the ledger and record what came of it, as done by the holder of an accountant.

        What was found is told to whoever asked; the record has only how much that was.
        """
        accountant = accountant or self._accountant
        found = accountant.verify(expect)
        body = {"ok": found.ok, "entries": found.entries, "head": found.head, "problems": len(found.problems)}
        append(self._last, accountant, lambda last: (VERIFIED, _NAME, body))
        return found


BACKOFF = (30.0, 120.0, 600.0, 3600.0, 10_800.0, 21_600.0, 43_200.0)
"""Seconds after each try before the next; each is longer than a try may take."""
MOST_WAITING = 100
"""How many alerts wait at most; of more the oldest are given up."""
MOST_TOLD = 100
"""How many of the newest alerts are remembered, beside those that wait."""


@dataclass(frozen=True)
class QueuedAlert:
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
    alerts: Mapping[int, QueuedAlert] = field(default_factory=dict)
    # Only ever added to: whoever still reads an older state sees at most that something was raised since.
    names: set[str] = field(default_factory=set)


def _outbox_follow(state: _State, record: Record) -> _State:
    if record.fault is not None:
        return state
    if record.kind == ALERT:
        raised = QueuedAlert(
            record.number, record.name, record.body["type"], record.body["data"], record.at, record.by
        )
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


def _kept(alerts: dict[int, QueuedAlert]) -> dict[int, QueuedAlert]:
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
        self._following = Projection(accountant, _State(), _outbox_follow)

    def newest(self) -> list[QueuedAlert]:
        """The alerts that are remembered, newest first."""
        return sorted(self._following.known().alerts.values(), key=lambda each: -each.number)

    def raise_once(self, alert: Alert, accountant: Accountant | None = None) -> QueuedAlert | None:
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

    def waiting(self) -> list[QueuedAlert]:
        """Those that are still to be sent, oldest first."""
        alerts = self._following.now()[0].alerts.values()
        return sorted((each for each in alerts if each.waits), key=lambda each: each.number)

    def next_due(self) -> datetime | None:
        """When something is to be tried next; None if nothing is."""
        return min((each.due(self._backoff) for each in self.waiting()), default=None)

    def take(self, raised: QueuedAlert, now: datetime) -> QueuedAlert | None:
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

    def was_sent(self, raised: QueuedAlert) -> None:
        """Say that a receiver has taken it."""
        self._end(raised, ALERT_SENT, {"alert": raised.number, "try": raised.tries})

    def give_up(self, raised: QueuedAlert, why: str) -> None:
        """Say that it is tried no more."""
        self._end(raised, ALERT_GIVEN_UP, {"alert": raised.number, "why": why})

    def is_last_try(self, raised: QueuedAlert) -> bool:
        """Whether there is none after this."""
        return raised.tries > len(self._backoff)

    def _end(self, raised: QueuedAlert, kind: str, body: dict[str, Any]) -> None:
        def decide(state: _State) -> tuple[str, str, dict[str, Any]]:
            found = state.alerts.get(raised.number)
            if found is None or not found.waits:
                raise _Done
            return kind, raised.name, body

        try:
            append(self._following, self._accountant, decide)
        except _Done:
            return


SECONDS = 10.0
"""How long a try may take at each step."""
GONE = 410
PREFIX = "whsec_"
LEAST_SECRET, MOST_SECRET = 24, 64
_READ = 1024


class Outcome(NamedTuple):
    """What came of a try: the status, or None and why there is none."""

    status: int | None
    why: str = ""

    @property
    def sent(self) -> bool:
        """Whether the receiver has taken it; a redirection is not followed, and is no such answer."""
        return self.status is not None and 200 <= self.status < 300


def signature(secret: bytes, identifier: str, timestamp: int, body: bytes) -> str:
    """What stands in `webhook-signature`."""
    signed = f"{identifier}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()


def read_secret(path: Path) -> bytes:
    """The secret in a file: `whsec_` and base64, or its characters as they stand. Raises `InvalidParameter`."""
    expected = f"a file with a secret of {LEAST_SECRET} to {MOST_SECRET} bytes, or {PREFIX} and as many in base64"
    try:
        text = path.read_text(encoding="utf-8").strip()
        secret = (
            base64.b64decode(text.removeprefix(PREFIX), validate=True) if text.startswith(PREFIX) else text.encode()
        )
    except (OSError, UnicodeDecodeError, binascii.Error):
        raise InvalidParameter("alert_secret_file", expected, str(path)) from None
    if not LEAST_SECRET <= len(secret) <= MOST_SECRET:
        raise InvalidParameter("alert_secret_file", expected, f"{len(secret)} bytes")
    return secret


class Webhook:
    """Where messages go, and how they are signed. Raises `InvalidParameter` for what is no address."""

    def __init__(self, url: str, secret: bytes, *, seconds: float = SECONDS) -> None:
        self._to, self._secret, self._seconds = _address(url), secret, seconds

    def send(self, identifier: str, timestamp: int, body: bytes) -> Outcome:
        """Try once. Nothing that goes wrong out there is raised."""
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "ldp-budget",
            "webhook-id": identifier,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(self._secret, identifier, timestamp, body),
        }
        connection = self._connection()
        try:
            connection.request("POST", self._target(), body, headers)
            with connection.getresponse() as response:
                response.read(_READ)
                return Outcome(response.status)
        except (OSError, http.client.HTTPException) as error:
            return Outcome(None, type(error).__name__)
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        host = self._to.hostname or ""
        if self._to.scheme == "https":
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(host, self._to.port, timeout=self._seconds, context=context)
        return http.client.HTTPConnection(host, self._to.port, timeout=self._seconds)

    def _target(self) -> str:
        return (self._to.path or "/") + (f"?{self._to.query}" if self._to.query else "")


def _address(url: str) -> SplitResult:
    expected = "an address as https://HOST/PATH, without a user or a fragment"
    try:
        to = urlsplit(url)
        well = to.scheme in ("https", "http") and to.hostname and to.port != 0
        well = well and url.isascii() and url.isprintable() and " " not in url
    except ValueError:
        raise InvalidParameter("alert_webhook", expected, "another text") from None
    if not well or "@" in to.netloc or to.fragment:
        raise InvalidParameter("alert_webhook", expected, f"{to.scheme}://…" if to.scheme else "another text")
    return to
