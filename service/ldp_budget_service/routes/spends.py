"""`POST /v1/spends`: charge one user, or say what it would cost."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import Field

from ldp_budget.remote.forms import receipt_form

from ..answers import ReceiptAnswer, answered, told
from ..asked import ChargeAsked, KeyHeader, required
from ..callers import Desk, Spender
from ..problems import documented

router = APIRouter(tags=["spending"])


class SpendAsked(ChargeAsked):
    """A charge, or with `dry_run` the question what it would cost."""

    dry_run: bool = Field(False, description="Say what it would cost and whether it fits; change nothing.")


@router.post(
    "/v1/spends",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "budget-exceeded", "in-flight", "key-conflict"),
)
def spend(asked: SpendAsked, request: Request, desk: Spender, key: KeyHeader = None) -> Response:
    """Charge reports of a mechanism or a collection to a user, or refuse with 409 and every limit that failed."""
    check_bounds(desk, asked)
    charge = asked.charge(desk)
    if asked.dry_run:
        position = desk.accountant.position(asked.user)
        quoted = desk.accountant.quote(
            asked.user, charge, reports=asked.reports, label=asked.label, policy=asked.policy
        )
        return told(position, receipt_form(quoted))
    key = required(key)
    with request.app.state.in_flight.only(desk.key.name, asked.user, key):
        receipt = desk.accountant.spend(asked.user, charge, key=key, **terms(asked))
    return answered(desk.accountant, receipt, asked.user)


def check_bounds(desk: Desk, asked: ChargeAsked) -> None:
    """Refuse what the caller's key is not bound to."""
    desk.check_policy(asked.policy)
    desk.check_collection(asked.collection)


def terms(asked: ChargeAsked) -> dict[str, Any]:
    """What is said of a charge beside who and what."""
    return asked.model_dump(include={"reports", "label", "digest", "note", "policy"})
