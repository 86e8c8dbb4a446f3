"""Policy versions: setting a policy, the rules for a new version, the list of versions, and simulation.

A new version must be compatible with the versions that were charged. A plan keeps the price with which it was first
stored. The listed versions show who set each one, when, and how it compares with the one before. The module also
has the hash by which a ledger knows a user.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Unpack

from .._files import canonical_json
from .._validation import check_instance, check_name, check_text, check_user, shown
from ..charge_options import DEFAULT
from ..composition import compose
from ..errors import ApprovalNeeded, InvalidParameter, NotSupported
from ..guarantees import from_json
from ..ledger.calendar import LIFETIME, micros_text
from ..ledger.window_backfill import fill_ahead, keep
from ..ledger.zones import UTC_ZONE, Zone
from .limits import Limit, as_limits, as_shares, numbered
from .policies import PlanTerms, Policy
from .priced_mechanism import mechanism_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from ..ledger import Ledger, Reading, Transaction
    from ..ledger.snapshot import Price
    from ..registry.collections import Collection
    from ..sdk.mechanism import Mechanism
    from .budget_timeline import Binding
    from .call_options import PolicyTerms
    from .charge_request import Principal
    from .limits import Limit
    from .plans import Plan
    from .policy_approval import Proposal


# -- stored policies -------------------------------------------------------------------------------------------


def user_hash(ledger: Ledger, user: str) -> bytes:
    """The hash of a user with the ledger key. Raises `InvalidParameter`."""
    return ledger.key.hash(b"user", check_user(user))


def latest_policy(reading: Reading, name: str) -> tuple[int, Policy]:
    """The number of the newest version of a policy, and that version. Raises `UnknownName`."""
    # Never look up by number: a rolled-back transaction frees its number, which another policy then gets.
    stored = reading.policy(name)
    return stored.number, Policy.read(stored.definition)


def policy_version(reading: Reading, number: int) -> Policy:
    """A version of a policy by its number."""
    return Policy.read(reading.policy_version(number).definition)


# -- rules for new versions ------------------------------------------------------------------------------------


def propose(
    name: str,
    limits: Sequence[Limit | str],
    *,
    relation: str | None = None,
    unbounded: bool = False,
    checked: bool = False,
    plan: Plan | None = None,
    shares: Mapping[str, Sequence[Limit | str]] | None = None,
    zone: str | None = None,
) -> Policy:
    """A policy from the caller's arguments, checked by itself. Raises `InvalidParameter`."""
    if plan is not None:
        from .plans import Plan

        check_instance("plan", plan, Plan, "a `Plan` or None")
    terms = None if plan is None else PlanTerms.of(plan)
    given = as_limits(limits)
    parts = () if shares is None else as_shares(shares, given)
    more = {"relation": relation, "unbounded": unbounded, "checked": checked, "plan": terms, "shares": parts}
    return Policy(name, given, zone=UTC_ZONE if zone is None else zone, **more)  # type: ignore[arg-type]


def known_shares(reading: Reading) -> dict[str, int]:
    """The numbers that a ledger has assigned to the names of shares."""
    policies = (Policy.read(stored.definition) for stored in reading.rows.policies())
    return {share.name: share.number for policy in policies for share in policy.shares}


def with_shares(known: Mapping[str, int], proposed: Policy, previous: Policy | None, keep: bool) -> Policy:
    """The policy with numbered shares, or with the previous version's shares if `keep` is set.

    Raises `InvalidParameter` if the kept shares exceed the proposed limits.
    """
    if keep:
        return replace(proposed, shares=() if previous is None else previous.shares)
    return replace(proposed, shares=numbered(proposed.shares, known))


def with_zone(reading: Reading, proposed: Policy, previous: Policy | None, keep: bool) -> Policy:
    """The policy with the previous version's zone if `keep` is set, or else with rules that the ledger has already.

    Rules that give the same days are the same: the file of a zone differs between machines. Other rules begin other
    windows.
    """
    if keep:
        return proposed if previous is None else in_zone_of(previous, proposed)
    stored = [Policy.read(each.definition) for each in reading.rows.policies()] if proposed.zone_rules else []
    files = dict.fromkeys(each.zone_rules for each in reversed(stored) if each.zone == proposed.zone)
    zone = Zone(proposed.zone, proposed.zone_rules) if files else None
    known = next((file for file in files if zone is not None and zone.agrees(Zone(zone.name, file))), None)
    return proposed if known is None else replace(proposed, zone_rules=known)


def in_zone_of(other: Policy, policy: Policy) -> Policy:
    """The policy with the time zone of another one, and its rules."""
    return replace(policy, zone=other.zone, zone_rules=other.zone_rules)


def next_version(transaction: Transaction, proposed: Policy, previous: Policy | None) -> Policy:
    """`proposed` as the version after `previous`, or `previous` itself if it has the same plan and limits.

    Raises `InvalidParameter` if `proposed` may not follow.
    """
    proposed = policy = _at_first_price(transaction, proposed)
    if previous is not None:
        # Not only the newest version: a dropped limit must not return with another rule.
        charged = [Policy.read(version.definition) for version in transaction.charged_versions(proposed.name)]
        for earlier in charged:
            _check_limits(earlier, proposed)
        policy = replace(proposed, version=previous.version, earlier=_earlier_plans(charged, proposed))
        if policy == previous and policy.plan is not None:
            return previous
        policy = replace(policy, version=previous.version + 1)
    _check_price(policy)
    return policy


def _at_first_price(reading: Reading, policy: Policy) -> Policy:
    """The policy with its plan as first stored.

    If a plan is set again, under any policy name, its price stays the same.
    """
    if policy.plan is None:
        return policy
    known = _stored_plans(reading, {policy.plan.identity}).get(policy.plan.identity)
    if known is None or (known.epsilon < policy.plan.epsilon and known.epsilon < _least_price(known)):
        return policy
    return replace(policy, plan=known)


def _least_price(plan: PlanTerms) -> Decimal:
    """The least possible price of a plan's reports: a price below it was never certified."""
    charges = [(from_json(json.loads(promise)), count) for promise, count in plan.quotas]
    return Decimal(compose(charges, delta=plan.delta, rule="exact").lower)


def prices(reading: Reading, identities: Iterable[str]) -> tuple[Price, ...]:
    """(ε, δ) of plans, regardless of their policies. An unknown plan has no finite price."""
    wanted = set(identities)
    if not wanted:
        return ()
    known = _stored_plans(reading, wanted)
    return tuple([known[each].price if each in known else _UNKNOWN for each in sorted(wanted)])


_UNKNOWN = Decimal("Infinity"), Decimal(1)


def _stored_plans(reading: Reading, identities: set[str]) -> dict[str, PlanTerms]:
    """Plans by identity, as first stored, or with a later, higher price if the first proved impossible."""
    found: dict[str, PlanTerms] = {}
    for stored in reading.rows.policies():
        plan = Policy.read(stored.definition).plan
        if plan is not None and plan.identity in identities:
            known = found.get(plan.identity, plan)
            found[plan.identity] = max(known, plan, key=lambda terms: terms.epsilon)
    return found


def ensure_windows(transactions: Sequence[Transaction], policy: Policy, filled: AbstractSet[str]) -> list[str]:
    """Keep windows for every gauge that the policy limits; return the new ones to backfill from the journal.

    These are not in `filled` yet, and the policy must not be stored before they are.
    """
    stored_policies = transactions[0].rows.policies()
    limited = {LIFETIME}.union(*(Policy.read(stored.definition).gauges for stored in stored_policies))
    return keep(transactions, [each for each in policy.gauges if each not in limited and each not in filled])


def _check_limits(previous: Policy, policy: Policy) -> None:
    """Refuse a change of rule or δ of a charged limit: the sums of one rule mean nothing under another."""
    rules = {(limit.label, limit.rule, limit.delta_text) for limit in policy.all_limits}
    for limit in previous.all_limits:
        others = [other for other in rules if other[0] == limit.label]
        if others and (limit.label, limit.rule, limit.delta_text) not in rules:
            raise InvalidParameter(
                "limit",
                f"of rule {limit.rule} with delta {limit.delta_text} for {limit.label}, which users were charged by",
                ", ".join(f"rule {rule} with delta {delta}" for _, rule, delta in others),
                hint="To change the rule or the delta, set a policy with another name.",
            )


def _earlier_plans(charged: list[Policy], proposed: Policy) -> tuple[PlanTerms, ...]:
    """The charged plans other than the proposed one. They all count in full."""
    plans = {policy.plan.identity: policy.plan for policy in charged if policy.plan is not None}
    if proposed.plan is not None:
        plans.pop(proposed.plan.identity, None)
    return tuple(plans.values())


def _check_price(policy: Policy) -> None:
    """All plans together must fit the lifetime limit, regardless of use. More than one plan requires such a limit."""
    if policy.plan is None:
        return
    if policy.earlier and not policy.lifetimes:
        raise InvalidParameter(
            "limit",
            "given for the lifetime, because this plan follows another and their full prices add up",
            "none",
            hint="Add a lifetime limit that both plans fit in.",
        )
    epsilon, delta = policy.planned()
    limit = policy.overdrawn_by((epsilon, delta))
    if limit is not None:
        raise InvalidParameter(
            "plan",
            f"within the lifetime limit of (ε = {limit.epsilon}, δ = {limit.delta}), together with the earlier plans",
            f"(ε = {epsilon}, δ = {delta})",
            hint="Raise the lifetime limit, or plan fewer reports.",
        )


# -- the list of versions --------------------------------------------------------------------------------------

FIRST, RAISED, LOWERED, CHANGED = "first", "raised", "lowered", "changed"
"""Kinds of change to the version before: `raised` admits more somewhere, `lowered` less somewhere and more nowhere."""


def version_rows(reading: Reading, set_by: Mapping[int, int]) -> list[dict[str, Any]]:
    """Every version of every policy, newest first.

    `set_by` maps a version's number to the number of the API key that set it.
    """
    from .policy_approval import agreed_in

    names: dict[int, str | None] = {0: None}
    rows: list[dict[str, Any]] = []
    newest: dict[str, Policy] = {}
    reasons, agreed = overrides(reading), agreed_in(reading.rows.admin_log())
    for stored in reading.rows.policies():
        policy = Policy.read(stored.definition)
        key = set_by.get(stored.number, 0)
        if key not in names:
            names[key] = next((record.name for record in reading.rows.admin_log(key)), None)
        rows.append(
            {
                "policy": policy.name,
                "version": policy.version,
                "at": micros_text(stored.created_at),
                "by": names[key],
                "change": change(newest.get(policy.name), policy),
                "override": reasons.get((policy.name, policy.version)),
                **_approval(agreed.approval(newest.get(policy.name), policy)),
                **_terms(policy),
            }
        )
        newest[policy.name] = policy
    return rows[::-1]


def overrides(reading: Reading) -> dict[tuple[str, int], str]:
    """The reasons of the policy versions that were set without the approval that the ledger demanded."""
    from .admin_records import OVERRIDDEN, body_of, fault_of

    found: dict[tuple[str, int], str] = {}
    for record in reading.rows.admin_log():
        body = body_of(record.body) if record.kind == OVERRIDDEN else None
        if body is not None and fault_of(record.kind, record.name, body) is None:
            found[record.name, body["version"]] = body["reason"]
    return found


def _approval(proposal: Proposal | None) -> dict[str, Any]:
    if proposal is None:
        return {"proposal": None, "proposed_by": None, "approved_by": None, "reason": None}
    who = {"proposed_by": proposal.by, "approved_by": proposal.ended_by}
    return {"proposal": proposal.number, **who, "reason": proposal.reason}


def _terms(policy: Policy) -> dict[str, Any]:
    return {
        "limits": [str(limit) for limit in policy.limits],
        "relation": policy.relation,
        "unbounded": policy.unbounded,
        "checked": policy.checked,
        "plan": policy.plan is not None,
        "zone": policy.zone,
    }


def change(before: Policy | None, after: Policy) -> str:
    """The kind of change to the version before: `first`, `raised`, `lowered`, or `changed` in other ways only."""
    if before is None:
        return FIRST
    if admits_more(before, after):
        return RAISED
    return LOWERED if admits_more(after, before) else CHANGED


def admits_more(before: Policy, after: Policy) -> bool:
    """True if a charge may be accepted under `after` and refused under `before`, see `relaxations`."""
    from .policy_approval import relaxations

    return bool(relaxations(before, after))


# -- operations ------------------------------------------------------------------------------------------------


def set_policy(
    ledger: Ledger,
    caller: Principal,
    name: str,
    limits: Sequence[Limit | str],
    *,
    override: str | None = None,
    **terms: Unpack[PolicyTerms],
) -> Policy:
    """Store a policy, as a new version if the name exists. Past charges stay charged."""
    proposed = propose(name, limits, **terms)
    keep, same_zone = terms.get("shares") is None, terms.get("zone") is None
    check_override(override, by_key=bool(caller.number))
    filled: set[str] = set()
    recorded: list[int] = []

    def store(transactions: Sequence[Transaction]) -> tuple[Policy, list[str]]:
        # Every partition has a copy of each policy, and the same version of it.
        stored = transactions[0].find_policy(name)
        previous = None if stored is None else Policy.read(stored.definition)
        wanted = with_shares(known_shares(transactions[0]), proposed, previous, keep)
        wanted = with_zone(transactions[0], wanted, previous, same_zone)
        # Each partition may have charged limits that the new version must not change.
        policy, *_ = [next_version(transaction, wanted, previous) for transaction in transactions]
        # The first partition holds the records.
        reasons = () if policy is previous else _unapproved(transactions[0], previous, policy)
        if reasons and override is None:
            raise ApprovalNeeded(policy.name, reasons)
        new = [] if policy is previous else ensure_windows(transactions, policy, filled)
        if policy is not previous and not new:
            for transaction in transactions:
                transaction.add_policy(name, policy.version, canonical_json(policy.to_json()))
            if reasons:
                from .admin_log import newest_number
                from .admin_records import OVERRIDDEN

                body = {"version": policy.version, "reason": override, "reasons": list(reasons)}
                record = newest_number(transactions[0]) + 1
                recorded.append(transactions[0].add_record(record, OVERRIDDEN, name, canonical_json(body)).number)
        return policy, new

    policy, new = ledger.run_in_partitions(store, ledger.partitions)
    while new:
        fill_ahead(ledger, new)
        filled.update(new)
        policy, new = ledger.run_in_partitions(store, ledger.partitions)
    for number in recorded[-1:]:
        ledger.see_record(number)
    return policy


def _unapproved(transaction: Transaction, previous: Policy | None, policy: Policy) -> tuple[str, ...]:
    """The reasons why a change is a relaxation, if a demanded approval is missing."""
    if next(iter(transaction.rows.admin_log()), None) is None:
        return ()  # only a record demands approvals
    from .policy_approval import unapproved

    return unapproved(transaction, previous, policy)


def check_reason(name: str, reason: str) -> str:
    """Return the reason that an argument of this name gives. Raises `InvalidParameter`."""
    from .admin_records import MOST_REASON

    if not check_text(name, reason).strip() or len(reason) > MOST_REASON:
        raise InvalidParameter(name, f"a reason of 1 to {MOST_REASON} characters", shown(reason))
    return reason


def check_override(reason: str | None, *, by_key: bool) -> None:
    """Check the reason of an override. Raises `InvalidParameter`, and `NotSupported` through an API key."""
    if reason is None:
        return
    check_reason("override", reason)
    if by_key:
        raise NotSupported(
            "an override needs access to the machine of the ledger, not an API key",
            hint="Propose the change instead.",
        )


def policy(ledger: Ledger, name: str) -> Policy:
    """The newest version of a policy."""
    check_name("name", name)
    with ledger.reading() as reading:
        return latest_policy(reading, name)[1]


def policies(ledger: Ledger) -> list[Policy]:
    """The newest version of every policy."""
    with ledger.reading() as reading:
        return [Policy.read(stored.definition) for stored in reading.newest_policies()]


def simulate(
    ledger: Ledger,
    mechanism: Mechanism | Collection | object,
    *,
    every: str,
    reports: int = 1,
    start: datetime | None = None,
    policy: str = DEFAULT,
) -> tuple[Binding, ...]:
    """The times when each limit of a policy binds first, for one user who reports at regular intervals."""
    from .budget_timeline import simulate

    check_name("policy", policy)
    with ledger.reading() as reading:
        found = latest_policy(reading, policy)[1]
        begun = reading.moment.at if start is None else start
    return simulate(found, mechanism_of(mechanism), every=every, start=begun, reports=reports)
