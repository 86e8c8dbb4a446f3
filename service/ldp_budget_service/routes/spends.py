"""Charges and reservations.

- `POST /v1/spends`: charge one user, or return the cost without a charge.
- `POST /v1/spends:batch`: charge any number of users, one line each, with NDJSON in both directions.
- `/v1/reservations`: charge now, and commit or void later.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import Field, ValidationError
from pydantic_core import from_json

from ldp_budget import KeyConflict, LdpBudgetError, LedgerError
from ldp_budget.accounting.batch_run import FAILED, BatchRun, Spend, SpendResult
from ldp_budget.accounting.receipts import Receipt
from ldp_budget.accounting.reservations import MOST_SECONDS
from ldp_budget.api.schemas import receipt_form
from ldp_budget.ledger.models import SPENT

from .. import request_context
from ..auth import AuthContext, Caller, Reader, router_of
from ..error_codes import ServiceError, as_json, problem_of
from ..ndjson_stream import Answered, Line, NdjsonExchange, Work
from ..problems import documented, explained
from ..responses import (
    MEDIA_TYPE,
    POSITION,
    ReceiptAnswer,
    Row,
    ok_with_position,
    receipt_response,
    receipt_response_at,
)
from ..schemas import ChargeAsked, KeyHeader, required

router = router_of(tags=["spending"])


class SpendAsked(ChargeAsked):
    """A charge, or with `dry_run` only its cost."""

    dry_run: bool = Field(False, description="Say what it would cost and whether it fits; change nothing.")


@router.post(
    "/v1/spends",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "budget-exceeded", "in-flight", "key-conflict"),
)
async def spend(asked: SpendAsked, request: Request, desk: Caller, key: KeyHeader = None) -> Response:
    """Charge a user for reports of a mechanism or a collection, or refuse with 409 and every limit that failed."""
    check_bounds(desk, asked)
    if asked.dry_run:
        return await run_in_threadpool(_quoted, desk, asked)
    key = required(key)
    charge = asked.charge(desk) if asked.at_hand(desk) else await run_in_threadpool(asked.charge, desk)
    with request.app.state.in_flight.only(desk.key.name, asked.user, key):
        charged = Spend(user=asked.user, mechanism=charge, key=key, **terms(asked))
        receipt, position = await request.app.state.counter.spend(desk.accountant, charged)
    return receipt_response_at(position, receipt)


def _quoted(desk: AuthContext, asked: SpendAsked) -> Response:
    position = desk.accountant.position(asked.user)
    quoted = desk.accountant.quote(
        asked.user, asked.charge(desk), reports=asked.reports, label=asked.label, policy=asked.policy
    )
    return ok_with_position(position, receipt_form(quoted))


def check_bounds(desk: AuthContext, asked: ChargeAsked) -> None:
    """Refuse a policy or collection that the caller's key is not bound to."""
    desk.check_policy(asked.policy)
    desk.check_collection(asked.collection)


def terms(asked: ChargeAsked) -> dict[str, Any]:
    """Return the fields of a charge other than the user and the mechanism or collection."""
    return asked.model_dump(include={"reports", "label", "digest", "note", "policy"})


# -- batches --------------------------------------------------------------------------------------------

batch_router = router_of(tags=["spending"])

_MOST_KINDS = 1000
_KEYED = 1000
"""Maximum number of lines with their own idempotency keys that are charged together."""
RunKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="Names the run, whose lines have no keys then. The same lines again, from the first one on, are "
        "told what came of them and go on where the run broke off. A run that ended takes no more lines, and no "
        "fewer. Without it each line has a `key`.",
        examples=["2026-11-22/party"],
    ),
]


class LineAsked(ChargeAsked):
    """A line: one charge, as in `POST /v1/spends`."""

    key: str | None = Field(None, description="Of this line, where the run has none.")


_BODY = {
    "requestBody": {
        "required": True,
        "content": {MEDIA_TYPE: {"schema": {"type": "string", "description": "A line of JSON for each charge."}}},
    }
}


class _Lines:
    """Reads lines. The fields that most lines share are validated once."""

    def __init__(self, desk: AuthContext, run: bool) -> None:
        self._desk = desk
        self._run = run
        self._kinds: dict[str, Spend] = {}

    def read(self, lines: list[Line]) -> list[Spend | LdpBudgetError]:
        """Return the spend of each line, or its error."""
        return [self._one(line.text) for line in lines]

    def _one(self, text: bytes | None) -> Spend | LdpBudgetError:
        if text is None:
            return ServiceError("too-large", "a line is longer than lines may be here")
        try:
            asked = from_json(text, allow_inf_nan=False)
            if not isinstance(asked, dict) or "user" not in asked:
                raise ServiceError("malformed", "expected an object with a user in each line")
            take = asked.pop
            user, key, label = take("user"), take("key", None), take("label", None)
            digest, note = take("digest", None), take("note", None)
            if (key is None) is not self._run:
                where = (
                    "no key in a line, as the run has one" if self._run else "a key in each line, or one of the run"
                )
                raise ServiceError("malformed", f"key: expected {where}")
            rest = repr(asked)
            kind = self._kinds.get(rest) or self._look_at(rest, asked)
        except LdpBudgetError as error:
            return error
        except ValueError:
            return ServiceError("malformed", "expected a line of JSON in UTF-8")
        return Spend(user, kind.mechanism, kind.reports, label, digest, note, kind.policy, key)

    def _look_at(self, rest: str, asked: dict[str, Any]) -> Spend:
        try:
            line = LineAsked(user="-", **asked)
        except ValidationError as error:
            raise ServiceError("malformed", explained(error.errors())) from None
        self._desk.check_policy(line.policy)
        self._desk.check_collection(line.collection)
        chosen = line.charge(self._desk)
        if len(self._kinds) >= _MOST_KINDS:
            self._kinds.clear()
        kind = self._kinds[rest] = Spend("-", chosen, line.reports, policy=line.policy)
        return kind


def _checked(desk: AuthContext, work: Work) -> Work:
    """Return the same work, preceded by a new check of the caller's key before each unit."""

    def checked(lines: list[Line], last: bool) -> Answered:
        try:
            desk.check_key()
        except LdpBudgetError as error:  # revoked in the meantime, or the ledger cannot be read
            return Answered(_failed(lines[0].number, error), 0, True)
        return work(lines, last)

    return checked


class _OfRun:
    """Processes the lines of a run with an idempotency key."""

    def __init__(self, desk: AuthContext, run: BatchRun) -> None:
        self._lines = _Lines(desk, True)
        self._run = run

    def __call__(self, lines: list[Line], last: bool) -> Answered:
        spends = self._lines.read(lines)
        try:
            answers = self._run.charge(spends, last=last)
        except (LedgerError, KeyConflict) as error:
            return Answered(_failed(lines[0].number if lines else None, error), 0, True)
        request_context.count(answer for answer in answers if answer.error is None)
        told = [_told(line.number, answer) for line, answer in zip(lines, answers, strict=False)]
        # A different run under the same key ends here: its lines are not those that the key belongs to.
        conflict = any(isinstance(answer.error, KeyConflict) for answer in answers)
        return Answered("".join(told), len(answers), conflict)


def _told(number: int, answer: SpendResult) -> str:
    if answer.status == SPENT:
        return f'{{"line":{number},"status":"spent","repeated":{"true" if answer.repeated else "false"}}}\n'
    if answer.error is not None:
        return _failed(number, answer.error)
    row = {
        "line": number,
        "status": answer.status,
        "repeated": answer.repeated,
        "binding": answer.binding,
        "affordable_reports": answer.affordable_reports,
        **({"why": answer.why} if answer.why else {}),
        **({} if answer.receipt is None else {"limits": answer.receipt.to_json()["limits"]}),
    }
    return as_json(row) + "\n"


def _failed(number: int | None, error: LdpBudgetError) -> str:
    """Return the problem of a line; without a number, of the run as a whole."""
    line = {} if number is None else {"line": number}
    return as_json({**line, "status": FAILED, "problem": problem_of(error)}) + "\n"


class _Keyed:
    """Processes lines that have an idempotency key each."""

    def __init__(self, desk: AuthContext) -> None:
        self._lines = _Lines(desk, False)
        self._accountant = desk.accountant

    def __call__(self, lines: list[Line], last: bool) -> Answered:
        lines = lines[:_KEYED]
        answers = self._accountant.spend_each(self._lines.read(lines))
        request_context.count(answer for answer in answers if isinstance(answer, Receipt))
        told = [
            as_json({"line": line.number, **receipt_form(answer)}) + "\n"
            if isinstance(answer, Receipt)
            else _failed(line.number, answer)
            for line, answer in zip(lines, answers, strict=True)
        ]
        return Answered("".join(told), len(lines))


@batch_router.post(
    "/v1/spends:batch",
    response_class=Response,
    responses=documented("in-flight")
    | {200: {"description": "A line for each line.", "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}},
    openapi_extra=_BODY,
)
def spend_batch(request: Request, desk: Caller, key: RunKey = None) -> Response:
    """Charge any number of users, one line of JSON each. Results come in the order of the lines, while lines arrive.

    The result of an invalid line is a problem; the other lines are still processed. If the ledger fails or the API key
    becomes invalid, the last result is that problem. Then repeat the run with the same idempotency key.
    """
    position, settings = desk.accountant.position(), request.app.state.settings
    if key is None:
        held: Any = nullcontext()
        work: Work = _Keyed(desk)
    else:
        held = request.app.state.in_flight.only(desk.key.name, "run", key)
        work = _OfRun(desk, desk.accountant.run(key))
    return NdjsonExchange(
        _checked(desk, work), held, {POSITION: position}, most_line=settings.most_line, idle=settings.body_seconds
    )


# -- reservations ---------------------------------------------------------------------------------------

reservations_router = router_of(tags=["spending"])

MOST_ROWS = 1000


class ReservationAsked(ChargeAsked):
    """A charge that can be voided until it expires."""

    expires: float = Field(3600, gt=0, le=MOST_SECONDS, description="Seconds; then it stays charged.")


@reservations_router.post(
    "/v1/reservations",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "budget-exceeded", "in-flight", "key-conflict"),
)
def reserve(asked: ReservationAsked, request: Request, desk: Caller, key: KeyHeader = None) -> Response:
    """Charge now, and decide within `expires` seconds: commit keeps the charge, void takes it back.

    A reservation that is not voided in time stays charged, because the report may have been sent.
    """
    check_bounds(desk, asked)
    charge, key = asked.charge(desk), required(key)
    with request.app.state.in_flight.only(desk.key.name, asked.user, key):
        receipt = desk.accountant.reserve(asked.user, charge, key=key, expires=asked.expires, **terms(asked))
    return receipt_response(desk.accountant, receipt, asked.user)


@reservations_router.get("/v1/reservations", response_model=list[Row], responses=documented())
def list_reservations(
    desk: Reader,
    user: Annotated[str | None, Query(min_length=1, description="Whose; everybody's without it.")] = None,
    most: Annotated[int, Query(ge=1, le=MOST_ROWS, description="How many, the newest first.")] = 20,
) -> Response:
    """Return the reservations that can still be committed or voided, newest first."""
    position = desk.accountant.position(user)
    return ok_with_position(
        position, [row for row in desk.accountant.open_reservations(most, user=user) if desk.sees(row)]
    )


@reservations_router.post(
    "/v1/reservations/{receipt:name}/commit",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "reservation-conflict"),
)
def commit(receipt: str, desk: Caller) -> Response:
    """Keep the charge of a reservation. An expired reservation is reported as expired and also stays charged."""
    desk.check_reservation(receipt)
    return receipt_response(desk.accountant, desk.accountant.commit(receipt), None)


@reservations_router.post(
    "/v1/reservations/{receipt:name}/void",
    response_model=ReceiptAnswer,
    responses=documented("unknown-name", "reservation-conflict"),
)
def void(receipt: str, desk: Caller) -> Response:
    """Give back the charge of a reservation, while that is possible."""
    desk.check_reservation(receipt)
    return receipt_response(desk.accountant, desk.accountant.void(receipt), None)
