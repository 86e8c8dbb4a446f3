"""`/v1/alerts`: what whoever runs the service was told, and whether they would be. And verifications on record."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from ..answers import Row, told
from ..callers import Caller, Desk, Reader, router_of
from ..problems import documented, json_answer
from .ledger import IntegrityAnswer

router = router_of(tags=["watching"])


class AlertsAnswer(BaseModel):
    """Alerts, newest first; those that wait, and of the others the newest hundred."""

    configured: bool = Field(description="Whether a webhook was set up: only whoever runs the service can.")
    rules: dict[str, Any] = Field(description="What is worth an alert.")
    rows: list[Row]


@router.get("/v1/alerts", response_model=AlertsAnswer, responses=documented())
def alerts(request: Request, desk: Reader) -> Response:
    """The alerts that were raised, with what has become of each: waiting, sent or given up."""
    return shown(request, desk)


@router.get("/v1/officer/alerts", response_model=AlertsAnswer, responses=documented())
def officers_alerts(request: Request, desk: Caller) -> Response:
    """The same, for whoever may set policies and may not read all the figures."""
    return shown(request, desk)


def shown(request: Request, desk: Desk) -> Response:
    """The alerts, and what is worth one."""
    watchman, position = request.app.state.watchman, desk.accountant.position()
    rules = watchman.rules._asdict()
    rows = [raised.to_json() for raised in watchman.outbox.newest()]
    return told(position, {"configured": watchman.webhook is not None, "rules": rules, "rows": rows})


@router.post("/v1/alerts:test", status_code=202, response_model=Row, responses=documented("not-supported"))
def test_alert(request: Request, desk: Caller) -> Response:
    """Send an alert that says that it is a test. It goes the way of all, so what becomes of it stands among them."""
    raised = request.app.state.watchman.test(desk.accountant)
    return json_answer(raised.to_json(), 202)


@router.post("/v1/ledger/verifications", response_model=IntegrityAnswer, responses=documented("in-flight"))
def verify(request: Request, desk: Caller) -> Response:
    """Work everything out again, as `GET /v1/ledger/verify` does, and put down in the ledger what came of it."""
    with request.app.state.in_flight.only("verify"):
        found = request.app.state.watchman.verifications.run(desk.accountant)
    return told(desk.accountant.position(), found.to_json())
