"""Aggregates and estimates of the server: aggregates merge exactly, estimates have standard errors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from .._dataframes import Tabular
from .._validation import check_instance, check_many, check_switch, shown
from ..errors import InvalidParameter, NotSupported
from .interpreter import as_reports

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from .share_laws import Cumulants

    Floats = NDArray[np.float64]


class Aggregate(Protocol):
    """A sufficient statistic of `reports` reports to the mechanism with that `fingerprint`."""

    fingerprint: str
    reports: int

    def merge(self, other: Self) -> Self:
        """Add another aggregate of the same mechanism to this one, exactly, and return this one."""
        ...


_FEW_FREE = 30
"""The number of reports up to which a spread that was estimated from them says too little."""
_FEW = 4
"""The number of answers that the `repr` of an estimate shows."""


def _named(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _some(values: Sequence[str]) -> str:
    """Return the first few values, and the total where there are more."""
    return ", ".join(values) if len(values) <= _FEW else f"{', '.join(values[:_FEW])}, … ({len(values)} answers)"


@dataclass
class CountAggregate:
    """The aggregate of a frequency mechanism: for each answer, the number of reports that support it.

    `fingerprint`: the fingerprint of the mechanism. `reports`: n. `support`: an integer array (d,). Where a report
    holds several draws, each supporting draw counts.
    """

    fingerprint: str
    reports: int
    support: NDArray[np.int64]

    def __repr__(self) -> str:
        return (
            f"<CountAggregate of {_named(self.reports, 'report')}: {_some([str(count) for count in self.support])}>"
        )

    def merge(self, other: CountAggregate) -> CountAggregate:
        """Add another aggregate to this one, exactly.

        Parameters:
            other: an aggregate of reports to the same mechanism.

        Returns:
            This aggregate.

        Raises:
            NotSupported: `other` was made by another mechanism.
            InvalidParameter: `other` is not an aggregate of counts.
        """
        check_same(self, check_instance("other", other, CountAggregate, "a `CountAggregate`"))
        self.reports += other.reports
        self.support = self.support + other.support
        return self


@dataclass
class SumAggregate:
    """The aggregate of a numeric mechanism: the exact sum of the reports, in whole steps of its public grid.

    A report y = origin + k·step of `grid()` counts as k steps. `fingerprint`: the fingerprint of the mechanism.
    `reports`: n. `total`: Σ k. `total_squares`: Σ k² where the mechanism `keeps_squares`, else 0. All are whole
    numbers of any size, so merging in any order gives the same aggregate. The mean of the reports is origin +
    total/n·step. `report_std` takes an aggregate, to estimate the spread of a report from it.
    """

    fingerprint: str
    reports: int
    total: int
    total_squares: int = 0

    @classmethod
    def of(cls, fingerprint: str, reports: Any, grid: tuple[float, float], *, squares: bool) -> Self:
        """Return the sum of reports on a grid.

        Parameters:
            fingerprint: the fingerprint of the mechanism.
            reports: numbers, shape (n,).
            grid: (origin, step).
            squares: True to keep the sum of their squares as well.

        Raises:
            NotSupported: the reports are not finite numbers, or too far from the origin to be summed exactly.
            InvalidParameter: `grid` is not a pair (origin, step), or `squares` is neither True nor False.
        """
        check_switch("squares", squares)
        if not isinstance(grid, tuple) or len(grid) != 2:
            raise InvalidParameter("grid", "a pair of an origin and a step", shown(grid))
        rows = as_reports(reports)
        if rows.ndim != 1 or rows.dtype.kind not in "iuf" or not np.isfinite(rows).all():
            raise NotSupported(f"reports must be finite numbers of shape (n,): got {rows.dtype} {rows.shape}")
        origin, step = grid
        with np.errstate(over="ignore"):
            steps = np.rint((rows - origin) / step)
        most = 2**26 if squares else 2**53
        if (np.abs(steps) > most).any():
            raise NotSupported(f"reports must be within {most} steps of {step} from {origin}: got one further away")
        return cls(fingerprint, len(rows), _exact_sum(steps), _exact_sum(steps * steps) if squares else 0)

    def __repr__(self) -> str:
        return f"<SumAggregate of {_named(self.reports, 'report')}: {self.total} steps in all>"

    def merge(self, other: SumAggregate) -> SumAggregate:
        """Add another aggregate to this one, exactly.

        Parameters:
            other: an aggregate of reports to the same mechanism.

        Returns:
            This aggregate.

        Raises:
            NotSupported: `other` was made by another mechanism.
            InvalidParameter: `other` is not an aggregate of sums.
        """
        check_same(self, check_instance("other", other, SumAggregate, "a `SumAggregate`"))
        self.reports += other.reports
        self.total += other.total
        self.total_squares += other.total_squares
        return self


def _exact_sum(steps: Any) -> int:
    """Return the sum of whole numbers below 2**53, in blocks whose sums cannot overflow."""
    return sum(int(np.sum(block.astype(np.int64))) for block in np.array_split(steps, 1 + len(steps) // 512))


def check_same(one: Aggregate, other: Aggregate) -> None:
    """Raise `NotSupported` unless both aggregates were made by the same mechanism."""
    if one.fingerprint != other.fingerprint:
        raise NotSupported(
            f"aggregates of different mechanisms cannot be merged: {one.fingerprint[:12]} and {other.fingerprint[:12]}"
        )


E = TypeVar("E", bound="CountEstimate | MeanEstimate")


class Estimate(Tabular):
    """The result of `Mechanism.estimate`: a `CountEstimate` or a `MeanEstimate`."""

    reports: int
    overlap: float = 1.0

    def named(self, answers: Sequence[str] | None) -> Self:
        """Return the same estimate with names for the answers; an estimate of a mean has none, and does not change.

        Parameters:
            answers: one name for each count; None to number the answers.

        Raises:
            InvalidParameter: `answers` does not have one name for each count.
        """
        return self

    def to_rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """Return the rows of the table, see `to_frame`.

        Parameters:
            level: the confidence level of the intervals, above 0 and below 1.

        Returns:
            For counts a row for each answer; for a mean one row.

        Raises:
            InvalidParameter: `level` is not between 0 and 1.
        """
        raise NotSupported(f"a {type(self).__name__} has no rows")

    @property
    def caption(self) -> str:
        """What the rows are."""
        return f"{_named(self.reports, 'report')}; 95 % intervals"

    def repeated(self, rounds: Sequence[Estimate]) -> Self:
        """Return the same estimate with errors for rounds by the same users, from the estimate of each round."""
        raise NotSupported(f"the errors of a {type(self).__name__} cannot be widened for repeated reports")


class CountLaw(Protocol):
    """The distribution of the estimated counts around the true ones, as far as intervals need it."""

    def ends(self, estimate: CountEstimate, level: float) -> tuple[Floats, Floats]:
        """Return the low and high ends of the intervals, each of shape (d,)."""
        ...


@dataclass(frozen=True)
class CountEstimate(Estimate):
    """Unbiased estimates of the number of users who hold each answer.

    `counts` and `std_errors` have shape (d,). A standard error is the exact one of the mechanism at the estimated
    frequency. It refers to the users who reported: they are not a sample of anything.

    `law` and `support` (d,), from which the counts were estimated, are needed for the intervals. Without a law the
    intervals are normal ones, which need many reports. `overlap`: see `repeated`. `answers`: the names of the
    answers, where they are known; otherwise the answers are numbered.

    `fake_margins`: (least, most), the least and the most that one additional fake report changes each count, at the
    worst choice of its bytes; each of shape (d,), or (1,) where it is the same for all. None if it is unknown.
    `complete`: True if every possible answer is counted. `several`: True if a user may hold several of the counted answers,
    such as ticked options, so that counts need not add up. `channel`: where `support` counts reports, the probability of
    each report for each answer.

    A subclass whose counts are biased sets `unbiased` to False: the contract of mechanisms checks all others.
    """

    unbiased: ClassVar[bool] = True

    reports: int
    counts: Floats
    std_errors: Floats
    law: CountLaw | None = field(default=None, kw_only=True)
    support: NDArray[np.int64] | None = field(default=None, kw_only=True)
    overlap: float = field(default=1.0, kw_only=True)
    answers: tuple[str, ...] | None = field(default=None, kw_only=True)
    fake_margins: tuple[Floats, Floats] | None = field(default=None, kw_only=True)
    complete: bool = field(default=True, kw_only=True)
    several: bool = field(default=False, kw_only=True)
    channel: Floats | None = field(default=None, kw_only=True)

    def named(self, answers: Sequence[str] | None) -> Self:
        expected = f"{len(self.counts)} names, one for each count"
        names = None if answers is None else tuple(check_many("answers", answers, expected))
        if names is not None and not (
            len(names) == len(self.counts) and all(isinstance(each, str) for each in names)
        ):
            raise InvalidParameter("answers", expected, shown(names))
        return replace(self, answers=names)

    def to_rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        low, high = self.interval(level)
        columns = {
            "answer": list(self.answers or map(str, range(len(self.counts)))),
            "count": self.counts.tolist(),
            "share": self.shares.tolist(),
            "std_error": self.std_errors.tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
        }
        return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]

    def __repr__(self) -> str:
        counts = [f"{count:.1f} ± {error:.1f}" for count, error in zip(self.counts, self.std_errors, strict=True)]
        return f"<{type(self).__name__} of {_named(self.reports, 'report')}: {_some(counts)} (standard errors)>"

    @property
    def shares(self) -> Floats:
        """`counts` divided by the number of reports."""
        shares: Floats = self.counts / self.reports
        return shares

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the low and high ends of confidence intervals of `counts`, each of shape (d,).

        Where each report supports an answer or does not, the intervals cover at any number of reports and any share,
        see `confidence_intervals`. Each end is within 0 and the number of reports, also where the unbiased estimate is not.

        Parameters:
            level: the probability with which each interval covers, above 0 and below 1.

        Raises:
            InvalidParameter: `level` is not between 0 and 1.
        """
        if self.law is not None:
            return self.law.ends(self, level)
        return _normal_ends(self.counts, self.std_errors, level, (0.0, float(self.reports)))

    def repeated(self, rounds: Sequence[Estimate]) -> Self:
        """Return the same estimate, with errors that also hold where the same users reported in every round.

        Reports that repeat a memoised draw are not independent evidence: another round adds reports, but no
        information. The standard error of a sum of correlated parts is at most the sum of their standard errors, so
        the errors of the rounds are added. For intervals, the variance is multiplied by the number of rounds, which
        is an upper bound.

        Parameters:
            rounds: the estimate of each round by itself.

        Raises:
            InvalidParameter: the reports of the rounds do not add up to those of the estimate.
        """
        listed = _checked_rounds(self, rounds)
        errors: Floats = np.sum([each.std_errors for each in listed], axis=0)
        return replace(self, std_errors=errors, overlap=self.overlap * len(listed))


def _checked_rounds(estimate: E, rounds: Sequence[Estimate]) -> list[E]:
    """Return the estimates of rounds. Raises `InvalidParameter` if they differ in kind or do not add up."""
    expected = f"estimates of rounds whose reports add up to {estimate.reports}"
    listed = list(check_many("rounds", rounds, expected))
    alike: list[E] = [each for each in listed if isinstance(each, type(estimate))]
    counted = {np.shape(each.std_errors) for each in [estimate, *alike] if isinstance(each, CountEstimate)}
    if len(alike) < len(listed) or sum(each.reports for each in alike) != estimate.reports or len(counted) > 1:
        raise InvalidParameter("rounds", expected, ", ".join(map(shown, listed)))
    return alike


@dataclass(frozen=True, eq=False)
class SupportLaw:
    """The law of estimated counts that follows from support probabilities, for each answer or once for all of them.

    `draws`: the number of independent draws in a report. `noise`: q. `gap`: p - q, subtracted exactly, because at a
    small ε the two are nearly equal.

    The variance per user of a count is `at_zero` where no user holds the answer, and `at_one` where every user does.
    Between them it grows linearly with the share of holders; `slope` is their difference.

    `shown`: the probability that a report contains information on an answer at all. It is below 1 where a report
    covers some answers only.
    """

    draws: int
    noise: Floats
    gap: Floats
    at_zero: Floats
    at_one: Floats
    slope: Floats
    shown: float = 1.0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SupportLaw) and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)
        )

    @classmethod
    def of(cls, pairs: Sequence[tuple[Fraction, Fraction]], draws: int) -> SupportLaw:
        """Return the law for the pairs (p, q) with which the client draws."""
        return cls(
            draws,
            np.array([float(q) for _, q in pairs]),
            np.array([float(p - q) for p, q in pairs]),
            np.array([float(q * (1 - q) / (p - q) ** 2 / draws) for p, q in pairs]),
            np.array([float(p * (1 - p) / (p - q) ** 2 / draws) for p, q in pairs]),
            np.array([float((1 - p - q) / (p - q) / draws) for p, q in pairs]),
        )

    def counts(self, support: Any, reports: int) -> Floats:
        """Return the unbiased estimate from the support of each answer."""
        counts: Floats = (support / self.draws - reports * self.noise) / self.gap
        return counts

    def with_errors(self, counts: Floats, reports: int, support: Any = None) -> CountEstimate:
        """Return `counts` with their standard errors, at the estimated shares.

        With `support`, the number of supporting draws of each answer (d,), the intervals are those of
        `confidence_intervals`.
        """
        law = None if support is None else self
        errors = np.sqrt(self.variance(counts, reports))
        return CountEstimate(reports, counts, errors, law=law, support=support, fake_margins=self.fake_margins())

    def fake_margins(self) -> tuple[Floats, Floats]:
        """Return the least and the most that one more report changes each count: no draw supports it, or all do."""
        unit = self.gap * self.shown
        return -self.noise / unit, (1 - self.noise) / unit

    def variance(self, counts: Floats, reports: int) -> Floats:
        """Return the variance of each count, at the estimated shares, also where they are not from 0 to 1.

        It is linear in the shares, so it is right on average; it is at least that of an answer of no user, or of all.
        It is interpolated between `at_zero` and `at_one`, and not computed as `at_zero` + f·`slope`. Where p and q
        are both near 1, the latter loses all digits to rounding at a share near 1.
        """
        shares = counts / reports
        variance = (1 - shares) * self.at_zero + shares * self.at_one
        raised: Floats = reports * np.maximum(variance, np.minimum(self.at_zero, self.at_one))
        return raised

    def estimate(self, total: CountAggregate) -> CountEstimate:
        """Return the unbiased estimate with its standard errors."""
        return self.with_errors(self.counts(total.support, total.reports), total.reports, total.support)

    def ends(self, estimate: CountEstimate, level: float) -> tuple[Floats, Floats]:
        """Return the ends of `count_ends`; overlapping reports are treated as fewer independent ones."""
        from .confidence_intervals import count_ends

        assert estimate.support is not None
        times, reports = estimate.overlap, estimate.reports / estimate.overlap
        law = (self.cumulants(), 1 / (self.draws * self.shown * self.gap))
        chances = (self.shown * (self.noise + self.gap), self.shown * self.noise)
        counts, support = estimate.counts / times, estimate.support / times
        low, high = count_ends(counts, reports, support, chances, self.draws, law, level)
        if self.shown < 1:
            # The estimate counts the reports that cover an answer, and the exact test does not: of few reports, one that
            # supports an answer which most of them cover by chance is rare, and yet it is evidence against the answer.
            inside = np.clip(counts, 0, reports)
            low, high = np.minimum(low, inside), np.maximum(high, inside)
        return low * times, high * times

    def cumulants(self) -> Cumulants:
        """Return the variance and the third cumulant of one report's count, of an answer held by another and by its user."""
        from .share_laws import Cumulants

        found = []
        for mean, chance, variance in ((0, self.noise, self.at_zero), (1, self.noise + self.gap, self.at_one)):
            # The raw third moment of (draw - q)/(shown·gap), for a draw that is shown; the draws are independent.
            cubed = (chance * (1 - self.noise) ** 3 - (1 - chance) * self.noise**3) / (self.shown**2 * self.gap**3)
            one = variance * self.draws
            found += [variance, (cubed - mean * (3 * one + 1)) / self.draws**2]
        return Cumulants(*found)

    def total_variance(self, answers: int) -> float:
        """Return the variance per user of all counts together, for the answers of the users that make it largest."""
        repeat = answers // len(self.at_zero)
        return float(repeat * self.at_zero.sum() + self.slope.max())


@dataclass(frozen=True)
class StudentLaw:
    """The law of counts whose variances were estimated as well: (count - truth)/error is Student's t.

    `freedom`: the degrees of freedom of those variances.
    """

    freedom: int

    def ends(self, estimate: CountEstimate, level: float) -> tuple[Floats, Floats]:
        """Return the ends of Student's intervals, within 0 and the number of reports."""
        return _normal_ends(estimate.counts, estimate.std_errors, level, (0.0, float(estimate.reports)), self.freedom)


@dataclass(frozen=True, eq=False)
class ShareCountLaw:
    """The law of counts that are sums of contributions with these cumulants, each (d,), without the chance of a sample."""

    cumulants: Cumulants

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShareCountLaw) and all(map(np.array_equal, self.cumulants, other.cumulants))

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    def ends(self, estimate: CountEstimate, level: float) -> tuple[Floats, Floats]:
        """Return the ends of `share_ends`; overlapping reports are treated as fewer independent ones."""
        from .share_laws import AnswerLaw, Scales, share_ends

        alone = estimate.reports / estimate.overlap
        scales = Scales.of(np.array([1 / alone]), alone, 0.0)
        ends = share_ends(AnswerLaw(self.cumulants), scales, estimate.shares, level, lattice=False)
        low, high = (end * estimate.reports for end in ends)
        return low, high


@dataclass(frozen=True)
class MeanEstimate(Estimate):
    """An estimate of the mean of the users' values, with its standard error.

    `freedom`: the degrees of freedom of the standard error where it was estimated from the reports, one less than the
    number of reports. `overlap`: see `repeated`. `ends`: the lowest and the highest value that a user can have, None if
    they are unknown. `bounds`: the largest standard deviation of a report, over all values, and the width of the range of
    the reports, from which the interval of few reports follows; None if they are unknown.
    """

    reports: int
    mean: float
    std_error: float
    freedom: float | None = field(default=None, kw_only=True)
    overlap: float = field(default=1.0, kw_only=True)
    ends: tuple[float, float] | None = field(default=None, kw_only=True)
    bounds: tuple[float, float] | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        mean = f"{self.mean:.6g} ± {self.std_error:.3g} (standard error)"
        return f"<{type(self).__name__} of {_named(self.reports, 'report')}: {mean}>"

    def to_rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        low, high = self.interval(level)
        return [{"mean": self.mean, "std_error": self.std_error, "low": low, "high": high}]

    def details(self, level: float = 0.95) -> dict[str, Any]:
        """Return what else the reports say of the values, as `estimate --json` prints it; empty by default.

        Parameters:
            level: the confidence level of the intervals, above 0 and below 1.

        Raises:
            InvalidParameter: `level` is not between 0 and 1.
        """
        _quantile(level)
        return {}

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the ends of a confidence interval of `mean`: normal, or Student's where there is a `freedom`.

        They are within the range of the values, also where the mean is not; see `accepted_values`.

        Parameters:
            level: the probability with which the interval covers, above 0 and below 1.

        Raises:
            InvalidParameter: `level` is not between 0 and 1.
        """
        from .confidence_intervals import bounded_margin

        independent = self.reports / self.overlap
        if self.bounds is None or independent > _FEW_FREE:
            return self._within(self.std_error, level, self.freedom)
        spread, width = self.bounds
        margin = bounded_margin(spread, spread, width, independent, level)
        return self._within(margin / _quantile(level), level, None)

    def _within(self, error: float, level: float, freedom: float | None) -> tuple[float, float]:
        """Return the ends for this standard error, in the range of the values."""
        if self.ends is None:
            margin = _quantile(level, freedom) * error
            return self.mean - margin, self.mean + margin
        low, high = _normal_ends(np.array([self.mean]), np.array([error]), level, self.ends, freedom)
        return float(low[0]), float(high[0])

    def repeated(self, rounds: Sequence[Estimate]) -> Self:
        """Return the same estimate for users who reported in every round, as `CountEstimate.repeated` does.

        Parameters:
            rounds: the estimate of each round by itself.

        Raises:
            InvalidParameter: the reports of the rounds do not add up to those of the estimate.
        """
        listed = _checked_rounds(self, rounds)
        error = math.fsum(each.reports * each.std_error for each in listed) / self.reports
        return replace(self, std_error=error, overlap=self.overlap * len(listed))


@dataclass(frozen=True, repr=False)
class BitMeanEstimate(MeanEstimate):
    """A mean estimated from bits, of which `ones` are one.

    A bit is one with probability `least` for the value `lower`, `most` for `upper`, and linear in between. The
    interval is the Clopper-Pearson interval of the mean probability, see `confidence_intervals`.
    """

    ones: int = field(kw_only=True)
    least: float = field(kw_only=True)
    most: float = field(kw_only=True)
    lower: float = field(kw_only=True)
    upper: float = field(kw_only=True)

    def to_rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        low, high = self.interval(level)
        return [{"mean": self.mean, "std_error": self.std_error, "low": low, "high": high}]

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the ends of the Clopper-Pearson interval of the mean, which covers at any number of reports."""
        from .accepted_values import quantile
        from .confidence_intervals import binomial_ends

        quantile(level)
        times = self.overlap
        trials = self.reports / times
        ends = binomial_ends(self.ones / times, trials, level)
        width = self.upper - self.lower
        low, high = (
            self.lower + width * min(max(0.0, (end - self.least) / (self.most - self.least)), 1.0) for end in ends
        )
        return low, high


class KnownNoise(Protocol):
    """A mechanism that adds noise of this density, which does not depend on the value and is symmetric about 0."""

    def log_density(self, report: float, value: float) -> float: ...


@dataclass(frozen=True, repr=False)
class NoiseMeanEstimate(MeanEstimate):
    """A mean of values plus noise of a known law: the noise of `mechanism`, the same for every value.

    With few reports, the interval is that of the sum of the noise, see `sum_quantile`.
    """

    mechanism: KnownNoise = field(kw_only=True)

    def to_rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        low, high = self.interval(level)
        return [{"mean": self.mean, "std_error": self.std_error, "low": low, "high": high}]

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the ends of the interval of the sum of the noise; with many reports a normal interval."""
        from .confidence_intervals import sum_quantile

        one = self.std_error * math.sqrt(self.reports / self.overlap)
        independent = max(1, round(self.reports / self.overlap))
        times = sum_quantile(lambda noise: self.mechanism.log_density(noise, 0.0), one, independent, level)
        return self._within(self.std_error * times / _quantile(level), level, None)


@dataclass(frozen=True, repr=False)
class BoundedMeanEstimate(MeanEstimate):
    """A mean of reports in [lower, upper], with a standard error estimated from the reports.

    A few reports do not show the rare ones far out. `most_spread` is the largest standard deviation of a report, over
    all values; see `bounded_margin`. The interval covers the expected report. So where the reports are biased, it
    does not cover the users' mean.
    """

    lower: float = field(kw_only=True)
    upper: float = field(kw_only=True)
    most_spread: float = field(kw_only=True)

    def to_rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        low, high = self.interval(level)
        return [{"mean": self.mean, "std_error": self.std_error, "low": low, "high": high}]

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the ends of an interval that allows for the rare reports that a few reports do not show."""
        from .confidence_intervals import bounded_margin

        reports = self.reports / self.overlap
        seen = self.std_error * math.sqrt(reports)
        margin = bounded_margin(seen, self.most_spread, self.upper - self.lower, reports, level)
        return max(self.mean - margin, min(self.lower, self.mean)), min(
            self.mean + margin, max(self.upper, self.mean)
        )


def _normal_ends(
    values: Any, errors: Any, level: float, ends: tuple[float, float], freedom: float | None = None
) -> tuple[Floats, Floats]:
    from .accepted_values import normal_ends

    return normal_ends(values, errors, level, ends, freedom)


def _quantile(level: float, freedom: float | None = None) -> float:
    from .accepted_values import quantile

    return quantile(level, freedom)
