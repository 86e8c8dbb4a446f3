"""`/v1/policies`: what users may be charged."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Query, Request
from fastapi.responses import Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from ldp_budget import Limit, Plan
from ldp_budget.accounting.limits import as_limits
from ldp_budget.guarantees import from_json

from ..answers import Row, told
from ..asked import Asked, MechanismAsked, mechanism_asked
from ..callers import Caller, Desk, Reader, router_of
from ..kinds import ServiceError
from ..problems import documented

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldp_budget.guarantees import Guarantee

router = router_of(tags=["policies"])

MOST_LIMITS = 50
MOST_SHARES = 1000
MOST_CHARGES = 50
MOST_REPORTS = 100_000


class LimitAsked(Asked):
    """At most (ε, δ) within each window of a period, added up by a rule. Amounts may be text: exact decimals."""

    period: str = Field(examples=["lifetime"])
    epsilon: str | float
    delta: str | float = "0"
    rule: str = "basic"
    aside: str | float = "0"


class Expected(Asked):
    """So many reports of a collection, or of what is promised by a guarantee."""

    collection: str | None = None
    guarantee: dict[str, Any] | None = None
    count: int = Field(ge=1, le=MOST_REPORTS)

    def charge(self, desk: Desk) -> tuple[Guarantee, int]:
        """The guarantee, and how many. Raises as the library does."""
        if (self.collection is None) == (self.guarantee is None):
            raise ServiceError("malformed", "collection: expected a collection, or a guarantee in its place")
        if self.collection is not None:
            desk.check_collection(self.collection)
            return desk.collection(self.collection).mechanism.guarantee, self.count
        try:
            return from_json(dict(self.guarantee or {})), self.count
        except (ValueError, LookupError, TypeError) as error:
            raise ServiceError("malformed", f"guarantee: {error}") from None


class PlanAsked(Asked):
    """A fixed list of reports, priced together beforehand."""

    charges: list[Expected] = Field(min_length=1, max_length=MOST_CHARGES)
    delta: str | float = "0"
    epsilon: float | None = Field(None, description="What the same plan was priced at before.")

    def plan(self, desk: Desk) -> Plan:
        """The plan, priced. Raises as the library does."""
        charges = tuple(each.charge(desk) for each in self.charges)
        if sum(count for _, count in charges) > MOST_REPORTS:
            raise ServiceError("malformed", f"plan: expected at most {MOST_REPORTS} reports")
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
    unbounded: bool = Field(False, description="Said aloud where there is no lifetime limit.")
    checked: bool = Field(False, description="Admit only mechanisms whose promise was checked.")
    plan: PlanAsked | None = Field(None, description="Admit only these charges, each up to its count.")
    shares: dict[str, list[str | LimitAsked]] | None = Field(
        None,
        max_length=MOST_SHARES,
        description="Parts of the limits by name, for keys bound to one; null keeps those that there are.",
        examples=[{"team-a": ["lifetime=1"]}],
    )
    expected: list[Expected] = Field(
        [],
        max_length=MOST_CHARGES,
        description="What will probably be asked: a limit by rule renyi without an order takes the best one for it.",
    )

    def chosen(self, desk: Desk) -> tuple[Limit, ...]:
        """The limits. Raises as the library does."""
        asked = tuple(each.charge(desk) for each in self.expected)
        return as_limits(_limits(self.limits), asked)

    def parts(self) -> dict[str, Sequence[Limit | str]] | None:
        """The limits of the shares, by name. Raises as the library does."""
        return None if self.shares is None else {name: _limits(limits) for name, limits in self.shares.items()}


def _limits(given: list[str | LimitAsked]) -> list[Limit | str]:
    return [each if isinstance(each, str) else Limit(**each.model_dump()) for each in given]


class PolicyAnswer(BaseModel):
    """A version of a policy. Capacities are in the ledger's whole units: 1e-9 of ε, 1e-18 of δ, 1e-12 of the rest."""

    model_config = ConfigDict(extra="allow")

    name: str
    version: int
    limits: list[Row]
    relation: str | None
    unbounded: bool
    checked: bool
    plan: dict[str, Any] | None
    earlier: list[dict[str, Any]]


@router.get("/v1/policies", response_model=list[PolicyAnswer], responses=documented())
def list_policies(desk: Reader) -> Response:
    """The newest version of every policy; for a key that is bound to policies, of those."""
    position, bound = desk.accountant.position(), desk.key.policies
    found = [policy for policy in desk.accountant.policies() if bound is None or policy.name in bound]
    return told(position, [policy.to_json() for policy in found])


@router.get(
    "/v1/policies/{name:name}/simulation",
    response_model=list[Row],
    responses=documented("unknown-name", "too-much-work", "overloaded"),
)
def simulate(
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
    """When each limit of the policy binds first for somebody who is asked again and again, and has spent nothing."""
    desk.check_policy(name)
    desk.check_collection(collection)
    chosen = mechanism_asked(desk, None if mechanism is None else MechanismAsked.read(mechanism), collection)
    position, found = desk.accountant.position(), desk.accountant.policy(name)
    begun = desk.accountant.now() if start is None else _in_range(start)
    asked = {"policy": found.to_json(), "every": every, "reports": reports, "start": begun.isoformat()}
    return told(position, request.app.state.workers.ask("simulate", {**chosen, **asked}))


@router.get(
    "/v1/policies/{name:name}",
    response_model=PolicyAnswer,
    responses=documented("unknown-name"),
)
def policy(name: str, desk: Reader) -> Response:
    """The newest version of a policy."""
    desk.check_policy(name)
    position = desk.accountant.position()
    return told(position, desk.accountant.policy(name).to_json())


@router.put(
    "/v1/policies/{name:name}",
    response_model=PolicyAnswer,
    responses=documented("unknown-name", "approval-needed"),
)
def set_policy(name: str, asked: PolicyAsked, desk: Caller) -> Response:
    """Store a policy, as a new version where there is one of that name; what was spent stays spent."""
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
    )
    return told(desk.accountant.position(), stored.to_json())


def _in_range(start: datetime) -> datetime:
    """The moment in UTC. Raises where no calendar has it."""
    try:
        return start.astimezone(UTC)
    except OverflowError:
        raise ServiceError("malformed", "start: expected a moment from 1970 to 9997") from None
