"""Checks of a density: the loss between two inputs as a function of the report, and the divergence it makes.

The loss L(y) = ln f(y | x) - ln f(y | x') is looked at between neighbouring breakpoints of either density, where it
is monotone or constant: the mechanism says where those are. So on each piece the largest loss stands at an end, and
L crosses a level once at most. Doubles are good to about 1e-12 here, far finer than the tolerance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ..guarantees import Approximate, Gaussian, Guarantee, Laplace, Pure, Unbounded
from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..numeric import NumericMechanism

TOLERANCE = 1e-9
"""What a loss may exceed its claim by, relative to 1 or the claim: double precision, not privacy."""

_EDGE = 2.0**-40
# Where in a piece the loss is looked at, to see that it has no bump; in an endless one, in distances of the inputs.
_INSIDE = (_EDGE, 0.07, 0.23, 0.41, 0.59, 0.77, 0.93, 1 - _EDGE)
_OUTSIDE = (_EDGE, *(0.01 * 1.25**power for power in range(120)))


@dataclass(frozen=True)
class DensityPair:
    """The densities of the reports of `first` and `second`."""

    mechanism: NumericMechanism
    first: float
    second: float

    def largest_loss(self) -> float:
        """The supremum of L over all reports."""
        return max(self._loss(report) for piece in self._pieces() for report in self._looks(*piece))

    def divergence(self, epsilon: float) -> float:
        """H(e^ε) = ∫ max(f(y | x) - e^ε f(y | x'), 0) dy."""
        return math.fsum(self._excess(*piece, epsilon) for piece in self._pieces())

    def _loss(self, report: float) -> float:
        ours = self.mechanism.density(report, self.first)
        theirs = self.mechanism.density(report, self.second)
        if not ours:
            return -math.inf
        return math.log(ours) - math.log(theirs) if theirs else math.inf

    def _pieces(self) -> Iterator[tuple[float, float]]:
        inputs = (self.first, self.second)
        found = {report for value in inputs for report in self.mechanism.report_breakpoints(value)}
        return pairwise([-math.inf, *sorted(found), math.inf])

    def _looks(self, low: float, high: float) -> list[float]:
        """Reports in a piece, ascending; in an endless one as far out as there is any density."""
        width = abs(self.second - self.first)
        if math.isinf(low):
            return sorted(filter(self._possible, (high - width * share for share in _OUTSIDE)))
        if math.isinf(high):
            return list(filter(self._possible, (low + width * share for share in _OUTSIDE)))
        return [low + (high - low) * share for share in _INSIDE]

    def _possible(self, report: float) -> bool:
        return any(self.mechanism.density(report, value) > 0 for value in (self.first, self.second))

    def _excess(self, low: float, high: float, epsilon: float) -> float:
        looks = self._looks(low, high)
        above = [self._loss(report) > epsilon for report in looks]
        if not any(above):
            return 0.0
        if not all(above):
            crossing = self._crossing(looks, above, epsilon)
            low, high = (crossing, high) if above[-1] else (low, crossing)
        return self._integral(low, high, epsilon)

    def _crossing(self, looks: list[float], above: list[bool], epsilon: float) -> float:
        """Where L passes ε; by halving, down to neighbouring doubles."""
        place = next(i for i in range(len(looks) - 1) if above[i] != above[i + 1])
        low, high, side = looks[place], looks[place + 1], above[place]
        while low < (middle := (low + high) / 2) < high:
            if (self._loss(middle) > epsilon) == side:
                low = middle
            else:
                high = middle
        return high

    def _integral(self, low: float, high: float, epsilon: float) -> float:
        """The integral, over its largest integrand, so that a tail of 1e-300 is as exact as any other."""
        from scipy.integrate import quad

        def excess(report: float) -> float:
            ours = self.mechanism.density(report, self.first)
            return ours * -math.expm1(epsilon - self._loss(report)) if ours else 0.0

        ends = [end for end in (low, high) if math.isfinite(end)]
        scale = max(self.mechanism.density(report, self.first) for report in (*ends, *self._looks(low, high)))
        if not scale:
            return 0.0
        # Its warnings are about integrals that are zero but for the last digit.
        found = quad(lambda report: excess(report) / scale, low, high, epsrel=1e-11, limit=200, full_output=1)
        return float(found[0]) * scale


def check_density(guarantee: Guarantee, pair: DensityPair) -> Finding:
    """Whether the density of the first input against the second is within `guarantee`."""
    if isinstance(guarantee, Unbounded):
        return Finding(HOLDS)
    if isinstance(guarantee, Pure | Laplace):
        found = pair.largest_loss()
        if found > float(guarantee.bound) + TOLERANCE * max(1.0, float(guarantee.bound)):
            return Finding(VIOLATED, f"the loss reaches {found:.12g}; claimed is ε = {guarantee.bound}")
        return _curve_within(pair, _laplace_curve(guarantee)) if isinstance(guarantee, Laplace) else Finding(HOLDS)
    if isinstance(guarantee, Approximate):
        return _curve_within(pair, [(float(guarantee.bound), float(guarantee.slack))])
    if isinstance(guarantee, Gaussian):
        return _curve_within(pair, _gaussian_curve(guarantee))
    return Finding(UNPROVEN, f"a guarantee of kind {guarantee.kind} is not checked against a density")


def _curve_within(pair: DensityPair, claims: list[tuple[float, float]]) -> Finding:
    for epsilon, delta in claims:
        found = pair.divergence(epsilon)
        if found > delta * (1 + TOLERANCE):
            return Finding(VIOLATED, f"at ε = {epsilon:.9g} δ is {found:.12g}; claimed is {delta:.12g}")
    return Finding(HOLDS)


def _laplace_curve(guarantee: Laplace) -> list[tuple[float, float]]:
    """δ(a) = 1 - e^((a-ε)/2) for 0 ≤ a < ε, of two Laplace distributions at the distance ε scales."""
    epsilon = float(guarantee.bound)
    return [(share * epsilon, -math.expm1((share - 1) * epsilon / 2)) for share in (0.0, 0.25, 0.5, 0.75)]


def _gaussian_curve(guarantee: Gaussian) -> list[tuple[float, float]]:
    """The calibrated point, and δ(a) of μ-Gaussian DP at some a within a few standard deviations of the loss."""
    from ..gaussian import gaussian_delta

    mu = float(guarantee.mu)
    points = [] if guarantee.loss() is None else [(guarantee.epsilon, guarantee.delta)]
    losses = [max(0.0, mu * mu / 2 + deviations * mu) for deviations in (-1, 0, 1, 3)]
    return points + [(loss, gaussian_delta(loss, mu)) for loss in losses]
