"""Differences between groups, or between rounds, with intervals and p-values.

Both groups are parts of one sample, so the influences are subtracted: clusters that hold people of both groups, and
weights that were raked together, count. Rounds are groups as well, each with strata of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidParameter
from ..sdk.accepted_values import quantile
from .means import MeansEstimate, Survey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MOST_GROUPS = 20
"""The most groups that are compared, each with each other one."""


@dataclass(frozen=True)
class Difference:
    """The difference of the means of two groups.

    Parameters:
        values: the mean of the first group less that of the second, (d,).
        std_errors: their standard errors, (d,).
        freedom: the degrees of freedom of the standard errors.
    """

    values: Floats
    std_errors: Floats
    freedom: int

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the ends of Student's confidence intervals, each (d,).

        Parameters:
            level: the probability with which each interval covers, above 0 and below 1.

        Raises:
            InvalidParameter: `level` is not between 0 and 1.
        """
        margin = quantile(level, self.freedom) * self.std_errors
        return self.values - margin, self.values + margin

    @property
    def p_values(self) -> Floats:
        """The probability of a difference as large as this one, or larger, if there is none, (d,): Student's test."""
        from scipy.special import stdtr

        ratio = np.divide(self.values, self.std_errors, out=np.zeros(len(self.values)), where=self.std_errors > 0)
        found: Floats = 2 * stdtr(self.freedom, -np.abs(ratio))
        return found


def difference(survey: Survey, first: MeansEstimate, second: MeansEstimate) -> Difference:
    """Return the difference between two groups of a survey.

    Parameters:
        survey: the survey of both groups.
        first: the means of a group.
        second: the means of another group.

    Raises:
        InvalidParameter: as `Survey.means`.
    """
    influence = first.influence.minus(second.influence)
    variance = survey.variance(influence)
    freedom = survey.design.freedom(survey.moments, influence, np.ones(1))[0]
    return Difference(first.values - second.values, np.sqrt(variance), freedom)


def groups(survey: Survey, column: str) -> dict[str, MeansEstimate]:
    """Return the means of each group of a public column, by its value.

    A group of a single respondent has no interval, and is left out.

    Parameters:
        survey: the reports.
        column: a public column.

    Raises:
        InvalidParameter: the column is not public, or has more than `MOST_GROUPS` values.
    """
    _, levels = survey.moments.codes((column,))
    if len(levels) > MOST_GROUPS:
        raise InvalidParameter("by", f"a column of at most {MOST_GROUPS} groups", f"{len(levels)} in {column}")
    cells = {value: survey.where(column, value) for (value,) in levels}
    return {value: survey.means(each) for value, each in cells.items() if survey.moments.counts[each].sum() > 1}


def pairs(survey: Survey, means: dict[str, MeansEstimate]) -> Iterator[tuple[str, str, Difference]]:
    """Yield the names of each two groups, with their difference; the p-values are not adjusted for their number."""
    names: Sequence[str] = list(means)
    for first, second in combinations(names, 2):
        yield first, second, difference(survey, means[first], means[second])
