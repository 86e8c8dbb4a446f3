"""Mechanisms that violate their guarantee, each by a mistake of a real library. No check may pass them.

Where the promise is what lies, `compare` tells the true odds, so that an exact check finds the lie; where the client
or the server lies, the description is that of the honest mechanism it pretends to be.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from ldp_budget import FrequencyMechanism, NotSupported
from ldp_budget.guarantees import SAME_CHANGE_PATTERN, Guarantee, Memoised, Pure
from ldp_budget.guarantees.fixed_point import exp_down, ln_up
from ldp_budget.sampling import ONE, bernoulli, integers, open_stream, threshold
from ldp_budget.sampling.memoisation import memo_words
from ldp_budget.sdk.channels import Comparison, Factor
from ldp_budget.sdk.estimates import CountEstimate
from ldp_budget.sdk.interpreter import column_sums
from ldp_budget.sdk.parameters import integer, real
from ldp_budget_mechanisms._bounded_staircase_profile import reach_of
from ldp_budget_mechanisms._interval_grid import WindowChannel
from ldp_budget_mechanisms.bounded_noise import BoundedStaircase, printed_epsilon_hat
from ldp_budget_mechanisms.generalized_randomized_response import RandomSubstitution
from ldp_budget_mechanisms.unary_encoding import OptimizedUnaryEncoding, SymmetricUnaryEncoding
from unary_rows import unary_rows


def bit_of(reports: Any, answer: int) -> Any:
    """The bit of an answer in packed reports, integers (n,)."""
    return (reports[:, answer // 8] >> (answer % 8) & 1).astype(np.int64)


class OnlySetsBits(FrequencyMechanism):
    """A RAPPOR-like client that turns zeros to ones and never a one to zero, as pure-ldp 1.2.0 does.

    The own bit of a user is always set, so a zero there rules the answer out: the loss is infinite, not 1.
    """

    name = "only-sets-bits"

    domain_size = integer("number of bits, one for each answer", at_least=2, default=16)

    noise = ONE // 2

    @property
    def answers(self) -> int:
        return self.domain_size

    @property
    def guarantee(self) -> Guarantee:
        return Pure(Decimal(1))

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        return [(Fraction(1), Fraction(self.noise, ONE))]

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        answers = self.domain.check(values)
        return unary_rows(open_stream(rng), answers, self.domain_size, ONE, self.noise)

    def support(self, reports: Any) -> tuple[int, Any]:
        return len(reports), column_sums(reports, self.domain_size)

    def compare(self, first: int, second: int) -> Comparison:
        noise = Fraction(self.noise, ONE)
        return Comparison.of(Factor.bit(Fraction(1), noise), Factor.bit(noise, Fraction(1)))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        return 2 * bit_of(reports, first) + bit_of(reports, second)


class FreshEveryTime(SymmetricUnaryEncoding):
    """Says that it memoizes its bits, but ignores the secret and draws them again, as multi-freq-ldpy 0.2.5 does.

    The first report keeps the promise; t of them lose t times as much, where ε is promised for all together.
    """

    name = "fresh-every-time"

    @property
    def guarantee(self) -> Guarantee:
        return Memoised((self.epsilon,), self.epsilon, relation=SAME_CHANGE_PATTERN)

    def compare_repeated(self, first: int, second: int, reports: int | None) -> Comparison:
        if reports is None:
            return Comparison.rows([Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)])
        (case,) = self.compare(first, second).cases
        return Comparison.of(*(case.factors * reports))


class EmitsUnknown(RandomSubstitution):
    """A random substitution that sends a value it does not know as it is, instead of refusing it."""

    name = "emits-unknown"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        array = np.asarray(values)
        known = (array >= 0) & (array < self.domain_size)
        reports = array.astype(np.int64)
        reports[known] = super().randomize(array[known], rng=rng, secrets=secrets)
        return reports


class PrintedRowTwo(BoundedStaircase):
    """The bounded staircase with the second row of Theorem 6 as it is printed, for ½ <= gamma < 1.

    It says ε and loses ε + ln(1/γ), between an end of the range and an input whose window leaves out little of it.
    """

    name = "printed-row-two"

    @functools.cached_property
    def _epsilon_hat(self) -> float:
        return float(printed_epsilon_hat(self.epsilon, self._gamma))

    @functools.cached_property
    def channel(self) -> WindowChannel:
        low = 2**20
        odds = exp_down(printed_epsilon_hat(self.epsilon, self._gamma))
        return WindowChannel(self.cells, reach_of(self._gamma, self.cells), int(low * odds), low)

    def critical_inputs(self) -> Sequence[float]:
        """One more, whose window leaves out enough of the range for an audit to meet reports in there."""
        inner = self.lower + (self.upper - self.lower) * (self._gamma + (1 - self._gamma) / 8)
        return sorted({*super().critical_inputs(), float(inner)})


class AlgorithmTwoLnGamma(RandomSubstitution):
    """Distinct draws that are said to keep the privacy of one, as Kang, Lee and Hong 2009 say of their Algorithm 2.

    Build it with gamma, draws > 1 and sampling="distinct". From N = 50, γ = 10 and 4 draws a set loses ln 13.20.
    """

    name = "algorithm-two"

    @property
    def guarantee(self) -> Guarantee:
        return Pure(ln_up(self._gamma))


class ChainedGrr(FrequencyMechanism):
    """Two substitutions in a row, a memoised one and a fresh one, calibrated as if there were two answers.

    The permanent answer is kept with probability p₁ = e^ε∞/(e^ε∞+k-1), else it is one of the k-1 others with q₁ each;
    a report keeps the permanent answer with p₂, else it is one of the others with q₂ = (1-p₂)/(k-1) each. So

        P[v | v] = p₁p₂ + (1-p₁)q₂ = p₁p₂ + q₁(1-p₂),
        P[y | v] = p₁q₂ + q₁p₂ + (k-2)q₁q₂.

    The calibration drops the k-2 others: it takes all of 1-p₂ to fall on the one answer y, and solves
    e^ε₁ = (p₁p₂ + q₁(1-p₂)) / (p₁(1-p₂) + q₁p₂). The numerator is right; the denominator is larger than P[y | v], by
    (1-p₂)(p₁-q₁)(k-2)/(k-1) > 0. So for k > 2 one report loses *more* than ε₁: for k = 10, ε∞ = 4 and ε₁ = 1 it is
    2.77. (Dropping (k-2)q₁q₂ from numerator and denominator alike would err on the safe side.)
    """

    name = "chained-grr"

    epsilon = real("privacy loss of one report", above=0)
    epsilon_lifetime = real("privacy loss of all reports of one value", above=0)
    domain_size = integer("number of possible answers, k", at_least=3)

    @functools.cached_property
    def keeps(self) -> tuple[Fraction, Fraction]:
        """p₁ and p₂, as they are drawn."""
        lifetime, odds = Fraction(exp_down(self.epsilon_lifetime)), Fraction(exp_down(self.epsilon))
        p = lifetime / (lifetime + self.domain_size - 1)
        q = (1 - p) / (self.domain_size - 1)
        p, again = p, (odds * p - q) / ((p - q) * (1 + odds))
        return Fraction(threshold(p, up=False), ONE), Fraction(threshold(again, up=False), ONE)

    @property
    def answers(self) -> int:
        return self.domain_size

    @property
    def guarantee(self) -> Guarantee:
        return Memoised((self.epsilon,), self.epsilon_lifetime, relation=SAME_CHANGE_PATTERN)

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        p, again = self.keeps
        same = p * again + (1 - p) * (1 - again) / (self.domain_size - 1)
        return [(same, (1 - same) / (self.domain_size - 1))]

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        answers = self.domain.check(values)
        stream, others = open_stream(rng), self.domain_size - 1
        words = (
            np.frombuffer(stream.read(16 * len(answers)), np.uint64).reshape(-1, 2)
            if secrets is None
            else memo_words(secrets, self.fingerprint, answers, 2)
        )
        p, again = (int(keep * ONE) for keep in self.keeps)
        permanent = self._substituted(answers, words[:, 0] < np.uint64(p), words[:, 1] % np.uint64(others))
        kept = bernoulli(stream, again, len(answers))
        return self._substituted(permanent, kept, integers(stream, others, len(answers)))

    @staticmethod
    def _substituted(answers: Any, kept: Any, others: Any) -> Any:
        others = others.astype(np.int64)
        return np.where(kept, answers, others + (others >= answers))

    def support(self, reports: Any) -> tuple[int, Any]:
        return len(reports), np.bincount(reports, minlength=self.domain_size)

    def compare(self, first: int, second: int) -> Comparison:
        ((same, other),) = self.support_probabilities
        rest = (self.domain_size - 2) * other
        return Comparison.rows([same, other, rest], [other, same, rest])

    def compare_repeated(self, first: int, second: int, reports: int | None) -> Comparison:
        raise NotSupported(f"{self.name} does not describe repeated reports")

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        return np.select([reports == first, reports == second], [0, 1], 2)


class VarianceOff(OptimizedUnaryEncoding):
    """Its standard errors are ten per cent too small."""

    name = "variance-off"

    def estimate(self, reports: Any) -> CountEstimate:
        honest = super().estimate(reports)
        return CountEstimate(honest.reports, honest.counts, 0.9 * honest.std_errors)


class ClippingEstimator(OptimizedUnaryEncoding):
    """Its counts are never negative, and so too high on average where an answer is rare."""

    name = "clipping-estimator"

    def estimate(self, reports: Any) -> CountEstimate:
        honest = super().estimate(reports)
        return CountEstimate(honest.reports, honest.counts.clip(min=0.0), honest.std_errors)
