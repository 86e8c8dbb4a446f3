"""The statistics of the checks: how unlikely a sample is, and another one before it counts against a mechanism."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import chdtrc, ndtri

from ._outcome import Broken

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SEEDS = (20_260_921, 19_370_415)
"""Of the first sample, and of the second where the first looks wrong."""

LEAST_P = 1e-4
"""What is less likely than this in both samples is no accident: that has a chance of 1e-8."""

LEAST_EXPECTED = 10.0
"""What is expected less often than this is too rare to be missed."""


def chi_square_p(counts: Floats, expected: Floats) -> float | None:
    """The p-value of Pearson's chi-square test; cells where little is expected are put together.

    0 where something was seen that cannot be; None where only one cell is left, so that nothing can be compared.
    """
    if counts[expected <= 0].any():
        return 0.0
    order = np.argsort(expected, kind="stable")
    seen, due = counts[order], expected[order]
    few = int(np.searchsorted(np.cumsum(due), LEAST_EXPECTED)) + 1
    few = max(few, int(np.searchsorted(due, LEAST_EXPECTED)))
    seen = np.concatenate([[seen[:few].sum()], seen[few:]])
    due = np.concatenate([[due[:few].sum()], due[few:]])
    if len(due) < 2:
        return None
    return float(chdtrc(len(due) - 1, ((seen - due) ** 2 / due).sum()))


def most_deviations(figures: int) -> float:
    """How many standard deviations the worst of so many normal figures may be off."""
    return float(-ndtri(LEAST_P / (2 * figures)))


def twice(look: Callable[[int], str]) -> None:
    """Raise `Broken` with what `look` says against the mechanism where it says something for both seeds."""
    for seed in SEEDS:
        why = look(seed)
        if not why:
            return
    raise Broken(why)


def spread(samples: Floats) -> tuple[Any, Any, Any]:
    """Mean, variance and the relative standard deviation of that variance, of the columns of (R, k) samples.

    The variance of a sample variance is σ⁴(κ-1)/R with the kurtosis κ, 3 where samples are normal: then it is that
    of the chi-square distribution.
    """
    mean, variance = samples.mean(axis=0), samples.var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        kurtosis = np.where(variance > 0, ((samples - mean) ** 4).mean(axis=0) / variance**2, 3.0)
    return mean, variance, np.sqrt(np.maximum(kurtosis - 1, 1.0) / len(samples))
