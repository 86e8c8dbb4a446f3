"""δ(ε) of a composed loss: a lattice law, and Gaussian noise that needs no lattice.

For a loss L = X + G, X on the lattice with tilted masses t(x) and G the loss of μ-Gaussian DP,

    δ(ε) = E[(1 - e^{ε-L})₊] = e^{K - θε} Σ_x t(x) w(ε - x),    w(y) = e^{θy - κ} δ_μ(y),

where e^{K-θx} t(x) is the P-mass of x together with the factor e^κ = E[e^{θG}], and δ_μ the curve of the Gaussian
(Balle and Wang 2018), continued to y < 0; without Gaussian noise δ_0(y) = (1 - e^y)₊. Since (1 - e^y)₊ e^{θy} is at
most θ^θ/(1+θ)^{1+θ}, so is w, and an error of the masses in the 1-norm costs no more than that many times.
Where δ is near one, 1 - δ(ε) = E[min(1, e^{ε-L})] has a tilt -1 < θ < 0, 1 - δ_μ in the place of δ_μ, and w <= 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import erfcx

from ._steps import UNIT
from ._terms import gaussian_cumulant

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._lattice import TiltedLaw

    Floats = NDArray[np.float64]

# The relative error of scipy's erfcx; 1e-15 is the largest seen.
_ERFCX = 4e-15
_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_LOG_SQRT_TAU = math.log(math.tau) / 2
# Rounding in a sum of positive terms (numpy adds pairwise) and in the terms.
_SUM = 1e-12


@dataclass(frozen=True)
class Curve:
    """ln δ(ε), or ln(1 - δ(ε)) if θ < 0, certified from both sides. `mu` encloses that of the Gaussian part."""

    law: TiltedLaw
    theta: float
    mu: tuple[float, float]
    resolution: ClassVar[float] = 0.0
    shift: ClassVar[float] = 0.0

    def lower(self, epsilon: float) -> float:
        """A lower bound; -inf where there is none."""
        return self._logarithm(epsilon, self.mu[0] if self.theta > 0 else self.mu[1], -1)

    def upper(self, epsilon: float) -> float:
        """An upper bound."""
        return self._logarithm(epsilon, self.mu[1] if self.theta > 0 else self.mu[0], 1)

    def _logarithm(self, epsilon: float, mu: float, sign: int) -> float:
        law, theta, x = self.law, self.theta, self.law.losses
        largest = float(np.abs(x).max()) + epsilon + mu**2
        # A smaller ε has the larger δ; the shift pays for the rounding of ε - x.
        shifted = epsilon - sign * math.copysign(8 * UNIT, theta) * largest
        kappa = gaussian_cumulant(mu, theta)
        weights = self._weights if theta > 0 else self._rest
        total = float((law.mass * weights(shifted - x, mu, kappa, sign * _ERFCX)).sum())
        total += sign * law.error * _largest_weight(theta)
        if total <= 0:
            return -math.inf
        exponent = law.log_scale + kappa - theta * shifted
        rounding = 8 * UNIT * (abs(law.log_scale) + abs(kappa) + abs(theta) * largest)
        return math.log(total) + exponent + sign * (law.relative + rounding + _SUM)

    def _weights(self, y: Floats, mu: float, kappa: float, error: float) -> Floats:
        """e^{θy-κ} δ_μ(y)."""
        below = np.minimum(y, 0)
        certain = np.exp(self.theta * below - kappa) * -np.expm1(below)
        if mu == 0:
            return certain
        tilt = np.where(y < 0, -1 - self.theta, self.theta)
        return certain + _gaussian_weights(np.abs(y), mu, tilt, kappa, error)

    def _rest(self, y: Floats, mu: float, kappa: float, error: float) -> Floats:
        """e^{θy-κ} (1 - δ_μ(y)). Where y is negative, 1 - δ_μ(y) = e^y (1 - δ_μ(-y)) makes the tilt -1-θ."""
        tilt, y = np.where(y < 0, -1 - self.theta, self.theta), np.abs(y)
        if mu == 0:
            return np.exp(tilt * y)
        return _gaussian_rest(y, mu, tilt, kappa, error)


def _gaussian_weights(y: Floats, mu: float, tilt: Floats, kappa: float, error: float) -> Floats:
    """e^{tilt·y-κ} δ_μ(y) for y >= 0. Where y was negative, δ_μ(-y) = 1 - e^{-y} + e^{-y} δ_μ(y) makes tilt = -1-θ.

    δ_μ(y) = φ(c)(m(c) - m(b)) with c = y/μ - μ/2, b = c + μ and the Mills ratio m, or 1 - φ(c)(m(-c) + m(b)) for
    c < 0; and tilt·y - κ - c²/2 = -(c - tilt·μ)²/2 for both tilts.
    """
    c = np.minimum(y / mu, 1e150) - mu / 2
    near = _SQRT_HALF_PI * erfcx(np.abs(c) / math.sqrt(2))
    far = _SQRT_HALF_PI * erfcx((c + mu) / math.sqrt(2))
    density = np.exp(-(c**2) / 2 - _LOG_SQRT_TAU)
    tilted_density = np.exp(-((c - tilt * mu) ** 2) / 2 - _LOG_SQRT_TAU)
    ahead = tilted_density * (near * (1 + error) - far * (1 - error))
    behind = np.exp(np.minimum(tilt * y - kappa, 0)) * (1 - density * (near + far) * (1 - error) + error)
    return np.maximum(np.where(c >= 0, ahead, behind), 0)


def _gaussian_rest(y: Floats, mu: float, tilt: Floats, kappa: float, error: float) -> Floats:
    """e^{tilt·y-κ} (1 - δ_μ(y)) for y >= 0, where `_gaussian_weights` has δ_μ(y)."""
    c = np.minimum(y / mu, 1e150) - mu / 2
    near = _SQRT_HALF_PI * erfcx(np.abs(c) / math.sqrt(2))
    far = _SQRT_HALF_PI * erfcx((c + mu) / math.sqrt(2))
    density = np.exp(-(c**2) / 2 - _LOG_SQRT_TAU)
    tilted_density = np.exp(-((c - tilt * mu) ** 2) / 2 - _LOG_SQRT_TAU)
    ahead = np.exp(np.minimum(tilt * y - kappa, 0)) * (1 - density * (near * (1 - error) - far * (1 + error)) + error)
    return np.where(c >= 0, ahead, tilted_density * (near + far) * (1 + error))


def _largest_weight(theta: float) -> float:
    """The largest value of (1 - e^y)e^{θy}, y <= 0; of min(1, e^y)e^{θy} for θ < 0."""
    return 1.0 if theta <= 0 else math.exp(-theta * math.log1p(1 / theta)) / (1 + theta)
