"""Charges.

- `POST /v1/spends`: charge one user, or return the cost without a charge.
- `POST /v1/spends:batch`: charge up to 10,000 users, one line of JSON each.

FastAPI's routing, dependencies and inner middleware take longer than a charge. So plain ASGI handlers answer these
two: FastAPI describes them, and sees none of their requests. The same access check, strict bodies and errors are in
the same order as in every other route.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias

from anyio import to_thread
from fastapi import APIRouter, Header, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from fastapi.routing import APIRoute
from pydantic import Field, ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException

from ldp_budget import Collection, InvalidParameter, LdpBudgetError, Mechanism
from ldp_budget._files import strict_json
from ldp_budget._validation import shown
from ldp_budget.accounting.batch import FAILED, Spend, SpendResult
from ldp_budget.accounting.receipts import REFUSED, Receipt
from ldp_budget.ledger.models import SPENT
from ldp_budget.registry.collections import label_to_charge
from ldp_budget_service.api.schemas import MOST_ALIKE, MOST_BYTES, MOST_LINES, POSITION, receipt_form

from .. import request_attributes
from ..auth import AuthContext, Caller, access_of, admitted, check_query, checked_at_the_end
from ..error_codes import ServiceError, as_json, problem_of
from ..json_bodies import members, read, received
from ..problems import documented, response_for, validation_error
from ..receipt_text import receipt_text
from ..request_limits import BatchRoom
from ..responses import MEDIA_TYPE, REPLAYED, ReceiptAnswer, at_position, ok_with_position, receipt_response
from ..schemas import ChargeAsked, KeyHeader, Switch, required

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


class PlainRoute(APIRoute):
    """Route whose parameters FastAPI only describes.

    The endpoint gets the body as its model, or else the request itself to read a stream; the caller; and the key.
    """

    def __init__(self, path: str, *arguments: Any, **options: Any) -> None:
        super().__init__(path, *arguments, **options)
        self._access = access_of("POST", path)
        self._model: Any = None if self.body_field is None else self.body_field.field_info.annotation

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        caller: Any = None
        try:
            caller = await admitted(scope, self._access)
            if scope["query_string"]:
                check_query(Request(scope), {})
            head = dict(scope["headers"])
            receive = checked_at_the_end(receive, caller)
            if self._model is None:
                body: Any = Request(scope, receive)
            else:
                body = await read(await received(receive), head.get(b"content-type"), self._model)
            key = head.get(b"idempotency-key")
            response = await self.endpoint(body, caller, None if key is None else key.decode("latin-1"))
        except LdpBudgetError as error:
            response = response_for(error if caller is None else caller.error(error), scope)
        except HTTPException as error:
            response = response_for(error, scope)
        await response(scope, receive, send)


class PlainRoutes:
    """Middleware that answers the requests to plain routes, before the middleware that only other routes need."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        routes = [route for each in (router, batch_router) for route in each.routes]
        self._routes = {route.path.encode(): route for route in routes if isinstance(route, PlainRoute)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A request with a query goes the long way, where it is checked.
        if scope["type"] == "http" and scope["method"] == "POST" and not scope["query_string"]:
            route = self._routes.get(scope.get("raw_path") or b"")
            if route is not None:
                scope["route"] = route  # for the log and the metrics
                await route.handle(scope, receive, send)
                return
        await self._app(scope, receive, send)


# -- one charge -----------------------------------------------------------------------------------------

router = APIRouter(route_class=PlainRoute, tags=["spending"])


class SpendAsked(ChargeAsked):
    """A charge, or with `dry_run` only its cost."""

    dry_run: Switch = Field(False, description="Return the cost and whether it fits. Nothing is charged.")


@router.post(
    "/v1/spends",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "budget-exceeded", "key-conflict"),
)
async def spend(asked: SpendAsked, desk: Caller, key: KeyHeader = None) -> ASGIApp:
    """Charge a user for reports of a mechanism or a collection, or refuse with 409 and every limit that failed."""
    check_bounds(desk, asked)
    if asked.dry_run:
        return await run_in_threadpool(_quoted, desk, asked)
    key = required(key)
    charge = asked.charge_at_hand(desk)
    if charge is None:
        charge = await run_in_threadpool(asked.charge, desk)
    receipt = await desk.accountant.spend_async(asked.user, charge, key=key, **terms(asked, charge))
    if desk.bound or receipt.status == REFUSED:
        return receipt_response(desk, receipt)
    request_attributes.CURRENT.get().count("repeated" if receipt.repeated else receipt.status, 1, ())
    return _Granted(receipt)


class _Granted:
    """Response with a receipt, as `receipt_response` makes it, written by hand."""

    def __init__(self, receipt: Receipt) -> None:
        self._receipt = receipt

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        receipt = self._receipt
        body = receipt_text(receipt).encode()
        headers = [(b"content-length", b"%d" % len(body)), (b"content-type", b"application/json")]
        if receipt.position:
            headers.append((_POSITION, receipt.position.encode()))
        if receipt.repeated:
            headers.append((_REPLAYED, b"true"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


_POSITION, _REPLAYED = POSITION.lower().encode(), REPLAYED.lower().encode()


def _quoted(desk: AuthContext, asked: SpendAsked) -> Response:
    if desk.bound:
        why = (
            "a dry run tells what a user has left after the charges of others, so it needs an API key without bounds"
        )
        raise ServiceError("forbidden", f"{why}. Leave out dry_run: a charge that does not fit is refused.")
    position = desk.position(asked.user)
    charge = asked.charge(desk)
    label = label_for(charge, asked.label)
    quoted = desk.accountant.quote(
        asked.user, charge, reports=asked.reports, label=label, policy=asked.policy, tags=asked.tags
    )
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
        "tags": asked.tags,
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
        if text.count(b":") != members(asked):
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
        spend = Spend(user, common.mechanism, common.reports, charged, digest, note, common.policy, key, common.tags)
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
        common = self._templates[rest] = Spend("-", chosen, line.reports, policy=line.policy, tags=line.tags)
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
    request_attributes.count(result for result in results if result.error is None)
    return _ndjson(
        desk, [_result_line(desk, number, result) for (number, _), result in zip(lines, results, strict=True)]
    )


def _charge_keyed_lines(desk: AuthContext, lines: list[_Read]) -> Response:
    outcomes = desk.accountant.spend_each([line.spend for line in lines])
    request_attributes.count(outcome for outcome in outcomes if isinstance(outcome, Receipt))
    rows = [
        f'{{"line":{number},{receipt_text(desk.shown(outcome))[1:]}\n'
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
