"""The rule of all intervals: every value of a parameter, in its range, that a test does not reject.

The test of a value θ compares the estimate with the spread that it has *if θ is true*. Such a spread follows from the
mechanism and the design; so it never vanishes, as that of the reports does if they happen to be alike. Wald's interval
takes the spread of the reports, and its coverage is unreliable (Brown, Cai and DasGupta 2001).

- The law of the estimate is the exact one where that is known. Else it is a gamma law with the mean, the variance and the
  third cumulant that θ gives (Pearson's type III): for a few large contributions it is skewed as they are, and for many
  it is normal. Fay and Feuer (1997) use it for weighted sums of rare events. Half a step is added on both sides where
  the estimate moves in steps, so that of a binomial or Poisson count it is close to the exact test.
- The levels on both sides add up to 1 - confidence. Half of it on each side would be wasteful at the ends of the range:
  at the lowest value no estimate is too small, so half of the level is never used, and an estimate outside of
  the range gets an empty interval. So within one standard deviation of an end, the levels lean to the other side, as the
  limits of Feldman and Cousins (1998) do. Against equal sides, cut to the range, the coverage at an end is 0.950
  in place of 0.975.

So no interval is empty, has no width or lies outside of the range.

References:
    G. J. Feldman and R. D. Cousins, Unified approach to the classical statistical analysis of small signals, Physical
        Review D 57 (1998).
    M. P. Fay and E. J. Feuer, Confidence intervals for directly standardized rates, Statistics in Medicine 16 (1997).
    L. D. Brown, T. T. Cai and A. DasGupta, Interval estimation for a binomial proportion, Stat. Science 16 (2001).
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from scipy.special import gammainc, gammaincc, stdtrit

from .._validation import check_share

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_HALVINGS = 36
_TINY = 1e-100
_LEAST_SKEWED, _MOST_SKEWED = 1e-4, 1e4
"""Skewness at which the gamma law is normal to four digits, and beyond which it has no more digits."""


class Levels(NamedTuple):
    """The levels at which a test of θ rejects an estimate that is too large, and one that is too small.

    Both are half of `beyond`, 1 - confidence. Within `near_lowest` of the lowest θ, a standard deviation of the estimate
    there, the level for a large estimate grows to all of `beyond`; within `near_highest` of the highest that for a small
    one. The levels add up to `beyond`, and depend on θ alone, so the coverage is at least the declared one.
    """

    beyond: float
    lowest: Any
    highest: Any
    near_lowest: Any
    near_highest: Any

    def large(self, value: Any) -> Any:
        """Return the level on the side of a large estimate; it falls as θ grows, so that an interval has no gaps."""
        width = (
            self.highest - self.lowest
        )  # so that at one end the levels do not lean to the other, and none is empty
        at_lowest = np.maximum(0, 1 - (value - self.lowest) / np.minimum(self.near_lowest, width))
        at_highest = np.maximum(0, 1 - (self.highest - value) / np.minimum(self.near_highest, width))
        return self.beyond / 2 * (1 + at_lowest - at_highest)

    def small(self, value: Any) -> Any:
        """Return the level on the side of a small estimate."""
        return self.beyond - self.large(value)


class Tails(Protocol):
    """The probabilities of an estimate at least as large, and at most as large, as the one seen, if θ is true."""

    def at_least(self, value: Floats) -> Floats: ...

    def at_most(self, value: Floats) -> Floats: ...


def accepted(tails: Tails, levels: Levels) -> tuple[Floats, Floats]:
    """Return the least and the largest θ, from the lowest to the highest, that the test accepts.

    An end is that of the range if the test accepts it. If it accepts no θ, both ends are the nearest end of the range.
    """
    lowest, highest = np.broadcast_arrays(np.asarray(levels.lowest, np.float64), levels.highest)
    low = _nearest(lambda value: tails.at_least(value) >= levels.large(value), lowest, highest)
    high = _nearest(lambda value: tails.at_most(value) >= levels.small(value), highest, lowest)
    return low, high


def _nearest(accepts: Callable[[Floats], Any], first: Floats, last: Floats) -> Floats:
    """Return the θ nearest to `first` from which on to `last` the test accepts; `last` if it accepts none."""
    rejected, kept = first, np.where(accepts(first), first, last)
    for _ in range(_HALVINGS):
        middle = (rejected + kept) / 2
        inside = accepts(middle)
        rejected, kept = np.where(inside, rejected, middle), np.where(inside, middle, kept)
    return kept


class Spread(NamedTuple):
    """The variance and the third cumulant of an estimate, the step in which it moves, and the noise in its variance."""

    variance: Any
    third: Any
    step: Any
    noise: Any = 0.0


class GammaTails(NamedTuple):
    """The tails of the gamma law for an estimate `seen`, whose spread for a θ is `below(θ)` and `above(θ)`.

    `above` is for the test of the θ above the estimate, which may have to allow for more than the reports show; the
    two are the same in a simple sample.
    """

    seen: Any
    below: Callable[[Any], Spread]
    above: Callable[[Any], Spread]
    lowest: Any = -np.inf
    highest: Any = np.inf

    def within(self, lowest: Any, highest: Any) -> GammaTails:
        """Return the tails of the same estimate, moved to the nearest of these ends if it is not between them."""
        return self._replace(lowest=lowest, highest=highest)

    def at_least(self, value: Any) -> Any:
        spread = self.below(value)
        return gamma_tail(np.minimum(self.seen, self.highest) - spread.step / 2 - value, spread)

    def at_most(self, value: Any) -> Any:
        variance, third, step, _ = self.above(value)
        return gamma_tail(value - np.maximum(self.seen, self.lowest) - step / 2, Spread(variance, -third, step))


def gamma_tail(deviation: Any, spread: Spread) -> Any:
    """Return the probability that a gamma law of mean 0, this variance and third cumulant, is at least `deviation`."""
    deviation_of = np.sqrt(np.maximum(spread.variance, _TINY))
    skewness = np.clip(spread.third / deviation_of**3, -_MOST_SKEWED, _MOST_SKEWED)
    shape = 4 / np.maximum(np.abs(skewness), _LEAST_SKEWED) ** 2
    root, ratio = np.sqrt(shape), deviation / deviation_of
    right = gammaincc(shape, np.maximum(shape + ratio * root, 0.0))
    left = gammainc(shape, np.maximum(shape - ratio * root, 0.0))
    return np.where(skewness >= 0, right, left)


def accepted_means(tails: GammaTails, level: float, ends: tuple[Any, Any] = (0.0, 1.0)) -> tuple[Floats, Floats]:
    """Return the ends of the interval of a mean within the range `ends`, by the gamma law.

    An estimate further outside of the range than a standard deviation counts as one at that distance. So no interval is much
    narrower than that of a likely estimate, however unlikely the reports are.

    Raises `InvalidParameter` unless 0 < level < 1.
    """
    beyond = 1 - check_share("level", level)
    limits = [np.broadcast_to(np.asarray(end, np.float64), np.shape(tails.seen)) for end in ends]
    near = [
        np.sqrt(np.maximum(spread(limit).variance, _TINY))
        for spread, limit in zip((tails.below, tails.above), limits, strict=True)
    ]
    (lowest, highest), (below, above) = limits, near
    return accepted(tails.within(lowest - below, highest + above), Levels(beyond, lowest, highest, below, above))


def normal_ends(
    values: Any, errors: Any, level: float, ends: tuple[Any, Any], freedom: float | None = None
) -> tuple[Floats, Floats]:
    """Return the ends within a range of normal intervals, or Student's, for estimates whose standard errors are known.

    Raises `InvalidParameter` unless 0 < level < 1.
    """
    check_share("level", level)
    known = np.square(errors) * (1.0 if freedom is None else stretch(level, freedom))

    def spread(_value: Any) -> Spread:
        return Spread(known, 0.0, 0.0)

    return accepted_means(GammaTails(np.asarray(values, np.float64), spread, spread), level, ends)


def stretch(level: float, freedom: Any) -> Any:
    """Return the factor of a variance that makes a normal quantile that of Student's t; `freedom` may be an array."""
    beyond = (1 - level) / 2
    return (stdtrit(freedom, beyond) / NormalDist().inv_cdf(beyond)) ** 2


def quantile(level: float, freedom: float | None = None) -> float:
    """Return z with P[|Z| <= z] = `level`: of a normal variable, or of Student's t with `freedom` degrees of freedom.

    Raises `InvalidParameter` unless 0 < level < 1.
    """
    beyond = (1 - check_share("level", level)) / 2  # the lower tail, because the upper one would round to 1
    return -NormalDist().inv_cdf(beyond) if freedom is None else -float(stdtrit(freedom, beyond))
