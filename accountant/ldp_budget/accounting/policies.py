"""Policies: named, versioned sets of limits, and which version may follow which."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .._checks import check_instance, check_many, check_name, check_switch, check_text, shown
from .._json import canonical_json
from ..errors import InvalidParameter
from ..guarantees.amounts import canonical, decimal, exact_sum, float_up
from ..ledger.windows import LIFETIME, LONGER, PER_YEAR
from .limits import Limit
from .shares import Share, check_shares

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        check_name("name", self.name)
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
