"""Constants and steps of the calibration of Gaussian noise, for numbers and arrays.

`gaussian_calibration` defines the symbols.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Array = NDArray[np.float64]

_Number = TypeVar("_Number", float, "_Array")

SQRT_2 = math.sqrt(2)
SQRT_TAU = math.sqrt(math.tau)
SQRT_HALF_PI = math.sqrt(math.pi / 2)
LOG_SQRT_TAU = math.log(math.tau) / 2

# The relative error of μ is below 4e-14: rounding in c acts like a change of μ by a few units in the last
# place, and the worst evaluation, m(c) − m(b) for c < 5, is off by at most 2e-15, which moves μ by
# 2e-15 / SMALL_MU (the largest error observed is 2.4e-14). So this factor keeps σ on the private side, with an
# excess far below 1e-12.
ROUND_UP = 1 + 3e-13

# Below this μ, m(c) − m(b) cancels and a Taylor series replaces it; the first term left out is below 2e-16.
SMALL_MU = 0.05
# The σ of the two methods differ by a factor of about 1 + 1/(2ε). From this ε on, doubles cannot show the difference.
METHODS_AGREE_EPSILON = 1e13
# Keeps μ away from subnormal numbers, which have no guaranteed relative accuracy.
EPSILON_MIN = 1e-300

MAX_STEPS = 30  # Four are enough for ε in [1e-8, 1000] and δ in [1e-300, 0.9].
LAST_STEP = 1e-5  # Halley's error after a step is of the order of the step cubed.


def check_epsilon(epsilon: float) -> None:
    if not EPSILON_MIN <= epsilon <= sys.float_info.max:
        raise ValueError(f"epsilon must be finite and > 0 (at least {EPSILON_MIN}): got {epsilon!r}")


def check_target(epsilon: float, delta: float, sensitivity: float) -> None:
    check_epsilon(epsilon)
    if not 0 < delta < 1:
        raise ValueError(f"delta must be > 0 and < 1: got {delta!r}")
    if not 0 < sensitivity <= sys.float_info.max:
        raise ValueError(f"sensitivity must be finite and > 0: got {sensitivity!r}")


def halley_step(missing: _Number, slope: _Number, cb: _Number) -> _Number:
    """Return the step in ln μ; the second derivative of ln δ is slope · (1 + cb − slope)."""
    newton = missing / slope
    return newton / (1 + newton * (1 + cb - slope) / 2)


def mills_fall_series(x: _Number, mu: _Number, mills: _Number) -> _Number:
    """Return (m(x − h) − m(x + h)) / μ = −(m′ + h² m‴/3! + …) with h = μ/2, for μ < SMALL_MU, given mills = m(x).

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
