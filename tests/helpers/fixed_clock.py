"""A clock with a time that the test sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class Clock:
    """A clock at a moment, by default noon on Saturday 21 November 2026, until the test advances it."""

    def __init__(self, now: datetime = datetime(2026, 11, 21, 12, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **by: float) -> None:
        """Add a `timedelta` with these arguments."""
        self.now += timedelta(**by)
