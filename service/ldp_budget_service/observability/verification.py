"""Verifications of the ledger: each is an administrative record with its result, so every instance knows the newest."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget import LdpBudgetError
from ldp_budget.accounting.admin_records import VERIFIED
from ldp_budget.ledger.calendar import utc_text

from ..admin_log_projection import Projection

if TYPE_CHECKING:
    from datetime import datetime

    from ldp_budget import Accountant
    from ldp_budget.accounting.admin_log import Record
    from ldp_budget.ledger.verification import Integrity

LOOK_SECONDS = 60.0
"""Seconds between two looks at the time of the newest verification."""
_NAME = "ledger"

_log = logging.getLogger("ldp_budget_service")


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
        return {**self._asdict(), "at": utc_text(self.at)}


def _follow(last: Verified | None, record: Record) -> Verified | None:
    if record.kind != VERIFIED or record.fault is not None:
        return last
    body = record.body
    return Verified(record.number, record.at, body["ok"], body["entries"], body["problems"], record.by)


class Verifications:
    """The recorded verifications of a ledger. A thread verifies every `hours` hours; 0: only on request."""

    def __init__(self, accountant: Accountant, hours: float = 0) -> None:
        self._accountant, self._every = accountant, timedelta(hours=hours)
        self._last = Projection[Verified | None](accountant, None, _follow)
        self._ended = threading.Event()

    def last(self) -> Verified | None:
        """Return the newest verification; None if there is none."""
        return self._last.known()

    def run(self) -> Integrity:
        """Verify the ledger and record the result, on behalf of the accountant's caller.

        The return value has the problems in words. The record has only their number.
        """
        found = self._accountant.verify()
        body = {"ok": found.ok, "entries": found.entries, "head": found.head, "problems": len(found.problems)}
        self._last.append(lambda last: (VERIFIED, _NAME, body))
        return found

    def start(self) -> None:
        """Start the thread, if there is an interval."""
        if self._every:
            threading.Thread(target=self._watch, name="verifications", daemon=True).start()

    def stop(self) -> None:
        """End the thread after a verification in progress; the process need not wait for it."""
        self._ended.set()

    def _watch(self) -> None:
        while True:
            try:
                self.run_if_due()
            except LdpBudgetError as error:
                # Other parts of the service report an unusable ledger. The thread only tries again.
                _log.warning("not verified", extra={"said": {"error": error.code}})
            if self._ended.wait(LOOK_SECONDS):
                return

    def run_if_due(self) -> None:
        """Verify the ledger if the newest verification is older than the interval."""
        last = self.last()
        if last is None or self._accountant.now() - last.at >= self._every:
            self.run()
