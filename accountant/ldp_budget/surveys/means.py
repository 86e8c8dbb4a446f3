"""Weighted means and shares of a designed sample, of all respondents or of a group, with intervals.

The mean of a group is the weighted sum of its contributions over the sum of its weights (Hájek's ratio). A group is a
domain of the whole sample: the other respondents count for the variance with an influence of their own, and no
stratum is cut in two.

Contributions of rare answers are skewed: a few are large. So a symmetric interval around the estimate is too low, and
misses the truth above more often than below. Intervals are shifted by (2t² + 1)/6 times the third cumulant of the
estimate over its variance (Hall 1992, section 2.6, without its polynomial), at most by half their margin.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidParameter, NotSupported
from ..sdk.confidence_intervals import quantile
from .strata import Design, Influence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .finite_population import FinitePopulation
    from .moments import Moments
    from .weights import Weights

    Floats = NDArray[np.float64]
    Cells = NDArray[np.bool_]


_FEW = 2.0
"""Least variance of a share, times n²: that of Agresti and Coull (1998) where all n respondents agree."""


@dataclass(frozen=True)
class Survey:
    """Reports of a designed sample: their moments, their weights, and the design by which they were drawn.

    Parameters:
        moments: the moments of the reports.
        weights: the weights of the respondents.
        design: the strata and clusters.
        least_noise: the least variance of a contribution that randomization alone gives, (d,); see
            `FrequencyMechanism.least_noise`. No variance is estimated to be less, nor less than that of a share in which
            all respondents happen to agree. None for numbers, and if it is unknown.
        population: the finite population of the sample; None for a sample drawn with replacement.
    """

    moments: Moments
    weights: Weights
    design: Design = field(default_factory=Design)
    least_noise: Floats | None = None
    population: FinitePopulation | None = None

    def where(self, column: str, value: str) -> Cells:
        """Return the cells of a group: True where the public column has the value.

        Raises:
            InvalidParameter: the column is not public, or no report has the value.
        """
        place = self.moments.place(column)
        cells = np.array([cell[place] == value for cell in self.moments.cells])
        if not cells.any():
            raise InvalidParameter(column, "a value that reports have", value)
        return cells

    def influence(self, values: Floats, cells: Cells, total: float) -> Influence:
        """Return the influence of each respondent on the means of a group, after the raking of the weights."""
        moments, weights = self.moments, self.weights
        scale = np.where(cells, weights.values, 0.0) / total
        shift = scale[:, None] * values
        margins = weights.margins
        if margins is not None:
            own = moments.sums - moments.counts[:, None] * values
            weighted = margins.T * (weights.values * moments.counts)
            slope, *_ = np.linalg.lstsq(weighted @ margins, margins.T @ (scale[:, None] * own), rcond=None)
            shift = shift + weights.values[:, None] * (margins @ slope)
        return Influence(scale, shift)

    def variance(self, influence: Influence) -> Floats:
        """Return the variance of estimates with these influences, (d,). Raises as `Design.variance`."""
        if self.population is None:
            found = np.maximum(self.design.variance(self.moments, influence), 0.0)
        else:
            found = self.population.variance(self.moments, self.weights, self.design, influence)
        if self.least_noise is None:
            return found
        size = float(influence.scale**2 @ self.moments.counts)  # 1/n for equal weights
        people = np.inf if self.population is None else self.population.people
        sampling = _FEW * size**2 * max(0.0, 1 - self.moments.reports / people)
        return np.maximum(found, np.maximum(self.least_noise * size, sampling))

    def means(self, cells: Cells | None = None) -> MeansEstimate:
        """Return the weighted means of the contributions, of all respondents or of the group in some cells.

        Parameters:
            cells: the cells of the group, as `where` returns them; None for all.

        Raises:
            InvalidParameter: a column of the design is not public, or a stratum has a single respondent or cluster.
            NotSupported: the group has fewer than two respondents.
        """
        moments, weights = self.moments, self.weights
        kept = np.ones(len(moments.cells), bool) if cells is None else cells
        reports = int(moments.counts[kept].sum())
        if reports < 2:
            raise NotSupported(f"an interval needs at least 2 respondents: got {reports}")
        share = np.where(kept, weights.values, 0.0)
        total = float(share @ moments.counts)
        values = share @ moments.sums / total
        influence = self.influence(values, kept, total)
        variance = self.variance(influence)
        spread = share @ moments.squares / total - values**2
        simple = np.maximum(spread, 0.0) * reports / (reports - 1) / reports
        freedom = self.design.freedom(moments, kept)
        skewness = self.design.skewness(moments, influence)
        errors, corrected = np.sqrt(variance), self.population is not None
        return MeansEstimate(reports, values, errors, freedom, total, simple, influence, skewness, corrected)


@dataclass(frozen=True)
class MeansEstimate:
    """Estimated means of d contributions, with standard errors that hold sampling and randomization.

    Parameters:
        respondents: the number of respondents in the group.
        values: the means, (d,); of answers, their shares.
        std_errors: their standard errors, (d,).
        freedom: the degrees of freedom of the standard errors.
        total: the sum of the weights of the group.
        simple: the variances that a simple random sample with as many respondents would have had, (d,).
        influence: the influences on the means.
        skewness: the third cumulants of the means over their variances, (d,), before a finite population correction.
        corrected: True if the standard errors have a finite population correction.
    """

    respondents: int
    values: Floats
    std_errors: Floats
    freedom: int
    total: float
    simple: Floats
    influence: Influence
    skewness: Floats
    corrected: bool = False

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the ends of Student's confidence intervals, shifted for skewness, each (d,).

        With a finite population correction, only the end that skewness moves outward is moved: how much of the
        skewness is the sample's, and thus corrected, is not known.

        Parameters:
            level: the probability with which each interval covers, above 0 and below 1.

        Raises:
            InvalidParameter: `level` is not between 0 and 1.
        """
        times = quantile(level, self.freedom)
        margin = times * self.std_errors
        shift = np.clip(self.skewness * (2 * times**2 + 1) / 6, -margin / 2, margin / 2)
        below, above = (np.minimum(shift, 0.0), np.maximum(shift, 0.0)) if self.corrected else (shift, shift)
        return self.values + below - margin, self.values + above + margin

    @property
    def design_effects(self) -> Floats:
        """The variance over that of a simple random sample of as many respondents, (d,); 1 where both are 0."""
        found: Floats = np.divide(
            self.std_errors**2, self.simple, out=np.ones(len(self.simple)), where=self.simple > 0
        )
        return found

    @property
    def design_effect(self) -> float:
        """The design effect of all means together: the sum of their variances over that of a simple random sample."""
        simple = float(self.simple.sum())
        return float((self.std_errors**2).sum()) / simple if simple > 0 else 1.0
