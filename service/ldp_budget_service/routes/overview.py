"""`/v1/overview`: what the ledger adds up to. Numbers of users, and never who they are.

The figures come from an overview that this process keeps (see `ldp_budget.accounting.overview`): an answer takes at
most about a second, and says in `progress` how much of the ledger is in it. They are about the whole ledger, so a key
that is bound to some policies or collections is turned away.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from ldp_budget.catalogue.certificates import checked_at
from ldp_budget.catalogue.plugins import mechanism
from ldp_budget.errors import LdpBudgetError
from ldp_budget.guarantees.evidence import NO

from ..answers import Row, told
from ..callers import Desk, Reader, router_of
from ..problems import documented

router = router_of(prefix="/v1/overview", tags=["overview"])

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


@router.get("", response_model=SummaryAnswer, responses=documented())
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


@router.get("/activity", response_model=RowsAnswer, responses=documented())
def activity(request: Request, desk: Reader, days: Days = 30) -> Response:
    """By day: how many users were charged, how often and for how many reports, and how many requests were refused.

    `users` counts each user once a day; `voided` are reports that were given back. Of refusals the ledger knows
    those under an idempotency key, but for bulk runs, of which it knows only how many there were.
    """
    found = _Look(request, desk)
    return found.rows(found.overview.days(days))


@router.get("/refusals", response_model=RowsAnswer, responses=documented())
def refusals(request: Request, desk: Reader, days: Days = 30) -> Response:
    """By day, policy and limit, or limits: how many requests were refused, as far as the ledger knows."""
    found = _Look(request, desk)
    return found.rows(found.overview.refusals(days))


@router.get("/limits", response_model=RowsAnswer, responses=documented())
def limits(request: Request, desk: Reader) -> Response:
    """For each limit of the newest policies: how many users have used how many whole percent of it, 0 to 100."""
    found = _Look(request, desk)
    return found.rows(found.overview.limits())


@router.get("/mechanisms", response_model=RowsAnswer, responses=documented())
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

    def __init__(self, request: Request, desk: Desk) -> None:
        # Whatever was written by then is in the figures, once they are complete.
        self._position = desk.accountant.position()
        self.overview = request.app.state.overview
        complete = self.overview.look(SECONDS)
        done, total = self.overview.progress
        self._progress = {"done": done, "total": total, "complete": complete}

    def told(self, content: dict[str, Any]) -> Response:
        """An answer with how far it goes."""
        return told(self._position, {"progress": self._progress, **content})

    def rows(self, rows: list[dict[str, Any]]) -> Response:
        """Rows with how far they go."""
        return self.told({"rows": rows})
