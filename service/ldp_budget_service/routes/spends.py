"""Charges and reservations.

- `POST /v1/spends`: charge one user, or return the cost without a charge.
- `POST /v1/spends:batch`: charge up to 10,000 users, one line of JSON each.
- `/v1/reservations`: charge now, and commit or void later.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Annotated, Any, NamedTuple, TypeAlias

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import Field, ValidationError
from pydantic_core import from_json

from ldp_budget import Collection, InvalidParameter, LdpBudgetError, Mechanism
from ldp_budget._files import strict_json
from ldp_budget._validation import shown
from ldp_budget.accounting.batch import FAILED, Spend, SpendResult
from ldp_budget.accounting.receipts import Receipt
from ldp_budget.accounting.reservations import MOST_SECONDS
from ldp_budget.errors import ReservationConflict
from ldp_budget.ledger.models import COMMITTED, SPENT, VOIDED
from ldp_budget.registry.collections import label_to_charge
from ldp_budget_service.api.schemas import MOST_ALIKE, MOST_BYTES, MOST_LINES, receipt_form

from .. import request_context
from ..auth import AuthContext, Caller, Reader, router_of
from ..error_codes import ServiceError, as_json, problem_of
from ..plain_routes import PlainRoute
from ..problems import documented, validation_error
from ..request_limits import BatchRoom
from ..responses import (
    MEDIA_TYPE,
    ReceiptAnswer,
    Row,
    at_position,
    ok_with_position,
    receipt_response,
)
from ..schemas import ChargeAsked, KeyHeader, Switch, required

router = APIRouter(route_class=PlainRoute, tags=["spending"])


class SpendAsked(ChargeAsked):
    """A charge, or with `dry_run` only its cost."""

    dry_run: Switch = Field(False, description="Return the cost and whether it fits. Nothing is charged.")


@router.post(
    "/v1/spends",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "budget-exceeded", "key-conflict"),
)
async def spend(asked: SpendAsked, desk: Caller, key: KeyHeader = None) -> Response:
    """Charge a user for reports of a mechanism or a collection, or refuse with 409 and every limit that failed."""
    check_bounds(desk, asked)
    if asked.dry_run:
        return await run_in_threadpool(_quoted, desk, asked)
    key = required(key)
    charge = asked.charge_at_hand(desk)
    if charge is None:
        charge = await run_in_threadpool(asked.charge, desk)
    receipt = await desk.accountant.spend_async(asked.user, charge, key=key, **terms(asked, charge))
    return receipt_response(desk, receipt)


def _quoted(desk: AuthContext, asked: SpendAsked) -> Response:
    if desk.bound:
        why = (
            "a dry run tells what a user has left after the charges of others, so it needs an API key without bounds"
        )
        raise ServiceError("forbidden", f"{why}. Leave out dry_run: a charge that does not fit is refused.")
    position = desk.position(asked.user)
    charge = asked.charge(desk)
    label = label_for(charge, asked.label)
    quoted = desk.accountant.quote(asked.user, charge, reports=asked.reports, label=label, policy=asked.policy)
    return ok_with_position(position, receipt_form(quoted))


def check_bounds(desk: AuthContext, asked: ChargeAsked) -> None:
    """Refuse a policy or collection that the caller's key is not bound to."""
    desk.check_policy(asked.policy)
    desk.check_collection(asked.collection)


def terms(asked: ChargeAsked, charge: Chosen) -> dict[str, Any]:
    """Return the fields of a charge other than the user and the mechanism or collection."""
    label = None if asked.label is None else label_for(charge, asked.label)
    return {
        "reports": asked.reports,
        "digest": asked.digest,
        "note": asked.note,
        "policy": asked.policy,
        "label": label,
    }


Chosen: TypeAlias = "Mechanism | Collection | object"


def label_for(charge: Chosen, label: str | None) -> str | None:
    """Return the label to charge: none where it would reveal which answers repeat, and the reports hide that."""
    if isinstance(charge, Collection):
        return charge.label_to_charge(label)
    return label_to_charge(charge, label) if isinstance(charge, Mechanism) else label


# -- batches --------------------------------------------------------------------------------------------

batch_router = APIRouter(route_class=PlainRoute, tags=["spending"])

_MOST_TEMPLATES = 1000
_BLANK = 2
"""The most line ends, as a multiple of the most lines: some lines may be blank."""
_COMMON = re.compile(rb'\s{0,100}\{\s{0,100}"common"\s{0,100}:')
"""The beginning of a body whose first line has the common members of all lines."""
MOST_LINE_BYTES = 1 << 18
"""Maximum size of a line. The parser takes a line at once, and no other thread runs meanwhile."""
BatchKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Names the batch, whose lines have no keys then. The same lines under the same key get the same "
        "results; other lines are a conflict. Without it each line has a `key`.",
        examples=["2026-11-22/party#0"],
    ),
]


class LineAsked(ChargeAsked):
    """A line: one charge, as in `POST /v1/spends`."""

    key: str | None = Field(None, description="Of this line, where the batch has none.")


def _members(value: Any) -> int:
    """Return the number of members of a JSON value and of the objects in it."""
    if isinstance(value, dict):
        return len(value) + sum(map(_members, value.values()))
    return sum(map(_members, value)) if isinstance(value, list) else 0


_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            MEDIA_TYPE: {
                "schema": {
                    "type": "string",
                    "description": f"A line of JSON per charge, at most {MOST_LINES} lines. Members that all lines "
                    'share can be sent once, in a first line `{"common": {…}}`: then at most '
                    f"{MOST_ALIKE} lines.",
                }
            }
        },
    }
}


class _Lines:
    """Reads lines. The fields that most lines share are validated once."""

    def __init__(self, desk: AuthContext, keyed: bool) -> None:
        self._desk = desk
        self._keyed = keyed
        self._templates: dict[str, Spend] = {}
        self._common: dict[str, Any] = {}
        self._alike: Spend | None = None

    def share(self, text: bytes) -> bool:
        """Take the members that all lines share, if this first line has them. Raises `ServiceError`."""
        try:
            asked = self._object(text)
        except (ValueError, LdpBudgetError):
            return False  # `read` returns the error
        if "common" not in asked:
            return False
        common = asked["common"]
        if len(asked) > 1 or not isinstance(common, dict) or not common.keys().isdisjoint(("user", "key")):
            why = "`common` must be the only member of the first line: an object without `user` and `key`"
            raise ServiceError("malformed", why)
        self._common = common
        return True

    def _object(self, text: bytes) -> dict[str, Any]:
        """Return the members of a line, none of them repeated. Raises ValueError."""
        if len(text) > MOST_LINE_BYTES:
            raise ServiceError("too-large", f"a line must have at most {MOST_LINE_BYTES} bytes: got {len(text)}")
        asked = from_json(text, allow_inf_nan=False)
        if not isinstance(asked, dict):
            raise ServiceError("malformed", "each line must be a JSON object")
        if text.count(b":") != _members(asked):
            strict_json(text)  # a colon in a text, or a member that is repeated
        return asked

    def read(self, text: bytes) -> Spend | LdpBudgetError:
        """Return the spend of a line, or its error."""
        try:
            asked = self._object(text)
            if self._common:
                if self._alike is not None and len(asked) == 1 and "user" in asked:
                    return Spend(asked["user"], *self._alike[1:])
                if not self._common.keys().isdisjoint(asked):
                    raise ServiceError("malformed", "a line must not repeat a member of `common`")
                alike = asked.keys() == {"user"}
                asked = {**self._common, **asked}
            else:
                alike = False
            if "user" not in asked:
                raise InvalidParameter("user", "the user to charge")
            take = asked.pop
            user, key, label = take("user"), take("key", None), take("label", None)
            digest, note = take("digest", None), take("note", None)
            if (key is None) is self._keyed:
                if self._keyed:
                    raise InvalidParameter("key", "a member of each line, if the batch has no Idempotency-Key")
                raise InvalidParameter("key", "left out in a line, because the batch has one", shown(key))
            rest = repr(asked)
            common = self._templates.get(rest) or self._look_at(rest, asked)
        except LdpBudgetError as error:
            error.__traceback__ = error.__context__ = error.__cause__ = None  # they hold the parsed line
            return error
        except ValueError:
            return ServiceError("malformed", "each line must be JSON in UTF-8, without a repeated member")
        charged = label_for(common.mechanism, label)
        spend = Spend(user, common.mechanism, common.reports, charged, digest, note, common.policy, key)
        if alike:
            self._alike = spend
        return spend

    def _look_at(self, rest: str, asked: dict[str, Any]) -> Spend:
        try:
            line = LineAsked(user="-", **asked)
        except ValidationError as error:
            raise validation_error(error.errors()) from None
        self._desk.check_policy(line.policy)
        self._desk.check_collection(line.collection)
        chosen = line.charge(self._desk)
        if len(self._templates) >= _MOST_TEMPLATES:
            self._templates.clear()
        common = self._templates[rest] = Spend("-", chosen, line.reports, policy=line.policy)
        return common


@batch_router.post(
    "/v1/spends:batch",
    response_class=Response,
    responses=documented("key-conflict", "too-large")
    | {200: {"description": "A line for each line.", "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}},
    openapi_extra=_BODY,
)
async def spend_batch(request: Request, desk: Caller, key: BatchKey = None) -> Response:
    """Charge many users, one line of JSON each; return a line of JSON for each, in the same order.

    The result of an invalid line is a problem; the other lines are charged. A batch without lines binds the end of a
    run whose batches have the keys KEY#0, KEY#1 and so on.
    """
    with request.app.state.load.batch() as room:
        body = await _body_of(request, room)
        lines = await _read(request, desk, body, key is None)
        if key is None:
            return await run_in_threadpool(_charge_keyed_lines, desk, lines)
        return await run_in_threadpool(_charge_batch, desk, lines, key)


async def _read(request: Request, desk: AuthContext, body: bytes, keyed: bool) -> list[_Read]:
    """Read the lines of a batch in a thread. One batch is read at a time, so that other threads have their turn."""
    return await to_thread.run_sync(_read_lines, desk, body, keyed, limiter=request.app.state.load.reading)


class _Read(NamedTuple):
    """A line that was read: its number, and its spend or its error."""

    number: int
    spend: Spend | LdpBudgetError


def _read_lines(desk: AuthContext, body: bytes, keyed: bool) -> list[_Read]:
    reader = _Lines(desk, keyed)
    lines = _lines_in(body)
    most = _most_lines(body)
    if lines and reader.share(lines[0][1]):
        del lines[0]
    if len(lines) > most:
        raise _too_many_lines(most, str(len(lines)))
    return [_Read(number, reader.read(text)) for number, text in lines]


async def _body_of(request: Request, room: BatchRoom) -> bytes:
    """Return the body of a batch, with a bounded number of bytes and of line ends, blank lines included."""
    body, ends = bytearray(), 0
    async for chunk in request.stream():
        ends += chunk.count(b"\n")
        body += chunk
        if len(body) > MOST_BYTES:
            raise ServiceError("too-large", f"a batch must have at most {MOST_BYTES} bytes. Send several batches.")
        most = _most_lines(body)
        if ends > _BLANK * most:
            raise _too_many_lines(most, f"more than {_BLANK * most}, blank lines included")
        room.take(len(chunk))
    return bytes(body)


def _most_lines(body: bytes | bytearray) -> int:
    """Return the most lines of a batch whose body begins like this."""
    return MOST_ALIKE if _COMMON.match(body) else MOST_LINES


def _lines_in(body: bytes) -> list[tuple[int, bytes]]:
    """Return the lines of a body that are not blank, each with its number; for a thread, not for the event loop."""
    return [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]


def _too_many_lines(most: int, found: str) -> ServiceError:
    return ServiceError("too-large", f"a batch must have at most {most} lines: got {found}. Send several batches.")


def _charge_batch(desk: AuthContext, lines: list[_Read], key: str) -> Response:
    results = desk.accountant.spend_batch([line.spend for line in lines], key=key)
    request_context.count(result for result in results if result.error is None)
    return _ndjson(
        desk, [_result_line(desk, number, result) for (number, _), result in zip(lines, results, strict=True)]
    )


def _charge_keyed_lines(desk: AuthContext, lines: list[_Read]) -> Response:
    outcomes = desk.accountant.spend_each([line.spend for line in lines])
    request_context.count(outcome for outcome in outcomes if isinstance(outcome, Receipt))
    rows = [
        as_json({"line": number, **receipt_form(desk.shown(outcome))}) + "\n"
        if isinstance(outcome, Receipt)
        else _failed(desk, number, outcome)
        for (number, _), outcome in zip(lines, outcomes, strict=True)
    ]
    return _ndjson(desk, rows)


def _ndjson(desk: AuthContext, lines: list[str]) -> Response:
    """Return the results of a batch. The position is read after its charges, so a read at `min_position` has them."""
    return Response("".join(lines), headers=at_position(desk.position()), media_type=MEDIA_TYPE)


def _result_line(desk: AuthContext, number: int, result: SpendResult) -> str:
    if result.status == SPENT:
        return f'{{"line":{number},"status":"spent","repeated":{"true" if result.repeated else "false"}}}\n'
    if result.error is not None:
        return _failed(desk, number, result.error)
    row = {"line": number, "status": result.status, "repeated": result.repeated, "binding": result.binding}
    if not desk.bound:
        row["affordable_reports"] = result.affordable_reports
        row |= {} if result.receipt is None else {"limits": result.receipt.to_json()["limits"]}
    return as_json(row | ({"why": result.why} if result.why else {})) + "\n"


def _failed(desk: AuthContext, number: int, error: LdpBudgetError) -> str:
    """Return the problem of a line."""
    return as_json({"line": number, "status": FAILED, "problem": problem_of(desk.error(error))}) + "\n"


# -- reservations ---------------------------------------------------------------------------------------

reservations_router = router_of(tags=["spending"])

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


@reservations_router.post(
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


@reservations_router.get("/v1/reservations", response_model=list[Row], responses=documented())
def list_reservations(
    desk: Reader,
    user: Annotated[str | None, Query(min_length=1, description="The user; by default all users.")] = None,
    most: Annotated[int, Query(ge=1, le=MOST_ROWS, description="How many, the newest first.")] = 20,
) -> Response:
    """Return the reservations that can still be committed or voided, newest first."""
    return ok_with_position(desk.position(user), open_reservations(desk, user, most))


@reservations_router.post(
    "/v1/reservations/{receipt:name}/commit",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "reservation-conflict"),
)
def commit(receipt: str, desk: Caller) -> Response:
    """Keep the charge of a reservation. An expired reservation is reported as expired and also stays charged."""
    return _ended(desk, receipt, desk.accountant.commit, COMMITTED)


@reservations_router.post(
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
