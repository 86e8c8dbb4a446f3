"""Policies, proposals for their changes, and the privacy officer's view.

- `/v1/policies`: the limits of users.
- `/v1/proposals`: policy changes that one key proposes and another key approves.
- `/v1/officer`: policies with the key and time of each change, API keys and other administrative records.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from ldp_budget import InvalidParameter, Limit, NotSupported, Plan, UnknownName
from ldp_budget._validation import shown
from ldp_budget.accounting.limits import as_limits
from ldp_budget.guarantees import from_json
from ldp_budget.ledger.calendar import utc_text

from ..approvals import reasons_of
from ..auth import AuthContext, Caller, Reader, router_of
from ..problems import documented
from ..responses import Row, ok_with_position
from ..schemas import Asked, Double, MechanismAsked, Switch, Whole, mechanism_asked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from ldp_budget.accounting.policies import Policy
    from ldp_budget.accounting.policy_approval import Proposal
    from ldp_budget.guarantees import Guarantee

    from ..approvals import Approvals


router = router_of(tags=["policies"])

MOST_LIMITS = 50
MOST_SHARES = 1000
MOST_CHARGES = 50
MOST_REPORTS = 100_000


class LimitAsked(Asked):
    """At most (ε, δ) in each window of a period, under a composition rule. Amounts may be exact decimals as text."""

    period: str = Field(examples=["lifetime"])
    epsilon: str | float
    delta: str | float = "0"
    rule: str = "basic"
    aside: str | float = "0"


class Expected(Asked):
    """A number of reports of a collection, or of a guarantee."""

    collection: str | None = None
    guarantee: dict[str, Any] | None = None
    count: Whole = Field(ge=1, le=MOST_REPORTS)

    def charge(self, desk: AuthContext) -> tuple[Guarantee, int]:
        """Return the guarantee and the number of reports. Raises as the library does."""
        if (self.collection is None) == (self.guarantee is None):
            found = None if self.collection is None else self.collection
            raise InvalidParameter("collection", "given, or else a guarantee, and not both", found)
        if self.collection is not None:
            desk.check_collection(self.collection)
            return desk.collection(self.collection).mechanism.guarantee, self.count
        try:
            return from_json(dict(self.guarantee or {})), self.count
        except (ValueError, LookupError, TypeError) as error:
            raise InvalidParameter("guarantee", "as `to_json` of a guarantee writes it", str(error)) from None


class PlanAsked(Asked):
    """A fixed list of reports that are priced together in advance."""

    charges: list[Expected] = Field(min_length=1, max_length=MOST_CHARGES)
    delta: str | float = "0"
    epsilon: Double | None = Field(None, description="The earlier price of the same plan.")

    def plan(self, desk: AuthContext) -> Plan:
        """Return the priced plan. Raises as the library does."""
        charges = tuple(each.charge(desk) for each in self.charges)
        if sum(count for _, count in charges) > MOST_REPORTS:
            raise InvalidParameter("charges", f"at most {MOST_REPORTS} reports", "more")
        delta: Any = self.delta
        return Plan(charges, delta, price=self.epsilon)


class PolicyAsked(Asked):
    """A policy: limits, all of which a spend must fit."""

    limits: list[str | LimitAsked] = Field(
        [],
        max_length=MOST_LIMITS,
        description="Each an object, or a text as on the command line: `PERIOD=EPSILON[,DELTA[,RULE]]`.",
        examples=[["lifetime=4,1e-6,zcdp", "day=1"]],
    )
    relation: Literal["any"] | None = Field(None, description="Admit only guarantees that hold for any two inputs.")
    unbounded: Switch = Field(
        False, description="True for a policy without a lifetime limit: it allows an unlimited total."
    )
    checked: Switch = Field(False, description="Admit only mechanisms whose promise was checked.")
    plan: PlanAsked | None = Field(None, description="Admit only these charges, each up to its count.")
    shares: dict[str, list[str | LimitAsked]] | None = Field(
        None,
        max_length=MOST_SHARES,
        description="Parts of the limits by name, for keys bound to one; null keeps those that there are.",
        examples=[{"team-a": ["lifetime=1"]}],
    )
    zone: str | None = Field(
        None,
        description="The IANA time zone in which days, weeks and months begin at midnight; null keeps that of the "
        "version before, and a new policy has UTC.",
        examples=["Asia/Seoul"],
    )
    expected: list[Expected] = Field(
        [],
        max_length=MOST_CHARGES,
        description="The expected charges: a limit with rule renyi without an order takes the best order for them.",
    )

    def chosen(self, desk: AuthContext) -> tuple[Limit, ...]:
        """Return the limits. Raises as the library does."""
        asked = tuple(each.charge(desk) for each in self.expected)
        return as_limits(_limits(self.limits), asked)

    def parts(self) -> dict[str, Sequence[Limit | str]] | None:
        """Return the sub-limits by name. Raises as the library does."""
        return None if self.shares is None else {name: _limits(limits) for name, limits in self.shares.items()}


def _limits(given: list[str | LimitAsked]) -> list[Limit | str]:
    return [each if isinstance(each, str) else Limit(**each.model_dump()) for each in given]


class PolicyAnswer(BaseModel):
    """A version of a policy. Capacities are in whole units of the ledger: 1e-9 of ε, 1e-18 of δ, 1e-12 of the rest."""

    model_config = ConfigDict(extra="allow")

    name: str
    version: int
    limits: list[Row]
    relation: str | None
    unbounded: bool
    checked: bool
    plan: dict[str, Any] | None
    earlier: list[dict[str, Any]]
    zone: str = Field("UTC", description="The IANA time zone of its days; left out for UTC.")
    zone_rules: str = Field(
        "", description="The zone's file of the time zone database, compressed, in Base64; left out for UTC."
    )


@router.get("/v1/policies", response_model=list[PolicyAnswer], responses=documented())
def list_policies(desk: Reader) -> Response:
    """Return the newest version of every policy; a key that is bound to policies gets those."""
    position, bound = desk.position(), desk.key.policies
    found = [policy for policy in desk.accountant.policies() if bound is None or policy.name in bound]
    return ok_with_position(position, [policy.to_json() for policy in found])


@router.get(
    "/v1/policies/{name:name}/simulation",
    response_model=list[Row],
    responses=documented("unknown-name", "too-much-work", "overloaded"),
)
async def simulate(
    name: str,
    request: Request,
    desk: Reader,
    every: Annotated[Literal["day", "week", "month"], Query(description="How often reports are asked.")],
    collection: Annotated[str | None, Query(description="Of which collection.")] = None,
    mechanism: Annotated[
        str | None,
        Query(description='Of which mechanism, as JSON: {"name": "oue", "epsilon": "1", "domain_size": 7}.'),
    ] = None,
    reports: Annotated[int, Query(ge=1, le=10**9, description="How many at a time.")] = 1,
    start: Annotated[AwareDatetime | None, Query(description="When the first are asked; now without it.")] = None,
) -> Response:
    """Return for each limit of the policy when it first binds.

    The simulated user starts without charges and reports at regular intervals.
    """
    desk.check_policy(name)
    desk.check_collection(collection)
    read = None if mechanism is None else MechanismAsked.read(mechanism)
    chosen, position, asked = await run_in_threadpool(_simulated, desk, name, read, collection, start)
    more = {"every": every, "reports": reports}
    found = await request.app.state.workers.answer("simulate", {**chosen, **asked, **more})
    return ok_with_position(position, found)


def _simulated(
    desk: AuthContext, name: str, mechanism: MechanismAsked | None, collection: str | None, start: datetime | None
) -> tuple[Row, str | None, Row]:
    """Return the mechanism, the position of the journal, and the policy with the start, for a worker process."""
    chosen = mechanism_asked(desk, mechanism, collection)
    position, found = desk.position(), desk.accountant.policy(name)
    begun = desk.accountant.now() if start is None else _in_range(start)
    return chosen, position, {"policy": found.to_json(), "start": begun.isoformat()}


@router.get(
    "/v1/policies/{name:name}",
    response_model=PolicyAnswer,
    responses=documented("unknown-name"),
)
def policy(name: str, desk: Reader) -> Response:
    """Return the newest version of a policy."""
    desk.check_policy(name)
    position = desk.position()
    return ok_with_position(position, desk.accountant.policy(name).to_json())


@router.put(
    "/v1/policies/{name:name}",
    response_model=PolicyAnswer,
    responses=documented("unknown-name", "approval-needed"),
)
def set_policy(name: str, asked: PolicyAsked, desk: Caller) -> Response:
    """Store a policy, as a new version if the name exists. Earlier charges remain."""
    desk.check_policy(name)
    plan = None if asked.plan is None else asked.plan.plan(desk)
    stored = desk.accountant.set_policy(
        name,
        asked.chosen(desk),
        relation=asked.relation,
        unbounded=asked.unbounded,
        checked=asked.checked,
        plan=plan,
        shares=asked.parts(),
        zone=asked.zone,
    )
    return ok_with_position(desk.position(), stored.to_json())


def _in_range(start: datetime) -> datetime:
    """Return the time in UTC. Raises `InvalidParameter` if it is out of the calendar's range."""
    try:
        return start.astimezone(UTC)
    except OverflowError:
        raise InvalidParameter("start", "a time from 1970 to 9997", shown(str(start))) from None


# -- proposals ------------------------------------------------------------------------------------------

proposals_router = router_of(tags=["policies"])

MOST_ROWS = 1000
Number = Annotated[int, Path(ge=1, le=2**62)]
_CONFLICTS = documented("unknown-name", "approval-conflict")


class ProposalAsked(PolicyAsked):
    """A version of a policy, as `PUT /v1/policies/{name}` takes it, and the name of the policy."""

    name: str = Field(min_length=1, max_length=200, examples=["default"])
    reason: str | None = Field(
        None,
        description="Why, for the key that approves it, in at most 500 characters.",
        examples=["A second wave of the survey"],
    )


class DemandAsked(Asked):
    """The approval requirement: true if a second key must approve each relaxation of a policy.

    The requirement can only be removed locally, on the ledger's host.
    """

    demanded: bool


class DemandAnswer(BaseModel):
    """`demanded` is true if relaxations of policies require approval."""

    demanded: bool


class ProposalsAnswer(DemandAnswer):
    """Proposals, newest first."""

    rows: list[Row]


@proposals_router.get("/v1/proposals", response_model=ProposalsAnswer, responses=documented())
def proposals(
    request: Request,
    desk: Caller,
    most: Annotated[int, Query(ge=1, le=MOST_ROWS, description="How many, the newest first.")] = 200,
) -> Response:
    """Return the proposals with their author, the reasons why they relax the policy, and their state.

    `state` is `open`, `approved` (not yet set), `withdrawn`, or `past`: the policy has changed since.
    """
    position, approvals = desk.position(), request.app.state.approvals
    policies = {policy.name: policy for policy in desk.accountant.policies()}
    found = approvals.all()[-most:]
    times = {record.number: record.at for record in desk.accountant.records(found[0].number)} if found else {}
    rows = [{**_row(desk, policies, each), "at": utc_text(times[each.number])} for each in found[::-1]]
    return ok_with_position(position, {"demanded": approvals.demanded, "rows": rows})


@proposals_router.post("/v1/proposals", response_model=Row, responses=documented("unknown-name"))
def propose(asked: ProposalAsked, request: Request, desk: Caller) -> Response:
    """Propose a version of a policy. This does not set the policy."""
    desk.check_policy(asked.name)
    proposal = _mine(request, desk).propose(
        asked.name,
        asked.chosen(desk),
        relation=asked.relation,
        unbounded=asked.unbounded,
        checked=asked.checked,
        plan=None if asked.plan is None else asked.plan.plan(desk),
        shares=asked.parts(),
        zone=asked.zone,
        reason=asked.reason,
    )
    policies = {policy.name: policy for policy in desk.accountant.policies()}
    return ok_with_position(desk.position(), _row(desk, policies, proposal))


@proposals_router.post("/v1/proposals/{number}/approve", response_model=Row, responses=_CONFLICTS)
def approve(number: Number, request: Request, desk: Caller) -> Response:
    """Approve a proposal of another key. This does not set the policy: either of the two keys does."""
    _check(request, desk, number)
    proposal = _mine(request, desk).approve(number)
    policies = {policy.name: policy for policy in desk.accountant.policies()}
    return ok_with_position(desk.position(), _row(desk, policies, proposal))


@proposals_router.post("/v1/proposals/{number}/withdraw", response_model=Row, responses=_CONFLICTS)
def withdraw(number: Number, request: Request, desk: Caller) -> Response:
    """Withdraw a proposal, your own or another key's. It can no longer be approved."""
    _check(request, desk, number)
    proposal = _mine(request, desk).withdraw(number)
    policies = {policy.name: policy for policy in desk.accountant.policies()}
    return ok_with_position(desk.position(), _row(desk, policies, proposal))


@proposals_router.post(
    "/v1/proposals/{number}/set",
    response_model=PolicyAnswer,
    responses=documented("unknown-name", "approval-conflict"),
)
def set_approved(number: Number, request: Request, desk: Caller) -> Response:
    """Set the policy of an approved proposal."""
    _check(request, desk, number)
    policy = _mine(request, desk).apply(number)
    return ok_with_position(desk.position(), policy.to_json())


@proposals_router.put("/v1/approvals", response_model=DemandAnswer, responses=documented("approval-conflict"))
def demand(asked: DemandAsked, request: Request, desk: Caller) -> Response:
    """Require approval by a second key for every relaxation of a policy, from now on."""
    _mine(request, desk).demand(asked.demanded)
    return ok_with_position(desk.position(), {"demanded": asked.demanded})


def _mine(request: Request, desk: AuthContext) -> Approvals:
    """Return the proposals, acting for the caller."""
    approvals: Approvals = request.app.state.approvals.acting_for(desk.key.caller)
    return approvals


def _check(request: Request, desk: AuthContext, number: int) -> None:
    """Refuse a proposal that does not exist, or for a policy that the caller's key is not bound to.

    For a bound key both have one error.
    """
    bound = desk.key.policies
    if not any(each.number == number and (bound is None or each.policy in bound) for each in _all(request)):
        raise UnknownName("proposal", str(number), None) if bound is None else desk.none_of_those("proposal")


def _all(request: Request) -> list[Proposal]:
    found: list[Proposal] = request.app.state.approvals.all()
    return found


def _row(desk: AuthContext, policies: Mapping[str, Policy], proposal: Proposal) -> dict[str, Any]:
    policy = policies.get(proposal.policy)
    is_current = (0 if policy is None else policy.version) == proposal.against
    if proposal.ended is None:
        state = "open" if is_current else "past"
    else:
        state = (
            "approved" if proposal.ended == "approved" and is_current else proposal.ended.replace("approved", "past")
        )
    return {
        "number": proposal.number,
        "policy": proposal.policy,
        "against": proposal.against,
        "terms": json.loads(proposal.terms),
        "at": None,
        "by": proposal.by,
        "reason": proposal.reason,
        "mine": proposal.by == desk.key.name,
        "state": state,
        "ended_by": proposal.ended_by,
        "reasons": _reasons(policy, proposal) if state in ("open", "approved") else [],
    }


def _reasons(policy: Policy | None, proposal: Proposal) -> list[str]:
    try:
        return list(reasons_of(policy, proposal))
    except (NotSupported, InvalidParameter) as error:
        return [str(error)]


# -- privacy officer ------------------------------------------------------------------------------------

officer_router = router_of(prefix="/v1/officer", tags=["officer"])

MOST_RECORDS = 1000
_SECRET = ("hash",)
"""Members of a record that are not shown, although they cannot be misused."""


class OfficerAnswer(BaseModel):
    """Rows, newest first."""

    rows: list[Row]


class SummaryAnswer(BaseModel):
    """Counts of pending work and of the ledger's contents."""

    key: str = Field(description="The name of the caller's key, which the journal records with each action.")
    counts: dict[str, int] = Field(description="Open proposals, policies, active keys, erased users.")


@officer_router.get("", response_model=SummaryAnswer, responses=documented())
def summary(request: Request, desk: Caller) -> Response:
    """Return the number of open proposals, policies, active API keys and erased users."""
    state, position, now = request.app.state, desk.position(), desk.accountant.now()
    counts = {
        "proposals": len(state.approvals.pending()),
        "policies": len(desk.accountant.policies()),
        "keys": sum(key.state(now) == "active" for key in state.keys.all()),
        "erased": state.usage.get("totals").value["erased"],
    }
    return ok_with_position(position, {"key": desk.key.name, "counts": counts})


@officer_router.get("/policies", response_model=OfficerAnswer, responses=documented())
def policies(desk: Caller) -> Response:
    """Return every version of every policy, with its terms, time and API key, and if it relaxes the one before."""
    position = desk.position()
    return ok_with_position(position, {"rows": desk.accountant.ledger.overview().policies()})


@officer_router.get("/keys", response_model=OfficerAnswer, responses=documented())
def keys(request: Request, desk: Caller) -> Response:
    """Return every API key that ever existed, with its scopes, bindings and state. Secrets are not stored."""
    position, now = desk.position(), desk.accountant.now()
    return ok_with_position(position, {"rows": [key.to_json(now) for key in request.app.state.keys.all()][::-1]})


@officer_router.get("/records", response_model=OfficerAnswer, responses=documented())
def records(
    desk: Caller,
    most: Annotated[int, Query(ge=1, le=MOST_RECORDS, description="How many at most.")] = 200,
) -> Response:
    """Return the administrative records: API keys, invitations, approvals, verifications; with time and author."""
    position = desk.position()
    found = desk.accountant.records(max(1, desk.accountant.newest_record - most + 1))[-most:]
    return ok_with_position(position, {"rows": [_without_hash(record.to_json()) for record in found[::-1]]})


def _without_hash(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "body": {name: value for name, value in row["body"].items() if name not in _SECRET}}
