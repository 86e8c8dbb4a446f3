"""Where to look: the tilt and the lattice for a composition. Nothing here needs to be certain, only near.

Chernoff's bound for the hockey-stick, with K(θ) = ln E[e^{θL}] and the largest value of (1 - e^y)₊e^{θy},

    ln δ(ε) <= K(θ) - θε + θ ln θ - (1+θ) ln(1+θ),

is smallest at the θ for which ε = K'(θ) - ln(1 + 1/θ), where it is K(θ) - θK'(θ) - ln(1+θ). That is the tilt at which
the errors of `lattice` weigh least. Both expressions are monotone in θ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from ._curve import gaussian_cumulant
from ._lattice import MOST_CELLS, tilt, window
from ._steps import Symmetric

if TYPE_CHECKING:
    from collections.abc import Callable

    from ._steps import Law, Step

    Laws = list[tuple[Law, int]]

# Cells over the whole window: the discretisation then costs about 1e-6 of ε for a thousand Laplace reports.
_CELLS = 2**16
# So many kinds of report, each with its own transform, are composed on the full number of cells.
_FULL_KINDS = 16
_OCTAVES = 24  # the tilt is sought between 2^-24 and 2^24 times one over the largest loss
_HALVINGS = 14


@dataclass(frozen=True)
class Saddle:
    """The tilt, the ε it is meant for, a spacing that is fine enough, and one common to all steps if there is one."""

    theta: float
    centre: float
    finest: Fraction
    common: Fraction | None


def saddle_for_delta(steps: dict[Step, int], mu: float, log_delta: float) -> Saddle:
    """Where to look for the ε at δ."""
    return _saddle(steps, mu, lambda theta, k, slope: k - theta * slope - math.log1p(theta) > log_delta)


def saddle_for_epsilon(steps: dict[Step, int], mu: float, epsilon: float) -> Saddle:
    """Where to look for the δ at ε."""
    return _saddle(steps, mu, lambda theta, k, slope: slope - math.log1p(1 / theta) < epsilon)


def _saddle(steps: dict[Step, int], mu: float, too_small: Callable[[float, float, float], bool]) -> Saddle:
    widest = max((step.widest for step in steps), key=float)
    laws = [(step.outline(), count) for step, count in steps.items()]
    low, high = -float(_OCTAVES), float(_OCTAVES)
    theta = centre = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        theta = 2**middle / float(widest)
        k, slope = _cumulant(laws, mu, theta)
        centre = slope - math.log1p(1 / theta)
        low, high = (middle, high) if too_small(theta, k, slope) else (low, middle)
    bottom, top = window([tilt(law, theta, count) for law, count in laws])
    width = max(Fraction(top - bottom), widest / 16)
    finest = width / _CELLS * max(Fraction(1), Fraction(len(steps), _FULL_KINDS))
    common = _common_spacing(list(steps), finest, width)
    if common is None or not all(step.exact for step in steps):
        # The lattice is no truer than its spacing, and a tilt that varies much within a cell would magnify that.
        theta = min(theta, 0.5 / float(finest))
    return Saddle(theta, max(centre, 1e-12 * float(widest)), finest, common)


def _cumulant(laws: Laws, mu: float, theta: float) -> tuple[float, float]:
    """K(θ) and K'(θ)."""
    k, slope = gaussian_cumulant(mu, theta), (0.5 + theta) * mu * mu
    for law, count in laws:
        tilted = tilt(law, theta, count)
        k += count * tilted.log_scale
        slope += count * float((tilted.mass * tilted.losses).sum())
    return k, slope


def _common_spacing(steps: list[Step], finest: Fraction, width: Fraction) -> Fraction | None:
    """One spacing on which all steps are best described, or None if that would take too many cells."""
    if len(steps) == 1:
        return steps[0].own_spacing(finest)
    bounds = [step.bound for step in steps if step.bound is not None]
    if len(bounds) < len(steps):
        return None
    spacing = _divisor(bounds)
    if not all(isinstance(step, Symmetric) for step in steps):
        spacing /= math.ceil(spacing / finest)
    return spacing if max(width, *bounds) / spacing <= MOST_CELLS else None


def _divisor(bounds: list[Fraction]) -> Fraction:
    """The greatest number of which all `bounds` are multiples."""
    numerator = math.gcd(*(bound.numerator for bound in bounds))
    return Fraction(numerator, math.lcm(*(bound.denominator for bound in bounds)))
