"""Setting policies, looking at them, and playing through when their limits bind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._checks import check_name, check_text, shown
from .._json import canonical_json
from ..errors import ApprovalNeeded, InvalidParameter, NotSupported
from ..ledger.filling import fill_ahead
from .books import Books, policy_in
from .policies import DEFAULT, Policy
from .raising import unapproved
from .record_kinds import MOST_REASON, OVERRIDDEN
from .records import newest_number
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
    override: str | None = None,
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
        override: why it is set without the approval that this ledger demands; only on the machine of the ledger. A
            record keeps the reason; `policy show` and the officer's page show it. Nothing is recorded of a change
            that needs no approval.

    Returns:
        The policy as it was stored, with its version.

    Raises:
        InvalidParameter: one of them is of another kind, or the policy makes no sense; it changes the rule or δ
            of a limit that was charged already; shares exceed
            their limit; or its plan succeeds others, and all of them fit no lifetime
            limit together.
        ApprovalNeeded: it raises what may be charged, this ledger demands approvals, no approval was given, and
            `override` gives no reason.
        NotSupported: `override` is given through an API key.
        ClockError: the clock cannot be believed.
    """
    proposed = propose(
        name, limits, relation=relation, unbounded=unbounded, checked=checked, plan=plan, shares=shares
    )

    check_override(override, by_key=bool(self._caller.number))
    filled: set[str] = set()
    recorded: list[int] = []

    def store(transactions: Sequence[Transaction]) -> tuple[Policy, list[str]]:
        # Every partition has a copy of each policy, and the same version of it.
        stored = transactions[0].find_policy(name)
        previous = None if stored is None else Policy.read(stored.definition)
        wanted = with_shares(known_shares(transactions[0]), proposed, previous, shares is None)
        # Each of them may have charged what the new version may not change.
        policy, *_ = [follow(transaction, wanted, previous) for transaction in transactions]
        # Records stand in the first partition.
        reasons = () if policy is previous else unapproved(transactions[0], previous, policy)
        if reasons and override is None:
            raise ApprovalNeeded(policy.name, reasons)
        new = [] if policy is previous else keep_periods(transactions, policy, filled)
        if policy is not previous and not new:
            for transaction in transactions:
                transaction.add_policy(name, policy.version, canonical_json(policy.to_json()))
            if reasons:
                body = {"version": policy.version, "reason": override, "reasons": list(reasons)}
                record = newest_number(transactions[0]) + 1
                recorded.append(transactions[0].add_record(record, OVERRIDDEN, name, canonical_json(body)).number)
        return policy, new

    policy, new = self._ledger.run_together(store, self._ledger.partitions)
    while new:
        fill_ahead(self._ledger, new)
        filled.update(new)
        policy, new = self._ledger.run_together(store, self._ledger.partitions)
    for number in recorded[-1:]:
        self._ledger.see_record(number)
    return policy


def check_override(reason: str | None, *, by_key: bool) -> None:
    """Check the reason of an override. Raises `InvalidParameter`, and `NotSupported` through an API key."""
    if reason is None:
        return
    if not check_text("override", reason).strip() or len(reason) > MOST_REASON:
        raise InvalidParameter("override", f"a reason of 1 to {MOST_REASON} characters", shown(reason))
    if by_key:
        raise NotSupported("override is for the machine of the ledger; with an API key, propose the change")


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
