"""`/v1/ledger`: what it holds, whether it is as it was written, and its journal.

`/v1/ledger`: what it is, how far its journal goes, and its administrative records.

`/v1/overview`: what the ledger adds up to. Numbers of users, and never who they are.

The figures come from an overview that this process keeps (see `ldp_budget.accounting.usage_stats`): an answer takes at
most about a second, and says in `progress` how much of the ledger is in it. They are about the whole ledger, so a key
that is bound to some policies or collections is turned away.

`/v1/alerts`: what whoever runs the service was told, and whether they would be. And verifications on record.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from ldp_budget.accounting.api_keys import ApiKeys
from ldp_budget.errors import LdpBudgetError
from ldp_budget.guarantees.guarantees import NO
from ldp_budget.registry.certification import checked_at
from ldp_budget.registry.plugins import mechanism

from ..auth import AuthContext, Caller, Reader, router_of
from ..problems import documented, json_answer
from ..responses import DOCUMENTED, Row, ok_with_position, streamed
from ..schemas import Asked

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
    return ok_with_position(desk.accountant.position(), desk.accountant.stats())


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
    return ok_with_position(position, found.to_json())


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
    return ok_with_position(desk.accountant.position(), {"head": head})


@router.post("/v1/ledger/repair-clock", response_model=RepairAnswer, responses=documented())
def repair_clock(desk: Caller) -> Response:
    """Go on from the clock as it is now, where the newest entries are dated later. The journal says so."""
    repaired = desk.accountant.repair_clock()
    return ok_with_position(desk.accountant.position(), {"repaired": repaired})


housekeeping_router = router_of(tags=["ledger"])


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


@housekeeping_router.get("/v1/ledger", response_model=AboutAnswer, responses=documented())
def about(desk: Caller) -> Response:
    """Whether nothing counts in this ledger, what time it is there, and who asks; for any key, whatever it may do."""
    found = desk.accountant
    about = {"sandbox": found.sandbox, "now": found.now().isoformat(), "caller": found.caller._asdict()}
    return ok_with_position(found.position(), about)


@housekeeping_router.post("/v1/ledger/position", response_model=PositionAnswer, responses=documented())
def position(asked: PositionAsked, desk: Reader) -> Response:
    """Where the journal ends, of one user's partition or of every partition."""
    found = desk.accountant.position(asked.user)
    return ok_with_position(found, {"position": found})


@housekeeping_router.get("/v1/ledger/records", response_model=list[Row], responses=documented())
def records(desk: Reader, first: Annotated[int, Query(ge=1, description="From which number on.")] = 1) -> Response:
    """The administrative records of the ledger, such as which keys were made, in order."""
    at = desk.accountant.position()
    return ok_with_position(at, [record.to_json() for record in desk.accountant.records(first)])


@housekeeping_router.post("/v1/ledger/records", response_model=Row, responses=documented("record-conflict"))
def record(asked: RecordAsked, desk: Caller) -> Response:
    """Add a record of a kind of your own. The journal keeps it; a newer record than `expected` is a conflict.

    The kinds that the library writes itself are refused.
    """
    added = desk.accountant.record(asked.kind, asked.name, asked.body, expected=asked.expected)
    return ok_with_position(desk.accountant.position(), added.to_json())


@housekeeping_router.post(
    "/v1/ledger/keys", response_model=Row, responses=documented("record-conflict", "name-taken", "approval-conflict")
)
def make_key(asked: KeyAsked, desk: Caller) -> Response:
    """Make an API key, or a second secret for one, from the hash of its secret, which only the caller knows.

    A ledger that demands approvals refuses: who makes a key holds two.
    """
    body = asked.model_dump(exclude={"name", "expected"})
    added = ApiKeys(desk.accountant, fresh=0).record(asked.name, body, expected=asked.expected)
    return ok_with_position(desk.accountant.position(), added.to_json())


@housekeeping_router.post(
    "/v1/ledger/keys:revoke", response_model=Row, responses=documented("record-conflict", "unknown-name")
)
def revoke_key(asked: KeyRevoked, desk: Caller) -> Response:
    """End an API key with all of its secrets."""
    added = ApiKeys(desk.accountant, fresh=0).record(asked.name, None, expected=asked.expected)
    return ok_with_position(desk.accountant.position(), added.to_json())


overview_router = router_of(prefix="/v1/overview", tags=["overview"])

SECONDS = 1.0
"""How long an answer may read on in the ledger."""
MOST_DAYS = 731
RECENT_HOURS = 24

Days = Annotated[int, Query(ge=1, le=MOST_DAYS, description="How many days, today the last of them (UTC).")]


class Progress(BaseModel):
    """How many entries and accounts the figures hold, of how many."""

    done: int
    total: int
    complete: bool


class RowsAnswer(BaseModel):
    """Rows, and how much of the ledger they are about."""

    progress: Progress
    rows: list[Row]


class SummaryAnswer(BaseModel):
    """The ledger in a few numbers."""

    progress: Progress
    totals: dict[str, int] = Field(description="Since the ledger was made.")
    recent: dict[str, int] = Field(description="In the last 24 hours.")
    seen: dict[str, int] = Field(
        description="How charges ended that this instance was asked for since it was started, by outcome."
    )
    ledger: dict[str, Any] = Field(description="Where it ends; `head` is what people note.")


@overview_router.get("", response_model=SummaryAnswer, responses=documented())
def summary(request: Request, desk: Reader) -> Response:
    """How many users, charges and refusals there are, where the ledger ends, and when it was verified last."""
    found = _Look(request, desk)
    overview, verified = found.overview, request.app.state.watchman.verifications.last()
    return found.told(
        {
            "totals": overview.totals(),
            "recent": {"hours": RECENT_HOURS, **overview.recent(RECENT_HOURS)},
            "seen": request.app.state.metrics.asked(),
            "ledger": {
                **overview.head(),
                "sandbox": desk.accountant.sandbox,
                "verified": None if verified is None else verified.to_json(),
            },
        }
    )


@overview_router.get("/activity", response_model=RowsAnswer, responses=documented())
def activity(request: Request, desk: Reader, days: Days = 30) -> Response:
    """By day: how many users were charged, how often and for how many reports, and how many requests were refused.

    `users` counts each user once a day; `voided` are reports that were given back. Of refusals the ledger knows
    those under an idempotency key, but for bulk runs, of which it knows only how many there were.
    """
    found = _Look(request, desk)
    return found.rows(found.overview.days(days))


@overview_router.get("/refusals", response_model=RowsAnswer, responses=documented())
def refusals(request: Request, desk: Reader, days: Days = 30) -> Response:
    """By day, policy and limit, or limits: how many requests were refused, as far as the ledger knows."""
    found = _Look(request, desk)
    return found.rows(found.overview.refusals(days))


@overview_router.get("/limits", response_model=RowsAnswer, responses=documented())
def limits(request: Request, desk: Reader) -> Response:
    """For each limit of the newest policies: how many users have used how many whole percent of it, 0 to 100."""
    found = _Look(request, desk)
    return found.rows(found.overview.limits())


@overview_router.get("/mechanisms", response_model=RowsAnswer, responses=documented())
def mechanisms(request: Request, desk: Reader) -> Response:
    """What was charged, by mechanism and collection, and how the promise for these parameters was checked here."""
    found = _Look(request, desk)
    return found.rows([{**row, "checked": _checked(row)} for row in found.overview.charged()])


def _checked(row: dict[str, Any]) -> str:
    try:
        return checked_at(mechanism(row["mechanism"])(**json.loads(row["declared"])))
    except (LdpBudgetError, TypeError, ValueError):
        return NO  # not installed, or no longer with these parameters


class _Look:
    """One look at the overview of this process, by somebody who may have it."""

    def __init__(self, request: Request, desk: AuthContext) -> None:
        # Whatever was written by then is in the figures, once they are complete.
        self._position = desk.accountant.position()
        self.overview = request.app.state.overview
        complete = self.overview.look(SECONDS)
        done, total = self.overview.progress
        self._progress = {"done": done, "total": total, "complete": complete}

    def told(self, content: dict[str, Any]) -> Response:
        """An answer with how far it goes."""
        return ok_with_position(self._position, {"progress": self._progress, **content})

    def rows(self, rows: list[dict[str, Any]]) -> Response:
        """Rows with how far they go."""
        return self.told({"rows": rows})


alerts_router = router_of(tags=["watching"])


class AlertsAnswer(BaseModel):
    """Alerts, newest first; those that wait, and of the others the newest hundred."""

    configured: bool = Field(description="Whether a webhook was set up: only whoever runs the service can.")
    rules: dict[str, Any] = Field(description="What is worth an alert.")
    rows: list[Row]


@alerts_router.get("/v1/alerts", response_model=AlertsAnswer, responses=documented())
def alerts(request: Request, desk: Reader) -> Response:
    """The alerts that were raised, with what has become of each: waiting, sent or given up."""
    return shown(request, desk)


@alerts_router.get("/v1/officer/alerts", response_model=AlertsAnswer, responses=documented())
def officers_alerts(request: Request, desk: Caller) -> Response:
    """The same, for whoever may set policies and may not read all the figures."""
    return shown(request, desk)


def shown(request: Request, desk: AuthContext) -> Response:
    """The alerts, and what is worth one."""
    watchman, position = request.app.state.watchman, desk.accountant.position()
    rules = watchman.rules._asdict()
    rows = [raised.to_json() for raised in watchman.outbox.newest()]
    return ok_with_position(position, {"configured": watchman.webhook is not None, "rules": rules, "rows": rows})


@alerts_router.post("/v1/alerts:test", status_code=202, response_model=Row, responses=documented("not-supported"))
def test_alert(request: Request, desk: Caller) -> Response:
    """Send an alert that says that it is a test. It goes the way of all, so what becomes of it stands among them."""
    raised = request.app.state.watchman.test(desk.accountant)
    return json_answer(raised.to_json(), 202)


@alerts_router.post("/v1/ledger/verifications", response_model=IntegrityAnswer, responses=documented("in-flight"))
def verify_and_record(request: Request, desk: Caller) -> Response:
    """Work everything out again, as `GET /v1/ledger/verify` does, and put down in the ledger what came of it."""
    with request.app.state.in_flight.only("verify"):
        found = request.app.state.watchman.verifications.run(desk.accountant)
    return ok_with_position(desk.accountant.position(), found.to_json())
