"""`/v1/proposals`: changes of policies that one proposes and another one approves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from ldp_budget import NotSupported, UnknownName

from ..answers import Row, told
from ..asked import Asked
from ..callers import Desk, Officer
from ..problems import documented
from .policies import PolicyAnswer, PolicyAsked

if TYPE_CHECKING:
    from ldp_budget.accounting.access.approvals import Approvals
    from ldp_budget.accounting.raising import Proposal

router = APIRouter(tags=["policies"])

Number = Annotated[int, Path(ge=1, le=2**62)]
_CONFLICTS = documented("unknown-name", "approval-conflict")


class ProposalAsked(PolicyAsked):
    """A version of a policy, as `PUT /v1/policies/{name}` takes it, and the name of the policy."""

    name: str = Field(min_length=1, max_length=200, examples=["default"])


class DemandAsked(Asked):
    """Whether a change that raises needs the approval of two. To lift that takes the machine of the ledger."""

    demanded: bool


class DemandAnswer(BaseModel):
    """Whether it does."""

    demanded: bool


class ProposalsAnswer(DemandAnswer):
    """Proposals, newest first."""

    rows: list[Row]


@router.get("/v1/proposals", response_model=ProposalsAnswer, responses=documented())
def proposals(request: Request, desk: Officer) -> Response:
    """Every proposal: who wants what, why that is more than before, and what has become of it.

    `state` is `open`, `approved` and still to be set, `withdrawn`, or `past`: the policy has been changed since.
    """
    desk.check_unbound()
    position, approvals = desk.accountant.position(), request.app.state.approvals
    found = approvals.all()
    times = {record.number: record.at for record in desk.accountant.records(found[0].number)} if found else {}
    rows = [
        _row(desk, approvals, each, times[each.number].isoformat().replace("+00:00", "Z")) for each in found[::-1]
    ]
    return told(position, {"demanded": approvals.demanded, "rows": rows})


@router.post("/v1/proposals", response_model=Row, responses=documented("unknown-name"))
def propose(asked: ProposalAsked, request: Request, desk: Officer) -> Response:
    """Propose a version of a policy. Nothing is set by it."""
    desk.check_policy(asked.name)
    proposal = _mine(request, desk).propose(
        asked.name,
        asked.chosen(desk),
        relation=asked.relation,
        unbounded=asked.unbounded,
        checked=asked.checked,
        plan=None if asked.plan is None else asked.plan.plan(desk),
        shares=asked.parts(),
    )
    return told(desk.accountant.position(), _row(desk, request.app.state.approvals, proposal, None))


@router.post("/v1/proposals/{number}/approve", response_model=Row, responses=_CONFLICTS)
def approve(number: Number, request: Request, desk: Officer) -> Response:
    """Approve what another key has proposed. It is not set by that: either of the two does it."""
    _check(request, desk, number)
    proposal = _mine(request, desk).approve(number)
    return told(desk.accountant.position(), _row(desk, request.app.state.approvals, proposal, None))


@router.post("/v1/proposals/{number}/withdraw", response_model=Row, responses=_CONFLICTS)
def withdraw(number: Number, request: Request, desk: Officer) -> Response:
    """End a proposal, one's own or another's, so that nobody approves it any more."""
    _check(request, desk, number)
    proposal = _mine(request, desk).withdraw(number)
    return told(desk.accountant.position(), _row(desk, request.app.state.approvals, proposal, None))


@router.post(
    "/v1/proposals/{number}/set",
    response_model=PolicyAnswer,
    responses=documented("unknown-name", "approval-conflict"),
)
def set_approved(number: Number, request: Request, desk: Officer) -> Response:
    """Set the policy of an approved proposal."""
    _check(request, desk, number)
    policy = _mine(request, desk).apply(number)
    return told(desk.accountant.position(), policy.to_json())


@router.put("/v1/approvals", response_model=DemandAnswer, responses=documented("approval-conflict"))
def demand(asked: DemandAsked, request: Request, desk: Officer) -> Response:
    """Demand, from now on, the approval of two for each change that raises what may be charged."""
    desk.check_unbound()
    _mine(request, desk).demand(asked.demanded)
    return told(desk.accountant.position(), {"demanded": asked.demanded})


def _mine(request: Request, desk: Desk) -> Approvals:
    """The proposals, as the caller sees to them."""
    approvals: Approvals = request.app.state.approvals.acting_for(desk.key.caller)
    return approvals


def _check(request: Request, desk: Desk, number: int) -> None:
    """Refuse a proposal of a policy that the caller's key is not bound to."""
    found = next((each for each in request.app.state.approvals.all() if each.number == number), None)
    if found is None:
        raise UnknownName("proposal", str(number), None)
    desk.check_policy(found.policy)


def _row(desk: Desk, approvals: Approvals, proposal: Proposal, at: str | None) -> dict[str, Any]:
    current = any(each.number == proposal.number for each in approvals.pending())
    versions = {policy.name: policy.version for policy in desk.accountant.policies()}
    stands = versions.get(proposal.policy, 0) == proposal.against
    state = "open" if current else "withdrawn" if proposal.ended == "withdrawn" else "past"
    if proposal.ended == "approved" and stands:
        state = "approved"
    return {
        "number": proposal.number,
        "policy": proposal.policy,
        "against": proposal.against,
        "terms": json.loads(proposal.terms),
        "at": at,
        "by": proposal.by,
        "mine": proposal.by == desk.key.name,
        "state": state,
        "ended_by": proposal.ended_by,
        "reasons": _reasons(approvals, proposal) if state in ("open", "approved") else [],
    }


def _reasons(approvals: Approvals, proposal: Proposal) -> list[str]:
    try:
        return list(approvals.reasons(proposal))
    except NotSupported as error:
        return [str(error)]
