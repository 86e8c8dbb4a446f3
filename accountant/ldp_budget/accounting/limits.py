"""Limits on a user's charges: a period, (ε, δ) and a rule of composition. Shares: sub-limits for bound API keys.

A share is a part of a policy's limit, counted separately for the callers whose API key is bound to it. It limits
the charges of one user through these callers, by the rule of the limit that it is part of. A share is a further
limit and reserves nothing in the ledger's own account of the user: a charge by a caller with a share must fit both.
The shares of a limit together never exceed it, amount by amount in whole units.
"""

from __future__ import annotations

import math
import re
from copy import copy
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from .._tags import check_tags
from .._validation import check_instance, check_many, check_whole, shown, shown_with_type
from ..composition import RULES, capacity, compose, filter_rule, measure_of
from ..composition.filters import epsilon_of, suited_order
from ..errors import InvalidParameter, NotSupported, UnknownName
from ..guarantees import Memoised, Number
from ..guarantees.costs import RENYI, measure_at
from ..guarantees.fixed_point import (
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
    float_of_units,
    from_units,
    to_capacity,
)
from ..guarantees.memoised_costs import LabelCount, most_reports
from ..ledger.calendar import LIFETIME, MOST_DAYS, MOST_SHARES, PERIODS, gauge_named, is_period, share_in, zone_key_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..guarantees import Guarantee


L = TypeVar("L", bound="Limit")

_FORM = "PERIOD=EPSILON[,DELTA[,RULE]]"
_EXAMPLE = "For example: lifetime=4 or lifetime=4,1e-6,zcdp"
_RULE_LAST = "The rule comes after DELTA: lifetime=4,1e-6,zcdp"
_LABEL = b"one value"
_RULES = "of one of the rules basic, zcdp, gdp, renyi"

# A plus sign that is not the sign of an exponent.
_PLUS = re.compile(r"(?<![eE])\+")
_COUNTED = {"basic": (0, EPSILON_DIGITS), "gdp": (3, MU_SQUARED_DIGITS)}
"""The position in `Costs` of the amount that a rule adds up, and its digits."""
_DIGITS = Costs(EPSILON_DIGITS, DELTA_DIGITS, RHO_DIGITS, MU_SQUARED_DIGITS)


@dataclass(frozen=True, init=False)
class Limit:
    """At most (ε, δ) within each window of a period, added up by a rule.

    `str` gives the text that `Limit.parse` reads.

    Numbers may be given as text, and a float means its shortest decimal.

    Parameters:
        period: "lifetime", "day", "week" or "month"; or a number of days such as "28d", which slides: at most (ε, δ) on
            any 28 consecutive days. Days are those of the policy's time zone, by default UTC.
        epsilon: a number > 0.
        delta: a number >= 0 and < 1; above 0 for every rule but basic.
        rule: "basic", "zcdp", "gdp" or "renyi". "renyi" without an order, unlike `renyi:3`, takes the order of the
            published grid that suits ε and δ, and keeps it.
        aside: below `delta`, under zcdp and renyi: the part of δ for reports with a δ of their own; the rest is for
            the conversion. At 0 such reports are refused.
        scope: a tag such as "attribute:health": the limit counts the charges that have it, and those without tags.
            Empty, it counts all charges.

    Raises:
        InvalidParameter: an argument is out of its range or not a number, or the arguments contradict each other.
    """

    period: str
    epsilon: Decimal
    delta: Decimal
    rule: str
    aside: Decimal
    scope: str

    def __init__(
        self,
        period: str,
        epsilon: Number,
        delta: Number = 0,
        rule: str = "basic",
        aside: Number = 0,
        *,
        scope: str = "",
    ) -> None:
        object.__setattr__(self, "scope", check_tags([scope], "limit")[0] if scope else "")
        if not isinstance(period, str) or not is_period(period):
            periods = f"{', '.join(PERIODS)}, or 2 to {MOST_DAYS} days such as 28d"
            raise InvalidParameter("limit", f"for one of the periods {periods}", _found(period))
        object.__setattr__(self, "period", period)
        object.__setattr__(self, "epsilon", _number("EPSILON", epsilon, "a number > 0"))
        object.__setattr__(self, "delta", _number("DELTA", delta, "a number >= 0 and < 1"))
        if not isinstance(rule, str):
            raise InvalidParameter("limit", _RULES, shown(rule))
        object.__setattr__(self, "rule", rule)
        object.__setattr__(self, "aside", _number("ASIDE", aside, "a number >= 0 and below DELTA"))
        self._check()
        if rule == RENYI:
            object.__setattr__(
                self, "rule", measure_at(suited_order(self.epsilon, DOWN.subtract(self.delta, self.aside)))
            )
        if self.measure is not None and not self.capacity.rho:
            raise InvalidParameter(
                "limit",
                "of an order whose conversion leaves some of epsilon",
                self.rule,
                hint="Use a larger order, or rule renyi without an order.",
            )

    def _check(self) -> None:
        try:
            filter_rule(self.rule)
        except (UnknownName, NotSupported, InvalidParameter) as error:
            hint = "" if isinstance(error, UnknownName) else f"{error}"
            raise InvalidParameter("limit", _RULES, self.rule, hint=hint) from None
        if self.epsilon <= 0:
            raise InvalidParameter("limit", f"{_FORM} with a number > 0 as EPSILON", self.epsilon)
        if not 0 <= self.delta < 1:
            raise InvalidParameter("limit", f"{_FORM} with a number >= 0 and < 1 as DELTA", self.delta)
        if self.rule != "basic" and self.delta == 0:
            raise InvalidParameter(
                "limit",
                f"{_FORM} with DELTA > 0 under rule {self.rule}, which converts to (epsilon, delta)",
                "0",
                hint=f"For example: {self.scoped_period}={canonical(self.epsilon)},1e-6,{self.rule}",
            )
        if self.aside and self.rule in ("basic", "gdp"):
            raise InvalidParameter("limit", f"one without a delta set aside under rule {self.rule}", self.aside)
        if not (0 <= self.aside < self.delta or not self.aside):
            raise InvalidParameter("limit", f"one that sets aside less than its delta, {self.delta}", self.aside)

    def __str__(self) -> str:
        delta = [self.delta_text] if self.delta or self.rule != "basic" else []
        return f"{self.scoped_period}={','.join([canonical(self.epsilon), *delta, *[self.rule] * (self.rule != 'basic')])}"

    def __repr__(self) -> str:
        more = {"delta": self.delta, "rule": self.rule, "aside": self.aside, "scope": self.scope}
        given = [f"{name}={str(value)!r}" for name, value in more.items() if value not in (0, "basic", "")]
        return f"Limit({', '.join([repr(self.period), repr(canonical(self.epsilon)), *given])})"

    @classmethod
    def parse(cls, text: str, asked: Sequence[tuple[Guarantee, int]] = ()) -> Limit:
        """A limit from a text, `[SCOPE:]PERIOD=EPSILON[,DELTA[,RULE]]`; DELTA may be `CONVERSION+ASIDE`.

        Parameters:
            text: such as `lifetime=4`, `day=1`, `lifetime=4,1e-6,zcdp` or `attribute:health:month=1`.
            asked: the expected charges, pairs of a guarantee and the number of its reports. Rule renyi takes the
                order that is best for them. The limit holds for all other charges too.

        Raises:
            InvalidParameter: the text does not have this form, or its values are invalid.
        """
        if not isinstance(text, str):
            raise InvalidParameter("limit", f"a string {_FORM}", shown_with_type(text))
        counting, equals, amounts = text.partition("=")
        scope, _, period = (part.strip() for part in counting.rpartition(":"))
        parts = [part.strip() for part in amounts.split(",")]
        if not equals or not 1 <= len(parts) <= 3 or not all(parts):
            raise InvalidParameter("limit", _FORM, text, hint=_EXAMPLE)
        epsilon, delta, rule = (*parts, *("0", "basic")[len(parts) - 1 :])
        shares = _PLUS.split(delta)
        if len(shares) != 2 or not all(shares):
            limit = cls(period, epsilon, delta, rule, scope=scope)
        else:
            conversion, aside = [_number("DELTA", share, "a number >= 0 and < 1") for share in shares]
            limit = cls(period, epsilon, UP.add(conversion, aside), rule, aside, scope=scope)
        if rule != RENYI or not asked:
            return limit
        order = compose(asked, delta=limit.delta, rule=RENYI).order
        if order is None:
            return limit
        return cls(period, epsilon, limit.delta, measure_at(order), limit.aside, scope=scope)

    @cached_property
    def capacity(self) -> Costs:
        """The integer amounts that this limit admits, rounded down; None for amounts that it does not count."""
        return capacity(self.rule, self.epsilon, self.delta, self.aside)

    @cached_property
    def measure(self) -> str | None:
        """The measure in which the limit counts; None if it counts the four amounts of charges."""
        return measure_of(self.rule, self.aside)

    @cached_property
    def gauge(self) -> str:
        """The name of the account sums that this limit counts."""
        return gauge_named(self.period, self.measure, scope=self.scope)

    @property
    def scoped_period(self) -> str:
        """The period, after the scope if the limit has one, such as `attribute:health:month`."""
        return f"{self.scope}:{self.period}" if self.scope else self.period

    @property
    def label(self) -> str:
        """The limit's name in results: its period, its scope if it has one, and its share if it belongs to one."""
        return self.scoped_period

    @property
    def counts_all(self) -> bool:
        """True if the limit counts all charges of a user: those of its lifetime, of all scopes and shares."""
        return self.period == LIFETIME and not self.scope and not share_in(self.gauge)

    @property
    def delta_text(self) -> str:
        """δ as text, with its parts."""
        if not self.aside:
            return str(self.delta)
        return f"{canonical(DOWN.subtract(self.delta, self.aside))}+{canonical(self.aside)}"

    @cached_property
    def counted(self) -> tuple[tuple[int, int], ...]:
        """The amounts that this limit counts: their positions in `Costs`, and the capacity for each."""
        return tuple((place, most) for place, most in enumerate(self.capacity) if most is not None)

    def fits(self, spent: Costs, cost: Costs) -> bool:
        """Return True if `cost` added to `spent` stays within the capacity. The comparison uses integers only.

        Parameters:
            spent: the sums of the account's window, in units.
            cost: the requested amounts, in units.

        Raises:
            InvalidParameter: an argument is not a `Costs`.
        """
        _costs("spent", spent), _costs("cost", cost)
        for place, most in self.counted:
            used, each = spent[place], cost[place]
            if used is None or each is None or used + each > most:
                return False
        return True

    def is_above(self, other: Limit) -> bool:
        """Return True if this limit admits more than another one by the same rule: no amount is smaller, and one is larger.

        Parameters:
            other: the other limit.

        Raises:
            InvalidParameter: `other` is not a limit.
        """
        check_instance("other", other, Limit, "a limit")
        if self.rule != other.rule or (self.rule != "basic" and self.delta != other.delta):
            return False
        pairs = [(mine, its) for mine, its in zip(self.capacity, other.capacity, strict=True) if its is not None]
        return all(mine is not None and mine >= its for mine, its in pairs) and self.capacity != other.capacity

    def affordable(self, spent: Costs, cost: Costs) -> int:
        """The number of charges of `cost` that fit in addition to `spent`; `LARGEST` if nothing counts them.

        Parameters:
            spent: the sums of the account's window, in units.
            cost: the amounts of one charge, in units.

        Raises:
            InvalidParameter: an argument is not a `Costs`.
        """
        _costs("spent", spent), _costs("cost", cost)
        count = LARGEST
        for place, most in self.counted:
            used, each = spent[place], cost[place]
            # A zero cost fits any number of times, unless a lowered limit is already overdrawn.
            if used is None or each is None or used > most:
                return 0
            if each:
                count = min(count, (most - used) // each)
        return count

    def affordable_along(self, curve: Memoised, done: int, spent: Costs, *, earlier: int = 0) -> int:
        """The number of further reports of one memoised value that fit in addition to `spent`, along its curve.

        Parameters:
            curve: the guarantee of reports that repeat one value.
            done: the number of its reports so far in this window.
            spent: the sums of the account's window, in units.
            earlier: the number of its reports before this window.

        Raises:
            InvalidParameter: an argument has the wrong type.
        """
        check_instance("curve", curve, Memoised, "a memoized guarantee")
        done, earlier = check_whole("done", done), check_whole("earlier", earlier)
        _costs("spent", spent)
        return further_reports(self, curve, {_LABEL: LabelCount(earlier, done)}, _LABEL, spent)

    def remaining_room(self, cost: Costs) -> dict[str, int] | None:
        """The largest sums to which `cost` can be added, for the amounts that this limit counts; or None.

        Parameters:
            cost: the requested amounts, in units.

        Raises:
            InvalidParameter: `cost` is not a `Costs`.
        """
        room = {}
        for name, most, each in zip(Costs._fields, self.capacity, _costs("cost", cost), strict=True):
            if most is None:
                continue
            if each is None or each > most:
                return None
            room[name] = most - each
        return room

    def amounts(self, costs: Costs) -> dict[str, float | None]:
        """The part of `costs` that this limit counts, as plain numbers, rounded up; None where unbounded.

        Parameters:
            costs: amounts in units.

        Raises:
            InvalidParameter: `costs` is not a `Costs`.
        """
        _costs("costs", costs)
        return {
            name: float_of_units(units, digits)
            for name, most, units, digits in zip(self.names, self.capacity, costs, _DIGITS, strict=True)
            if most is not None and digits is not None
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the amounts. Under renyi a divergence takes the position of ρ."""
        return ("epsilon", "delta", RENYI, "mu_squared") if self.rule.startswith(RENYI) else Costs._fields

    def remaining(self, spent: Costs) -> Costs:
        """The part of the capacity that is left, in units, never below zero; zero where `spent` is unbounded.

        Parameters:
            spent: the sums of the account's window, in units.

        Raises:
            InvalidParameter: `spent` is not a `Costs`.
        """
        _costs("spent", spent)
        return Costs(
            *(
                None if most is None else max(0, most - used) if used is not None else 0
                for most, used in zip(self.capacity, spent, strict=True)
            )
        )

    def epsilon_of(self, spent: Costs) -> float:
        """The ε that the spent amounts imply at the limit's δ, rounded up; infinite where nothing is guaranteed.

        Rule basic adds up the ε. The other rules convert their sum at the part of δ that they do not set aside.

        Parameters:
            spent: the sums of the account's window, in units.

        Raises:
            InvalidParameter: `spent` is not a `Costs`.
        """
        _costs("spent", spent)
        place, digits = _COUNTED.get(self.rule, (2, RHO_DIGITS))  # under renyi a divergence takes the place of ρ
        amount, aside = spent[place], to_capacity(self.aside, DELTA_DIGITS)
        # Reports with a δ of their own take it from the part that is set aside.
        if amount is None or (self.measure is not None and (spent.delta is None or spent.delta > aside)):
            return math.inf
        return epsilon_of(self.rule, from_units(amount, digits), DOWN.subtract(self.delta, self.aside))

    def to_json(self) -> dict[str, Any]:
        """A JSON object of all fields, including the capacity, which is computed once, when the limit is set."""
        plain = {
            "period": self.period,
            "epsilon": canonical(self.epsilon),
            "delta": canonical(self.delta),
            "rule": self.rule,
            "capacity": list(self.capacity),
        }
        if self.measure is not None:
            plain["aside"] = canonical(self.aside)
        if self.scope:
            plain["scope"] = self.scope
        return plain if self.gauge == self.period else {**plain, "gauge": self.gauge}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Limit:
        """A limit from the JSON object that `to_json` returned.

        Parameters:
            data: the JSON object.

        Raises:
            ValueError: `data` is not such an object.
        """
        try:
            terms = data["period"], data["epsilon"], data["delta"], data["rule"], data.get("aside", 0)
            limit = cls(*terms, scope=data.get("scope", ""))
            limit.__dict__["capacity"] = Costs(*data["capacity"])
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"not a limit: {shown(data)} ({error})") from None
        return limit


def in_zone(limit: L, key: str | None) -> L:
    """The same limit, counted by the days of a time zone, the key of its rules; None means UTC."""
    gauge = gauge_named(limit.period, limit.measure, share_in(limit.gauge), key, limit.scope)
    if gauge == limit.gauge:
        return limit
    moved = copy(limit)
    moved.__dict__["gauge"] = gauge
    return moved


def further_reports(
    limit: Limit, curve: Memoised, counts: Mapping[bytes, LabelCount], label: bytes, spent: Costs
) -> int:
    """Return the number of further memoised reports of a label that fit a limit in addition to `spent`.

    `counts` has all reports of the curve so far, see `memoised_costs`.
    """
    pairs = [(place, most, spent[place]) for place, most in limit.counted]
    if any(used is None for _, _, used in pairs):
        return 0
    room = tuple([(place, most - used) for place, most, used in pairs if used is not None])
    return most_reports(limit.measure, curve, counts, label, room)


def _number(name: str, value: Any, expected: str) -> Decimal:
    try:
        return decimal(value)
    except ValueError:
        hint = _RULE_LAST if name == "DELTA" and isinstance(value, str) and value.partition(":")[0] in RULES else ""
        raise InvalidParameter("limit", f"{_FORM} with {expected} as {name}", _found(value), hint=hint) from None


def _found(value: object) -> str:
    """A value as an error shows it. A text is shown unchanged, because it may be the text of an option."""
    return value if isinstance(value, str) else shown(value)


def _costs(option: str, value: Costs) -> Costs:
    """Return `value` if it is a `Costs`. Raises `InvalidParameter`."""
    return check_instance(option, value, Costs, "amounts in whole units (`Costs`)")


def as_limits(limits: Sequence[Limit | str], asked: Sequence[tuple[Guarantee, int]] = ()) -> tuple[Limit, ...]:
    """Limits from objects or from texts that `Limit.parse` reads. Raises `InvalidParameter`."""
    many = check_many("limits", limits, "a list of limits, each a `Limit` or a string such as lifetime=4")
    return tuple(limit if isinstance(limit, Limit) else Limit.parse(limit, asked) for limit in many)


# -- shares (sub-limits) ---------------------------------------------------------------------------------------

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_NAME_EXPECTED = "1 to 64 ASCII letters, digits and . _ @ -, with a letter or a digit first"
_EXPECTED = "None, or a dict of names and lists of limits, each a `Limit` or a string such as lifetime=1"


@dataclass(frozen=True, init=False)
class ShareLimit(Limit):
    """A share's part of a limit, counted by its own gauge, whose name contains the number of the share."""

    share: str
    number: int

    def __init__(self, limit: Limit, share: str, number: int) -> None:
        for name in ("period", "epsilon", "delta", "rule", "aside", "scope"):
            object.__setattr__(self, name, getattr(limit, name))
        object.__setattr__(self, "share", share)
        object.__setattr__(self, "number", number)
        self.__dict__["capacity"] = limit.capacity
        self.__dict__["gauge"] = gauge_named(self.period, self.measure, number, zone_key_in(limit.gauge), self.scope)

    @property
    def label(self) -> str:
        """The limit's name in results: its period, its scope if it has one, and its share."""
        return f"{super().label} ({self.share})"

    def to_json(self) -> dict[str, Any]:
        """A JSON object of all fields, as for any limit, with its share."""
        return {**super().to_json(), "gauge": self.gauge, "share": self.share, "number": self.number}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> ShareLimit:
        """A share's limit from the JSON object that `to_json` returned.

        Parameters:
            data: the JSON object.

        Raises:
            ValueError: `data` is not such an object.
        """
        try:
            return cls(Limit.from_json(data), data["share"], data["number"])
        except LookupError as error:
            raise ValueError(f"not a limit of a share: {shown(data)} ({error})") from None

    def __str__(self) -> str:
        return f"{self.share}:{super().__str__()}"

    def __repr__(self) -> str:
        return f"<ShareLimit {self}>"


@dataclass(frozen=True)
class Share:
    """A named share of a policy's limits.

    `number` identifies its name in the ledger; 0 before the ledger assigns one.
    """

    name: str
    number: int
    limits: tuple[ShareLimit, ...]

    @classmethod
    def of(cls, name: str, limits: Iterable[Limit], number: int = 0) -> Share:
        """A share of these limits.

        Parameters:
            name: the name of the share.
            limits: the amounts that it admits.
            number: the number of the name in the ledger.

        Raises:
            InvalidParameter: `name` is not a valid name.
        """
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidParameter("share", _NAME_EXPECTED, shown(name))
        return cls(name, number, tuple(ShareLimit(limit, name, number) for limit in limits))

    def in_zone(self, key: str | None) -> Share:
        """The same share, counted by the days of a time zone.

        Parameters:
            key: the key of the zone's rules; None for UTC.
        """
        return Share(self.name, self.number, tuple([in_zone(limit, key) for limit in self.limits]))

    def numbered(self, number: int) -> Share:
        """The same share with a number.

        Parameters:
            number: the number of the name in the ledger.
        """
        return Share.of(self.name, self.limits, number)

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal share."""
        return {
            "name": self.name,
            "number": self.number,
            "limits": [limit.to_json() for limit in self.limits],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Share:
        """A share from the JSON object that `to_json` returned.

        Parameters:
            data: the JSON object.

        Raises:
            ValueError: `data` is not such an object.
        """
        return cls(data["name"], data["number"], tuple(ShareLimit.from_json(limit) for limit in data["limits"]))


def as_shares(given: Mapping[str, Sequence[Limit | str]], limits: Sequence[Limit]) -> tuple[Share, ...]:
    """Shares of these limits from objects or texts, by name. The ledger assigns their numbers later.

    A text without a rule takes the rule of the limit of its period, and also its δ if the rule has a conversion.
    Raises `InvalidParameter`.
    """
    check_instance("shares", given, dict, _EXPECTED)
    shares = []
    for name, parts in given.items():
        many = check_many("shares", parts, _EXPECTED)
        shares.append(Share.of(name, [_part(each, limits) for each in many]))
    return tuple(sorted(shares, key=lambda share: share.name))


def _part(given: Limit | str, limits: Sequence[Limit]) -> Limit:
    if isinstance(given, Limit):
        return given
    counting, equals, amounts = given.partition("=") if isinstance(given, str) else ("", "", "")
    scope, _, period = (part.strip() for part in counting.rpartition(":"))
    parts = [part.strip() for part in amounts.split(",")]
    if not equals or not all(parts):
        raise InvalidParameter("share", _FORM, shown(given), hint=_EXAMPLE)
    of_period = [limit for limit in limits if (limit.scope, limit.period) == (scope, period)]
    if len(parts) < 3 and len(of_period) == 1 and of_period[0].rule != "basic":
        whole = of_period[0]
        delta = parts[1] if len(parts) > 1 else str(DOWN.subtract(whole.delta, whole.aside))
        return Limit.parse(f"{counting}={parts[0]},{delta},{whole.rule}")
    return Limit.parse(given)


def check_shares(shares: Sequence[Share], limits: Sequence[Limit]) -> None:
    """Raise `InvalidParameter` unless each share is part of a limit and shares do not exceed their limit together."""
    names = [share.name for share in shares]
    for share in shares:
        if not share.limits or names.count(share.name) > 1:
            raise InvalidParameter("share", "named once, with at least one limit", share.name)
        for part in share.limits:
            if sum(_is_of(other, part) for other in share.limits) > 1:
                raise InvalidParameter("share", "limited once for each period and rule", f"{part} more than once")
            if not any(_is_of(part, limit) for limit in limits):
                there = ", ".join(f"{limit.label} ({limit.rule})" for limit in limits) or "none"
                raise InvalidParameter("share", f"a share of one of the policy's limits, {there}", str(part))
    for limit in limits:
        parts = [part for share in shares for part in share.limits if _is_of(part, limit)]
        for place, most in enumerate(limit.capacity):
            asked = sum(part.capacity[place] or 0 for part in parts)
            if most is not None and asked > most:
                found = f"{', '.join(map(str, parts))}, which together exceed its {limit.names[place]}"
                raise InvalidParameter("share", f"a part of the limit {limit}, together with the other shares", found)


def _is_of(part: ShareLimit, limit: Limit) -> bool:
    return (part.scope, part.period, part.rule) == (limit.scope, limit.period, limit.rule)


def numbered(shares: Iterable[Share], known: Mapping[str, int]) -> tuple[Share, ...]:
    """The shares with the numbers that the ledger has for their names. New names get the next numbers.

    Raises `InvalidParameter` if the ledger would have too many names.
    """
    numbers = dict(known)
    result = []
    for share in shares:
        number = numbers.setdefault(share.name, max(numbers.values(), default=0) + 1)
        if number > MOST_SHARES:
            raise InvalidParameter("share", f"one of at most {MOST_SHARES} names of shares in a ledger", share.name)
        result.append(share.numbered(number))
    return tuple(result)
