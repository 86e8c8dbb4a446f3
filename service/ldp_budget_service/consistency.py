"""`min_position`: refuse a read if the journal has not reached an earlier `Journal-Position`."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Query

from ldp_budget import InvalidParameter

from .error_codes import ServiceError

_EXPECTED = "the Journal-Position of an earlier answer, such as 0:42 or 0:42,1:7"
_POSITION = re.compile(r"[0-9]{1,6}:[0-9]{1,18}(,[0-9]{1,6}:[0-9]{1,18})*")


MinPosition = Annotated[
    str | None,
    Query(
        description="Answer only if the journal is at least as far as this `Journal-Position` of an earlier answer; "
        "with 409 otherwise.",
        examples=["0:17"],
    ),
]


def check(wanted: str, position: str) -> None:
    """Raise `position-not-reached` if a named partition of the journal is not that far."""
    if not _POSITION.fullmatch(wanted):
        raise InvalidParameter("min_position", _EXPECTED, wanted)
    there = _partitions(position)
    for partition, entry in _partitions(wanted).items():
        if partition not in there:
            raise InvalidParameter(
                "min_position", f"a position in the partitions 0 to {len(there) - 1} of this ledger", wanted
            )
        if there[partition] < entry:
            why = f"the journal here has not reached {wanted} yet: it is at {position}. Try again in a moment."
            raise ServiceError("position-not-reached", why, {"Retry-After": "1"})


def _partitions(position: str) -> dict[int, int]:
    return {int(partition): int(entry) for partition, entry in (each.split(":") for each in position.split(","))}
