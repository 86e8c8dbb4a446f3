"""Checks of the density of a numeric mechanism: against its guarantee, and its moments."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np


def worst_log_ratio(mechanism: Any, values: Sequence[float], reports: Sequence[float]) -> float:
    """The largest log-ratio of the densities of two values at one report, by trying them all."""
    table = np.array([[mechanism.density(report, value) for report in reports] for value in values])
    return max(float(np.log(p / q).max()) for p, q in itertools.permutations(table, 2))


def density_moments(mechanism: Any, value: float, cuts: Sequence[float]) -> tuple[float, float, float]:
    """(total, bias, MSE) of the density at a value, integrated by mpmath between the cuts."""
    return tuple(
        float(mpmath.quad(lambda y, power=power: (y - value) ** power * mechanism.density(float(y), value), cuts))
        for power in range(3)
    )
