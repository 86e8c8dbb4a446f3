"""What the server and the client of a substitution make of its matrix: the inverse, the errors, and the draws."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.authoring.estimates import CountAggregate, CountEstimate
from ldp_budget.authoring.packing import as_reports
from ldp_budget.errors import NotSupported
from ldp_budget.randomness import integers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from ldp_budget.randomness import Stream

    Floats = NDArray[np.float64]


class MatrixEstimator:
    """The estimator of least squares for a channel: for each answer, the probability of each report."""

    def __init__(self, channel: Sequence[Sequence[Fraction]]) -> None:
        self.matrix: Floats = np.array([[float(entry) for entry in column] for column in channel]).T
        """Shape (reports, answers)."""

    @property
    def condition_number(self) -> float:
        return float(np.linalg.cond(self.matrix))

    @functools.cached_property
    def inverse(self) -> Floats:
        """W with W·matrix = 1, shape (answers, reports)."""
        reports, answers = self.matrix.shape
        if reports > answers:
            return np.linalg.pinv(self.matrix).astype(np.float64)
        return np.linalg.solve(self.matrix, np.eye(answers)).astype(np.float64)

    @functools.cached_property
    def spread(self) -> Floats:
        """Entry (v, k): the variance that one user with answer k adds to the estimated count of v."""
        spread: Floats = self.inverse**2 @ self.matrix
        # Around the mean, 1 of one's own answer: a mean square less 1 is all rounding where a channel hardly errs.
        own = ((self.inverse - 1) ** 2 * self.matrix.T).sum(axis=1)
        np.fill_diagonal(spread, own)
        return spread

    def worst_at_zero(self) -> float:
        """The largest variance per user of the count of an answer nobody has, whatever the others have."""
        return float(self.spread[~np.eye(len(self.spread), dtype=bool)].max())

    def estimate(self, total: CountAggregate) -> CountEstimate:
        counts = self.inverse @ total.support
        # The variance is that of the users' answers; the estimated shares stand in for them.
        shares = np.clip(counts, 0, None)
        variance = self.spread @ (shares * (total.reports / shares.sum()))
        return CountEstimate(total.reports, counts, np.sqrt(variance))


def draw_rows(stream: Stream, answers: NDArray[np.int64], total: int, weights: list[list[int]]) -> NDArray[Any]:
    """A report for each answer, (n,), by the whole weights of its column, each of which sums to `total`."""
    draws = integers(stream, total, len(answers))
    reports = np.empty(len(answers), dtype=np.min_scalar_type(len(weights[0]) - 1))
    users = np.argsort(answers, kind="stable")
    ends = np.cumsum(np.bincount(answers, minlength=len(weights)))
    for column, same in zip(weights, np.split(users, ends[:-1]), strict=True):
        reports[same] = np.searchsorted(np.cumsum(column), draws[same], side="right")
    return reports


def count_rows(reports: Any, kinds: int) -> tuple[int, NDArray[np.int64]]:
    """How many reports there are, and how often each of the `kinds` was sent. Raises `NotSupported` for others."""
    rows = as_reports(reports)
    if rows.dtype.kind not in "iu" or rows.ndim != 1:
        raise NotSupported(f"expected reports of integers, shape (n,); found {rows.dtype} {rows.shape}")
    if rows.size and not 0 <= int(rows.min()) <= int(rows.max()) < kinds:
        raise NotSupported(f"expected reports from 0 to {kinds - 1}; found {rows.min()} to {rows.max()}")
    return len(rows), np.bincount(rows.astype(np.intp), minlength=kinds)
