"""Responses: receipts in the format of the commands' `--json`, with the journal's position in a header.

Long lists are streamed as NDJSON: one JSON object per line, any number of lines, constant memory.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from ldp_budget import LdpBudgetError, UserErased
from ldp_budget.accounting.receipts import Receipt
from ldp_budget.api.schemas import MOST_ENTRIES, NEXT_ENTRY, POSITION, receipt_form

from . import request_context
from .error_codes import as_json, problem_of
from .problems import json_answer, refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .auth import AuthContext


Row = dict[str, Any]
"""A row in the format of the commands' `--json`."""
FIRST = Field(1, ge=1, le=2**62, description="The number of the entry from which on.")
MOST = Field(
    MOST_ENTRIES,
    ge=1,
    le=MOST_ENTRIES,
    description=f"How many entries; `{NEXT_ENTRY}` says where more begin.",
)
REPLAYED = "Idempotency-Replayed"


def history_response(desk: AuthContext, user: str, first: int, most: int) -> Response:
    """Return a part of a user's history, reduced to the rows that the caller's key may see.

    A bound key does not learn of an erasure: the user's charges may all be under policies that the key cannot see.
    """
    position = desk.accountant.position(user)
    try:
        rows = desk.accountant.history(user, first=first, most=most)
    except UserErased:
        if not desk.bound:
            raise
        rows = []
    following = {NEXT_ENTRY: str(rows[-1]["entry"] + 1)} if len(rows) == most else {}
    return ok_with_position(position, [row for row in rows if desk.sees(row)], following)


class ReceiptAnswer(BaseModel):
    """A receipt: the request, the charge, and the state of every limit."""

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
    units: dict[str, Any] = Field(
        {}, description="What the rest has rounded, exactly: whole units of 1e-9 of ε, 1e-18 of δ, 1e-12 of the rest."
    )


def ok_with_position(position: str, content: Any, headers: Mapping[str, str] | None = None) -> Response:
    """Return a 200 response with the journal's position.

    The data read is no older than that position, and the data written is included in it.
    """
    return json_answer(content, headers={POSITION: position, **(headers or {})})


def receipt_response(receipt: Receipt) -> Response:
    """Return the response for a receipt: 200, or 409 for a refusal and for a reservation that was voided since."""
    request_context.count([receipt])
    headers = {POSITION: receipt.position}
    if receipt.repeated:
        headers[REPLAYED] = "true"
    if not receipt and receipt.status == "refused":
        return refusal(receipt_form(receipt), receipt.explain(), headers)
    return json_answer(receipt_form(receipt), headers=headers)


# -- NDJSON ---------------------------------------------------------------------------------------------

MEDIA_TYPE = "application/x-ndjson"
_TOGETHER = 500

DOCUMENTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A line of JSON for each row. If an error ends the rows early, the last line is a `problem`.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
    }
}


def streamed(position: str, rows: Iterable[dict[str, Any]]) -> StreamingResponse:
    """Return rows as NDJSON. An error before the first row is raised; a later one becomes the last line."""
    iterator = iter(rows)
    first = list(islice(iterator, 1))
    lines = _lines(chain(first, iterator))
    return StreamingResponse(lines, headers={POSITION: position}, media_type=MEDIA_TYPE)


def _lines(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    # Many rows per chunk: each chunk is passed from a thread to the event loop.
    written: list[str] = []
    try:
        for row in rows:
            written.append(as_json(row))
            if len(written) == _TOGETHER:
                yield "\n".join(written) + "\n"
                written = []
    except LdpBudgetError as error:
        written.append(as_json({"problem": problem_of(error)}))
    if written:
        yield "\n".join(written) + "\n"
