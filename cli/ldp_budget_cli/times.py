"""Times as they are typed: ISO, in UTC where no zone is named, and a date alone is its midnight."""

from __future__ import annotations

from datetime import UTC, datetime

import click

_EARLIEST, _END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)
_EXPECTED = (
    "expected an ISO time from 1970 to 9997, such as 2027-03-01T09:30 or 2027-03-01, in UTC unless it says a zone"
)


def parse_time(ctx: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """The moment that an option names, in UTC; one that a ledger can reckon with."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        moment = datetime.max
    if moment.utcoffset() is None:
        moment = moment.replace(tzinfo=UTC)
    # Compared before it is turned into UTC, which ends where the calendar does.
    if not _EARLIEST <= moment < _END:
        raise click.UsageError(f"{parameter.opts[0]}: {_EXPECTED}; found {value!r}", ctx)
    return moment.astimezone(UTC)
