"""What callers are answered: receipts as the commands' `--json` prints them, and how far the journal is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict

from ldp_budget.accounting.receipts import Receipt

from .problems import refusal

if TYPE_CHECKING:
    from .callers import Desk

POSITION = "Journal-Position"
REPLAYED = "Idempotency-Replayed"


class ReceiptAnswer(BaseModel):
    """A receipt: what was asked and charged, and how every limit stands."""

    model_config = ConfigDict(extra="allow")

    status: str
    repeated: bool
    receipt: str | None
    user: str | None
    policy: str
    cost: dict[str, float | None]
    limits: list[dict[str, Any]]
    binding: list[str]
    affordable_reports: int | None


def answered(desk: Desk, receipt: Receipt, user: str | None) -> Response:
    """The answer that a receipt is: 200, or 409 for a refusal and for a reservation that was voided since."""
    headers = {POSITION: desk.accountant.position(user)}
    if receipt.repeated:
        headers[REPLAYED] = "true"
    if not receipt and receipt.status == "refused":
        return refusal(receipt.to_json(), receipt.explain(), headers)
    return JSONResponse(receipt.to_json(), headers=headers)
