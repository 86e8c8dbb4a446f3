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

**Intervals of counts.** They are those of `share_laws`: the test of a share f takes this variance and the third cumulant at f.

References:
    W. G. Cochran, Sampling Techniques, 3rd edition (1977).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ldp_budget.sdk.estimates import (
    BitMeanEstimate,
    BoundedMeanEstimate,
    CountEstimate,
    Estimate,
    MeanEstimate,
    NoiseMeanEstimate,
    ShareCountLaw,
    SupportLaw,
)
from ldp_budget.sdk.share_laws import without_replacement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


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
        return float(without_replacement(self.sample.reports, self.respondents)[0])

    def errors(self) -> Floats:
        """Return the standard errors of the counts, at the estimated shares."""
        asked, shares = self.sample.reports, self.sample.shares
        noise = (self.sample.std_errors / asked) ** 2
        drawn = np.maximum(self.sampling * shares * (1 - shares) / asked, 0.0)
        errors: Floats = self.respondents * np.sqrt(noise + drawn)
        return errors

    def ends(self, estimate: CountEstimate, level: float) -> tuple[Floats, Floats]:
        """Return the ends of the intervals, within 0 and the number of respondents."""
        from ldp_budget.sdk.share_laws import AnswerLaw, Scales, share_ends

        asked, law = self.sample.reports, self.sample.law
        if isinstance(law, SupportLaw):
            cumulants = law.cumulants()
        elif isinstance(law, ShareCountLaw):
            cumulants = law.cumulants
        else:
            from ldp_budget.sdk.accepted_values import normal_ends

            counts = self.sample.shares * self.respondents
            return normal_ends(counts, self.errors(), level, (0.0, float(self.respondents)))
        scales = Scales.of(np.array([1 / asked]), asked, *without_replacement(asked, self.respondents))
        ends = share_ends(
            AnswerLaw(cumulants), scales, self.sample.shares, level, lattice=isinstance(law, SupportLaw)
        )
        low, high = (end * self.respondents for end in ends)
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
        return MeanEstimate(asked, estimate.mean, error, ends=estimate.ends)
    return replace(estimate, std_error=error, bounds=None)


def spread_of_values(estimate: MeanEstimate, respondents: int, mechanism: Any, total: Any) -> float:
    """Return S², the variance of the respondents' values: estimated where the aggregate has squares, else a bound."""
    lower, upper = mechanism.interval.ends
    mean = min(max(estimate.mean, lower), upper)
    bound = (upper - mean) * (mean - lower) * respondents / (respondents - 1)
    asked, step = estimate.reports, mechanism.grid()[1]
    if not mechanism.keeps_squares or not isinstance(estimate, MeanEstimate) or asked < 2:
        return float(bound)
    spread = (asked * total.total_squares - total.total**2) / (asked * (asked - 1)) * step**2
    return float(min(max(0.0, spread - asked * estimate.std_error**2), bound))
