"""Quantiles from randomized answers to thresholds: the likelihood of a distribution function, which is monotone.

Of m reports with thresholds in a bin, the number of yeses has the probability λ = q + (P - q)·F, with F the mean of the
distribution function over the bin. So the best F is an isotonic regression of the shares of yeses, cut to [q, P].
A quantile is at an edge x between bins if F is at most p in all bins below x, and at least p in all above. With L₀ the best
log-likelihood of such an F and L that of any, 2(L - L₀) has for a smooth F the limit of Banerjee and Wellner
(Annals of Statistics 2001), the same for every F. The interval is the hull of all x where it is not too large.

For a designed sample the counts are those of as many reports as count alike, and 2(L - L₀) is divided by the design effect
of the shares, at least 1.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import InvalidParameter
from ldp_budget.sdk.accepted_values import quantile as normal_quantile
from ldp_budget.sdk.accepted_values import stretch
from ldp_budget.sdk.estimates import MeanEstimate

from ._capped_mean import CappedMean, capped_mean, finds_cap

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_LIMIT = ((0.0, 0.0), (0.5, 0.2851), (0.8, 0.9873), (0.9, 1.5988), (0.95, 2.2692), (0.99, 3.8363))
"""Points of the quantile function of the limit of the likelihood ratio."""


def critical_value(level: float) -> float:
    """Return the value that the limit of the likelihood ratio exceeds with probability 1 - level.

    Between the tabulated points it is a line, which is above the convex function; beyond the last one it is the quantile of
    χ² with one degree of freedom, which is larger.

    Parameters:
        level: a number above 0 and below 1.
    """
    if level > _LIMIT[-1][0]:
        return normal_quantile(level) ** 2
    levels, values = zip(*_LIMIT, strict=True)
    return float(np.interp(level, levels, values))


def isotonic(values: Floats, weights: Floats) -> Floats:
    """Return the ascending numbers with the least weighted squares to `values`.

    Parameters:
        values: numbers, (n,).
        weights: weights >= 0, (n,). A value without weight takes the level before it.
    """
    return prefix_fits(values, weights)[-1]


def prefix_fits(values: Floats, weights: Floats) -> list[Floats]:
    """Return the isotonic fits of the first 0, 1, …, n values, by pooling neighbours that fall.

    Parameters:
        values: numbers, (n,).
        weights: weights >= 0, (n,). A value without weight takes the level before it, and 0 if there is none.
    """
    level: list[float] = []
    weight: list[float] = []
    size: list[int] = []
    found = [np.zeros(0)]
    for value, its in zip(values.tolist(), weights.tolist(), strict=True):
        if its <= 0 and size:
            size[-1] += 1
        else:
            level, weight, size = [*level, value if its > 0 else 0.0], [*weight, its], [*size, 1]
        while len(level) > 1 and level[-2] >= level[-1]:
            high, more, count = level.pop(), weight.pop(), size.pop()
            whole = weight[-1] + more
            level[-1], weight[-1] = (level[-1] * weight[-1] + high * more) / whole, whole
            size[-1] += count
        found.append(np.repeat(level, size))
    return found


@dataclass(frozen=True, repr=False)
class QuantileEstimate(MeanEstimate):
    """The mean of the users' values, and their quantiles.

    `counts`: the noes and the yeses of each bin of thresholds, (2·bins,); weighted, where reports have weights. `keep`: P.
    `edges`: the ends of the bins, (bins + 1,). `covariance`: that of the shares of `counts`, for a designed sample.
    `listed`: the probabilities of the quantiles of `details`. `cap_at`: the probability of the quantile at which values are
    capped, for a capped mean in their place.
    """

    counts: Any = field(kw_only=True)
    keep: float = field(kw_only=True)
    edges: tuple[float, ...] = field(kw_only=True)
    covariance: Any = field(default=None, kw_only=True)
    listed: tuple[float, ...] = field(kw_only=True)
    cap_at: float | None = field(default=None, kw_only=True)

    def details(self, level: float = 0.95) -> dict[str, Any]:
        """Return the quantiles with their intervals; or the capped mean with its own, and the cap.

        Parameters:
            level: the confidence level of the intervals, above 0 and below 1.

        Raises:
            InvalidParameter: `level` is not between 0 and 1.
        """
        if self.cap_at is not None:
            return self.capped(self.cap_at, level)._asdict()
        found = {}
        for probability in self.listed:
            value, low, high = self.quantile(probability, level)
            found[str(probability)] = {"estimate": value, "low": low, "high": high}
        return {"quantiles": found}

    def quantile(self, probability: float, level: float = 0.95) -> tuple[float, float, float]:
        """Return the quantile of a probability, and the ends of its interval, in the unit of the values.

        Parameters:
            probability: above 0 and below 1.
            level: the confidence level of the interval, above 0 and below 1.

        Raises:
            InvalidParameter: an argument is not between 0 and 1.
        """
        normal_quantile(level)
        if not 0 < probability < 1:
            raise InvalidParameter("probability", "a number above 0 and below 1", probability)
        share = 1 - self.keep + (2 * self.keep - 1) * probability
        ratios = 2 * (self._best - self._best_through(share))
        accepted = np.flatnonzero(ratios <= critical_value(level) * self._stretch(level))
        at = int(np.searchsorted(self._fitted, share))
        ends = accepted if len(accepted) else np.array([at])
        low, high = int(min(ends[0], at)), int(max(ends[-1], at))
        # The quantile may be anywhere in the bins at the ends of the interval.
        edges = self.edges
        return edges[at], edges[max(low - 1, 0)], edges[min(high + 1, len(edges) - 1)]

    def capped(self, probability: float, level: float = 0.95) -> CappedMean:
        """Return the mean of the values, those above a quantile counting as that quantile.

        Parameters:
            probability: that of the quantile, above 0 and below 1.
            level: the confidence level of the interval, above 0 and below 1.

        Raises:
            InvalidParameter: an argument is not between 0 and 1.
        """
        counts = np.asarray(self.counts, dtype=np.float64)
        finds = np.repeat(finds_cap(len(self.edges) - 1), 2)
        finders = replace(self, counts=np.where(finds, counts, 0.0))
        cap = finders.quantile(probability, level)[0]
        place = max(1, self.edges.index(cap))
        return capped_mean(
            counts / counts.sum(),
            self.reports / self.overlap,
            self.keep,
            np.array(self.edges),
            place,
            finders._fitted,
            level,
            covariance=self.covariance,
            freedom=None if self.covariance is None else self.freedom,
        )

    @functools.cached_property
    def _answers(self) -> tuple[Floats, Floats]:
        """The numbers of yeses and of reports of each bin."""
        counts = np.asarray(self.counts, dtype=np.float64).reshape(-1, 2) / self.overlap
        return counts[:, 1], counts.sum(axis=1)

    @functools.cached_property
    def _fitted(self) -> Floats:
        """The best probability of a yes in each bin, ascending."""
        return np.clip(isotonic(*self._shares), 1 - self.keep, self.keep)

    @functools.cached_property
    def _shares(self) -> tuple[Floats, Floats]:
        """The share of yeses in each bin, 0 without reports; and the number of reports."""
        yes, reports = self._answers
        return np.divide(yes, reports, out=np.zeros_like(yes), where=reports > 0), reports

    @property
    def _best(self) -> float:
        return float(self._likelihood(self._fitted).sum())

    def _likelihood(self, fitted: Floats) -> Floats:
        yes, reports = self._answers
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(yes > 0, yes * np.log(fitted), 0) + np.where(
                reports > yes, (reports - yes) * np.log1p(-fitted), 0
            )
        return np.asarray(parts)

    @functools.cached_property
    def _halves(self) -> tuple[Floats, Floats]:
        """The best fits of the bins below each edge, and of those above it, each (bins + 1, bins)."""
        shares, reports = self._shares
        number = len(shares)
        below, above = np.zeros((number + 1, number)), np.zeros((number + 1, number))
        for edge, fit in enumerate(prefix_fits(shares, reports)):
            below[edge, :edge] = fit
        for edge, fit in enumerate(prefix_fits(1 - shares[::-1], reports[::-1])):
            above[number - edge, number - edge :] = 1 - fit[::-1]
        least, most = 1 - self.keep, self.keep
        return np.clip(below, least, most), np.clip(above, least, most)

    def _best_through(self, share: float) -> Floats:
        """Return the best log-likelihood with at most `share` in all bins below each edge, and at least it above."""
        below, above = self._halves
        number = below.shape[1]
        is_below = np.arange(number) < np.arange(number + 1)[:, None]
        fitted = np.where(is_below, np.minimum(below, share), np.maximum(above, share))
        best: Floats = self._likelihood(fitted).sum(axis=1)
        return best

    def _stretch(self, level: float) -> float:
        """Return the design effect of the shares, at least 1, and that of few clusters."""
        if self.covariance is None:
            return 1.0
        shares = np.asarray(self.counts, dtype=np.float64) / self.reports
        simple = float((shares * (1 - shares)).sum()) / self.reports
        effect = max(1.0, float(np.trace(self.covariance)) / simple) if simple else 1.0
        return effect * (1.0 if self.freedom is None else stretch(level, self.freedom))
