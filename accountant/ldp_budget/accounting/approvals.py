"""The approval of two: where a ledger demands it, one proposes what raises a limit and another one approves it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .._validation import check_switch, check_whole
from ..errors import ApprovalConflict, NotSupported, UnknownName
from ..guarantees.fixed_point import LARGEST
from .admin_records import APPROVED, DEMANDED, PROPOSED, WITHDRAWN
from .policies import Policy
from .policy_approval import NOTHING_AGREED, ApprovalState, Proposal, relaxations, terms_of
from .policy_versions import propose, with_shares
from .projection import FRESH_SECONDS, Projection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .accountant import Accountant
    from .admin_log import Record
    from .charge_request import Principal
    from .limits import Limit
    from .policies import Plan

ALL = "policies"
"""The name of the records that say whether approvals are demanded."""


class Approvals:
    """The proposals of a ledger.

    Parameters:
        accountant: of the ledger. With `acting_for`, its caller stands in the records, and is who proposes, approves
            and withdraws.
        fresh: in seconds, as in `Projection`; 0 asks the ledger each time.
    """

    def __init__(self, accountant: Accountant, *, fresh: float = FRESH_SECONDS) -> None:
        self._accountant = accountant
        self._agreed = Projection(accountant, NOTHING_AGREED, _follow, fresh=fresh)

    def __repr__(self) -> str:
        return f"<Approvals of {self._accountant.name}>"

    def acting_for(self, caller: Principal) -> Approvals:
        """The same proposals, as the holder of a key sees to them.

        Parameters:
            caller: the holder, as `ApiKey.caller` says.

        Raises:
            InvalidParameter: it is none.
        """
        return Approvals(self._accountant.acting_for(caller))

    @property
    def demanded(self) -> bool:
        """Whether a change that raises needs the approval of two, where it is made by the holder of a key."""
        return self._agreed.known().demanded

    def demand(self, demanded: bool = True) -> None:
        """Demand approvals from now on, or no more.

        Parameters:
            demanded: whether they are. The holder of a key can only demand them: to lift that takes somebody on the
                machine of the ledger.

        Raises:
            ApprovalConflict: the holder of a key wants to lift it.
            InvalidParameter: it is neither True nor False.
        """
        check_switch("demanded", demanded)
        if not demanded and self._accountant.caller.number:
            raise ApprovalConflict(None, "that approvals are demanded is lifted on the machine of the ledger alone")
        self._agreed.append(lambda _: (DEMANDED, ALL, {"demanded": demanded}))

    def propose(
        self,
        name: str,
        limits: Sequence[Limit | str],
        *,
        relation: str | None = None,
        unbounded: bool = False,
        checked: bool = False,
        plan: Plan | None = None,
        shares: dict[str, Sequence[Limit | str]] | None = None,
    ) -> Proposal:
        """Propose a version of a policy, with the arguments of `Accountant.set_policy`; nothing is set by it.

        Parameters:
            name: of the policy.
            limits: as there.
            relation: as there.
            unbounded: as there.
            checked: as there.
            plan: as there.
            shares: as there.

        Returns:
            The proposal, with its number.

        Raises:
            InvalidParameter: one of them is of another kind, or the policy makes no sense.
        """
        proposed = propose(
            name, limits, relation=relation, unbounded=unbounded, checked=checked, plan=plan, shares=shares
        )

        def decide(agreed: ApprovalState) -> tuple[str, str, dict[str, Any]]:
            previous = self._policy(name)
            wanted = with_shares({}, proposed, previous, shares is None)
            against = 0 if previous is None else previous.version
            return PROPOSED, name, {"against": against, "terms": terms_of(wanted)}

        record = self._agreed.append(decide)
        return self._agreed.now()[0].proposals[record.number]

    def approve(self, number: int) -> Proposal:
        """Approve a proposal of somebody else; then either of them can set it.

        Parameters:
            number: of the proposal.

        Raises:
            UnknownName: there is no such proposal.
            ApprovalConflict: it is one's own, it has ended, or the policy has been changed since.
            InvalidParameter: it is no whole number.
        """
        return self._end(number, APPROVED)

    def withdraw(self, number: int) -> Proposal:
        """End a proposal, one's own or another's, so that it is never approved.

        Parameters:
            number: of the proposal.

        Raises:
            UnknownName: there is no such proposal.
            ApprovalConflict: it has ended.
            InvalidParameter: it is no whole number.
        """
        return self._end(number, WITHDRAWN)

    def _end(self, number: int, kind: str) -> Proposal:
        check_whole("number", number, 1, LARGEST)

        def decide(agreed: ApprovalState) -> tuple[str, str, dict[str, Any]]:
            proposal = agreed.proposals.get(number)
            if proposal is None:
                raise UnknownName("proposal", str(number), [str(each.number) for each in self._open(agreed)])
            if proposal.ended is not None:
                raise ApprovalConflict(number, f"it was {proposal.ended} by {_person(proposal.ended_by)} already")
            if kind == APPROVED:
                self._check_approver(proposal)
            return kind, proposal.policy, {"proposal": number}

        self._agreed.append(decide)
        return self._agreed.now()[0].proposals[number]

    def _check_approver(self, proposal: Proposal) -> None:
        caller = self._accountant.caller
        if (caller.name if caller.number else None) == proposal.by:
            raise ApprovalConflict(
                proposal.number, f"{_person(proposal.by)} has proposed it, and another approves it"
            )
        if not self._is_current(proposal):
            why = f"policy {proposal.policy} has been changed since it was proposed"
            raise ApprovalConflict(proposal.number, why)

    def apply(self, number: int) -> Policy:
        """Set the policy of an approved proposal.

        Parameters:
            number: of the proposal.

        Returns:
            The policy as it was stored, with its version.

        Raises:
            UnknownName: there is no such proposal.
            ApprovalConflict: it was not approved, or the policy has been changed since.
            NotSupported: it has a plan, which whoever has made it must set.
            InvalidParameter: it is no whole number, or the policy may not be set so.
        """
        check_whole("number", number, 1, LARGEST)
        agreed = self._agreed.now()[0]
        proposal = agreed.proposals.get(number)
        if proposal is None:
            raise UnknownName("proposal", str(number), [str(each.number) for each in self._open(agreed)])
        if proposal.ended != APPROVED or not self._is_current(proposal):
            why = "it was not approved" if proposal.ended != APPROVED else "the policy has been changed since"
            raise ApprovalConflict(number, why)
        return self._accountant.set_policy(**_arguments(proposal))

    def pending(self) -> list[Proposal]:
        """The proposals that could still be approved, in order.

        Raises:
            Nothing but `LedgerError`.
        """
        versions = {policy.name: policy.version for policy in self._accountant.policies()}
        found = self._open(self._agreed.now()[0])
        return [each for each in found if versions.get(each.policy, 0) == each.against]

    def all(self) -> list[Proposal]:
        """Every proposal there ever was, in order.

        Raises:
            Nothing but `LedgerError`.
        """
        return list(self._agreed.now()[0].proposals.values())

    def reasons(self, proposal: Proposal) -> tuple[str, ...]:
        """Why a proposal needs an approval, in words, against the policy as it stands now; empty if it needs none.

        Parameters:
            proposal: of this ledger.

        Raises:
            NotSupported: it has a plan.
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
    """Why a proposal needs an approval, in words, against a version of its policy. Raises `NotSupported`."""
    wanted = propose(plan=None, **_arguments(proposal))
    known = {} if previous is None else {share.name: share.number for share in previous.shares}
    return relaxations(previous, with_shares(known, wanted, previous, False))


def _arguments(proposal: Proposal) -> dict[str, Any]:
    """What `set_policy` takes to set it. Raises `NotSupported`."""
    terms: dict[str, Any] = json.loads(proposal.terms)
    if terms.pop("plan") is not None:
        raise NotSupported("a proposal with a plan is set by whoever has made the plan, with `set_policy`")
    shares = {name: [text.partition(":")[2] for text in limits] for name, limits in terms["shares"].items()}
    return {**terms, "shares": shares}


def _follow(agreed: ApprovalState, record: Record) -> ApprovalState:
    return agreed.after(record.number, record.kind, record.name, dict(record.body), record.by)


def _person(name: str | None) -> str:
    return "somebody on the machine of the ledger" if name is None else name
