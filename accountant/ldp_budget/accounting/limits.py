"""Limits and policies: what a user may be charged, in which period, added up by which rule."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..composition import capacity, filter_rule
from ..errors import InvalidParameter, NotSupported, UnknownName
from ..guarantees import Number
from ..guarantees.amounts import (
    DELTA_DIGITS,
    EPSILON_DIGITS,
    LARGEST,
    MU_SQUARED_DIGITS,
    RHO_DIGITS,
    Costs,
    canonical,
    decimal,
    float_up,
    from_units,
)
from ..ledger.windows import LIFETIME, PER_YEAR, PERIODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .plans import Plan

DEFAULT = "default"
ANY_RELATION = "any"

# Made once, as every spend writes its answer with it.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))

_DIGITS = Costs(EPSILON_DIGITS, DELTA_DIGITS, RHO_DIGITS, MU_SQUARED_DIGITS)


@dataclass(frozen=True, init=False)
class Limit:
    """At most (ε, δ) within each window of `period`, added up by `rule`.

    `epsilon` > 0 and `delta` in [0, 1) are numbers or decimal text; a float means its shortest decimal.
    Raises `InvalidParameter`.
    """

    period: str
    epsilon: Decimal
    delta: Decimal
    rule: str

    def __init__(self, period: str, epsilon: Number, delta: Number = 0, rule: str = "basic") -> None:
        if period not in PERIODS:
            raise InvalidParameter("limit", f"a period out of {', '.join(PERIODS)}", period)
        object.__setattr__(self, "period", period)
        object.__setattr__(self, "epsilon", _number("epsilon", epsilon, "a number > 0"))
        object.__setattr__(self, "delta", _number("delta", delta, "a number >= 0 and < 1"))
        object.__setattr__(self, "rule", rule)
        self._check()

    def _check(self) -> None:
        try:
            filter_rule(self.rule)
        except (UnknownName, NotSupported) as error:
            why = f" ({error})" if isinstance(error, NotSupported) else ""
            raise InvalidParameter("limit", f"a rule out of basic, zcdp, gdp{why}", self.rule) from None
        if self.epsilon <= 0:
            raise InvalidParameter("limit", f"epsilon > 0 for {self.period}", self.epsilon)
        if not 0 <= self.delta < 1:
            raise InvalidParameter("limit", f"delta >= 0 and < 1 for {self.period}", self.delta)
        if self.rule != "basic" and self.delta == 0:
            raise InvalidParameter("limit", f"delta > 0, as rule {self.rule} converts to (epsilon, delta)", "0")

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Read `PERIOD=EPSILON[,DELTA[,RULE]]`."""
        period, equals, amounts = text.partition("=")
        parts = [part.strip() for part in amounts.split(",")]
        if not equals or not 1 <= len(parts) <= 3 or not all(parts):
            raise InvalidParameter("limit", "PERIOD=EPSILON[,DELTA[,RULE]]", text)
        epsilon, delta, rule = (*parts, *("0", "basic")[len(parts) - 1 :])
        return cls(period.strip(), epsilon, delta, rule)

    @cached_property
    def capacity(self) -> Costs:
        """The integer amounts this limit admits, rounded down; None for amounts it does not count."""
        return capacity(self.rule, self.epsilon, self.delta)

    @cached_property
    def _counted(self) -> tuple[tuple[int, int], ...]:
        """The amounts this limit counts: where they stand in `Costs`, and how much of each it admits."""
        return tuple((place, most) for place, most in enumerate(self.capacity) if most is not None)

    def fits(self, spent: Costs, cost: Costs) -> bool:
        """Whether `cost` on top of `spent` stays within the capacity. Integers decide, nothing else."""
        for place, most in self._counted:
            used, each = spent[place], cost[place]
            if used is None or each is None or used + each > most:
                return False
        return True

    def affordable(self, spent: Costs, cost: Costs) -> int:
        """How many charges of `cost` fit on top of `spent`."""
        count = LARGEST
        for place, most in self._counted:
            used, each = spent[place], cost[place]
            # A zero cost fits any number of times, unless the limit is overdrawn already (it was lowered).
            if used is None or each is None or used > most:
                return 0
            if each:
                count = min(count, (most - used) // each)
        return count

    def remaining_room(self, cost: Costs) -> dict[str, int] | None:
        """The largest sums on top of which `cost` fits, for the amounts this limit counts; None where none do."""
        room = {}
        for name, most, each in zip(Costs._fields, self.capacity, cost, strict=True):
            if most is None:
                continue
            if each is None or each > most:
                return None
            room[name] = most - each
        return room

    def amounts(self, costs: Costs) -> dict[str, float | None]:
        """The part of `costs` that this limit counts, as plain numbers; None where unbounded."""
        return {
            name: None if units is None else float_up(from_units(units, digits))
            for name, most, units, digits in zip(Costs._fields, self.capacity, costs, _DIGITS, strict=True)
            if most is not None and digits is not None
        }

    def remaining(self, spent: Costs) -> Costs:
        """What is left of the capacity, never below zero; zero where what was spent is unbounded."""
        return Costs(
            *(
                None if most is None else max(0, most - used) if used is not None else 0
                for most, used in zip(self.capacity, spent, strict=True)
            )
        )

    def to_json(self) -> dict[str, Any]:
        """Everything, with the capacity: it is worked out once, when the limit is set, and never again."""
        return {
            "period": self.period,
            "epsilon": canonical(self.epsilon),
            "delta": canonical(self.delta),
            "rule": self.rule,
            "capacity": list(self.capacity),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Limit:
        """Read back what `to_json` made."""
        limit = cls(data["period"], data["epsilon"], data["delta"], data["rule"])
        limit.__dict__["capacity"] = Costs(*data["capacity"])
        return limit


def _number(name: str, value: Any, expected: str) -> Decimal:
    try:
        return decimal(value)
    except ValueError:
        raise InvalidParameter("limit", f"{name}: {expected}", value) from None


@dataclass(frozen=True)
class PlanTerms:
    """A plan as a policy holds it: how many reports of each guarantee, and what all of them cost together.

    The price is exact composition's, which is no filter; that is sound because what may be charged was fixed
    beforehand: any order and any early stop lies within it. A successor's full price is added to those before.
    """

    identity: str
    quotas: tuple[tuple[str, int], ...]
    epsilon: Decimal
    delta: Decimal

    @classmethod
    def of(cls, plan: Plan) -> PlanTerms:
        """The terms of a plan; its identity is a hash of all of it, price included."""
        quotas = tuple((canonical_text(guarantee.to_json()), count) for guarantee, count in plan.charges)
        identity = hashlib.sha256(canonical_text(plan.to_json()).encode()).hexdigest()
        return cls(identity, quotas, decimal(plan.epsilon), plan.delta)

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
    succeeds that were charged.
    """

    name: str
    limits: tuple[Limit, ...]
    version: int = 1
    relation: str | None = None
    unbounded: bool = False
    plan: PlanTerms | None = None
    earlier: tuple[PlanTerms, ...] = ()
    checked: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidParameter("name", "a name of at least one character", repr(self.name))
        if not self.limits and self.plan is None:
            raise InvalidParameter("limit", "at least one limit")
        seen = [(limit.period, limit.rule) for limit in self.limits]
        for pair in seen:
            if seen.count(pair) > 1:
                raise InvalidParameter("limit", "each period at most once for each rule", "=".join(pair))
        if self.relation not in (None, ANY_RELATION):
            raise InvalidParameter("relation", ANY_RELATION, self.relation)
        if LIFETIME not in self.periods and self.plan is None and not self.unbounded:
            raise InvalidParameter(
                "limit", "a lifetime limit, or unbounded said aloud", f"only {', '.join(self.periods)}"
            )

    @property
    def periods(self) -> tuple[str, ...]:
        """The periods that have a limit, each once."""
        return tuple(dict.fromkeys(limit.period for limit in self.limits))

    def planned(self) -> tuple[Decimal, Decimal]:
        """(ε, δ) of every plan so far, added up; zeros without one."""
        plans = [*self.earlier, *([self.plan] if self.plan is not None else [])]
        return sum((p.epsilon for p in plans), Decimal(0)), sum((p.delta for p in plans), Decimal(0))

    def worst_epsilon_per_year(self) -> float | None:
        """The largest ε one year can cost under an unbounded policy, by its `basic` limits; None if none says."""
        if LIFETIME in self.periods or self.plan is not None:
            return None
        totals = [limit.epsilon * PER_YEAR[limit.period] for limit in self.limits if limit.rule == "basic"]
        return float_up(min(totals)) if totals else None

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "version": self.version,
            "limits": [limit.to_json() for limit in self.limits],
            "relation": self.relation,
            "unbounded": self.unbounded,
            "checked": self.checked,
            "plan": None if self.plan is None else self.plan.to_json(),
            "earlier": [plan.to_json() for plan in self.earlier],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Policy:
        """Read back what `to_json` made."""
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
        )


def canonical_text(value: Any) -> str:
    """Canonical JSON, as the ledger stores it."""
    return _CANONICAL.encode(value)


def as_limits(limits: Sequence[Limit | str]) -> tuple[Limit, ...]:
    """Limits given as objects or as the text that `Limit.parse` reads."""
    return tuple(limit if isinstance(limit, Limit) else Limit.parse(limit) for limit in limits)
