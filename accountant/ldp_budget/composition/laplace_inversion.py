"""δ(ε) of a composed loss by inverting its Laplace transform along a line, without a lattice.

For a loss L, M(s) = E[e^{sL}] and K = ln M, on the line s = θ + it with θ > 0,

    δ(ε) = e^{K(θ) - θε} A(ε),    A(ε) = 1/2π ∫ M(s)/M(θ) e^{-itε} / (s(1+s)) dt,

where A(ε) = E[w(ε - X)] with w(y) = e^{θy}(1 - e^y)₊ for the loss X tilted by θ. With -1 < θ < 0 the same integral
is -A(ε) for 1 - δ(ε) and w(y) = e^{θy} min(1, e^y). M of a sum is the product of its terms' M, and each of these
has a closed form. So a count is a factor of an exponent however large it is.

The integral becomes a sum, and every error of this step is bounded:

- The trapezoidal rule of step Δt gives Σ_m A(ε + mP) with P = 2π/Δt, exactly (Poisson). No term is negative, so the
  sum is an upper bound. The other terms, bounded by Chernoff's bound for X, are subtracted for the lower one.
- The sum converges because it contains a Gaussian loss of a small variance v = μ². A further report only increases
  δ, which is the upper bound. It increases δ by at most v e^{v/8} r(ε), with r the density of the smoothed loss,
  which gives the lower bound: a loss l gains e^{min(y,0)} δ_μ(|y|) times its mass, y = ε - l, and as ∂δ_μ(y)/∂μ =
  φ(y/μ - μ/2) that is at most μ e^{μ²/8} φ(y/μ - μ/2). A list with enough Gaussian reports needs no added one.
- The part beyond the last frequency is bounded by that Gaussian's own decay.
- Rounding is bounded by telescoping: |∏z - ∏ẑ| <= Σ |zᵢ - ẑᵢ| ∏ max(|z|, |ẑ|).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .loss_distribution import UNIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._saddlepoint import Saddle
    from .loss_distribution import Cumulants, Step

    Floats = NDArray[np.float64]
    Complexes = NDArray[np.complex128]

# The number of frequencies for few kinds of report, and the number of evaluations for many.
_FREQUENCIES = 2**18
_EVALUATIONS = 2**21
_SAMPLE = 2**8  # frequencies that serve to estimate the number of evaluations
_REACH = 9.6  # the last frequency, in standard deviations of the Gaussian's transform: e^{-46} is left of it
_TAIL = 42.0  # the mass that is folded back from either side is below e^-42
_DARK = 80.0  # a frequency at which less than e^-80 is left is dropped, and counted as an error
_MOST_SMOOTHING = 8.0  # a larger smoothing is not corrected by a density
_ROUNDING = 1e-13  # of the terms of the sum and of the sum, relatively


@dataclass(frozen=True)
class Sum:
    """The trapezoidal rule for an integral over the whole line whose halves are conjugate.

    Its value at ε is Σ amplitude·cos(phase - tε), with an error of at most `error` plus `drift` for each unit of ε.
    """

    amplitude: Floats
    phase: Floats
    frequencies: Floats
    error: float
    drift: float

    @classmethod
    def of(cls, spectrum: Spectrum, kernel: Complexes, dropped: float) -> Sum:
        """The integral of `spectrum` times `kernel`, of which at most `dropped` is missing."""
        size = np.abs(kernel) * (spectrum.step / math.pi)
        size[0] /= 2  # the frequency zero
        amplitude, t = spectrum.modulus * size, spectrum.frequencies
        error = float((spectrum.error * size).sum()) * (1 + 1e-9) + _ROUNDING * float(amplitude.sum()) + dropped
        drift = 4 * UNIT * float((amplitude * t).sum())
        return cls(amplitude, spectrum.phase + np.angle(kernel), t, error, drift)

    def at(self, epsilon: float) -> tuple[float, float]:
        """The value at ε and its error."""
        value = float((self.amplitude * np.cos(self.phase - self.frequencies * epsilon)).sum())
        return value, self.error + self.drift * epsilon


@dataclass(frozen=True)
class Inversion:
    """ln δ(ε), or ln(1 - δ(ε)) if θ < 0, of a sum of losses, with certified bounds on both sides.

    `smooth` is A(ε) of the smoothed loss, too large by at most `folded` for an ε in `window`. `plain` is `smooth`
    without the effect of the `smoothing`, a variance; None if the smoothing is too large.
    """

    theta: float
    cumulant: float
    cumulant_error: float
    smoothing: float
    smooth: Sum
    plain: Sum | None
    folded: float
    window: tuple[float, float]

    @property
    def resolution(self) -> float:
        """A difference of ε far below the difference of the two bounds."""
        return self.smoothing / 1000

    @property
    def shift(self) -> float:
        """The approximate distance of the lower bound of ε below the upper one, if it corrects for the smoothing."""
        if self.plain is not None:
            return 0.0
        return (0.5 + max(0.0, self.theta)) * self.smoothing + _REACH * math.sqrt(self.smoothing)

    def lower(self, epsilon: float) -> float:
        """A lower bound; -inf if there is none."""
        return self._plain(epsilon, -1) if self.theta > 0 else self._bound(self.smooth, epsilon, -1)

    def upper(self, epsilon: float) -> float:
        """An upper bound."""
        return self._bound(self.smooth, epsilon, 1) if self.theta > 0 else self._plain(epsilon, 1)

    def _plain(self, epsilon: float, sign: int) -> float:
        """The bound on the side that needs a correction for the smoothing."""
        if self.plain is not None:
            return self._bound(self.plain, epsilon, sign)
        # δ(ε + g) of the smoothed loss is at most δ(ε) of the plain one plus the part of a Gaussian loss above g.
        # That part adds to δ at most its tilted mass, and to 1 - δ at most its mass.
        more = 0.0 if self.theta > 0 else math.sqrt(2 * max(0.0, -self._exponent(epsilon)) * self.smoothing)
        return self._bound(self.smooth, epsilon + self.shift + more, sign, math.exp(-_REACH * _REACH / 2))

    def _bound(self, integral: Sum, epsilon: float, sign: int, gap: float = 0.0) -> float:
        value, error = integral.at(epsilon)
        low, high = self.window
        if sign < 0:
            gap += self.folded if low <= epsilon <= high else math.inf
        total = value + sign * (error + gap)
        if total <= 0:
            return -math.inf
        size = abs(self.cumulant) + abs(self.theta) * epsilon
        return math.log(total) + self._exponent(epsilon) + sign * (self.cumulant_error + 8 * UNIT * size)

    def _exponent(self, epsilon: float) -> float:
        return self.cumulant - self.theta * epsilon


class Spectrum(NamedTuple):
    """M(s)/M(θ) = modulus·e^{i·phase} at some of the multiples of `step`, with an error of at most `error`.

    The `lost` other multiples are negligible.
    """

    step: float
    frequencies: Floats
    modulus: Floats
    phase: Floats
    error: Floats
    lost: int

    def missing(self, variance: float, count: int) -> tuple[float, float]:
        """The missing part of integrals of this spectrum, divided by the largest value of the kernel.

        The first number is for frequencies beyond the last of `count`, where only a Gaussian loss of that
        `variance` is known. The second is for the dropped frequencies.
        """
        last = count * self.step
        beyond = math.exp(-variance * last * last / 2) * (self.step + 1 / (variance * last)) / math.pi
        return beyond, math.exp(-_DARK) * self.lost * self.step / math.pi


def invert(terms: Cumulants, mu: tuple[float, float], saddle: Saddle) -> Inversion:
    """The transform of the losses `terms` together with a Gaussian one whose μ is between the two of `mu`."""
    theta = saddle.theta
    low, low_rate = terms.edge(theta, mu[1], -1, _TAIL)
    high, high_rate = terms.edge(theta, mu[1], 1, _TAIL)
    centre = saddle.centre
    # The mass folded back from below decays as slowly as e^{-θy}, and from above, if θ < 0, as e^{-(1+θ)y}.
    ahead, slowest = (1.0, theta) if theta > 0 else (2.0, min(-theta, 1 + theta))
    period = max(ahead * (high - centre), 2 * (centre - low), 0.0) + 2 * _TAIL / slowest
    step = short(2 * math.pi / period)
    period = 2 * math.pi / step * (1 - 4 * UNIT)
    own = mu[1] * mu[1] * (1 + 4 * UNIT)
    steps, count = _order(terms, theta, own, step)
    variance = max(own, saddle.negligible, (_REACH / (count * step)) ** 2)
    count = min(count, math.ceil(_REACH / (math.sqrt(variance) * step)))
    smoothing = max(0.0, variance - mu[0] * mu[0] * (1 - 4 * UNIT))
    folded = _folded(terms, theta, math.sqrt(variance), (low, low_rate), (high, high_rate), period)
    transform = spectrum(steps, theta, variance, step, count)
    k, _ = terms.cumulant(theta, 0.0)
    gaussian = theta * (1 + theta) * variance / 2
    smooth, plain = _sums(transform, theta, variance, smoothing, count)
    return Inversion(
        theta,
        k + gaussian,
        terms.cumulant_error(theta) + 8 * UNIT * abs(gaussian),
        smoothing,
        smooth,
        plain,
        folded,
        (high - period / ahead, low + period / 2),
    )


def _sums(transform: Spectrum, theta: float, variance: float, smoothing: float, count: int) -> tuple[Sum, Sum | None]:
    """A(ε) of the smoothed loss, and A(ε) without the effect of the smoothing."""
    last = count * transform.step
    beyond, dark = transform.missing(variance, count)
    missing = beyond / (last * max(last, 1 + theta)) + dark / abs(theta * (1 + theta))
    s = theta + 1j * transform.frequencies
    kernel = (math.copysign(1.0, theta) / (s * (1 + s))).astype(np.complex128)
    smooth = Sum.of(transform, kernel, missing)
    if not smoothing or smoothing > _MOST_SMOOTHING:
        return smooth, None if smoothing else smooth
    density = smoothing * math.exp(smoothing / 8)
    return smooth, Sum.of(transform, kernel - math.copysign(density, theta), missing + density * (beyond + dark))


def short(x: float) -> float:
    """About `x`, with 30 bits, so that its multiples by whole numbers up to 2^23 are exact."""
    fraction, exponent = math.frexp(x)
    return math.ldexp(math.floor(fraction * 2**30), exponent - 30)


def _folded(
    terms: Cumulants, theta: float, mu: float, low: tuple[float, float], high: tuple[float, float], period: float
) -> float:
    """An upper bound of Σ_{m≠0} A(ε + mP) for an ε in the window.

    The window is P/2 or more above `low`, and P, or P/2 if θ < 0, below `high`.
    The weight w of A is at most one. It is zero above zero and at most e^{θy} below, or at most e^{θy} above and
    e^{(1+θ)y} below if θ < 0. So where the tilted loss is within the edges, a term is at most e^{-d(|m| - ½)P}. In
    any case the terms add up to at most one and such a series to either side.
    """
    decays = [theta] if theta > 0 else [-theta, 1 + theta]
    within = sum(math.exp(-decay * period / 2) / -math.expm1(-decay * period) for decay in decays)
    each = 1 + sum(1 / -math.expm1(-decay * period) for decay in decays)
    return within + each * (terms.tail(theta, mu, *low) + terms.tail(theta, mu, *high))


def _order(terms: Cumulants, theta: float, variance: float, step: float) -> tuple[list[tuple[Step, int]], int]:
    """The reports, sorted by the number of frequencies that they make negligible.

    The second result is the number of affordable frequencies.
    """
    t = step * np.arange(1, _SAMPLE + 1, dtype=np.float64) * (_FREQUENCIES / _SAMPLE)
    falls = {item: float(item[1]) * item[0].characteristic(theta, t).log_modulus for item in terms.steps.items()}
    order = sorted(falls, key=lambda item: float(np.maximum(falls[item], -_DARK).sum()))
    left = -variance * t * t / 2
    evaluations = 0.0
    for item in order:
        evaluations += float((left > -_DARK).mean()) * _FREQUENCIES * item[0].relative_cost
        left = left + falls[item]
    return order, int(min(_FREQUENCIES, _FREQUENCIES * _EVALUATIONS / max(1.0, evaluations)))


def spectrum(steps: list[tuple[Step, int]], theta: float, variance: float, spacing: float, count: int) -> Spectrum:
    """The product of the transforms at `count` frequencies, without the frequencies where it is negligible."""
    t = spacing * np.arange(count, dtype=np.float64)
    log_modulus = -variance * t * t / 2
    phase = (0.5 + theta) * variance * t
    off = 8 * UNIT * (1 - log_modulus + np.abs(phase))
    for step, reports in steps:
        log_each, phase_each, error_each = step.characteristic(theta, t)
        log_modulus = log_modulus + float(reports) * log_each
        phase = phase + float(reports) * phase_each
        off = off + float(reports) * error_each
        kept = log_modulus + off > -_DARK
        kept[0] = True
        if not kept.all():
            t, log_modulus, phase, off = t[kept], log_modulus[kept], phase[kept], off[kept]
    # No transform is larger than one. If rounding made one larger, the error grows by this excess, less than a fifth.
    modulus = np.exp(np.minimum(log_modulus, 0))
    # Beyond e^0.1 the relative error is not small; neither the computed nor the true value is larger than one.
    much = 2 * np.exp(np.minimum(log_modulus + off, 0))
    error = np.where(off < 0.1, 1.2 * modulus * np.expm1(np.minimum(off, 0.1)), much)
    return Spectrum(spacing, t, modulus, phase, error, count - len(t))
