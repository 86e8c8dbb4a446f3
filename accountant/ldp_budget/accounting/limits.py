"""Limits: what a user may be charged, in which period, added up by which rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..composition import capacity, compose, filter_rule, measure_of
from ..composition.renyi import suited_order
from ..errors import InvalidParameter, NotSupported, UnknownName
from ..guarantees import Memoised, Number
from ..guarantees.amounts import (
    DELTA_DIGITS,
    DOWN,
    EPSILON_DIGITS,
    LARGEST,
    MU_SQUARED_DIGITS,
    RHO_DIGITS,
    UP,
    Costs,
    canonical,
    decimal,
    float_up,
    from_units,
)
from ..guarantees.orders import RENYI, measure_at
from ..ledger.replay import step_under
from ..ledger.windows import PERIODS, gauge_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..guarantees import Guarantee


# Not the sign of an exponent.
_PLUS = re.compile(r"(?<![eE])\+")
_DIGITS = Costs(EPSILON_DIGITS, DELTA_DIGITS, RHO_DIGITS, MU_SQUARED_DIGITS)


@dataclass(frozen=True, init=False)
class Limit:
    """At most (ε, δ) within each window of `period`, added up by `rule`.

    `epsilon` > 0 and `delta` in [0, 1) are numbers or decimal text; a float means its shortest decimal. Under zcdp
    and renyi `aside`, below `delta`, is the part of it for reports with a δ of their own, and without it there is
    none for them; the rest is the conversion's. Rule renyi takes the order of the published grid that suits ε and δ,
    if it names none as `renyi:3` does, and keeps it. Raises `InvalidParameter`.
    """

    period: str
    epsilon: Decimal
    delta: Decimal
    rule: str
    aside: Decimal

    def __init__(
        self, period: str, epsilon: Number, delta: Number = 0, rule: str = "basic", aside: Number = 0
    ) -> None:
        if period not in PERIODS:
            raise InvalidParameter("limit", f"a period out of {', '.join(PERIODS)}", period)
        object.__setattr__(self, "period", period)
        object.__setattr__(self, "epsilon", _number("epsilon", epsilon, "a number > 0"))
        object.__setattr__(self, "delta", _number("delta", delta, "a number >= 0 and < 1"))
        object.__setattr__(self, "rule", rule)
        object.__setattr__(self, "aside", _number("aside", aside, "a number >= 0 and below delta"))
        self._check()
        if rule == RENYI:
            object.__setattr__(
                self, "rule", measure_at(suited_order(self.epsilon, DOWN.subtract(self.delta, self.aside)))
            )
        if self.measure is not None and not self.capacity.rho:
            raise InvalidParameter(
                "limit", "an order at which anything fits: here the conversion alone takes all of epsilon", self.rule
            )

    def _check(self) -> None:
        try:
            filter_rule(self.rule)
        except (UnknownName, NotSupported, InvalidParameter) as error:
            why = "" if isinstance(error, UnknownName) else f" ({error})"
            raise InvalidParameter("limit", f"a rule out of basic, zcdp, gdp, renyi{why}", self.rule) from None
        if self.epsilon <= 0:
            raise InvalidParameter("limit", f"epsilon > 0 for {self.period}", self.epsilon)
        if not 0 <= self.delta < 1:
            raise InvalidParameter("limit", f"delta >= 0 and < 1 for {self.period}", self.delta)
        if self.rule != "basic" and self.delta == 0:
            raise InvalidParameter("limit", f"delta > 0, as rule {self.rule} converts to (epsilon, delta)", "0")
        if self.aside and self.rule in ("basic", "gdp"):
            raise InvalidParameter("limit", f"no delta set aside under rule {self.rule}", self.aside)
        if not (0 <= self.aside < self.delta or not self.aside):
            raise InvalidParameter("limit", f"a part of delta set aside that leaves some of {self.delta}", self.aside)

    @classmethod
    def parse(cls, text: str, asked: Sequence[tuple[Guarantee, int]] = ()) -> Limit:
        """Read `PERIOD=EPSILON[,DELTA[,RULE]]`; DELTA may be `CONVERSION+ASIDE`.

        `asked`, guarantees and how many reports of each, is what will probably be asked: rule renyi takes the order
        that is best for them. Whatever is asked then, the limit holds.
        """
        period, equals, amounts = text.partition("=")
        parts = [part.strip() for part in amounts.split(",")]
        if not equals or not 1 <= len(parts) <= 3 or not all(parts):
            raise InvalidParameter("limit", "PERIOD=EPSILON[,DELTA[,RULE]]", text)
        epsilon, delta, rule = (*parts, *("0", "basic")[len(parts) - 1 :])
        shares = _PLUS.split(delta)
        if len(shares) != 2 or not all(shares):
            limit = cls(period.strip(), epsilon, delta, rule)
        else:
            conversion, aside = [_number("delta", share, "a number >= 0 and < 1") for share in shares]
            limit = cls(period.strip(), epsilon, UP.add(conversion, aside), rule, aside)
        if rule != RENYI or not asked:
            return limit
        order = compose(asked, delta=limit.delta, rule=RENYI).order
        return limit if order is None else cls(period.strip(), epsilon, limit.delta, measure_at(order), limit.aside)

    @cached_property
    def capacity(self) -> Costs:
        """The integer amounts this limit admits, rounded down; None for amounts it does not count."""
        return capacity(self.rule, self.epsilon, self.delta, self.aside)

    @cached_property
    def measure(self) -> str | None:
        """The measure in which it counts; None where it counts the four amounts of charges."""
        return measure_of(self.rule, self.aside)

    @cached_property
    def gauge(self) -> str:
        """Where an account's sums stand that it goes by."""
        return gauge_named(self.period, self.measure)

    @property
    def delta_text(self) -> str:
        """δ with its parts."""
        if not self.aside:
            return str(self.delta)
        return f"{canonical(DOWN.subtract(self.delta, self.aside))}+{canonical(self.aside)}"

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

    def is_above(self, other: Limit) -> bool:
        """Whether it admits at least as much as `other` of every amount, by the same rule, and more of one."""
        if self.rule != other.rule or (self.rule != "basic" and self.delta != other.delta):
            return False
        pairs = [(mine, its) for mine, its in zip(self.capacity, other.capacity, strict=True) if its is not None]
        return all(mine is not None and mine >= its for mine, its in pairs) and self.capacity != other.capacity

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
        if not self.fits(spent, step_under(self.measure, curve, done, 1)):
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
            for name, most, units, digits in zip(self._names, self.capacity, costs, _DIGITS, strict=True)
            if most is not None and digits is not None
        }

    @property
    def _names(self) -> tuple[str, ...]:
        """What the amounts are called: a divergence stands in the place of ρ."""
        return ("epsilon", "delta", RENYI, "mu_squared") if self.rule.startswith(RENYI) else Costs._fields

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
        plain = {
            "period": self.period,
            "epsilon": canonical(self.epsilon),
            "delta": canonical(self.delta),
            "rule": self.rule,
            "capacity": list(self.capacity),
        }
        if self.measure is None:
            return plain
        return {**plain, "aside": canonical(self.aside), "gauge": self.gauge}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Limit:
        """Read back what `to_json` made."""
        limit = cls(data["period"], data["epsilon"], data["delta"], data["rule"], data.get("aside", 0))
        limit.__dict__["capacity"] = Costs(*data["capacity"])
        return limit


def _number(name: str, value: Any, expected: str) -> Decimal:
    try:
        return decimal(value)
    except ValueError:
        raise InvalidParameter("limit", f"{name}: {expected}", value) from None


def as_limits(limits: Sequence[Limit | str], asked: Sequence[tuple[Guarantee, int]] = ()) -> tuple[Limit, ...]:
    """Limits given as objects or as the text that `Limit.parse` reads."""
    return tuple(limit if isinstance(limit, Limit) else Limit.parse(limit, asked) for limit in limits)
