"""Noise added on a public grid without ends."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def with_noise(
    numbers: NDArray[np.float64], noise: NDArray[np.int64], grid: tuple[float, float], width: Fraction
) -> NDArray[np.float64]:
    """`numbers`, at most `width` above the origin of the grid (origin, step), with noise of whole steps added.

    The noise is a real number rounded down to steps. Rounded down too, and kept within the last full step of the
    width, two numbers differ by at most width/step steps, however the division rounds: the sensitivity is not
    stretched. Both roundings lose half a step on average, and the one step added gives it back.
    """
    origin, step = grid
    last = int(width / Fraction(step))
    cells = np.clip(np.floor((numbers - origin) / step), 0, last).astype(np.int64)
    noisy = (cells + noise).astype(np.float64)
    reports: NDArray[np.float64] = origin + (noisy + 1) * step
    return reports
