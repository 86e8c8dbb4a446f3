"""Two-way tables of two questions that the same respondents answered, each randomized by itself.

The noise of the two reports of one person is independent, so the product of the two contributions is unbiased for
1{both answers}. Cells, margins and their covariance follow from the moments of the contributions and their products.

The test of independence compares the cells with the products of the margins. Its statistic is a quadratic form with
the covariance that the reports have if the answers are independent. The design changes the distribution of the
statistic, which Rao and Scott's second-order correction takes into account (1984, as R's `svychisq`): so the level
holds under weights, clusters and randomization.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidParameter, NotSupported
from ..registry.ranking import rank_frequency

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .means import MeansEstimate, Survey

    Floats = NDArray[np.float64]

MOST_CELLS = 400
"""The most cells of a table: their covariance has as many rows and columns."""
_LEAST = 1e-9
"""The least eigenvalue of a covariance, as a share of the largest, that counts as more than rounding."""


def paired(first: Any, second: Any) -> Floats:
    """Return the contributions of both questions and their products, shape (n, d₁ + d₂ + d₁·d₂).

    Parameters:
        first: contributions to the first question, (n, d₁).
        second: contributions of the same respondents to the second question, (n, d₂), with noise of their own.

    Raises:
        InvalidParameter: the numbers of respondents differ, or there are more than `MOST_CELLS` cells.
    """
    one, two = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if len(one) != len(two):
        raise InvalidParameter("second", f"contributions of {len(one)} respondents", f"{len(two)}")
    if one.shape[1] * two.shape[1] > MOST_CELLS:
        raise InvalidParameter("table", f"at most {MOST_CELLS} cells", f"{one.shape[1]} times {two.shape[1]}")
    products = (one[:, :, None] * two[:, None, :]).reshape(len(one), -1)
    found: Floats = np.concatenate((one, two, products), axis=1)
    return found


class Independence(NamedTuple):
    """A test of independence: an F statistic with its degrees of freedom, and the p-value."""

    statistic: float
    freedom: tuple[float, float]
    p_value: float


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
        d1, d2, moments = self.rows, self.columns, self.survey.moments
        one, two = means.values[:d1], means.values[d1 : d1 + d2]
        deviations = (means.values[d1 + d2 :].reshape(d1, d2) - np.outer(one, two))[:-1, :-1].reshape(-1)
        change = self._change(one, two)
        found = change @ self.survey.design.covariance(moments, means.influence) @ change.T
        inverse = np.linalg.pinv(self._null(means.values), rcond=_LEAST, hermitian=True)
        effects = inverse @ found
        trace, squares = float(np.trace(effects)), float(np.sum(effects * effects.T))
        if not trace > 0:
            raise NotSupported("the answers do not vary, so their independence cannot be tested")
        freedom = trace**2 / squares
        statistic = float(deviations @ inverse @ deviations) / trace
        second = freedom * means.freedom
        return Independence(statistic, (freedom, second), float(fdtrc(freedom, second, statistic)))

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
        moments, d1 = self.survey.moments, self.rows
        weights = self.survey.weights.values
        both = np.tensordot(weights, moments.products, 1) / (weights @ moments.counts) - np.outer(values, values)
        first, second = slice(0, d1 - 1), slice(d1, d1 + self.columns - 1)
        return np.asarray(np.kron(both[first, first], both[second, second]), np.float64)


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
