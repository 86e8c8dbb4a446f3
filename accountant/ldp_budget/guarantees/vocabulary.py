"""The closed vocabulary of promises a mechanism can make to one user.

A guarantee bounds, for any two inputs x, x' of one user (local adjacency), how far the output distributions of a
report may lie apart. The accountant sees only guarantees, never mechanisms: each can be written to JSON and
read back, and knows its four integer costs, so a ledger can be read, priced and verified without the plugin
that wrote it.

Amounts are exact decimals or fractions inside; `epsilon` and `delta` are doubles, rounded outward.
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

from .._checks import shown
from ._renyi import RHO_LOOSENESS, Law
from .amounts import DOWN, LARGEST, UP, ZERO, Costs, canonical, decimal, exp_down, exp_up, float_up, ln_up

ANY_INPUTS = "any inputs"
SAME_CHANGE_PATTERN = "same change pattern"
RELATIONS = (ANY_INPUTS, SAME_CHANGE_PATTERN)

Number = int | float | str | Decimal

_FEW_DIGITS, _FEW_PARTS = 9, 5
_SHORT = Context(prec=_FEW_DIGITS, rounding=ROUND_CEILING)

_KINDS: dict[str, type[Guarantee]] = {}


class Amounts(NamedTuple):
    """What one report costs before it is counted in units: decimals, rounded up; None where unbounded."""

    epsilon: Decimal | None
    delta: Decimal | None
    rho: Decimal | None
    mu_squared: Decimal | None


class Guarantee:
    """What one report is promised to cost. The subclasses in this module are all there are.

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
        if cls.__module__ != __name__:
            raise TypeError("the vocabulary of guarantees is closed; build yours from the existing ones")
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
        return str(value)
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
        return str(value) if len(str(value)) <= _FEW_DIGITS else f"{float(value):.6g}"
    if isinstance(value, tuple):
        listed = [_short(item) for item in value]
        listed = listed if len(listed) <= _FEW_PARTS else [*listed[:3], "…", listed[-1]]
        return f"({', '.join(listed)}{',' * (len(value) == 1)})"
    return repr(value)


def _decode(value: Any) -> Any:
    return from_json(value) if isinstance(value, dict) else value


def _coerce(guarantee: Guarantee, **values: Any) -> None:
    """Store checked values in a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(guarantee, name, value)


def _number(name: str, value: Number, low: int, high: float, *, open_low: bool = False) -> Decimal:
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


# By how much costs may exceed the truth, relatively: ε, δ, ρ, μ².
_LOOSENESS = (10**12, 10**12, int(1 / RHO_LOOSENESS) // 2, 10**8)

# No promise above this is worth anything, and its exponential would not fit the arithmetic.
_MOST = 10**6
_LEAST = Decimal("1e-300")


@dataclass(frozen=True, repr=False)
class Pure(Guarantee):
    """Pure ε-LDP: P[M(x) ∈ T] ≤ e^ε P[M(x') ∈ T] for all inputs x, x' and all events T."""

    kind: ClassVar[str] = "pure"
    bound: Decimal

    def __post_init__(self) -> None:
        _coerce(self, bound=_number("epsilon", self.bound, 0, _MOST))

    def loss(self) -> tuple[Decimal, Decimal]:
        return self.bound, Decimal(0)

    def amounts(self) -> Amounts:
        return _pure_amounts(self.bound)

    def divergence(self, order: Decimal) -> Decimal:
        return _divergence_of_pure(self.bound, order)


@dataclass(frozen=True, repr=False)
class SymmetricPair(Guarantee):
    """The worst two inputs differ by a loss of ±ε with total probability τ, and not at all otherwise.

    The output distributions P, Q are those of binary randomised response at ε, erased with probability 1-τ:
    loss +ε has probability τe^ε/(1+e^ε) under P and τ/(1+e^ε) under Q, loss -ε the reverse. Every pair of
    inputs must be dominated by it. Pure ε-LDP is the case τ = 1 (Kairouz, Oh, Viswanath 2015, Theorem 2).
    """

    kind: ClassVar[str] = "symmetric-pair"
    bound: Decimal
    tau: Decimal

    def __post_init__(self) -> None:
        _coerce(
            self,
            bound=_number("epsilon", self.bound, 0, _MOST),
            tau=_number("tau", self.tau, 0, 1),
        )

    def loss(self) -> tuple[Decimal, Decimal]:
        return self.bound, Decimal(0)

    def amounts(self) -> Amounts:
        # Never τ·ε·tanh(ε/2): that fails already for one report of OUE at ε ≥ 4.
        return _symmetric_amounts(self.bound, self.tau)

    def divergence(self, order: Decimal) -> Decimal:
        return _symmetric_law(self.bound, self.tau).divergence(order)


@dataclass(frozen=True, repr=False)
class FinitePair(Guarantee):
    """Two distributions over finitely many outcomes that dominate every ordered pair of inputs.

    `outcomes` holds (P[o], Q[o]) as exact fractions; each side sums to one. Outcomes with Q[o] = 0 are charged
    to δ, the others to ε.
    """

    kind: ClassVar[str] = "finite-pair"
    outcomes: tuple[tuple[Fraction, Fraction], ...]

    def __post_init__(self) -> None:
        try:
            pairs = tuple((Fraction(p), Fraction(q)) for p, q in self.outcomes)
        except (OverflowError, TypeError, ValueError):
            raise ValueError(f"outcomes: expected pairs of fractions; found {shown(self.outcomes)}") from None
        for name, side in (("P", [p for p, _ in pairs]), ("Q", [q for _, q in pairs])):
            if min(side, default=Fraction(-1)) < 0 or sum(side) != 1:
                raise ValueError(f"outcomes: expected {name} to be probabilities that sum to 1; found {shown(side)}")
        _coerce(self, outcomes=pairs)

    def loss(self) -> tuple[Decimal, Decimal]:
        delta = sum((p for p, q in self.outcomes if not q), Fraction(0))
        ratio = max((p / q for p, q in self.outcomes if q), default=Fraction(1))
        epsilon = ln_up(_decimal_up(ratio)) if ratio > 1 else Decimal(0)
        return epsilon, _decimal_up(delta)

    def amounts(self) -> Amounts:
        return self._amounts

    @cached_property
    def _amounts(self) -> Amounts:
        """Worked out once: with many outcomes it takes a while."""
        epsilon, delta = self.loss()
        if delta:
            return Amounts(epsilon, delta, None, None)
        return _no_more_than_pure(epsilon, self._law.rho(), _mu_squared(self._tests()))

    def aside(self) -> Decimal:
        return self.loss()[1]

    def concentrated(self) -> Decimal | None:
        # With a δ it is (ε, δ)-LDP, and so what `Approximate` says.
        epsilon, delta = self.loss()
        return rho_of_pure(epsilon) if delta else self.amounts().rho

    def divergence(self, order: Decimal) -> Decimal:
        return self._law.divergence(order)

    @cached_property
    def _law(self) -> Law:
        """The loss under P, where it is finite."""
        both = [(p, q) for p, q in self.outcomes if p and q]
        return Law(tuple([(_decimal_up(p), ln_up(_decimal_up(p / q))) for p, q in both]))

    def _tests(self) -> list[Test]:
        """The likelihood-ratio tests at the corners of the trade-off curve, but for the trivial ones."""
        outcomes = sorted(
            ((p, q) for p, q in self.outcomes if p or q), key=lambda each: each[0] / (each[0] + each[1])
        )
        return _corners([(_decimal_up(p), _decimal_down(p), _decimal_down(q)) for p, q in reversed(outcomes)])


@dataclass(frozen=True, repr=False)
class Approximate(Guarantee):
    """(ε, δ)-LDP: P[M(x) ∈ T] ≤ e^ε P[M(x') ∈ T] + δ. It has no ρ and no μ of its own.

    Whatever it reports follows from a report that tells all with the probability δ, and is that of randomised
    response at ε else (Kairouz, Oh, Viswanath 2015, Theorem 2).
    """

    kind: ClassVar[str] = "approximate"
    bound: Decimal
    slack: Decimal

    def __post_init__(self) -> None:
        _coerce(
            self,
            bound=_number("epsilon", self.bound, 0, _MOST),
            slack=_number("delta", self.slack, 0, 1),
        )

    def loss(self) -> tuple[Decimal, Decimal]:
        return self.bound, self.slack

    def amounts(self) -> Amounts:
        if not self.slack:
            return _pure_amounts(self.bound)
        return Amounts(self.bound, self.slack, None, None)

    def aside(self) -> Decimal:
        return self.slack

    def concentrated(self) -> Decimal:
        return rho_of_pure(self.bound)

    def divergence(self, order: Decimal) -> Decimal:
        return _divergence_of_pure(self.bound, order)


@dataclass(frozen=True, repr=False)
class ZeroConcentrated(Guarantee):
    """ρ-zCDP: Rényi divergence of every order α > 1 at most ρα (Bun and Steinke 2016). `basic` cannot charge it."""

    kind: ClassVar[str] = "zcdp"
    rho: Decimal

    def __post_init__(self) -> None:
        _coerce(self, rho=_number("rho", self.rho, 0, _MOST))

    def loss(self) -> None:
        return None

    def amounts(self) -> Amounts:
        return Amounts(None, None, self.rho, None)

    def divergence(self, order: Decimal) -> Decimal:
        return UP.multiply(self.rho, order)


@dataclass(frozen=True, repr=False)
class Laplace(Guarantee):
    """The Laplace mechanism at ε = S/b: for inputs a distance S apart the loss is ε clipped to |L| ≤ ε.

    It is ε-LDP, and ρ = ε + e^{-ε} - 1 where any other ε-LDP report may have ε·tanh(ε/2), μ = 2Φ⁻¹(1 - e^{-ε/2}/2).
    """

    kind: ClassVar[str] = "laplace"
    bound: Decimal

    def __post_init__(self) -> None:
        _coerce(self, bound=_number("epsilon", self.bound, 0, _MOST))

    def loss(self) -> tuple[Decimal, Decimal]:
        return self.bound, Decimal(0)

    def amounts(self) -> Amounts:
        rho = UP.add(UP.subtract(self.bound, Decimal(1)), exp_up(self.bound.copy_negate()))
        return Amounts(self.bound, Decimal(0), max(rho, Decimal(0)), _mu_squared_of_laplace(self.bound))

    def divergence(self, order: Decimal) -> Decimal:
        """ln(α e^{(α-1)ε}/(2α-1) + (α-1) e^{-αε}/(2α-1))/(α-1) (Mironov 2017, Table II)."""
        excess, twice = UP.subtract(order, Decimal(1)), DOWN.subtract(DOWN.add(order, order), Decimal(1))
        exponent = UP.multiply(excess, self.bound)
        if exponent > _MOST or excess <= 0:
            return self.bound
        grown = UP.multiply(UP.divide(order, twice), exp_up(exponent))
        shrunk = UP.multiply(UP.divide(excess, twice), exp_up(DOWN.multiply(order, self.bound).copy_negate()))
        divergence = UP.divide(ln_up(UP.add(grown, shrunk)), DOWN.subtract(order, Decimal(1)))
        return min(max(divergence, Decimal(0)), self.bound)


@dataclass(frozen=True, repr=False)
class Gaussian(Guarantee):
    """μ-Gaussian DP, μ = S/σ, with the (ε, δ) point it was calibrated to.

    `basic` charges that point and never another one of its curve; without a point it is unbounded there.
    Source: Dong, Roth and Su 2022, Theorem 2.7.
    """

    kind: ClassVar[str] = "gaussian"
    mu: Decimal
    bound: Decimal | None = None
    slack: Decimal | None = None

    def __post_init__(self) -> None:
        if (self.bound is None) != (self.slack is None):
            raise ValueError("a calibration point needs both epsilon and delta")
        _coerce(
            self,
            mu=_number("mu", self.mu, 0, _MOST),
            bound=None if self.bound is None else _number("epsilon", self.bound, 0, _MOST),
            slack=None if self.slack is None else _number("delta", self.slack, 0, 1),
        )

    def loss(self) -> tuple[Decimal, Decimal] | None:
        return None if self.bound is None or self.slack is None else (self.bound, self.slack)

    def amounts(self) -> Amounts:
        squared = UP.multiply(self.mu, self.mu)
        return Amounts(self.bound, self.slack, UP.divide(squared, Decimal(2)), squared)

    def divergence(self, order: Decimal) -> Decimal:
        return UP.multiply(order, UP.divide(UP.multiply(self.mu, self.mu), Decimal(2)))


@dataclass(frozen=True, repr=False)
class Memoised(Guarantee):
    """Reports that repeat one memoised randomisation of a value.

    `curve[t-1]` is the ε of t reports of the *same* memoised value, `cap` bounds it for every t. However many
    values there are, all reports of one question and secret together lose no more than `values` independent reports
    of pure ε = `cap` (None: no bound).
    `relation` is the neighbours it is promised for. A report of which nothing more is known is the first of a new
    value.
    """

    kind: ClassVar[str] = "memoised"
    curve: tuple[Decimal, ...]
    cap: Decimal
    values: int | None = None
    relation: str = ANY_INPUTS

    def __post_init__(self) -> None:
        cap = _number("cap", self.cap, 0, _MOST)
        if isinstance(self.curve, str | bytes) or not isinstance(self.curve, Iterable):
            raise ValueError(f"curve: expected a list of numbers; found {shown(self.curve)}")
        curve = tuple(_number("curve", point, 0, _MOST) for point in self.curve)
        if not curve or list(curve) != sorted(curve) or curve[-1] > cap:
            raise ValueError(f"curve: expected a non-decreasing list up to the cap {cap}; found {self.curve}")
        if self.relation not in RELATIONS:
            raise ValueError(f"relation: expected one of {RELATIONS}; found {self.relation!r}")
        _coerce(self, cap=cap, curve=curve)

    def loss(self) -> tuple[Decimal, Decimal]:
        return self.curve[0], Decimal(0)

    def amounts(self) -> Amounts:
        # The curve turned into ρ or μ is not a filter (errata.md), so there a value is charged its cap at once.
        return _pure_amounts(self.cap)._replace(epsilon=self.curve[0])

    def divergence(self, order: Decimal) -> Decimal:
        return _divergence_of_pure(self.cap, order)

    def step(self, done: int, reports: int) -> Costs:
        """What `reports` more reports of one value cost after `done` of them, where the value is known by a label.

        ε follows the curve; ρ and μ² are charged whole with the first report. Steps add up to the curve exactly.
        """
        before, after = self._units(done), self._units(done + reports)
        epsilon = None if before is None or after is None else after - before
        whole = self._whole if done == 0 and reports > 0 else ZERO
        return whole._replace(epsilon=epsilon)

    def most_reports(self, done: int, epsilon: int) -> int:
        """How many more reports of one value cost at most `epsilon` units after `done` of them; `LARGEST`: any."""
        before = self._units(done)
        points = self._points
        if before is None:
            return 0
        if points[-1] is not None and points[-1] - before <= epsilon:
            return LARGEST
        # The last point is the cap, so what fits ends before it; unbounded points come last.
        counted = [point for point in points if point is not None]
        return bisect.bisect_right(counted, before + epsilon) - 1 - done

    def _units(self, reports: int) -> int | None:
        """ε of `reports` reports of one value, in units."""
        return self._points[min(reports, len(self._points) - 1)]

    @cached_property
    def _points(self) -> tuple[int | None, ...]:
        """ε of 0, 1, 2 … reports of one value in units, the cap last."""
        bounds = (Decimal(0), *self.curve, self.cap)
        return tuple([Costs.of(bound, None, None, None).epsilon for bound in bounds])

    @cached_property
    def _whole(self) -> Costs:
        """What the cap costs under the rules that charge a value at once."""
        return Costs.of(*_pure_amounts(self.cap))

    def describe(self) -> dict[str, Any]:
        # Of all reports there can be where that is bounded, else of those of one value.
        lifetime = UP.multiply(self.cap, 1 if self.values is None else self.values)
        return {**super().describe(), "lifetime_epsilon": float_up(lifetime)}


@dataclass(frozen=True, repr=False)
class Copies(Guarantee):
    """`count` independent reports of the same input, each with the guarantee `of`, sent together."""

    kind: ClassVar[str] = "copies"
    count: int
    of: Guarantee

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise ValueError(f"count: expected a whole number >= 1; found {self.count}")
        if not isinstance(self.of, Guarantee):
            raise ValueError(f"of: expected a guarantee; found {self.of!r}")

    @property
    def relation(self) -> str:  # type: ignore[override]
        return self.of.relation

    def loss(self) -> tuple[Decimal, Decimal] | None:
        loss = self.of.loss()
        return None if loss is None else (UP.multiply(loss[0], self.count), UP.multiply(loss[1], self.count))

    def amounts(self) -> Amounts:
        return Amounts(*map(self._times, self.of.amounts()))

    def aside(self) -> Decimal | None:
        return self._times(self.of.aside())

    def concentrated(self) -> Decimal | None:
        return self._times(self.of.concentrated())

    def divergence(self, order: Decimal) -> Decimal | None:
        return self._times(self.of.divergence(order))

    def _times(self, amount: Decimal | None) -> Decimal | None:
        return None if amount is None else UP.multiply(amount, self.count)


@dataclass(frozen=True, repr=False)
class Unbounded(Guarantee):
    """No promise: some pair of inputs can be told apart for certain, or nobody could bound the loss."""

    kind: ClassVar[str] = "unbounded"

    def loss(self) -> None:
        return None

    def amounts(self) -> Amounts:
        return Amounts(None, None, None, None)

    def aside(self) -> None:
        return None

    def divergence(self, order: Decimal) -> None:
        return None


def _decimal_up(fraction: Fraction) -> Decimal:
    return UP.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))


def _decimal_down(fraction: Fraction) -> Decimal:
    return DOWN.divide(Decimal(fraction.numerator), Decimal(fraction.denominator))


# -- ε-LDP and nothing more ----------------------------------------------------------------------------------


def _pure_amounts(epsilon: Decimal) -> Amounts:
    return Amounts(epsilon, Decimal(0), rho_of_pure(epsilon), mu_squared_of_pure(epsilon))


def _no_more_than_pure(epsilon: Decimal, rho: Decimal, mu_squared: Decimal) -> Amounts:
    """The amounts of a report that is ε-DP, and has this ρ and μ² as well."""
    return Amounts(epsilon, Decimal(0), min(rho, rho_of_pure(epsilon)), min(mu_squared, mu_squared_of_pure(epsilon)))


def rho_of_pure(epsilon: Decimal) -> Decimal:
    """The ρ of zCDP that every ε-DP report satisfies: ε·tanh(ε/2), rounded up.

    It is the Kullback-Leibler divergence of randomised response, the worst pair; sharper than the ε²/2 of Bun
    and Steinke 2016, Proposition 1.4.
    """
    # tanh(ε/2) = 1 - 2/(e^ε + 1) grows with e^ε, so a larger exponential gives the larger bound.
    divisor = UP.add(exp_up(epsilon), Decimal(1))
    tanh = UP.subtract(Decimal(1), DOWN.divide(Decimal(2), divisor))
    return UP.multiply(epsilon, tanh)


def mu_squared_of_pure(epsilon: Decimal) -> Decimal:
    """μ² of the Gaussian DP that every ε-DP report satisfies: μ = 2Φ⁻¹(e^ε/(1+e^ε)), rounded up."""
    from .gaussian import mu_of_pure

    if not epsilon:
        return Decimal(0)
    # μ grows with ε, so below the smallest ε it is computed for, the μ of that one is a bound.
    mu = Decimal(mu_of_pure(float_up(max(epsilon, _LEAST))))
    return UP.multiply(mu, mu)


def _mu_squared_of_laplace(epsilon: Decimal) -> Decimal:
    """μ² of Laplace noise, rounded up."""
    from .gaussian import mu_of_laplace

    if not epsilon:
        return Decimal(0)
    mu = Decimal(mu_of_laplace(float_up(max(epsilon, _LEAST))))
    return UP.multiply(mu, mu)


def odds(epsilon: Decimal) -> tuple[Decimal, Decimal]:
    """A lower and an upper bound of e^ε; from them mechanisms round p, q and τ to the safe side."""
    return exp_down(epsilon), exp_up(epsilon)


@lru_cache(maxsize=1024)
def _divergence_of_pure(epsilon: Decimal, order: Decimal) -> Decimal:
    """The largest Rényi divergence of ε-DP reports, that of randomised response."""
    return _symmetric_law(epsilon, Decimal(1)).divergence(order)


# -- the trade-off curve of a pair ---------------------------------------------------------------------------

Test = tuple[Decimal, Decimal, Decimal]
"""Q(T) rounded down, P(T) up, and 1 - P(T) down."""


def _corners(outcomes: list[Test]) -> list[Test]:
    """The tests that accept the first outcomes and leave the others, from P rounded up and down, and Q down."""
    misses = [Decimal(0)]
    for _, p_down, _ in reversed(outcomes[1:]):
        misses.append(DOWN.add(misses[-1], p_down))
    alarms = power = Decimal(0)
    tests = []
    for p, _, q in outcomes[:-1]:
        alarms, power = DOWN.add(alarms, q), UP.add(power, p)
        tests.append((alarms, power, misses.pop()))
    return tests


def _mu_squared(tests: list[Test]) -> Decimal:
    """μ² of the least Gaussian trade-off curve below that with these corners, rounded up; may be infinite."""
    from .gaussian import mu_of_tests

    mu = Decimal(mu_of_tests(tests))
    return UP.multiply(mu, mu)


# -- losses of ±ε with probability τ -------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _symmetric_amounts(epsilon: Decimal, tau: Decimal) -> Amounts:
    if tau == 1 or not epsilon:
        return _pure_amounts(epsilon)
    if not tau:
        return _no_more_than_pure(epsilon, Decimal(0), Decimal(0))
    # Accepting the loss ε alone is the first test at a corner; the other one mirrors it.
    low, high = DOWN.divide(tau, UP.add(exp_up(epsilon), _ONE)), _high(epsilon, tau)
    misses = DOWN.add(DOWN.subtract(_ONE, tau), low)
    mu_squared = _mu_squared([(low, high, misses)])
    return _no_more_than_pure(epsilon, _symmetric_law(epsilon, tau).rho(), mu_squared)


@lru_cache(maxsize=1024)
def _symmetric_law(epsilon: Decimal, tau: Decimal) -> Law:
    """The loss under P."""
    low = UP.divide(tau, DOWN.add(exp_down(epsilon), _ONE))
    loss = epsilon if tau else Decimal(0)
    return Law(((_high(epsilon, tau), loss), (low, loss.copy_negate()), (UP.subtract(_ONE, tau), Decimal(0))))


def _high(epsilon: Decimal, tau: Decimal) -> Decimal:
    """τe^ε/(1+e^ε), rounded up."""
    return UP.divide(tau, DOWN.add(DOWN.divide(_ONE, exp_up(epsilon)), _ONE))


_ONE = Decimal(1)
