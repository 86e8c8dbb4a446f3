"""Checks of every numeric mechanism: the stated errors against simulation, the density against its guarantee.

Statistical limits are 4.5 standard deviations; the seeds are fixed, so a test that passes always passes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

from ldp_budget.sampling import SeededStream

SIGMAS = 4.5
DRAWS = 10**6


def assert_errors_as_stated(mechanism: Any, seed: int) -> None:
    """A million values, each at one of five points: bias and MSE at every point are the stated ones."""
    points = np.linspace(float(mechanism.lower), float(mechanism.upper), 5)
    values = np.repeat(points, DRAWS // points.size)
    errors = mechanism.randomize(values, rng=SeededStream(seed)) - values
    for point in points:
        bias, mse = mechanism.error_at(float(point))
        assert_mean(errors[values == point], bias)
        assert_mean(errors[values == point] ** 2, mse)


def assert_mean(sample: np.ndarray, expected: float) -> None:
    assert abs(sample.mean() - expected) < SIGMAS * sample.std() / math.sqrt(sample.size)


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
