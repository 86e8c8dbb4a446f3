"""Estimates about n respondents from the reports of the n_a of them who were asked a question.

The population is these n respondents. Given n_a, the asked ones are a simple random sample without replacement, because
each respondent is asked with the same probability, independently of the others. The estimated share f̂ among the asked is
an unbiased estimate of the share f among all. It is multiplied by n, not by n_a·m/k: the realized n_a is known, so its
randomness need not be paid for. On average n/n_a is about m/k.

**Variance of a share.** With N_s holders among the asked, the reports add n_a·[(1 - f_s)·v₀ + f_s·v₁] to the variance of the
count (`SupportLaw`), and E[f_s] = f. The sample share itself has the variance S²/n_a·(1 - n_a/n) with S² = f(1 - f)·n/(n - 1)
(Cochran 1977, Theorem 3.2). The two parts are uncorrelated, because the reports are unbiased for every sample:

    Var f̂ = [(1 - f)·v₀ + f·v₁ + c·f(1 - f)]/n_a,     c = (1 - n_a/n)·n/(n - 1) = (n - n_a)/(n - 1)

Nothing in it is an approximation: the size n of the population is known. Where everyone is asked c is 0.

**Variance of a mean.** Likewise Var = v/n_a + S²·(1/n_a - 1/n), with v the mean variance of the asked reports around their
values and S² the variance of all values. A mechanism whose aggregate has the sum of squares shows S²: the variance of the
reports is v + S² on average. Elsewhere S² is bounded by (U - mean)(mean - L)·n/(n - 1), which is conservative. An
interval of bits (Clopper-Pearson), and a spread estimated from the reports, include S²/n_a already.

**Intervals of counts.** They invert the score test with this variance, as those of `confidence_intervals` do:
(f̂ ± step - f)² = z²·Var(f), a quadratic equation in f. With few supporting reports (a variance below 9) of one draw each,
the interval is Clopper and Pearson's, for the probability that a report supports the answer. The generating function of
a hypergeometric number has real roots only, and so has that of the supporting reports. So their number is distributed
like a sum of independent binary variables, for which that interval covers (Hoeffding 1956, Theorem 5).

References:
    W. G. Cochran, Sampling Techniques, 3rd edition (1977).
    W. Hoeffding, On the distribution of the number of successes in independent trials, Ann. Math. Stat. 27 (1956).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .estimates import (
    BitMeanEstimate,
    BoundedMeanEstimate,
    CountEstimate,
    Estimate,
    MeanEstimate,
    NoiseMeanEstimate,
    SupportLaw,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_FEW = 9.0
"""Variance of the number of supporting reports below which the interval is Clopper and Pearson's."""
_FAR = 0.99
"""The confidence above which the interval allows for skewness."""


def without_replacement(asked: int, respondents: int) -> float:
    """Return c = (n - n_a)/(n - 1), the factor of f(1 - f)/n_a in the variance of a share; 0 if everyone was asked."""
    return (respondents - asked) / (respondents - 1) if respondents > asked else 0.0


def worst_share_variance(at_zero: float, at_one: float, sampling: float) -> float:
    """Return the largest (1 - f)·`at_zero` + f·`at_one` + `sampling`·f(1 - f) of all shares f in [0, 1]."""
    if sampling <= 0:
        return max(at_zero, at_one)
    share = min(max((1 + (at_one - at_zero) / sampling) / 2, 0.0), 1.0)
    return (1 - share) * at_zero + share * at_one + sampling * share * (1 - share)


def expanded(estimate: Estimate, respondents: int, mechanism: Any, total: Any) -> Any:
    """Return an estimate of the asked as one of all respondents, with the variance of sampling.

    Parameters:
        estimate: the estimate from the reports of the asked.
        respondents: n, the number of all respondents, asked or not.
        mechanism: the mechanism of the reports.
        total: their aggregate.

    Raises:
        TypeError: the estimate is neither of counts nor of a mean.
    """
    if respondents == estimate.reports:
        return estimate
    if isinstance(estimate, CountEstimate):
        return _expanded_counts(estimate, respondents)
    if isinstance(estimate, MeanEstimate):
        return _expanded_mean(estimate, respondents, mechanism, total)
    raise TypeError(f"an estimate of counts or of a mean is needed: got {estimate!r}")


# -- counts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SampledLaw:
    """The law of counts of `respondents` users that were estimated from the reports of a part of them, `sample`."""

    sample: CountEstimate
    respondents: int

    @property
    def sampling(self) -> float:
        """c, the factor of the variance of sampling."""
        return without_replacement(self.sample.reports, self.respondents)

    def errors(self) -> Floats:
        """Return the standard errors of the counts, at the estimated shares."""
        asked, shares = self.sample.reports, np.clip(self.sample.shares, 0, 1)
        noise = (self.sample.std_errors / asked) ** 2
        errors: Floats = self.respondents * np.sqrt(noise + self.sampling * shares * (1 - shares) / asked)
        return errors

    def ends(self, estimate: CountEstimate, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the intervals, within 0 and the number of respondents unless the estimate is not."""
        shares = self.sample.shares
        if isinstance(self.sample.law, SupportLaw) and self.sample.support is not None:
            low, high = self._score_ends(self.sample.law, shares, level)
            low, high = self._exact_ends(self.sample.law, low, high, level)
        else:
            from .accepted_values import quantile

            margin = quantile(level) * self.errors() / self.respondents
            low, high = shares - margin, shares + margin
        low, high = np.minimum(np.clip(low, 0, 1), shares), np.maximum(np.clip(high, 0, 1), shares)
        return low * self.respondents, high * self.respondents

    def _score_ends(self, law: SupportLaw, shares: Floats, level: float) -> tuple[Floats, Floats]:
        """Return the shares f with (share ± step - f)² = z²·Var(f)."""
        from .accepted_values import quantile

        z, asked, c = quantile(level), self.sample.reports, self.sampling
        # Half a step of the support, and above 99 % the skewness, as in `confidence_intervals`.
        steps = 0.5 if level <= _FAR else 0.5 * (1 + max(0.0, z * z - 1) / 3)
        step = steps / (law.draws * law.shown * law.gap) / asked
        square = 1 + z * z * c / asked
        ends = []
        for side in (-1, 1):
            centre = shares + side * step
            half = centre + z * z * (law.at_one - law.at_zero + c) / (2 * asked)
            root = np.sqrt(np.maximum(0.0, half**2 - square * (centre**2 - z * z * law.at_zero / asked)))
            ends.append((half + side * root) / square)
        return ends[0], ends[1]

    def _exact_ends(self, law: SupportLaw, low: Floats, high: Floats, level: float) -> tuple[Floats, Floats]:
        """Return the ends, with Clopper and Pearson's for the answers that few reports support, or nearly all."""
        from .confidence_intervals import binomial_ends

        if law.draws != 1:
            return low, high
        asked, support = self.sample.reports, np.asarray(self.sample.support)
        noise, gap = (np.broadcast_to(law.shown * each, support.shape) for each in (law.noise, law.gap))
        low, high = low.copy(), high.copy()
        chances = [np.clip(noise + gap * np.clip(end, 0, 1), 0, 1) for end in (low, high)]
        few = np.minimum(*(asked * chance * (1 - chance) for chance in chances)) < _FEW
        for place in np.flatnonzero(few):
            ends = binomial_ends(float(support[place]), float(asked), level)
            low[place], high[place] = ((end - noise[place]) / gap[place] for end in ends)
        return low, high


def _expanded_counts(estimate: CountEstimate, respondents: int) -> CountEstimate:
    times = respondents / estimate.reports
    law = SampledLaw(estimate, respondents)
    support: Any = None if estimate.support is None else estimate.support * times
    margins = estimate.fake_margins
    return replace(
        estimate,
        reports=respondents,
        counts=estimate.counts * times,
        std_errors=law.errors(),
        law=law,
        support=support,
        fake_margins=None if margins is None else (margins[0] * times, margins[1] * times),
    )


# -- means -----------------------------------------------------------------------------------------------------------


def _expanded_mean(estimate: MeanEstimate, respondents: int, mechanism: Any, total: Any) -> Any:
    if isinstance(estimate, BitMeanEstimate | BoundedMeanEstimate):
        return estimate
    asked = estimate.reports
    values = spread_of_values(estimate, respondents, mechanism, total)
    error = math.sqrt(estimate.std_error**2 + values * (1 / asked - 1 / respondents))
    if isinstance(estimate, NoiseMeanEstimate):  # its interval is of noise alone
        return MeanEstimate(asked, estimate.mean, error)
    return replace(estimate, std_error=error)


def spread_of_values(estimate: MeanEstimate, respondents: int, mechanism: Any, total: Any) -> float:
    """Return S², the variance of the respondents' values: estimated where the aggregate has squares, else a bound."""
    lower, upper = mechanism.interval.ends
    mean = min(max(estimate.mean, lower), upper)
    bound = (upper - mean) * (mean - lower) * respondents / (respondents - 1)
    asked, step = estimate.reports, mechanism.grid()[1]
    if not mechanism.keeps_squares or type(estimate) is not MeanEstimate or asked < 2:
        return float(bound)
    spread = (asked * total.total_squares - total.total**2) / (asked * (asked - 1)) * step**2
    return float(min(max(0.0, spread - asked * estimate.std_error**2), bound))
