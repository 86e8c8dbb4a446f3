"""`/v1/proposals`: changes of policies that one proposes and another one approves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from ldp_budget import InvalidParameter, NotSupported, UnknownName
from ldp_budget.accounting.access.approvals import reasons_of

from ..answers import Row, told
from ..asked import Asked
from ..callers import Caller, Desk, router_of
from ..problems import documented
from .policies import PolicyAnswer, PolicyAsked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from ldp_budget.accounting.access.approvals import Approvals
    from ldp_budget.accounting.policies import Policy
    from ldp_budget.accounting.raising import Proposal

router = router_of(tags=["policies"])

MOST_ROWS = 1000
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
def proposals(
    request: Request,
    desk: Caller,
    most: Annotated[int, Query(ge=1, le=MOST_ROWS, description="How many, the newest first.")] = 200,
) -> Response:
    """The proposals: who wants what, why that is more than before, and what has become of it.

    `state` is `open`, `approved` and still to be set, `withdrawn`, or `past`: the policy has been changed since.
    """
    position, approvals = desk.accountant.position(), request.app.state.approvals
    policies = {policy.name: policy for policy in desk.accountant.policies()}
    found = approvals.all()[-most:]
    times = {record.number: record.at for record in desk.accountant.records(found[0].number)} if found else {}
    rows = [{**_row(desk, policies, each), "at": _iso(times[each.number])} for each in found[::-1]]
    return told(position, {"demanded": approvals.demanded, "rows": rows})


@router.post("/v1/proposals", response_model=Row, responses=documented("unknown-name"))
def propose(asked: ProposalAsked, request: Request, desk: Caller) -> Response:
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
    policies = {policy.name: policy for policy in desk.accountant.policies()}
    return told(desk.accountant.position(), _row(desk, policies, proposal))


@router.post("/v1/proposals/{number}/approve", response_model=Row, responses=_CONFLICTS)
def approve(number: Number, request: Request, desk: Caller) -> Response:
    """Approve what another key has proposed. It is not set by that: either of the two does it."""
    _check(request, desk, number)
    proposal = _mine(request, desk).approve(number)
    policies = {policy.name: policy for policy in desk.accountant.policies()}
    return told(desk.accountant.position(), _row(desk, policies, proposal))


@router.post("/v1/proposals/{number}/withdraw", response_model=Row, responses=_CONFLICTS)
def withdraw(number: Number, request: Request, desk: Caller) -> Response:
    """End a proposal, one's own or another's, so that nobody approves it any more."""
    _check(request, desk, number)
    proposal = _mine(request, desk).withdraw(number)
    policies = {policy.name: policy for policy in desk.accountant.policies()}
    return told(desk.accountant.position(), _row(desk, policies, proposal))


@router.post(
    "/v1/proposals/{number}/set",
    response_model=PolicyAnswer,
    responses=documented("unknown-name", "approval-conflict"),
)
def set_approved(number: Number, request: Request, desk: Caller) -> Response:
    """Set the policy of an approved proposal."""
    _check(request, desk, number)
    policy = _mine(request, desk).apply(number)
    return told(desk.accountant.position(), policy.to_json())


@router.put("/v1/approvals", response_model=DemandAnswer, responses=documented("approval-conflict"))
def demand(asked: DemandAsked, request: Request, desk: Caller) -> Response:
    """Demand, from now on, the approval of two for each change that raises what may be charged."""
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


def _row(desk: Desk, policies: Mapping[str, Policy], proposal: Proposal) -> dict[str, Any]:
    policy = policies.get(proposal.policy)
    stands = (0 if policy is None else policy.version) == proposal.against
    if proposal.ended is None:
        state = "open" if stands else "past"
    else:
        state = "approved" if proposal.ended == "approved" and stands else proposal.ended.replace("approved", "past")
    return {
        "number": proposal.number,
        "policy": proposal.policy,
        "against": proposal.against,
        "terms": json.loads(proposal.terms),
        "at": None,
        "by": proposal.by,
        "mine": proposal.by == desk.key.name,
        "state": state,
        "ended_by": proposal.ended_by,
        "reasons": _reasons(policy, proposal) if state in ("open", "approved") else [],
    }


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _reasons(policy: Policy | None, proposal: Proposal) -> list[str]:
    try:
        return list(reasons_of(policy, proposal))
    except (NotSupported, InvalidParameter) as error:
        return [str(error)]
