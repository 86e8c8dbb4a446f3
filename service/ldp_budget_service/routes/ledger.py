"""The ledger itself: verification, journal, administrative records and usage statistics.

- `/v1/ledger`: counts, verification, the journal, its position, API keys and other administrative records.
- `/v1/overview`: usage statistics. They have numbers of users and never their names. The ledger aggregates its rows
  (see `ldp_budget.accounting.usage_stats`), and this process reuses a result for a few seconds: `Journal-Position`
  says how far a result goes. The statistics cover the whole ledger, so bound API keys are refused.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from ldp_budget.errors import LdpBudgetError
from ldp_budget.guarantees.guarantees import NO
from ldp_budget.registry.certification import checked_at
from ldp_budget.registry.collections import stored_mechanism
from ldp_budget_service.api_keys import ApiKeys

from ..auth import Caller, Reader, router_of
from ..error_codes import ServiceError
from ..observability.verification import Verifications
from ..problems import documented
from ..responses import DOCUMENTED, Row, ok_with_position, streamed
from ..schemas import Asked, Whole

router = router_of(tags=["ledger"])

MOST_USERS = 100_000


class StatsAnswer(BaseModel):
    """Counts of the ledger's contents, and its chain head."""

    model_config = ConfigDict(extra="allow")

    users: int
    entries: int
    head: str


class IntegrityAnswer(BaseModel):
    """Result of a verification: `ok`, and the problems in words.

    `acknowledged` has the problems that an operator has acknowledged on the ledger's host, if there are any.
    """

    ok: bool
    entries: int
    head: str
    problems: list[str]
    acknowledged: list[str] | None = None


class HeadAnswer(BaseModel):
    """The head of a checkpoint. Store it outside of the ledger."""

    head: str


class RepairAnswer(BaseModel):
    """`repaired` is true if an entry was dated later than now."""

    repaired: bool


class JournalAsked(Asked):
    """Users whose names to add to their entries."""

    users: list[Annotated[str, Field(min_length=1)]] = Field(max_length=MOST_USERS, examples=[["alice"]])


@router.get("/v1/ledger/stats", response_model=StatsAnswer, responses=documented())
def stats(desk: Reader) -> Response:
    """Return the counts of the ledger's contents, and its chain head (`head`).

    `charges` counts the priced mechanisms: the different mechanisms, with parameters and collection, ever charged.
    `entries_by_kind` counts the charges of users.
    """
    return ok_with_position(desk.position(), desk.accountant.stats())


@router.get("/v1/ledger/verify", response_model=IntegrityAnswer, responses=documented("in-flight"))
def verify(
    request: Request,
    desk: Reader,
    expect: Annotated[
        str | None, Query(max_length=1000, description="A `head` noted earlier: nothing before it may be gone.")
    ] = None,
) -> Response:
    """Verify the whole ledger: hash chains, sums, costs and row MACs.

    The time is proportional to the size of the ledger. Only one verification runs at a time.
    """
    position = desk.position()
    with only_verification(request):
        found = desk.accountant.verify(expect or None)
    return ok_with_position(position, found.to_json())


@contextmanager
def only_verification(request: Request) -> Iterator[None]:
    """Hold the turn to verify. Raises `in-flight` if another request holds it."""
    turn: threading.Lock = request.app.state.verifying
    if not turn.acquire(blocking=False):
        why = "another verification is in progress. Try again when it has ended."
        raise ServiceError("in-flight", why, {"Retry-After": "1"})
    try:
        yield
    finally:
        turn.release()


@router.get("/v1/ledger/journal", response_class=Response, responses=documented() | DOCUMENTED)
def journal(desk: Reader) -> Response:
    """Return every entry in order, from a consistent snapshot of the ledger.

    Users appear as the numbers of their accounts.
    """
    return streamed(desk.position(), desk.accountant.journal())


@router.post("/v1/ledger/journal", response_class=Response, responses=documented() | DOCUMENTED)
def named_journal(asked: JournalAsked, desk: Reader) -> Response:
    """Return every entry in order, as `GET` does. Entries of the given users also have their `user`."""
    return streamed(desk.position(), desk.accountant.journal(asked.users))


@router.post("/v1/ledger/checkpoint", response_model=HeadAnswer, responses=documented())
def checkpoint(desk: Caller) -> Response:
    """Write a checkpoint: the chain head of every partition.

    If nothing was written since the newest checkpoint, that one is returned.
    """
    head = desk.accountant.checkpoint()
    return ok_with_position(desk.position(), {"head": head})


@router.post("/v1/ledger/repair-clock", response_model=RepairAnswer, responses=documented())
def repair_clock(desk: Caller) -> Response:
    """Continue from the current time if the newest entries are dated later. The journal records the repair."""
    repaired = desk.accountant.repair_clock()
    return ok_with_position(desk.position(), {"repaired": repaired})


# -- administration -------------------------------------------------------------------------------------

housekeeping_router = router_of(tags=["ledger"])


class CallerAnswer(BaseModel):
    """The caller: the number and the name of the API key, and the sub-limit that it is bound to."""

    number: int
    name: str
    share: str | None


class AboutAnswer(BaseModel):
    """The ledger's sandbox flag and its time, and the caller."""

    sandbox: bool
    now: datetime
    caller: CallerAnswer


class PositionAsked(Asked):
    """The user whose partition is requested; every partition without a user."""

    user: str | None = Field(None, min_length=1)


class PositionAnswer(BaseModel):
    """The end of the journal: `PARTITION:ENTRY`, separated by commas."""

    position: str = Field(examples=["0:17"])


class KeyRevoked(Asked):
    """An API key by its name, and the number of the newest record that the caller knows."""

    name: str
    expected: Whole = Field(ge=0)


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
    """A record, and the number of the newest record that the caller knew."""

    kind: str
    name: str
    body: dict[str, Any]
    expected: Whole = Field(ge=0)


@housekeeping_router.get("/v1/ledger", response_model=AboutAnswer, responses=documented())
def about(desk: Caller) -> Response:
    """Return the ledger's sandbox flag and its time, and the caller; for any valid API key."""
    found = desk.accountant
    about = {"sandbox": found.sandbox, "now": found.now().isoformat(), "caller": found.caller._asdict()}
    return ok_with_position(desk.position(), about)


@housekeeping_router.post("/v1/ledger/position", response_model=PositionAnswer, responses=documented())
def position(asked: PositionAsked, desk: Reader) -> Response:
    """Return the end of the journal, of one user's partition or of every partition."""
    found = desk.position(asked.user)
    return ok_with_position(found, {"position": found})


@housekeeping_router.get("/v1/ledger/records", response_model=list[Row], responses=documented())
def records(desk: Reader, first: Annotated[int, Query(ge=1, description="From which number on.")] = 1) -> Response:
    """Return the administrative records of the ledger, such as created API keys, in order."""
    at = desk.position()
    return ok_with_position(at, [record.to_json() for record in desk.accountant.records(first)])


@housekeeping_router.post("/v1/ledger/records", response_model=Row, responses=documented("record-conflict"))
def record(asked: RecordAsked, desk: Caller) -> Response:
    """Add a record of your own kind. The journal keeps it. A record newer than `expected` is a conflict.

    The library's own kinds are refused.
    """
    added = desk.accountant.record(asked.kind, asked.name, asked.body, expected=asked.expected)
    return ok_with_position(desk.position(), added.to_json())


@housekeeping_router.post(
    "/v1/ledger/keys", response_model=Row, responses=documented("record-conflict", "name-taken", "approval-conflict")
)
def make_key(asked: KeyAsked, desk: Caller) -> Response:
    """Create an API key, or a second secret for one, from the hash of its secret. Only the caller knows the secret.

    A ledger that requires approvals refuses this, because the creator of a key would hold two keys.
    """
    body = asked.model_dump(exclude={"name", "expected"})
    added = ApiKeys(desk.accountant, fresh=0).record(asked.name, body, expected=asked.expected)
    return ok_with_position(desk.position(), added.to_json())


@housekeeping_router.post(
    "/v1/ledger/keys:revoke", response_model=Row, responses=documented("record-conflict", "unknown-name")
)
def revoke_key(asked: KeyRevoked, desk: Caller) -> Response:
    """Revoke an API key with all of its secrets."""
    added = ApiKeys(desk.accountant, fresh=0).record(asked.name, None, expected=asked.expected)
    return ok_with_position(desk.position(), added.to_json())


# -- usage statistics -----------------------------------------------------------------------------------

overview_router = router_of(prefix="/v1/overview", tags=["overview"])

MOST_DAYS = 731

Days = Annotated[int, Query(ge=1, le=MOST_DAYS, description="How many days, today the last of them (UTC).")]


class RowsAnswer(BaseModel):
    """Rows of statistics."""

    rows: list[Row]


class SummaryAnswer(BaseModel):
    """The ledger in a few numbers."""

    totals: dict[str, int] = Field(description="Since the ledger was made.")
    recent: dict[str, int] = Field(description="In the last 24 hours.")
    seen: dict[str, int] = Field(
        description="How charges ended that this instance was asked for since it was started, by outcome."
    )
    ledger: dict[str, Any] = Field(description="Where it ends; `head` is what people note.")


@overview_router.get("", response_model=SummaryAnswer, responses=documented())
def summary(request: Request, desk: Reader) -> Response:
    """Return the number of users, charges and refusals, the ledger's chain head and the last verification."""
    found, verified = request.app.state.usage.get("summary"), request.app.state.verifications.last()
    seen, sandbox = request.app.state.metrics.asked(), desk.accountant.sandbox
    ledger = {"sandbox": sandbox, "verified": None if verified is None else verified.to_json()}
    return ok_with_position(
        found.position, {**found.value, "seen": seen, "ledger": {**found.value["ledger"], **ledger}}
    )


@overview_router.get("/activity", response_model=RowsAnswer, responses=documented())
def activity(request: Request, desk: Reader, days: Days = 30) -> Response:
    """Return by day the number of charged users, charges, reports and refused requests.

    `users` counts each user once a day; `voided` counts reports that were given back. The ledger counts refusals with
    an idempotency key. Of the refusals in a run, it stores only their number.
    """
    return _shown(request, "days", days)


@overview_router.get("/refusals", response_model=RowsAnswer, responses=documented())
def refusals(request: Request, desk: Reader, days: Days = 30) -> Response:
    """Return by day, policy and limits the number of refused requests that the ledger knows."""
    return _shown(request, "refusals", days)


@overview_router.get("/limits", response_model=RowsAnswer, responses=documented())
def limits(request: Request, desk: Reader) -> Response:
    """Return for each limit of the newest policies the number of users by used percentage, 0 to 100."""
    return _shown(request, "limits")


@overview_router.get("/mechanisms", response_model=RowsAnswer, responses=documented())
def mechanisms(request: Request, desk: Reader) -> Response:
    """Return the charges by mechanism and collection, and how the guarantee of these parameters was checked here."""
    found = request.app.state.usage.get("charged")
    return ok_with_position(found.position, {"rows": [{**row, "checked": _checked(row)} for row in found.value]})


def _checked(row: dict[str, Any]) -> str:
    try:
        return checked_at(stored_mechanism(row["mechanism"])(**json.loads(row["declared"])))
    except (LdpBudgetError, TypeError, ValueError):
        return NO  # not installed, or these parameters are no longer valid


def _shown(request: Request, name: str, *given: Any) -> Response:
    """Return the rows of one of the statistics."""
    found = request.app.state.usage.get(name, *given)
    return ok_with_position(found.position, {"rows": found.value})


# -- verifications --------------------------------------------------------------------------------------


@router.post("/v1/ledger/verifications", response_model=IntegrityAnswer, responses=documented("in-flight"))
def verify_and_record(request: Request, desk: Caller) -> Response:
    """Verify the whole ledger as `GET /v1/ledger/verify` does, and record the result in the ledger."""
    with only_verification(request):
        found = Verifications(desk.accountant).run()
    return ok_with_position(desk.position(), found.to_json())
