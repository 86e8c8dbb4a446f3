"""Weighted means and shares of a designed sample, of all respondents or of a group, with intervals.

The mean of a group is the weighted sum of its contributions over the sum of its weights (Hájek's ratio). A group is a
domain of the whole sample: the other respondents count for the variance with an influence of their own, and no
stratum is cut in two.

An interval holds every mean in its range that a test does not reject; see `accepted_values`. The spread that a mean of θ gives
follows from the law of the contributions and the scales of the respondents, see `share_laws`. The design multiplies its
variance by an effect: the estimated variance over that of the law at the estimate.

- The effect is estimated from few large contributions if an answer is rare. So for the means above the estimate, one
  more respondent counts, with the largest weight, whose answer no report has shown; below the estimate, one who
  does not hold it. Without it, nobody with a large weight may have reported the answer.
- An effect below 1, as of strata or of values in the middle of their range, is raised by its own standard error.
- The degrees of freedom of clusters raise the effect to that of Student's t; then it is at least 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_budget._validation import check_share
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.sdk.accepted_values import GammaTails, Spread, accepted_means, quantile, stretch
from ldp_budget.sdk.share_laws import Scales, ShareLaw, share_spread

from .strata import Design, Influence

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .finite_population import FinitePopulation
    from .moments import Moments
    from .weights import Weights

    Floats = NDArray[np.float64]
    Cells = NDArray[np.bool_]


_CLOSE, _TINY = 1e-9, 1e-100
_LEAST_FREEDOM = 3.2
"""The degrees of freedom at which Student's t is three standard errors at 95 %: fewer widen intervals and cover no more."""
_FEW = 2.0
"""Holders of an answer whose contributions a variance has at least, as if not all respondents agreed (Agresti and Coull 1998)."""


@dataclass(frozen=True)
class Survey:
    """Reports of a designed sample: their moments, their weights, and the design by which they were drawn.

    Parameters:
        moments: the moments of the reports.
        weights: the weights of the respondents.
        design: the strata and clusters.
        law: the law of the contributions; None if it is unknown, as for numbers without a range.
        population: the finite population of the sample; None for a sample drawn with replacement.
        rounds: the column of the rounds in which the same people may have answered; None if each reported once.
    """

    moments: Moments
    weights: Weights
    design: Design = field(default_factory=Design)
    law: ShareLaw | None = None
    population: FinitePopulation | None = None
    rounds: str | None = None

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
        found = self._found(influence)
        if self.law is None:
            return found
        law = self.law.at(np.zeros(self.moments.sums.shape[1]))
        size = float(influence.scale**2 @ self.moments.counts)  # 1/n for equal weights
        people = np.inf if self.population is None else self.population.people
        few = _FEW * size**2 * (law.held + max(0.0, 1 - self.moments.reports / people))
        least = np.maximum(np.minimum(law.other, law.held) * size, few) if self.law.exact else few
        raised: Floats = np.maximum(found, least)
        return raised

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
        freedom = self.design.freedom(moments, influence, np.ones(1))[0]
        shape = self._shape(values, influence, kept)
        return MeansEstimate(reports, values, np.sqrt(variance), freedom, total, simple, influence, shape)

    def _shape(self, values: Floats, influence: Influence, kept: Cells) -> Shape | None:
        """Return the law of the means of a group as far as intervals need it; None if that of a contribution is unknown."""
        if self.law is None:
            return None
        moments, weights, law = self.moments, self.weights, self.law.around(values)
        scale, counts = influence.scale[kept], moments.counts[kept]
        missed = (
            (1.0, 1.0) if self.population is None else self.population.missed(moments, weights, self.design, kept)
        )
        scales = Scales.of(scale, counts, *missed)
        design = self.design
        simple = (
            weights.margins is None
            and not design.strata
            and design.clusters is None
            and np.ptp(scale) <= _CLOSE * scale.max()
        )
        if simple and law.exact:
            parts = [float(scale[here[kept]] ** 2 @ counts[here[kept]]) for here in self._each_round()]
            repeated = sum(part**0.5 for part in parts) ** 2 / sum(parts)
            return Shape(law, scales, repeated, repeated, equal=True)
        found = self._found(influence)
        share = np.clip(values, 0.0, 1.0)
        largest, cumulants = scales.largest, law.at(share)
        effects = []
        for side, own in ((-1, cumulants.other), (1, cumulants.held)):
            # As if one more respondent, with the largest weight, did not hold the answer, or held it.
            near = np.clip(share + side * largest, 0.0, 1.0)
            spread = share_spread(law, scales, near)
            shown = found if design.clusters is not None else found + largest**2 * (own + 1)
            if law.exact:
                shown = np.maximum(shown, spread.noise)
            ratio = shown / np.maximum(spread.variance, _TINY)
            if design.clusters is None:
                skewness = spread.third**2 * scales.squares / np.maximum(spread.variance, _TINY) ** 3
                fourths = float(scale**4 @ counts) / scales.squares**2
                raised = ratio * (1 + np.sqrt((skewness + 2) * fourths))
                effects.append(np.where(ratio >= 1, ratio, np.minimum(1.0, raised)))
            else:
                effects.append(np.maximum(1.0, ratio))
        freedom: list[Any] = [None, None]
        if design.clusters is not None:
            freedom = [np.maximum(design.freedom(moments, influence, each), _LEAST_FREEDOM) for each in effects]
        return Shape(law, scales, *effects, *freedom)

    def _found(self, influence: Influence) -> Floats:
        """Return the variance that the reports show, without the least that they must have.

        The answers of the same people in several rounds may agree. The standard error of a sum of correlated parts is at most
        the sum of their standard errors.
        """
        design, moments = self.design, self.moments
        if self.population is not None:
            return self.population.variance(moments, self.weights, design, influence)
        if self.rounds is None:
            return np.maximum(design.variance(moments, influence), 0.0)
        parts = (design.variance(moments, influence.of(here)) for here in self._each_round())
        errors: Floats = np.sum([np.sqrt(np.maximum(part, 0.0)) for part in parts], axis=0)
        return errors**2

    def _each_round(self) -> list[Cells]:
        """Return the cells of each round; all cells if there are none."""
        codes, levels = self.moments.codes(() if self.rounds is None else (self.rounds,))
        return [codes == place for place in range(len(levels))]


class Shape(NamedTuple):
    """The law of contributions, the scales of the respondents, and the effects of the design.

    `below` and `above` multiply the variance for the means below and above the estimate. `below_freedom` and `above_freedom`
    are their degrees of freedom, None if they need none. `equal`: all respondents count alike.
    """

    law: ShareLaw
    scales: Scales
    below: Any = 1.0
    above: Any = 1.0
    below_freedom: Any = None
    above_freedom: Any = None
    equal: bool = False

    def ends(self, values: Floats, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the intervals of the means."""
        check_share("level", level)

        def side(effect: Any, freedom: Any) -> Callable[[Any], Spread]:
            raised = effect if freedom is None else np.maximum(1.0, effect * stretch(level, freedom))
            return lambda share: share_spread(self.law, self.scales, share, raised, lattice=self.equal)

        tails = GammaTails(values, side(self.below, self.below_freedom), side(self.above, self.above_freedom))
        return accepted_means(tails, level)


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
        shape: the law of the means, from which intervals follow; None if it is unknown.
    """

    respondents: int
    values: Floats
    std_errors: Floats
    freedom: float
    total: float
    simple: Floats
    influence: Influence
    shape: Shape | None = None

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the ends of the confidence intervals, each (d,): all means from 0 to 1 that a test does not reject.

        Where the law of the contributions is unknown, they are Student's.

        Parameters:
            level: the probability with which each interval covers, above 0 and below 1.

        Raises:
            InvalidParameter: `level` is not between 0 and 1.
        """
        if self.shape is not None:
            return self.shape.ends(self.values, level)
        margin = quantile(level, self.freedom) * self.std_errors
        return self.values - margin, self.values + margin

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
