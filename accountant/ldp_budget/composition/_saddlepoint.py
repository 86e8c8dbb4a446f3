"""Saddle points: the tilt for a composition, and the ε it is meant for. Nothing here needs to be certified.

Chernoff's bound for the hockey-stick divergence, with K(θ) = ln E[e^{θL}] and the largest value of (1 - e^y)₊e^{θy},

    ln δ(ε) <= K(θ) - θε + θ ln θ - (1+θ) ln(1+θ),

is smallest at the θ > 0 for which ε = K'(θ) - ln(1 + 1/θ), where it is K(θ) - θK'(θ) - ln(1+θ). At this tilt
rounding errors have the least effect. Where δ is near one, 1 - δ(ε) = E[min(1, e^{ε-L})] is used, with -1 < θ < 0:

    ln(1 - δ(ε)) <= K(θ) - θε,

smallest where ε = K'(θ). All of these expressions are monotone in θ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from .loss_distribution import Cumulants


_OCTAVES = 40.0  # the search for the tilt starts at 2^-40 over the largest loss
_HALVINGS = 16
_WORTH = (
    5.0  # a larger tilt, at a loss of up to e^-5 to rounding, is better if it makes the tilted sum as wide as 1/θ
)
_WIDE = 4.0
_NEGLIGIBLE = 5e-8
_SMOOTH = 1e-4  # more variance than this over θ² would change the tilted loss
_LOWEST = -0.45  # a tilt from here to -½ is no better, and at -½ a formula has a pole


@dataclass(frozen=True)
class Saddle:
    """A tilt `theta`, the ε `centre` it is meant for, and a `negligible` variance.

    The tilt is negative if 1 - δ is computed. Adding the variance to the loss moves the result by a share of about
    1e-7 at most.
    """

    theta: float
    centre: float
    negligible: float


class Tilt(NamedTuple):
    """The steepest allowed tilt, over the largest loss of all, and a flag for a `wider` search.

    The wider search looks for a tilt above the best one, for a δ so large that the best tilt would leave the tilted
    loss too wide for its transform to decay.
    """

    steepest: float
    wider: bool


BEST = Tilt(2.0**36, wider=False)  # beyond that the rounding of exponents is no longer small
DECAYING = Tilt(2.0**36, wider=True)
LESS_STEEP = Tilt(2.0**29, wider=True)  # sufficient if the loss has little spread and many frequencies matter
LEAST = Tilt(2.0**29, wider=False)  # where δ hardly changes over a range of ε, this one covers the whole range


def saddle_for_delta(terms: Cumulants, mu: float, log_delta: float, tilt: Tilt) -> Saddle:
    """The saddle point for the ε at δ, for a δ that is not near one."""

    def too_small(theta: float, k: float, slope: float) -> bool:
        return k - theta * slope - math.log1p(theta) > log_delta

    theta, centre = _above(terms, mu, too_small, tilt)
    theta = _wider(terms, mu, theta, centre, tilt)
    return Saddle(theta, centre, min(_NEGLIGIBLE * centre / (1 + theta), _SMOOTH / theta**2))


def saddle_for_rest(terms: Cumulants, mu: float, log_rest: float) -> Saddle:
    """The saddle point for the ε at a δ near one, given ln(1 - δ)."""
    theta, centre = _below(terms, mu, lambda theta, k, slope: k - theta * slope < log_rest)
    return Saddle(theta, centre, _NEGLIGIBLE * centre)


def saddle_for_epsilon(terms: Cumulants, mu: float, epsilon: float, tilt: Tilt) -> Saddle:
    """The saddle point for the δ at ε."""
    _, mean = terms.cumulant(0.0, mu)
    if mean - epsilon > 1 and (mean - epsilon) ** 2 > terms.variance(0.0, mu):
        theta, _ = _below(terms, mu, lambda theta, k, slope: slope < epsilon)
        return Saddle(theta, epsilon, _NEGLIGIBLE)
    theta, _ = _above(terms, mu, lambda theta, k, slope: slope - math.log1p(1 / theta) < epsilon, tilt)
    theta = _wider(terms, mu, theta, epsilon, tilt)
    return Saddle(theta, epsilon, _NEGLIGIBLE / (theta * (1 + theta)))


def _above(
    terms: Cumulants, mu: float, too_small: Callable[[float, float, float], bool], tilt: Tilt
) -> tuple[float, float]:
    low, high = -_OCTAVES, math.log2(tilt.steepest / terms.whole * terms.widest)
    theta = centre = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        theta = 2**middle / terms.widest
        k, slope = terms.cumulant(theta, mu)
        centre = slope - math.log1p(1 / theta)
        low, high = (middle, high) if too_small(theta, k, slope) else (low, middle)
    return theta, max(centre, 0.0)


def _below(terms: Cumulants, mu: float, too_small: Callable[[float, float, float], bool]) -> tuple[float, float]:
    low, high = 0.0, _OCTAVES
    theta = centre = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        theta = _LOWEST * 2**-middle
        k, centre = terms.cumulant(theta, mu)
        low, high = (middle, high) if too_small(theta, k, centre) else (low, middle)
    # Nearer to zero than the width of the tilted loss requires, the decay would be too slow.
    least = min(1.5 / math.sqrt(max(terms.variance(theta, mu), 1.0)), 0.25)
    return min(theta, -least), max(centre, 0.0)


def _wider(terms: Cumulants, mu: float, theta: float, centre: float, tilt: Tilt) -> float:
    """A larger tilt than the best, as far as it costs little, if `tilt.wider` is set."""
    if not tilt.wider:
        return theta

    def exponent(theta: float) -> float:
        return terms.cumulant(theta, mu)[0] - theta * centre

    least, steepest = exponent(theta), tilt.steepest / terms.whole
    while theta < steepest and theta * theta * terms.variance(theta, mu) < _WIDE:
        if exponent(1.5 * theta) > least + _WORTH:
            break
        theta *= 1.5
    return theta
