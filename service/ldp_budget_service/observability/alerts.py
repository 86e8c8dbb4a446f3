"""Alerts: rules, the outbox in the ledger's records, verification results and the signed webhook.

Rules. Limits that many users have nearly or fully used, many refusals and failed verifications raise an alert. Each
alert is raised once per threshold and window. Both are part of its name. No alert names a user.

Outbox. Alerts are administrative records: raised, tried, sent or given up, by any instance. An instance appends a
record before it raises or tries to send an alert. The append fails if another instance was faster. So among any number
of instances one raises and one sends. The queue survives a restart. If an instance ends between a try and the record
of its success, the alert is tried again. A receiver may therefore get an alert twice, with the same id.

Verifications. Each verification of the ledger is a record with its result.

Webhook. Messages follow Standard Webhooks: a POST to the operator's address with three headers. `webhook-id` is equal
at every try. `webhook-timestamp` is in seconds since 1970. `webhook-signature` is `v1,` and the base64 HMAC-SHA256 of
`ID.TIMESTAMP.BODY`. A receiver must accept each id once, refuse old timestamps and compare signatures in constant
time.
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
from ldp_budget.accounting.admin_log_projection import Projection
from ldp_budget.accounting.admin_records import ALERT, ALERT_GIVEN_UP, ALERT_SENT, ALERT_TRIED, VERIFIED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from ldp_budget import Accountant
    from ldp_budget.accounting.admin_log import Record
    from ldp_budget.accounting.admin_log_projection import Projection
    from ldp_budget.accounting.usage_stats import Overview
    from ldp_budget.ledger.verification import Integrity


# -- rules -------------------------------------------------------------------------------------------

LIMIT_USED = "limit.used"
REFUSALS = "refusals.many"
VERIFICATION = "verification.failed"
TEST = "test"


class Rules(NamedTuple):
    """Thresholds for alerts.

    `used` are percentages of a limit; each raises one alert when a fraction `users` of the users has reached it.
    `refusals` is the refused fraction of the requests of the last hour, if there were at least `least` requests.
    """

    used: tuple[int, ...] = (80, 100)
    users: float = 0.05
    refusals: float = 0.5
    least: int = 100


class Alert(NamedTuple):
    """An alert to raise. `name` identifies its subject, threshold and window; each name is raised once."""

    name: str
    type: str
    data: Mapping[str, Any]


def worth_telling(rules: Rules, overview: Overview, verified: Verified | None, now: datetime) -> Iterator[Alert]:
    """Yield every alert whose condition holds now, including those that were raised before."""
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
            # A limit with changed amounts counts as another limit, and so does its next window.
            which = sha256("\n".join(map(str, about.values())).encode("utf-8", "surrogatepass")).hexdigest()[:24]
            data = {**about, "used_percent": threshold, "users": users, "of": limit["users"]}
            yield Alert(f"{LIMIT_USED} {threshold} {which}", LIMIT_USED, data)


def _of_refusals(rules: Rules, recent: Mapping[str, int], now: datetime) -> Iterator[Alert]:
    asked = recent["charges"] + recent["refused"]
    if asked >= rules.least and recent["refused"] >= rules.refusals * asked:
        data = {"refused": recent["refused"], "of": asked, "threshold": rules.refusals}
        yield Alert(f"{REFUSALS} {rules.refusals} {now.date().isoformat()}", REFUSALS, data)


# -- conditional records -----------------------------------------------------------------------------

S = TypeVar("S")
_MOST_ATTEMPTS = 100


def append(
    following: Projection[S], accountant: Accountant, decide: Callable[[S], tuple[str, str, dict[str, Any]]]
) -> Record:
    """Append the record that `decide` derives from the state, on behalf of the caller of `accountant`.

    Raises what `decide` raises. If another writer appends a record in between, `decide` runs again on the new state.
    So of two writers with the same intention, one finds it already done.
    """
    for _ in range(_MOST_ATTEMPTS):
        state, newest = following.now()
        kind, name, body = decide(state)
        try:
            return accountant._record_own(kind, name, body, expected=newest)
        except RecordConflict as error:
            conflict = error
    raise conflict


# -- verifications -----------------------------------------------------------------------------------

_NAME = "ledger"


class Verified(NamedTuple):
    """Result of a verification: its success, the number of entries and the number of problems."""

    record: int
    at: datetime
    ok: bool
    entries: int
    problems: int
    by: str | None

    def to_json(self) -> dict[str, Any]:
        """Return all fields as a JSON object."""
        return {**self._asdict(), "at": self.at.isoformat().replace("+00:00", "Z")}


def _follow(last: Verified | None, record: Record) -> Verified | None:
    if record.kind != VERIFIED or record.fault is not None:
        return last
    body = record.body
    return Verified(record.number, record.at, body["ok"], body["entries"], body["problems"], record.by)


class Verifications:
    """The recorded verifications of a ledger."""

    def __init__(self, accountant: Accountant) -> None:
        self._accountant = accountant
        self._last = Projection[Verified | None](accountant, None, _follow)

    def last(self) -> Verified | None:
        """Return the newest verification; None if there is none."""
        return self._last.known()

    def run(self, accountant: Accountant | None = None, expect: str | None = None) -> Integrity:
        """Verify the ledger and record the result, on behalf of the accountant's caller.

        The return value has the problems in words. The record has only their number.
        """
        accountant = accountant or self._accountant
        found = accountant.verify(expect)
        body = {"ok": found.ok, "entries": found.entries, "head": found.head, "problems": len(found.problems)}
        append(self._last, accountant, lambda last: (VERIFIED, _NAME, body))
        return found


# -- outbox ------------------------------------------------------------------------------------------

BACKOFF = (30.0, 120.0, 600.0, 3600.0, 10_800.0, 21_600.0, 43_200.0)
"""Seconds after each try until the next one. Each is longer than a try may take."""
MOST_WAITING = 100
"""Maximum number of waiting alerts. Beyond it, the oldest ones are given up."""
MOST_TOLD = 100
"""Number of newest finished alerts to remember, in addition to the waiting ones."""


@dataclass(frozen=True)
class QueuedAlert:
    """An alert by the number of its record, with its delivery state."""

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
        """True if the alert is still to be sent."""
        return self.sent is None and self.given_up is None

    def due(self, backoff: tuple[float, ...]) -> datetime:
        """Return the time of the next try."""
        if self.tried is None:
            return self.at
        return self.tried + timedelta(seconds=backoff[min(self.tries, len(backoff)) - 1])

    def message(self) -> dict[str, Any]:
        """Return the message for the receiver. It is equal at every try."""
        return {"type": self.type, "timestamp": _iso(self.at), "data": dict(self.data)}

    def to_json(self) -> dict[str, Any]:
        """Return all fields as a JSON object."""
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
    # Only added to. A reader of an older state may see names that were raised since, which is harmless.
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
    """Return the waiting alerts and the newest of the others."""
    ended = [number for number, each in alerts.items() if not each.waits]
    for number in ended[: max(0, len(ended) - MOST_TOLD)]:
        del alerts[number]
    return alerts


class _Done(Exception):  # noqa: N818
    """Another instance has done it already, or it has become unnecessary."""


class Outbox:
    """The alerts of a ledger."""

    def __init__(self, accountant: Accountant, backoff: tuple[float, ...] = BACKOFF) -> None:
        self._accountant, self._backoff = accountant, backoff
        self._following = Projection(accountant, _State(), _outbox_follow)

    def newest(self) -> list[QueuedAlert]:
        """Return the remembered alerts, newest first."""
        return sorted(self._following.known().alerts.values(), key=lambda each: -each.number)

    def raise_once(self, alert: Alert, accountant: Accountant | None = None) -> QueuedAlert | None:
        """Queue an alert on behalf of an accountant's caller; return None if it was raised before."""
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
        """Return the alerts that are still to be sent, oldest first."""
        alerts = self._following.now()[0].alerts.values()
        return sorted((each for each in alerts if each.waits), key=lambda each: each.number)

    def next_due(self) -> datetime | None:
        """Return the time of the next try; None if no alert waits."""
        return min((each.due(self._backoff) for each in self.waiting()), default=None)

    def take(self, raised: QueuedAlert, now: datetime) -> QueuedAlert | None:
        """Record that a try starts now and return the alert; return None if another instance has made this try."""

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
        """Record that a receiver has accepted the alert."""
        self._end(raised, ALERT_SENT, {"alert": raised.number, "try": raised.tries})

    def give_up(self, raised: QueuedAlert, why: str) -> None:
        """Record that the alert will not be tried again."""
        self._end(raised, ALERT_GIVEN_UP, {"alert": raised.number, "why": why})

    def is_last_try(self, raised: QueuedAlert) -> bool:
        """True if no try follows."""
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


# -- webhook -----------------------------------------------------------------------------------------

SECONDS = 10.0
"""Timeout of each network step of a try, in seconds."""
GONE = 410
PREFIX = "whsec_"
LEAST_SECRET, MOST_SECRET = 24, 64
_READ = 1024


class Outcome(NamedTuple):
    """Result of a try: the HTTP status, or None and the reason."""

    status: int | None
    why: str = ""

    @property
    def sent(self) -> bool:
        """True if the receiver has accepted the message. Redirections are not followed and count as failures."""
        return self.status is not None and 200 <= self.status < 300


def signature(secret: bytes, identifier: str, timestamp: int, body: bytes) -> str:
    """Return the value of `webhook-signature`."""
    signed = f"{identifier}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(secret, signed, "sha256")).decode()


def read_secret(path: Path) -> bytes:
    """Return the secret in a file: `whsec_` and base64, or its plain characters. Raises `InvalidParameter`."""
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
    """A webhook's address and signing secret. Raises `InvalidParameter` for a malformed address."""

    def __init__(self, url: str, secret: bytes, *, seconds: float = SECONDS) -> None:
        self._to, self._secret, self._seconds = _address(url), secret, seconds

    def send(self, identifier: str, timestamp: int, body: bytes) -> Outcome:
        """Try once. Network errors are returned as an `Outcome`, never raised."""
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
