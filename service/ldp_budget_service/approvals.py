"""Four-eyes approval of policy changes: one principal proposes a relaxation, and another approves it.

A ledger can demand this for every change that allows larger charges, made by the holder of an API key.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Unpack

from ldp_budget._validation import check_switch, check_whole
from ldp_budget.accounting.admin_records import APPROVED, DEMANDED, PROPOSED, WITHDRAWN
from ldp_budget.accounting.call_options import PolicyTerms
from ldp_budget.accounting.policies import Policy
from ldp_budget.accounting.policy_approval import NOTHING_AGREED, ApprovalState, Proposal, relaxations, terms_of
from ldp_budget.accounting.policy_versions import check_reason, in_zone_of, propose, with_shares
from ldp_budget.charge_options import check_options
from ldp_budget.errors import ApprovalConflict, NotSupported, UnknownName
from ldp_budget.guarantees.fixed_point import LARGEST
from ldp_budget.ledger.zones import UTC_ZONE

from .admin_log_projection import FRESH_SECONDS, Projection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldp_budget.accounting.accountant import Accountant
    from ldp_budget.accounting.admin_log import Record
    from ldp_budget.accounting.charge_request import Principal
    from ldp_budget.accounting.limits import Limit

ALL = "policies"
"""The name of the records that demand approvals or lift the demand."""


class Approvals:
    """The proposals of a ledger.

    Parameters:
        accountant: of the ledger. With `acting_for`, the records name its caller, who proposes, approves and
            withdraws.
        fresh: in seconds, as in `Projection`; 0 queries the ledger on every call.
    """

    def __init__(self, accountant: Accountant, *, fresh: float = FRESH_SECONDS) -> None:
        self._accountant = accountant
        self._agreed = Projection(accountant, NOTHING_AGREED, _follow, fresh=fresh)

    def __repr__(self) -> str:
        return f"<Approvals of {self._accountant.name}>"

    def acting_for(self, caller: Principal) -> Approvals:
        """The same proposals, used by the holder of an API key.

        Parameters:
            caller: the holder of the key, from `ApiKey.caller`.

        Raises:
            InvalidParameter: `caller` is not a `Principal`.
        """
        return Approvals(self._accountant.acting_for(caller))

    @property
    def demanded(self) -> bool:
        """True if a relaxation by the holder of a key needs the approval of a second principal."""
        return self._agreed.known().demanded

    def demand(self, demanded: bool = True) -> None:
        """Demand approvals from now on, or lift the demand.

        Parameters:
            demanded: True to demand approvals. The holder of a key can only demand them; the demand can only be
                lifted on the ledger's host.

        Raises:
            ApprovalConflict: the holder of a key tries to lift the demand.
            InvalidParameter: `demanded` is neither True nor False.
        """
        check_switch("demanded", demanded)
        if not demanded and self._accountant.caller.number:
            raise ApprovalConflict(None, "the demand for approvals can be lifted only on the machine of the ledger")
        self._agreed.append(lambda _: (DEMANDED, ALL, {"demanded": demanded}))

    def propose(
        self, name: str, limits: Sequence[Limit | str], *, reason: str | None = None, **terms: Unpack[PolicyTerms]
    ) -> Proposal:
        """Propose a version of a policy, with the arguments of `Accountant.set_policy`; no policy is set.

        Parameters:
            name: of the policy.
            limits: as in `set_policy`.
            reason: for those who approve it, of at most 500 characters; None for none.
            terms: as in `set_policy`: see `PolicyTerms`.

        Returns:
            The proposal, with its number.

        Raises:
            InvalidParameter: an argument has the wrong type, or the policy is contradictory.
        """
        check_options(terms, PolicyTerms)
        given = {} if reason is None else {"reason": check_reason("reason", reason)}
        proposed = propose(name, limits, **terms)

        def decide(agreed: ApprovalState) -> tuple[str, str, dict[str, Any]]:
            previous = self._policy(name)
            wanted = with_shares({}, proposed, previous, terms.get("shares") is None)
            if terms.get("zone") is None and previous is not None:
                wanted = in_zone_of(previous, wanted)
            against = 0 if previous is None else previous.version
            return PROPOSED, name, {"against": against, "terms": terms_of(wanted), **given}

        record = self._agreed.append(decide)
        return self._agreed.now()[0].proposals[record.number]

    def approve(self, number: int) -> Proposal:
        """Approve a proposal of another principal, so that `apply` can set it.

        Parameters:
            number: of the proposal.

        Returns:
            The proposal, approved.

        Raises:
            UnknownName: the proposal does not exist.
            ApprovalConflict: the caller proposed it, it has ended, or the policy was changed since.
            InvalidParameter: `number` is not a whole number from 1.
        """
        return self._end(number, APPROVED)

    def withdraw(self, number: int) -> Proposal:
        """End a proposal, your own or another principal's, so that it is never approved.

        Parameters:
            number: of the proposal.

        Returns:
            The proposal, withdrawn.

        Raises:
            UnknownName: the proposal does not exist.
            ApprovalConflict: the proposal has ended.
            InvalidParameter: `number` is not a whole number from 1.
        """
        return self._end(number, WITHDRAWN)

    def _end(self, number: int, kind: str) -> Proposal:
        check_whole("number", number, 1, LARGEST)

        def decide(agreed: ApprovalState) -> tuple[str, str, dict[str, Any]]:
            proposal = agreed.proposals.get(number)
            if proposal is None:
                raise UnknownName("proposal", str(number), [str(each.number) for each in self._open(agreed)])
            if proposal.ended is not None:
                raise ApprovalConflict(number, f"it was already {proposal.ended} by {_person(proposal.ended_by)}")
            if kind == APPROVED:
                self._check_approver(proposal)
            return kind, proposal.policy, {"proposal": number}

        self._agreed.append(decide)
        return self._agreed.now()[0].proposals[number]

    def _check_approver(self, proposal: Proposal) -> None:
        caller = self._accountant.caller
        if (caller.name if caller.number else None) == proposal.by:
            raise ApprovalConflict(
                proposal.number, f"{_person(proposal.by)} proposed it, so another key holder must approve it"
            )
        if not self._is_current(proposal):
            why = f"policy {proposal.policy} was changed after the proposal"
            raise ApprovalConflict(proposal.number, why)

    def apply(self, number: int) -> Policy:
        """Set the policy of an approved proposal.

        Parameters:
            number: of the proposal.

        Returns:
            The policy as it was stored, with its version.

        Raises:
            UnknownName: the proposal does not exist.
            ApprovalConflict: the proposal was not approved, or the policy was changed since.
            NotSupported: the proposal has a plan. The maker of the plan must set it, with `set_policy`.
            InvalidParameter: `number` is not a whole number from 1, or the policy cannot be set so.
        """
        check_whole("number", number, 1, LARGEST)
        agreed = self._agreed.now()[0]
        proposal = agreed.proposals.get(number)
        if proposal is None:
            raise UnknownName("proposal", str(number), [str(each.number) for each in self._open(agreed)])
        if proposal.ended != APPROVED or not self._is_current(proposal):
            why = "it was not approved" if proposal.ended != APPROVED else "the policy was changed after the approval"
            raise ApprovalConflict(number, why)
        return self._accountant.set_policy(**_arguments(proposal))

    def pending(self) -> list[Proposal]:
        """The proposals that can still be approved, in order.

        Raises:
            LedgerError: the ledger cannot be opened, read or trusted.
        """
        versions = {policy.name: policy.version for policy in self._accountant.policies()}
        found = self._open(self._agreed.now()[0])
        return [each for each in found if versions.get(each.policy, 0) == each.against]

    def all(self) -> list[Proposal]:
        """All proposals, also those that have ended, in order.

        Raises:
            LedgerError: the ledger cannot be opened, read or trusted.
        """
        return list(self._agreed.now()[0].proposals.values())

    def reasons(self, proposal: Proposal) -> tuple[str, ...]:
        """The reasons why a proposal needs an approval, compared with the current policy; empty if it needs none.

        Parameters:
            proposal: of this ledger.

        Raises:
            NotSupported: the proposal has a plan.
        """
        return reasons_of(self._policy(proposal.policy), proposal)

    def _open(self, agreed: ApprovalState) -> list[Proposal]:
        return [each for each in agreed.proposals.values() if each.ended is None]

    def _is_current(self, proposal: Proposal) -> bool:
        policy = self._policy(proposal.policy)
        return (0 if policy is None else policy.version) == proposal.against

    def _policy(self, name: str) -> Policy | None:
        return next((policy for policy in self._accountant.policies() if policy.name == name), None)


def reasons_of(previous: Policy | None, proposal: Proposal) -> tuple[str, ...]:
    """Explain why a proposal needs an approval, given the version before it. Raises `NotSupported`."""
    wanted = propose(plan=None, **_arguments(proposal))
    known = {} if previous is None else {share.name: share.number for share in previous.shares}
    if previous is not None and wanted.zone == previous.zone:
        wanted = in_zone_of(previous, wanted)
    return relaxations(previous, with_shares(known, wanted, previous, False))


def _arguments(proposal: Proposal) -> dict[str, Any]:
    """Return the arguments with which `set_policy` sets a proposal. Raises `NotSupported`."""
    terms: dict[str, Any] = json.loads(proposal.terms)
    if terms.pop("plan") is not None:
        raise NotSupported(
            "a proposal with a plan cannot be set from its text",
            hint="The maker of the plan sets it, with `set_policy`.",
        )
    shares = {name: [text.partition(":")[2] for text in limits] for name, limits in terms["shares"].items()}
    return {"zone": UTC_ZONE, **terms, "shares": shares}


def _follow(agreed: ApprovalState, record: Record) -> ApprovalState:
    return agreed.after(record.number, record.kind, record.name, dict(record.body), record.by)


def _person(name: str | None) -> str:
    return "a user of the ledger's machine" if name is None else name
