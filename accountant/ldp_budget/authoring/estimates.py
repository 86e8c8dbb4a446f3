"""What the server computes: aggregates that merge exactly, and estimates with standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from ..errors import InvalidParameter, NotSupported

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

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

    @classmethod
    def of(cls, fingerprint: str, reports: Any, grid: tuple[float, float], *, squares: bool) -> SumAggregate:
        """The sum of `reports`, (n,), which lie on the grid (origin, step); with that of their `squares`.

        Raises `NotSupported` for anything but finite numbers, and for such as are too far from the origin to be
        summed exactly.
        """
        rows = np.asarray(reports)
        if rows.ndim != 1 or rows.dtype.kind not in "iuf" or not np.isfinite(rows).all():
            raise NotSupported(f"expected finite reports of shape (n,); found {rows.dtype} {rows.shape}")
        origin, step = grid
        with np.errstate(over="ignore"):
            steps = np.rint((rows - origin) / step)
        most = 2**26 if squares else 2**53
        if (np.abs(steps) > most).any():
            raise NotSupported(f"expected reports within {most} steps of {step} from {origin}; found one further off")
        return cls(fingerprint, len(rows), _exact_sum(steps), _exact_sum(steps * steps) if squares else 0)

    def merge(self, other: SumAggregate) -> SumAggregate:
        """Add `other`; raises `NotSupported` if it was made by another mechanism."""
        check_same(self, other)
        self.reports += other.reports
        self.total += other.total
        self.total_squares += other.total_squares
        return self


def _exact_sum(steps: Any) -> int:
    """The sum of whole numbers below 2**53, in blocks whose sums cannot overflow."""
    return sum(int(np.sum(block.astype(np.int64))) for block in np.array_split(steps, 1 + len(steps) // 512))


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


@dataclass(frozen=True)
class SupportLaw:
    """What the probabilities of support come to, for each answer or once for all of them.

    `draws` is how many independent draws a report holds; `noise` is q; `gap` is p - q, subtracted exactly, as at a
    small ε the two nearly agree. The variance per user of a count is `at_zero` where nobody holds the answer,
    `at_one` where everybody does, and grows by `slope`, their difference, with the share of users who do.
    """

    draws: int
    noise: Floats
    gap: Floats
    at_zero: Floats
    at_one: Floats
    slope: Floats

    @classmethod
    def of(cls, pairs: Sequence[tuple[Fraction, Fraction]], draws: int) -> SupportLaw:
        """Of (p, q) as they are drawn."""
        return cls(
            draws,
            np.array([float(q) for _, q in pairs]),
            np.array([float(p - q) for p, q in pairs]),
            np.array([float(q * (1 - q) / (p - q) ** 2 / draws) for p, q in pairs]),
            np.array([float(p * (1 - p) / (p - q) ** 2 / draws) for p, q in pairs]),
            np.array([float((1 - p - q) / (p - q) / draws) for p, q in pairs]),
        )

    def counts(self, support: Any, reports: int) -> Floats:
        """The unbiased estimate from how many reports support each answer."""
        counts: Floats = (support / self.draws - reports * self.noise) / self.gap
        return counts

    def with_errors(self, counts: Floats, reports: int) -> CountEstimate:
        """`counts` with their standard errors, at the shares they come to."""
        return CountEstimate(reports, counts, np.sqrt(self.variance(counts, reports)))

    def variance(self, counts: Floats, reports: int) -> Floats:
        """The variance of each count, at the shares that `counts` come to.

        Between its ends and not `at_zero` + f·`slope`: where p and q are both near 1, what is left of the two at a
        share near 1 is less than their rounding.
        """
        shares = np.clip(counts / reports, 0, 1)
        variance: Floats = reports * ((1 - shares) * self.at_zero + shares * self.at_one)
        return variance

    def estimate(self, total: CountAggregate) -> CountEstimate:
        """The unbiased estimate with its standard errors."""
        return self.with_errors(self.counts(total.support, total.reports), total.reports)

    def total_variance(self, answers: int) -> float:
        """The variance per user of all the counts together, for any answers the users may have given."""
        repeat = answers // len(self.at_zero)
        return float(repeat * self.at_zero.sum() + self.slope.max())


ADJUSTMENTS = ("nonnegative", "simplex")


def adjusted(estimate: CountEstimate, how: str) -> Floats:
    """The counts made to look like counts, shape (d,): no longer unbiased, so only for showing.

    `how`: "nonnegative" sets negative counts to zero; "simplex" is the nearest point (least squares) with counts
    >= 0 that add up to the number of reports (Duchi, Shalev-Shwartz, Singer and Chandra 2008, Figure 1).
    Raises `InvalidParameter`.
    """
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
    if not 0 < level < 1:
        raise InvalidParameter("level", "a number > 0 and < 1", level)
    return NormalDist().inv_cdf((1 + level) / 2)
