"""Health endpoints (`/livez`, `/readyz`) and the alert monitor.

The monitor checks the ledger at intervals, raises alerts and sends those that are due.
"""

from __future__ import annotations

import json
import logging
import secrets
import shutil
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from fastapi import Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from ldp_budget import InvalidParameter, LdpBudgetError, NotSupported

from ..auth import router_of
from ..problems import documented, problem
from .alerts import GONE, TEST, Alert, Outbox, QueuedAlert, Rules, Verifications, Webhook, read_secret, worth_telling

if TYPE_CHECKING:
    from datetime import datetime

    from ldp_budget import Accountant
    from ldp_budget.accounting.usage_stats import Overview

    from ..request_limits import Load
    from ..settings import Settings


LEAST_ROOM = 128 << 20
"""Free bytes required on each disk that this process writes to: more than a ledger's WAL may take."""
SECONDS = 5.0
"""Timeout of a check in seconds."""
_FRESH_SECONDS = 1.0

_log = logging.getLogger("ldp_budget_service")

router = router_of(tags=["watching"])


class Alive(BaseModel):
    """Liveness response."""

    status: str = "alive"


class Ready(BaseModel):
    """Readiness response: every check with the result `ok`."""

    status: str = "ready"
    checks: dict[str, str]


class Health:
    """Checks everything that a charge needs. One check runs at a time, and at most one per second."""

    def __init__(self, accountant: Accountant, settings: Settings, load: Load) -> None:
        self._accountant, self._load = accountant, load
        self._folders = [folder for folder in (_folder_of(accountant), settings.reports) if folder is not None]
        self._looking: anyio.CapacityLimiter | None = None
        self._seen: tuple[float, dict[str, str | None]] = float("-inf"), {}
        self._told: set[str] = set()

    async def check(self) -> dict[str, str | None]:
        """Return the error of each check by its name; None if the check passed."""
        if self._looking is None:
            self._looking = anyio.CapacityLimiter(1)
        found: dict[str, str | None] = {"schema": f"no answer within {SECONDS:g} s"}
        with anyio.move_on_after(SECONDS):
            found = await anyio.to_thread.run_sync(self._look, abandon_on_cancel=True, limiter=self._looking)
        found = {**found, "draining": "it is about to end" if self._load.draining else None}
        self._tell(found)
        return found

    def _look(self) -> dict[str, str | None]:
        if time.monotonic() - self._seen[0] > _FRESH_SECONDS:
            self._seen = time.monotonic(), {**self._accountant.ledger.check_up(), "disk": self._room()}
        return self._seen[1]

    def _room(self) -> str | None:
        """Return the error of the first disk that is short of space; None if all have enough."""
        for folder in self._folders:
            try:
                free = shutil.disk_usage(folder).free
            except OSError as error:
                return f"{folder}: {error.strerror}"
            if free < LEAST_ROOM:
                return f"{folder}: expected at least {LEAST_ROOM} bytes of room; found {free}"
        return None

    def _tell(self, found: dict[str, str | None]) -> None:
        """Log the failed checks once, when they change."""
        wrong = {name: why for name, why in found.items() if why is not None}
        if wrong.keys() != self._told:
            _log.warning("not ready" if wrong else "ready", extra={"said": {"checks": wrong}})
            self._told = set(wrong)


def _folder_of(accountant: Accountant) -> Path | None:
    """Return the ledger's folder; None if the ledger is not on a local disk."""
    place = Path(accountant.name)
    return place.parent if place.is_absolute() else None


@router.get("/livez")
async def livez() -> Alive:
    """Confirm that the process responds."""
    return Alive()


@router.get("/readyz", response_model=Ready, responses={503: documented("not-ready")[503]})
async def readyz(request: Request) -> Response:
    """Check that a charge is possible: the ledger, its key, the clock, the disk and no shutdown in progress."""
    found = await request.app.state.health.check()
    wrong = [name for name, why in found.items() if why is not None]
    checks = {name: "ok" if why is None else "failed" for name, why in found.items()}
    if wrong:
        return problem("not-ready", f"not ready: {', '.join(wrong)}", {"checks": checks})
    return JSONResponse({"status": "ready", "checks": checks})


# -- alert monitor -----------------------------------------------------------------------------------

LOOK_SECONDS = 5.0
"""Maximum seconds of one pass over the ledger."""
_LEAST_WAIT = 0.05


class AlertMonitor:
    """Monitors one ledger in a thread of its own. Without a webhook it raises no alerts.

    With `verify_hours` of 0 it verifies the ledger only on request.
    """

    def __init__(self, accountant: Accountant, overview: Overview, settings: Settings) -> None:
        self._accountant, self._overview = accountant, overview
        self._every, self._verify = settings.alert_seconds, timedelta(hours=settings.verify_hours)
        self.rules = Rules(settings.alert_used, settings.alert_users, settings.alert_refusals, settings.alert_least)
        self.webhook = _webhook(settings)
        self.outbox, self.verifications = Outbox(accountant), Verifications(accountant)
        self._wake, self._ended = threading.Event(), False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, unless neither a webhook nor a verification interval is set."""
        if self.webhook is not None or self._verify:
            self._thread = threading.Thread(target=self._watch, name="watchman", daemon=True)
            self._thread.start()

    def stop(self, seconds: float = 5.0) -> None:
        """Stop the thread. A delivery in progress gets this many seconds to finish."""
        self._ended = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(seconds)

    def test(self, accountant: Accountant) -> QueuedAlert:
        """Queue a test alert on behalf of an accountant's caller. Raises `NotSupported` without a webhook."""
        if self.webhook is None:
            raise NotSupported("no webhook is set up; whoever runs the service names one by --alert-webhook")
        alert = Alert(f"{TEST} {secrets.token_hex(8)}", TEST, {})
        raised = self.outbox.raise_once(alert, accountant)
        assert raised is not None
        self._wake.set()
        return raised

    def _watch(self) -> None:
        while not self._ended:
            try:
                wait = self.step()
            except LdpBudgetError as error:
                # Other parts of the service report an unusable ledger. The monitor only tries again.
                _log.warning("watchman", extra={"said": {"error": error.code}})
                wait = self._every
            self._wake.wait(max(_LEAST_WAIT, min(wait, self._every)))
            self._wake.clear()

    def step(self) -> float:
        """Check once and send the alerts that are due; return the seconds until the next one is due."""
        if self._is_verification_due():
            self.verifications.run()
        if self.webhook is None:
            return self._every
        if not self._overview.look(LOOK_SECONDS):
            return _LEAST_WAIT  # incomplete statistics say nothing about the whole ledger
        now = self._accountant.now()
        for alert in worth_telling(self.rules, self._overview, self.verifications.last(), now):
            self.outbox.raise_once(alert)
        for raised in self.outbox.waiting():
            if not self._ended:
                self._try(self.webhook, raised)
        due = self.outbox.next_due()
        return self._every if due is None else (due - self._accountant.now()).total_seconds()

    def _is_verification_due(self) -> bool:
        last = self.verifications.last()
        return bool(self._verify) and (last is None or self._accountant.now() - last.at >= self._verify)

    def _try(self, webhook: Webhook, raised: QueuedAlert) -> None:
        taken = self.outbox.take(raised, self._accountant.now())
        if taken is None:
            return
        outcome = webhook.send(self._identifier(taken), _seconds(self._accountant.now()), _body(taken.message()))
        if outcome.sent:
            self.outbox.was_sent(taken)
            return
        said = {"alert": taken.number, "try": taken.tries, "status": outcome.status, "why": outcome.why}
        _log.warning("alert not sent", extra={"said": said})
        if outcome.status == GONE:
            self.outbox.give_up(taken, "the receiver wants no more (410)")
        elif self.outbox.is_last_try(taken):
            self.outbox.give_up(taken, f"tried {taken.tries} times")

    def _identifier(self, raised: QueuedAlert) -> str:
        """Return the message id: equal for every try and instance, and unique to this ledger."""
        return f"msg_{self._accountant.keyed_digest(f'alert {raised.number}'.encode())[:32]}"


def _seconds(now: datetime) -> int:
    return int(now.timestamp())


def _body(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def _webhook(settings: Settings) -> Webhook | None:
    """Return the webhook of the settings; None if there is none. Raises `InvalidParameter`."""
    if settings.alert_webhook is None:
        return None
    if settings.alert_secret_file is None:
        raise InvalidParameter("alert_secret_file", "a file with the secret that alerts are signed with", None)
    return Webhook(settings.alert_webhook, read_secret(settings.alert_secret_file))
