"""The bounded Laplace mechanism for one number in [lower, upper] (Kim, Park and Lee, introduction).

Laplace noise of scale b, cut off so that the report stays in [lower, upper], and renormalised:

    f(y | x) = exp(-|y - x| / b) / (b(2 - exp(-(x - lower)/b) - exp(-(upper - x)/b))),      b = (upper - lower) / ε.

f(y | x) grows in x up to y and falls from there, so of the ratios f(y | x) / f(y | x') the largest have x = y and x'
at an end; and of those, y at the other end is the worst, where both norms are equal. So the loss is exactly ε, and
the two ends are the worst pair in all else too, see `_laplace_curve`: what is stated is their pair, and not ε alone.
(Holohan, Antonatos, Braghin and Mac Aonghusa 2018 calibrate it for a sensitivity below upper - lower.)

The client draws on a public grid of 2¹⁵ cells; see `LaplaceTable`.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from ldp_budget.authoring.channels import Comparison
from ldp_budget.authoring.fields import optional_real
from ldp_budget.guarantees import Guarantee
from ldp_budget.guarantees.amounts import UP

from ._bounded import BoundedMechanism
from ._laplace_curve import LaplaceWeights
from ._scale import LARGEST_EPSILON, LEAST_EPSILON, check_scale, loss_of, scale_of
from ._sources import BOUNDED_STAIRCASE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.randomness import Stream

    from ._bounded import Runs
    from ._laplace_table import LaplaceTable


class BoundedLaplace(BoundedMechanism):
    """Laplace noise cut off at the ends of the range, calibrated to ε or with a given scale b."""

    name = "bounded-laplace"
    summary = "one number in [lower, upper] plus Laplace noise cut off at its ends; biased"
    source = (
        "Holohan, Antonatos, Braghin and Mac Aonghusa, The bounded Laplace mechanism in differential privacy (2018); "
        f"{BOUNDED_STAIRCASE}, introduction"
    )

    cells = 2**15

    epsilon = optional_real("privacy loss of one report", at_least=LEAST_EPSILON, at_most=LARGEST_EPSILON)
    scale = optional_real("scale b of the noise before it is cut off", above=0, derived=True)

    def check(self) -> None:
        super().check()
        check_scale(self.epsilon, self.scale, self._stretch)

    @functools.cached_property
    def _stretch(self) -> Decimal:
        return UP.subtract(self.upper, self.lower)

    @functools.cached_property
    def _scale(self) -> float:
        return scale_of(self.epsilon, self.scale, self._stretch)

    @functools.cached_property
    def _loss(self) -> Decimal:
        return loss_of(self.epsilon, self._scale, self._stretch)

    @functools.cached_property
    def table(self) -> LaplaceTable:
        """What the client draws from."""
        from ._laplace_table import LaplaceTable

        return LaplaceTable(self._loss, self.cells)

    @property
    def parameters(self) -> dict[str, float]:
        return {"scale": self._scale}

    @property
    def guarantee(self) -> Guarantee:
        return self._pair

    @functools.cached_property
    def _pair(self) -> Guarantee:
        return LaplaceWeights.of(self._loss, self.cells).guarantee()

    @functools.cached_property
    def _ends(self) -> tuple[float, float]:
        return self.interval.ends

    def density(self, report: float, value: float) -> float:
        return math.exp(self.log_density(report, value))

    def log_density(self, report: float, value: float) -> float:
        lower, upper = self._ends
        if not lower <= report <= upper:
            return -math.inf
        norm = -math.expm1(-(value - lower) / self._scale) - math.expm1(-(upper - value) / self._scale)
        return -abs(report - value) / self._scale - math.log(self._scale * norm)

    def error_within(self, share: float) -> tuple[float, float]:
        scale = self._scale / self.width
        left, right = share / scale, (1 - share) / scale
        norm = incomplete_gamma(0, left) + incomplete_gamma(0, right)
        bias = (incomplete_gamma(1, right) - incomplete_gamma(1, left)) / norm
        mse = (incomplete_gamma(2, right) + incomplete_gamma(2, left)) / norm
        return scale * bias, scale**2 * mse

    def breakpoints_within(self) -> Sequence[float]:
        # Near the ends the errors change within one scale: pieces that halve until they are no longer than that.
        halvings = max(1, math.ceil(math.log2(self.width / self._scale)))
        near = [2.0**-place for place in range(halvings, 0, -1)]
        return (0.0, *near, *(1 - share for share in reversed(near[:-1])), 1.0)

    def critical_points(self) -> list[int]:
        return self.table.critical_points()

    def compare_points(self, first: int, second: int) -> tuple[Runs, Comparison]:
        return self.table.compare(first, second)

    def draw(self, stream: Stream, points: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.table.draw(stream, points)

    def drawing(self) -> tuple[tuple[tuple[str, Any], ...], dict[str, Any]]:
        return self.table.drawing()


def incomplete_gamma(power: int, end: float) -> float:
    """The integral of v^power·e^{-v} over [0, end], for power 0, 1 or 2, to full precision."""
    if end > 2:
        tail = (1.0, 1 + end, 2 + 2 * end + end**2)[power]
        return math.factorial(power) - tail * math.exp(-end)
    # e^{-end} times a series of positive terms, as the closed form cancels.
    term = total = end ** (power + 1) / (power + 1)
    factor = power + 1
    while term > 1e-17 * total:
        factor += 1
        term *= end / factor
        total += term
    return math.exp(-end) * total
