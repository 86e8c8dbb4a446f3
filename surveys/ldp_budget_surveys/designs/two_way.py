"""Two-way tables of two questions that the same respondents answered, each randomized by itself.

The noise of the two reports of one person is independent, so the product of the two contributions is unbiased for
1{both answers}. Cells, margins and their covariance follow from the moments of the contributions and their products.

The test of independence compares the cells with the products of the margins. It is a score test: its statistic is a
quadratic form of the deviations with the covariance that they have if the answers are independent. For n respondents of
equal weight, that is the Kronecker product of the covariances of the two questions' contributions, over n. It does not
depend on whether the sample happens to hold a rare pair of answers, as the observed covariance of the products does.

- Weights w multiply the covariance by n·Σw²/(Σw)².
- Strata and clusters change the distribution of the statistic. Rao and Scott's second-order correction (1984, as R's
  `svychisq`) takes that into account, with the effects V·S⁻¹ of the design: V is the observed covariance of the deviations,
  S the one that a sample of people drawn one by one with the same weights would have shown.
- If n of N people were asked, the hypothesis is about these N people. The contributions of question q have the covariance
  C_q, of which the answers alone have S_q = diag(p) - p·pᵀ. Then the deviations have C₁⊗C₂ - (n/N)·S₁⊗S₂.

References:
    J. N. K. Rao and A. J. Scott, On chi-squared tests for multiway contingency tables with cell proportions estimated from
        survey data, Annals of Statistics 12 (1984).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ldp_budget.errors import InvalidParameter, NotSupported

from ..planning.ranking import rank_frequency

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .weighted_means import MeansEstimate, Survey

    Floats = NDArray[np.float64]

MOST_CELLS = 400
"""The most cells of a table: their covariance has as many rows and columns."""
LEAST_EXPECTED = 5.0
"""The least expected number of respondents in each cell for which the test is accurate (Cochran 1954)."""
_LEAST = 1e-9
"""The least eigenvalue of a covariance, as a share of the largest, that counts as more than rounding."""


def paired(first: Any, second: Any, together: Any = None) -> Floats:
    """Return the contributions of both questions and their products, shape (n, d₁ + d₂ + d₁·d₂).

    Parameters:
        first: contributions to the first question, (n, d₁).
        second: contributions of the same respondents to the second question, (n, d₂), with noise of their own.
        together: contributions to both answers, (n, d₁, d₂), if the two have no noise of their own; else None, for products.

    Raises:
        InvalidParameter: the numbers of respondents differ, or there are more than `MOST_CELLS` cells.
    """
    one, two = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if len(one) != len(two):
        raise InvalidParameter("second", f"contributions of {len(one)} respondents", f"{len(two)}")
    if one.shape[1] * two.shape[1] > MOST_CELLS:
        raise InvalidParameter("table", f"at most {MOST_CELLS} cells", f"{one.shape[1]} times {two.shape[1]}")
    products = one[:, :, None] * two[:, None, :] if together is None else np.asarray(together)
    found: Floats = np.concatenate((one, two, products.reshape(len(one), -1)), axis=1)
    return found


class Independence(NamedTuple):
    """A test of independence: an F statistic with its degrees of freedom, and the p-value.

    `expected` is the least number of respondents that a cell would hold if the answers were independent; for weights,
    of as many respondents of equal weight as have the same variance. Below `LEAST_EXPECTED` the p-value is a rough guide.
    """

    statistic: float
    freedom: tuple[float, float]
    p_value: float
    expected: float


@dataclass(frozen=True)
class TwoWayTable:
    """A two-way table of a survey whose contributions are those of `paired`.

    Parameters:
        survey: the survey, with products of contributions.
        rows: d₁, the number of answers to the first question.
    """

    survey: Survey
    rows: int

    @property
    def columns(self) -> int:
        """d₂, the number of answers to the second question."""
        return int((self.survey.moments.sums.shape[1] - self.rows) // (self.rows + 1))

    def means(self) -> MeansEstimate:
        """Return the shares of the rows, of the columns and of the cells, row by row, in this order."""
        return self.survey.means()

    def independence(self) -> Independence:
        """Return the test of the hypothesis that the answers to the two questions are independent.

        Raises:
            NotSupported: an answer has no variance, or the design has too few degrees of freedom.
        """
        from scipy.special import fdtrc

        means = self.means()
        d1, d2 = self.rows, self.columns
        one, two = means.values[:d1], means.values[d1 : d1 + d2]
        deviations = (means.values[d1 + d2 :].reshape(d1, d2) - np.outer(one, two))[:-1, :-1].reshape(-1)
        squares = float(means.influence.scale**2 @ self.survey.moments.counts)
        covariance = self._null(means.values) * squares
        rank = int(np.linalg.matrix_rank(covariance, _LEAST, hermitian=True))
        if not rank:
            raise NotSupported("the answers do not vary, so their independence cannot be tested")
        trace, freedom = self._effects(means, rank)
        statistic = float(deviations @ np.linalg.pinv(covariance, rcond=_LEAST, hermitian=True) @ deviations) / trace
        second = freedom * means.freedom
        expected = float(np.outer(_shares(one), _shares(two)).min()) / squares
        return Independence(statistic, (freedom, second), float(fdtrc(freedom, second, statistic)), expected)

    def _effects(self, means: MeansEstimate, rank: int) -> tuple[float, float]:
        """Return the sum of the effects of strata and clusters, and the degrees of freedom that they leave."""
        design, moments = self.survey.design, self.survey.moments
        if not design.strata and design.clusters is None:
            return float(rank), float(rank)
        change = self._change(means.values[: self.rows], means.values[self.rows : self.rows + self.columns])
        found, simple = (
            change @ each.covariance(moments, means.influence) @ change.T for each in (design, type(design)())
        )
        effects = np.linalg.pinv(simple, rcond=_LEAST, hermitian=True) @ found
        trace, squares = float(np.trace(effects)), float(np.sum(effects * effects.T))
        if not trace > 0:
            raise NotSupported("the answers do not vary, so their independence cannot be tested")
        return trace, trace**2 / squares

    def _change(self, one: Floats, two: Floats) -> Floats:
        """Return the derivative of the deviations cell - row·column by the means, for all but the last answers."""
        d1, d2 = len(one), len(two)
        rows, columns = np.repeat(np.eye(d1), d2, axis=0), np.tile(np.eye(d2), (d1, 1))
        change = np.concatenate(
            (-rows * np.tile(two, d1)[:, None], -columns * np.repeat(one, d2)[:, None], np.eye(d1 * d2)), 1
        )
        kept = np.arange(d1 * d2).reshape(d1, d2)[:-1, :-1].reshape(-1)
        found: Floats = change[kept]
        return found

    def _null(self, values: Floats) -> Floats:
        """Return the covariance of the deviations of one report if the answers are independent."""
        survey, moments, d1 = self.survey, self.survey.moments, self.rows
        weights = survey.weights.values
        both = np.tensordot(weights, moments.products, 1) / (weights @ moments.counts) - np.outer(values, values)
        places = (slice(0, d1), slice(d1, d1 + self.columns))
        first, second = (both[place, place] for place in places)
        if survey.population is None:
            return np.asarray(np.kron(first[:-1, :-1], second[:-1, :-1]), np.float64)
        asked = survey.population.least_rate(moments, survey.weights, survey.design)
        answers = [_multinomial(_shares(values[place])) for place in places]
        first, second = (own + _positive(total - own) for own, total in zip(answers, (first, second), strict=True))
        whole = [each[:-1, :-1] for each in (first, second, *answers)]
        return np.asarray(np.kron(whole[0], whole[1]) - asked * np.kron(whole[2], whole[3]), np.float64)


def _shares(estimated: Floats) -> Floats:
    """Return estimated shares cut to [0, 1], which add up to 1."""
    cut = np.clip(estimated, 0.0, 1.0)
    found: Floats = cut / max(float(cut.sum()), _LEAST)
    return found


def _multinomial(shares: Floats) -> Floats:
    """Return the covariance of the indicators of a person's answer."""
    found: Floats = np.diag(shares) - np.outer(shares, shares)
    return found


def _positive(matrix: Floats) -> Floats:
    """Return the nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    found: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return found


class CellErrors(NamedTuple):
    """Root mean squared errors of the cells' shares for one respondent; divide them by √n for n respondents.

    `separate`: each question is randomized at half of ε, and each margin has an estimate of its own. `joint`: the pair
    of answers is randomized as one of d₁·d₂ answers at ε. `better` names the one with the lesser error.
    """

    separate: float
    joint: float

    @property
    def better(self) -> str:
        return "separate" if self.separate < self.joint else "joint"


def cell_errors(first: int, second: int, epsilon: Any) -> CellErrors:
    """Return the predicted errors of a two-way table, randomized separately and jointly at the same total ε.

    Each uses the mechanisms with the least errors. The prediction is for independent questions, whose answers are all
    equally common.

    Parameters:
        first: the number of answers to the first question.
        second: the number of answers to the second question.
        epsilon: the ε of a respondent's answers to both questions together.

    Raises:
        InvalidParameter: an argument has the wrong type or is out of its range.
    """
    squares = 1.0
    for answers in (first, second):
        squares *= _mean_square(answers, float(epsilon) / 2)
    cell = (1 / (first * second)) ** 2
    joint = _mean_square(first * second, epsilon)
    return CellErrors((squares - cell) ** 0.5, (joint - cell) ** 0.5)


def _mean_square(answers: int, epsilon: Any) -> float:
    """Return the mean square of a contribution of the best mechanism: its variance, and its squared mean 1/d."""
    error = float(rank_frequency(epsilon, answers, 1)[0]["mean_std_error"])
    return error**2 + 1 / answers
