"""Base class of all guarantees, and the neighboring relations that guarantees are promised for.

- The neighboring relations say which two histories of one user a guarantee compares. All other texts quote the
  definition given here.
- `Guarantee` has what all guarantees share: their costs in units, their JSON form, and how they print.
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


# -- neighboring relations -----------------------------------------------------------------------------------

ANY_INPUTS = "any inputs"
"""Relation of any two histories of one user."""

SAME_CHANGE_PATTERN = "same change pattern"
"""Relation of two histories that are equal in the same places, see `are_equal_in_same_places`."""

RELATIONS = (ANY_INPUTS, SAME_CHANGE_PATTERN)
"""All neighboring relations."""

EQUAL_IN_SAME_PLACES = (
    "histories that are equal in the same places: wherever the one repeats an earlier answer, "
    "the other repeats its own answer from the same earlier place, and the other way round"
)
"""Definition of `SAME_CHANGE_PATTERN` in words; the documentation quotes this sentence."""


def are_equal_in_same_places(first: Sequence[Hashable], second: Sequence[Hashable]) -> bool:
    """True if two histories are equal in the same places: (A, B, A) and (C, D, C) are, (A, B, A) and (C, D, E) not.

    It is not enough that both change at the same moments. The third report of (A, B, A) repeats the noise of its
    first report; the third report of (C, D, E) does not, and an observer sees the difference. If a report is drawn
    from the cell that a value falls into, compare the histories of the cells. If a secret decides the cells, the
    histories must be equal in the same places for every secret.
    """
    if len(first) != len(second):
        return False
    pairs = set(zip(first, second, strict=True))
    return len(pairs) == len(set(first)) == len(set(second))


# -- the base class ------------------------------------------------------------------------------------------

Number = int | float | str | Decimal
"""A number as a guarantee accepts it; a float means its shortest decimal."""

# A larger parameter would promise nothing of value, and its exponential would not fit the arithmetic.
MOST = 10**6

# 1/n is the largest relative amount by which a stored cost may be below the one computed now: n for ε, δ, ρ, μ².
_LOOSENESS = (10**12, 10**12, 5 * 10**6, 10**8)

_FEW_DIGITS, _FEW_PARTS = 9, 5
_MANY_DIGITS = 4000
_SHORT = Context(prec=_FEW_DIGITS, rounding=ROUND_CEILING)

_MODULE = f"{__package__}.guarantees"
_KINDS: dict[str, type[Guarantee]] = {}


class Amounts(NamedTuple):
    """Costs of one report before conversion to units: decimals, rounded up; None if unbounded."""

    epsilon: Decimal | None
    delta: Decimal | None
    rho: Decimal | None
    mu_squared: Decimal | None


class Guarantee:
    """Upper bound of the privacy loss of one report. The subclasses in `guarantees` are a closed set.

    Numbers may be given as text. The constructors raise ValueError for an argument that is not a number or is out of
    its range.
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
            raise TypeError("guarantees are a closed set. Build yours from the existing ones.")
        _KINDS[cls.kind] = cls

    def loss(self) -> tuple[Decimal, Decimal] | None:
        """Return the exact (ε, δ) that the rule `basic` charges for one report; None if no such bound exists."""
        raise NotImplementedError

    def amounts(self) -> Amounts:
        """Return the ε, δ, ρ (zCDP) and μ² (Gaussian DP) of one report, as decimals, rounded up."""
        raise NotImplementedError

    def costs(self) -> Costs:
        """Return the four integer amounts that one report adds to an account, in units, see `fixed_point`."""
        return Costs.of(*self.amounts())

    def least_costs(self) -> Costs:
        """Return a lower bound of the costs of one report, in units.

        A stored cost below this bound was not computed from this guarantee. Stored costs may be larger than the
        bound: costs are rounded up, and a later version may compute tighter ones.
        """
        return Costs(
            *(
                None if cost is None else max(0, cost - 1 - cost // loose)
                for cost, loose in zip(self.costs(), _LOOSENESS, strict=True)
            )
        )

    def aside(self) -> Decimal | None:
        """Return the δ of one report that the rules `zcdp` and `renyi` set aside; None if it is unbounded.

        With probability δ the report may reveal everything. Otherwise it is the report of a mechanism with the ρ
        `concentrated` and the Rényi divergences `divergence`.
        """
        return Decimal(0)

    def concentrated(self) -> Decimal | None:
        """Return the ρ (zCDP) of one report without the δ that it sets aside; None if it is unbounded."""
        return self.amounts().rho

    def divergence(self, order: Decimal) -> Decimal | None:
        """Return the Rényi divergence of one report without the δ that it sets aside, rounded up; None if unbounded.

        Parameters:
            order: the order α, a decimal > 1.
        """
        raise NotImplementedError

    @property
    def epsilon(self) -> float:
        """The ε of one report, rounded up; infinity if it is unbounded."""
        loss = self.loss()
        return math.inf if loss is None else float_up(loss[0])

    @property
    def delta(self) -> float:
        """The δ of one report, rounded up; 1 if no (ε, δ) is promised."""
        loss = self.loss()
        return 1.0 if loss is None else float_up(loss[1])

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object from which `from_json` makes an equal guarantee; every number is exact text."""
        fields = {field.name: _encode(getattr(self, field.name)) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {"kind": self.kind, **fields}

    def describe(self) -> dict[str, Any]:
        """Return the object that `calibrate --json` prints: plain numbers, rounded up; null if unbounded."""
        loss = self.loss()
        return {
            "epsilon": None if loss is None else self.epsilon,
            "delta": None if loss is None else self.delta,
            "kind": self.kind,
            "relation": self.relation,
        }


def from_json(data: dict[str, Any]) -> Guarantee:
    """Return the guarantee that `Guarantee.to_json` wrote. Raises ValueError for other data."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"the kind of a guarantee must be one of {', '.join(_KINDS)}: got {kind!r}")
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
    """Return a parameter of a guarantee for printing: a long number rounded up, a long list with its ends only."""
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
    """Return a fraction as text. Python's `str` refuses more than 4,300 digits; formatting decimals has no limit."""
    parts = [format(Decimal(part), "f") for part in (value.numerator, value.denominator)]
    return parts[0] if value.denominator == 1 else "/".join(parts)


def fraction_of(value: Any) -> Fraction:
    """Return the exact fraction of a number or a text with any number of digits. Raises as `Fraction` does."""
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


def number_up_to(name: str, value: Number, high: float) -> Decimal:
    """Return a number as a decimal. Raises ValueError unless it is in [0, high]."""
    try:
        number = decimal(value)
    except ValueError as error:
        raise ValueError(f"{name} must be a number in [0, {high}]: got {shown(value)}, {error}") from None
    if number < 0 or number > high:
        raise ValueError(f"{name} must be a number in [0, {high}]: got {value}")
    return number
