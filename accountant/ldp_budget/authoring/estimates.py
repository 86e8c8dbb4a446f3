"""What the server computes: aggregates that merge exactly, and estimates with standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from ..errors import InvalidParameter, NotSupported

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class Aggregate(Protocol):
    """A sufficient statistic of `reports` reports to the mechanism with that `fingerprint`."""

    fingerprint: str
    reports: int

    def merge(self, other: Self) -> Self:
        """Add another aggregate of the same mechanism to this one, exactly; returns this one."""
        ...


@dataclass
class CountAggregate:
    """How many reports support each answer: `support`, an integer array (d,)."""

    fingerprint: str
    reports: int
    support: NDArray[np.int64]

    def merge(self, other: CountAggregate) -> CountAggregate:
        """Add `other`; raises `NotSupported` if it was made by another mechanism."""
        check_same(self, other)
        self.reports += other.reports
        self.support = self.support + other.support
        return self


@dataclass
class SumAggregate:
    """The sum of numeric reports in steps of the mechanism's grid, and of their squares where it needs them."""

    fingerprint: str
    reports: int
    total: int
    total_squares: int = 0

    def merge(self, other: SumAggregate) -> SumAggregate:
        """Add `other`; raises `NotSupported` if it was made by another mechanism."""
        check_same(self, other)
        self.reports += other.reports
        self.total += other.total
        self.total_squares += other.total_squares
        return self


def check_same(one: Aggregate, other: Aggregate) -> None:
    """Raise `NotSupported` unless both were made by the same mechanism."""
    if one.fingerprint != other.fingerprint:
        raise NotSupported(
            f"aggregates of different mechanisms do not merge: {one.fingerprint[:12]} and {other.fingerprint[:12]}"
        )


class Estimate:
    """What `Mechanism.estimate` returns: a `CountEstimate` or a `MeanEstimate`."""

    reports: int


@dataclass(frozen=True)
class CountEstimate(Estimate):
    """Unbiased estimates of how many users hold each answer.

    `counts` and `std_errors` have shape (d,). A standard error is the exact one of the mechanism at the estimated
    frequency, for the users at hand (they are not a sample of anything).
    """

    reports: int
    counts: Floats
    std_errors: Floats

    @property
    def shares(self) -> Floats:
        """`counts` over the number of reports."""
        shares: Floats = self.counts / self.reports
        return shares

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """The low and high ends of normal confidence intervals of `counts`, each of shape (d,)."""
        margin = _quantile(level) * self.std_errors
        return self.counts - margin, self.counts + margin


ADJUSTMENTS = ("nonnegative", "simplex")


def adjusted(estimate: CountEstimate, how: str) -> Floats:
    """The counts made to look like counts, shape (d,): no longer unbiased, so only for showing.

    `how`: "nonnegative" sets negative counts to zero; "simplex" is the nearest point (least squares) with counts
    >= 0 that add up to the number of reports (Duchi, Shalev-Shwartz, Singer and Chandra 2008, Figure 1).
    Raises `InvalidParameter`.
    """
    import numpy as np

    if how not in ADJUSTMENTS:
        raise InvalidParameter("adjust", f"one of {', '.join(ADJUSTMENTS)}", how)
    counts = estimate.counts
    if how == "simplex":
        falling = np.sort(counts)[::-1]
        excess = (np.cumsum(falling) - estimate.reports) / np.arange(1, len(counts) + 1)
        counts = counts - excess[np.nonzero(falling > excess)[0][-1]]
    nonnegative: Floats = np.maximum(counts, 0.0)
    return nonnegative


@dataclass(frozen=True)
class MeanEstimate(Estimate):
    """An estimate of the mean of the users' values, with its standard error."""

    reports: int
    mean: float
    std_error: float

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The low and high end of a normal confidence interval of `mean`."""
        margin = _quantile(level) * self.std_error
        return self.mean - margin, self.mean + margin


def _quantile(level: float) -> float:
    from statistics import NormalDist

    if not 0 < level < 1:
        raise InvalidParameter("level", "a number > 0 and < 1", level)
    return NormalDist().inv_cdf((1 + level) / 2)
