"""Limits and policies: what a user may be charged, in which period, added up by which rule."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .amounts import (
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
from .composition import capacity, filter_rule
from .errors import InvalidParameter, UnknownName
from .windows import LIFETIME, PER_YEAR, PERIODS

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT = "default"
ANY_RELATION = "any"

_DIGITS = Costs(EPSILON_DIGITS, DELTA_DIGITS, RHO_DIGITS, MU_SQUARED_DIGITS)


@dataclass(frozen=True)
class Limit:
    """At most (ε, δ) within each window of `period`, added up by `rule`.

    `epsilon` > 0 and `delta` in [0, 1) are numbers or decimal text; a float means its shortest decimal.
    Raises `InvalidParameter`.
    """

    period: str
    epsilon: Decimal
    delta: Decimal = Decimal(0)
    rule: str = "basic"

    def __post_init__(self) -> None:
        if self.period not in PERIODS:
            raise InvalidParameter("limit", f"a period out of {', '.join(PERIODS)}", self.period)
        object.__setattr__(self, "epsilon", _number("epsilon", self.epsilon, "a number > 0"))
        object.__setattr__(self, "delta", _number("delta", self.delta, "a number >= 0 and < 1"))
        try:
            filter_rule(self.rule)
        except UnknownName:
            raise InvalidParameter("limit", "a rule out of basic, zcdp, gdp", self.rule) from None
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
        return cls(period.strip(), epsilon, delta, rule)  # type: ignore[arg-type]

    @cached_property
    def capacity(self) -> Costs:
        """The integer amounts this limit admits, rounded down; None for amounts it does not count."""
        return capacity(self.rule, self.epsilon, self.delta)

    def fits(self, spent: Costs, cost: Costs) -> bool:
        """Whether `cost` on top of `spent` stays within the capacity. Integers decide, nothing else."""
        total = spent.plus(cost)
        return all(
            most is None or (amount is not None and amount <= most)
            for most, amount in zip(self.capacity, total, strict=True)
        )

    def affordable(self, spent: Costs, cost: Costs) -> int:
        """How many charges of `cost` fit on top of `spent`."""
        counts = [LARGEST]
        for most, used, each in zip(self.capacity, spent, cost, strict=True):
            if most is None or each == 0:
                continue
            counts.append(0 if used is None or each is None else max(0, (most - used) // each))
        # A zero cost fits any number of times, unless the limit is overdrawn already (it was lowered).
        return min(counts) if self.fits(spent, Costs(0, 0, 0, 0)) else 0

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
        """What is stored and shown of a limit: every amount as exact text."""
        return {
            "period": self.period,
            "epsilon": canonical(self.epsilon),
            "delta": canonical(self.delta),
            "rule": self.rule,
        }


def _number(name: str, value: Any, expected: str) -> Decimal:
    try:
        return decimal(value)
    except ValueError:
        raise InvalidParameter("limit", f"{name}: {expected}", value) from None


@dataclass(frozen=True)
class Policy:
    """A named, versioned set of limits, all of which a spend must fit.

    It has a lifetime limit, or says `unbounded`. With `relation` "any", guarantees that hold only for neighbours
    of the same change pattern are refused.
    """

    name: str
    limits: tuple[Limit, ...]
    version: int = 1
    relation: str | None = None
    unbounded: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidParameter("name", "a name of at least one character", repr(self.name))
        if not self.limits:
            raise InvalidParameter("limit", "at least one limit")
        seen = [(limit.period, limit.rule) for limit in self.limits]
        for pair in seen:
            if seen.count(pair) > 1:
                raise InvalidParameter("limit", "each period at most once for each rule", "=".join(pair))
        if self.relation not in (None, ANY_RELATION):
            raise InvalidParameter("relation", ANY_RELATION, self.relation)
        if LIFETIME not in self.periods and not self.unbounded:
            raise InvalidParameter(
                "limit", "a lifetime limit, or unbounded said aloud", f"only {', '.join(self.periods)}"
            )

    @property
    def periods(self) -> tuple[str, ...]:
        """The periods that have a limit, each once."""
        return tuple(dict.fromkeys(limit.period for limit in self.limits))

    def worst_epsilon_per_year(self) -> float | None:
        """The largest ε one year can cost under an unbounded policy, by its `basic` limits; None if none says."""
        if LIFETIME in self.periods:
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
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Policy:
        limits = tuple(Limit(**limit) for limit in data["limits"])
        return cls(**{**data, "limits": limits})


def as_limits(limits: Sequence[Limit | str]) -> tuple[Limit, ...]:
    """Limits given as objects or as the text that `Limit.parse` reads."""
    return tuple(limit if isinstance(limit, Limit) else Limit.parse(limit) for limit in limits)
