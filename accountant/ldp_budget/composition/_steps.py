"""What one report adds to an exact composition: the law of its privacy loss, as a transform in closed form.

A report stands for the pair of distributions (P, Q) that tells the worst two inputs apart; its privacy loss is
L = ln P/Q under P, and M(s) = E[e^{sL}]. For a loss tilted by θ, φ(t) = M(θ + it)/M(θ) is the characteristic
function.
All errors are absolute ones of ln M, or of φ, and are bounds: losses, masses and functions are right to some units
of the last place each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

UNIT = 2.0**-53
_PRECISE = Context(prec=40)
_LOSSES = 64 * UNIT  # the share of a loss by which an exponent of it may be off
_SMALL = 1e-3  # where 1 + 2θ is less than this, θ is moved off the pole of the Laplace transform


class Characteristic(NamedTuple):
    """φ = e^{log_modulus + i phase}, and its error as a share of it.

    Where |φ| is smaller than its absolute error, it stands as that error.
    """

    log_modulus: Floats
    phase: Floats
    error: Floats


class Step:
    """One kind of report, with a bounded loss."""

    dearness = 1.0  # how long a frequency of its transform takes, beside a loss of ±ε

    @property
    def widest(self) -> float:
        """The largest absolute loss, about."""
        raise NotImplementedError

    def cumulant(self, theta: float) -> tuple[float, float]:
        """ln M(θ) and its derivative, for any real θ."""
        raise NotImplementedError

    def cumulant_error(self, theta: float) -> float:
        """A bound of the error of ln M(θ), θ > -½."""
        raise NotImplementedError

    def characteristic(self, theta: float, t: Floats) -> Characteristic:
        """φ at the frequencies t >= 0 for a tilt θ > -½."""
        raise NotImplementedError


class Atoms(Step):
    """A loss of finitely many values.

    As the masses add up to one, M(s) - 1 = Σ p (e^{sl} - 1), and φ - 1 likewise with the tilted masses: nothing that
    is raised to a power is rounded near one.
    """

    @property
    def dearness(self) -> float:  # type: ignore[override]
        return max(1.0, len(self.losses) / 4)

    @cached_property
    def losses(self) -> Floats:
        raise NotImplementedError

    @cached_property
    def log_masses(self) -> Floats:
        """Natural logarithms of the masses."""
        raise NotImplementedError

    @cached_property
    def widest(self) -> float:
        return float(np.abs(self.losses).max())

    def cumulant(self, theta: float) -> tuple[float, float]:
        exponent = theta * self.losses
        weighted = self.log_masses + exponent
        top = float(weighted.max())
        shares = np.exp(weighted - top)
        total = float(shares.sum())
        excess = math.inf
        if abs(theta) * self.widest < 300:
            excess = float((np.exp(self.log_masses) * np.expm1(exponent)).sum())
        value = math.log1p(excess) if abs(excess) < 0.5 else top + math.log(total)
        return value, float((shares * self.losses).sum()) / total

    def cumulant_error(self, theta: float) -> float:
        # E|e^{θL} - 1| <= |θ|·widest·(1 + M(θ)), M(θ) >= ½ or a logarithm is taken of all of it, and the entropy of
        # the tilted masses is below ln n.
        return _LOSSES * (4 + math.log(len(self.losses))) * abs(theta) * self.widest

    def characteristic(self, theta: float, t: Floats) -> Characteristic:
        value, _ = self.cumulant(theta)
        masses = np.exp(self.log_masses + theta * self.losses - value)
        real, imaginary = np.zeros_like(t), np.zeros_like(t)
        for loss, up, down in self._signed(masses):
            half = t * (loss / 2)
            sine = np.sin(half)
            real -= 2 * (up + down) * sine * sine
            imaginary += 2 * (up - down) * sine * np.cos(half)
        kept = masses > 0
        size = float(np.max(np.abs(self.log_masses[kept]) + 2 * abs(theta) * np.abs(self.losses[kept]))) + abs(value)
        angle = self.widest * t
        # Losses and sums; and the masses, each of which stands beside a difference of at most two.
        return polar(
            real, imaginary, (_LOSSES + 4 * UNIT * len(masses)) * angle + 4 * UNIT * size * np.minimum(angle, 2)
        )

    def _signed(self, masses: Floats) -> list[tuple[float, float, float]]:
        """(l, mass of l, mass of -l) for the sizes l > 0 of the losses."""
        found: dict[float, tuple[float, float]] = {}
        for loss, mass in zip(self.losses.tolist(), masses.tolist(), strict=True):
            up, down = found.get(abs(loss), (0.0, 0.0))
            found[abs(loss)] = (up + mass, down) if loss > 0 else (up, down + mass)
        return [(loss, up, down) for loss, (up, down) in found.items() if loss]


@dataclass(frozen=True)
class Symmetric(Atoms):
    """Loss ±ε with total probability τ, odds e^ε, and 0 otherwise (`guarantees.SymmetricPair`)."""

    bound: Fraction
    tau: Decimal

    @cached_property
    def losses(self) -> Floats:
        epsilon = float(self.bound)
        return np.array([-epsilon, epsilon, 0.0][: 3 if self.tau < 1 else 2])

    @cached_property
    def log_masses(self) -> Floats:
        epsilon = float(self.bound)
        plus = float(self.tau.ln(_PRECISE)) - math.log1p(math.exp(-epsilon))
        rest = [float(_PRECISE.subtract(Decimal(1), self.tau).ln(_PRECISE))] if self.tau < 1 else []
        return np.array([plus - epsilon, plus, *rest])


@dataclass(frozen=True)
class Finite(Atoms):
    """Finitely many outcomes; those with Q = 0 are counted elsewhere and P is conditioned on the others."""

    outcomes: tuple[tuple[Fraction, Fraction], ...]

    @cached_property
    def losses(self) -> Floats:
        return np.array([_log_ratio(p, q) for p, q in self.outcomes])

    @cached_property
    def log_masses(self) -> Floats:
        total = sum((p for p, _ in self.outcomes), Fraction(0))
        return np.array([_log_ratio(p, total) for p, _ in self.outcomes])


@dataclass(frozen=True)
class LaplaceNoise(Step):
    """Laplace noise at ε = S/b. Under P the loss is ε with probability ½, -ε with e^{-ε}/2, and between them it has
    the density ¼ e^{-(ε-l)/2}, so that

        M(s) = e^{sε} (1 + B(s)),    B(s) = s (e^{-(1+2s)ε} - 1)/(1+2s),    and M(-1-s) = M(s).
    """

    bound: Fraction

    @cached_property
    def widest(self) -> float:
        return float(self.bound)

    def cumulant(self, theta: float) -> tuple[float, float]:
        if theta < -0.5:
            value, slope = self.cumulant(-1 - theta)
            return value, -slope
        theta = max(theta, (_SMALL - 1) / 2)
        epsilon, double = self.widest, 1 + 2 * theta
        fall = math.expm1(-double * epsilon)
        b = theta * fall / double
        slope = fall / double**2 - 2 * epsilon * theta * (1 + fall) / double
        return theta * epsilon + math.log1p(b), epsilon + slope / (1 + b)

    def cumulant_error(self, theta: float) -> float:
        return _LOSSES * abs(theta) * self.widest

    def characteristic(self, theta: float, t: Floats) -> Characteristic:
        epsilon = self.widest
        fall, angle = math.exp(-(1 + 2 * theta) * epsilon), t * epsilon
        sine = np.sin(angle)
        # e^{-(1+2s)ε} - 1, and s/(1+2s)
        real = math.expm1(-(1 + 2 * theta) * epsilon) - 2 * fall * sine * sine
        imaginary = -2 * fall * sine * np.cos(angle)
        square = (1 + 2 * theta) ** 2 + 4 * t * t
        a, b = (theta * (1 + 2 * theta) + 2 * t * t) / square, t / square
        at_zero = theta * math.expm1(-(1 + 2 * theta) * epsilon) / (1 + 2 * theta)
        share = _LOSSES * epsilon * np.hypot(theta, t)
        change = a * real - b * imaginary - at_zero, a * imaginary + b * real
        log_modulus, phase, error = polar(*change, share, 1 + at_zero)
        return Characteristic(log_modulus, phase + angle, error)


def polar(real: Floats, imaginary: Floats, error: Floats, whole: float = 1.0) -> Characteristic:
    """(whole + real + i·imaginary)/whole, of which the numerator is off by at most `error`."""
    real, imaginary, error = real / whole, imaginary / whole, error / whole
    excess = real * (2 + real) + imaginary * imaginary
    off = error + 4 * UNIT * (np.abs(real) * (2 + np.abs(real)) + imaginary * imaginary)
    modulus = np.maximum(np.sqrt(np.maximum(1 + excess, 0)), off)
    log_modulus = 0.5 * np.log1p(np.maximum(excess, -0.5))
    far = np.flatnonzero(excess < -0.5)
    if len(far):
        modulus[far] = np.maximum(np.hypot(1 + real[far], imaginary[far]), off[far])
        log_modulus[far] = np.log(modulus[far])
    # Where there is no error there is no modulus of zero.
    share = 2 * off / np.maximum(modulus, UNIT * UNIT)
    return Characteristic(log_modulus, np.arctan2(imaginary, 1 + real), share)


def _log_ratio(p: Fraction, q: Fraction) -> float:
    """ln p/q to some units of the last place, also for ratios near one or outside the range of doubles."""
    ratio = p / q
    if Fraction(1, 2) < ratio < 2:
        return math.log1p(float(ratio - 1))
    return float(_PRECISE.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)).ln(_PRECISE))
