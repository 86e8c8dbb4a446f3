"""Neighbours: which histories of answers a guarantee compares. The one definition that all other texts repeat.

What all guarantees have in common: their costs in units, their way to JSON and back, and how they print.
"""

from __future__ import annotations

import dataclasses
import math
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from .._validation import shown
from .fixed_point import Costs, canonical, decimal, float_up

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence


ANY_INPUTS = "any inputs"
"""Any two histories of one user."""

SAME_CHANGE_PATTERN = "same change pattern"
"""Two histories that are equal in the same places, see `are_equal_in_same_places`."""

RELATIONS = (ANY_INPUTS, SAME_CHANGE_PATTERN)

EQUAL_IN_SAME_PLACES = (
    "histories that are equal in the same places: wherever the one repeats an earlier answer, "
    "the other repeats its own answer from the same earlier place, and the other way round"
)
"""The definition in words; documentation quotes this sentence."""


def are_equal_in_same_places(first: Sequence[Hashable], second: Sequence[Hashable]) -> bool:
    """Whether two histories are equal in the same places: (A, B, A) and (C, D, C), and not (C, D, E).

    It is not enough that they change at the same moments: the third report of the first history repeats the noise of
    its first, and that of (C, D, E) does not, which shows. Where a report is drawn from a cell that a value falls
    into, the histories are those of the cells; where a secret decides the cells, they must be so for every secret.

    Raises:
        Nothing.
    """
    if len(first) != len(second):
        return False
    pairs = set(zip(first, second, strict=True))
    return len(pairs) == len(set(first)) == len(set(second))


Number = int | float | str | Decimal

# No promise above this is worth anything, and its exponential would not fit the arithmetic.
MOST = 10**6

# By what part of itself a cost that was stored may be below the one worked out now: ε, δ, ρ, μ².
_LOOSENESS = (10**12, 10**12, 5 * 10**6, 10**8)

_FEW_DIGITS, _FEW_PARTS = 9, 5
_MANY_DIGITS = 4000
_SHORT = Context(prec=_FEW_DIGITS, rounding=ROUND_CEILING)

_MODULE = f"{__package__}.guarantees"
_KINDS: dict[str, type[Guarantee]] = {}


class Amounts(NamedTuple):
    """What one report costs before it is counted in units: decimals, rounded up; None where unbounded."""

    epsilon: Decimal | None
    delta: Decimal | None
    rho: Decimal | None
    mu_squared: Decimal | None


class Guarantee:
    """What one report is promised to cost. The subclasses in `vocabulary` are all there are.

    Numbers may be given as text. Each raises ValueError for what is no number or out of its range.
    """

    kind: ClassVar[str]
    relation: str = ANY_INPUTS

    def __repr__(self) -> str:
        fields: list[dataclasses.Field[Any]] = list(dataclasses.fields(self))  # type: ignore[arg-type]
        values = {field.name: getattr(self, field.name) for field in fields}
        given = [field.name for field in fields if values[field.name] != field.default]
        return f"{type(self).__name__}({', '.join(f'{name}={_short(values[name])}' for name in given)})"

    def __init_subclass__(cls) -> None:
        if cls.__module__ != _MODULE:
            raise TypeError("guarantees are a closed set; build yours from the existing ones")
        _KINDS[cls.kind] = cls

    def loss(self) -> tuple[Decimal, Decimal] | None:
        """The exact (ε, δ) that `basic` charges for one report; None where there is no such bound.

        Raises:
            Nothing.
        """
        raise NotImplementedError

    def amounts(self) -> Amounts:
        """The ε, δ, ρ (zCDP) and μ² (Gaussian DP) of one report, as decimals, rounded up.

        Raises:
            Nothing.
        """
        raise NotImplementedError

    def costs(self) -> Costs:
        """The four integer amounts that one report adds to an account, in units, see `amounts`.

        Raises:
            Nothing.
        """
        return Costs.of(*self.amounts())

    def least_costs(self) -> Costs:
        """What one report costs for certain, in units: a stored cost that is below it was not worked out from this.

        `costs` may be larger, by their looseness and by what better bounds were found since they were stored.

        Raises:
            Nothing.
        """
        return Costs(
            *(
                None if cost is None else max(0, cost - 1 - cost // loose)
                for cost, loose in zip(self.costs(), _LOOSENESS, strict=True)
            )
        )

    def aside(self) -> Decimal | None:
        """The δ of one report that `zcdp` and `renyi` set aside; what is left has ρ `concentrated`. None: unbounded.

        The report is that of somebody with the probability δ, and else of a mechanism with these divergences.

        Raises:
            Nothing.
        """
        return Decimal(0)

    def concentrated(self) -> Decimal | None:
        """The ρ (zCDP) of one report but for what it sets aside; None where it is unbounded.

        Raises:
            Nothing.
        """
        return self.amounts().rho

    def divergence(self, order: Decimal) -> Decimal | None:
        """The Rényi divergence of one report but for what it sets aside, rounded up; None where it is unbounded.

        Parameters:
            order: a decimal > 1.

        Raises:
            Nothing.
        """
        raise NotImplementedError

    @property
    def epsilon(self) -> float:
        """ε of one report, rounded up; infinity where it is unbounded."""
        loss = self.loss()
        return math.inf if loss is None else float_up(loss[0])

    @property
    def delta(self) -> float:
        """δ of one report, rounded up; 1 where no (ε, δ) is promised."""
        loss = self.loss()
        return 1.0 if loss is None else float_up(loss[1])

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` turns back into an equal guarantee; every number as exact text.

        Raises:
            Nothing.
        """
        fields = {field.name: _encode(getattr(self, field.name)) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {"kind": self.kind, **fields}

    def describe(self) -> dict[str, Any]:
        """What `calibrate --json` prints: plain numbers, rounded up; null where unbounded.

        Raises:
            Nothing.
        """
        loss = self.loss()
        return {
            "epsilon": None if loss is None else self.epsilon,
            "delta": None if loss is None else self.delta,
            "kind": self.kind,
            "relation": self.relation,
        }


def from_json(data: dict[str, Any]) -> Guarantee:
    """Read back what `Guarantee.to_json` wrote. Raises ValueError for anything else."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"not a guarantee: kind {kind!r}; expected one of {', '.join(_KINDS)}")
    fields = {name: _decode(value) for name, value in data.items() if name != "kind"}
    try:
        return _KINDS[kind](**fields)
    except (TypeError, ZeroDivisionError) as error:
        raise ValueError(f"not a guarantee of kind {kind!r}: {error}") from None


def _encode(value: Any) -> Any:
    if isinstance(value, Decimal):
        return canonical(value)
    if isinstance(value, Fraction):
        return fraction_text(value)
    if isinstance(value, Guarantee):
        return value.to_json()
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    return value


def _short(value: Any) -> str:
    """A part of a guarantee as it prints: of a long number its first digits, rounded up, of a long list its ends."""
    if isinstance(value, Decimal):
        return canonical(value if len(value.as_tuple().digits) <= _FEW_DIGITS else _SHORT.plus(value))
    if isinstance(value, Fraction):
        text = fraction_text(value)
        return text if len(text) <= _FEW_DIGITS else f"{float(value):.6g}"
    if isinstance(value, tuple):
        listed = [_short(item) for item in value]
        listed = listed if len(listed) <= _FEW_PARTS else [*listed[:3], "…", listed[-1]]
        return f"({', '.join(listed)}{',' * (len(value) == 1)})"
    return repr(value)


def fraction_text(value: Fraction) -> str:
    """A fraction as text. Python's own way ends at 4,300 digits, the one by decimals does not."""
    parts = [format(Decimal(part), "f") for part in (value.numerator, value.denominator)]
    return parts[0] if value.denominator == 1 else "/".join(parts)


def fraction_of(value: Any) -> Fraction:
    """The fraction that a number or a text means, of as many digits as there are. Raises as `Fraction` does."""
    if isinstance(value, str) and len(value) > _MANY_DIGITS:
        parts = value.split("/")
        if len(parts) > 2 or not all(part.isdecimal() and part.isascii() for part in parts):
            raise ValueError(f"not a fraction of whole numbers: {shown(value)}")
        return Fraction(*(int(Decimal(part)) for part in parts))
    return Fraction(value)


def _decode(value: Any) -> Any:
    return from_json(value) if isinstance(value, dict) else value


def store(guarantee: Guarantee, **values: Any) -> None:
    """Store checked values in a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(guarantee, name, value)


def number_within(name: str, value: Number, low: int, high: float, *, open_low: bool = False) -> Decimal:
    left = "(" if open_low else "["
    try:
        number = decimal(value)
    except ValueError as error:
        raise ValueError(
            f"{name}: expected a number in {left}{low}, {high}]; found {shown(value)}, {error}"
        ) from None
    if number < low or number > high or (open_low and number == low):
        raise ValueError(f"{name}: expected a number in {left}{low}, {high}]; found {value}")
    return number
