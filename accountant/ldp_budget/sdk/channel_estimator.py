"""Estimators for a channel with few reports: counts by least squares, with their errors and intervals."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from ..errors import NotSupported
from .estimates import CountAggregate, CountEstimate, ShareCountLaw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from .share_laws import Cumulants

    Floats = NDArray[np.float64]


class ChannelEstimator:
    """The least-squares estimator for a channel.

    Parameters:
        channel: for each answer, the probability of each report.
        weights: for each answer, what each report adds to its count; those of `least_squares`. By default all reports
            count alike in the squares.
    """

    def __init__(
        self, channel: Sequence[Sequence[Fraction]], weights: Sequence[Sequence[Fraction]] | None = None
    ) -> None:
        self.matrix: Floats = np.array([[float(entry) for entry in column] for column in channel]).T
        """Shape (reports, answers)."""
        self._weights = weights

    @property
    def condition_number(self) -> float:
        return float(np.linalg.cond(self.matrix))

    @functools.cached_property
    def inverse(self) -> Floats:
        """W with W·matrix = 1, shape (answers, reports)."""
        reports, answers = self.matrix.shape
        if self._weights is not None:
            return np.array([[float(weight) for weight in row] for row in self._weights])
        if reports > answers:
            return np.linalg.pinv(self.matrix).astype(np.float64)
        return np.linalg.solve(self.matrix, np.eye(answers)).astype(np.float64)

    @functools.cached_property
    def spread(self) -> Floats:
        """Entry (v, k): the variance that one user with answer k adds to the estimated count of v."""
        spread: Floats = self.inverse**2 @ self.matrix
        # Around the mean, 1 of one's own answer: for an almost noiseless channel a mean square less 1 is all rounding.
        own = ((self.inverse - 1) ** 2 * self.matrix.T).sum(axis=1)
        np.fill_diagonal(spread, own)
        return spread

    def cumulants(self, shares: Floats | None = None) -> Cumulants:
        """Return those of the contributions of holders, and of the others, whose answers have these shares.

        Without shares, all others have the answer with the largest variance.
        """
        from ldp_budget.sdk.share_laws import Cumulants

        places = np.arange(len(self.spread))
        held = ((self.inverse - 1) ** 3 * self.matrix.T).sum(axis=1)
        if shares is None:
            weights = np.eye(len(places))[np.where(np.eye(len(places), dtype=bool), -1.0, self.spread).argmax(axis=1)]
        else:
            weights = np.where(np.eye(len(places), dtype=bool), 0.0, np.maximum(shares, 1e-9))
            weights = weights / weights.sum(axis=1, keepdims=True)
        cubed = self.inverse**3 @ self.matrix
        other, other_third = ((each * weights).sum(axis=1) for each in (self.spread, cubed))
        return Cumulants(other, other_third, np.diagonal(self.spread), held)

    def worst_at_zero(self) -> float:
        """The largest variance per user of the count of an answer without users, over all answers of the others."""
        return float(self.spread[~np.eye(len(self.spread), dtype=bool)].max())

    def estimate(self, total: CountAggregate) -> CountEstimate:
        counts = self.inverse @ total.support
        # The variance is linear in the users' answers; the unbiased counts replace them.
        shares = counts * (total.reports / counts.sum())
        variance = np.maximum(self.spread @ shares, total.reports * self.spread.min(axis=1))
        margins = self.inverse.min(axis=1), self.inverse.max(axis=1)
        return CountEstimate(
            total.reports,
            counts,
            np.sqrt(variance),
            law=ShareCountLaw(self.cumulants(np.clip(counts / total.reports, 0, 1))),
            support=total.support,
            fake_margins=margins,
            channel=self.matrix,
        )


def least_squares(channel: Sequence[Sequence[Fraction]]) -> list[list[Fraction]]:
    """Return W = (AᵀD⁻¹A)⁻¹AᵀD⁻¹ exactly, with the channel A and the mean law of its answers as D.

    W[v][r] is what report r adds to the count of v. It is unbiased for any users, and has the least variance where all
    answers are equally frequent.

    Parameters:
        channel: for each answer, the probability of each report; a report without any probability is left out.

    Raises:
        NotSupported: the reports do not separate all answers.
    """
    answers, reports = len(channel), len(channel[0])
    mean = [sum((row[r] for row in channel), Fraction(0)) / answers for r in range(reports)]
    weighted = [[p / m if m else Fraction(0) for p, m in zip(row, mean, strict=True)] for row in channel]
    gram = [[sum(map(Fraction.__mul__, w, row), Fraction(0)) for row in channel] for w in weighted]
    inverse = _inverted(gram)
    columns = list(zip(*weighted, strict=True))
    return [[sum(map(Fraction.__mul__, row, column), Fraction(0)) for column in columns] for row in inverse]


def _inverted(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    size = len(matrix)
    rows = [[*row, *(Fraction(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for column in range(size):
        pivot = next((r for r in range(column, size) if rows[r][column]), None)
        if pivot is None:
            raise NotSupported("the reports do not separate all answers, so they cannot be counted")
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [x / rows[column][column] for x in rows[column]]
        for r in range(size):
            if r != column and rows[r][column]:
                times = rows[r][column]
                rows[r] = [x - times * y for x, y in zip(rows[r], rows[column], strict=True)]
    return [row[size:] for row in rows]
