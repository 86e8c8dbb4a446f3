"""Gaussian noise: the smallest sigma for a privacy target, and the privacy of a given sigma.

Adding N(0, sigma^2) to a value of sensitivity S gives, for the worst pair of inputs, the two output
distributions N(0, 1) and N(mu, 1) in units of sigma, with mu = S / sigma. Their privacy loss L is normal with
mean mu^2 / 2 and standard deviation mu. Write Phi and phi for the normal distribution function and density,

    c = epsilon / mu - mu / 2,    b = epsilon / mu + mu / 2 = c + mu,    m(x) = Phi(-x) / phi(x)  (Mills ratio).

The two deltas a sigma can be calibrated to are then, because phi(c) = e^epsilon phi(b),

    tail:   delta = P(L > epsilon)               = Phi(-c)                       = phi(c) m(c)
    exact:  delta = sup over sets of outputs of
            P(set) - e^epsilon P'(set)           = Phi(-c) - e^epsilon Phi(-b)   = phi(c) (m(c) - m(b)).

The exact one is solved for mu with ln delta as a function of ln mu, both increasing.
"""

from __future__ import annotations

import math
import sys
from numbers import Real
from typing import TYPE_CHECKING, TypeVar, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    _Array = NDArray[np.float64]

__all__ = ["gaussian_delta", "gaussian_log_delta", "gaussian_sigma", "mu_of_pure"]

_Number = TypeVar("_Number", float, "_Array")

_SQRT_2 = math.sqrt(2)
_SQRT_TAU = math.sqrt(math.tau)
_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_LOG_SQRT_TAU = math.log(math.tau) / 2

# mu is computed with a relative error below 3e-14: rounding in c acts like a relative change of mu by a few units
# in the last place, and the worst evaluation, m(c) - m(b) at mu = _SMALL_MU, is off by 3e-15 m(c) c, which moves
# mu by at most 3e-15 / _SMALL_MU = 6e-14 if all errors conspire (8e-15 is the largest seen). So this factor keeps
# every result on the private side, and its excess far below 1e-12.
_ROUND_UP = 1 + 3e-13

# Below this mu the difference m(c) - m(b) cancels and a Taylor series replaces it; the first term left out,
# (mu/2)^8 m^(9) / 9!, is then below 2e-16 of the first.
_SMALL_MU = 0.05
# From here on Mills ratios come from Laplace's continued fraction; erfc would soon lose digits and then underflow.
_LARGE_C = 5.0

# The relative difference of the two sigmas is about 1 / (2 epsilon): invisible from here on.
_METHODS_AGREE_EPSILON = 1e13
# Keeps mu = S / sigma away from subnormal numbers, which have no relative accuracy to promise.
_EPSILON_MIN = 1e-300

_MAX_STEPS = 30  # Four are enough for epsilon in [1e-8, 1000] and delta in [1e-300, 0.9].
_LAST_STEP = 1e-5  # Halley's error after a step is of the order of the step cubed.


@overload
def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = ..., *, method: str = ...) -> float: ...
@overload
def gaussian_sigma(
    epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = ..., *, method: str = ...
) -> _Array: ...
def gaussian_sigma(
    epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike = 1.0, *, method: str = "tail"
) -> float | _Array:
    """Return the smallest standard deviation of Gaussian noise that meets (epsilon, delta).

    Parameters
    ----------
    epsilon:
        Privacy loss, in nats; finite and at least 1e-300.
    delta:
        Strictly between 0 and 1. Both methods have a solution for every such delta.
    sensitivity:
        S, the largest distance between the values of any two inputs; finite and > 0. Sigma is in its unit.
    method:
        ``"tail"`` solves delta = Phi(S / (2 sigma) - epsilon sigma / S), that is P(L > epsilon) = delta for the
        privacy loss L. This is sufficient for (epsilon, delta)-differential privacy and not necessary: outputs
        with L > epsilon are counted in full, not only by their excess over e^epsilon. It has the closed form
        sigma = S (z + sqrt(z^2 + 2 epsilon)) / (2 epsilon) with z = Phi^-1(1 - delta).
        ``"exact"`` solves delta = Phi(S / (2 sigma) - epsilon sigma / S)
        - e^epsilon Phi(-S / (2 sigma) - epsilon sigma / S), which is necessary and sufficient. Its sigma is
        always the smaller one.

    Returns
    -------
    A float if every argument is a number, otherwise an array of the broadcast shape. Never below the true
    value, and at most 1e-12 above it, relatively.

    Raises
    ------
    ValueError
        An argument is out of range, or sigma would be larger than the largest float.

    References
    ----------
    Tail: document 004 of the project's sources. Exact: Balle and Wang, "Improving the Gaussian Mechanism for
    Differential Privacy", ICML 2018, Theorem 8.

    Examples
    --------
    >>> round(gaussian_sigma(1, 1e-5), 4), round(gaussian_sigma(1, 1e-5, method="exact"), 4)
    (4.3791, 3.7306)
    """
    _check_method(method)
    if isinstance(epsilon, Real) and isinstance(delta, Real) and isinstance(sensitivity, Real):
        return _sigma(float(epsilon), float(delta), float(sensitivity), method)
    return _sigma_array(epsilon, delta, sensitivity, method)


def gaussian_log_delta(epsilon: float, mu: float, *, method: str = "exact") -> float:
    """Return an upper bound on ln delta at `epsilon` for Gaussian noise with mu = sensitivity / sigma.

    `epsilon` is finite and >= 0, `mu` finite and > 0, else ValueError; `method` as in `gaussian_sigma`. The
    excess over the true value is at most 1e-13 (1 + |ln delta|), plus what a relative change of `mu` by 1e-15
    would add.
    """
    _check_method(method)
    if not 0 <= epsilon <= sys.float_info.max:
        raise ValueError(f"epsilon must be finite and >= 0, found {epsilon!r}")
    if not 0 < mu <= sys.float_info.max:
        raise ValueError(f"mu must be finite and > 0, found {mu!r}")
    c = min(epsilon / mu, 1e150) - mu / 2  # A smaller epsilon only adds to delta, and c * c stays finite.
    value, slope = _log_delta_tail(c, mu) if method == "tail" else _log_delta_exact(c, mu)
    return min(0.0, value + 5e-14 * (1 - value) + 1e-15 * slope)


def gaussian_delta(epsilon: float, mu: float, *, method: str = "exact") -> float:
    """Return an upper bound, never 0, on delta at `epsilon`; see `gaussian_log_delta`."""
    return math.nextafter(math.exp(gaussian_log_delta(epsilon, mu, method=method)), 1.0)


def mu_of_pure(epsilon: float) -> float:
    """Return mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)), for which every epsilon-DP mechanism is mu-GDP.

    The trade-off curve of randomised response, the worst of them, is made of two chords, and lies above that of
    N(0, 1) against N(mu, 1), which it touches in the corner. Rounded up, by at most 1e-12 relatively. Raises
    ValueError unless `epsilon` is finite and at least 1e-300.
    """
    _check_epsilon(epsilon)
    if epsilon < 1:
        z = _central_quantile(math.tanh(epsilon / 2))
    else:
        z = _upper_quantile(-epsilon - math.log1p(math.exp(-epsilon)))
    return 2 * z * _ROUND_UP


def _check_method(method: str) -> None:
    if method not in ("tail", "exact"):
        raise ValueError(f"method must be 'tail' or 'exact', found {method!r}")


def _check_epsilon(epsilon: float) -> None:
    if not _EPSILON_MIN <= epsilon <= sys.float_info.max:
        raise ValueError(f"epsilon must be finite and > 0 (at least {_EPSILON_MIN}), found {epsilon!r}")


def _check_target(epsilon: float, delta: float, sensitivity: float) -> None:
    _check_epsilon(epsilon)
    if not 0 < delta < 1:
        raise ValueError(f"delta must be > 0 and < 1, found {delta!r}")
    if not 0 < sensitivity <= sys.float_info.max:
        raise ValueError(f"sensitivity must be finite and > 0, found {sensitivity!r}")


# One number at a time: the standard library only.


def _sigma(epsilon: float, delta: float, sensitivity: float, method: str) -> float:
    _check_target(epsilon, delta, sensitivity)
    mu = _mu_tail(epsilon, delta)
    if method == "exact" and epsilon < _METHODS_AGREE_EPSILON:
        mu = _mu_exact(epsilon, delta, mu)
    # nextafter: a subnormal product is not accurate to _ROUND_UP, only to one unit in the last place.
    sigma = math.nextafter(sensitivity / mu * _ROUND_UP, math.inf)
    if sigma == math.inf:
        raise ValueError(f"sensitivity must leave sigma finite, found {sensitivity!r} with mu = {mu!r}")
    return sigma


def _mu_tail(epsilon: float, delta: float) -> float:
    """The root of mu^2 / 2 + z mu = epsilon, in the form in which nothing cancels."""
    z = _normal_quantile(delta)
    root = math.hypot(z, _SQRT_2 * math.sqrt(epsilon))
    return 2 * (epsilon / (z + root)) if z > 0 else root - z


def _mu_exact(epsilon: float, delta: float, mu_tail: float) -> float:
    """Solve ln delta(mu) = ln delta by Halley's method, from two lower bounds of the root.

    One is the tail's mu. The other solves epsilon = 0, that is delta = 2 Phi(mu / 2) - 1, with Polya's bound
    2 Phi(x) - 1 <= sqrt(1 - e^(-2 x^2 / pi)).
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


def _halley_step(missing: _Number, slope: _Number, cb: _Number) -> _Number:
    """The step in ln mu; the second derivative of ln delta is slope (1 + c b - slope)."""
    newton = missing / slope
    return newton / (1 + newton * (1 + cb - slope) / 2)


def _log_delta_exact(c: float, mu: float) -> tuple[float, float]:
    """ln delta and its derivative by ln mu, which is mu phi(c) / delta."""
    if c >= _LARGE_C:
        drop = _mills_drop(c, mu)
    elif mu < _SMALL_MU:
        drop = _mills_drop_series(c + mu / 2, mu, _mills(c + mu / 2))
    elif c >= 0:
        drop = _mills(c) - _mills(c + mu)
    else:  # delta may be close to 1: sum what is missing instead
        density = _density(c)
        value = math.log1p(-density * (_mills(-c) + _mills(c + mu)))
        return value, mu * density / math.exp(value)
    return _log_density(c) + math.log(drop), mu / drop


def _log_delta_tail(c: float, mu: float) -> tuple[float, float]:
    """ln delta and its derivative by ln mu, which is b phi(c) / delta."""
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
    """m(x) = Phi(-x) / phi(x) for x >= 0."""
    if x < _LARGE_C:
        return _SQRT_HALF_PI * math.exp(x * x / 2) * math.erfc(x / _SQRT_2)
    rest = 0.0
    for j in range(_fraction_terms(x), 0, -1):
        rest = j / (x + rest)
    return 1 / (x + rest)


def _mills_drop(c: float, mu: float) -> float:
    """m(c) - m(c + mu) for c >= _LARGE_C, without cancellation.

    m(x) = 1 / (x + k_1(x)) with k_j(x) = j / (x + k_j+1(x)); both fractions are summed from the inside out
    together with their difference k_j(c) - k_j(b) = k_j(c) k_j(b) (mu - k_j+1(c) + k_j+1(b)) / j.
    """
    b = c + mu
    at_c = at_b = difference = 0.0
    for j in range(_fraction_terms(c), 0, -1):
        at_c, at_b = j / (c + at_c), j / (b + at_b)
        difference = at_c * at_b * (mu - difference) / j
    return (mu - difference) / (c + at_c) / (b + at_b)


def _fraction_terms(x: float) -> int:
    """How many terms give a Mills ratio to 1e-15 for x >= _LARGE_C (found by trial: 33 at 4, 12 at 10, 5 at 40)."""
    return int(8 + 430 / (x * x))


def _mills_drop_series(x: _Number, mu: _Number, mills: _Number) -> _Number:
    """m(x - h) - m(x + h) with h = mu / 2 < 0.025: -2 (h m' + h^3 m''' / 3! + ...), given mills = m(x).

    The derivatives follow from m' = x m - 1 and m^(k+1) = x m^(k) + k m^(k-1).
    """
    first = x * mills - 1
    second = x * first + mills
    third = x * second + 2 * first
    fourth = x * third + 3 * second
    fifth = x * fourth + 4 * third
    seventh = x * (x * fifth + 5 * fourth) + 6 * fifth
    h2 = mu * mu / 4
    return -mu * (first + h2 * (third / 6 + h2 * (fifth / 120 + h2 * seventh / 5040)))


def _normal_quantile(p: float) -> float:
    """Phi^-1(1 - p)."""
    if p > 0.5:
        return -_normal_quantile(1 - p)
    return _central_quantile(1 - 2 * p) if p > 0.25 else _upper_quantile(math.log(p))


def _central_quantile(w: float) -> float:
    """Phi^-1((1 + w) / 2) for 0 <= w <= 1/2, to a relative accuracy: two Halley steps after two terms of its series."""
    z = _SQRT_HALF_PI * w * (1 + math.pi / 12 * w * w)
    for _ in range(2):
        newton = (w - math.erf(z / _SQRT_2)) / (2 * _density(z))
        z += newton / (1 - newton * z / 2)
    return z


def _upper_quantile(log_p: float) -> float:
    """Phi^-1(1 - p) for p <= 0.3: two Halley steps after Abramowitz and Stegun 26.2.23 (error below 4.5e-4)."""
    t = _SQRT_2 * math.sqrt(-log_p)
    above = (0.010328 * t + 0.802853) * t + 2.515517
    below = ((0.001308 * t + 0.189269) * t + 1.432788) * t + 1
    z = t - above / below
    for _ in range(2):
        mills = _mills(z)
        newton = (_log_density(z) + math.log(mills) - log_p) * mills
        z += newton / (1 + newton * (1 / mills - z) / 2)
    return z


# Whole arrays: numpy and scipy.special, imported here only.


def _sigma_array(epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike, method: str) -> _Array:
    import numpy as np

    e, d, s = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (epsilon, delta, sensitivity)))
    if e.size:
        _check_target(float(e.min()), float(d.min()), float(s.min()))  # a nan is both min and max
        _check_target(float(e.max()), float(d.max()), float(s.max()))
    mu = _mu_tail_array(e, d)
    if method == "exact":
        solved = _mu_exact_array(np.minimum(e, _METHODS_AGREE_EPSILON), d, mu)
        mu = np.where(e < _METHODS_AGREE_EPSILON, solved, mu)
    with np.errstate(over="ignore"):
        sigma = np.nextafter(s / mu * _ROUND_UP, np.inf)
    if np.any(np.isinf(sigma)):
        raise ValueError(f"sensitivity must leave sigma finite, found up to {float(s.max())!r}")
    return sigma


def _mu_tail_array(epsilon: _Array, delta: _Array) -> _Array:
    import numpy as np
    from scipy.special import ndtri

    z = -ndtri(delta)
    root = np.hypot(z, _SQRT_2 * np.sqrt(epsilon))
    return np.where(z > 0, 2 * (epsilon / (np.abs(z) + root)), root - z)


def _mu_exact_array(epsilon: _Array, delta: _Array, mu_tail: _Array) -> _Array:
    import numpy as np

    log_delta = np.log(delta)
    mu = np.maximum(mu_tail, np.sqrt(-math.tau * np.log1p(-delta * delta)))
    for _ in range(_MAX_STEPS):
        c = epsilon / mu - mu / 2
        value, slope = _log_delta_exact_array(c, mu)
        step = _halley_step(log_delta - value, slope, c * (c + mu))
        mu = mu * np.exp(step)
        if np.all(np.abs(step) * np.maximum(1.0, c + mu) < _LAST_STEP):
            return mu
    raise ArithmeticError("sigma not found for some elements of epsilon and delta")


def _log_delta_exact_array(c: _Array, mu: _Array) -> tuple[_Array, _Array]:
    """As `_log_delta_exact`; erfcx needs no continued fraction, and near the root c < 39, where the series holds."""
    import numpy as np
    from scipy.special import erfcx

    def mills(x: _Array) -> _Array:
        return _SQRT_HALF_PI * erfcx(x / _SQRT_2)

    small = mu < _SMALL_MU
    middle = c + mu / 2
    drop = np.where(small, _mills_drop_series(middle, mu, mills(middle)), mills(c) - mills(c + mu))
    density = np.exp(-c * c / 2) / _SQRT_TAU
    near_one = np.log1p(-density * (mills(np.abs(c)) + mills(c + mu)))
    far = (c >= 0) | small
    value = np.where(far, -c * c / 2 - _LOG_SQRT_TAU + np.log(drop), near_one)
    return value, np.where(far, mu / drop, mu * density / np.exp(value))
