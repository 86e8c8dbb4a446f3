"""The watchman: looks at the ledger from time to time, raises what is worth an alert, and sends what waits."""

from __future__ import annotations

import json
import logging
import secrets
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ldp_budget import InvalidParameter, LdpBudgetError, NotSupported

from .alerts import TEST, Alert, Rules, worth_telling
from .outbox import Outbox, Raised
from .verifying import Verifications
from .webhooks import GONE, Webhook, read_secret

if TYPE_CHECKING:
    from datetime import datetime

    from ldp_budget import Accountant
    from ldp_budget.accounting.overview import Overview

    from ..settings import Settings

LOOK_SECONDS = 5.0
"""How long one look may read on in the ledger."""
_LEAST_WAIT = 0.05

_log = logging.getLogger("ldp_budget_service")


class Watchman:
    """Watches one ledger in a thread of its own. Without a webhook nobody would hear of alerts, and none is raised.

    `verify_hours` of 0: the ledger is verified only when somebody asks for it.
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
        """Begin, unless there is nothing to do."""
        if self.webhook is not None or self._verify:
            self._thread = threading.Thread(target=self._watch, name="watchman", daemon=True)
            self._thread.start()

    def stop(self, seconds: float = 5.0) -> None:
        """End; what is being sent just now is given so long."""
        self._ended = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(seconds)

    def test(self, accountant: Accountant) -> Raised:
        """Raise an alert that says that it is a test, by whoever acts through an accountant, and have it sent."""
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
                # A ledger that cannot be used for a while is told of by others; this looks again.
                _log.warning("watchman", extra={"said": {"error": error.code}})
                wait = self._every
            self._wake.wait(max(_LEAST_WAIT, min(wait, self._every)))
            self._wake.clear()

    def step(self) -> float:
        """Look once and send what is due; returns for how many seconds nothing is."""
        if self._is_verification_due():
            self.verifications.run()
        if self.webhook is None:
            return self._every
        if not self._overview.look(LOOK_SECONDS):
            return _LEAST_WAIT  # what is in it so far says nothing of the whole
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

    def _try(self, webhook: Webhook, raised: Raised) -> None:
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

    def _identifier(self, raised: Raised) -> str:
        """The same at every try and by every instance, and that of no other ledger."""
        return f"msg_{self._accountant.keyed_digest(f'alert {raised.number}'.encode())[:32]}"


def _seconds(now: datetime) -> int:
    return int(now.timestamp())


def _body(message: dict[str, Any]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def _webhook(settings: Settings) -> Webhook | None:
    """What the settings name. Raises `InvalidParameter`."""
    if settings.alert_webhook is None:
        return None
    if settings.alert_secret_file is None:
        raise InvalidParameter("alert_secret_file", "a file with the secret that alerts are signed with", None)
    return Webhook(settings.alert_webhook, read_secret(settings.alert_secret_file))
