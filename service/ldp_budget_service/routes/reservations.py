"""`/v1/reservations`: charge now, decide later."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import Field

from ldp_budget.accounting.reservations import MOST_SECONDS

from ..answers import ReceiptAnswer, Row, answered, told
from ..asked import ChargeAsked, KeyHeader, required
from ..callers import Caller, Reader, router_of
from ..problems import documented
from .spends import check_bounds, terms

router = router_of(tags=["spending"])

MOST_ROWS = 1000


class ReservationAsked(ChargeAsked):
    """A charge that can be taken back until it expires."""

    expires: float = Field(3600, gt=0, le=MOST_SECONDS, description="Seconds; then it stays charged.")


@router.post(
    "/v1/reservations",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "budget-exceeded", "in-flight", "key-conflict"),
)
def reserve(asked: ReservationAsked, request: Request, desk: Caller, key: KeyHeader = None) -> Response:
    """Charge now, and decide within `expires` seconds: commit keeps the charge, void takes it back.

    What is not voided in time stays charged, for the report may be out already.
    """
    check_bounds(desk, asked)
    charge, key = asked.charge(desk), required(key)
    with request.app.state.in_flight.only(desk.key.name, asked.user, key):
        receipt = desk.accountant.reserve(asked.user, charge, key=key, expires=asked.expires, **terms(asked))
    return answered(desk.accountant, receipt, asked.user)


@router.get("/v1/reservations", response_model=list[Row], responses=documented())
def list_reservations(
    desk: Reader,
    user: Annotated[str | None, Query(min_length=1, description="Whose; everybody's without it.")] = None,
    most: Annotated[int, Query(ge=1, le=MOST_ROWS, description="How many, the newest first.")] = 20,
) -> Response:
    """The reservations that can still be committed or voided, newest first."""
    position = desk.accountant.position(user)
    return told(position, [row for row in desk.accountant.open_reservations(most, user=user) if desk.sees(row)])


@router.post(
    "/v1/reservations/{receipt:name}/commit",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "reservation-conflict"),
)
def commit(receipt: str, desk: Caller) -> Response:
    """Keep what a reservation charged. One that expired before is answered so, and stays charged as well."""
    desk.check_reservation(receipt)
    return answered(desk.accountant, desk.accountant.commit(receipt), None)


@router.post(
    "/v1/reservations/{receipt:name}/void",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "reservation-conflict"),
)
def void(receipt: str, desk: Caller) -> Response:
    """Give back what a reservation charged, while that is possible."""
    desk.check_reservation(receipt)
    return answered(desk.accountant, desk.accountant.void(receipt), None)
