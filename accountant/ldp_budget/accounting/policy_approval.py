"""Which changes of a policy let somebody be charged more, and whether two have agreed to one.

Where a ledger demands it, a change that raises is made by the holder of a key only if another one has approved it.
All of that is records: that it is demanded, proposals, and what became of them. This is the pure part, which the
transaction that sets a policy asks too; what people do with it stands in `access.approvals`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._files import canonical_json
from ..errors import ApprovalConflict
from .admin_records import APPROVED, DEMANDED, PROPOSED, WITHDRAWN, body_of, fault_of, name_of_key
from .policies import Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..ledger import Reading
    from ..ledger.models import AdminLogEntry
    from .limits import Limit


def relaxations(previous: Policy | None, policy: Policy) -> tuple[str, ...]:
    """Why a version of a policy may admit what the one before does not, in words; empty where it admits nothing more.

    Only where it says nothing is each request that fits the new version certain to fit the old one, whatever was
    charged. The reverse need not be so: some of what is named admits nothing more as well.

    Parameters:
        previous: the version before; None where there is none of that name.
        policy: the version after.
    """
    return ("it is a new policy",) if previous is None else tuple(_raising(previous, policy))


def _raising(previous: Policy, policy: Policy) -> Iterator[str]:
    yield from _looser(previous.limits, policy.limits)
    if previous.relation is not None and policy.relation is None:
        yield f"it admits promises for other relations than {previous.relation}"
    if previous.checked and not policy.checked:
        yield "it admits mechanisms that nobody has checked"
    if policy.unbounded and not previous.unbounded:
        yield "it is unbounded"
    if previous.plan is not None and (policy.plan is None or policy.plan.identity != previous.plan.identity):
        yield "it has another plan, or none"
    if previous.plan is not None and policy.earlier != previous.earlier:
        yield "it counts other plans beside its own"
    for share in policy.shares:
        before = previous.share(share.name)
        if before is None:
            yield f"it has a new share, {share.name}"
        else:
            yield from _looser(before.limits, share.limits)


def _looser(before: Iterable[Limit], after: Iterable[Limit]) -> Iterator[str]:
    """The limits that admit more than before, or are gone; one of other terms is another limit."""
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
    """Whether a capacity admits what another does not; None counts nothing."""
    return old is not None and (new is None or new > old)


# -- what was agreed -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Proposal:
    """A change of a policy that somebody wants, by its number; `terms` is the policy as it would be.

    It is for the version `against` alone, which stands when it was proposed, 0 for none. `by` is who proposed it,
    `ended` what became of it ("approved" or "withdrawn"), and `ended_by` who said so; None of either is whoever is on
    the machine of the ledger.
    """

    number: int
    policy: str
    against: int
    terms: str
    by: str | None
    ended: str | None = None
    ended_by: str | None = None


@dataclass(frozen=True)
class ApprovalState:
    """Whether approvals are demanded, and every proposal by its number."""

    demanded: bool
    proposals: dict[int, Proposal]

    def after(self, number: int, kind: str, name: str, body: dict[str, Any], by: str | None) -> ApprovalState:
        """What is agreed after one more record; some of them say nothing.

        Those are the records that cannot be read, and what is not its author's to say: an approval is by another than
        the proposal, and only the machine of the ledger lifts that approvals are demanded.

        Parameters:
            number: of the record.
            kind: of the record.
            name: of the record.
            body: of the record.
            by: who added it.
        """
        if kind not in (DEMANDED, PROPOSED, APPROVED, WITHDRAWN) or fault_of(kind, name, body) is not None:
            return self
        if kind == DEMANDED:
            return replace(self, demanded=body["demanded"] or (self.demanded and by is not None))
        if kind == PROPOSED:
            return self._with(Proposal(number, name, body["against"], canonical_json(body["terms"]), by))
        before = self.proposals.get(body["proposal"])
        if before is None or before.ended is not None or (kind == APPROVED and by == before.by):
            return self
        return self._with(replace(before, ended=kind, ended_by=by))

    def _with(self, proposal: Proposal) -> ApprovalState:
        return ApprovalState(self.demanded, {**self.proposals, proposal.number: proposal})

    def approves(self, policy: str, against: int, terms: str) -> bool:
        """Whether a change was approved.

        Parameters:
            policy: the name of the policy.
            against: the version before the change, 0 for none.
            terms: the policy as it would be, see `terms_of`.
        """
        wanted = policy, against, terms, APPROVED
        return any((each.policy, each.against, each.terms, each.ended) == wanted for each in self.proposals.values())


NOTHING_AGREED = ApprovalState(False, {})


class _Fold(ApprovalState):
    """What is agreed so far, changed in place at each step, as no caller keeps an earlier state."""

    def _with(self, proposal: Proposal) -> ApprovalState:
        self.proposals[proposal.number] = proposal
        return self


def terms_of(policy: Policy) -> dict[str, Any]:
    """What somebody agrees to of a policy: all but its version and what the ledger numbers, as a JSON object."""
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
    }


def unapproved(reading: Reading, previous: Policy | None, policy: Policy) -> tuple[str, ...]:
    """Why a change raises, where this ledger demands an approval that the change has not; empty otherwise."""
    agreed = _agreed(reading.rows.admin_log())
    reasons = relaxations(previous, policy) if agreed.demanded else ()
    against = 0 if previous is None else previous.version
    approved = reasons and agreed.approves(policy.name, against, canonical_json(terms_of(policy)))
    return () if approved else reasons


def check_key_maker(reading: Reading) -> None:
    """Raise `ApprovalConflict` where this ledger demands approvals."""
    if _agreed(reading.rows.admin_log()).demanded:
        raise ApprovalConflict(None, "where approvals are demanded, keys are made on the machine of the ledger")


def _agreed(records: Iterable[AdminLogEntry]) -> ApprovalState:
    agreed: ApprovalState = _Fold(False, {})
    made = {}
    for each in records:
        made[each.number] = each
        if each.kind in (DEMANDED, PROPOSED, APPROVED, WITHDRAWN):
            by = name_of_key(each.api_key, made.get(each.api_key)) if each.api_key else None
            agreed = agreed.after(each.number, each.kind, each.name, body_of(each.body) or {}, by)
    return agreed
