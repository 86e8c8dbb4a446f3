"""Expectation maximization with smoothing (EMS): the distribution of the values behind square wave reports.

Source: Li, Wang, Lopuhaä-Zwakenberg, Skoric and Li, SIGMOD 2020, section 5.4. With A[o, v] the probability that a value
in bin v makes a report in bin o, and π the shares of the reports, a step takes the shares f of the values to

    S(f ∘ Aᵀ(π / Af)),

where S averages a bin with its neighbors by the weights 1/4, 1/2, 1/4. Steps are repeated until f stays the same. The
smoothing does not vanish with many reports: it is an assumption that near values are about as common.

The intervals of quantiles and bins hold for any values: they are those of `_distribution_bounds`. With `smooth`, they
assume what the smoothing assumes. Then two errors of the fixed point f are estimated. Its covariance is that of π, carried
through the derivative of the fixed point. Its bias is that of a distribution known to have the same fixed point: f itself, of
which the expected reports have the fixed point f + bias. Intervals allow for twice that bias, since f has lost some of it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.sdk.accepted_values import quantile, stretch
from ldp_budget.sdk.estimates import MeanEstimate

from ._distribution_bounds import distribution_bounds, margin_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

FINE = 256
"""The fewest bins of the values, and of the reports, in which a distribution is estimated."""
PROBABILITIES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""The probabilities of the quantiles that are listed."""
_STEPS, _MOST_ROUNDS = 25, 400
_STILL = 1e-9
_BIASES = 2.0


def transitions(keep: float, window: int, points: int, bins: int) -> Floats:
    """Return A for as many bins of the values 0..points as of the cells, for the window of `_moving_window`."""
    edges = np.ceil((points + window) * np.arange(bins + 1) / bins)[:, None]
    ends = points * np.arange(bins + 1) / bins

    def mean_below(ahead: Floats) -> Floats:
        """Return the mean of max(0, edge - value), over the values of each bin, where `ahead` is that of its ends."""
        squares = np.maximum(ahead, 0.0) ** 2 / 2
        means: Floats = (squares[:, :-1] - squares[:, 1:]) * bins / points
        return means

    inside = np.diff(mean_below(edges - ends) - mean_below(edges - ends - window), axis=0)
    matrix: Floats = keep / window * inside + (1 - keep) / points * (np.diff(edges, axis=0) - inside)
    return matrix


def smoothed(columns: Floats) -> Floats:
    """Return S times the columns."""
    padded = np.pad(columns, ((1, 1), *((0, 0),) * (columns.ndim - 1)), mode="edge")
    result: Floats = padded[:-2] / 4 + padded[1:-1] / 2 + padded[2:] / 4
    return result


def _step(matrix: Floats, shares: Floats, f: Floats) -> Floats:
    return smoothed(f * (shares / (matrix @ f) @ matrix))


def _change(matrix: Floats, shares: Floats, f: Floats) -> tuple[Floats, Floats]:
    """Return 1 less the derivative of a step by f, and its derivative by the shares of the reports."""
    expected = matrix @ f
    ratio = shares / expected
    kept = np.diag(ratio @ matrix) - f[:, None] * ((matrix.T * (ratio / expected)) @ matrix)
    return np.eye(len(f)) - smoothed(kept), smoothed(f[:, None] * matrix.T / expected)


def fixed_point(matrix: Floats, shares: Floats) -> Floats:
    """Return the fixed point of the steps, from the shares of the reports: by steps, and by Newton's method."""
    found: Floats = np.full(matrix.shape[1], 1 / matrix.shape[1])
    for _ in range(_MOST_ROUNDS):
        for _ in range(_STEPS):
            before, found = found, _step(matrix, shares, found)
        left = np.abs(found - before).sum()
        if left <= _STILL:
            break
        newton = found + np.linalg.solve(_change(matrix, shares, found)[0], _step(matrix, shares, found) - found)
        if newton.min() > 0 and np.abs(_step(matrix, shares, newton) - newton).sum() < left:
            found = newton
    return found


@dataclass(frozen=True, repr=False)
class DistributionEstimate(MeanEstimate):
    """The mean of the users' values, without bias, and their distribution, smoothed.

    `matrix`: see `transitions`. `counts`: the reports in each bin; weighted, where reports have weights. `shown`: the
    bins that are listed. `covariance`: that of the shares of the bins, for a designed sample; None if the reports are
    independent. `chances`: see `cumulative`. The interval of the mean is that of a `MeanEstimate`.
    """

    matrix: Floats = field(kw_only=True)
    counts: Ints = field(kw_only=True)
    shown: int = field(kw_only=True)
    lower: float = field(kw_only=True)
    upper: float = field(kw_only=True)
    covariance: Floats | None = field(default=None, kw_only=True)
    chances: Floats = field(kw_only=True)

    def to_rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        return self.bins(level)

    def details(self, level: float = 0.95) -> dict[str, Any]:
        values = self.quantiles(level=level)
        return {
            "quantiles": {str(row["quantile"]): row["value"] for row in values},
            "quantile_intervals": {str(row["quantile"]): [row["low"], row["high"]] for row in values},
            "bins": self.bins(level),
        }

    @functools.cached_property
    def shares(self) -> Floats:
        """The share of the users in each fine bin, (bins,)."""
        return fixed_point(self.matrix, self.counts / self.reports)

    @functools.cached_property
    def _errors(self) -> tuple[Floats, Floats]:
        """A square root of the covariance of `shares`, and their bias."""
        f, shares = self.shares, self.counts / self.reports
        slope = np.linalg.solve(*_change(self.matrix, shares, f))
        if self.covariance is None:
            root = (slope - (slope @ shares)[:, None]) * np.sqrt(shares / self.reports)
        else:
            values, vectors = np.linalg.eigh(self.covariance)
            root = slope @ (vectors * np.sqrt(np.maximum(values, 0)))
        return root, fixed_point(self.matrix, self.matrix @ f) - f

    def _margins(self, sums: Floats, level: float) -> Floats:
        """Return the margins of sums of the shares, whose weights are the rows of `sums`."""
        root, bias = self._errors
        freedom = None if self.covariance is None else self.freedom
        margins: Floats = quantile(level, freedom) * np.sqrt(((sums @ root) ** 2).sum(axis=1)) + _BIASES * np.abs(
            sums @ bias
        )
        return margins

    def _bounds(self, level: float) -> tuple[Floats, Floats]:
        """Return the least and the greatest share of the values up to each edge of the fine bins, (bins + 1,)."""
        if level not in self._known:
            variance = 0.0
            if self.covariance is not None:
                # The variances of the shares of the reports below each edge: a cumulative sum of both sides.
                below = np.diagonal(np.cumsum(np.cumsum(self.covariance, axis=0), axis=1))
                variance = float(below.max()) * (1.0 if self.freedom is None else stretch(level, self.freedom))
            margin = margin_of(self.reports / self.overlap, level, variance)
            shares = np.cumsum(self.counts / self.reports)[:-1]
            self._known[level] = distribution_bounds(self.chances, shares, margin)
        return self._known[level]

    @functools.cached_property
    def _known(self) -> dict[float, tuple[Floats, Floats]]:
        return {}

    def bins(self, level: float = 0.95, *, smooth: bool = False) -> list[dict[str, Any]]:
        """Return the shares of the listed bins: their ends, the share, and its confidence interval.

        Parameters:
            level: the probability with which each interval covers, above 0 and below 1.
            smooth: True for the narrower intervals that hold if near values are about as common.

        Raises:
            InvalidParameter: `level` is not between 0 and 1.
        """
        quantile(level)
        sums: Floats = np.repeat(np.eye(self.shown), len(self.shares) // self.shown, axis=1)
        shares = sums @ self.shares
        if smooth:
            margins = self._margins(sums, level)
            low, high = shares - margins, shares + margins
        else:
            least, most = (each[:: len(self.shares) // self.shown] for each in self._bounds(level))
            low, high = np.minimum(least[1:] - most[:-1], shares), np.maximum(most[1:] - least[:-1], shares)
        edges = np.linspace(self.lower, self.upper, self.shown + 1).tolist()
        return [
            {"low": start, "high": end, "share": share, "share_low": least, "share_high": most}
            for (start, end), share, least, most in zip(
                pairwise(edges),
                shares.tolist(),
                np.clip(low, 0, 1).tolist(),
                np.clip(high, 0, 1).tolist(),
                strict=True,
            )
        ]

    def quantiles(
        self, probabilities: tuple[float, ...] = PROBABILITIES, level: float = 0.95, *, smooth: bool = False
    ) -> list[dict[str, float]]:
        """Return quantiles with confidence intervals: the values at which the distribution function may reach them.

        Parameters:
            probabilities: those of the quantiles, from 0 to 1.
            level: the probability with which each interval covers, above 0 and below 1.
            smooth: True for the narrower intervals that hold if near values are about as common.

        Raises:
            InvalidParameter: `level` is not between 0 and 1.
        """
        quantile(level)
        reached = np.concatenate(([0.0], np.cumsum(self.shares)))
        edges = np.linspace(self.lower, self.upper, len(reached))
        value = np.interp(probabilities, np.clip(reached, 0, 1), edges)
        if smooth:
            margins = np.concatenate(([0.0], self._margins(np.tril(np.ones((len(self.shares),) * 2)), level)))
            # The first value that may reach a probability, and the last that may not.
            highest = np.maximum.accumulate(reached + margins)
            lowest = np.minimum.accumulate((reached - margins)[::-1])[::-1]
            low, high = (np.interp(probabilities, np.clip(curve, 0, 1), edges) for curve in (highest, lowest))
        else:
            least, most = self._bounds(level)
            # The last edge that cannot reach a probability, and the first that must.
            low = edges[np.maximum(np.searchsorted(most, probabilities, side="left") - 1, 0)]
            high = edges[np.searchsorted(least, probabilities, side="left")]
            value = np.clip(value, low, high)
        columns = (list(column) for column in (probabilities, value.tolist(), low.tolist(), high.tolist()))
        names = ("quantile", "value", "low", "high")
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
