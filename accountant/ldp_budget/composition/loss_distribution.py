"""Privacy loss distributions of single reports, as transforms in closed form, and the list of losses to sum.

A dominating pair of distributions (P, Q) describes the two worst-case inputs of a report. Its privacy loss is L =
ln P/Q under P, and M(s) = E[e^{sL}]. For a loss tilted by θ, φ(t) = M(θ + it)/M(θ) is the characteristic function.
All errors are absolute errors of ln M, or of φ, and are bounds: losses, masses and functions are each correct to
some units of the last place.

`Cumulants` is the list of losses and bounds the tilted sum. `take_apart` splits a list of charges for exact
composition into the parts with a closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Context, Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import NotSupported
from ..guarantees import Approximate, FinitePair, Gaussian, Guarantee, Laplace, Memoised, Pure, SymmetricPair
from ..guarantees.fixed_point import DOWN, UP, decimal_down, decimal_up, exp_down, exp_up, ln_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .rules import Charges

    Floats = NDArray[np.float64]

UNIT = 2.0**-53
_PRECISE = Context(prec=40)
_LOSSES = 64 * UNIT  # relative error of a loss in an exponent
_SMALL = 1e-3  # if 1 + 2θ is less than this, θ is moved off the pole of the Laplace transform


# -- losses of single reports ----------------------------------------------------------------------------------


class Characteristic(NamedTuple):
    """φ = e^{log_modulus + i phase}, and its error relative to φ.

    If |φ| is smaller than its absolute error, it is replaced by that error.
    """

    log_modulus: Floats
    phase: Floats
    error: Floats


class Step:
    """One kind of report, with a bounded loss."""

    relative_cost = 1.0  # the cost of a frequency of its transform, relative to a loss of ±ε

    @property
    def widest(self) -> float:
        """The approximate largest absolute loss."""
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
    """A loss with finitely many values.

    As the masses add up to one, M(s) - 1 = Σ p (e^{sl} - 1), and φ - 1 likewise with the tilted masses. So no base
    of a power is rounded near one.
    """

    @property
    def relative_cost(self) -> float:  # type: ignore[override]
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
        # E|e^{θL} - 1| <= |θ|·widest·(1 + M(θ)); either M(θ) >= ½ or the logarithm of the whole is taken; and the
        # entropy of the tilted masses is below ln n.
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
        # Errors of losses and sums; and errors of the masses, each a factor of a difference of at most two.
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
    """Finitely many outcomes. Outcomes with Q = 0 are counted elsewhere, and P is conditioned on the others."""

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
    """Laplace noise at ε = S/b.

    Under P the loss is ε with probability ½, and -ε with probability e^{-ε}/2. Between them it has the density ¼
    e^{-(ε-l)/2}, so that

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
    """(whole + real + i·imaginary)/whole, with an error of the numerator of at most `error`."""
    real, imaginary, error = real / whole, imaginary / whole, error / whole
    excess = real * (2 + real) + imaginary * imaginary
    off = error + 4 * UNIT * (np.abs(real) * (2 + np.abs(real)) + imaginary * imaginary)
    modulus = np.maximum(np.sqrt(np.maximum(1 + excess, 0)), off)
    log_modulus = 0.5 * np.log1p(np.maximum(excess, -0.5))
    far = np.flatnonzero(excess < -0.5)
    if len(far):
        modulus[far] = np.maximum(np.hypot(1 + real[far], imaginary[far]), off[far])
        log_modulus[far] = np.log(modulus[far])
    # A modulus of zero has an error above zero.
    share = 2 * off / np.maximum(modulus, UNIT * UNIT)
    return Characteristic(log_modulus, np.arctan2(imaginary, 1 + real), share)


def _log_ratio(p: Fraction, q: Fraction) -> float:
    """ln p/q to some units of the last place, even for ratios near one or outside the range of doubles."""
    ratio = p / q
    if Fraction(1, 2) < ratio < 2:
        return math.log1p(float(ratio - 1))
    return float(_PRECISE.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)).ln(_PRECISE))


# -- cumulants of the sum --------------------------------------------------------------------------------------

_MOST_STRIDES = 60
_EDGE = 0.02  # precision of an edge, in standard deviations
_ROUNDING = 16 * UNIT


@dataclass(frozen=True)
class Cumulants:
    """Reports with a bounded loss, and the number of each."""

    steps: dict[Step, int]

    @cached_property
    def whole(self) -> float:
        """The approximate largest loss of all reports together."""
        return math.fsum(count * step.widest for step, count in self.steps.items())

    @cached_property
    def widest(self) -> float:
        """The approximate largest loss of one report."""
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
        """K''(θ), approximately."""
        width = 1e-4 * max(abs(theta), 0.1 / self.whole)
        above, below = (self.cumulant(theta + side * width, mu)[1] for side in (1, -1))
        return max(0.0, (above - below) / (2 * width))

    def edge(self, theta: float, mu: float, sign: int, tail: float) -> tuple[float, float]:
        """(x, s): about the least x with P[±X > ±x] <= e^-tail for the sum X tilted by θ, and the s that proves it.

        For any s > 0, x is (K(θ ± s) - K(θ) + tail)/s.
        """
        k, _ = self.cumulant(theta, mu)
        variance = self.variance(theta, mu)

        def edge(s: float) -> float:
            return (self.cumulant(theta + sign * s, mu)[0] - k + tail) / s

        most = tail * abs(theta)  # a larger s gains at most 1/|θ|
        s = min(most, math.sqrt(2 * tail / variance)) if variance else most  # the best one for a normal sum
        best = edge(s)
        for stride in (0.5, 2.0):  # the function has one minimum, possibly at infinity
            for _ in range(_MOST_STRIDES):
                value = edge(s * stride)
                if value > best - max(_EDGE * math.sqrt(variance), 1 / abs(theta)):
                    break
                s, best = s * stride, value
        return sign * best, sign * s

    def tail(self, theta: float, mu: float, x: float, s: float) -> float:
        """An upper bound of P[X > x] for the sum X tilted by θ if s > 0, of P[X < x] if s < 0."""
        exponent = self.cumulant(theta + s, mu)[0] - self.cumulant(theta, mu)[0] - s * x
        return math.exp(min(0.0, exponent + 1))  # the rounding of cumulants is far below one


def gaussian_cumulant(mu: float, theta: float) -> float:
    """ln E[e^{θG}] for the loss G ~ N(μ²/2, μ²)."""
    return theta * (1 + theta) * mu * mu / 2


# -- charges, split into parts ---------------------------------------------------------------------------------

ONE = Decimal(1)


@dataclass
class Decomposition:
    """The parts of a list of charges that compose independently of each other.

    `steps` counts the reports with a bounded loss, `mu_squared` adds up the Gaussian ones, `slacks` lists the
    probabilities of an infinite loss with their counts.
    """

    steps: dict[Step, int] = field(default_factory=dict)
    mu_squared: Decimal = Decimal(0)
    slacks: list[tuple[Fraction, int]] = field(default_factory=list)

    def add(self, step: Step, count: int) -> None:
        self.steps[step] = self.steps.get(step, 0) + count

    def add_symmetric(self, bound: Decimal, tau: Decimal, count: int) -> None:
        """Add a loss ±bound with probability τ, unless the loss is zero."""
        if bound and tau:
            self.add(Symmetric(Fraction(bound), tau), count)

    def add_slack(self, probability: Fraction, count: int) -> None:
        if probability:
            self.slacks.append((probability, count))


def take_apart(charges: Charges) -> Decomposition:
    """The parts of `charges`. Raises `NotSupported` for a guarantee whose loss distribution is unknown."""
    parts = Decomposition()
    for guarantee, count in charges:
        _add(parts, guarantee, count)
    return parts


def _add(parts: Decomposition, guarantee: Guarantee, count: int) -> None:
    match guarantee:
        case Pure():
            parts.add_symmetric(guarantee.bound, ONE, count)
        case SymmetricPair():
            parts.add_symmetric(guarantee.bound, guarantee.tau, count)
        case Memoised():  # the curve holds only while reports repeat memoised values, the cap always holds
            parts.add_symmetric(guarantee.cap, ONE, count)
        case Approximate():
            parts.add_symmetric(guarantee.bound, ONE, count)
            parts.add_slack(Fraction(guarantee.slack), count)
        case Laplace():
            if guarantee.bound:
                parts.add(LaplaceNoise(Fraction(guarantee.bound)), count)
        case Gaussian():
            squared = UP.multiply(guarantee.mu, guarantee.mu)
            parts.mu_squared = UP.add(parts.mu_squared, UP.multiply(squared, count))
        case FinitePair():
            _add_finite(parts, guarantee, count)
        case _:
            raise NotSupported(
                f"rule exact cannot compose a guarantee of kind {guarantee.kind}, whose loss distribution is not known",
                hint="Use another rule, such as basic or zcdp.",
            )


def _add_finite(parts: Decomposition, pair: FinitePair, count: int) -> None:
    """Add a finite pair. Outcomes with P = 0 do not matter under P; outcomes with Q = 0 are an infinite loss."""
    infinite = sum((p for p, q in pair.outcomes if not q), Fraction(0))
    parts.add_slack(infinite, count)
    finite = tuple(sorted((p, q) for p, q in pair.outcomes if p and q))
    if any(p != q for p, q in finite):
        parts.add(Finite(finite), count)


def infinite_mass(slacks: list[tuple[Fraction, int]]) -> tuple[Decimal, Decimal]:
    """1 - ∏(1-δᵢ)^kᵢ, as a lower and an upper bound; both are near the sum if that is tiny."""
    if not slacks:
        return Decimal(0), Decimal(0)
    if any(probability >= 1 for probability, _ in slacks):
        return ONE, ONE
    exact_sum = sum((probability * count for probability, count in slacks), Fraction(0))
    total = decimal_up(exact_sum)
    stay_up, stay_down = Decimal(0), Decimal(0)
    for probability, count in slacks:
        stay_up = UP.add(stay_up, UP.multiply(ln_up(decimal_up(1 - probability)), count))
        stay_down = DOWN.add(stay_down, DOWN.multiply(_ln_down(decimal_down(1 - probability)), count))
    low = max(DOWN.subtract(ONE, exp_up(stay_up)), decimal_down(exact_sum - exact_sum * exact_sum / 2))
    return max(low, Decimal(0)), min(UP.subtract(ONE, exp_down(stay_down)), total)


def finite_targets(delta: Decimal, infinite: tuple[Decimal, Decimal]) -> tuple[Decimal, Decimal]:
    """The δ that is left for the finite part of the loss, (δ - a)/(1 - a), rounded down and up."""
    low, high = infinite
    left_low, left_high = DOWN.subtract(delta, high), UP.subtract(delta, low)
    smallest = DOWN.divide(left_low, UP.subtract(ONE, high)) if left_low > 0 else Decimal(0)
    largest = UP.divide(left_high, DOWN.subtract(ONE, low)) if left_high > 0 else Decimal(0)
    return smallest, largest


def largest_loss(steps: dict[Step, int]) -> tuple[Decimal, Decimal]:
    """The largest loss of all steps together, rounded down and up."""
    low = high = Decimal(0)
    for step, count in steps.items():
        if isinstance(step, Finite):
            ratio = max(p / q for p, q in step.outcomes)
            bottom, top = _ln_down(decimal_down(ratio)), ln_up(decimal_up(ratio))
        else:
            assert isinstance(step, Symmetric | LaplaceNoise)
            bottom, top = decimal_down(step.bound), decimal_up(step.bound)
        low = DOWN.add(low, DOWN.multiply(bottom, count))
        high = UP.add(high, UP.multiply(top, count))
    return max(low, Decimal(0)), max(high, Decimal(0))


def basic_epsilon(charges: Charges, delta: Decimal) -> Decimal | None:
    """Σε of the charges, a memoised one by its cap, if their Σδ is at most `delta`; otherwise None."""
    epsilon = spent = Decimal(0)
    for guarantee, count in charges:
        loss = (guarantee.cap, Decimal(0)) if isinstance(guarantee, Memoised) else guarantee.loss()
        if loss is None:
            return None
        epsilon = UP.add(epsilon, UP.multiply(loss[0], count))
        spent = UP.add(spent, UP.multiply(loss[1], count))
    return epsilon if spent <= delta else None


def _ln_down(x: Decimal) -> Decimal:
    return DOWN.ln(x).next_minus(DOWN)
