"""Noise added on a public grid without ends."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ldp_budget.authoring.programs import Program, float64, floored

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.authoring.domain import Interval


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


def noise_program(noise: str, bits: int, interval: Interval, grid: tuple[float, float], width: Fraction) -> Program:
    """The client of a mechanism with that `noise`, an operator that draws it with so many binary places."""
    origin, step = grid
    steps = (("noise", [noise, bits]), ("noisy", ["add", "value", "noise"]))
    given = floored(interval, step, int(width / Fraction(step)))
    return Program(given, steps, float64("noisy", origin, step, 1))
