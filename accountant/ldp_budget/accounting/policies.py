"""Setting a policy: what may follow what, and the windows that a new period needs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from ..errors import InvalidParameter
from ..ledger.replay import fill_period
from ..ledger.windows import LIFETIME, to_micros, window_at
from .limits import Limit, PlanTerms, Policy, as_limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ledger import Transaction
    from .plans import Plan


def propose(
    name: str,
    limits: Sequence[Limit | str],
    *,
    relation: str | None,
    unbounded: bool,
    checked: bool,
    plan: Plan | None,
) -> Policy:
    """A policy from what the caller gave, checked on its own."""
    terms = None if plan is None else PlanTerms.of(plan)
    return Policy(name, as_limits(limits), relation=relation, unbounded=unbounded, checked=checked, plan=terms)


def follow(transaction: Transaction, proposed: Policy, previous: Policy | None) -> Policy:
    """`proposed` as the version after `previous`; raises `InvalidParameter` where it may not follow it."""
    policy = proposed
    if previous is not None:
        # Not the newest version alone: a limit that was dropped does not come back with another rule.
        charged = [Policy.from_json(json.loads(text)) for text in transaction.charged_versions(proposed.name)]
        for earlier in charged:
            _check_limits(earlier, proposed)
        policy = replace(proposed, version=previous.version + 1, earlier=_earlier_plans(charged, proposed))
    _check_price(policy)
    return policy


def keep_periods(transaction: Transaction, policy: Policy, now: datetime) -> None:
    """Keep windows for every period the policy limits; the current one of a new period is filled from the journal."""
    kept = transaction.periods()
    for period in policy.periods:
        if period not in kept:
            since = to_micros(window_at(period, now).starts)
            transaction.keep_period(period, since)
            fill_period(transaction, period, since)


def _check_limits(previous: Policy, policy: Policy) -> None:
    """The rule and δ of a limit never change once charged: the sums of one rule mean nothing to another."""
    rules = {(limit.period, limit.rule, limit.delta) for limit in policy.limits}
    for limit in previous.limits:
        others = [other for other in rules if other[0] == limit.period]
        if others and (limit.period, limit.rule, limit.delta) not in rules:
            raise InvalidParameter(
                "limit",
                f"rule {limit.rule} and delta {limit.delta} for {limit.period}, which was charged already",
                ", ".join(f"rule {rule} and delta {delta}" for _, rule, delta in others),
            )


def _earlier_plans(charged: list[Policy], proposed: Policy) -> tuple[PlanTerms, ...]:
    """The plans that were charged and count in full beside the proposed one."""
    plans = {policy.plan.identity: policy.plan for policy in charged if policy.plan is not None}
    if proposed.plan is not None:
        plans.pop(proposed.plan.identity, None)
    return tuple(plans.values())


def _check_price(policy: Policy) -> None:
    """All plans together must fit the lifetime limit, whatever of them was used."""
    epsilon, delta = policy.planned()
    for limit in policy.limits:
        if limit.period == LIFETIME and policy.plan is not None and (epsilon > limit.epsilon or delta > limit.delta):
            raise InvalidParameter(
                "plan",
                f"plans that cost together at most the lifetime limit of ({limit.epsilon}, {limit.delta})",
                f"({epsilon}, {delta})",
            )
