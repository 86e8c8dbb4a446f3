"""Setting policies, looking at them, and playing through when their limits bind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._checks import check_name
from .._json import canonical_json
from ..ledger.filling import fill_ahead
from .books import Books, policy_in
from .policies import DEFAULT, Policy
from .raising import check_approved
from .request import mechanism_of
from .succession import follow, keep_periods, known_shares, propose, with_shares

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ..authoring.base import Mechanism
    from ..catalogue.collections import Collection
    from ..ledger import Transaction
    from .limits import Limit
    from .plans import Plan
    from .simulating import Binding


def set_policy(
    self: Books,
    name: str,
    limits: Sequence[Limit | str],
    *,
    relation: str | None = None,
    unbounded: bool = False,
    checked: bool = False,
    plan: Plan | None = None,
    shares: dict[str, Sequence[Limit | str]] | None = None,
) -> Policy:
    """Store a policy, as a new version where there is one of that name; what was spent stays spent.

    With a plan, set again as it is, it stays as it is; a plan that the ledger knows keeps the price it came with.
    The windows of a period that nothing limited before are filled from the journal first; others write meanwhile.

    Parameters:
        name: of the policy; `default` is the one that is held against where none is named.
        limits: a list of limits, each a `Limit` or the text that `Limit.parse` reads; all of them must fit.
        relation: "any" refuses guarantees that hold only for neighbours of the same change pattern.
        unbounded: said aloud where there is no limit for a lifetime.
        checked: refuse mechanisms whose promise nobody has checked, see `certificates`.
        plan: admit only its charges, each up to its quota.
        shares: parts of the limits by name, each a list of limits: what one user is charged by keys that are bound to
            the share must fit these too. None keeps the shares that there are, {} takes them away.

    Returns:
        The policy as it was stored, with its version.

    Raises:
        InvalidParameter: one of them is of another kind, or the policy makes no sense; it changes the rule or δ
            of a limit that was charged already; shares exceed
            their limit; or its plan succeeds others, and all of them fit no lifetime
            limit together.
        ApprovalNeeded: it raises what may be charged, this ledger demands approvals, and nobody has approved it.
        ClockError: the clock cannot be believed.
    """
    proposed = propose(
        name, limits, relation=relation, unbounded=unbounded, checked=checked, plan=plan, shares=shares
    )

    filled: set[str] = set()

    def store(transactions: Sequence[Transaction]) -> tuple[Policy, list[str]]:
        # Every lane has a copy of each policy, and the same version of it.
        stored = transactions[0].find_policy(name)
        previous = None if stored is None else Policy.read(stored.definition)
        wanted = with_shares(known_shares(transactions[0]), proposed, previous, shares is None)
        # Each of them may have charged what the new version may not change.
        policy, *_ = [follow(transaction, wanted, previous) for transaction in transactions]
        if self._caller.number and policy is not previous:
            # Records stand in the first lane.
            check_approved(transactions[0], previous, policy)
        new = [] if policy is previous else keep_periods(transactions, policy, filled)
        if policy is not previous and not new:
            for transaction in transactions:
                transaction.add_policy(name, policy.version, canonical_json(policy.to_json()))
        return policy, new

    policy, new = self._ledger.run_together(store, self._ledger.lanes)
    while new:
        fill_ahead(self._ledger, new)
        filled.update(new)
        policy, new = self._ledger.run_together(store, self._ledger.lanes)
    return policy


def policy(self: Books, name: str = DEFAULT) -> Policy:
    """The newest version of a policy.

    Parameters:
        name: of the policy.

    Raises:
        UnknownName: there is none of that name.
        InvalidParameter: the name is no text.
    """
    check_name("name", name)
    with self._ledger.reading() as reading:
        return policy_in(reading, name)[1]


def policies(self: Books) -> list[Policy]:
    """The newest version of every policy.

    Raises:
        Nothing but `LedgerError`.
    """
    with self._ledger.reading() as reading:
        return [Policy.read(stored.definition) for stored in reading.newest_policies()]


def simulate(
    self: Books,
    mechanism: Mechanism | Collection | object,
    *,
    every: str,
    reports: int = 1,
    start: datetime | None = None,
    policy: str = DEFAULT,
) -> tuple[Binding, ...]:
    """When each limit of a policy binds first for somebody who is asked again and again.

    By the decisions of a spend, in calendar windows (UTC), and with nothing charged before; nothing is written.
    Reports of a mechanism that memoises repeat one value.

    Parameters:
        mechanism: a mechanism with its parameters, or a collection.
        every: "day", "week" or "month".
        reports: how many reports each time.
        start: when the first are asked, an aware datetime; by default now.
        policy: the policy to hold it against.

    Returns:
        What is found of each limit. A plan comes last, as a limit of the period `plan`.

    Raises:
        InvalidParameter: one of them is of another kind or out of range.
        UnknownName: there is no such policy.
        NotSupported: the policy admits no such report whatever it costs.
    """
    from .simulating import simulate

    check_name("policy", policy)
    with self._ledger.reading() as reading:
        found = policy_in(reading, policy)[1]
        begun = reading.moment.at if start is None else start
    return simulate(found, mechanism_of(mechanism), every=every, start=begun, reports=reports)
