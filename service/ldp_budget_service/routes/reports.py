"""`POST /v1/collections/{name}/reports`: a report, as a device has drawn it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Header, Request
from fastapi.responses import Response

from ldp_budget import ReportFileError

from ..answers import POSITION, REPLAYED, ReceiptAnswer
from ..asked import KeyHeader, required
from ..problems import ServiceError, documented, json_answer, refusal
from ..respondents import Invited

router = APIRouter(tags=["reports"])

RAW = "application/octet-stream"


@router.post(
    "/v1/collections/{name:name}/reports",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "budget-exceeded", "in-flight", "key-conflict", "wrong-collection"),
)
def take(
    name: str,
    request: Request,
    invited: Invited,
    report: Annotated[bytes, Body(media_type=RAW, description="The bytes that the client drew.")],
    digest: Annotated[str, Header(alias="X-Collection", description="The digest of the definition drawn from.")],
    key: KeyHeader = None,
    label: Annotated[
        str | None, Header(alias="X-Label", description="Of a memoised report: which draw it repeats.")
    ] = None,
) -> Response:
    """Check a report, charge the respondent for it, and keep it; or refuse with 409 and every limit that failed."""
    invited.check_collection(name)
    key = required(key)
    invited.check_key(key)
    if digest != invited.digest:
        why = f"this is a report of the definition {digest[:64]}; the collection is {invited.digest}"
        raise ServiceError("wrong-collection", why)
    if request.app.state.settings.reports is None:
        raise ReportFileError("reports", "this service takes none")
    inbox = request.app.state.inboxes.of(invited.collection)
    with request.app.state.in_flight.only("respondent", invited.user, key):
        receipt = inbox.take(invited.user, key, report, label=label)
    headers = {POSITION: invited.accountant.position(invited.user)}
    if receipt.repeated:
        headers[REPLAYED] = "true"
    if not receipt:
        return refusal(receipt.to_json(), receipt.explain(), headers)
    return json_answer(receipt.to_json(), headers=headers)
