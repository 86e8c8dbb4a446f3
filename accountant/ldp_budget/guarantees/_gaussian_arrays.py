"""Calibration of Gaussian noise for arrays of targets, with the formulas and bounds of `gaussian_calibration`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import erfcx, ndtri

from ._gaussian_common import (
    LAST_STEP,
    LOG_SQRT_TAU,
    MAX_STEPS,
    METHODS_AGREE_EPSILON,
    ROUND_UP,
    SMALL_MU,
    SQRT_2,
    SQRT_HALF_PI,
    SQRT_TAU,
    check_target,
    halley_step,
    mills_fall_series,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    _Array = NDArray[np.float64]


def sigma_array(epsilon: ArrayLike, delta: ArrayLike, sensitivity: ArrayLike, method: str) -> _Array:
    """Return the σ of `gaussian_sigma` as an array of the broadcast shape."""
    e, d, s = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (epsilon, delta, sensitivity)))
    if e.size:
        check_target(float(e.min()), float(d.min()), float(s.min()))  # a nan is both min and max
        check_target(float(e.max()), float(d.max()), float(s.max()))
    mu = _mu_tail_array(e, d)
    if method == "exact":
        differ = e < METHODS_AGREE_EPSILON
        mu[differ] = _mu_exact_array(e[differ], d[differ], mu[differ])
    with np.errstate(over="ignore"):
        sigma = np.nextafter(s / mu * ROUND_UP, np.inf)
    if np.any(np.isinf(sigma)):
        raise ValueError(f"sensitivity must leave sigma finite: got up to {float(s.max())!r}")
    return sigma


def _mu_tail_array(epsilon: _Array, delta: _Array) -> _Array:
    z = -ndtri(delta)
    root = np.hypot(z, SQRT_2 * np.sqrt(epsilon))
    return np.where(z > 0, 2 * (epsilon / (np.abs(z) + root)), root - z)


def _mu_exact_array(epsilon: _Array, delta: _Array, mu_tail: _Array) -> _Array:
    log_delta = np.log(delta)
    mu = np.maximum(mu_tail, np.sqrt(-math.tau * np.log1p(-delta * delta)))
    for _ in range(MAX_STEPS):
        c = epsilon / mu - mu / 2
        value, slope = _log_delta_exact_array(c, mu)
        step = halley_step(log_delta - value, slope, c * (c + mu))
        mu = mu * np.exp(step)
        if np.all(np.abs(step) * np.maximum(1.0, c + mu) < LAST_STEP):
            return mu
    raise ArithmeticError("sigma not found for some elements of epsilon and delta")


def _log_delta_exact_array(c: _Array, mu: _Array) -> tuple[_Array, _Array]:
    """Return ln δ and its slope, as `gaussian_calibration._log_delta_exact` does for one number.

    erfcx replaces the continued fraction. The series is used for any c, as a root has c < 39.
    """

    def mills(x: _Array) -> _Array:
        return SQRT_HALF_PI * erfcx(x / SQRT_2)

    small = mu < SMALL_MU
    series = mills_fall_series(c + mu / 2, mu, mills(c + mu / 2))
    fall = np.where(small, series, (mills(c) - mills(c + mu)) / mu)
    density = np.exp(-c * c / 2) / SQRT_TAU
    missing = density * (mills(np.abs(c)) + mills(c + mu))
    use_fall = small | (c >= 0)
    with np.errstate(divide="ignore", invalid="ignore"):  # numpy computes both sides for every element
        value = np.where(use_fall, -c * c / 2 - LOG_SQRT_TAU + np.log(mu * fall), np.log1p(-missing))
        return value, np.where(use_fall, 1 / fall, mu * density / np.exp(value))
