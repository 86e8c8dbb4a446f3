"""Confidence intervals that cover at any number of reports, also for very rare and very common answers.

The unknown is the number N of *these n users* who hold an answer. The users are not a sample of anything, so the
reports are the only source of randomness. Of the draws in these reports,

    C = Bin(lN, p) + Bin(l(n - N), q)

support the answer, for l draws in a report. An interval contains every N that a test does not reject. The levels of the
test on its two sides add up to 1 - confidence, see `Tails`:

- While the variance of C is small, the test is exact (Clopper and Pearson 1934, for the sum of two binomials). It
  rejects N if C, or anything further out, has a probability of at most the level. So the coverage is at least the
  declared one.
- From a variance of `_EXACT_BELOW` on, it is the score test (Wilson 1927). This test compares the deviation of the
  estimate with its variance *at N*, n·v₀ + N·(v₁ - v₀). Wald's interval takes the variance at the estimate, and its
  coverage is unreliable (Brown, Cai and DasGupta 2001). Half a step of C is added on either side, because C is discrete.
- Above a confidence of 99 %, the tails differ from those of a normal variable, because C is skewed. There the exact
  test is used up to larger variances. Beyond them, the largest possible effect of the skewness on a quantile is added
  to the half step: (z² - 1)/6 steps. The third cumulant of a sum of binary draws is at most its variance (Cornish and
  Fisher 1937). The same is added near 0 and n, where the test leans to one side.

An interval always contains the estimate itself, which may be outside [0, n].

Half of 1 - confidence on either side would be wasteful near 0 and n: at N = 0 no C is too small, so half of the level is
never used, and an estimate far below 0 gets an empty interval. So the levels move to one side there, as the limits of
Feldman and Cousins (1998) do. Against equal sides, cut to [0, n], the coverage at N = 0 is 0.950 in place of 0.975, and
the intervals are up to 2 % narrower for N from 1 to 4 standard deviations and 1 % wider at N = 0.

References:
    G. J. Feldman and R. D. Cousins, Unified approach to the classical statistical analysis of small signals, Physical
        Review D 57 (1998).
    C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934).
    E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).
    L. D. Brown, T. T. Cai and A. DasGupta, Interval estimation for a binomial proportion, Stat. Science 16 (2001).
    E. A. Cornish and R. A. Fisher, Moments and cumulants in the specification of distributions, Revue de l'Institut
        International de Statistique 5 (1937).
    W. Hoeffding, On the distribution of the number of successes in independent trials, Ann. Math. Stat. 27 (1956).
    A. Maurer and M. Pontil, Empirical Bernstein bounds and sample variance penalization, COLT (2009).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import betainc, betaincinv, gammaln, ndtr, xlog1py, xlogy

from .accepted_values import quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_EXACT_BELOW = 100.0
"""Variance of C up to which the exact test is used; there half a step is a twentieth of a standard deviation."""
_FAR = 0.99
"""The confidence above which the interval allows for skewness."""

_NORMAL_FROM = 64
_CELLS_PER_SPREAD = 50
_POINTS_PER_CELL = 8


class TwoBinomials(NamedTuple):
    """The law of C = Bin(draws·N, keep) + Bin(draws·(users - N), noise), with `keep` > `noise`."""

    users: int
    draws: int
    keep: float
    noise: float

    def at_least(self, held: int, count: int) -> float:
        """Return P[C >= count] where `held` of the users hold the answer."""
        return self._tail(held, count, upper=True)

    def at_most(self, held: int, count: int) -> float:
        """Return P[C <= count] where `held` of the users hold the answer."""
        return self._tail(held, count, upper=False)

    def variance(self, held: float) -> float:
        own, other = self.keep * (1 - self.keep), self.noise * (1 - self.noise)
        return self.draws * (held * own + (self.users - held) * other)

    def _tail(self, held: int, count: int, *, upper: bool) -> float:
        """Return a tail of C, summed over the likely numbers of supporting draws of the holders."""
        trials, rest = self.draws * held, self.draws * (self.users - held)
        own = _likely(trials, self.keep)
        odds = _log_probabilities(own, trials, self.keep)
        weights = np.exp(odds - odds.max())
        others = count - own
        tail = _binomial_tail(others if upper else others + 1, rest, self.noise)
        return float(weights @ (tail if upper else 1 - tail) / weights.sum())


def _likely(trials: int, probability: float) -> Floats:
    """Return the numbers of successes within nine standard deviations, plus forty for rare successes."""
    mean = trials * probability
    reach = 9 * math.sqrt(mean * (1 - probability)) + 40
    return np.arange(max(0, math.floor(mean - reach)), min(trials, math.ceil(mean + reach)) + 1, dtype=np.float64)


def _log_probabilities(successes: Floats, trials: int, probability: float) -> Floats:
    """Return the log-probabilities of a binomial, up to a common constant."""
    ways = -gammaln(successes + 1) - gammaln(trials - successes + 1)
    found: Floats = ways + xlogy(successes, probability) + xlog1py(trials - successes, -probability)
    return found


def _binomial_tail(least: Floats, trials: int, probability: float) -> Floats:
    """Return P[Bin >= least]."""
    inside = np.clip(least, 1, max(1, trials))
    found = betainc(inside, trials - inside + 1, probability)
    tail: Floats = np.where(least <= 0, 1.0, np.where(least > trials, 0.0, found))
    return tail


_LEAST_NEAR = 1e-9
"""Least standard deviation in users: without noise it is 0, and the levels divide by it."""


class Tails(NamedTuple):
    """The levels at which a test of N rejects a C that is too large, and one that is too small.

    Both are half of `beyond`, 1 - confidence. Within one standard deviation of the estimate from N = 0 (`near_zero`, in
    users) the level for a large C grows to all of `beyond`; from N = n (`near_all`) that for a small C. The levels add
    up to `beyond`, and depend on N alone, so the coverage is at least the declared one.
    """

    beyond: float
    users: float
    near_zero: Any
    near_all: Any

    def large(self, held: Any) -> Any:
        """Return the level on the side of a large C; it falls as N grows, so that an interval has no gaps."""
        at_zero = np.maximum(0, 1 - held / self.near_zero)
        return self.beyond / 2 * (1 + at_zero - np.maximum(0, 1 - (self.users - held) / self.near_all))

    def small(self, held: Any) -> Any:
        """Return the level on the side of a small C."""
        return self.beyond - self.large(held)


def exact_ends(law: TwoBinomials, count: int, level: float, near: tuple[float, float]) -> tuple[int, int]:
    """Return the least and the largest N that the exact test accepts; `near` are guesses of them.

    The test may accept no N. Both ends are 0 where C is too small even for N = 0, and n where C is too large even for
    N = n.
    """
    n, step = law.users, law.draws * (law.keep - law.noise)
    if step <= 0:
        return 0, n  # in doubles, the reports are alike for all answers
    tails = Tails(1 - level, n, *(max(math.sqrt(law.variance(held)) / step, _LEAST_NEAR) for held in (0, n)))
    low = _first(lambda held: law.at_least(held, count) > tails.large(held), n, near[0])
    high = n - _first(lambda held: law.at_most(n - held, count) > tails.small(n - held), n, n - near[1])
    return min(low, n), max(high, 0)


def _first(holds: Callable[[int], bool], last: int, guess: float) -> int:
    """Return the first of 0..last from which on `holds`, or last + 1.

    The search expands from `guess` and then bisects.
    """
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


def _score_step(score: tuple[Any, Any, Any], level: float, *, skewed: bool) -> Any:
    """Return the step that allows for a C that is discrete, and if `skewed` for its skewness."""
    return score[0] * (1 + max(0.0, quantile(level) ** 2 - 1) / 3) if skewed else score[0]


def score_ends(counts: Any, score: tuple[Any, Any, Any], level: float) -> tuple[Floats, Floats]:
    """Return the N with (count ± step - N)² = z²·(at_zero + slope·N), the ends where both sides have the same level.

    `score` is (half a step of C, at_zero, slope).
    """
    z, (_, at_zero, slope) = quantile(level), score
    step = _score_step(score, level, skewed=level > _FAR)
    ends = []
    for side in (-1, 1):
        centre = counts + side * step
        spread = np.maximum(0.0, at_zero + slope * centre + (z * slope / 2) ** 2)
        ends.append(centre + z * z * slope / 2 + side * z * np.sqrt(spread))
    return ends[0], ends[1]


_HALVINGS = 50


def leaning_ends(counts: Floats, users: float, score: tuple[Any, Any, Any], level: float) -> tuple[Floats, Floats]:
    """Return the least and the largest N in [0, n] that the score test accepts, with the levels of `Tails`."""
    # On one side, the skewness is not made up for by the other side.
    step, spread = _score_step(score, level, skewed=True), _spread(score)
    place: Any = slice(None)
    if all(np.size(part) == 1 for part in score):
        # Of many answers, many have the same count.
        counts, place = np.unique(counts, return_inverse=True)
    tails = Tails(1 - level, users, spread(0.0), spread(users))
    none, everyone = np.zeros(counts.shape), np.full(counts.shape, float(users))
    low = _nearest(lambda held: ndtr((held + step - counts) / spread(held)) > tails.large(held), none, everyone)
    high = _nearest(lambda held: ndtr((counts + step - held) / spread(held)) > tails.small(held), everyone, none)
    return low[place], high[place]


def _spread(score: tuple[Any, Any, Any]) -> Callable[[Any], Any]:
    """Return a function that gives the standard deviation of a count for N, above 0."""
    _, at_zero, slope = score
    return lambda held: np.sqrt(np.maximum(at_zero + slope * held, np.finfo(float).tiny))


def _nearest(accepts: Callable[[Floats], Any], first: Floats, last: Floats) -> Floats:
    """Return the N nearest to `first` from which on to `last` the test accepts; `last` if it accepts none."""
    rejected, accepted = first, np.where(accepts(first), first, last)
    for _ in range(_HALVINGS):
        middle = (rejected + accepted) / 2
        inside = accepts(middle)
        rejected, accepted = np.where(inside, rejected, middle), np.where(inside, middle, accepted)
    return accepted


def count_ends(
    counts: Floats,
    reports: float,
    support: Floats,
    chances: tuple[Floats, Floats],
    draws: int,
    score: tuple[Any, Any, Any],
    level: float,
) -> tuple[Floats, Floats]:
    """Return the ends of the interval of each count, (d,).

    `support`: the value of C for each count. `chances`: `keep` and `noise`, for each answer or once for all. `score`:
    as for `score_ends`.
    """
    low, high = (np.clip(end, 0, reports) for end in score_ends(counts, score, level))
    keep, noise = (np.broadcast_to(side, counts.shape) for side in chances)
    variances = [draws * (held * keep * (1 - keep) + (reports - held) * noise * (1 - noise)) for held in (low, high)]
    few = np.minimum(*variances) < _EXACT_BELOW * max(1.0, (quantile(level) / quantile(_FAR)) ** 4)
    for own, other in set(zip(*(side.tolist() for side in chances), strict=True)):
        here = np.flatnonzero(few & (keep == own) & (noise == other))
        # With many answers, most have the same support: the support of an answer that no user holds.
        distinct, first, place = np.unique(support[here], return_index=True, return_inverse=True)
        ends = [
            _exact_outward(reports, draws, (count, own, other), level, (float(low[at]), float(high[at])))
            for count, at in zip(distinct.tolist(), here[first].tolist(), strict=True)
        ]
        if ends:
            low[here], high[here] = np.array(ends, dtype=np.float64)[place].T
    spread = _spread(score)
    edge = np.flatnonzero(~few & ((low < spread(0.0)) | (high > reports - spread(reports))))
    if len(edge):
        at_edge = tuple(part if np.size(part) == 1 else part[edge] for part in score)
        low[edge], high[edge] = leaning_ends(counts[edge], reports, at_edge, level)
    return np.minimum(low, counts), np.maximum(high, counts)


def _exact_outward(
    reports: float, draws: int, key: tuple[float, ...], level: float, near: tuple[float, float]
) -> tuple[int, int]:
    """Return `exact_ends`; a fractional number of users or draws is rounded to either side."""
    count, keep, noise = key
    found = [
        exact_ends(TwoBinomials(users, draws, keep, noise), whole, level, near)
        for users, whole in {(math.floor(reports), math.floor(count)), (math.ceil(reports), math.ceil(count))}
    ]
    return min(low for low, _ in found), max(high for _, high in found)


def binomial_ends(ones: float, trials: float, level: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval of a probability, from `ones` of `trials`.

    It also covers the mean probability of trials that differ: of all sums with that mean, the binomial has the largest
    spread (Hoeffding 1956, Theorem 5). Neither number has to be whole.
    """
    beyond = (1 - level) / 2
    low = float(betaincinv(ones, trials - ones + 1, beyond)) if ones else 0.0
    high = float(betaincinv(ones + 1, trials - ones, 1 - beyond)) if ones < trials else 1.0
    return low, high


def sum_quantile(log_density: Callable[[float], float], spread: float, terms: int, level: float) -> float:
    """Return t with P[|X_1 + … + X_n| <= t·√n·`spread`] = `level`, for X of this density, symmetric about 0.

    `spread` is the standard deviation of X. From `_NORMAL_FROM` terms on, the result is the normal quantile. For fewer
    terms, it is the n-th power of the Fourier transform of the density. The density is binned in cells of a fiftieth of
    `spread`, out to twelve standard deviations of the sum.
    """
    normal = quantile(level)
    if terms >= _NORMAL_FROM:
        return normal
    reach = math.ceil(12 * math.sqrt(terms) * _CELLS_PER_SPREAD)
    cell = spread / _CELLS_PER_SPREAD
    inside = [(place + 0.5) / _POINTS_PER_CELL * cell for place in range(reach * _POINTS_PER_CELL)]
    half = cell * np.exp([log_density(point) for point in inside]).reshape(reach, -1).mean(axis=1)
    # Normalized, because the omitted tail and the error of a cell with a jump would grow with the power.
    masses = np.concatenate([half[::-1], half]) / (2 * half.sum())
    size = 1 << (2 * reach * min(terms, 3)).bit_length()
    # The n-th power of cells at (k + ½) is shifted by n/2 against the sum of the k.
    summed = np.fft.irfft(np.fft.rfft(masses, size) ** terms, size)
    # The transform is periodic: sums further out wrap around to the other side, where no mass is left.
    places = (np.arange(size) + terms * (0.5 - reach) + size / 2) % size - size / 2
    order = np.argsort(np.abs(places), kind="stable")
    found = min(int(np.searchsorted(np.cumsum(summed[order]), level)), size - 1)
    return (abs(float(places[order[found]])) + 0.5) / _CELLS_PER_SPREAD / math.sqrt(terms)


def bounded_margin(seen: float, most: float, width: float, reports: float, level: float) -> float:
    """Return half the width of the interval of a mean of reports in a range of `width`.

    `seen` is the standard deviation of the observed reports, `most` the largest possible one. The margin takes the
    smaller of `most` and `seen` plus its largest likely error (Maurer and Pontil 2009, Theorem 10). To the normal
    margin it adds the effect of a single rare report far out: half a step of `width`, and the first term of Cornish
    and Fisher for the largest possible skewness, (z² - 1)/6 times `width`.
    """
    z, beyond = quantile(level), (1 - level) / 2
    raised = seen + width * math.sqrt(2 * math.log(1 / beyond) / (reports - 1)) if reports > 1 else math.inf
    rare = width * (0.5 + max(0.0, z * z - 1) / 6) / reports
    return z * min(raised, most) / math.sqrt(reports) + rare
