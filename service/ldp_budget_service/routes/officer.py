"""What the privacy officer looks at: policies with who set them and when, keys, and what else was put on record."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from ..answers import Row, told
from ..callers import Caller, router_of
from ..problems import documented
from .overview import SECONDS

router = router_of(prefix="/v1/officer", tags=["officer"])

MOST_RECORDS = 1000
_SECRET = ("hash",)
"""What a record holds that is nobody's business, though nobody could use it."""


class OfficerAnswer(BaseModel):
    """Rows, newest first."""

    rows: list[Row]


class SummaryAnswer(BaseModel):
    """Counts of what waits for somebody, and of what there is."""

    key: str = Field(description="The name of the caller's key, which stands in the journal with what it does.")
    counts: dict[str, int] = Field(description="Open proposals, policies, active keys, erased users, waiting alerts.")


@router.get("", response_model=SummaryAnswer, responses=documented())
def summary(request: Request, desk: Caller) -> Response:
    """How many policies, active keys and erased users there are, and how many alerts are still to be sent."""
    state, position, now = request.app.state, desk.accountant.position(), desk.accountant.now()
    state.overview.look(SECONDS)
    counts = {
        "proposals": len(state.approvals.pending()),
        "policies": len(desk.accountant.policies()),
        "keys": sum(key.state(now) == "active" for key in state.keys.all()),
        "erased": state.overview.totals()["erased"],
        "alerts": len(state.watchman.outbox.waiting()),
    }
    return told(position, {"key": desk.key.name, "counts": counts})


@router.get("/policies", response_model=OfficerAnswer, responses=documented())
def policies(request: Request, desk: Caller) -> Response:
    """Every version of every policy: its terms, when it was set, by which key, and whether it admits more than the
    one before."""
    overview, position = request.app.state.overview, desk.accountant.position()
    overview.look(SECONDS)
    return told(position, {"rows": overview.policies()})


@router.get("/keys", response_model=OfficerAnswer, responses=documented())
def keys(request: Request, desk: Caller) -> Response:
    """Every API key there ever was, with what it is good for and whether it still is. Nobody knows the secrets."""
    position, now = desk.accountant.position(), desk.accountant.now()
    return told(position, {"rows": [key.to_json(now) for key in request.app.state.keys.all()][::-1]})


@router.get("/records", response_model=OfficerAnswer, responses=documented())
def records(
    desk: Caller,
    most: Annotated[int, Query(ge=1, le=MOST_RECORDS, description="How many at most.")] = 200,
) -> Response:
    """What was put on record, with when and by whom: keys, invitations, consents, verifications and alerts."""
    position = desk.accountant.position()
    found = desk.accountant.records(max(1, desk.accountant.newest_record - most + 1))[-most:]
    return told(position, {"rows": [_without_hash(record.to_json()) for record in found[::-1]]})


def _without_hash(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "body": {name: value for name, value in row["body"].items() if name not in _SECRET}}
