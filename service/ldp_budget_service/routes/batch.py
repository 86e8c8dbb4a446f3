"""`POST /v1/spends:batch`: charge any number of users, a line each, NDJSON in and out."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated, Any

from fastapi import Header, Request
from fastapi.responses import Response
from pydantic import Field, ValidationError
from pydantic_core import from_json

from ldp_budget import KeyConflict, LdpBudgetError, LedgerError
from ldp_budget.accounting.lines import FAILED, LineAnswer, Run, Spend
from ldp_budget.accounting.receipts import Receipt
from ldp_budget.api.schemas import receipt_form
from ldp_budget.ledger.entries import SPENT

from .. import current
from ..answers import POSITION
from ..asked import ChargeAsked
from ..callers import Caller, Desk, router_of
from ..duplex import Answered, Duplex, Line, Work
from ..kinds import ServiceError, as_json, problem_of
from ..ndjson import MEDIA_TYPE
from ..problems import documented, explained

router = router_of(tags=["spending"])

_MOST_KINDS = 1000
_KEYED = 1000
"""Lines with keys of their own that are charged together."""
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
    """Reads lines; what most of them have in common is looked at once."""

    def __init__(self, desk: Desk, run: bool) -> None:
        self._desk = desk
        self._run = run
        self._kinds: dict[str, Spend] = {}

    def read(self, lines: list[Line]) -> list[Spend | LdpBudgetError]:
        """What each line asks, or what is wrong with it."""
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


def _checked(desk: Desk, work: Work) -> Work:
    """The same work, for which the caller's key is looked at again before each piece of it."""

    def checked(lines: list[Line], last: bool) -> Answered:
        try:
            desk.check_key()
        except LdpBudgetError as error:  # revoked meanwhile, or the ledger cannot say
            return Answered(_failed(lines[0].number, error), 0, True)
        return work(lines, last)

    return checked


class _OfRun:
    """Answers the lines of a run that has a key."""

    def __init__(self, desk: Desk, run: Run) -> None:
        self._lines = _Lines(desk, True)
        self._run = run

    def __call__(self, lines: list[Line], last: bool) -> Answered:
        spends = self._lines.read(lines)
        try:
            answers = self._run.charge(spends, last=last)
        except (LedgerError, KeyConflict) as error:
            return Answered(_failed(lines[0].number if lines else None, error), 0, True)
        current.count(answer for answer in answers if answer.error is None)
        told = [_told(line.number, answer) for line, answer in zip(lines, answers, strict=False)]
        # A run under the key of another one ends there: its other lines are not those that the key was made for.
        conflict = any(isinstance(answer.error, KeyConflict) for answer in answers)
        return Answered("".join(told), len(answers), conflict)


def _told(number: int, answer: LineAnswer) -> str:
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
    """What is wrong with a line; without a number, with the run as a whole."""
    line = {} if number is None else {"line": number}
    return as_json({**line, "status": FAILED, "problem": problem_of(error)}) + "\n"


class _Keyed:
    """Answers lines that have a key each."""

    def __init__(self, desk: Desk) -> None:
        self._lines = _Lines(desk, False)
        self._accountant = desk.accountant

    def __call__(self, lines: list[Line], last: bool) -> Answered:
        lines = lines[:_KEYED]
        answers = self._accountant.spend_each(self._lines.read(lines))
        current.count(answer for answer in answers if isinstance(answer, Receipt))
        told = [
            as_json({"line": line.number, **receipt_form(answer)}) + "\n"
            if isinstance(answer, Receipt)
            else _failed(line.number, answer)
            for line, answer in zip(lines, answers, strict=True)
        ]
        return Answered("".join(told), len(lines))


@router.post(
    "/v1/spends:batch",
    response_class=Response,
    responses=documented("in-flight")
    | {200: {"description": "A line for each line.", "content": {MEDIA_TYPE: {"schema": {"type": "string"}}}}},
    openapi_extra=_BODY,
)
def spend_batch(request: Request, desk: Caller, key: RunKey = None) -> Response:
    """Charge any number of users, a line of JSON each; answers come in their order, while lines still come.

    A line that is wrong is answered with its problem, and the rest go on. Where the ledger fails, or the API key is
    not good any more, the last answer is that problem: run it again with the same idempotency key.
    """
    position, settings = desk.accountant.position(), request.app.state.settings
    if key is None:
        held: Any = nullcontext()
        work: Work = _Keyed(desk)
    else:
        held = request.app.state.in_flight.only(desk.key.name, "run", key)
        work = _OfRun(desk, desk.accountant.run(key))
    return Duplex(
        _checked(desk, work), held, {POSITION: position}, most_line=settings.most_line, idle=settings.body_seconds
    )
