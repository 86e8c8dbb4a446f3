"""dBitFlip: one bit for each of d buckets out of k (Ding, Kulkarni and Yekhanin 2017).

A user draws d of the k buckets without replacement, independently of the value v, and for each of them sends

    P[b_j = 1] = e^{ε/2}/(e^{ε/2}+1) if j = v,      1/(e^{ε/2}+1) if not.

Two values differ in at most two of the bits, so the loss of a report is ε, and ε/2 where d = 1 < k. With p the first
and q = 1-p the second probability, the count of v is estimated, without bias, by

    (k/d) Σ (b_v - q)/(p-q) over the users who drew v,      variance n·(k/d)·pq/(p-q)² + n_v·(k/d - 1),

where n_v users hold v: for (k, d) = (5, 4) that is 5/4 of the variance for d = k = 5 plus n_v/4.

Memoised, a user keeps the same buckets permanently, and for every value the bits drawn for it. Reports of one value
then lose ε together, for any number of reports. For neighbors that are *equal in the same places*, the loss over all
their values is at most d·ε. Each of the two values compared adds ε/2 if it is among the d buckets, and in either
history no value counts twice. Without that condition the loss is unbounded, because a change is visible.
"""

from __future__ import annotations

import functools
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import SAME_CHANGE_PATTERN, FinitePair, Guarantee, Memoised, SymmetricPair, Unbounded
from ldp_budget.guarantees.fixed_point import DOWN, UP, decimal_up, exp_down, float_above, float_below
from ldp_budget.sampling import ONE, threshold
from ldp_budget.sdk.channels import Comparison
from ldp_budget.sdk.frequency_oracle import MOST_ANSWERS, FrequencyMechanism
from ldp_budget.sdk.parameters import flag, integer, real

from ._citations import CASE_STUDY

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ldp_budget.sdk.client_program import Program
    from ldp_budget.sdk.estimates import CountAggregate, CountEstimate, SupportLaw
    from ldp_budget.sdk.report_relations import Relation


class DBitFlip(FrequencyMechanism):
    """d bits out of k, drawn for every report or memoised."""

    name = "d-bit-flip"
    summary = "for some of the possible answers, a bit each that says whether it is the user's"
    source = (
        f"Ding, Kulkarni and Yekhanin, Collecting Telemetry Data Privately, NIPS 2017; {CASE_STUDY}, section 3.3.2"
    )

    epsilon = real("privacy loss of one report; half of it where bits = 1", above=0, at_most=10**6)
    buckets = integer("number of possible answers", at_least=2, at_most=MOST_ANSWERS)
    bits = integer("buckets that a report covers", at_least=1, at_most=2**16)
    memoize = flag("keep the buckets, and for every value its bits; needs a secret for each user")
    any_inputs = flag("promise memoized reports for any two inputs, also ones that change at other moments")

    @classmethod
    def for_answers(cls, epsilon: Any, domain_size: int) -> Self:
        """Return a mechanism with a bit for every answer."""
        return cls.calibrate(epsilon=epsilon, buckets=domain_size, bits=domain_size)

    def check(self) -> None:
        if self.bits > self.buckets:
            raise InvalidParameter("bits", f"at most the number of buckets, {self.buckets}", self.bits)
        if 2 * self.noise >= ONE:
            expected = "large enough to be drawn with 64-bit probabilities"
            raise InvalidParameter("epsilon", expected, self.declared["epsilon"])

    @functools.cached_property
    def _lie(self) -> Decimal:
        """q, rounded up: the probability that a bit is flipped."""
        half = DOWN.divide(self.epsilon, Decimal(2))
        return UP.divide(Decimal(1), DOWN.add(exp_down(half), Decimal(1)))

    @functools.cached_property
    def noise(self) -> int:
        """q as the client draws it, in units of 2**-64; p is exactly the rest."""
        return threshold(self._lie, up=True)

    @functools.cached_property
    def _drawn(self) -> tuple[Fraction, Fraction]:
        """p and q as they are drawn."""
        q = Fraction(self.noise, ONE)
        return 1 - q, q

    @property
    def answers(self) -> int:
        return self.buckets

    @property
    def parameters(self) -> dict[str, Any]:
        truth = DOWN.subtract(Decimal(1), self._lie)
        return {"buckets": self.buckets, "bits": self.bits, "p": float_below(truth), "q": float_above(self._lie)}

    # -- privacy loss -----------------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        if not self.memoize:
            return self._pair()
        if self.any_inputs:
            return Unbounded()
        # d values of ε each total d·ε, and so do two of ε/2 if one bucket is drawn.
        return Memoised((self._loss,), self._loss, max(2, self.bits), SAME_CHANGE_PATTERN)

    @property
    def memoised_values(self) -> int | None:
        """One for every bucket, although all of them together lose at most d·ε."""
        return self.buckets if self.memoize and not self.any_inputs else None

    @property
    def _loss(self) -> Decimal:
        """ε of one report."""
        return self.epsilon if self.bits > 1 else UP.divide(self.epsilon, Decimal(2))

    def _pair(self) -> Guarantee:
        """The exact loss of a fresh report, the same for every two values: it depends on which of them were drawn."""
        p, q = self._drawn
        k, d = self.buckets, self.bits
        if d == k:
            return SymmetricPair(self.epsilon, decimal_up(p * p + q * q))
        if d == 1:
            return SymmetricPair(self._loss, decimal_up(Fraction(2, k)))
        pairs = k * (k - 1)
        both, one = Fraction(d * (d - 1), pairs), Fraction(2 * d * (k - d), pairs)
        telling = [(both * p * p, both * q * q), (one * p, one * q)]
        nothing = 1 - sum((ours + theirs for ours, theirs in telling), Fraction(0))
        mirrored = [(theirs, ours) for ours, theirs in telling]
        return FinitePair((*telling, (nothing, nothing), *mirrored))

    @property
    def notes(self) -> tuple[str, ...]:
        if not self.memoize:
            return ()
        total = UP.multiply(self.epsilon, Decimal(self.bits))
        return (
            f"Reports of one memoized value lose {self._loss} together and those of all values at most {total}, for "
            "neighbours whose histories are equal in the same places only.",
            "Jeong, Hong and Seo (2020) have d < k hide when a value changes. It does not: bits that differ show it "
            "for certain, so for other neighbours the loss is unbounded.",
        )

    # -- client -----------------------------------------------------------------------------------------

    @property
    def _lot(self) -> int | None:
        return max(1, 2**17 // self.bits)

    def client_program(self) -> Program:
        """Return the client program; reports are 2·bucket + bit, unsigned integers (n, d).

        If d = k, reports are packed bits, uint8 (n, ceil(k/8)). With `memoize` all randomness comes from `secrets`, and none
        from `rng`.
        """
        from ldp_budget.sdk.client_program import Program, answers, packed, uint, whole

        noise, k, d = whole(self.noise), self.buckets, self.bits
        kept = self.memoize
        flips: list[Any] = ["kept_bits", "bits", "value", noise, d] if kept else ["bits", noise, d]
        memo = "value" if kept else ""
        if d == k:
            steps: tuple[tuple[str, Any], ...] = (
                ("flips", flips),
                ("row", ["xor", ["onehot", "value", k], "flips"]),
            )
            return Program(answers(self.domain), steps, packed("row", k), memo=memo)
        least = k - d + 1
        steps = (
            ("drawn", ["kept_belows", "buckets", 0, least, d] if kept else ["belows_from", least, d]),
            ("buckets", ["floyd", "drawn", least]),
            ("flips", flips),
            ("row", ["xor", ["eq", "buckets", "value"], "flips"]),
            ("report", ["add", ["mul", 2, "buckets"], "row"]),
        )
        return Program(answers(self.domain), steps, uint("report", 2 * k - 1, d), memo=memo)

    # -- verification -----------------------------------------------------------------------------------

    def compare_repeated(self, first: int, second: int, reports: int | None) -> Comparison:
        if not self.memoize:
            return super().compare_repeated(first, second, reports)
        return self.compare(first, second)

    # -- server -----------------------------------------------------------------------------------------

    @functools.cached_property
    def _relation(self) -> Relation:
        from ldp_budget.sdk.report_relations import relation_of

        return relation_of(self.client_program(), self.buckets)

    def support(self, reports: Any) -> tuple[int, NDArray[np.int64]]:
        """Return the number of reports, and for each bucket the reports with it and those with a one, (2, k)."""
        import numpy as np

        count, (zeros, ones, *_) = self._relation.counts(reports)
        return count, np.stack([zeros + ones, ones])

    def _debiased(self, told: Any, ones: Any) -> NDArray[np.float64]:
        """Return what reports add to counts, from the numbers of those with a bucket and of those with a one."""
        p, q = self._drawn
        counts: NDArray[np.float64] = (ones - told * float(q)) * float(Fraction(self.buckets, self.bits) / (p - q))
        return counts

    def contributions(self, reports: Any) -> NDArray[np.float64]:
        import numpy as np

        worths = self._debiased(np.array([1, 1, 0]), np.array([0, 1, 0]))
        found: NDArray[np.float64] = worths[self._relation.of_each(self._relation.check(reports))]
        return found

    def estimate(self, reports: Any, *, consistent: bool = False) -> CountEstimate:
        total: CountAggregate = self.total(reports)
        told, ones = total.support
        from ldp_budget.sdk.consistency import maybe_consistent

        return maybe_consistent(self._law.with_errors(self._debiased(told, ones), total.reports, ones), consistent)

    @property
    def repeats(self) -> bool:
        return self.memoize

    @property
    def _law(self) -> SupportLaw:
        """The law of the count of a bucket that one user in k/d reports."""
        import numpy as np

        from ldp_budget.sdk.estimates import SupportLaw

        (p, q), stretch = self._drawn, Fraction(self.buckets, self.bits)
        at_zero, slope = stretch * p * q / (p - q) ** 2, stretch - 1
        parts = (q, p - q, at_zero, at_zero + slope, slope)
        noise, gap, zero, one, rise = (np.array([float(part)]) for part in parts)
        return SupportLaw(1, noise, gap, zero, one, rise, shown=float(1 / stretch))
