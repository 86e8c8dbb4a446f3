"""How far the journal is, and answers that are to be no older than that."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Query

from ldp_budget import InvalidParameter

from .kinds import ServiceError

_EXPECTED = "a Journal-Position as an answer had it, LANE:ENTRY with commas between"
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
    """Raise `position-not-reached` where the journal is not that far in every lane that is named."""
    if not _POSITION.fullmatch(wanted):
        raise InvalidParameter("min_position", _EXPECTED, wanted)
    there = _lanes(position)
    for lane, entry in _lanes(wanted).items():
        if lane not in there:
            raise InvalidParameter("min_position", f"lanes of this ledger, 0 to {len(there) - 1}", wanted)
        if there[lane] < entry:
            why = f"the journal is not at {wanted} here; it is at {position}"
            raise ServiceError("position-not-reached", why, {"Retry-After": "1"})


def _lanes(position: str) -> dict[int, int]:
    return {int(lane): int(entry) for lane, entry in (each.split(":") for each in position.split(","))}
