"""Confidence intervals that cover at any number of reports, also for very rare and very common answers.

The unknown is the number N of *these n users* who hold an answer. The users are not a sample of anything, so the
reports are the only source of randomness. Of the draws in these reports,

    C = Bin(lN, p) + Bin(l(n - N), q)

support the answer, for l draws in a report. An interval contains every N from 0 to n that a test does not reject, with the
levels of `accepted_values`:

- While the variance of C is small, the test is exact (Clopper and Pearson 1934, for the sum of two binomials). It
  rejects N if C, or anything further out, has a probability below the level. So the coverage is at least the
  declared one.
- From a variance of `_EXACT_BELOW` on, it takes the gamma law with the variance and the third cumulant of C *at N*. Half a
  step of C is added on either side, because C is discrete. Above a confidence of 99 %, the exact test is used up to
  larger variances.

References:
    C. J. Clopper and E. S. Pearson, The use of confidence or fiducial limits, Biometrika 26 (1934).
    W. Hoeffding, On the distribution of the number of successes in independent trials, Ann. Math. Stat. 27 (1956).
    A. Maurer and M. Pontil, Empirical Bernstein bounds and sample variance penalization, COLT (2009).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import betainc, betaincinv, gammaln, xlog1py, xlogy

from .accepted_values import GammaTails, Levels, Spread, accepted_means, quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .share_laws import Cumulants

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_EXACT_BELOW = 100.0
"""Variance of C up to which the exact test is used; there half a step is a twentieth of a standard deviation."""
_FAR = 0.99
"""The confidence up to which `_EXACT_BELOW` holds: the gamma law has the first three cumulants, and further tails need more."""

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


def exact_ends(law: TwoBinomials, count: int, level: float, near: tuple[float, float]) -> tuple[int, int]:
    """Return the least and the largest N that the exact test accepts; `near` are guesses of them.

    A C that is further from what N = 0 (N = n) gives than a standard deviation counts as one at that distance; see
    `accepted_means`.
    """
    n, step = law.users, law.draws * (law.keep - law.noise)
    if step <= 0:
        return 0, n  # in doubles, the reports are alike for all answers
    errors = [math.sqrt(law.variance(held)) for held in (0, n)]
    levels = Levels(1 - level, 0.0, float(n), *(max(error / step, _LEAST_NEAR) for error in errors))
    least = max(count, math.floor(law.draws * n * law.noise - errors[0]))
    most = min(count, math.ceil(law.draws * n * law.keep + errors[1]))
    low = _first(lambda held: law.at_least(held, most) >= levels.large(held), n, near[0])
    high = n - _first(lambda held: law.at_most(n - held, least) >= levels.small(n - held), n, n - near[1])
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


def count_ends(
    counts: Floats,
    reports: float,
    support: Floats,
    chances: tuple[Floats, Floats],
    draws: int,
    law: tuple[Cumulants, Floats],
    level: float,
) -> tuple[Floats, Floats]:
    """Return the ends of the interval of each count, (d,), from 0 to the number of reports.

    `support`: the value of C for each count. `chances`: `keep` and `noise`, for each answer or once for all. `law`: the
    cumulants of the count of one report and the step of a count, likewise.
    """
    keep, noise = (np.broadcast_to(side, counts.shape) for side in chances)
    low, high = _gamma_ends(counts, reports, law, level)
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
    return low, high


def _gamma_ends(
    counts: Floats, reports: float, stated: tuple[Cumulants, Floats], level: float
) -> tuple[Floats, Floats]:
    """Return the ends by the gamma law."""
    law, step = stated
    place: Any = slice(None)
    if np.size(step) == 1:
        # Of many answers, many have the same count.
        counts, place = np.unique(counts, return_inverse=True)

    def spread(held: Floats) -> Spread:
        others = reports - held
        variance = others * law.other + held * law.held
        return Spread(variance, others * law.other_third + held * law.held_third, step)

    low, high = accepted_means(GammaTails(counts, spread, spread), level, (0.0, reports))
    return low[place].copy(), high[place].copy()


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
