"""`/v1/ledger`: what it is, how far its journal goes, and its administrative records."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from ldp_budget.accounting.access.keys import KEY

from ..answers import Row, told
from ..asked import Asked
from ..callers import Admin, AuditReader, KeyHolder, Reader
from ..kinds import ServiceError
from ..problems import documented

router = APIRouter(tags=["ledger"])


class CallerAnswer(BaseModel):
    """Who asks: by the number and the name of their key, and the share that it is bound to."""

    number: int
    name: str
    share: str | None


class AboutAnswer(BaseModel):
    """Whether nothing counts in this ledger, what time it is there, and who asks."""

    rehearsal: bool
    now: datetime
    caller: CallerAnswer


class PositionAsked(Asked):
    """Whose lane; every lane without a user."""

    user: str | None = Field(None, min_length=1)


class PositionAnswer(BaseModel):
    """Where the journal ends: `LANE:ENTRY`, with commas between."""

    position: str = Field(examples=["0:17"])


class RecordAsked(Asked):
    """A record, and the number of the newest one that was known when it was decided on."""

    kind: str
    name: str
    body: dict[str, Any]
    expected: int = Field(ge=0)


@router.get("/v1/ledger", response_model=AboutAnswer, responses=documented())
def about(desk: KeyHolder) -> Response:
    """Whether nothing counts in this ledger, what time it is there, and who asks; for any key, whatever it may do."""
    found = desk.accountant
    about = {"rehearsal": found.rehearsal, "now": found.now().isoformat(), "caller": found.caller._asdict()}
    return told(found.position(), about)


@router.post("/v1/ledger/position", response_model=PositionAnswer, responses=documented())
def position(asked: PositionAsked, desk: Reader) -> Response:
    """Where the journal ends, of one user's lane or of every lane."""
    found = desk.accountant.position(asked.user)
    return told(found, {"position": found})


@router.get("/v1/ledger/records", response_model=list[Row], responses=documented())
def records(
    desk: AuditReader, first: Annotated[int, Query(ge=1, description="From which number on.")] = 1
) -> Response:
    """The administrative records of the ledger, such as which keys were made, in order."""
    desk.check_unbound()
    at = desk.accountant.position()
    return told(at, [record.to_json() for record in desk.accountant.records(first)])


@router.post("/v1/ledger/records", response_model=Row, responses=documented("record-conflict"))
def record(asked: RecordAsked, request: Request, desk: Admin) -> Response:
    """Add a record, unless somebody else has added one meanwhile. It is journalled, and stays for good.

    Where raising a limit takes the approval of another key, no key can be made so, as its maker would hold two.
    """
    desk.check_unbound()
    if asked.kind == KEY and request.app.state.approvals.demanded:
        why = "where approvals are demanded, keys are made on the machine of the ledger"
        raise ServiceError("forbidden", why)
    added = desk.accountant.record(asked.kind, asked.name, asked.body, expected=asked.expected)
    return told(desk.accountant.position(), added.to_json())
