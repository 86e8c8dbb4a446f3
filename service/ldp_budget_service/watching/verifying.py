"""Verifications of the ledger as they stand in its records: when everything was worked out again, and held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ldp_budget.accounting.access.following import Following
from ldp_budget.accounting.record_kinds import VERIFIED

from .recording import append

if TYPE_CHECKING:
    from datetime import datetime

    from ldp_budget import Accountant
    from ldp_budget.accounting.records import Record
    from ldp_budget.ledger.integrity import Integrity

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
        self._last = Following[Verified | None](accountant, None, _follow)

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
