"""Differences between groups, or between rounds, with intervals and p-values.

Both groups are parts of one sample, so the influences are subtracted: clusters that hold people of both groups, and
weights that were raked together, count. Rounds are groups as well, each with strata of its own; they count as independent,
which is the safe side where the same people answer alike.

References:
    G. Y. Zou and A. Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27 (2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.errors import InvalidParameter

from .weighted_means import MeansEstimate, Survey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_TINY = 1e-300
MOST_GROUPS = 20
"""The most groups that are compared, each with each other one."""


@dataclass(frozen=True)
class Difference:
    """The difference of the means of two groups.

    Parameters:
        values: the mean of the first group less that of the second, (d,).
        std_errors: their standard errors, (d,).
        freedom: the degrees of freedom of the standard errors.
        first: the first group.
        second: the second group.
        correlation: the correlation of their means, (d,).
    """

    values: Floats
    std_errors: Floats
    freedom: float
    first: MeansEstimate
    second: MeansEstimate
    correlation: Floats

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the ends of the confidence intervals, each (d,), from those of both groups (Zou and Donner 2008).

        The lower end is as far from the difference as the lower end of the first group and the upper end of the second
        are from their means, like standard errors. So the interval is in its range, and as skewed as those of the groups.

        Parameters:
            level: the probability with which each interval covers, above 0 and below 1.

        Raises:
            InvalidParameter: `level` is not between 0 and 1.
        """
        ends = [each.interval(level) for each in (self.first, self.second)]
        inside = [np.clip(each.values, *end) for each, end in zip((self.first, self.second), ends, strict=True)]
        difference: Any = np.subtract(*inside)
        margins: list[Floats] = []
        for side in (0, 1):
            one, two = np.abs(inside[0] - ends[0][side]), np.abs(inside[1] - ends[1][1 - side])
            margins.append(np.sqrt(np.maximum(one**2 + two**2 - 2 * self.correlation * one * two, 0.0)))
        low: Floats = difference - margins[0]
        high: Floats = difference + margins[1]
        return low, high

    @property
    def p_values(self) -> Floats:
        """The probability of a difference as large as this one, or larger, if there is none, (d,): Student's test."""
        from scipy.special import stdtr

        ratio = np.divide(self.values, self.std_errors, out=np.zeros(len(self.values)), where=self.std_errors > 0)
        found: Any = 2 * stdtr(self.freedom, -np.abs(ratio))
        return np.asarray(found, np.float64)


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
    one, two, both = (survey.variance(each) for each in (first.influence, second.influence, influence))
    alike = (one + two - both) / (2 * np.sqrt(np.maximum(one * two, _TINY)))
    return Difference(first.values - second.values, np.sqrt(variance), freedom, first, second, np.clip(alike, -1, 1))


def groups(survey: Survey, column: str, most: int | None = MOST_GROUPS) -> dict[str, MeansEstimate]:
    """Return the means of each group of a public column, by its value.

    A group of a single respondent has no interval, and is left out.

    Parameters:
        survey: the reports.
        column: a public column.
        most: the most groups; None for any number.

    Raises:
        InvalidParameter: the column is not public, or has more values.
    """
    _, levels = survey.moments.codes((column,))
    if most is not None and len(levels) > most:
        raise InvalidParameter("by", f"a column of at most {most} groups", f"{len(levels)} in {column}")
    cells = {value: survey.where(column, value) for (value,) in levels}
    return {value: survey.means(each) for value, each in cells.items() if survey.moments.counts[each].sum() > 1}


def pairs(
    survey: Survey, means: dict[str, MeansEstimate], apart: Sequence[int] | None = None
) -> Iterator[tuple[str, str, Difference]]:
    """Yield the names of each two groups, with their difference; the p-values are not adjusted for their number.

    Parameters:
        survey: the survey of the groups.
        means: the means of each group.
        apart: yield the changes to groups that follow so many places later, the later group first; None for all pairs.
    """
    names: Sequence[str] = list(means)
    two: Iterable[tuple[str, str]] = combinations(names, 2)
    if apart is not None:
        two = ((names[at], names[at - back]) for at in range(len(names)) for back in sorted({*apart}) if at >= back)
    for first, second in two:
        yield first, second, difference(survey, means[first], means[second])
