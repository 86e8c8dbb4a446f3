"""Guarantee classes: the closed set of privacy promises that a mechanism makes to one user.

A guarantee bounds how much the distribution of one report M(x) can differ between two values x, x' of one user. Only
that user's value changes (local differential privacy). The accountant sees guarantees, never mechanisms. Each
guarantee has a JSON form and four integer costs, so a ledger can be read, priced and verified without the plugin that
wrote it.

**Notation.** P and Q are the distributions of M(x) and M(x'), T is any set of outputs, and Φ is the normal
distribution function. L = ln P(o)/Q(o), for o drawn from P, is the privacy loss, in nats. D_α is the Rényi divergence
of order α. H(λ) = sup over T of P(T) - λQ(T) is the hockey-stick divergence, and δ(ε) = H(e^ε) the privacy profile. A
pair (A, B) *dominates* (P, Q) if its H(λ) is at least that of (P, Q) for every λ >= 0 (Zhu, Dong and Wang 2022). Each
promise below holds for every ordered pair of values x, x', except where a relation restricts the histories.

**Definitions.** ε (`bound`, `curve`, `cap`) and ρ are in nats and from 0 to 1e6. δ (`slack`) and τ (`tau`) are
probabilities. μ is dimensionless, a distance in standard deviations, from 0 to 1e6.

- `Pure(bound=ε)`: P(T) <= e^ε Q(T) for every T, so |L| <= ε always.
- `Approximate(bound=ε, slack=δ)`: P(T) <= e^ε Q(T) + δ for every T. With δ > 0 it promises no ρ and no μ.
- `SymmetricPair(bound=ε, tau=τ)`: (P, Q) is dominated by binary randomized response at ε, erased with probability
  1 - τ. The loss of that pair is +ε with probability τe^ε/(1+e^ε), -ε with probability τ/(1+e^ε), and else 0.
- `FinitePair(outcomes)`: (P, Q) is dominated by the listed pair ((A[1], B[1]), (A[2], B[2]), …) of exact fractions,
  each side with the sum 1. Its ε is ln max A[o]/B[o] over the outcomes with B[o] > 0, and at least 0. Its δ is the
  sum of A[o] over those with B[o] = 0.
- `Laplace(bound=ε)`: (P, Q) is dominated by Laplace noise of scale b on two values at the distance S, with ε = S/b.
  The loss is at most ε, and ρ = ε + e^-ε - 1 and μ = 2Φ⁻¹(1 - e^(-ε/2)/2).
- `ZeroConcentrated(rho=ρ)`: D_α(P‖Q) <= ρα for every α > 1 (ρ-zCDP). It promises no ε and no μ.
- `Gaussian(mu=μ, bound=ε, slack=δ)`: (P, Q) is dominated by (N(μ, 1), N(0, 1)), which is μ-Gaussian DP. Gaussian
  noise of standard deviation σ on values of sensitivity S has μ = S/σ, and ρ = μ²/2. The optional ε and δ, both or
  neither, add the promise of `Approximate`: they are the calibration point, which the rule `basic` charges.
- `Memoised(curve, cap, values, relation)`: t reports that repeat one memoised randomization of a value are, together,
  `Pure` with ε = `curve[t-1]`. Any number of them are `Pure` with ε = `cap`. All reports of one question and secret
  together lose at most as much as `values` independent reports of `Pure(cap)` (None: no bound). The promise holds for
  the pairs of histories that `relation` names, see `ANY_INPUTS` and `SAME_CHANGE_PATTERN`.
- `Copies(count, of)`: `count` independent reports of the same value, each with the guarantee `of`, sent together.
  P and Q are products of `count` distributions.
- `Unbounded()`: no promise. All four costs are unbounded.
- `OneSided(eta=η)`: P(T) <= e^η Q(T) for every T, if x is a *protected* answer of the mechanism and x' any other.
  Of the other answers it promises nothing, so its costs are those of `Unbounded`, and no ledger charges it.

**Costs.** `amounts()` returns ε, δ, ρ and μ² of one report as decimals, rounded up; None is unbounded. Amounts are
exact decimals or fractions inside; `epsilon` and `delta` are doubles, rounded outward. `Costs` counts ε in 1e-9, δ in
1e-18, ρ and μ² in 1e-12.

The end of the module has the levels of evidence that a mechanism keeps its guarantee: `EXACT`, `AUDITED` and `NO`.
`certification` stores who checked a mechanism and when.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from .._validation import shown
from ._base import (
    ANY_INPUTS,
    MOST,
    RELATIONS,
    Amounts,
    Guarantee,
    Number,
    fraction_of,
    fraction_text,
    from_json,
    number_up_to,
    store,
)
from ._bounds import (
    Test,
    corners,
    divergence_of_pure,
    mu_squared_of_laplace,
    mu_squared_of_tests,
    no_more_than_pure,
    pure_amounts,
    rho_of_pure,
    symmetric_amounts,
    symmetric_law,
)
from .fixed_point import DOWN, UP, Costs, decimal_down, decimal_up, exp_up, float_up, ln_up

if TYPE_CHECKING:
    from ._renyi_bounds import Law

__all__ = [
    "Amounts",
    "Approximate",
    "Copies",
    "FinitePair",
    "Gaussian",
    "Guarantee",
    "Laplace",
    "Memoised",
    "Number",
    "OneSided",
    "Pure",
    "SymmetricPair",
    "Unbounded",
    "ZeroConcentrated",
    "from_json",
]


@dataclass(frozen=True, repr=False)
class Pure(Guarantee):
    """Pure ε-LDP: P[M(x) ∈ T] ≤ e^ε P[M(x') ∈ T] for all inputs x, x' and all events T."""

    kind: ClassVar[str] = "pure"
    bound: Decimal

    def __post_init__(self) -> None:
        store(self, bound=number_up_to("epsilon", self.bound, MOST))

    def loss(self) -> tuple[Decimal, Decimal]:
        return self.bound, Decimal(0)

    def amounts(self) -> Amounts:
        return pure_amounts(self.bound)

    def divergence(self, order: Decimal) -> Decimal:
        return divergence_of_pure(self.bound, order)


@dataclass(frozen=True, repr=False)
class SymmetricPair(Guarantee):
    """Domination by a pair whose loss is ±ε with total probability τ, and 0 otherwise.

    The pair P, Q is binary randomized response at ε, erased with probability 1-τ. The loss +ε has the probability
    τe^ε/(1+e^ε) under P and τ/(1+e^ε) under Q; the loss -ε has the reverse. This pair must dominate every pair of
    inputs. Pure ε-LDP is the case τ = 1 (Kairouz, Oh, Viswanath 2015, Theorem 2).
    """

    kind: ClassVar[str] = "symmetric-pair"
    bound: Decimal
    tau: Decimal

    def __post_init__(self) -> None:
        store(
            self,
            bound=number_up_to("epsilon", self.bound, MOST),
            tau=number_up_to("tau", self.tau, 1),
        )

    def loss(self) -> tuple[Decimal, Decimal]:
        return self.bound, Decimal(0)

    def amounts(self) -> Amounts:
        # Never τ·ε·tanh(ε/2) alone: it is too small already for one report of OUE at ε ≥ 4.
        return symmetric_amounts(self.bound, self.tau)

    def divergence(self, order: Decimal) -> Decimal:
        return symmetric_law(self.bound, self.tau).divergence(order)


@dataclass(frozen=True, repr=False)
class FinitePair(Guarantee):
    """Domination of every ordered pair of inputs by a pair of distributions over finitely many outcomes.

    `outcomes` holds (P[o], Q[o]) as exact fractions; each side sums to one. Outcomes with Q[o] = 0 are charged
    to δ, the others to ε.
    """

    kind: ClassVar[str] = "finite-pair"
    outcomes: tuple[tuple[Fraction, Fraction], ...]

    def __post_init__(self) -> None:
        try:
            pairs = tuple((fraction_of(p), fraction_of(q)) for p, q in self.outcomes)
        except (OverflowError, TypeError, ValueError):
            raise ValueError(f"outcomes must be pairs of fractions: got {shown(self.outcomes)}") from None
        for name, side in (("P", [p for p, _ in pairs]), ("Q", [q for _, q in pairs])):
            if min(side, default=Fraction(-1)) < 0 or sum(side) != 1:
                found = shown(list(map(fraction_text, side)))
                raise ValueError(f"outcomes: {name} must be probabilities that sum to 1: got {found}")
        store(self, outcomes=pairs)

    def loss(self) -> tuple[Decimal, Decimal]:
        delta = sum((p for p, q in self.outcomes if not q), Fraction(0))
        ratio = max((p / q for p, q in self.outcomes if q), default=Fraction(1))
        epsilon = ln_up(decimal_up(ratio)) if ratio > 1 else Decimal(0)
        return epsilon, decimal_up(delta)

    def amounts(self) -> Amounts:
        return self._amounts

    @cached_property
    def _amounts(self) -> Amounts:
        """The amounts, computed once: with many outcomes this takes long."""
        epsilon, delta = self.loss()
        if delta:
            return Amounts(epsilon, delta, None, None)
        return no_more_than_pure(epsilon, self._law.rho(), mu_squared_of_tests(self._tests()))

    def aside(self) -> Decimal:
        return self.loss()[1]

    def concentrated(self) -> Decimal | None:
        # With a δ it is (ε, δ)-LDP, so the ρ is that of `Approximate`.
        epsilon, delta = self.loss()
        return rho_of_pure(epsilon) if delta else self.amounts().rho

    def divergence(self, order: Decimal) -> Decimal:
        return self._law.divergence(order)

    @cached_property
    def _law(self) -> Law:
        """The distribution of the loss under P, where the loss is finite."""
        from ._renyi_bounds import Law

        both = [(p, q) for p, q in self.outcomes if p and q]
        return Law(tuple([(decimal_up(p), ln_up(decimal_up(p / q))) for p, q in both]))

    def _tests(self) -> list[Test]:
        """Return the likelihood-ratio tests at the corners of the trade-off curve, without the trivial ones."""
        outcomes = sorted(
            ((p, q) for p, q in self.outcomes if p or q), key=lambda each: each[0] / (each[0] + each[1])
        )
        return corners([(decimal_up(p), decimal_down(p), decimal_down(q)) for p, q in reversed(outcomes)])


@dataclass(frozen=True, repr=False)
class Approximate(Guarantee):
    """(ε, δ)-LDP: P[M(x) ∈ T] ≤ e^ε P[M(x') ∈ T] + δ for all inputs x, x' and all events T.

    With δ > 0 it promises no ρ and no μ. Its reports are post-processing of a report that reveals the value with
    probability δ, and else is randomized response at ε (Kairouz, Oh, Viswanath 2015, Theorem 2).
    """

    kind: ClassVar[str] = "approximate"
    bound: Decimal
    slack: Decimal

    def __post_init__(self) -> None:
        store(
            self,
            bound=number_up_to("epsilon", self.bound, MOST),
            slack=number_up_to("delta", self.slack, 1),
        )

    def loss(self) -> tuple[Decimal, Decimal]:
        return self.bound, self.slack

    def amounts(self) -> Amounts:
        if not self.slack:
            return pure_amounts(self.bound)
        return Amounts(self.bound, self.slack, None, None)

    def aside(self) -> Decimal:
        return self.slack

    def concentrated(self) -> Decimal:
        return rho_of_pure(self.bound)

    def divergence(self, order: Decimal) -> Decimal:
        return divergence_of_pure(self.bound, order)


@dataclass(frozen=True, repr=False)
class ZeroConcentrated(Guarantee):
    """ρ-zCDP: the Rényi divergence of every order α > 1 is at most ρα (Bun and Steinke 2016).

    The rule `basic` cannot charge it, as it promises no (ε, δ).
    """

    kind: ClassVar[str] = "zcdp"
    rho: Decimal

    def __post_init__(self) -> None:
        store(self, rho=number_up_to("rho", self.rho, MOST))

    def loss(self) -> None:
        return None

    def amounts(self) -> Amounts:
        return Amounts(None, None, self.rho, None)

    def divergence(self, order: Decimal) -> Decimal:
        return UP.multiply(self.rho, order)


@dataclass(frozen=True, repr=False)
class Laplace(Guarantee):
    """The Laplace mechanism at ε = S/b: noise of scale b on inputs at most S apart, with a loss |L| ≤ ε.

    It is ε-LDP. Its ρ is ε + e^{-ε} - 1, below the ε·tanh(ε/2) of other ε-LDP reports; μ = 2Φ⁻¹(1 - e^{-ε/2}/2).
    """

    kind: ClassVar[str] = "laplace"
    bound: Decimal

    def __post_init__(self) -> None:
        store(self, bound=number_up_to("epsilon", self.bound, MOST))

    def loss(self) -> tuple[Decimal, Decimal]:
        return self.bound, Decimal(0)

    def amounts(self) -> Amounts:
        rho = UP.add(UP.subtract(self.bound, Decimal(1)), exp_up(self.bound.copy_negate()))
        return Amounts(self.bound, Decimal(0), max(rho, Decimal(0)), mu_squared_of_laplace(self.bound))

    def divergence(self, order: Decimal) -> Decimal:
        """Return ln(α e^{(α-1)ε}/(2α-1) + (α-1) e^{-αε}/(2α-1))/(α-1) (Mironov 2017, Table II), rounded up."""
        excess, twice = UP.subtract(order, Decimal(1)), DOWN.subtract(DOWN.add(order, order), Decimal(1))
        exponent = UP.multiply(excess, self.bound)
        if exponent > MOST or excess <= 0:
            return self.bound
        grown = UP.multiply(UP.divide(order, twice), exp_up(exponent))
        shrunk = UP.multiply(UP.divide(excess, twice), exp_up(DOWN.multiply(order, self.bound).copy_negate()))
        divergence = UP.divide(ln_up(UP.add(grown, shrunk)), DOWN.subtract(order, Decimal(1)))
        return min(max(divergence, Decimal(0)), self.bound)


@dataclass(frozen=True, repr=False)
class Gaussian(Guarantee):
    """μ-Gaussian DP, μ = S/σ, with the (ε, δ) point that the noise was calibrated to.

    The rule `basic` charges that point, and never another point of the curve. Without a point the report is unbounded
    under `basic`. Source: Dong, Roth and Su 2022, Theorem 2.7.
    """

    kind: ClassVar[str] = "gaussian"
    mu: Decimal
    bound: Decimal | None = None
    slack: Decimal | None = None

    def __post_init__(self) -> None:
        if (self.bound is None) != (self.slack is None):
            raise ValueError("a calibration point must have both epsilon and delta")
        store(
            self,
            mu=number_up_to("mu", self.mu, MOST),
            bound=None if self.bound is None else number_up_to("epsilon", self.bound, MOST),
            slack=None if self.slack is None else number_up_to("delta", self.slack, 1),
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
    """Reports that repeat one memoised randomization of a value.

    `curve[t-1]` is the ε of t reports of the *same* memoised value; `cap` bounds it for every t. All reports of one
    question and secret together lose at most as much as `values` independent reports of pure ε = `cap` (None: no
    bound). `relation` names the neighboring histories of the promise, see `RELATIONS`.

    A report without a label may repeat any value. It is charged the most that one more report adds to the curve,
    which is mostly `curve[0]`, until all reports together are charged `values` caps; see `memoised_costs`.
    """

    kind: ClassVar[str] = "memoised"
    curve: tuple[Decimal, ...]
    cap: Decimal
    values: int | None = None
    relation: str = ANY_INPUTS

    def __post_init__(self) -> None:
        cap = number_up_to("cap", self.cap, MOST)
        if isinstance(self.curve, str | bytes) or not isinstance(self.curve, Iterable):
            raise ValueError(f"curve must be a list of numbers: got {shown(self.curve)}")
        curve = tuple(number_up_to("curve", point, MOST) for point in self.curve)
        if not curve or list(curve) != sorted(curve) or curve[-1] > cap:
            raise ValueError(f"curve must be a non-decreasing list up to the cap {cap}: got {self.curve}")
        if self.relation not in RELATIONS:
            raise ValueError(f"relation must be one of {RELATIONS}: got {self.relation!r}")
        store(self, cap=cap, curve=curve, values=_count_of_values(self.values))

    def loss(self) -> tuple[Decimal, Decimal]:
        return self._most_added, Decimal(0)

    @cached_property
    def _most_added(self) -> Decimal:
        """The most that one more report of a value can add to the curve: t reports never lose more than t times it.

        It equals the ε of one report if no later report adds more than the first. A report without a label is charged
        this amount, as it may repeat any value.
        """
        return max(UP.subtract(after, before) for before, after in pairwise((Decimal(0), *self.curve, self.cap)))

    def amounts(self) -> Amounts:
        # Converting the curve to ρ or μ gives no valid filter (errata.md), so ρ and μ² charge the cap at once.
        return pure_amounts(self.cap)._replace(epsilon=self._most_added)

    def divergence(self, order: Decimal) -> Decimal:
        return divergence_of_pure(self.cap, order)

    def given(self, earlier: int) -> Guarantee:
        """Return the guarantee of any number of reports of one value together, given what `earlier` ones showed."""
        bounds = (Decimal(0), *self.curve, self.cap)
        total = UP.add(self.cap, bounds[min(earlier, len(bounds) - 1)])
        return Pure(total) if total <= MOST else Unbounded()

    def loss_units(self, reports: int) -> int:
        """Return the ε of a number of reports of one value, in units, rounded up; 0 for none."""
        return self._points[min(reports, len(self._points) - 1)]

    @property
    def cap_units(self) -> int:
        """The cap in units, rounded up."""
        return self._points[-1]

    @cached_property
    def added_units(self) -> int:
        """The most that one more report of a value adds to its loss, in units, rounded up."""
        return _units(self._most_added)

    @cached_property
    def _points(self) -> tuple[int, ...]:
        """The ε of 0, 1, 2 … reports of one value in units, the cap last."""
        return tuple([_units(bound) for bound in (Decimal(0), *self.curve, self.cap)])

    def describe(self) -> dict[str, Any]:
        # The ε of all possible reports if that is bounded, else of all reports of one value.
        lifetime = UP.multiply(self.cap, 1 if self.values is None else self.values)
        return {**super().describe(), "lifetime_epsilon": float_up(lifetime)}


def _count_of_values(values: Any) -> int | None:
    """Return the largest number of values, or None. Raises ValueError for all but None and whole numbers >= 1."""
    if values is None or (isinstance(values, int) and not isinstance(values, bool) and values >= 1):
        return values
    raise ValueError(f"values must be a whole number >= 1: got {shown(values)}. Leave it out if there is no bound.")


def _units(epsilon: Decimal) -> int:
    """Return an ε in units, rounded up."""
    units = Costs.of(epsilon, None, None, None).epsilon
    assert units is not None  # no ε is above `MOST`
    return units


@dataclass(frozen=True, repr=False)
class Copies(Guarantee):
    """`count` independent reports of the same input, each with the guarantee `of`, sent together."""

    kind: ClassVar[str] = "copies"
    count: int
    of: Guarantee

    def __post_init__(self) -> None:
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise ValueError(f"count must be a whole number >= 1: got {self.count}")
        if not isinstance(self.of, Guarantee):
            raise ValueError(f"of must be a guarantee: got {self.of!r}")

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
    """No promise: some pair of inputs can be distinguished with certainty, or no bound of the loss is known."""

    kind: ClassVar[str] = "unbounded"

    def loss(self) -> None:
        return None

    def amounts(self) -> Amounts:
        return Amounts(None, None, None, None)

    def aside(self) -> None:
        return None

    def divergence(self, order: Decimal) -> None:
        return None


@dataclass(frozen=True, repr=False)
class OneSided(Unbounded):
    """One-sided LDP: P[M(x) ∈ T] ≤ e^η P[M(x') ∈ T] for each protected input x; another x may be revealed.

    Source: Kotsogiannis, Doudalis, Haney, Machanavajjhala and Mehrotra, ICDE 2020.
    """

    kind: ClassVar[str] = "one-sided"
    relation: ClassVar[str] = "a protected input and any other"  # type: ignore[misc]
    eta: Decimal

    def __post_init__(self) -> None:
        store(self, eta=number_up_to("eta", self.eta, MOST))

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "eta": float_up(self.eta)}


# -- evidence ------------------------------------------------------------------------------------------------

EXACT = "exact"
"""Proved from the mechanism's channel or density, and more than samples show that the client keeps to it.

The tests of every release check our own clients. A check of a program that cannot be read never reaches this level.
"""
AUDITED = "audited"
"""Not contradicted by the reports that its client was observed to send."""
NO = "no"
"""Unknown, failed, or changed since the last check."""

LEVELS = (NO, AUDITED, EXACT)
"""All levels, the weakest first; ledgers store a level as its index here."""


def is_memoised(guarantee: Guarantee) -> bool:
    """True if reports with this guarantee repeat a memoised draw, or several."""
    while isinstance(guarantee, Copies):
        guarantee = guarantee.of
    return isinstance(guarantee, Memoised)
