"""Limits: what a user may be charged, in which period, added up by which rule."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..composition import capacity, filter_rule
from ..errors import InvalidParameter, NotSupported, UnknownName
from ..guarantees import Memoised, Number
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
from ..guarantees.orders import RENYI
from ..ledger.windows import PERIODS

if TYPE_CHECKING:
    from collections.abc import Sequence


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
            if self.rule.partition(":")[0] == RENYI:
                raise NotSupported("rule renyi cannot be a limit's yet")
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

    def affordable_along(self, curve: Memoised, done: int, spent: Costs) -> int:
        """How many more reports of one memoised value fit on top of `spent` after `done` of them, along its curve."""
        # All but ε is charged whole with the first report, so there one report says it for all.
        if not self.fits(spent, curve.step(done, 1)):
            return 0
        most = self.capacity.epsilon
        if most is None or spent.epsilon is None:
            return LARGEST
        return curve.most_reports(done, most - spent.epsilon)

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


def as_limits(limits: Sequence[Limit | str]) -> tuple[Limit, ...]:
    """Limits given as objects or as the text that `Limit.parse` reads."""
    return tuple(limit if isinstance(limit, Limit) else Limit.parse(limit) for limit in limits)
