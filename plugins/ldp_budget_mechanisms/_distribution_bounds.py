"""Bounds of a distribution function from square wave reports, whatever the distribution: smooth, whole numbers or a point.

The probability h(c, u) that a report is below c falls as the value u of its user grows. The shares G(c) of the reports below all c
are within a margin δ of their expectations at once, with the declared confidence (Dvoretzky, Kiefer and Wolfowitz 1956, with
the constant of Massart 1990). A distribution f of the values is possible if |Σ_u h(c, u) f_u - G(c)| ≤ δ for all c. Of
all possible distributions, F(x) has a least and a greatest value (Stark 1992):

- For one c alone: the values up to x have at least h(c, x), and all others at least h(c, top). So F(x) is at most
  (G(c) + δ - h(c, top))/(h(c, x) - h(c, top)); and at least (G(c) - δ - h(c, x))/(h(c, bottom) - h(c, x)).
- For all c together: a linear program over the shares of bins, in which h takes its ends in each bin on the safe side. It is
  tighter where the window of the mechanism is wider than a bin.

Both hold if the margin does, so the tighter one is taken. No smoothness is assumed, so the bounds do not shrink to a point.

References:
    P. Massart, The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality, Annals of Probability 18 (1990).
    P. B. Stark, Inference in infinite-dimensional inverse problems: discretization and duality, J. Geophys. Res. 97 (1992).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

BINS = 32
"""The bins of the values and of the reports in the linear programs: 62 of them take half a second."""
_LEAST_CONTRAST = 1e-9


def cumulative(keep: float, window: int, points: int, bins: int) -> Floats:
    """Return h at the inner edges of as many bins of the reports as of the values, for each edge of those, (bins - 1, bins + 1).

    The window of `_moving_window` starts at the value's point.
    """
    edges = np.ceil((points + window) * np.arange(1, bins) / bins)[:, None]
    ahead = np.clip(edges - points * np.arange(bins + 1) / bins, 0.0, window)
    found: Floats = keep / window * ahead + (1 - keep) / points * (edges - ahead)
    return found


def margin_of(reports: float, level: float, variance: float = 0.0) -> float:
    """Return δ for so many reports that count alike; or for the largest `variance` of a share, if that is larger."""
    return math.sqrt(2 * math.log(2 / (1 - level)) * max(variance, 1 / (4 * reports)))


def distribution_bounds(chances: Floats, below: Floats, margin: float) -> tuple[Floats, Floats]:
    """Return the least and the greatest F at each edge of the bins of the values, (bins + 1,).

    Parameters:
        chances: h, as of `cumulative`.
        below: G, the shares of the reports below the inner edges, (bins - 1,).
        margin: δ.
    """
    bottom, top = chances[:, :1], chances[:, -1:]
    low, high = (below + side * margin for side in (-1, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(chances - top > _LEAST_CONTRAST, (high[:, None] - top) / (chances - top), 1.0).min(axis=0)
        least = np.where(bottom - chances > _LEAST_CONTRAST, (low[:, None] - chances) / (bottom - chances), 0.0).max(
            axis=0
        )
    least, most = np.clip(least, 0, 1), np.clip(most, 0, 1)
    least[-1] = most[-1] = 1.0
    step = (len(least) - 1) // BINS
    for place, (lowest, highest) in _programs(chances, low, high, step).items():
        # F grows, so a bound at one edge also bounds it below and above.
        least[place:] = np.maximum(least[place:], lowest)
        most[: place + 1] = np.minimum(most[: place + 1], highest)
    return np.maximum.accumulate(least), np.minimum.accumulate(most[::-1])[::-1]


def _programs(chances: Floats, low: Floats, high: Floats, step: int) -> dict[int, tuple[float, float]]:
    """Return the least and the greatest F at each `step`-th edge, from linear programs; none for a window within a bin."""
    from scipy.optimize import linprog

    kept = slice(step - 1, None, step)
    at_edges = chances[kept, ::step]
    if float((at_edges[:, :-1] - at_edges[:, 1:]).max()) > 0.5 * float(at_edges[:, 0].max() - at_edges[:, -1].min()):
        return {}
    matrix = np.concatenate((-at_edges[:, :-1], at_edges[:, 1:]))
    limits = np.concatenate((-low[kept], high[kept]))
    found: dict[int, tuple[float, float]] = {}
    for place in range(1, BINS):
        ends = []
        for sign in (1.0, -1.0):
            cost = sign * (np.arange(BINS) < place)
            solved = linprog(cost, matrix, limits, np.ones((1, BINS)), np.ones(1), (0, 1), method="highs")
            if solved.status != 0:  # no distribution is within the margin
                return found
            ends.append(sign * float(solved.fun or 0.0))
        found[place * step] = (min(max(ends[0] - 1e-9, 0.0), 1.0), min(max(ends[1] + 1e-9, 0.0), 1.0))
    return found
