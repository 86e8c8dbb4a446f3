"""The Laplace mechanism for one number in [lower, upper] (Dwork and Roth 2014).

With S = upper - lower and the scale b = S/ε, a report of x has the density

    f(y | x) = exp(-|y - x| / b) / 2b,

the mean x and the variance 2b². For values a distance S apart the log-ratio of the densities is ε clipped to
[-ε, ε], which loses less under zCDP than other ε-LDP reports do.

The client adds exactly Laplace noise, rounded down to a public grid of step b·2⁻³²: rounding is post-processing, so
the promise is that of the continuous mechanism, and no tail is cut.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ldp_budget.authoring.fields import optional_real
from ldp_budget.guarantees import Guarantee
from ldp_budget.guarantees import Laplace as LaplaceGuarantee

from ._additive import AdditiveMechanism
from ._scale import LARGEST_EPSILON, LEAST_EPSILON, check_scale, loss_of, scale_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.authoring.programs import Program
    from ldp_budget.randomness import RandomSource

_GRID_BITS = 32


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

    def density(self, report: float, value: float) -> float:
        return math.exp(self.log_density(report, value))

    def log_density(self, report: float, value: float) -> float:
        return -abs(report - value) / self._scale - math.log(2 * self._scale)

    # -- client and server ------------------------------------------------------------------------------

    def grid(self) -> tuple[float, float]:
        return self.interval.ends[0], self._scale * 2.0**-_GRID_BITS

    def randomize(self, values: Any, *, rng: RandomSource = None, secrets: Any = None) -> NDArray[np.float64]:
        """Reports are numbers (n,) on the public grid, not limited to [lower, upper]."""
        from ldp_budget.randomness import laplace, open_stream

        from ._noise import with_noise

        numbers = self.interval.check(values)
        noise = laplace(open_stream(rng), _GRID_BITS, len(numbers))
        return with_noise(numbers, noise, self.grid(), Fraction(self.stretch))

    def client_program(self) -> Program:
        from ._noise import noise_program

        interval = self.interval
        return noise_program("laplace", _GRID_BITS, interval, self.grid(), Fraction(self.stretch))
