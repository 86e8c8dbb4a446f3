"""Checks of a density: the loss between two inputs as a function of the report, and the divergence it makes.

The loss L(y) = ln f(y | x) - ln f(y | x') is looked at between neighbouring breakpoints of either density, where it
is monotone or constant: the mechanism says where those are. So on each piece the largest loss stands at an end, and
L crosses a level once at most. Doubles are good to about 1e-12 here, far finer than the tolerance.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from ..guarantees import Approximate, Gaussian, Guarantee, Laplace, Pure, Unbounded
from ..quadrature import average
from .dominance import HOLDS, UNPROVEN, VIOLATED, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..numeric import NumericMechanism

TOLERANCE = 1e-9
"""What a loss may exceed its claim by, relative to 1 or the claim: double precision, not privacy."""

# How near to the end of a piece the loss is looked at, in its lengths: nearer, rounding may put it beyond the end.
_EDGE = 1e-8
_INSIDE = (_EDGE, 0.07, 0.23, 0.41, 0.59, 0.77, 0.93, 1 - _EDGE)
# Steps that grow from a point outward: each is short against its distance, in lengths of a piece or of the inputs.
_STEPS = tuple(1e-8 * 1.4**power for power in range(120))
# Breakpoints this near, in distances of the inputs, are one that was rounded differently.
_SAME = 1e-10
# Below this a double loses digits, and with it the ratio of two.
_LEAST = 1e-280


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

    @functools.cached_property
    def _width(self) -> float:
        return abs(self.second - self.first)

    def _pieces(self) -> Iterator[tuple[float, float]]:
        inputs = (self.first, self.second)
        borders: list[float] = []
        for report in sorted(report for value in inputs for report in self.mechanism.report_breakpoints(value)):
            if not borders or report - borders[-1] > _SAME * self._width:
                borders.append(report)
        return pairwise([-math.inf, *borders, math.inf])

    def _looks(self, low: float, high: float) -> list[float]:
        """Reports in a piece, ascending; in an endless one as far out as there is any density."""
        if math.isinf(low):
            return self._outward(high, -1)[::-1]
        if math.isinf(high):
            return self._outward(low, 1)
        return [low + (high - low) * share for share in _INSIDE]

    def _outward(self, start: float, side: int) -> list[float]:
        reports = (start + side * self._width * step for step in _STEPS)
        return [report for report in reports if self._density(report) > _LEAST]

    def _density(self, report: float) -> float:
        return max(self.mechanism.density(report, value) for value in (self.first, self.second))

    def _excess(self, low: float, high: float, epsilon: float) -> float:
        looks = self._looks(low, high)
        above = [self._loss(report) > epsilon for report in looks]
        if not any(above):
            return 0.0
        if not all(above):
            crossing = self._crossing(looks, above, epsilon)
            low, high = (crossing, high) if above[-1] else (low, crossing)
        return self._integral(self._splits(low, high), epsilon)

    def _splits(self, low: float, high: float) -> list[float]:
        """Ascending reports from `low` to `high`, near to one another at the ends, where the density may be steep."""
        if math.isinf(low):
            return [*self._outward(high, -1)[::-1], high]
        if math.isinf(high):
            return [low, *self._outward(low, 1)]
        near = [step * (high - low) for step in _STEPS if step < 0.5]
        return [low, *(low + step for step in near), *(high - step for step in reversed(near)), high]

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

    def _integral(self, splits: list[float], epsilon: float) -> float:
        """The integral over its largest density, so that a tail of 1e-300 is as exact as any other."""

        def excess(report: float) -> float:
            ours = self.mechanism.density(report, self.first)
            return ours / scale * -math.expm1(min(0.0, epsilon - self._loss(report))) if ours else 0.0

        scale = max(self.mechanism.density(report, self.first) for report in splits)
        if len(splits) < 2 or not scale:
            return 0.0
        return average(excess, splits) * (splits[-1] - splits[0]) * scale


def largest_loss(guarantee: Guarantee, pairs: list[DensityPair]) -> float | None:
    """The ε that the densities show: of every report, or where δ is promised the least ε at that δ."""
    if isinstance(guarantee, Pure | Laplace):
        return max(pair.largest_loss() for pair in pairs)
    if not guarantee.loss() or not 0 < guarantee.delta < 1:
        return None
    epsilon = 0.0
    for pair in pairs:
        epsilon = _epsilon_at(guarantee.delta, pair, epsilon)
    return epsilon


def _epsilon_at(delta: float, pair: DensityPair, least: float) -> float:
    """The least ε from `least` on with H(e^ε) ≤ δ, rounded up by less than 1e-9 of itself."""
    if pair.divergence(least) <= delta:
        return least
    low, high = least, max(1.0, 2 * least)
    while pair.divergence(high) > delta:
        low, high = high, 2 * high
    while high - low > TOLERANCE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if pair.divergence(middle) > delta else (low, middle)
    return high


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
