"""Calculations before any charge, the list of mechanisms and the explanation of problem types.

- `POST /v1/calibrate|compose|plan|compare`: the guarantees and the costs of mechanisms.
- `GET /v1/mechanisms`: the mechanisms that can be charged here.
- `GET /problems/{code}`: the meaning of a problem type.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from ldp_budget import InvalidParameter
from ldp_budget._validation import shown
from ldp_budget.registry.certification import mechanism_rows

from ..auth import Reader, router_of
from ..error_codes import MEANINGS, STATUSES, TYPE, ServiceError
from ..problems import documented, json_answer
from ..responses import Row, ok_with_position
from ..schemas import Asked, MechanismAsked, mechanism_asked

router = router_of(tags=["questions"])

MOST_REPORTS = 10**6
MOST_USERS = 10**12
MOST_ANSWERS = 10**7

Number = str | int | float
Reports = Annotated[int, Field(ge=1, le=MOST_REPORTS, strict=True)]
Users = Annotated[int, Field(ge=1, le=MOST_USERS, strict=True)]
_RESPONSES = documented("unknown-name", "too-much-work", "overloaded")


class CalibrateAsked(Asked):
    """A mechanism and its privacy target."""

    mechanism: MechanismAsked
    users: Users | None = Field(None, description="Predict the standard error for this many users.")


class ComposeAsked(Asked):
    """A number of reports of a mechanism or a collection."""

    mechanism: MechanismAsked | None = None
    collection: str | None = None
    reports: Reports
    total_delta: Number | None = Field(
        None, description="The δ of the total; the sum of the reports' own without it."
    )
    shuffled: Users | None = Field(None, description="Also the central loss if shuffled among so many users.")


class PlanAsked(Asked):
    """A number of reports and the total that they must fit; a mechanism without its ε, or a collection."""

    mechanism: MechanismAsked | None = None
    collection: str | None = None
    reports: Reports
    total_epsilon: Number
    total_delta: Number = 0


class CompareAsked(Asked):
    """Purpose of the comparison: answers of `domain_size` by `users`, or numbers in a range."""

    epsilon: Number
    domain_size: Annotated[int, Field(ge=2, le=MOST_ANSWERS, strict=True)] | None = None
    users: Users | None = None
    lower: Number | None = None
    upper: Number | None = None
    reports: Reports | None = Field(None, description="Also the total loss of so many reports.")
    total_delta: Number | None = None
    margin: Annotated[float, Field(gt=0, lt=1, strict=True)] | None = Field(
        None, description="Also how many `respondents` give every share this margin of error, at 95 %."
    )

    def check(self) -> None:
        """Raise `InvalidParameter` if a member is given without another one that it requires."""
        if (self.lower is None) != (self.upper is None):
            missing, given = ("lower", "upper") if self.lower is None else ("upper", "lower")
            raise InvalidParameter(missing, f"a number if {given} is given")
        if self.domain_size is None and self.lower is None:
            hint = "Give domain_size and users, or lower and upper."
            raise InvalidParameter("domain_size", "a whole number", hint=hint)
        if self.domain_size is not None and self.users is None:
            raise InvalidParameter("users", "the number of users if domain_size is given")
        if self.total_delta is not None and self.reports is None:
            raise InvalidParameter("reports", "the number of reports if total_delta is given")
        if self.margin is not None and self.domain_size is None:
            raise InvalidParameter("domain_size", "the number of answers if margin is given")


class CalibrateAnswer(BaseModel):
    """The parameters with their guarantee and utility."""

    mechanism: str
    parameters: dict[str, Any]
    guarantee: dict[str, Any]
    utility: dict[str, Any]
    notes: list[str]
    source: str


class RulesAnswer(BaseModel):
    """The result under each composition rule; null if a rule does not apply."""

    model_config = ConfigDict(extra="allow")

    reports: int
    delta: float
    rules: dict[str, dict[str, Any] | None]


@router.post("/v1/calibrate", response_model=CalibrateAnswer, responses=_RESPONSES)
async def calibrate(asked: CalibrateAsked, request: Request, desk: Reader) -> Response:
    """Return the parameters of a mechanism that meet a privacy target, with their guarantee and utility."""
    chosen = await run_in_threadpool(mechanism_asked, desk, asked.mechanism, None)
    return await _asked(request, "calibrate", {**chosen, "users": asked.users})


@router.post("/v1/compose", response_model=RulesAnswer, responses=_RESPONSES)
async def compose(asked: ComposeAsked, request: Request, desk: Reader) -> Response:
    """Return the composed loss of many reports of one user, under every composition rule."""
    told = asked.model_dump(include={"reports", "total_delta", "shuffled"})
    chosen = await run_in_threadpool(mechanism_asked, desk, asked.mechanism, asked.collection)
    return await _asked(request, "compose", {**chosen, **told})


@router.post("/v1/plan", response_model=RulesAnswer, responses=_RESPONSES)
async def plan(asked: PlanAsked, request: Request, desk: Reader) -> Response:
    """Return the largest ε per report for which the given number of reports fits a total, under every rule."""
    told = asked.model_dump(include={"reports", "total_epsilon", "total_delta"})
    chosen = await run_in_threadpool(mechanism_asked, desk, asked.mechanism, asked.collection)
    return await _asked(request, "plan", {**chosen, **told, "at_epsilon": asked.collection is not None})


@router.post("/v1/compare", response_model=list[Row], responses=_RESPONSES)
async def compare(asked: CompareAsked, request: Request, desk: Reader) -> Response:
    """Return every mechanism with its predicted error at the same ε, best first."""
    asked.check()
    return await _asked(request, "compare", asked.model_dump())


async def _asked(request: Request, question: str, asked: dict[str, Any]) -> Response:
    return json_answer(await request.app.state.workers.answer(question, asked))


# -- mechanisms -----------------------------------------------------------------------------------------

mechanisms_router = router_of(tags=["questions"])


@mechanisms_router.get("/v1/mechanisms", response_model=list[Row], responses=documented())
def mechanisms(desk: Reader) -> Response:
    """Return every mechanism, its plugin, and how its guarantee was checked."""
    return ok_with_position(desk.position(), mechanism_rows())


# -- problem types --------------------------------------------------------------------------------------

kinds_router = router_of(tags=["about"])


class KindAnswer(BaseModel):
    """A problem type and its meaning."""

    type: str
    status: int
    meaning: str


@kinds_router.get(TYPE + "{code:name}", response_model=KindAnswer, responses=documented("not-found", key=False))
def kind(code: str) -> Response:
    """Return the meaning of a problem type in a sentence. No API key is required."""
    if code not in MEANINGS:
        raise ServiceError("not-found", f"no type of problem is named {shown(code)}")
    return json_answer({"type": TYPE + code, "status": STATUSES[code], "meaning": MEANINGS[code]})
