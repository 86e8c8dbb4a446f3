"""Planned margins of quantiles and capped means from thresholds, for an assumed distribution F of the values.

Places are parts of the scale, from 0 to 1. The likelihood ratio of n reports rejects a place x as the p-quantile by about

    I(x) = ±2n·∫ KL(λ(F(y)) ‖ λ(p)) dy   from the quantile to x,

with λ the chance of a yes: n·(F - p)²(P - q)²/λ(1 - λ) while F is near p. For a line F, I is the third part of the cube of a
distance, whose law does not depend on n. By 400 simulated surveys, the ends of an interval lie 1.45 ± 0.78 of it from the
quantile, independently of each other; the estimate is off by 0.84, and goes along with both. `_DISTANCES` are the nodes of a
Gaussian quadrature with these moments, for any F. The margin is the mean distance of the estimate to the farther end.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import rel_entr

from ldp_budget.sdk.accepted_values import GammaTails, accepted_means

from ._capped_mean import Law

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_PARTS = 8
"""Steps in a bin, by which the information is summed."""
_MEAN, _SPREAD, _ALONG, _OWN = 1.45, 0.78, 0.27, 0.75


def _quadrature() -> tuple[Floats, Floats, Floats, Floats]:
    """Return distances of the lower end, the estimate and the upper end from the quantile, and their weights."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    a, b, c = np.array(list(product(nodes, repeat=3))).T
    chances = np.prod(np.array(list(product(weights / weights.sum(), repeat=3))), axis=1)
    return -(_MEAN + _SPREAD * b), _ALONG * (a - b) + _OWN * c, _MEAN + _SPREAD * a, chances


_DISTANCES = _quadrature()


def shares_at_edges(edges: Sequence[float], assumed: Sequence[tuple[float, float]]) -> Floats:
    """Return F at the edges of the bins: a line on the scale between the points that are assumed, and the ends.

    Parameters:
        edges: the ends of the bins of thresholds.
        assumed: values, ascending, each with the share of people at most at it.
    """
    places = np.linspace(0, 1, len(edges))
    values, shares = (np.array([float(each[part]) for each in assumed]) for part in (0, 1))
    at = np.interp(values, edges, places)
    return np.interp(places, np.concatenate(([0], at, [1])), np.concatenate(([0], shares, [1])))


def quantile_margin(keep: float, edges: Sequence[float], shares: Floats, probability: float, reports: float) -> float:
    """Return the planned margin of a quantile.

    Parameters:
        keep: P, the probability of the true answer.
        edges: the ends of the bins of thresholds.
        shares: F at the edges.
        probability: that of the quantile.
        reports: the number of reports.
    """
    places = np.linspace(0, 1, len(edges))
    fine = np.linspace(0, 1, _PARTS * (len(edges) - 1) + 1)
    rates = 1 - keep + (2 * keep - 1) * np.interp(fine, places, shares)
    rate = 1 - keep + (2 * keep - 1) * probability
    height = 2 * reports * (rel_entr(rates, rate) + rel_entr(1 - rates, 1 - rate))
    information = np.concatenate(([0], np.cumsum((height[1:] + height[:-1]) / 2))) * fine[1]
    own = float(np.interp(probability, shares + places * 1e-12, places))
    distances = np.cbrt(3 * (information - np.interp(own, fine, information))) + fine * 1e-12
    lower, middle, upper, chances = _DISTANCES
    wider = np.array([-1.0, 0.0, 1.0])[:, None] / (len(edges) - 1)  # the bins at both ends of the interval
    found = np.interp(np.array([lower, middle, upper]), distances, fine) + wider
    low, at, high = np.interp(np.clip(found, 0, 1), places, edges)
    return float(chances @ np.maximum(high - at, at - low))


def capped_margin(keep: float, edges: Sequence[float], shares: Floats, cap_at: float, reports: float) -> float:
    """Return the planned margin of a capped mean; as `quantile_margin`, with `cap_at` the probability of the cap."""
    place = max(1, int(np.searchsorted(shares, cap_at)))
    law = Law.of(np.array(edges), place, keep, 1 - (shares[1:] + shares[:-1]) / 2)

    def spread(value: Any) -> Any:
        return law.spread(value, reports)

    tails = GammaTails(np.array([law.middle]), spread, spread)
    low, high = accepted_means(tails, 0.95, (law.lowest, law.highest))
    return float(max(high[0] - law.middle, law.middle - low[0]))
