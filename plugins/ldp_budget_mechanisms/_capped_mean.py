"""Means of capped values, from randomized answers to thresholds.

With the cap at an edge c of the bins of thresholds, the mean of min(x, c) is lower + the integral of 1 - F from lower to c. Each
bin j of length w_j has 1/B of the thresholds. A bit b of the bin shows 1 - F as g(b) = 1 - (b - q)/(P - q), without bias. So a
report adds B·w_j·(g(b) - g_j), below the cap, to lower + the sum of w_j·g_j. Any g_j leaves the mean as it is; that of the best
monotone F, by the answers that find the cap, makes the variance small.

A third of the bins, each the middle one of three, finds the cap alone: a cap from the same answers as the mean would lean
with their noise. Thresholds are public and no value chooses them, so given the cap the other answers are as if it had been
fixed. The neighbors of such a bin count for its length.

The interval is for the mean with this cap, and follows the rule of all intervals, with the spread that a mean θ gives. To
have the mean θ, some of the people with the values of g are moved to the lower end, or to the cap. So if the long bins below
the cap hold a few answers, all alike, the interval is still as wide as it has to be. In g, two more people count as if they had
said yes and no in each bin: few answers fit steps, which have no variance. The moments of what a report adds are linear in
1 - F. The design of the sample multiplies the variance by its effect, at least 1, and by that of few clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ldp_budget.sdk.accepted_values import GammaTails, Spread, accepted_means, stretch

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


_FEW = 2.0
"""So many people more than those who find the cap are taken to have answered in each bin, half of them yes."""


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
    found = (reports / 3) / (reports / 3 + _FEW)
    above = 0.5 + found * ((keep - fitted) / (2 * keep - 1) - 0.5)
    law = Law.of(edges, place, keep, above)
    adds = law.adds.reshape(-1)
    mean = law.middle + float(adds @ shares)
    drawn = float(law.spread(np.clip(mean, law.lowest, law.highest), reports).variance)
    seen = max(0.0, float(adds**2 @ shares - (adds @ shares) ** 2)) / reports
    if covariance is not None:
        seen = max(seen, float(adds @ covariance @ adds))
    effect = max(1.0, seen / drawn) * (1.0 if freedom is None else float(stretch(level, freedom)))

    def spread(value: Any) -> Spread:
        return law.spread(value, reports, effect)

    tails = GammaTails(np.array([mean]), spread, spread)
    low, high = accepted_means(tails, level, (law.lowest, law.highest))
    return CappedMean(law.highest, mean, max(drawn, seen) ** 0.5, float(low[0]), float(high[0]))


class Law(NamedTuple):
    """The law of what a report adds for any mean: `adds` for the noes and the yeses of each bin, with chances `noes` and `yeses`.

    `raw`: the first three moments of what is added if all people have the lowest value, the values of the fit, and the cap;
    these have the means `lowest`, `middle` and `highest`.
    """

    adds: Floats
    raw: Floats
    lowest: float
    middle: float
    highest: float

    @classmethod
    def of(cls, edges: Floats, place: int, keep: float, above: Floats) -> Law:
        """Return the law for a cap at an edge, if `above` are the shares of people above each bin."""
        gap, lengths = 2 * keep - 1, _lengths(edges, place)
        shown = np.array([1 + (1 - keep) / gap, 1 - keep / gap])
        adds = len(lengths) * lengths[:, None] * (shown - above[:, None])
        raw = []
        for shares in (np.zeros_like(above), above, np.ones_like(above)):
            yes = keep - gap * shares
            raw.append([float(((1 - yes) * adds[:, 0] ** k + yes * adds[:, 1] ** k).mean()) for k in (1, 2, 3)])
        return cls(adds, np.array(raw), float(edges[0]), float(edges[0] + lengths @ above), float(edges[place]))

    def spread(self, mean: Any, reports: float, effect: float = 1.0) -> Spread:
        """Return the spread of the mean of so many reports if the true one is `mean`; the design has this effect."""
        points = (self.lowest, self.middle, self.highest)
        first, second, third = (np.interp(mean, points, moments) for moments in self.raw.T)
        variance = (second - first**2) / reports
        cubed = (third - 3 * first * second + 2 * first**3) / reports**2
        step = effect * np.abs(cubed) / np.maximum(variance, 1e-300)
        return Spread(effect * variance, effect**2 * cubed, step)
