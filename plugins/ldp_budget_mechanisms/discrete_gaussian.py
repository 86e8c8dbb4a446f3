"""The discrete Gaussian mechanism for a vector of bounded Euclidean norm: exact noise on a public lattice, ρ-zCDP.

A user holds a vector of d coordinates whose norm is at most C, such as an update of a model. The public lattice has the
step C/B, for a whole number B. The client writes the vector in steps, rounds each coordinate toward zero and adds to each
a whole number n with P[n] in proportion to exp(-n²/2σ²), σ = 2³² steps.

**The norm bound is exact.** Rounding toward zero never makes a coordinate longer, but the scaling is done in doubles. So
the client adds up the squares of the steps as whole numbers. While the sum is above B², it scales the vector down. No
float decides that a vector is within the ball.

**The loss.** Any two vectors of the ball are at most 2B steps apart. A product of discrete Gaussians whose centers are a
whole vector of norm Δ apart has D_α <= αΔ²/2σ² for every α > 1 (Canonne, Kamath and Steinke 2020, Theorem 14; their
Proposition 5 for a coordinate, and divergences of independent coordinates add up). So a report is ρ-zCDP with

    ρ = (2B)² / 2σ² = 2B² / 2⁶⁴,

and B is the largest whole number whose ρ is not above the declared one. For a declared (ε, δ) it is the largest ρ, in
units of 1e-12, that the optimal conversion takes to at most ε at δ.

**Why not PrivUnit.** PrivUnit (Bhowmick et al. 2018) is ε-LDP and has less error for one report at a large ε. It draws a
direction uniformly from a spherical cap, and doubles decide on which side of the cap the direction is. Here every draw and
every decision is a comparison of whole numbers. The sum of reports is a sum of whole numbers. And ρ of many rounds adds up.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.composition import capacity
from ldp_budget.errors import InvalidParameter, NotSupported, OutsideDomain
from ldp_budget.guarantees import Guarantee, ZeroConcentrated
from ldp_budget.guarantees.fixed_point import RHO_DIGITS, from_units
from ldp_budget.sampling import discrete_normal, open_stream
from ldp_budget.sdk.accepted_values import quantile
from ldp_budget.sdk.domain import check_users
from ldp_budget.sdk.estimates import Estimate, check_same
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.parameters import integer, optional_real, real

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.sampling import RandomSource

    Floats = NDArray[np.float64]
    Steps = NDArray[np.int64]

_BITS = 32
"""σ is 2**32 steps, so rounding a value moves it by less than σ·2**-32."""
_LEAST_RHO, _LARGEST_RHO = Decimal("1e-10"), Decimal(512)
"""Within these B is from 30,370 to 2**36, and the sums below fit 64-bit integers."""
_MOST_COORDINATES = 1 << 25
_BLOCK = 1 << 22
"""The most squares whose halves add up to less than 2**63."""
_FURTHEST = 1 << 40
"""The most steps of a coordinate in a report: 240 σ from a value."""
_MOST_REPORTS = 1 << 22
_HALVES = 20
_SLACK = 1e-9
"""How much longer than the bound, relatively, a given vector may be: its norm was computed in doubles."""


@dataclass
class VectorAggregate:
    """The aggregate of vectors: the exact sum of the reports in whole steps, (d,). Merging in any order is exact."""

    fingerprint: str
    reports: int
    total: Steps

    def merge(self, other: VectorAggregate) -> VectorAggregate:
        """Add another aggregate of the same mechanism to this one, exactly, and return this one.

        Raises:
            NotSupported: `other` was made by another mechanism, or there are more than 4,194,304 reports.
        """
        check_same(self, other)
        _check_count(self.reports + other.reports)
        self.reports += other.reports
        self.total = self.total + other.total
        return self


@dataclass(frozen=True)
class VectorEstimate(Estimate):
    """The estimated mean of the users' vectors, (d,), with the standard error of each coordinate.

    The errors are those of the noise, whose variance is known: they are about these users, after clipping.
    """

    reports: int
    mean: Floats
    std_errors: Floats

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the ends of the confidence interval of each coordinate."""
        reach = quantile(level) * self.std_errors
        return self.mean - reach, self.mean + reach

    def to_rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        low, high = self.interval(level)
        columns = (each.tolist() for each in (self.mean, self.std_errors, low, high))
        names = ("mean", "std_error", "low", "high")
        return [
            {"coordinate": at, **dict(zip(names, row, strict=True))}
            for at, row in enumerate(zip(*columns, strict=True))
        ]


class DiscreteGaussian(Mechanism):
    """A vector in a ball plus exact discrete Gaussian noise in each coordinate."""

    name = "discrete-gaussian"
    summary = "a vector of bounded norm plus exact discrete Gaussian noise, for zcdp limits; federated learning"
    source = "Canonne, Kamath and Steinke, The Discrete Gaussian for Differential Privacy, NeurIPS 2020, Theorem 14"
    targets = ("epsilon", "rho")

    dimension = integer("number of coordinates", at_least=1, at_most=_MOST_COORDINATES)
    norm_bound = real("largest Euclidean norm of a user's vector", at_least=1e-100, at_most=1e100)
    epsilon = optional_real("privacy loss of one report, together with delta", at_least=0.001, at_most=1000)
    delta = optional_real("probability of a larger loss", at_least=1e-300, below=1)
    rho = optional_real("ρ of one report, in place of epsilon and delta", at_least=1e-10, at_most=512)

    examples = (
        {"dimension": 3, "norm_bound": "1", "rho": "0.1"},
        {"dimension": 20, "norm_bound": "2.5", "epsilon": "1", "delta": "1e-6"},
    )

    def check(self) -> None:
        if self.rho is not None:
            if self.epsilon is not None or self.delta is not None:
                raise InvalidParameter("rho", "left out if epsilon or delta is given", self.rho)
            return
        for name in ("epsilon", "delta"):
            if name not in self.declared:
                raise InvalidParameter(name, self.fields[name].expected, hint="Give both epsilon and delta, or rho.")
        if not _LEAST_RHO <= self._rho <= _LARGEST_RHO:
            expected = f"a loss whose ρ at this delta is from {_LEAST_RHO} to {_LARGEST_RHO}"
            raise InvalidParameter("epsilon", expected, f"{self.epsilon}, with ρ = {self._rho}")

    # -- derived values ---------------------------------------------------------------------------------

    @functools.cached_property
    def _rho(self) -> Decimal:
        if self.rho is not None:
            return self.rho
        assert self.epsilon is not None
        assert self.delta is not None
        units = capacity("zcdp", self.epsilon, self.delta).rho
        assert units is not None
        return from_units(units, RHO_DIGITS)

    @functools.cached_property
    def steps_of_bound(self) -> int:
        """B, the norm bound in steps: the largest whole number with 2B²/4**32 <= ρ."""
        return math.isqrt(math.floor(Fraction(self._rho) / 2 * 4**_BITS))

    @property
    def step(self) -> float:
        """The step of the public lattice, in the unit of the values."""
        return float(Fraction(self.norm_bound) / self.steps_of_bound)

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise of a coordinate, in the unit of the values."""
        return float(Fraction(self.norm_bound) * 2**_BITS / self.steps_of_bound)

    @property
    def parameters(self) -> dict[str, float]:
        return {"rho": float(self._rho), "sigma": self.sigma, "step": self.step}

    @property
    def guarantee(self) -> Guarantee:
        return ZeroConcentrated(self._rho)

    @property
    def notes(self) -> tuple[str, ...]:
        return (
            "Charge it under a limit with the rule zcdp or renyi, such as lifetime=8,1e-6,zcdp: ρ has no ε of its own, so "
            "a limit with the rule basic or gdp refuses it.",
            "The loss is that of any two vectors of the ball, which are up to twice the norm bound apart.",
        )

    def utility(self, users: int | None = None) -> dict[str, Any]:
        result: dict[str, Any] = {"mse": {"coordinate": self.sigma**2, "vector": self.dimension * self.sigma**2}}
        if users is not None:
            check_users(users)
            result["std_error"] = self.sigma / users**0.5
        return result

    # -- client -----------------------------------------------------------------------------------------

    def clip(self, values: Any) -> Floats:
        """Return vectors with each that is too long scaled down to the norm bound.

        Parameters:
            values: an array or a list of vectors, shape (n, d).

        Raises:
            OutsideDomain: a vector has another number of coordinates, or one that is not a finite number.
        """
        rows = self._rows(values)
        for row in rows:
            peak = float(np.abs(row).max()) or 1.0
            direction = row / peak  # its squares neither overflow nor vanish
            length, most = float(np.sqrt(direction @ direction)), float(self.norm_bound)
            if length > most / peak:
                row[:] = direction * (most / length)
        return rows

    def randomize(self, values: Any, *, rng: RandomSource = None, secrets: Any = None) -> Steps:
        """Randomize each vector into a report: whole steps of the public lattice.

        Parameters:
            values: an array or a list of vectors, shape (n, d), each at most as long as the norm bound; see `clip`.
            rng: None for cryptographic randomness; a seed or a seeded stream in tests only.
            secrets: ignored, because nothing is memoised.

        Returns:
            The reports, (n, d); `contributions` turns them into numbers.

        Raises:
            OutsideDomain: a value is not such a vector. Nothing was randomized.
            TypeError: `rng` is not a source of randomness.
        """
        rows = self._rows(values)
        within = self.clip(rows)
        for place, (row, kept) in enumerate(zip(rows, within, strict=True)):
            if not np.allclose(row, kept, rtol=_SLACK, atol=0):
                hint = "Call clip(values) first, if longer vectors may be scaled down."
                raise OutsideDomain(self._words, "a vector with a larger norm", place, hint=hint)
        lattice = np.array([self._in_steps(row) for row in within], np.int64).reshape(-1, self.dimension)
        return lattice + discrete_normal(open_stream(rng), _BITS, lattice.size).reshape(lattice.shape)

    def _in_steps(self, vector: Floats) -> Steps:
        """Return a vector in whole steps, each coordinate rounded toward zero, the sum of squares at most B²."""
        scaled, less = vector * (self.steps_of_bound / float(self.norm_bound)), 2.0**-50
        steps = np.trunc(scaled).astype(np.int64)
        while not self._is_within(steps):
            steps = np.trunc(scaled * (1 - less)).astype(np.int64)
            less = min(1.0, 2 * less)  # ends with zeros at the latest
        return steps

    def _is_within(self, steps: Steps) -> bool:
        """True if the sum of squares is at most B², in integers that cannot overflow."""
        most = self.steps_of_bound
        if int(steps.max()) > most or int(steps.min()) < -most:
            return False
        return sum(map(_squares, np.split(steps, range(_BLOCK, steps.size, _BLOCK)))) <= most * most

    @property
    def _words(self) -> str:
        return f"vectors of {self.dimension} finite numbers with a Euclidean norm of at most {self.norm_bound}"

    def _rows(self, values: Any) -> Floats:
        try:
            rows = np.array(values, np.float64)
        except (OverflowError, TypeError, ValueError):
            raise OutsideDomain(self._words, type(values).__name__) from None
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise OutsideDomain(self._words, f"an array of shape {rows.shape}")
        odd = np.flatnonzero(~np.isfinite(rows).all(axis=1))
        if odd.size:
            raise OutsideDomain(self._words, "a vector with a number that is not finite", int(odd[0]))
        return rows

    # -- server -----------------------------------------------------------------------------------------

    def aggregate(self, reports: Any) -> VectorAggregate:
        rows = np.asarray(reports)
        if rows.ndim != 2 or rows.shape[1] != self.dimension or rows.dtype != np.int64:
            found = f"{rows.dtype} {rows.shape}"
            raise NotSupported(f"reports must be 64-bit whole numbers of shape (n, {self.dimension}): got {found}")
        if rows.size and not -_FURTHEST < int(rows.min()) <= int(rows.max()) < _FURTHEST:
            raise NotSupported(f"reports must be within {_FURTHEST} steps of 0: got one further away")
        _check_count(len(rows))
        return VectorAggregate(self.fingerprint, len(rows), rows.sum(axis=0))

    def estimate(self, reports: Any) -> VectorEstimate:
        total = self.total(reports)
        mean = total.total / total.reports * self.step
        return VectorEstimate(total.reports, mean, np.full(self.dimension, self.sigma / total.reports**0.5))

    def contributions(self, reports: Any) -> Floats:
        self.aggregate(reports)
        return np.asarray(reports) * self.step


def _squares(steps: Steps) -> int:
    """Return the sum of squares of at most `_BLOCK` whole numbers of at most 36 bits, by halves."""
    high, low = steps >> _HALVES, steps & ((1 << _HALVES) - 1)
    return (int(high @ high) << 2 * _HALVES) + (int(high @ low) << _HALVES + 1) + int(low @ low)


def _check_count(reports: int) -> None:
    """Refuse more reports than 64-bit sums can hold."""
    if reports > _MOST_REPORTS:
        raise NotSupported(f"at most {_MOST_REPORTS} vectors can be added up: got {reports}")
