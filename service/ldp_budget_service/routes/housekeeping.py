"""`/v1/ledger`: what it is, how far its journal goes, and its administrative records."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from ldp_budget.accounting.access.keys import ApiKeys

from ..answers import Row, told
from ..asked import Asked
from ..callers import Caller, Reader, router_of
from ..problems import documented

router = router_of(tags=["ledger"])


class CallerAnswer(BaseModel):
    """Who asks: by the number and the name of their key, and the share that it is bound to."""

    number: int
    name: str
    share: str | None


class AboutAnswer(BaseModel):
    """Whether nothing counts in this ledger, what time it is there, and who asks."""

    sandbox: bool
    now: datetime
    caller: CallerAnswer


class PositionAsked(Asked):
    """Whose partition; every partition without a user."""

    user: str | None = Field(None, min_length=1)


class PositionAnswer(BaseModel):
    """Where the journal ends: `PARTITION:ENTRY`, with commas between."""

    position: str = Field(examples=["0:17"])


class KeyRevoked(Asked):
    """An API key by its name, and the number of the newest record that the caller knows."""

    name: str
    expected: int = Field(ge=0)


class KeyAsked(KeyRevoked):
    """An API key as `ldp-budget api-key create` makes it."""

    scopes: list[str] = Field(examples=[["spend"]])
    policies: list[str] | None = None
    collections: list[str] | None = None
    share: str | None = None
    starts: str | None = Field(None, description="From when on it is good, with a time zone; null: at once.")
    expires: str | None = Field(None, description="Until when, exclusive; null: no end.")
    until: str | None = Field(None, description="When the earlier secrets of this name end; null: they do not.")
    hash: str = Field(description="The SHA-256 of the secret, in hexadecimal.")


class RecordAsked(Asked):
    """A record, and the number of the newest one that was known when it was decided on."""

    kind: str
    name: str
    body: dict[str, Any]
    expected: int = Field(ge=0)


@router.get("/v1/ledger", response_model=AboutAnswer, responses=documented())
def about(desk: Caller) -> Response:
    """Whether nothing counts in this ledger, what time it is there, and who asks; for any key, whatever it may do."""
    found = desk.accountant
    about = {"sandbox": found.sandbox, "now": found.now().isoformat(), "caller": found.caller._asdict()}
    return told(found.position(), about)


@router.post("/v1/ledger/position", response_model=PositionAnswer, responses=documented())
def position(asked: PositionAsked, desk: Reader) -> Response:
    """Where the journal ends, of one user's partition or of every partition."""
    found = desk.accountant.position(asked.user)
    return told(found, {"position": found})


@router.get("/v1/ledger/records", response_model=list[Row], responses=documented())
def records(desk: Reader, first: Annotated[int, Query(ge=1, description="From which number on.")] = 1) -> Response:
    """The administrative records of the ledger, such as which keys were made, in order."""
    at = desk.accountant.position()
    return told(at, [record.to_json() for record in desk.accountant.records(first)])


@router.post("/v1/ledger/records", response_model=Row, responses=documented("record-conflict"))
def record(asked: RecordAsked, desk: Caller) -> Response:
    """Add a record of a kind of your own. The journal keeps it; a newer record than `expected` is a conflict.

    The kinds that the library writes itself are refused.
    """
    added = desk.accountant.record(asked.kind, asked.name, asked.body, expected=asked.expected)
    return told(desk.accountant.position(), added.to_json())


@router.post(
    "/v1/ledger/keys", response_model=Row, responses=documented("record-conflict", "name-taken", "approval-conflict")
)
def make_key(asked: KeyAsked, desk: Caller) -> Response:
    """Make an API key, or a second secret for one, from the hash of its secret, which only the caller knows.

    A ledger that demands approvals refuses: who makes a key holds two.
    """
    body = asked.model_dump(exclude={"name", "expected"})
    added = ApiKeys(desk.accountant, fresh=0).record(asked.name, body, expected=asked.expected)
    return told(desk.accountant.position(), added.to_json())


@router.post("/v1/ledger/keys:revoke", response_model=Row, responses=documented("record-conflict", "unknown-name"))
def revoke_key(asked: KeyRevoked, desk: Caller) -> Response:
    """End an API key with all of its secrets."""
    added = ApiKeys(desk.accountant, fresh=0).record(asked.name, None, expected=asked.expected)
    return told(desk.accountant.position(), added.to_json())
