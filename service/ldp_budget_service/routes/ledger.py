"""`/v1/ledger`: what it holds, whether it is as it was written, and its journal."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from ..answers import told
from ..asked import Asked
from ..callers import Caller, Reader, router_of
from ..ndjson import DOCUMENTED, streamed
from ..problems import documented

router = router_of(tags=["ledger"])

MOST_USERS = 100_000


class StatsAnswer(BaseModel):
    """Counts of what the ledger holds, and its newest link."""

    model_config = ConfigDict(extra="allow")

    users: int
    entries: int
    head: str


class IntegrityAnswer(BaseModel):
    """Whether the ledger is as it was written, and what is not, in words."""

    ok: bool
    entries: int
    head: str
    problems: list[str]


class HeadAnswer(BaseModel):
    """The head of a checkpoint, to be noted elsewhere."""

    head: str


class RepairAnswer(BaseModel):
    """Whether anything was dated later than now."""

    repaired: bool


class JournalAsked(Asked):
    """Users whose names the entries are to bear."""

    users: list[Annotated[str, Field(min_length=1)]] = Field(max_length=MOST_USERS, examples=[["alice"]])


@router.get("/v1/ledger/stats", response_model=StatsAnswer, responses=documented())
def stats(desk: Reader) -> Response:
    """The counts of what the ledger holds, and its newest link (`head`)."""
    return told(desk.accountant.position(), desk.accountant.stats())


@router.get("/v1/ledger/verify", response_model=IntegrityAnswer, responses=documented("in-flight"))
def verify(
    request: Request,
    desk: Reader,
    expect: Annotated[
        str | None, Query(max_length=1000, description="A `head` noted earlier: nothing before it may be gone.")
    ] = None,
) -> Response:
    """Work everything out again: links, sums, costs, seals. It takes as long as the ledger is; one at a time."""
    position = desk.accountant.position()
    with request.app.state.in_flight.only("verify"):
        found = desk.accountant.verify(expect or None)
    return told(position, found.to_json())


@router.get("/v1/ledger/journal", response_class=Response, responses=documented() | DOCUMENTED)
def journal(desk: Reader) -> Response:
    """Every entry in order, as one moment of the ledger saw it; users appear as the numbers of their accounts."""
    return streamed(desk.accountant.position(), desk.accountant.journal())


@router.post("/v1/ledger/journal", response_class=Response, responses=documented() | DOCUMENTED)
def named_journal(asked: JournalAsked, desk: Reader) -> Response:
    """The same, in which each entry also says the `user`, if it is one of these whose account it is."""
    return streamed(desk.accountant.position(), desk.accountant.journal(asked.users))


@router.post("/v1/ledger/checkpoint", response_model=HeadAnswer, responses=documented())
def checkpoint(desk: Caller) -> Response:
    """Put down where every partition ends. If nothing was written since the newest checkpoint, that is the one."""
    head = desk.accountant.checkpoint()
    return told(desk.accountant.position(), {"head": head})


@router.post("/v1/ledger/repair-clock", response_model=RepairAnswer, responses=documented())
def repair_clock(desk: Caller) -> Response:
    """Go on from the clock as it is now, where the newest entries are dated later. The journal says so."""
    repaired = desk.accountant.repair_clock()
    return told(desk.accountant.position(), {"repaired": repaired})
