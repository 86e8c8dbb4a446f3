"""Responses: receipts in the format of the commands' `--json`, with the journal's position in a header.

Long lists are streamed as NDJSON: one JSON object per line, any number of lines, constant memory.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from ldp_budget import LdpBudgetError, UserErased
from ldp_budget.accounting.receipts import REFUSED, Receipt
from ldp_budget_service.api.schemas import MOST_ENTRIES, NEXT_ENTRY, POSITION, receipt_form

from . import request_attributes
from .error_codes import as_json, problem_of
from .problems import json_answer, refusal
from .receipt_text import receipt_text
from .visibility import numbered_alone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .auth import AuthContext, Respondent


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
_ROWS_AT_ONCE = 1000
_LENGTH = 2048


def history_response(desk: AuthContext, user: str, first: int, most: int) -> Response:
    """Return a part of a user's history.

    A bound key gets the rows that it may see, with numbers of their own: those of the journal say how many charges
    are between them. It does not learn of an erasure either: the user's charges may all be under other policies.
    """
    if desk.bound:
        return _bound_history(desk, user, first, most)
    position = desk.position(user)
    rows = desk.accountant.history(user, first=first, most=most)
    following = {NEXT_ENTRY: str(rows[-1]["entry"] + 1)} if len(rows) == most else {}
    return ok_with_position(position, rows, following)


def _bound_history(desk: AuthContext, user: str, first: int, most: int) -> Response:
    rows = numbered_alone(filter(desk.sees, _whole_history(desk, user)))
    part = list(islice(rows, first - 1, first - 1 + most))
    return ok_with_position(None, part, {NEXT_ENTRY: str(first + most)} if len(part) == most else {})


def _whole_history(desk: AuthContext, user: str) -> Iterator[Row]:
    """Yield all rows of a user, of whom few are in memory; none of an erased user."""
    first = 1
    while True:
        try:
            rows = desk.accountant.history(user, first=first, most=_ROWS_AT_ONCE)
        except UserErased:
            return
        yield from rows
        if len(rows) < _ROWS_AT_ONCE:
            return
        first = rows[-1]["entry"] + 1


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
    promise: dict[str, Any] | None = Field(
        None, description="Of a report with marks: the lifetime limit, signed for the receipt of the respondent."
    )
    publication: dict[str, Any] | None = Field(
        None,
        description="Of an invitation's report with marks: the path of the published folder, the public key of its log, and "
        "a token for the proof of this charge, for the receipt.",
    )


def at_position(position: str | None) -> dict[str, str]:
    """Return the header with the journal's position; none for a caller that must not learn it."""
    return {POSITION: position} if position else {}


def ok_with_position(position: str | None, content: Any, headers: Mapping[str, str] | None = None) -> Response:
    """Return a 200 response with the journal's position, unless the caller must not learn it.

    The data read is no older than that position, and the data written is included in it.
    """
    return json_answer(content, headers={**at_position(position), **(headers or {})})


def receipt_response(caller: AuthContext | Respondent, receipt: Receipt, **more: Any) -> Response:
    """Return the response for a receipt: 200, or 409 for a refusal and for a reservation that was voided since.

    `more` are further members of a response of 200.
    """
    request_attributes.count([receipt])
    shown = caller.shown(receipt)
    headers = at_position(shown.position)
    if receipt.repeated:
        headers[REPLAYED] = "true"
    if receipt.status == REFUSED:
        return refusal(receipt_form(shown), caller.explained(receipt), headers)
    if more:
        return json_answer({**receipt_form(shown), **more}, headers=headers)
    return Response(receipt_text(shown), headers=headers, media_type="application/json")


def of_one_length(response: Response) -> Response:
    """Return the response to a report with spaces at its end, up to a multiple of 2,048 bytes.

    Encryption does not hide a length. A memoized report of a new answer is charged, and one of the answer before is not:
    by the digits of its cost, the length would show an observer of the network when an answer changed.
    """
    response.body = bytes(response.body).ljust(-(-len(response.body) // _LENGTH) * _LENGTH)
    response.headers["Content-Length"] = str(len(response.body))
    return response


# -- NDJSON ---------------------------------------------------------------------------------------------

MEDIA_TYPE = "application/x-ndjson"
_TOGETHER = 500

DOCUMENTED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A line of JSON for each row. If an error ends the rows early, the last line is a `problem`.",
        "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
    }
}


def streamed(position: str | None, rows: Iterable[dict[str, Any]]) -> StreamingResponse:
    """Return rows as NDJSON. An error before the first row is raised; a later one becomes the last line."""
    iterator = iter(rows)
    first = list(islice(iterator, 1))
    lines = _lines(chain(first, iterator))
    return StreamingResponse(lines, headers=at_position(position), media_type=MEDIA_TYPE)


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
