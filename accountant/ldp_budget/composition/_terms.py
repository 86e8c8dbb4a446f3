"""The list of losses that are summed: its cumulants, and where the tilted sum lies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ._steps import UNIT

if TYPE_CHECKING:
    from ._steps import Step

_MOST_STRIDES = 60
_EDGE = 0.02  # an edge is sought to this share of a standard deviation
_ROUNDING = 16 * UNIT


@dataclass(frozen=True)
class Terms:
    """Reports with a bounded loss, and how many of each."""

    steps: dict[Step, int]

    @cached_property
    def whole(self) -> float:
        """The largest loss of all reports together, about."""
        return math.fsum(count * step.widest for step, count in self.steps.items())

    @cached_property
    def widest(self) -> float:
        """The largest loss of one report, about."""
        return max(step.widest for step in self.steps)

    def cumulant(self, theta: float, mu: float) -> tuple[float, float]:
        """K(θ) and K'(θ), with a Gaussian loss of μ."""
        parts = [(count, *step.cumulant(theta)) for step, count in self.steps.items()]
        k = math.fsum(count * value for count, value, _ in parts)
        slope = math.fsum(count * each for count, _, each in parts)
        return k + gaussian_cumulant(mu, theta), slope + (0.5 + theta) * mu * mu

    def cumulant_error(self, theta: float) -> float:
        """A bound of the error of K(θ) for μ = 0 and θ > -½."""
        k, _ = self.cumulant(theta, 0.0)
        each = math.fsum(count * step.cumulant_error(theta) for step, count in self.steps.items())
        return each * (1 + 1e-9) + _ROUNDING * abs(k)

    def variance(self, theta: float, mu: float) -> float:
        """K''(θ), about."""
        width = 1e-4 * max(abs(theta), 0.1 / self.whole)
        above, below = (self.cumulant(theta + side * width, mu)[1] for side in (1, -1))
        return max(0.0, (above - below) / (2 * width))

    def edge(self, theta: float, mu: float, sign: int, tail: float) -> tuple[float, float]:
        """(x, s): about the least x with P[±X > ±x] <= e^-tail for the sum X tilted by θ, and the s that shows it.

        For any s > 0 that is (K(θ ± s) - K(θ) + tail)/s.
        """
        k, _ = self.cumulant(theta, mu)
        variance = self.variance(theta, mu)

        def edge(s: float) -> float:
            return (self.cumulant(theta + sign * s, mu)[0] - k + tail) / s

        most = tail * abs(theta)  # no more than 1/|θ| is won beyond
        s = min(most, math.sqrt(2 * tail / variance)) if variance else most  # the best one for a normal sum
        best = edge(s)
        for stride in (0.5, 2.0):  # it has one valley, which may be at infinity
            for _ in range(_MOST_STRIDES):
                value = edge(s * stride)
                if value > best - max(_EDGE * math.sqrt(variance), 1 / abs(theta)):
                    break
                s, best = s * stride, value
        return sign * best, sign * s

    def tail(self, theta: float, mu: float, x: float, s: float) -> float:
        """At most P[X > x] for the sum X tilted by θ if s > 0, P[X < x] if s < 0."""
        exponent = self.cumulant(theta + s, mu)[0] - self.cumulant(theta, mu)[0] - s * x
        return math.exp(min(0.0, exponent + 1))  # the rounding of cumulants is far below one


def gaussian_cumulant(mu: float, theta: float) -> float:
    """ln E[e^{θG}] for the loss G ~ N(μ²/2, μ²)."""
    return theta * (1 + theta) * mu * mu / 2
