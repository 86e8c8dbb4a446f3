"""Calibration of Gaussian noise: the smallest σ for a privacy target, and the privacy of a given σ.

For the worst pair of inputs, adding N(0, σ²) to a value of sensitivity S gives the outputs N(0, 1) and
N(μ, 1) in units of σ, with μ = S/σ. The privacy loss L is normal with mean μ²/2 and standard deviation μ.
With Φ and φ the normal distribution function and density, m(x) = Φ(−x)/φ(x) the Mills ratio, and

    c = ε/μ − μ/2,    b = ε/μ + μ/2 = c + μ,    so that φ(c) = e^ε φ(b),

σ can be calibrated to either of

    tail:   δ = P(L > ε)                         = Φ(−c)              = φ(c) m(c)
    exact:  δ = max over sets A of outputs of
                P(A) − e^ε P′(A)                 = Φ(−c) − e^ε Φ(−b)  = φ(c) (m(c) − m(b)).
"""

from __future__ import annotations

import math
import sys
from decimal import Context, Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["gaussian_delta", "gaussian_log_delta", "gaussian_sigma", "mu_of_laplace", "mu_of_pure", "mu_of_tests"]

_SQRT_2 = math.sqrt(2)
_SQRT_TAU = math.sqrt(math.tau)
_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_LOG_SQRT_TAU = math.log(math.tau) / 2

# The relative error of μ is below 4e-14: rounding in c acts like a change of μ by a few units in the last
# place, and the worst evaluation, m(c) − m(b) for c < 5, is off by at most 2e-15, which moves μ by
# 2e-15 / _SMALL_MU (the largest error observed is 2.4e-14). So this factor keeps σ on the private side, with an
# excess far below 1e-12.
_ROUND_UP = 1 + 3e-13

# Below this μ, m(c) − m(b) cancels and a Taylor series replaces it; the first term left out is below 2e-16.
_SMALL_MU = 0.05
# The σ of the two methods differ by a factor of about 1 + 1/(2ε). From this ε on, doubles cannot show the difference.
_METHODS_AGREE_EPSILON = 1e13
# Keeps μ away from subnormal numbers, which have no guaranteed relative accuracy.
_EPSILON_MIN = 1e-300

_MAX_STEPS = 30  # Four are enough for ε in [1e-8, 1000] and δ in [1e-300, 0.9].
_LAST_STEP = 1e-5  # Halley's error after a step is of the order of the step cubed.

# From this c on, Laplace's continued fraction computes Mills ratios: erfc loses digits and then underflows.
_LARGE_C = 5.0

_DIGITS = Context(prec=60)
_QUARTER, _HALF, _ONE, _TWO = Decimal("0.25"), Decimal("0.5"), Decimal(1), Decimal(2)


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0, *, method: str = "tail") -> float:
    """Return the smallest standard deviation of Gaussian noise that meets (epsilon, delta).

    Parameters
    ----------
    epsilon:
        Privacy loss, in nats; finite and at least 1e-300.
    delta:
        Strictly between 0 and 1. Both methods have a solution for every such delta.
    sensitivity:
        S, the largest distance between the values of any two inputs; finite and > 0. σ is in its unit.
    method:
        ``"tail"`` solves δ = Φ(S/2σ − εσ/S), that is P(L > ε) = δ for the privacy loss L. This is sufficient
        for (ε, δ)-differential privacy and not necessary, because it counts outputs with L > ε in full and
        not by their excess over e^ε. Closed form: σ = S(z + √(z² + 2ε)) / 2ε with z = Φ⁻¹(1 − δ).
        ``"exact"`` solves δ = Φ(S/2σ − εσ/S) − e^ε Φ(−S/2σ − εσ/S), which is necessary and sufficient; its σ
        is the smaller one.

    Returns
    -------
    Never below the true value, and at most 1e-12 above it, relatively.

    Raises
    ------
    ValueError
        An argument is out of range, or σ would be larger than the largest float.

    References
    ----------
    Tail: FedTensor, "프라이버시 손실 관계 수식 유도" (Deriving the relation of the privacy loss), blog post. Exact:
    Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018, Theorem 8.

    Examples
    --------
    >>> round(gaussian_sigma(1, 1e-5), 4), round(gaussian_sigma(1, 1e-5, method="exact"), 4)
    (4.3791, 3.7306)
    """
    _check_method(method)
    _check_target(epsilon, delta, sensitivity)
    mu = _mu_tail(epsilon, delta)
    if method == "exact" and epsilon < _METHODS_AGREE_EPSILON:
        mu = _mu_exact(epsilon, delta, mu)
    # nextafter: a subnormal product is not accurate to _ROUND_UP, only to one unit in the last place.
    sigma = math.nextafter(sensitivity / mu * _ROUND_UP, math.inf)
    if sigma == math.inf:
        raise ValueError(f"sensitivity must leave sigma finite: got {sensitivity!r} with mu = {mu!r}")
    return sigma


def gaussian_log_delta(epsilon: float, mu: float, *, method: str = "exact") -> float:
    """Return an upper bound on ln δ at `epsilon` for Gaussian noise with `mu` = sensitivity / sigma.

    `epsilon` is finite and >= 0, `mu` finite and > 0, else ValueError; `method` as in `gaussian_sigma`. The
    excess over the true value is at most 1e-13 (1 + |ln δ|), plus the effect of a relative 2e-15 in `mu`.
    """
    _check_method(method)
    if not 0 <= epsilon <= sys.float_info.max:
        raise ValueError(f"epsilon must be finite and >= 0: got {epsilon!r}")
    if not 0 < mu <= sys.float_info.max:
        raise ValueError(f"mu must be finite and > 0: got {mu!r}")
    c = min(epsilon / mu, 1e150) - mu / 2  # a smaller ε has a larger δ; c² stays finite
    value, slope = _log_delta_tail(c, mu) if method == "tail" else _log_delta_exact(c, mu)
    return min(0.0, value + 5e-14 * (1 - value) + 1e-15 * slope)


def gaussian_delta(epsilon: float, mu: float, *, method: str = "exact") -> float:
    """Return an upper bound, never 0, on δ at `epsilon`; arguments and errors as in `gaussian_log_delta`."""
    return math.nextafter(math.exp(gaussian_log_delta(epsilon, mu, method=method)), 1.0)


def mu_of_pure(epsilon: float) -> float:
    """Return μ = 2Φ⁻¹(e^ε / (1 + e^ε)): every ε-DP mechanism is μ-GDP (Gaussian differentially private).

    The worst ε-DP mechanism is randomized response. Its trade-off curve consists of two chords of the curve of N(0,
    1) against N(μ, 1), which is convex and so below the chords. The result is rounded up, by at most 1e-12
    relatively. Raises ValueError unless `epsilon` is finite and at least 1e-300.
    """
    _check_epsilon(epsilon)
    z = (
        _central_quantile(math.tanh(epsilon / 2))
        if epsilon < 1
        else _upper_quantile(-epsilon - math.log1p(math.exp(-epsilon)))
    )
    return 2 * z * _ROUND_UP


def mu_of_laplace(epsilon: float) -> float:
    """Return μ = 2Φ⁻¹(1 − e^{−ε/2}/2): Laplace noise at ε = S/b is μ-GDP, and not for any smaller μ.

    The trade-off curve of Laplace noise is the hyperbola e^{-ε}/(4a) between two chords. At a = e^{-s}/2 the curve of
    N(0, 1) against N(μ, 1) meets the hyperbola for μ = h(s) + h(ε − s) with h(s) = Φ⁻¹(1 − e^{-s}/2). This h is
    concave, as the hazard of the normal distribution grows, so s = ε/2 is the worst. Accuracy and errors are those of
    `mu_of_pure`.
    """
    _check_epsilon(epsilon)
    half = epsilon / 2
    z = _central_quantile(-math.expm1(-half)) if half < 0.6 else _upper_quantile(-half - math.log(2))
    return 2 * z * _ROUND_UP


def mu_of_tests(tests: Iterable[tuple[Decimal, Decimal, Decimal]]) -> float:
    """Return the μ of Gaussian DP for the tests at the corners of a trade-off curve, rounded up; else infinity.

    Each test is (Q(T), P(T), 1 − P(T)), the first and last rounded down and P(T) up, with 0 < Q(T) ≤ P(T). Between
    the corners the curve is straight and that of N(0, 1) against N(μ, 1) convex, so the least μ is the largest
    Φ⁻¹(P(T)) − Φ⁻¹(Q(T)) (Dong, Roth and Su 2022, section 2.3). Each quantile is good to 3e-13 of itself.
    """
    mu = 0.0
    for alarms, power, misses in tests:
        if alarms <= 0 or misses <= 0:
            return math.inf
        ends = _quantile_of(alarms, None), _quantile_of(power, misses)
        mu = max(mu, ends[0] - ends[1] + (abs(ends[0]) + abs(ends[1])) * (_ROUND_UP - 1))
    return mu


def _quantile_of(p: Decimal, rest: Decimal | None) -> float:
    """Return Φ⁻¹(1 − p), relatively accurate. `rest` is 1 − p if it is known more accurately than the difference."""
    if p > _HALF:
        return -_quantile_of(_DIGITS.subtract(_ONE, p) if rest is None else rest, None)
    if p > _QUARTER:
        return _central_quantile(float(_DIGITS.subtract(_ONE, _DIGITS.multiply(p, _TWO))))
    return _upper_quantile(float(_DIGITS.ln(p)))


def _check_method(method: str) -> None:
    if method not in ("tail", "exact"):
        raise ValueError(f"method must be 'tail' or 'exact': got {method!r}")


def _check_epsilon(epsilon: float) -> None:
    if not _EPSILON_MIN <= epsilon <= sys.float_info.max:
        raise ValueError(f"epsilon must be finite and > 0 (at least {_EPSILON_MIN}): got {epsilon!r}")


def _check_target(epsilon: float, delta: float, sensitivity: float) -> None:
    _check_epsilon(epsilon)
    if not 0 < delta < 1:
        raise ValueError(f"delta must be > 0 and < 1: got {delta!r}")
    if not 0 < sensitivity <= sys.float_info.max:
        raise ValueError(f"sensitivity must be finite and > 0: got {sensitivity!r}")


def _mu_tail(epsilon: float, delta: float) -> float:
    """Return the root of μ²/2 + zμ = ε, computed without cancellation."""
    z = _normal_quantile(delta)
    root = math.hypot(z, _SQRT_2 * math.sqrt(epsilon))
    return 2 * (epsilon / (z + root)) if z > 0 else root - z


def _mu_exact(epsilon: float, delta: float, mu_tail: float) -> float:
    """Solve δ(μ) = δ by Halley's method for ln δ against ln μ, from the larger of two lower bounds of μ.

    One is the tail's μ, the other is for ε = 0, where δ = 2Φ(μ/2) − 1, by Pólya's bound
    2Φ(x) − 1 ≤ √(1 − exp(−2x²/π)).
    """
    log_delta = math.log(delta)
    mu = max(mu_tail, math.sqrt(-math.tau * math.log1p(-delta * delta)))
    for _ in range(_MAX_STEPS):
        c = epsilon / mu - mu / 2
        value, slope = _log_delta_exact(c, mu)
        step = _halley_step(log_delta - value, slope, c * (c + mu))
        mu *= math.exp(step)
        if abs(step) * max(1.0, c + mu) < _LAST_STEP:
            return mu
    raise ArithmeticError(f"sigma not found for epsilon = {epsilon!r}, delta = {delta!r}")


def _halley_step(missing: float, slope: float, cb: float) -> float:
    """Return the step in ln μ; the second derivative of ln δ is slope · (1 + cb − slope)."""
    newton = missing / slope
    return newton / (1 + newton * (1 + cb - slope) / 2)


def _mills_fall_series(x: float, mu: float, mills: float) -> float:
    """Return (m(x − h) − m(x + h)) / μ = −(m′ + h² m‴/3! + …) with h = μ/2, for μ < _SMALL_MU, given mills = m(x).

    The derivatives follow from m′ = xm − 1 and m⁽ᵏ⁺¹⁾ = x m⁽ᵏ⁾ + k m⁽ᵏ⁻¹⁾.
    """
    first = x * mills - 1
    second = x * first + mills
    third = x * second + 2 * first
    fourth = x * third + 3 * second
    fifth = x * fourth + 4 * third
    seventh = x * (x * fifth + 5 * fourth) + 6 * fifth
    h2 = mu * mu / 4
    return -(first + h2 * (third / 6 + h2 * (fifth / 120 + h2 * seventh / 5040)))


def _log_delta_exact(c: float, mu: float) -> tuple[float, float]:
    """Return ln δ and its derivative by ln μ, which is μφ(c)/δ."""
    if c >= _LARGE_C:
        fall = _mills_fall(c, mu)
    elif mu < _SMALL_MU:
        fall = _mills_fall_series(c + mu / 2, mu, _mills(c + mu / 2))
    elif c >= 0:
        fall = (_mills(c) - _mills(c + mu)) / mu
    else:  # δ may be close to 1: compute 1 − δ
        density = _density(c)
        value = math.log1p(-density * (_mills(-c) + _mills(c + mu)))
        return value, mu * density / math.exp(value)
    return _log_density(c) + math.log(mu) + math.log(fall), 1 / fall


def _log_delta_tail(c: float, mu: float) -> tuple[float, float]:
    """Return ln δ and its derivative by ln μ, which is bφ(c)/δ."""
    if c >= 0:
        mills = _mills(c)
        return _log_density(c) + math.log(mills), (c + mu) / mills
    value = math.log1p(-_density(c) * _mills(-c))
    return value, (c + mu) * _density(c) / math.exp(value)


def _log_density(x: float) -> float:
    return -x / 2 * x - _LOG_SQRT_TAU


def _density(x: float) -> float:
    return math.exp(-x * x / 2) / _SQRT_TAU


def _mills(x: float) -> float:
    """Return m(x) = Φ(−x) / φ(x) for x >= 0."""
    if x < _LARGE_C:
        return _SQRT_HALF_PI * math.exp(x * x / 2) * math.erfc(x / _SQRT_2)
    rest = 0.0
    for j in range(_fraction_terms(x), 0, -1):
        rest = j / (x + rest)
    return 1 / (x + rest)


def _mills_fall(c: float, mu: float) -> float:
    """Return (m(c) − m(c + μ)) / μ for c >= _LARGE_C, without cancellation.

    m(x) = 1 / (x + k₁(x)) with kⱼ(x) = j / (x + kⱼ₊₁(x)). Both fractions are summed from the inside out,
    together with dⱼ = (kⱼ(c) − kⱼ(b)) / μ = kⱼ(c) kⱼ(b) (1 − dⱼ₊₁) / j.
    """
    b = c + mu
    at_c = at_b = difference = 0.0
    for j in range(_fraction_terms(c), 0, -1):
        at_c, at_b = j / (c + at_c), j / (b + at_b)
        difference = at_c * at_b * (1 - difference) / j
    return (1 - difference) / (c + at_c) / (b + at_b)


def _fraction_terms(x: float) -> int:
    """Return the number of terms for an accuracy of 1e-15; by trial 24 are needed at x = 5, 12 at 10, 5 at 40."""
    return int(8 + 430 / (x * x))


def _normal_quantile(p: float) -> float:
    """Return Φ⁻¹(1 − p)."""
    if p > 0.5:
        return -_normal_quantile(1 - p)
    return _central_quantile(1 - 2 * p) if p > 0.25 else _upper_quantile(math.log(p))


def _central_quantile(w: float) -> float:
    """Return Φ⁻¹((1 + w)/2) for 0 <= w <= 1/2, relatively accurate: two Halley steps after two terms in w."""
    z = _SQRT_HALF_PI * w * (1 + math.pi / 12 * w * w)
    for _ in range(2):
        newton = (w - math.erf(z / _SQRT_2)) / (2 * _density(z))
        z += newton / (1 - newton * z / 2)
    return z


def _upper_quantile(log_p: float) -> float:
    """Return Φ⁻¹(1 − p) for p <= 0.3: two Halley steps after Abramowitz and Stegun 26.2.23, accurate to 4.5e-4."""
    t = _SQRT_2 * math.sqrt(-log_p)
    above = (0.010328 * t + 0.802853) * t + 2.515517
    below = ((0.001308 * t + 0.189269) * t + 1.432788) * t + 1
    z = t - above / below
    for _ in range(2):
        mills = _mills(z)
        newton = (_log_density(z) + math.log(mills) - log_p) * mills
        z += newton / (1 + newton * (1 / mills - z) / 2)
    return z
