"""Lower bounds of a privacy loss from counts, by the intervals of Clopper and Pearson (Biometrika 26, 1934).

With k hits among n the lower end is the p at which k or more hits have probability `risk`, the upper end the p at
which k or fewer have: exact for every n and p, no normal approximation. Both are quantiles of beta distributions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betainc, betaincc, betainccinv, betaincinv

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_STEP = 1e-9
"""By how much an end is moved outward, relative to itself, until its tail says that it is far enough out."""

_ROUNDING = 1e-12
"""More than the rounding errors of the last subtraction, division and logarithm together."""


def lower_end(hits: Any, total: int, risk: float) -> Floats:
    """The lower end for each of `hits` among `total`; hits may be expected ones, so no whole numbers."""
    counts = np.asarray(hits, dtype=np.float64)
    some = np.maximum(counts, np.finfo(np.float64).tiny)
    ends: Floats = np.where(counts > 0, betaincinv(some, np.maximum(total - counts, 0) + 1, risk), 0.0)
    return ends


def upper_end(hits: Any, total: int, risk: float) -> Floats:
    """The upper end for each of `hits` among `total`."""
    counts = np.asarray(hits, dtype=np.float64)
    rest = np.maximum(total - counts, np.finfo(np.float64).tiny)
    ends: Floats = np.where(counts < total, betainccinv(counts + 1, rest, risk), 1.0)
    return ends


def likely_bounds(
    first: Any, second: Any, totals: tuple[int, int], confidence: float, delta: float
) -> NDArray[np.float64]:
    """The bound for each pair of counts, -∞ where there is none; to choose by, not rounded outward."""
    risk = (1 - confidence) / 2
    more = lower_end(first, totals[0], risk) - delta
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds: Floats = np.log(np.maximum(more, 0.0)) - np.log(upper_end(second, totals[1], risk))
    return bounds


def certified_bound(first: int, second: int, totals: tuple[int, int], confidence: float, delta: float) -> float:
    """A lower bound of ε, at least 0, that exceeds the true one with probability at most 1 - `confidence`.

    `first` hits of the event among ``totals[0]`` reports of x, `second` among ``totals[1]`` of x'. The risk is
    split evenly over the two proportions. Rounded down.
    """
    risk = (1 - confidence) / 2
    more = _certain_lower_end(first, totals[0], risk) - delta
    if more <= 0:
        return 0.0
    loss = math.log(more / _certain_upper_end(second, totals[1], risk))
    return max(0.0, loss - _ROUNDING * (1 + abs(loss)) - _ROUNDING * delta / more)


def _certain_lower_end(hits: int, total: int, risk: float) -> float:
    end = float(lower_end(hits, total, risk))
    while hits and float(betainc(hits, total - hits + 1, end)) > risk * (1 - _STEP):
        end *= 1 - _STEP
    return end


def _certain_upper_end(hits: int, total: int, risk: float) -> float:
    end = float(upper_end(hits, total, risk))
    while hits < total and end < 1 and float(betaincc(hits + 1, total - hits, end)) > risk * (1 - _STEP):
        end = min(1.0, end * (1 + _STEP))
    return end
