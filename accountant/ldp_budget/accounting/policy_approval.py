"""Detection of policy changes that relax a limit, and four-eyes approval of such changes.

If a ledger demands approvals, an API key's relaxation of a policy needs the approval of another API key. The
demand, the proposals and their outcomes are records in the administrative log. This module is the pure part, which
the transaction that sets a policy uses too. `ldp_budget_service.approvals` holds the operations on proposals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._files import canonical_json
from ..errors import ApprovalConflict
from ..ledger.zones import UTC_ZONE
from .admin_records import APPROVED, DEMANDED, PROPOSED, WITHDRAWN, body_of, fault_of, name_of_key
from .policies import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..ledger import Reading
    from ..ledger.models import AdminLogEntry
    from .limits import Limit


def relaxations(previous: Policy | None, policy: Policy) -> tuple[str, ...]:
    """The reasons why a policy version may admit what the previous one does not, in words.

    If the result is empty, each request that fits the new version certainly fits the old one, for any previous
    charges. The reverse need not hold: some listed changes admit nothing more either.

    Parameters:
        previous: the previous version; None for a new policy.
        policy: the new version.
    """
    return ("it is a new policy",) if previous is None else tuple(_raising(previous, policy))


def _raising(previous: Policy, policy: Policy) -> Iterator[str]:
    if (policy.zone, policy.zone_rules) != (previous.zone, previous.zone_rules):
        other = "" if policy.zone != previous.zone else "other rules of "
        yield f"its days are those of {other}{policy.zone}, not of {previous.zone}"
    yield from _looser(previous.limits, policy.limits)
    if previous.relation is not None and policy.relation is None:
        yield f"it admits promises for other relations than {previous.relation}"
    if previous.checked and not policy.checked:
        yield "it admits mechanisms that were not checked"
    if policy.unbounded and not previous.unbounded:
        yield "it is unbounded"
    if previous.plan is not None and (policy.plan is None or policy.plan.identity != previous.plan.identity):
        yield "it has another plan, or none"
    if previous.plan is not None and policy.earlier != previous.earlier:
        yield "it counts other plans in addition to its own"
    for share in policy.shares:
        before = previous.share(share.name)
        if before is None:
            yield f"it has a new share, {share.name}"
        else:
            yield from _looser(before.limits, share.limits)


def _looser(before: Iterable[Limit], after: Iterable[Limit]) -> Iterator[str]:
    """Yield the limits that admit more than before, or were dropped. A limit with other terms is a different limit."""
    now = {_terms(limit): limit for limit in after}
    for limit in before:
        same = now.get(_terms(limit))
        if same is None:
            yield f"it drops the limit {limit}"
        elif any(_more(new, old) for new, old in zip(same.capacity, limit.capacity, strict=True)):
            yield f"it raises the limit {limit} to {same}"


def _terms(limit: Limit) -> tuple[str, str]:
    return limit.gauge, limit.rule


def _more(new: int | None, old: int | None) -> bool:
    """True if a capacity admits more than another one; None does not count the amount at all."""
    return old is not None and (new is None or new > old)


# -- the state of approvals ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Proposal:
    """A proposed change of a policy, with its number; `terms` is the policy after the change.

    The proposal is valid only for the version `against`, the newest one when it was proposed, or 0 for a new
    policy. `by` is the proposer, `ended` the outcome ("approved" or "withdrawn"), and `ended_by` the principal
    behind the outcome. In both, None means a user of the ledger's machine. `reason` is the proposer's, None without one.
    """

    number: int
    policy: str
    against: int
    terms: str
    by: str | None
    ended: str | None = None
    ended_by: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class ApprovalState:
    """The state of approvals.

    `demanded` is True if the ledger demands approvals; `proposals` holds every proposal by its number.
    """

    demanded: bool
    proposals: dict[int, Proposal]

    def after(self, number: int, kind: str, name: str, body: dict[str, Any], by: str | None) -> ApprovalState:
        """The state after one more record. Some records change nothing.

        These are unreadable records, and records by a principal without the right to add them: an approval needs
        another principal than the proposal, and only the ledger's machine can remove the demand for approvals.

        Parameters:
            number: of the record.
            kind: of the record.
            name: of the record.
            body: of the record.
            by: the principal that added the record.
        """
        if kind not in (DEMANDED, PROPOSED, APPROVED, WITHDRAWN) or fault_of(kind, name, body) is not None:
            return self
        if kind == DEMANDED:
            return replace(self, demanded=body["demanded"] or (self.demanded and by is not None))
        if kind == PROPOSED:
            reason = body.get("reason")
            return self._with(
                Proposal(number, name, body["against"], canonical_json(body["terms"]), by, reason=reason)
            )
        before = self.proposals.get(body["proposal"])
        if before is None or before.ended is not None or (kind == APPROVED and by == before.by):
            return self
        return self._with(replace(before, ended=kind, ended_by=by))

    def _with(self, proposal: Proposal) -> ApprovalState:
        return ApprovalState(self.demanded, {**self.proposals, proposal.number: proposal})

    def approval(self, previous: Policy | None, policy: Policy) -> Proposal | None:
        """The approved proposal of a change; None if the change was not approved.

        Parameters:
            previous: the version before the change, None for a new policy.
            policy: the policy after the change.
        """
        against = 0 if previous is None else previous.version
        wanted = policy.name, against, canonical_json(terms_of(policy)), APPROVED
        found = (
            each for each in self.proposals.values() if (each.policy, each.against, each.terms, each.ended) == wanted
        )
        return next(found, None)


NOTHING_AGREED = ApprovalState(False, {})


class _Fold(ApprovalState):
    """The state of approvals, changed in place at each step, because no caller keeps an earlier state."""

    def _with(self, proposal: Proposal) -> ApprovalState:
        self.proposals[proposal.number] = proposal
        return self


def terms_of(policy: Policy) -> dict[str, Any]:
    """The terms of a policy that an approval covers, as a JSON object.

    It leaves out the policy's version and the ledger's numbers.
    """
    data = policy.to_json()
    plan = data["plan"]
    shares = {share.name: sorted(map(str, share.limits)) for share in policy.shares}
    return {
        "name": policy.name,
        "limits": sorted(map(str, policy.limits)),
        "relation": policy.relation,
        "unbounded": policy.unbounded,
        "checked": policy.checked,
        "plan": None if plan is None else {"identity": plan["identity"], "quotas": plan["quotas"]},
        "shares": shares,
        **({} if policy.zone == UTC_ZONE else {"zone": policy.zone}),
    }


def unapproved(reading: Reading, previous: Policy | None, policy: Policy) -> tuple[str, ...]:
    """The reasons why a change is a relaxation, if a demanded approval is missing; otherwise empty."""
    agreed = agreed_in(reading.rows.admin_log())
    reasons = relaxations(previous, policy) if agreed.demanded else ()
    return () if reasons and agreed.approval(previous, policy) else reasons


def check_key_maker(reading: Reading) -> None:
    """Raise `ApprovalConflict` if this ledger demands approvals."""
    if agreed_in(reading.rows.admin_log()).demanded:
        raise ApprovalConflict(
            None, "this ledger demands approvals, so keys can be made only on the machine of the ledger"
        )


def agreed_in(records: Iterable[AdminLogEntry]) -> ApprovalState:
    """Return the state of approvals after the records of a ledger."""
    agreed: ApprovalState = _Fold(False, {})
    made = {}
    for each in records:
        made[each.number] = each
        if each.kind in (DEMANDED, PROPOSED, APPROVED, WITHDRAWN):
            by = name_of_key(each.api_key, made.get(each.api_key)) if each.api_key else None
            agreed = agreed.after(each.number, each.kind, each.name, body_of(each.body) or {}, by)
    return agreed
