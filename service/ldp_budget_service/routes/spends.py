"""`POST /v1/spends`: charge one user, or say what it would cost."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import Field

from ldp_budget.accounting.lines import Spend
from ldp_budget.api.schemas import receipt_form

from ..answers import ReceiptAnswer, answered_at, told
from ..asked import ChargeAsked, KeyHeader, required
from ..callers import Caller, Desk, router_of
from ..problems import documented

router = router_of(tags=["spending"])


class SpendAsked(ChargeAsked):
    """A charge, or with `dry_run` the question what it would cost."""

    dry_run: bool = Field(False, description="Say what it would cost and whether it fits; change nothing.")


@router.post(
    "/v1/spends",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "budget-exceeded", "in-flight", "key-conflict"),
)
async def spend(asked: SpendAsked, request: Request, desk: Caller, key: KeyHeader = None) -> Response:
    """Charge reports of a mechanism or a collection to a user, or refuse with 409 and every limit that failed."""
    check_bounds(desk, asked)
    if asked.dry_run:
        return await run_in_threadpool(_quoted, desk, asked)
    key = required(key)
    charge = asked.charge(desk) if asked.at_hand(desk) else await run_in_threadpool(asked.charge, desk)
    with request.app.state.in_flight.only(desk.key.name, asked.user, key):
        charged = Spend(user=asked.user, mechanism=charge, key=key, **terms(asked))
        receipt, position = await request.app.state.counter.spend(desk.accountant, charged)
    return answered_at(position, receipt)


def _quoted(desk: Desk, asked: SpendAsked) -> Response:
    position = desk.accountant.position(asked.user)
    quoted = desk.accountant.quote(
        asked.user, asked.charge(desk), reports=asked.reports, label=asked.label, policy=asked.policy
    )
    return told(position, receipt_form(quoted))


def check_bounds(desk: Desk, asked: ChargeAsked) -> None:
    """Refuse what the caller's key is not bound to."""
    desk.check_policy(asked.policy)
    desk.check_collection(asked.collection)


def terms(asked: ChargeAsked) -> dict[str, Any]:
    """What is said of a charge beside who and what."""
    return asked.model_dump(include={"reports", "label", "digest", "note", "policy"})
