"""Means of capped values, from randomized answers to thresholds.

With the cap at an edge c of the bins of thresholds, the mean of min(x, c) is lower + the integral of 1 - F from lower to c. Each
bin j of length w_j has 1/B of the thresholds. A bit b of the bin shows 1 - F as g(b) = 1 - (b - q)/(P - q), without bias. So a
report adds B·w_j·(g(b) - g_j), below the cap, to lower + the sum of w_j·g_j. Any g_j leaves the mean as it is; that of the best
monotone F, by the answers that find the cap, makes the variance small.

A third of the bins, each the middle one of three, finds the cap alone: a cap from the same answers as the mean would lean
with their noise. Thresholds are public and no value chooses them, so given the cap the other answers are as if it had been
fixed. The neighbors of such a bin count for its length.

The variance is that of the answers, λ(1 - λ)/(P - q)² with the fitted λ, which never vanishes; or that of the reports, if it
is larger.
The interval is for the mean with this cap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ldp_budget.sdk.accepted_values import normal_ends

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


def finds_cap(bins: int) -> NDArray[np.bool_]:
    """Return the bins whose answers find the cap."""
    found: NDArray[np.bool_] = np.arange(bins) % 3 == 1
    return found


def _lengths(edges: Floats, place: int) -> Floats:
    """Return the length for which each bin counts, up to the cap; 0 for the bins that find it."""
    lengths = np.where(np.arange(len(edges) - 1) < place, np.diff(edges), 0.0)
    for finder in np.flatnonzero(finds_cap(len(lengths))):
        own, lengths[finder] = lengths[finder], 0.0
        beyond = finder + 1 >= place
        lengths[finder - 1] += own if beyond else own / 2
        if not beyond:
            lengths[finder + 1] += own / 2
    return lengths


class CappedMean(NamedTuple):
    """The mean of values of which those above the cap count as the cap, with its standard error and interval."""

    cap: float
    mean: float
    std_error: float
    low: float
    high: float


def capped_mean(
    shares: Floats, reports: float, keep: float, edges: Floats, place: int, fitted: Floats, level: float, **more: Any
) -> CappedMean:
    """Return the mean of values that are capped at an edge.

    Parameters:
        shares: the shares of the noes and the yeses of each bin among the reports, (2·bins,).
        reports: how many reports these are.
        keep: P, the probability of the true answer.
        edges: the ends of the bins, (bins + 1,).
        place: the place of the cap among the edges, at least 1.
        fitted: the best ascending probability of a yes in each bin, (bins,), by the bins that find the cap.
        level: the confidence level of the interval.
        more: `covariance`, that of the shares for a designed sample, and `freedom`, its degrees of freedom.
    """
    covariance, freedom = more.get("covariance"), more.get("freedom")
    gap, bins = 2 * keep - 1, len(edges) - 1
    lengths = _lengths(edges, place)
    above = 1 - (fitted - (1 - keep)) / gap
    shown = np.array([1 + (1 - keep) / gap, 1 - keep / gap])
    adds = (bins * lengths[:, None] * (shown - above[:, None])).reshape(-1)
    mean = float(edges[0] + lengths @ above + adds @ shares)
    drawn = bins * float(lengths**2 @ (fitted * (1 - fitted))) / gap**2
    seen = float(adds**2 @ shares - (adds @ shares) ** 2)
    variance = max(drawn, seen) / reports
    if covariance is not None:
        variance = max(variance, float(adds @ covariance @ adds))
    error, cap = variance**0.5, float(edges[place])
    low, high = normal_ends(np.array([mean]), np.array([error]), level, (float(edges[0]), cap), freedom)
    return CappedMean(cap, mean, error, float(low[0]), float(high[0]))


def planned_error(keep: float, edges: tuple[float, ...], probability: float) -> float:
    """Return the standard error of a capped mean from one report, for values that are uniform on the scale."""
    bins, gap = len(edges) - 1, 2 * keep - 1
    lengths = _lengths(np.array(edges), max(1, round(probability * bins)))
    rates = 1 - keep + gap * (np.arange(bins) + 0.5) / bins
    return float(np.sqrt(bins * (lengths**2 @ (rates * (1 - rates))))) / gap
