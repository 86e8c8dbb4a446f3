"""Confidence intervals that cover at any number of reports, also for answers that nobody or everybody holds.

What is estimated is the number N of *these n users* who hold an answer; they are not a sample of anything, so that
nothing is left to chance but the reports. Of them

    C = Bin(lN, p) + Bin(l(n - N), q)        draws support the answer, for l draws in a report,

and an interval holds every N that a test at the level (1 - confidence)/2 on either side does not reject:

- While the variance of C is small, the test is the exact one (Clopper and Pearson 1934, for the sum of two
  binomials): N is rejected if C, or anything further out, has a probability of at most the level. It covers at least
  as often as declared.
- From a variance of `_EXACT_BELOW` on it is the score test (Wilson 1927): the deviation of the estimate is held
  against its variance *at N*, n·v₀ + N·(v₁ - v₀), and not at the estimate, where Wald's interval goes wrong (Brown,
  Cai and DasGupta 2001). Half a step of C is added on either side, so that it covers no less for being discrete.
  Above a confidence of 99 % the tails are no longer those of a normal variable: C is skewed. There the exact test is
  made up to larger variances, and what the skewness adds at most to a quantile is added to the half step: (z² - 1)/6
  steps, as the third cumulant of a sum of binary draws is no more than its variance (Cornish and Fisher 1937).

The estimate itself, which may lie outside [0, n], always belongs to its interval.

References:
    C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934).
    E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
    L. D. Brown, T. T. Cai and A. DasGupta, Interval estimation for a binomial proportion, Stat. Science 16 (2001).
    E. A. Cornish and R. A. Fisher, Moments and cumulants in the specification of distributions, Revue de l'Institut
        International de Statistique 5 (1937).
    W. Hoeffding, On the distribution of the number of successes in independent trials, Ann. Math. Stat. 27 (1956).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import betainc, betaincinv, gammaln, stdtrit, xlog1py, xlogy

from .._validation import check_share

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_EXACT_BELOW = 100.0
"""Variance of C up to which the exact test is made; there half a step is a twentieth of a standard deviation."""
_FAR = 0.99
"""The confidence above which skewness is allowed for."""

_NORMAL_FROM = 64
_CELLS_PER_SPREAD = 50
_POINTS_PER_CELL = 8


class TwoBinomials(NamedTuple):
    """C = Bin(draws·N, keep) + Bin(draws·(users - N), noise), with `keep` > `noise`."""

    users: int
    draws: int
    keep: float
    noise: float

    def at_least(self, held: int, count: int) -> float:
        """P[C >= count] where `held` of the users hold the answer."""
        return self._tail(held, count, upper=True)

    def at_most(self, held: int, count: int) -> float:
        """P[C <= count]."""
        return self._tail(held, count, upper=False)

    def variance(self, held: float) -> float:
        own, other = self.keep * (1 - self.keep), self.noise * (1 - self.noise)
        return self.draws * (held * own + (self.users - held) * other)

    def _tail(self, held: int, count: int, *, upper: bool) -> float:
        """Summed over what the holders' draws come to, of which only likely numbers are looked at."""
        trials, rest = self.draws * held, self.draws * (self.users - held)
        own = _likely(trials, self.keep)
        odds = _log_probabilities(own, trials, self.keep)
        weights = np.exp(odds - odds.max())
        others = count - own
        tail = _binomial_tail(others if upper else others + 1, rest, self.noise)
        return float(weights @ (tail if upper else 1 - tail) / weights.sum())


def _likely(trials: int, probability: float) -> Floats:
    """The numbers of successes within nine standard deviations and as many as a rare success comes to."""
    mean = trials * probability
    reach = 9 * math.sqrt(mean * (1 - probability)) + 40
    return np.arange(max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach)) + 1, dtype=np.float64)


def _log_probabilities(successes: Floats, trials: int, probability: float) -> Floats:
    """Of a binomial, but for a term that is the same for all."""
    ways = -gammaln(successes + 1) - gammaln(trials - successes + 1)
    found: Floats = ways + xlogy(successes, probability) + xlog1py(trials - successes, -probability)
    return found


def _binomial_tail(least: Floats, trials: int, probability: float) -> Floats:
    """P[Bin >= least]."""
    inside = np.clip(least, 1, max(1, trials))
    found = betainc(inside, trials - inside + 1, probability)
    tail: Floats = np.where(least <= 0, 1.0, np.where(least > trials, 0.0, found))
    return tail


def exact_ends(law: TwoBinomials, count: int, level: float, near: tuple[float, float]) -> tuple[int, int]:
    """The least and the largest N that the exact test accepts; `near` are guesses of them.

    Where it accepts none, as C is smaller than it would be for nobody, both are 0; n where it is larger than for all.
    """
    beyond = (1 - level) / 2
    n = law.users
    low = _first(lambda held: law.at_least(held, count) > beyond, n, near[0])
    high = n - _first(lambda held: law.at_most(n - held, count) > beyond, n, n - near[1])
    return min(low, n), max(high, 0)


def _first(holds: Callable[[int], bool], last: int, guess: float) -> int:
    """The first of 0..last from which on `holds`, or last + 1; looked for from a guess outwards, then between."""
    at = min(max(0, round(guess)), last)
    step = 1
    if holds(at):
        false, true = at - 1, at
        while false >= 0 and holds(false):
            false, true, step = false - 2 * step, false, 2 * step
        false = max(false, -1)
    else:
        false, true = at, at + 1
        while true <= last and not holds(true):
            false, true, step = true, true + 2 * step, 2 * step
        true = min(true, last + 1)
    while true - false > 1:
        middle = (false + true) // 2
        if holds(middle):
            true = middle
        else:
            false = middle
    return true


def score_ends(counts: Any, score: tuple[Any, Any, Any], level: float) -> tuple[Floats, Floats]:
    """Where (count ± step - N)² = z²·(at_zero + slope·N), with `score` (half a step of C, at_zero, slope)."""
    z, (half, at_zero, slope) = quantile(level), score
    step = half * (1 + (z * z - 1) / 3) if level > _FAR else half
    ends = []
    for side in (-1, 1):
        centre = counts + side * step
        spread = np.maximum(0.0, at_zero + slope * centre + (z * slope / 2) ** 2)
        ends.append(centre + z * z * slope / 2 + side * z * np.sqrt(spread))
    return ends[0], ends[1]


def count_ends(
    counts: Floats,
    reports: float,
    support: Floats,
    chances: tuple[Floats, Floats],
    draws: int,
    score: Any,
    level: float,
) -> tuple[Floats, Floats]:
    """The interval of each count, (d,).

    `support`: the C of each. `chances`: `keep` and `noise` of each answer, or once for all. `score`: as in
    `score_ends`.
    """
    low, high = (np.clip(end, 0, reports) for end in score_ends(counts, score, level))
    keep, noise = (np.broadcast_to(side, counts.shape) for side in chances)
    variances = [draws * (held * keep * (1 - keep) + (reports - held) * noise * (1 - noise)) for held in (low, high)]
    few = np.minimum(*variances) < _EXACT_BELOW * max(1.0, (quantile(level) / quantile(_FAR)) ** 4)
    for own, other in set(zip(*(side.tolist() for side in chances), strict=True)):
        here = np.flatnonzero(few & (keep == own) & (noise == other))
        # Of many answers most have the same support, that of nobody.
        distinct, first, place = np.unique(support[here], return_index=True, return_inverse=True)
        ends = [
            _exact_outward(reports, draws, (count, own, other), level, (float(low[at]), float(high[at])))
            for count, at in zip(distinct.tolist(), here[first].tolist(), strict=True)
        ]
        if ends:
            low[here], high[here] = np.array(ends, dtype=np.float64)[place].T
    return np.minimum(low, counts), np.maximum(high, counts)


def _exact_outward(
    reports: float, draws: int, key: tuple[float, ...], level: float, near: tuple[float, float]
) -> tuple[int, int]:
    """`exact_ends`; a number of users or draws that is no whole one is rounded to either side."""
    count, keep, noise = key
    found = [
        exact_ends(TwoBinomials(users, draws, keep, noise), whole, level, near)
        for users, whole in {(math.floor(reports), math.floor(count)), (math.ceil(reports), math.ceil(count))}
    ]
    return min(low for low, _ in found), max(high for _, high in found)


def binomial_ends(ones: float, trials: float, level: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of a probability, from `ones` of `trials`.

    It is one of the mean probability where trials differ, too: of all sums of that mean the binomial is the most
    spread out (Hoeffding 1956, Theorem 5). Neither number has to be whole.
    """
    beyond = (1 - level) / 2
    low = float(betaincinv(ones, trials - ones + 1, beyond)) if ones else 0.0
    high = float(betaincinv(ones + 1, trials - ones, 1 - beyond)) if ones < trials else 1.0
    return low, high


def sum_quantile(log_density: Callable[[float], float], spread: float, terms: int, level: float) -> float:
    """t with P[|X_1 + … + X_n| <= t·√n·`spread`] = `level`, for X of this density, symmetric about 0.

    `spread` is their standard deviation. From `_NORMAL_FROM` terms on, that of a normal variable. Computed by the
    n-th power of the Fourier transform of the density in cells of a fiftieth of `spread`, as far out as twelve
    standard deviations of the sum.
    """
    normal = quantile(level)
    if terms >= _NORMAL_FROM:
        return normal
    reach = math.ceil(12 * math.sqrt(terms) * _CELLS_PER_SPREAD)
    cell = spread / _CELLS_PER_SPREAD
    inside = [(place + 0.5) / _POINTS_PER_CELL * cell for place in range(reach * _POINTS_PER_CELL)]
    half = cell * np.exp([log_density(point) for point in inside]).reshape(reach, -1).mean(axis=1)
    # What is left out, and what the cells of a jump get wrong, would grow with the power.
    masses = np.concatenate([half[::-1], half]) / (2 * half.sum())
    size = 1 << (2 * reach * min(terms, 3)).bit_length()
    # The n-th power of cells at (k + ½) lies at n/2 more than the sum of the k.
    summed = np.fft.irfft(np.fft.rfft(masses, size) ** terms, size)
    # Sums further out come round to the other side, where nothing is left to come round to.
    places = (np.arange(size) + terms * (0.5 - reach) + size / 2) % size - size / 2
    order = np.argsort(np.abs(places), kind="stable")
    found = min(int(np.searchsorted(np.cumsum(summed[order]), level)), size - 1)
    return (abs(float(places[order[found]])) + 0.5) / _CELLS_PER_SPREAD / math.sqrt(terms)


def bounded_margin(seen: float, most: float, width: float, reports: float, level: float) -> float:
    """Half the interval of a mean of reports in a range of `width`.

    `seen` is the standard deviation of the reports at hand, `most` the largest that there can be. Taken is the seen
    one, raised by what it may be too small by (Maurer and Pontil 2009, Theorem 10), or `most` where that is less.
    To the normal margin comes what a single report far out adds that is rare: half a step of `width`, and the first
    term of Cornish and Fisher for a skewness as large as can be, (z² - 1)/6 times `width`.
    """
    z, beyond = quantile(level), (1 - level) / 2
    raised = seen + width * math.sqrt(2 * math.log(1 / beyond) / (reports - 1)) if reports > 1 else math.inf
    rare = width * (0.5 + max(0.0, z * z - 1) / 6) / reports
    return z * min(raised, most) / math.sqrt(reports) + rare


def quantile(level: float, freedom: int | None = None) -> float:
    """z with P[|Z| <= z] = `level`: of a normal variable, or of Student's t with so many degrees of freedom.

    Raises `InvalidParameter` unless 0 < level < 1.
    """
    beyond = (1 - check_share("level", level)) / 2  # of the lower tail, as the upper one rounds to all there is
    return -NormalDist().inv_cdf(beyond) if freedom is None else -float(stdtrit(freedom, beyond))
