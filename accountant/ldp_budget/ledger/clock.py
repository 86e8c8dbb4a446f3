"""The clock of a ledger: it never runs behind the newest entry."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from ..errors import LedgerError
from .windows import Moment, from_micros

Read = Callable[[], datetime | float]

# A clock up to this far behind the newest entry counts as equal to it; further behind, nothing is trusted.
TOLERANCE_MICROS = 5_000_000


class Clock:
    """Reads the time for one ledger; `read` answers with an aware datetime, or with seconds since 1970."""

    def __init__(self, read: Read, ledger: str) -> None:
        self._read = read
        self._ledger = ledger

    def moment(self, newest: int | None) -> Moment:
        """Now, never before the newest entry of that time; raises `LedgerError` where it is far behind."""
        reading = self._read()
        now = reading if isinstance(reading, datetime) else datetime.fromtimestamp(reading, UTC)
        moment = Moment(now.replace(tzinfo=UTC) if now.tzinfo is None else now)
        if newest is None or moment.micros >= newest:
            return moment
        if newest - moment.micros > TOLERANCE_MICROS:
            raise LedgerError(
                self._ledger,
                f"expected a clock at most 5 s behind its newest entry of {from_micros(newest)}; found {moment.at};"
                " nothing was charged",
            )
        return Moment(from_micros(newest))
