"""The square wave mechanism: the distribution of a number in an interval, its quantiles and its mean.

Source: Li, Wang, Lopuhaä-Zwakenberg, Skoric and Li, SIGMOD 2020. A value x in [0, 1] makes a report in [-b, 1 + b],
with e^ε times the density within b of x. The bandwidth

    b = (εe^ε - e^ε + 1) / (2e^ε(e^ε - 1 - ε))

maximizes an upper bound of the information that a report has of a value. It falls from 1/2 at ε = 0.

That is the window of `_moving_window` with κ = 2b, where [-b, 1+b] is divided into M + K cells. A report is the number
that the class there gives to a cell, so the mean of reports estimates the mean of values without bias. The server
also counts the reports in equal bins of the cells, and estimates the distribution from the counts, see
`_smoothed_distribution`. That estimate is smoothed, and so biased where the distribution has steps or peaks narrower
than the window.
"""

from __future__ import annotations

import functools
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

from ldp_budget.guarantees import Guarantee, SymmetricPair
from ldp_budget.guarantees.fixed_point import float_below
from ldp_budget.sampling import ONE
from ldp_budget.sdk.parameters import integer

from ._moving_window import POINTS, MovingWindow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.estimates import MeanEstimate

    from ._binned_sum import BinnedSum
    from ._smoothed_distribution import DistributionEstimate

_WIDE = Context(prec=60)
"""Of the difference e^ε - 1 - ε, at the least ε, eight digits are lost."""


class SquareWave(MovingWindow):
    """Square wave reports, with estimates by expectation maximization with smoothing."""

    name = "square-wave"
    aliases = ("sw",)
    summary = "the distribution of a number in [lower, upper]: shares of bins, quantiles, and an unbiased mean"
    source = "Li, Wang, Lopuhaä-Zwakenberg, Skoric and Li, SIGMOD 2020"

    bins = integer("number of equal bins of the estimated distribution", at_least=2, at_most=256, default=32)

    @functools.cached_property
    def window(self) -> int:
        """K, the nearest to 2b·M."""
        epsilon = self.epsilon
        odds = _WIDE.exp(epsilon)
        above = _WIDE.add(_WIDE.multiply(_WIDE.subtract(epsilon, Decimal(1)), odds), Decimal(1))
        below = _WIDE.multiply(odds, _WIDE.subtract(_WIDE.subtract(odds, Decimal(1)), epsilon))
        return max(1, round(_WIDE.multiply(Decimal(POINTS), _WIDE.divide(above, below))))

    @property
    def parameters(self) -> dict[str, float]:
        """b, in units of upper - lower; and how often a report is within it."""
        return {"b": self.window / POINTS / 2, "p": float_below(Decimal(self.keep) / ONE)}

    @property
    def guarantee(self) -> Guarantee:
        return SymmetricPair(self.epsilon, self.tau)

    # -- server -----------------------------------------------------------------------------------------

    @property
    def _fine(self) -> int:
        """The number of bins in which the distribution is estimated, a multiple of the listed ones."""
        from ._smoothed_distribution import FINE

        return self.bins * -(-FINE // self.bins)

    def aggregate(self, reports: Any) -> BinnedSum:
        import numpy as np

        from ._binned_sum import BinnedSum

        bins, fine = self.report_bins(reports)
        total = BinnedSum.of(self.fingerprint, reports, self.grid(), squares=True)
        total.bins = np.bincount(bins, minlength=fine)
        return total

    def report_bins(self, reports: Any) -> tuple[NDArray[np.int64], int]:
        return self.cells_of(reports) * self._fine // self.cells, self._fine

    def distribution(self, shares: Any, covariance: Any, mean: MeanEstimate) -> DistributionEstimate:
        return self._distributed(mean, shares * mean.reports, covariance)

    def estimate(self, reports: Any) -> DistributionEstimate:
        total = self.total(reports)
        return self._distributed(super().estimate(total), total.bins, None)

    def _distributed(self, mean: MeanEstimate, counts: Any, covariance: Any) -> DistributionEstimate:
        """Return `mean` with the distribution of the values, from the weighted counts of the reports."""
        from ._binned_sum import extended
        from ._smoothed_distribution import DistributionEstimate

        lower, upper = self.interval.ends
        return extended(
            mean,
            DistributionEstimate,
            matrix=self._transitions,
            counts=counts,
            covariance=covariance,
            chances=self._chances,
            shown=self.bins,
            lower=lower,
            upper=upper,
        )

    @functools.cached_property
    def _transitions(self) -> NDArray[np.float64]:
        from ._smoothed_distribution import transitions

        return transitions(self.keep / ONE, self.window, POINTS, self._fine)

    @functools.cached_property
    def _chances(self) -> NDArray[np.float64]:
        from ._distribution_bounds import cumulative

        return cumulative(self.keep / ONE, self.window, POINTS, self._fine)
