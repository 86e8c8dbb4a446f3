"""δ(ε) of a composed loss from a privacy loss distribution on a lattice, computed by FFT, plus Gaussian noise.

For a loss L = X + G, X on the lattice with tilted masses t(x) and G the loss of μ-Gaussian DP,

    δ(ε) = E[(1 - e^{ε-L})₊] = e^{K - θε} Σ_x t(x) w(ε - x),    w(y) = e^{θy - κ} δ_μ(y),

where e^{K-θx} t(x) is the P-mass of x together with the factor e^κ = E[e^{θG}]. δ_μ is the privacy profile of the
Gaussian (Balle and Wang 2018), continued to y < 0; without Gaussian noise δ_0(y) = (1 - e^y)₊. As (1 - e^y)₊ e^{θy}
is at most θ^θ/(1+θ)^{1+θ}, so is w. So an error of the masses in the 1-norm costs at most that many times as much.
Where δ is near one, 1 - δ(ε) = E[min(1, e^{ε-L})] has a tilt -1 < θ < 0, with 1 - δ_μ in place of δ_μ. Then w is at
most one.

The distribution of a sum of independent losses on a lattice is found by the discrete Fourier transform of
exponentially tilted distributions. For a tilt θ >= 0 the masses P[L = x] e^{θx} / E[e^{θL}] are a probability
distribution, and tilting a sum is tilting its terms. θ is chosen so that the tilted sum is centered near the ε of
interest. Then the masses that make up δ(ε) are the large ones. So rounding errors of the transform, which are
absolute, are small in comparison, even where δ = 1e-300.

A `TiltedLaw` is a tilted distribution with a certified error. All errors are bounds from theorems, not estimates:

- the transform of 2^t points has an error of at most `_TRANSFORM`·t·‖input‖₂ in the 2-norm (Higham, Accuracy and
  Stability of Numerical Algorithms, 2nd ed., Theorem 24.2, has 7u·t; the constant here is twice that);
- products of transforms by telescoping: |∏z - ∏ẑ| <= Σ |zᵢ - ẑᵢ| ∏ max(|z|, |ẑ|);
- mass outside the window, which the circular transform folds back into it, by Chernoff's bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from scipy.special import erfcx

from .loss_distribution import UNIT, gaussian_cumulant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .loss_distribution import Symmetric

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Complexes = NDArray[np.complex128]

# The relative error of scipy's erfcx; 1e-15 is the largest seen.
_ERFCX = 4e-15
_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_LOG_SQRT_TAU = math.log(math.tau) / 2
# Rounding in a sum of positive terms (numpy adds pairwise) and in the terms.
_SUM = 1e-12


# -- the privacy profile ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """ln δ(ε), or ln(1 - δ(ε)) if θ < 0, with certified bounds on both sides.

    `mu` encloses the μ of the Gaussian part.
    """

    law: TiltedLaw
    theta: float
    mu: tuple[float, float]
    resolution: ClassVar[float] = 0.0
    shift: ClassVar[float] = 0.0

    def lower(self, epsilon: float) -> float:
        """A lower bound; -inf if there is none."""
        return self._logarithm(epsilon, self.mu[0] if self.theta > 0 else self.mu[1], -1)

    def upper(self, epsilon: float) -> float:
        """An upper bound."""
        return self._logarithm(epsilon, self.mu[1] if self.theta > 0 else self.mu[0], 1)

    def _logarithm(self, epsilon: float, mu: float, sign: int) -> float:
        law, theta, x = self.law, self.theta, self.law.losses
        largest = float(np.abs(x).max()) + epsilon + mu**2
        # A smaller ε has the larger δ; the shift covers the rounding of ε - x.
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
        """e^{θy-κ} (1 - δ_μ(y)). If y is negative, 1 - δ_μ(y) = e^y (1 - δ_μ(-y)) makes the tilt -1-θ."""
        tilt, y = np.where(y < 0, -1 - self.theta, self.theta), np.abs(y)
        if mu == 0:
            return np.exp(tilt * y)
        return _gaussian_rest(y, mu, tilt, kappa, error)


def _gaussian_weights(y: Floats, mu: float, tilt: Floats, kappa: float, error: float) -> Floats:
    """e^{tilt·y-κ} δ_μ(y) for y >= 0. If y was negative, δ_μ(-y) = 1 - e^{-y} + e^{-y} δ_μ(y) makes tilt = -1-θ.

    δ_μ(y) = φ(c)(m(c) - m(b)) with c = y/μ - μ/2, b = c + μ and the Mills ratio m, or 1 - φ(c)(m(-c) + m(b)) for c
    < 0; and tilt·y - κ - c²/2 = -(c - tilt·μ)²/2 for both tilts.
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
    """e^{tilt·y-κ} (1 - δ_μ(y)) for y >= 0, the counterpart of `_gaussian_weights`."""
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


# -- convolution by FFT ----------------------------------------------------------------------------------------

_TRANSFORM = 14 * UNIT
_PRODUCT = 3 * UNIT  # a complex product has a relative error of √5 u
_ROOT = 12 * UNIT  # a root of unity, and its product with a mass
_TAIL = 45.0  # the mass beyond each end of a window is below e^-45
_MOST_STRIDES = 30
_NEGLIGIBLE = 1e-40  # a tilted mass below this is dropped and counted as an error
MOST_CELLS = 2**20
_LARGEST_INDEX = 2**62  # indices are stored in 64 bits


class TooFine(Exception):  # noqa: N818 - not an error of the caller, which then inverts the transform
    """The sum would need more than `MOST_CELLS` lattice points, or more precision than doubles have."""


@dataclass(frozen=True)
class Law:
    """A loss distribution: P[L = index·spacing] = e^log_mass.

    The masses are correct to some units of the last place.
    """

    spacing: Fraction
    index: Integers
    log_mass: Floats


@dataclass(frozen=True)
class TiltedLaw:
    """The distribution of `count` independent losses L, tilted.

    P[L = x] = e^{log_scale - θx}·mass at x = index·spacing. For each loss `mass` has an error of at most `error` in
    the 1-norm and a factor of e^{±relative}.
    """

    spacing: Fraction
    index: Integers
    mass: Floats
    log_scale: float
    count: int = 1
    error: float = 0.0
    relative: float = 0.0

    @property
    def losses(self) -> Floats:
        """index·spacing."""
        return np.multiply(self.index, float(self.spacing), dtype=np.float64)


def common_spacing(bounds: Sequence[Fraction]) -> Fraction:
    """The greatest number that divides all `bounds`."""
    numerator = math.gcd(*(bound.numerator for bound in bounds))
    return Fraction(numerator, math.lcm(*(bound.denominator for bound in bounds)))


def symmetric_law(step: Symmetric, spacing: Fraction) -> Law:
    """The loss distribution of a step on a lattice that contains its losses. Raises `TooFine`."""
    top = int(step.bound / spacing)
    if top > _LARGEST_INDEX:
        raise TooFine
    return Law(spacing, np.array([-top, top, 0][: len(step.losses)], dtype=np.int64), step.log_masses)


def tilt(law: Law, theta: float, count: int) -> TiltedLaw:
    """`law`, `count` times, tilted by `theta`."""
    lift = theta * (law.index * float(law.spacing))
    exponent = law.log_mass + lift
    top = float(exponent.max())
    log_scale = top + math.log(float(np.exp(exponent - top).sum()))
    mass = np.exp(exponent - log_scale)
    kept = mass > _NEGLIGIBLE
    lost = len(mass) * 2 * _NEGLIGIBLE
    size = float(np.max(np.abs(law.log_mass[kept]) + 2 * np.abs(lift[kept]))) + abs(log_scale)
    rounding = 8 * UNIT * (4 + size)
    return TiltedLaw(law.spacing, law.index[kept], mass[kept], log_scale, count, lost, rounding)


def log_mgf(laws: Sequence[TiltedLaw], s: float) -> float:
    """ln E[e^{sX}] of the tilted sum X."""
    total = 0.0
    for law in laws:
        x = law.losses
        exponent = s * x
        top = float(exponent.max())
        total += law.count * (top + math.log(float((law.mass * np.exp(exponent - top)).sum())))
    return total


def window(laws: Sequence[TiltedLaw]) -> tuple[float, float]:
    """(low, high): the tilted sum is below low, or above high, with probability below e^-45 each."""
    mean, variance = _moments(laws)
    low = sum(law.count * float(law.losses.min()) for law in laws)
    high = sum(law.count * float(law.losses.max()) for law in laws)
    if variance > 0:
        low, high = max(low, -_edge(laws, -1, variance)), min(high, _edge(laws, 1, variance))
    return min(low, mean), max(high, mean)


def _edge(laws: Sequence[TiltedLaw], sign: int, variance: float) -> float:
    """The least x found with P[±X > x] <= e^-45: (ln E[e^{±sX}] + 45)/s for a good s; every s is valid."""

    def edge(s: float) -> float:
        return (log_mgf(laws, sign * s) + _TAIL) / s

    worth_it = 0.01 * math.sqrt(variance)
    s = math.sqrt(2 * _TAIL / variance)  # the best one for a normal sum
    best = edge(s)
    for stride in (0.5, 2.0):  # the function has one minimum, possibly at infinity
        for _ in range(_MOST_STRIDES):
            value = edge(s * stride)
            if value > best - worth_it:
                break
            s, best = s * stride, value
    return best


def _moments(laws: Sequence[TiltedLaw]) -> tuple[float, float]:
    mean = variance = 0.0
    for law in laws:
        x, mass = law.losses, law.mass / law.mass.sum()
        centre = float((mass * x).sum())
        mean += law.count * centre
        variance += law.count * float((mass * (x - centre) ** 2).sum())
    return mean, variance


def convolve(laws: Sequence[TiltedLaw]) -> TiltedLaw:
    """The distribution of the sum of all the losses of `laws`, which share one spacing. Raises `TooFine`."""
    if len(laws) == 1 and laws[0].count == 1:
        return laws[0]
    spacing = laws[0].spacing
    low, high = window(laws)
    first = math.floor(low / float(spacing)) - 1
    cells = math.ceil(high / float(spacing)) + 2 - first
    if cells > MOST_CELLS or max(-first, first + cells) > _LARGEST_INDEX:
        raise TooFine
    kept, mass, error = _circular(laws, first, cells)
    log_scale = math.fsum(law.count * law.log_scale for law in laws)
    rounding = 4 * UNIT * sum(law.count * abs(law.log_scale) for law in laws)
    return TiltedLaw(
        spacing,
        first + kept,
        mass,
        log_scale,
        error=error,
        relative=sum(law.count * law.relative for law in laws) + rounding,
    )


def _circular(laws: Sequence[TiltedLaw], first: int, cells: int) -> tuple[Integers, Floats, float]:
    """The cells from `first` that hold any mass, their masses, and a bound of the error in the 1-norm."""
    size = 1 << (cells - 1).bit_length()
    product, error = _product(laws, size)
    mass = np.roll(np.fft.irfft(product, size), -first % size)[:cells]
    # ‖·‖₁ <= √n ‖·‖₂, and the inverse transform divides the 2-norm by √n: the two cancel.
    error += _TRANSFORM * (size.bit_length() - 1) * _norm(product)
    masses = math.prod(max(1.0, float(law.mass.sum())) for law in laws if law.count == 1)
    error += masses * (2.1 * math.exp(-_TAIL) + sum(law.count * law.error for law in laws))
    if error >= float(mass.sum()):
        raise TooFine
    # Cells that together hold less than the error are noise; without them the error at most doubles.
    kept = np.flatnonzero(mass > error / cells)
    return kept, mass[kept], 2 * error


def _product(laws: Sequence[TiltedLaw], size: int) -> tuple[Complexes, float]:
    """The spectrum of the sum, and a bound of its error in the 2-norm over the whole circle."""
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    log_modulus = np.zeros(size // 2 + 1)
    slopes = np.zeros(size // 2 + 1)
    for law in laws:
        spectrum, off = _spectrum(law, size)
        modulus = np.abs(spectrum) + off
        log_modulus += law.count * np.log(modulus)
        slopes += law.count * (off / modulus + _PRODUCT)
        product *= _power(spectrum, law.count)
    return product, _norm(np.exp(np.minimum(log_modulus, 300)) * slopes)


def _norm(half: Floats | Complexes) -> float:
    """An upper bound of the 2-norm over the whole circle, given the upper half."""
    return math.sqrt(2 * float(np.sum(np.abs(half) ** 2))) * (1 + 1e-9)


def _spectrum(law: TiltedLaw, size: int) -> tuple[Complexes, float]:
    """The discrete Fourier transform of one loss at 0 <= f <= size/2, and a bound of its error at each f.

    It is summed outcome by outcome, because there are few outcomes.
    """
    frequency = np.arange(size // 2 + 1, dtype=np.int64)
    spectrum = np.zeros(size // 2 + 1, dtype=np.complex128)
    for index, mass in zip(law.index % size, law.mass, strict=True):
        turns = (frequency * index) % size  # exact, so that the angle is small and correct to the last place
        turns = np.where(2 * turns > size, turns - size, turns)
        spectrum += mass * np.exp(turns * (-2j * math.pi / size))
    return spectrum, _ROOT * len(law.index) * float(law.mass.sum())


def _power(spectrum: Complexes, count: int) -> Complexes:
    """spectrum**count by repeated squaring, with at most count - 1 rounded products in each path."""
    result = None
    while True:
        if count & 1:
            result = spectrum if result is None else result * spectrum
        count >>= 1
        if not count:
            assert result is not None
            return result
        spectrum = spectrum * spectrum
