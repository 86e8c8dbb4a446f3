"""The bounded Laplace mechanism for one number in [lower, upper] (document 001, introduction).

Laplace noise of scale b, cut off so that the report stays in [lower, upper], and renormalised:

    f(y | x) = exp(-|y - x| / b) / (b(2 - exp(-(x - lower)/b) - exp(-(upper - x)/b))),      b = (upper - lower) / ε.

f(y | x) grows in x up to y and falls from there, so of the ratios f(y | x) / f(y | x') the largest have x = y and x'
at an end; and of those, y at the other end is the worst, where both norms are equal. So the loss is exactly ε.
(Holohan, Antonatos, Braghin and Mac Aonghusa 2018 calibrate it for a sensitivity below upper - lower.)

The client draws on a public grid of 2¹⁵ cells; see `LaplaceTable`.
"""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from ldp_budget.authoring.channels import Comparison
from ldp_budget.authoring.fields import optional_real
from ldp_budget.guarantees import Guarantee, Pure
from ldp_budget.guarantees.amounts import DOWN, UP, exp_down
from ldp_budget.randomness import integers

from ._bounded import BoundedMechanism
from ._grid_channel import runs
from ._scale import LARGEST_EPSILON, LEAST_EPSILON, check_scale, loss_of, scale_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.randomness import Stream

    from ._bounded import Runs


class BoundedLaplace(BoundedMechanism):
    """Laplace noise cut off at the ends of the range, calibrated to ε or with a given scale b."""

    name = "bounded-laplace"
    summary = "one number in [lower, upper] plus Laplace noise cut off at its ends; biased"
    source = "document 001; Holohan, Antonatos, Braghin and Mac Aonghusa 2018"

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
        return LaplaceTable(self._loss, self.cells)

    @property
    def parameters(self) -> dict[str, float]:
        return {"scale": self._scale}

    @property
    def guarantee(self) -> Guarantee:
        return Pure(self._loss)

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


# From here on a tail of constant weight, of which there is far less than one part in 10,000, may stand for the rest.
_LARGE_LOSS = 16

_RUNS = 32
# Ratios nearer than this, where a double is all there is, may stand for whole numbers in either order.
_CLOSE = 1e-15


class LaplaceTable:
    """Bounded Laplace on a grid of `cells` = G cells, for inputs at the points 0..G between them.

    A cell with d whole cells between it and the point has the weight w_d = ⌊S·q^d⌋, q = e^{-ε/G}; a report is drawn
    by one uniform integer below the total T_i of the point i, so its odds are exactly those of the weights.

    With q^d itself in place of w_d the loss is (1 - 1/G)ε, by the argument for the continuous case: for the
    cell at one end, the points at both. Each w_d is less than two below S·q^d, and so each T_i less than 2G; with w
    the last of the weights this adds at most 8/w to the loss, which must fit into the ε/G left over.

    For a large ε the last weights would be too small for that. There no weight is less than a floor F, and since
    no total is more than twice another, F = ⌈2S·e^{-ε}⌉ keeps every ratio below e^ε.
    """

    def __init__(self, epsilon: Decimal, cells: int) -> None:
        import numpy as np

        self.cells = cells
        weights = list(_weights(epsilon, cells))
        totals = np.cumsum([0, *weights], dtype=np.int64)
        self.below: NDArray[np.int64] = totals
        """below[d]: the sum of the weights w_0, …, w_{d-1}."""
        assert self._holds(epsilon, weights), "the client would lose more than ε"

    def _holds(self, epsilon: Decimal, weights: list[int]) -> bool:
        """Whether the loss is at most ε, decided by whole numbers."""
        last = weights[-1]
        if epsilon < _LARGE_LOSS:
            return last * Fraction(epsilon) >= 8 * self.cells
        centre = self.cells // 2
        largest = int(self.below[centre] + self.below[self.cells - centre])
        return weights[0] * largest <= Fraction(exp_down(epsilon)) * last * int(self.below[-1])

    def critical_points(self) -> list[int]:
        """The ends, next to them, and the centre, whose total is the largest."""
        return [0, 1, self.cells // 2, self.cells - 1, self.cells]

    def compare(self, first: int, second: int) -> tuple[list[tuple[int, int]], Comparison]:
        """The likeliest cell and the least likely, by `first` against `second`, alone; the others in a few runs.

        So the largest and the smallest ratio are seen exactly, though no run but those is one of equal odds.
        """
        import numpy as np

        cells = np.arange(self.cells)
        weights = np.diff(self.below)

        def weights_of(point: int) -> NDArray[np.int64]:
            return weights[np.where(cells < point, point - 1 - cells, cells - point)]

        own, other = weights_of(first), weights_of(second)
        ratios = own.astype(np.longdouble) / other
        extremes = [_extreme(own, other, ratios, sign) for sign in (1, -1)]
        alone = [cell + after for cell in extremes for after in (0, 1)]
        parts = runs([*alone, first, second, *range(0, self.cells, self.cells // _RUNS)], self.cells)
        starts = [start for start, _ in parts]
        sides = []
        for side in (own, other):
            sums = np.add.reduceat(side, starts).tolist()
            sides.append([Fraction(mass, sum(sums)) for mass in sums])
        return parts, Comparison.rows(*sides)

    def draw(self, stream: Stream, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells of reports for users at the given points; cell k lies between the points k and k+1."""
        import numpy as np

        left = self.below[points]
        drawn = integers(stream, left + self.below[self.cells - points], len(points))
        is_left = drawn < left
        distance = np.searchsorted(self.below, np.where(is_left, drawn, drawn - left), side="right") - 1
        return np.where(is_left, points - 1 - distance, points + distance)


def _extreme(own: NDArray[np.int64], other: NDArray[np.int64], ratios: NDArray[np.longdouble], sign: int) -> int:
    """The cell of the largest own/other where `sign` is 1, of the smallest where it is -1, by whole numbers."""
    import numpy as np

    cells: list[int] = np.flatnonzero(sign * ratios >= (sign * ratios).max() * (1 - sign * _CLOSE)).tolist()
    return max(cells, key=lambda cell: sign * Fraction(int(own[cell]), int(other[cell])))


def _weights(epsilon: Decimal, cells: int) -> Iterator[int]:
    """w_0, …, w_{G-1}, as large as totals below 2**63 allow."""
    ratio = DOWN.exp(DOWN.divide(epsilon.copy_negate(), Decimal(cells)))
    mass = min(Decimal(cells), 2 / (1 - ratio))
    weight = DOWN.divide(Decimal(2**62), mass)
    floor = math.ceil(2 * weight / exp_down(epsilon)) if epsilon >= _LARGE_LOSS else 0
    for _ in range(cells):
        yield max(int(weight), floor)
        weight = DOWN.multiply(weight, ratio)
