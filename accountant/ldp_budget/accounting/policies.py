"""Policies: named, versioned sets of limits, and the plans that they admit."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .._files import canonical_json
from .._tags import counts_in
from .._validation import check_instance, check_many, check_name, check_switch, check_text, shown, shown_with_type
from ..errors import InvalidParameter
from ..guarantees.fixed_point import (
    canonical,
    decimal,
    exact_sum,
    float_up,
)
from ..ledger.calendar import LIFETIME, is_longer, windows_per_year
from ..ledger.zones import UTC_ZONE, Zone, zone_named
from .limits import Limit, Share, check_shares, in_zone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..ledger.snapshot import Price
    from .plans import Plan


ANY_RELATION = "any"


@dataclass(frozen=True)
class PlanTerms:
    """A plan as a policy stores it: the number of reports of each guarantee, and the price of all of them.

    The price comes from exact composition, which is not a filter. That is sound because the charges were fixed
    beforehand: any order and any early stop is within the price. The full price of a succeeding plan is added to
    the prices before it. A plan keeps the price with which it was first stored, even if a later computation
    differs. Only a price that is proved impossible is replaced: then the plan is set again at the certified price.
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
        """The number of reports in the plan with a guarantee, given in canonical JSON."""
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
    """A named, versioned set of limits, all of which a charge must fit.

    A policy has a lifetime limit or a plan, or is `unbounded`. With `relation` "any", it refuses guarantees that
    hold only for neighbors of the same change pattern. With `checked`, it refuses mechanisms whose guarantee was
    not checked, see `registry.certification`. With a plan, it admits only the plan's charges, each up to its quota;
    `earlier` are the charged plans that it succeeds. `shares` are parts of its limits, which callers that are bound
    to one must fit as well. Days, weeks and months begin at midnight in `zone`, an IANA time zone. `zone_rules` is the
    zone's file of the time zone database, compressed, in Base64; without it, that of this machine is taken.

    Raises:
        InvalidParameter: an argument has the wrong type, there is no limit and no plan, a period has two limits of
            one rule, the shares of a limit exceed it, there is no lifetime limit and `unbounded` is False, or no
            time zone has that name.
        NotSupported: this machine has no time zone database.
        ValueError: `zone_rules` are no such file.
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
    zone: str = UTC_ZONE
    zone_rules: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidParameter("name", "a string of at least one character", shown(self.name))
        check_name("name", self.name)
        check_switch("unbounded", self.unbounded), check_switch("checked", self.checked)
        given = tuple(check_many("limits", self.limits, "a list of `Limit` objects"))
        for limit in given:
            if not isinstance(limit, Limit):
                raise InvalidParameter("limits", "a list of `Limit` objects", f"{shown_with_type(limit)} in it")
        zone = Zone(self.zone, self.zone_rules) if self.zone_rules else zone_named(self.zone)
        object.__setattr__(self, "zone_rules", "" if zone is None else zone.file)
        key = None if zone is None else zone.key
        object.__setattr__(self, "limits", tuple([in_zone(limit, key) for limit in given]))
        if not (self.plan is None or isinstance(self.plan, PlanTerms)):
            raise InvalidParameter("plan", "`PlanTerms` or None", shown_with_type(self.plan))
        if not self.limits and self.plan is None:
            raise InvalidParameter("limit", "at least one limit", hint="For example: lifetime=4")
        seen = [(limit.label, limit.rule) for limit in self.limits]
        for pair in seen:
            if seen.count(pair) > 1:
                raise InvalidParameter(
                    "limit", "given once for each period and rule", f"{' '.join(pair)} more than once"
                )
        for share in self.shares:
            check_instance("shares", share, Share, "a list of `Share` objects")
        object.__setattr__(self, "shares", tuple([share.in_zone(key) for share in self.shares]))
        check_shares(self.shares, self.limits)
        if not (self.relation is None or (isinstance(self.relation, str) and self.relation == ANY_RELATION)):
            raise InvalidParameter("relation", f"{ANY_RELATION!r} or None", shown(self.relation))
        if LIFETIME not in self.periods and self.plan is None and not self.unbounded:
            raise InvalidParameter(
                "limit",
                f"given for the lifetime as well in policy {self.name!r}",
                f"only {', '.join(dict.fromkeys(limit.label for limit in self.limits))}",
                hint="Add lifetime=EPSILON, or set unbounded=True to allow an unlimited total.",
            )

    def __repr__(self) -> str:
        more = {"relation any": self.relation, "unbounded": self.unbounded, "checked": self.checked}
        plan = [] if self.plan is None else [repr(self.plan).strip("<>")]
        zone = [] if self.zone == UTC_ZONE else [f"days of {self.zone}"]
        parts = [*map(str, self.all_limits), *plan, *[name for name, is_so in more.items() if is_so], *zone]
        return f"<Policy {self.name}, version {self.version}: {'; '.join(parts)}>"

    @property
    def periods(self) -> tuple[str, ...]:
        """The periods with a limit on charges of all tags, each once."""
        return tuple(dict.fromkeys(limit.period for limit in self.limits if not limit.scope))

    @property
    def gauges(self) -> tuple[str, ...]:
        """The gauges of its limits and of its shares' limits, each once."""
        return tuple(dict.fromkeys(limit.gauge for limit in self.all_limits))

    @property
    def all_limits(self) -> tuple[Limit, ...]:
        """Its limits, followed by those of each share."""
        return (*self.limits, *(limit for share in self.shares for limit in share.limits))

    def share(self, name: str | None) -> Share | None:
        """The share with that name, or None.

        Parameters:
            name: the name of the share; None gives None.
        """
        return next((share for share in self.shares if share.name == name), None)

    def limits_for(self, share: str | None, tags: tuple[str, ...] | None = None) -> tuple[Limit, ...]:
        """The limits that a charge through a share must fit; with None those of a charge without a share.

        Parameters:
            share: the name of the share.
            tags: the tags of the charge, which limits of other scopes do not count; by default the limits of all scopes.
        """
        found = self.share(share)
        limits = self.limits if found is None else (*self.limits, *found.limits)
        return limits if not tags else tuple([limit for limit in limits if counts_in(limit.scope, tags)])

    def limits_shown_to(self, share: str | None) -> tuple[Limit, ...]:
        """The limits that apply to a caller with a share; without a share all limits, including those of all shares.

        Parameters:
            share: the name of the share.
        """
        return self.all_limits if share is None else self.limits_for(share)

    @property
    def lifetimes(self) -> tuple[Limit, ...]:
        """The lifetime limits on charges of all tags, one for each rule."""
        return tuple([limit for limit in self.limits if limit.counts_all])

    def planned(self, others: Iterable[Price] | None = None) -> Price:
        """(ε, δ) of its plan and of others, added up; zeros without any.

        Parameters:
            others: the (ε, δ) of other plans, as decimals; by default those of the earlier plans.

        Raises:
            InvalidParameter: `others` are not pairs of decimals.
        """
        given = (
            [plan.price for plan in self.earlier] if others is None else check_many("others", others, _POLICIES_PAIRS)
        )
        priced = [_price("others", other) for other in given]
        prices = [*priced, *([] if self.plan is None else [self.plan.price])]
        return exact_sum(epsilon for epsilon, _ in prices), exact_sum(delta for _, delta in prices)

    def overdrawn_by(self, price: Price) -> Limit | None:
        """The lifetime limit that all plans together exceed; None if they fit every lifetime limit.

        Parameters:
            price: (ε, δ) of all plans together, as decimals.

        Raises:
            InvalidParameter: `price` is not a pair of decimals.
        """
        epsilon, delta = _price("price", price)
        over = [limit for limit in self.lifetimes if epsilon > limit.epsilon or delta > limit.delta]
        return over[0] if over else None

    def worst_epsilon_per_year(self) -> float | None:
        """The largest ε of one year under an unbounded policy, by its `basic` limits; None without such limits."""
        if LIFETIME in self.periods or self.plan is not None:
            return None
        basic = [limit for limit in self.limits if limit.rule == "basic" and not limit.scope]
        totals = [limit.epsilon * windows_per_year(limit.period) for limit in basic]
        return float_up(min(totals)) if totals else None

    def idle_limits(self) -> list[tuple[Limit, Limit]]:
        """The limits that never bind: each is above a limit of a longer period, or of all tags, by the same rule.

        Each is paired with the least such limit.
        """
        above = [
            (limit, longer)
            for limit in self.limits
            for longer in sorted(self.limits, key=lambda each: each.epsilon, reverse=True)
            if longer.scope in ("", limit.scope)
            and (is_longer(longer.period, limit.period) or (longer.period == limit.period and not longer.scope))
            and limit.is_above(longer)
        ]
        return list({limit: (limit, longer) for limit, longer in above}.values())

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal policy."""
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
            **({} if self.zone == UTC_ZONE else {"zone": self.zone, "zone_rules": self.zone_rules}),
        }

    @classmethod
    def read(cls, definition: str) -> Policy:
        """A policy from its definition, as the ledger stores it.

        Parameters:
            definition: the JSON text of an object that `to_json` returned.

        Raises:
            ValueError: `definition` is not such a text.
        """
        return _read(check_text("definition", definition))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Policy:
        """A policy from the JSON object that `to_json` returned.

        Parameters:
            data: the JSON object.

        Raises:
            ValueError: `data` is not such an object.
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
                **{name: data[name] for name in ("zone", "zone_rules") if "zone" in data},
            )
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"not a policy: {shown(data)} ({error})") from None


_POLICIES_PAIRS = "a pair of ε and δ, each a Decimal"


def _price(option: str, price: Price) -> Price:
    """Return a pair of decimals. Raises `InvalidParameter`."""
    if not (isinstance(price, tuple) and len(price) == 2 and all(isinstance(part, Decimal) for part in price)):
        raise InvalidParameter(option, _POLICIES_PAIRS, shown(price))
    return price


@lru_cache(maxsize=1024)
def _read(definition: str) -> Policy:
    try:
        data = json.loads(definition)
    except ValueError as error:
        raise ValueError(f"not a policy: {shown(definition)} ({error})") from None
    return Policy.from_json(data)
