"""Weighted quantiles of a numeric question, with intervals for a designed sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.sdk.estimates import MeanEstimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ldp_budget.sdk.numeric_mechanism import NumericMechanism

    from .weighted_means import MeansEstimate, Survey


def indicators(bins: Any, number: int) -> NDArray[np.float64]:
    """Return the contributions of reports to the shares of bins, (n, number): 1 in the bin of the report, else 0."""
    found: NDArray[np.float64] = np.eye(number)[np.asarray(bins)]
    return found


def quantiles(
    mechanism: NumericMechanism, mean: MeansEstimate, bins: Survey, level: float = 0.95, cells: Any = None
) -> dict[str, Any]:
    """Return the quantiles of the weighted distribution and its bins, as `estimate --json` prints them.

    Parameters:
        mechanism: a mechanism that estimates a distribution, such as square-wave.
        mean: the weighted mean of the same respondents.
        bins: the survey of the `indicators` of `mechanism.report_bins`.
        level: the confidence level of the intervals.
        cells: the cells of the group; None for all.

    Raises:
        InvalidParameter: `level` is not between 0 and 1.
        NotSupported: the mechanism estimates no distribution.
    """
    shares = bins.means(cells)
    covariance = bins.design.covariance(bins.moments, shares.influence)
    # As many reports as count alike, for the weights of the respondents.
    alike = max(1, int(1 / (shares.influence.scale**2 @ bins.moments.counts)))
    plain = MeanEstimate(alike, float(mean.values[0]), float(mean.std_errors[0]), freedom=mean.freedom)
    return mechanism.distribution(shares.values, covariance, plain).details(level)
