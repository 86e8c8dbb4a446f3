"""Setting policies, looking at them, and playing through when their limits bind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._checks import check_name, check_text, shown
from .._json import canonical_json
from ..errors import ApprovalNeeded, InvalidParameter, NotSupported
from ..ledger.filling import fill_ahead
from .books import policy_in
from .policies import Policy
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
    from ..ledger import Ledger, Transaction
    from .callers import Caller
    from .limits import Limit
    from .plans import Plan
    from .simulating import Binding


def set_policy(
    ledger: Ledger,
    caller: Caller,
    name: str,
    limits: Sequence[Limit | str],
    *,
    relation: str | None,
    unbounded: bool,
    checked: bool,
    plan: Plan | None,
    shares: dict[str, Sequence[Limit | str]] | None,
    override: str | None,
) -> Policy:
    """Store a policy, as a new version where there is one of that name; what was spent stays spent."""
    proposed = propose(
        name, limits, relation=relation, unbounded=unbounded, checked=checked, plan=plan, shares=shares
    )

    check_override(override, by_key=bool(caller.number))
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

    policy, new = ledger.run_together(store, ledger.partitions)
    while new:
        fill_ahead(ledger, new)
        filled.update(new)
        policy, new = ledger.run_together(store, ledger.partitions)
    for number in recorded[-1:]:
        ledger.see_record(number)
    return policy


def check_override(reason: str | None, *, by_key: bool) -> None:
    """Check the reason of an override. Raises `InvalidParameter`, and `NotSupported` through an API key."""
    if reason is None:
        return
    if not check_text("override", reason).strip() or len(reason) > MOST_REASON:
        raise InvalidParameter("override", f"a reason of 1 to {MOST_REASON} characters", shown(reason))
    if by_key:
        raise NotSupported("override is for the machine of the ledger; with an API key, propose the change")


def policy(ledger: Ledger, name: str) -> Policy:
    """The newest version of a policy."""
    check_name("name", name)
    with ledger.reading() as reading:
        return policy_in(reading, name)[1]


def policies(ledger: Ledger) -> list[Policy]:
    """The newest version of every policy."""
    with ledger.reading() as reading:
        return [Policy.read(stored.definition) for stored in reading.newest_policies()]


def simulate(
    ledger: Ledger,
    mechanism: Mechanism | Collection | object,
    *,
    every: str,
    reports: int,
    start: datetime | None,
    policy: str,
) -> tuple[Binding, ...]:
    """When each limit of a policy binds first for somebody who is asked again and again."""
    from .simulating import simulate

    check_name("policy", policy)
    with ledger.reading() as reading:
        found = policy_in(reading, policy)[1]
        begun = reading.moment.at if start is None else start
    return simulate(found, mechanism_of(mechanism), every=every, start=begun, reports=reports)
