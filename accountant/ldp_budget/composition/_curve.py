"""δ(ε) of a composed loss: a lattice law, and Gaussian noise that needs no lattice.

For a loss L = X + G, X on the lattice with tilted masses t(x) and G the loss of μ-Gaussian DP,

    δ(ε) = E[(1 - e^{ε-L})₊] = e^{K - θε} Σ_x t(x) w(ε - x),    w(y) = e^{θy - κ} δ_μ(y),

where e^{K-θx} t(x) is the P-mass of x together with the factor e^κ = E[e^{θG}], and δ_μ the curve of the Gaussian
(Balle and Wang 2018), continued to y < 0; without Gaussian noise δ_0(y) = (1 - e^y)₊. Since (1 - e^y)₊ e^{θy} is at
most θ^θ/(1+θ)^{1+θ}, so is w, and an error of the masses in the 1-norm costs no more than that many times.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import erfcx

from ._lattice import UNIT

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
    """ln δ(ε), certified from one side. `mu` is that of the Gaussian part, 0 if there is none."""

    law: TiltedLaw
    theta: float
    mu: float
    upper: bool

    def log_delta(self, epsilon: float) -> float:
        """An upper bound of ln δ(epsilon) if `upper`, else a lower one; -inf where δ may be zero."""
        law, sign = self.law, 1 if self.upper else -1
        x = law.losses
        largest = float(np.abs(x).max()) + abs(law.offset) + epsilon + self.mu**2
        # A smaller ε has the larger δ; the shift pays for the rounding of ε - x.
        shifted = epsilon + law.offset - sign * 8 * UNIT * largest
        weights = self._weights(shifted - x)
        total = float((law.mass * weights).sum()) + sign * law.error * _largest_weight(self.theta)
        if total <= 0:
            return -math.inf
        kappa = gaussian_cumulant(self.mu, self.theta)
        exponent = law.log_scale + kappa - self.theta * shifted
        rounding = 8 * UNIT * (abs(law.log_scale) + kappa + self.theta * largest)
        return math.log(total) + exponent + sign * (law.relative + rounding + _SUM)

    def _weights(self, y: Floats) -> Floats:
        if self.mu == 0:
            y = np.minimum(y, 0)
            return np.exp(self.theta * y) * -np.expm1(y)
        kappa = gaussian_cumulant(self.mu, self.theta)
        below = np.minimum(y, 0)
        certain = np.exp(self.theta * below - kappa) * -np.expm1(below)
        tilt = np.where(y < 0, -1 - self.theta, self.theta)
        return certain + _gaussian_weights(np.abs(y), self.mu, tilt, kappa, _ERFCX if self.upper else -_ERFCX)


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


def gaussian_cumulant(mu: float, theta: float) -> float:
    """ln E[e^{θG}] for the loss G ~ N(μ²/2, μ²)."""
    return theta * (1 + theta) * mu * mu / 2


def _largest_weight(theta: float) -> float:
    """The largest value of (1 - e^y)e^{θy}, y <= 0."""
    return 1.0 if theta == 0 else math.exp(-theta * math.log1p(1 / theta)) / (1 + theta)
