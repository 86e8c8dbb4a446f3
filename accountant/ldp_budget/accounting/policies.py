"""Policies: named, versioned sets of limits, and which version may follow which."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .._checks import check_instance, check_many, check_switch, check_text, shown
from .._json import canonical_json
from ..composition import compose
from ..errors import InvalidParameter
from ..guarantees import from_json
from ..guarantees.amounts import canonical, decimal, exact_sum, float_up
from ..ledger.filling import keep
from ..ledger.windows import LIFETIME, LONGER, PER_YEAR
from .limits import Limit, as_limits
from .shares import Share, as_shares, check_shares, numbered

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from ..ledger import Reading, Transaction
    from ..ledger.reading import Price
    from .plans import Plan

DEFAULT = "default"
ANY_RELATION = "any"


@dataclass(frozen=True)
class PlanTerms:
    """A plan as a policy holds it: how many reports of each guarantee, and what all of them cost together.

    The price is exact composition's, which is no filter; that is sound because what may be charged was fixed
    beforehand: any order and any early stop lies within it. A successor's full price is added to those before. The
    price with which a plan came into the ledger stays its price, whatever is worked out for it later, unless that
    shows it to be impossible: then the plan is set again at what is certified.
    """

    identity: str
    quotas: tuple[tuple[str, int], ...]
    epsilon: Decimal
    delta: Decimal

    def __repr__(self) -> str:
        reports = sum(count for _, count in self.quotas)
        return f"<PlanTerms: {reports} reports at ε = {self.epsilon:.9g}, δ = {self.delta:.9g}>"

    @classmethod
    def of(cls, plan: Plan) -> PlanTerms:
        """The terms of a plan."""
        quotas = tuple((canonical_json(guarantee.to_json()), count) for guarantee, count in plan.charges)
        return cls(plan.identity, quotas, decimal(plan.epsilon), plan.delta)

    @property
    def price(self) -> Price:
        """(ε, δ) of the whole plan."""
        return self.epsilon, self.delta

    def count(self, promise: str) -> int:
        """How many reports with a guarantee, in canonical JSON, the plan holds."""
        return dict(self.quotas).get(promise, 0)

    def to_json(self) -> dict[str, Any]:
        return {
            "identity": self.identity,
            "quotas": [list(quota) for quota in self.quotas],
            "epsilon": canonical(self.epsilon),
            "delta": canonical(self.delta),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> PlanTerms:
        quotas = tuple((promise, count) for promise, count in data["quotas"])
        return cls(data["identity"], quotas, decimal(data["epsilon"]), decimal(data["delta"]))


@dataclass(frozen=True)
class Policy:
    """A named, versioned set of limits, all of which a spend must fit.

    It has a lifetime limit or a plan, or says `unbounded`. With `relation` "any", guarantees that hold only for
    neighbours of the same change pattern are refused; with `checked`, mechanisms whose promise nobody checked, see
    `certificates`. With a plan, only its charges are admitted, each up to its quota; `earlier` are the plans it
    succeeds that were charged. `shares` are parts of its limits, which whoever is bound to one must fit as well.

    Raises:
        InvalidParameter: something is of another kind, there is no limit and no plan, a period has two limits of one
            rule, the shares of a limit exceed it, or there is no lifetime limit and nobody says `unbounded`.
    """

    name: str
    limits: tuple[Limit, ...]
    version: int = 1
    relation: str | None = None
    unbounded: bool = False
    plan: PlanTerms | None = None
    earlier: tuple[PlanTerms, ...] = ()
    checked: bool = False
    shares: tuple[Share, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidParameter("name", "a name of at least one character", shown(self.name))
        check_switch("unbounded", self.unbounded), check_switch("checked", self.checked)
        given = tuple(check_many("limits", self.limits, "limits"))
        for limit in given:
            if not isinstance(limit, Limit):
                raise InvalidParameter("limits", "limits", shown(limit))
        object.__setattr__(self, "limits", given)
        if not (self.plan is None or isinstance(self.plan, PlanTerms)):
            raise InvalidParameter("plan", "the terms of a plan, or None", shown(self.plan))
        if not self.limits and self.plan is None:
            raise InvalidParameter("limit", "at least one limit")
        seen = [(limit.period, limit.rule) for limit in self.limits]
        for pair in seen:
            if seen.count(pair) > 1:
                raise InvalidParameter("limit", "each period at most once for each rule", "=".join(pair))
        for share in self.shares:
            check_instance("shares", share, Share, "shares of its limits")
        check_shares(self.shares, self.limits)
        if not (self.relation is None or (isinstance(self.relation, str) and self.relation == ANY_RELATION)):
            found = self.relation if isinstance(self.relation, str) else shown(self.relation)
            raise InvalidParameter("relation", ANY_RELATION, found)
        if LIFETIME not in self.periods and self.plan is None and not self.unbounded:
            raise InvalidParameter(
                "limit", "a lifetime limit, or unbounded said aloud", f"only {', '.join(self.periods)}"
            )

    def __repr__(self) -> str:
        more = {"relation any": self.relation, "unbounded": self.unbounded, "checked": self.checked}
        plan = [] if self.plan is None else [repr(self.plan).strip("<>")]
        parts = [*map(str, self.all_limits), *plan, *[name for name, is_so in more.items() if is_so]]
        return f"<Policy {self.name}, version {self.version}: {'; '.join(parts)}>"

    @property
    def periods(self) -> tuple[str, ...]:
        """The periods that have a limit, each once."""
        return tuple(dict.fromkeys(limit.period for limit in self.limits))

    @property
    def gauges(self) -> tuple[str, ...]:
        """Where its limits are counted, and those of its shares, each once."""
        return tuple(dict.fromkeys(limit.gauge for limit in self.all_limits))

    @property
    def all_limits(self) -> tuple[Limit, ...]:
        """Its limits, and after them those of each share."""
        return (*self.limits, *(limit for share in self.shares for limit in share.limits))

    def share(self, name: str | None) -> Share | None:
        """The share of that name, if it has one.

        Parameters:
            name: of the share; None for none.

        Raises:
            Nothing.
        """
        return next((share for share in self.shares if share.name == name), None)

    def limits_for(self, share: str | None) -> tuple[Limit, ...]:
        """The limits that a charge must fit which is made through a share, or with None through none.

        Parameters:
            share: the name of the share.

        Raises:
            Nothing.
        """
        found = self.share(share)
        return self.limits if found is None else (*self.limits, *found.limits)

    def limits_shown_to(self, share: str | None) -> tuple[Limit, ...]:
        """The limits that concern somebody with a share; those of all shares to whoever has none.

        Parameters:
            share: the name of the share.

        Raises:
            Nothing.
        """
        return self.all_limits if share is None else self.limits_for(share)

    @property
    def lifetimes(self) -> tuple[Limit, ...]:
        """The limits of a lifetime, one for each rule."""
        return tuple([limit for limit in self.limits if limit.period == LIFETIME])

    def planned(self, others: Iterable[Price] | None = None) -> Price:
        """(ε, δ) of its plan and of others, added up; zeros without any.

        Parameters:
            others: the (ε, δ) of other plans, as decimals; by default those of the earlier ones.

        Raises:
            InvalidParameter: `others` are no pairs of decimals.
        """
        given = [plan.price for plan in self.earlier] if others is None else check_many("others", others, _PAIRS)
        beside = [_price("others", other) for other in given]
        prices = [*beside, *([] if self.plan is None else [self.plan.price])]
        return exact_sum(epsilon for epsilon, _ in prices), exact_sum(delta for _, delta in prices)

    def overdrawn_by(self, price: Price) -> Limit | None:
        """The lifetime limit that does not admit so much for all plans together; None if all do.

        Parameters:
            price: (ε, δ) of all of them, as decimals.

        Raises:
            InvalidParameter: it is no pair of decimals.
        """
        epsilon, delta = _price("price", price)
        over = [limit for limit in self.lifetimes if epsilon > limit.epsilon or delta > limit.delta]
        return over[0] if over else None

    def worst_epsilon_per_year(self) -> float | None:
        """The largest ε one year can cost under an unbounded policy, by its `basic` limits; None if none says.

        Raises:
            Nothing.
        """
        if LIFETIME in self.periods or self.plan is not None:
            return None
        totals = [limit.epsilon * PER_YEAR[limit.period] for limit in self.limits if limit.rule == "basic"]
        return float_up(min(totals)) if totals else None

    def idle_limits(self) -> list[tuple[Limit, Limit]]:
        """The limits above that of a longer period by the same rule, each with the least such one: that binds first.

        Raises:
            Nothing.
        """
        above = [
            (limit, longer)
            for limit in self.limits
            for longer in sorted(self.limits, key=lambda each: each.epsilon, reverse=True)
            if longer.period in LONGER[limit.period] and limit.is_above(longer)
        ]
        return list({limit: (limit, longer) for limit, longer in above}.values())

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal policy.

        Raises:
            Nothing.
        """
        return {
            "name": self.name,
            "version": self.version,
            "limits": [limit.to_json() for limit in self.limits],
            "relation": self.relation,
            "unbounded": self.unbounded,
            "checked": self.checked,
            "plan": None if self.plan is None else self.plan.to_json(),
            "earlier": [plan.to_json() for plan in self.earlier],
            **({"shares": [share.to_json() for share in self.shares]} if self.shares else {}),
        }

    @classmethod
    def read(cls, definition: str) -> Policy:
        """A policy from its definition, as the ledger stores it.

        Parameters:
            definition: what `to_json` made, as JSON.

        Raises:
            ValueError: it is anything else.
        """
        return _read(check_text("definition", definition))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Policy:
        """A policy read back from what `to_json` made.

        Parameters:
            data: the JSON object.

        Raises:
            ValueError: it is anything else.
        """
        try:
            plan = data["plan"]
            return cls(
                name=data["name"],
                limits=tuple(Limit.from_json(limit) for limit in data["limits"]),
                version=data["version"],
                relation=data["relation"],
                unbounded=data["unbounded"],
                checked=data.get("checked", False),
                plan=None if plan is None else PlanTerms.from_json(plan),
                earlier=tuple(PlanTerms.from_json(earlier) for earlier in data["earlier"]),
                shares=tuple(Share.from_json(share) for share in data.get("shares", ())),
            )
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"not a policy: {shown(data)} ({error})") from None


_PAIRS = "pairs of ε and δ, as decimals"


def _price(option: str, price: Price) -> Price:
    """A pair of decimals. Raises `InvalidParameter`."""
    if not (isinstance(price, tuple) and len(price) == 2 and all(isinstance(part, Decimal) for part in price)):
        raise InvalidParameter(option, _PAIRS, shown(price))
    return price


@lru_cache(maxsize=1024)
def _read(definition: str) -> Policy:
    try:
        data = json.loads(definition)
    except ValueError as error:
        raise ValueError(f"not a policy: {shown(definition)} ({error})") from None
    return Policy.from_json(data)


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


def share_number(policy: Policy, share: str | None) -> int:
    """The number of a policy's share; 0 of none, and of one that it does not have."""
    found = policy.share(share)
    return 0 if found is None else found.number


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
