"""Mechanisms that add unbounded noise to one number in [lower, upper]: Gaussian and Laplace, and their base class.

S is the largest distance between two values. For Laplace, one of ε and the scale b is declared. The other follows
from b = S/ε, rounded so that the loss is never understated.

The Gaussian mechanism (Balle and Wang 2018): with S = upper - lower the two inputs furthest apart have the loss
N(S²/2σ², S²/σ²). FedTensor's

    δ = Φ( S/2σ - εσ/S )                                    (method "tail")

is P[loss > ε] ≤ δ, which is sufficient for (ε, δ)-LDP but not necessary;

    δ = Φ( S/2σ - εσ/S ) - e^ε Φ( -S/2σ - εσ/S )            (method "exact")

is necessary and sufficient (Balle and Wang 2018, Theorem 8) and needs less noise.

The client adds exactly normal noise, rounded down to a public grid of step σ·2⁻³². Rounding is post-processing, so
the guarantee is that of the continuous mechanism.

The Laplace mechanism (Dwork and Roth 2014):

With S = upper - lower and the scale b = S/ε, a report of x has the density

    f(y | x) = exp(-|y - x| / b) / 2b,

the mean x and the variance 2b². For values a distance S apart the log-ratio of the densities is ε clipped to
[-ε, ε], which loses less under zCDP than other ε-LDP reports do.

The client adds exactly Laplace noise, rounded down to a public grid of step b·2⁻³². Rounding is post-processing, so
the guarantee is that of the continuous mechanism, and no tail is cut.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import Gaussian as GaussianGuarantee
from ldp_budget.guarantees import Guarantee
from ldp_budget.guarantees import Laplace as LaplaceGuarantee
from ldp_budget.guarantees.fixed_point import UP, canonical, float_above, float_below, printed_up
from ldp_budget.guarantees.gaussian_calibration import gaussian_sigma
from ldp_budget.sdk.numeric_mechanism import NumericMechanism
from ldp_budget.sdk.parameters import choice, optional_real

from ._citations import GAUSSIAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import NoiseMeanEstimate, SumAggregate


def _sensitivity() -> Any:
    return optional_real(
        "largest change of the value, in place of lower and upper [1]", at_least=1e-100, at_most=1e100
    )


class _NoisyMechanism(NumericMechanism):
    """A value plus noise whose distribution does not depend on the value. Subclasses give `variance` and `log_density`.

    The sensitivity S is upper - lower, or a declared `sensitivity`; with a declared one there is no client.
    """

    sensitivity: Any

    def check(self) -> None:
        if self.lower is not None and self.sensitivity is not None:
            raise InvalidParameter("sensitivity", "left out if lower and upper are given", self.sensitivity)
        super().check()

    @functools.cached_property
    def stretch(self) -> Decimal:
        """S, the largest distance between two values, rounded up."""
        if self.lower is not None and self.upper is not None:
            return UP.subtract(self.upper, self.lower)
        return self.sensitivity or Decimal(1)

    @property
    def variance(self) -> float:
        """The variance of the noise, whose mean is zero."""
        raise NotImplementedError

    def density(self, report: float, value: float) -> float:
        return math.exp(self.log_density(report, value))

    def error_at(self, value: float) -> tuple[float, float]:
        return 0.0, self.variance

    def critical_inputs(self) -> Sequence[float]:
        return super().critical_inputs() if self.lower is not None else (0.0, float(self.stretch))

    def report_breakpoints(self, value: float) -> Sequence[float]:
        return (value,)


class AdditiveMechanism(_NoisyMechanism):
    """Noise that is not normal, so that intervals follow from its density."""

    sensitivity = _sensitivity()

    def estimate(self, reports: Any) -> NoiseMeanEstimate:
        from ldp_budget.sdk.estimates import NoiseMeanEstimate

        plain = super().estimate(reports)
        return NoiseMeanEstimate(plain.reports, plain.mean, plain.std_error, ends=plain.ends, mechanism=self)

    def report_std(self, total: SumAggregate) -> float:
        return float(self.variance**0.5)


LEAST_EPSILON = Decimal("1e-8")
LARGEST_EPSILON = Decimal(1000)
"""The range of ε for numeric mechanisms, from `LEAST_EPSILON` to `LARGEST_EPSILON`.

Outside it the noise would exceed the exact integers of a double, or be narrower than a cell of the public grid.
"""


def check_scale(epsilon: Decimal | None, scale: Decimal | None, stretch: Decimal) -> None:
    """Raise `InvalidParameter` unless exactly one is declared and the loss is in range."""
    if scale is None:
        if epsilon is None:
            raise InvalidParameter(
                "epsilon", f"a number >= {LEAST_EPSILON} and <= {LARGEST_EPSILON}", hint="Or give scale."
            )
        return
    if epsilon is not None:
        raise InvalidParameter("scale", "left out if epsilon is given", scale)
    least, largest = UP.divide(stretch, LARGEST_EPSILON), UP.divide(stretch, LEAST_EPSILON)
    if not least <= scale <= largest:
        raise InvalidParameter("scale", f"a number from {least:.6g} to {largest:.6g}", scale)


def scale_of(epsilon: Decimal | None, scale: Decimal | None, stretch: Decimal) -> float:
    """Return b as the double that the client uses; rounded up if it comes from ε."""
    if scale is not None:
        return float(scale)
    assert epsilon is not None
    return float_above(UP.divide(stretch, epsilon))


def loss_of(epsilon: Decimal | None, scale: float, stretch: Decimal) -> Decimal:
    """Return the declared ε, or that of the scale, rounded up."""
    return epsilon if epsilon is not None else UP.divide(stretch, Decimal(scale))


_GRID_BITS = 32
_LEAST, _MOST = Decimal("1e-100"), Decimal("1e100")
# With less noise no guarantee could be stored, and the grid would not fit 64-bit integers.
_MOST_MU = Decimal(10**5)


class Gaussian(_NoisyMechanism):
    """Gaussian noise calibrated to (ε, δ), or with a given σ."""

    name = "gaussian"
    summary = "one number plus normal noise, for (ε, δ)"
    source = f"Balle and Wang, ICML 2018, Theorem 8; {GAUSSIAN}"

    # These limits keep every intermediate figure within the range of a double.
    epsilon = optional_real("privacy loss of one report, together with delta", at_least=1e-100, at_most=1000)
    delta = optional_real("probability of a larger loss", at_least=1e-300, below=1)
    method = choice("tail: the printed formula; exact: the least noise", "tail", "exact", default="tail")
    sigma = optional_real("standard deviation of the noise", at_least=1e-100, at_most=1e100, derived=True)
    sensitivity = _sensitivity()

    def check(self) -> None:
        if self.sigma is None:
            for name in ("epsilon", "delta"):
                if name not in self.declared:
                    raise InvalidParameter(
                        name, self.fields[name].expected, hint="Give both epsilon and delta, or sigma."
                    )
        elif self.epsilon is not None or self.delta is not None:
            raise InvalidParameter("sigma", "left out if epsilon or delta is given", self.sigma)
        super().check()
        if not _LEAST <= self.stretch <= _MOST:
            raise InvalidParameter("upper", f"a number from {_LEAST} to {_MOST} above lower", self.upper)
        if self.sigma is not None and self.stretch > self.sigma * _MOST_MU:
            least = canonical(UP.divide(self.stretch, _MOST_MU))
            raise InvalidParameter("sigma", f"a number >= {least} (1e-5 of the sensitivity)", self.sigma)

    @functools.cached_property
    def _sigma(self) -> float:
        if self.sigma is not None:
            return float(self.sigma)
        return self._sigma_by(self.method)

    def _sigma_by(self, method: str) -> float:
        assert self.epsilon is not None
        assert self.delta is not None
        # Each is rounded toward more noise. Near δ = 1 the nearest double is not accurate enough.
        epsilon, delta = float_below(self.epsilon), float_below(self.delta)
        return gaussian_sigma(epsilon, delta, float_above(self.stretch), method=method)

    @property
    def parameters(self) -> dict[str, float]:
        return {"sigma": self._sigma}

    @property
    def guarantee(self) -> Guarantee:
        mu = UP.divide(self.stretch, Decimal(self._sigma))
        return GaussianGuarantee(mu, self.epsilon, self.delta)

    @property
    def notes(self) -> tuple[str, ...]:
        if self.epsilon is None or self.method == "exact":
            return ()
        return (
            f"The printed δ = Φ(S/2σ − εσ/S) bounds P[loss > ε], which is safe but loose: method exact meets "
            f"the same (ε, δ) with σ = {printed_up(self._sigma_by('exact'))} instead of {printed_up(self._sigma)}.",
        )

    def log_density(self, report: float, value: float) -> float:
        deviation = (report - value) / self._sigma
        return -deviation * deviation / 2 - math.log(self._sigma * math.sqrt(2 * math.pi))

    @property
    def variance(self) -> float:
        return self._sigma**2

    def utility(self, users: int | None = None) -> dict[str, Any]:
        result = super().utility(users)
        if self.epsilon is not None:
            result["sigma_by_method"] = {method: self._sigma_by(method) for method in ("tail", "exact")}
        return result

    # -- client and server ------------------------------------------------------------------------------

    def grid(self) -> tuple[float, float]:
        return self.interval.ends[0], self._sigma * 2.0**-_GRID_BITS

    def report_std(self, total: SumAggregate) -> float:
        return self._sigma

    def client_program(self) -> Program:
        """Return the client program; reports are numbers (n,) on the public grid, not limited to [lower, upper]."""
        from ._interval_grid import noise_program

        interval = self.interval
        return noise_program(
            "normal", _GRID_BITS, interval, self.grid(), Fraction(interval.upper) - Fraction(interval.lower)
        )


class Laplace(AdditiveMechanism):
    """Laplace noise calibrated to ε, or with a given scale b."""

    name = "laplace"
    summary = "one number plus Laplace noise; unbiased"
    source = "Dwork and Roth, The Algorithmic Foundations of Differential Privacy (2014), section 3.3"

    epsilon = optional_real("privacy loss of one report", at_least=LEAST_EPSILON, at_most=LARGEST_EPSILON)
    scale = optional_real("scale b of the noise, its mean absolute value", above=0, derived=True)

    def check(self) -> None:
        super().check()
        check_scale(self.epsilon, self.scale, self.stretch)

    @functools.cached_property
    def _scale(self) -> float:
        return scale_of(self.epsilon, self.scale, self.stretch)

    @property
    def parameters(self) -> dict[str, float]:
        return {"scale": self._scale}

    @property
    def guarantee(self) -> Guarantee:
        return LaplaceGuarantee(loss_of(self.epsilon, self._scale, self.stretch))

    @property
    def variance(self) -> float:
        return 2 * self._scale**2

    def log_density(self, report: float, value: float) -> float:
        return -abs(report - value) / self._scale - math.log(2 * self._scale)

    # -- client and server ------------------------------------------------------------------------------

    def grid(self) -> tuple[float, float]:
        return self.interval.ends[0], self._scale * 2.0**-_GRID_BITS

    def client_program(self) -> Program:
        """Return the client program; reports are numbers (n,) on the public grid, not limited to [lower, upper]."""
        from ._interval_grid import noise_program

        interval = self.interval
        return noise_program("laplace", _GRID_BITS, interval, self.grid(), Fraction(self.stretch))
