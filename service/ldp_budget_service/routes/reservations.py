"""Reservations: charge now, and commit or void later."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Annotated

from fastapi import Query
from fastapi.responses import Response
from pydantic import Field

from ldp_budget.accounting.receipts import Receipt
from ldp_budget.accounting.reservation_settlement import MOST_SECONDS
from ldp_budget.errors import ReservationConflict
from ldp_budget.ledger.models import COMMITTED, VOIDED

from ..auth import AuthContext, Caller, Reader, router_of
from ..problems import documented
from ..responses import ReceiptAnswer, Row, ok_with_position, receipt_response
from ..schemas import ChargeAsked, KeyHeader, required
from .spends import check_bounds, terms

router = router_of(tags=["spending"])

MOST_ROWS = 1000


def open_reservations(desk: AuthContext, user: str | None, most: int | None) -> list[Row]:
    """Return the newest of the open reservations that the caller may see: `most`, however many others there are."""
    if not desk.bound:
        return desk.accountant.open_reservations(most, user=user)
    rows = filter(desk.sees, desk.accountant.open_reservations(None, user=user))
    return [dict(desk.row(row)) for row in islice(rows, most)]


class ReservationAsked(ChargeAsked):
    """A charge that can be voided until it expires."""

    expires: float = Field(3600, strict=True, gt=0, le=MOST_SECONDS, description="Seconds; then it stays charged.")


@router.post(
    "/v1/reservations",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "budget-exceeded", "key-conflict"),
)
def reserve(asked: ReservationAsked, desk: Caller, key: KeyHeader = None) -> Response:
    """Charge now, and decide within `expires` seconds: commit keeps the charge, void takes it back.

    A reservation that is not voided in time stays charged, because the report may have been sent.
    """
    check_bounds(desk, asked)
    charge, key = asked.charge(desk), required(key)
    receipt = desk.accountant.reserve(asked.user, charge, key=key, expires=asked.expires, **terms(asked, charge))
    return receipt_response(desk, receipt)


@router.get("/v1/reservations", response_model=list[Row], responses=documented())
def list_reservations(
    desk: Reader,
    user: Annotated[str | None, Query(min_length=1, description="The user; by default all users.")] = None,
    most: Annotated[int, Query(ge=1, le=MOST_ROWS, description="How many, the newest first.")] = 20,
) -> Response:
    """Return the reservations that can still be committed or voided, newest first."""
    return ok_with_position(desk.position(user), open_reservations(desk, user, most))


@router.post(
    "/v1/reservations/{receipt:name}/commit",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "reservation-conflict"),
)
def commit(receipt: str, desk: Caller) -> Response:
    """Keep the charge of a reservation. An expired reservation is reported as expired and also stays charged."""
    return _ended(desk, receipt, desk.accountant.commit, COMMITTED)


@router.post(
    "/v1/reservations/{receipt:name}/void",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "reservation-conflict"),
)
def void(receipt: str, desk: Caller) -> Response:
    """Give back the charge of a reservation, while that is possible."""
    return _ended(desk, receipt, desk.accountant.void, VOIDED)


def _ended(desk: AuthContext, receipt: str, end: Callable[[str], Receipt], how: str) -> Response:
    """End a reservation. An error names the receipt as the caller sent it: a bound key has a hidden one."""
    try:
        return receipt_response(desk, end(desk.reservation(receipt)))
    except ReservationConflict as error:
        raise ReservationConflict(receipt, error.state, how) from None
