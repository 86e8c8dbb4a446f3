"""Which policy may follow which: a new version beside those that were charged, its plan at its first price."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from .._checks import check_instance
from ..composition import compose
from ..errors import InvalidParameter
from ..guarantees import from_json
from ..ledger.filling import keep
from ..ledger.windows import LIFETIME
from .limits import Limit, as_limits
from .policies import PlanTerms, Policy
from .shares import as_shares, numbered

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ..ledger import Reading, Transaction
    from ..ledger.reading import Price
    from .plans import Plan


def propose(
    name: str,
    limits: Sequence[Limit | str],
    *,
    relation: str | None,
    unbounded: bool,
    checked: bool,
    plan: Plan | None,
    shares: Mapping[str, Sequence[Limit | str]] | None = None,
) -> Policy:
    """A policy from what the caller gave, checked on its own. Raises `InvalidParameter`."""
    if plan is not None:
        from .plans import Plan

        check_instance("plan", plan, Plan, "a `Plan`, or None")
    terms = None if plan is None else PlanTerms.of(plan)
    given = as_limits(limits)
    parts = () if shares is None else as_shares(shares, given)
    return Policy(name, given, relation=relation, unbounded=unbounded, checked=checked, plan=terms, shares=parts)


def known_shares(reading: Reading) -> dict[str, int]:
    """The numbers by which a ledger knows the names of shares."""
    policies = (Policy.read(stored.definition) for stored in reading.rows.policies())
    return {share.name: share.number for policy in policies for share in policy.shares}


def with_shares(known: Mapping[str, int], proposed: Policy, previous: Policy | None, keep: bool) -> Policy:
    """The policy with its shares numbered as they are known, or with those of the version before, if these are kept.

    Raises `InvalidParameter` where those exceed what is proposed.
    """
    if keep:
        return replace(proposed, shares=() if previous is None else previous.shares)
    return replace(proposed, shares=numbered(proposed.shares, known))


def follow(transaction: Transaction, proposed: Policy, previous: Policy | None) -> Policy:
    """`proposed` as the version after `previous`, or `previous` itself where that holds the same plan and limits.

    Raises `InvalidParameter` where it may not follow it.
    """
    proposed = policy = _at_first_price(transaction, proposed)
    if previous is not None:
        # Not the newest version alone: a limit that was dropped does not come back with another rule.
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
    """The policy with the plan as it came into the ledger: set again, under whatever name, it costs what it did."""
    if policy.plan is None:
        return policy
    known = _stored_plans(reading, {policy.plan.identity}).get(policy.plan.identity)
    if known is None or (known.epsilon < policy.plan.epsilon and known.epsilon < _least_price(known)):
        return policy
    return replace(policy, plan=known)


def _least_price(plan: PlanTerms) -> Decimal:
    """What the reports of a plan cost at least: a price below it was never certified."""
    charges = [(from_json(json.loads(promise)), count) for promise, count in plan.quotas]
    return Decimal(compose(charges, delta=plan.delta, rule="exact").lower)


def prices(reading: Reading, identities: Iterable[str]) -> tuple[Price, ...]:
    """(ε, δ) of plans, whatever policies they were set with; one that nothing is known of has no finite price."""
    wanted = set(identities)
    if not wanted:
        return ()
    known = _stored_plans(reading, wanted)
    return tuple([known[each].price if each in known else _UNKNOWN for each in sorted(wanted)])


_UNKNOWN = Decimal("Infinity"), Decimal(1)


def _stored_plans(reading: Reading, identities: set[str]) -> dict[str, PlanTerms]:
    """Plans by identity, as the first policy holds them, or one that found that price impossible and raised it."""
    found: dict[str, PlanTerms] = {}
    for stored in reading.rows.policies():
        plan = Policy.read(stored.definition).plan
        if plan is not None and plan.identity in identities:
            known = found.get(plan.identity, plan)
            found[plan.identity] = max(known, plan, key=lambda terms: terms.epsilon)
    return found


def keep_periods(transactions: Sequence[Transaction], policy: Policy, filled: Collection[str]) -> list[str]:
    """Keep windows for every gauge the policy limits; returns new ones that have to be filled from the journal.

    Those are not `filled` by now, and until they are the policy may not be stored.
    """
    stored_policies = transactions[0].rows.policies()
    limited = {LIFETIME}.union(*(Policy.read(stored.definition).gauges for stored in stored_policies))
    return keep(transactions, [each for each in policy.gauges if each not in limited and each not in filled])


def _check_limits(previous: Policy, policy: Policy) -> None:
    """The rule and δ of a limit never change once charged: the sums of one rule mean nothing to another."""
    rules = {(limit.label, limit.rule, limit.delta_text) for limit in policy.all_limits}
    for limit in previous.all_limits:
        others = [other for other in rules if other[0] == limit.label]
        if others and (limit.label, limit.rule, limit.delta_text) not in rules:
            raise InvalidParameter(
                "limit",
                f"rule {limit.rule} and delta {limit.delta_text} for {limit.label}, which was charged already",
                ", ".join(f"rule {rule} and delta {delta}" for _, rule, delta in others),
            )


def _earlier_plans(charged: list[Policy], proposed: Policy) -> tuple[PlanTerms, ...]:
    """The plans that were charged and count in full beside the proposed one."""
    plans = {policy.plan.identity: policy.plan for policy in charged if policy.plan is not None}
    if proposed.plan is not None:
        plans.pop(proposed.plan.identity, None)
    return tuple(plans.values())


def _check_price(policy: Policy) -> None:
    """All plans together must fit the lifetime limit, whatever of them was used; more than one needs such a limit."""
    if policy.plan is None:
        return
    if policy.earlier and not policy.lifetimes:
        raise InvalidParameter(
            "limit", "a lifetime limit, as this plan succeeds another; their full prices are added", "none"
        )
    epsilon, delta = policy.planned()
    limit = policy.overdrawn_by((epsilon, delta))
    if limit is not None:
        raise InvalidParameter(
            "plan",
            f"plans that cost together at most the lifetime limit of ({limit.epsilon}, {limit.delta})",
            f"({epsilon}, {delta})",
        )
