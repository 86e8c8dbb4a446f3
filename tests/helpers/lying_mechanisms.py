"""Plugins whose description is that of a correct mechanism while their client sends something else.

Written as a third party would, against the public authoring rooms alone. `Bits`, `KeptBits` and `Number` are honest;
each of the others is one of them with a client that gives its users away. What they declare, promise and describe is
the honest one's, so no check of the description finds anything.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

import ldp_budget
from ldp_budget import Comparison, Factor
from ldp_budget.guarantees import SAME_CHANGE_PATTERN, Guarantee, Laplace, Memoised, SymmetricPair
from ldp_budget.guarantees.fixed_point import DOWN, UP, exp_down, float_above
from ldp_budget.sampling import ONE, SeededStream, bernoulli, integers, laplace, open_stream, threshold
from ldp_budget.sampling.memoisation import memo_words, secrets_for_each
from ldp_budget.sdk.estimates import SumAggregate
from ldp_budget.sdk.interpreter import bit_of, column_sums, pack_rows
from ldp_budget.sdk.parameters import integer, real

GRID_BITS = 32


# -- the honest ones ------------------------------------------------------------------------------------------


class Bits(ldp_budget.FrequencyMechanism):
    """A bit for each answer, turned round with probability q = 1/(e^{ε/2}+1)."""

    name = "bits"
    examples: ClassVar = ({"epsilon": "0.5", "answers_asked": 5}, {"epsilon": 2, "answers_asked": 12})

    epsilon = real("privacy loss of one report", above=0, at_most=20)
    answers_asked = integer("number of possible answers", at_least=2, at_most=200)

    @property
    def answers(self) -> int:
        return self.answers_asked

    @functools.cached_property
    def turned(self) -> int:
        """q in units of 2**-64, rounded up."""
        half = DOWN.divide(self.epsilon, Decimal(2))
        return threshold(UP.divide(Decimal(1), DOWN.add(exp_down(half), Decimal(1))), up=True)

    @property
    def support_probabilities(self) -> list[tuple[Fraction, Fraction]]:
        q = Fraction(self.turned, ONE)
        return [(1 - q, q)]

    @property
    def guarantee(self) -> Guarantee:
        p, q = self.support_probabilities[0]
        tau = p + q - 2 * p * q
        return SymmetricPair(self.epsilon, UP.divide(Decimal(tau.numerator), Decimal(tau.denominator)))

    def plain(self, answers: Any) -> Any:
        """The bits before any is turned round, boolean (n, d)."""
        bits = np.zeros((len(answers), self.answers), dtype=bool)
        bits[np.arange(len(answers)), answers] = True
        return bits

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        """The bits of each user that are flipped, boolean (n, d)."""
        return bernoulli(stream, self.turned, len(answers) * self.answers).reshape(-1, self.answers)

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        answers = self.domain.check(values)
        return pack_rows(self.plain(answers) ^ self.turns(open_stream(rng), answers, secrets))

    def support(self, reports: Any) -> tuple[int, Any]:
        return len(reports), column_sums(reports, self.answers)

    def compare(self, first: int, second: int) -> Comparison:
        p, q = self.support_probabilities[0]
        return Comparison.of(Factor.bit(p, q), Factor.bit(q, p))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        return 2 * bit_of(reports, first) + bit_of(reports, second)


class KeptBits(Bits):
    """The same with turns that are kept for good, drawn from a secret."""

    name = "kept-bits"

    @property
    def guarantee(self) -> Guarantee:
        return Memoised((self.epsilon,), self.epsilon, relation=SAME_CHANGE_PATTERN)

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        secrets = secrets_for_each(secrets, len(answers))
        return memo_words(secrets, self.fingerprint, answers, self.answers) < np.uint64(self.turned)

    def compare_repeated(self, first: int, second: int, reports: int | None) -> Comparison:
        return self.compare(first, second)


class Number(ldp_budget.NumericMechanism):
    """A number plus Laplace noise of scale b = (upper - lower)/ε, on a public grid of step b/2**32."""

    name = "number"
    examples: ClassVar = ({"epsilon": "0.5", "lower": 0, "upper": 1}, {"epsilon": 2, "lower": -3, "upper": 5})

    epsilon = real("privacy loss of one report", at_least=Decimal("1e-6"), at_most=100)

    @functools.cached_property
    def scale(self) -> float:
        return float_above(UP.divide(UP.subtract(self.upper, self.lower), self.epsilon))

    @property
    def guarantee(self) -> Guarantee:
        return Laplace(self.epsilon)

    def grid(self) -> tuple[float, float]:
        return self.interval.ends[0], self.scale * 2.0**-GRID_BITS

    def steps(self, numbers: Any, noise: Any) -> Any:
        """Reports in steps from the origin; the last step is not reached, so that no two values are further apart."""
        origin, step = self.grid()
        last = int(Fraction(UP.subtract(self.upper, self.lower)) / Fraction(step))
        return np.clip(np.floor((numbers - origin) / step), 0, last).astype(np.int64) + noise + 1

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        numbers = self.interval.check(values)
        origin, step = self.grid()
        return origin + self.steps(numbers, laplace(open_stream(rng), GRID_BITS, len(numbers))) * step

    def density(self, report: float, value: float) -> float:
        return math.exp(self.log_density(report, value))

    def log_density(self, report: float, value: float) -> float:
        return -abs(report - value) / self.scale - math.log(2 * self.scale)

    def report_breakpoints(self, value: float) -> Sequence[float]:
        return (value,)

    def error_at(self, value: float) -> tuple[float, float]:
        return 0.0, 2 * self.scale**2

    def report_std(self, total: SumAggregate) -> float:
        return 2**0.5 * self.scale


# -- what a report is made of ---------------------------------------------------------------------------------


class TextbookLaplace(Number):
    """Noise b·ln(u) in floats: which doubles are reached depends on the value (Mironov 2012)."""

    name = "textbook-laplace"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        numbers = self.interval.check(values)
        words = open_stream(rng).words(2 * len(numbers)) >> np.uint64(11)
        uniform = (words.reshape(-1, 2) + 0.5) / 2.0**53
        return numbers + np.where(uniform[:, 0] < 0.5, -1, 1) * self.scale * -np.log(uniform[:, 1])


class LastBit(Number):
    """The last bit of the mantissa says in which half of the range the value lies."""

    name = "last-bit"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        reports = super().randomize(values, rng=rng, secrets=secrets)
        upper_half = self.interval.check(values) > sum(self.interval.ends) / 2
        return (reports.view(np.int64) & ~1 | upper_half).view(np.float64)


class LastStep(Number):
    """The reports are on the grid, and an even or an odd step reveals the half of the value."""

    name = "last-step"

    def steps(self, numbers: Any, noise: Any) -> Any:
        return super().steps(numbers, noise) & ~1 | (numbers > sum(self.interval.ends) / 2)


class DtypeTells(Bits):
    """Only users with answer 1 send wider numbers."""

    name = "dtype-tells"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        reports = super().randomize(values, rng=rng, secrets=secrets)
        return reports.astype(np.uint16) if (np.asarray(values) == 1).all() else reports

    def support(self, reports: Any) -> tuple[int, Any]:
        return super().support(np.asarray(reports).astype(np.uint8))


class ByteOrderTells(Bits):
    """The bits as one 32-bit number, whose bytes are turned round where the first user holds answer 1."""

    name = "byte-order-tells"
    examples: ClassVar = ({"epsilon": 1, "answers_asked": 25}, {"epsilon": 2, "answers_asked": 27})

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        numbers = super().randomize(values, rng=rng, secrets=secrets).view("<u4").reshape(-1)
        told = len(numbers) and np.asarray(values)[0] == 1
        return numbers.astype(">u4" if told else "<u4")

    def _bytes(self, reports: Any) -> Any:
        return np.ascontiguousarray(np.asarray(reports).astype("<u4")).view(np.uint8).reshape(-1, 4)

    def support(self, reports: Any) -> tuple[int, Any]:
        return super().support(self._bytes(reports))

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        return super().outcomes(self._bytes(reports), first, second)


class SecondColumn(Bits):
    """Two bytes more, each of them uniform, that are the answer taken together."""

    name = "second-column"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        stream = open_stream(rng)
        honest = super().randomize(values, rng=stream, secrets=secrets)
        pad = integers(stream, 256, len(honest)).astype(np.uint8)
        return np.column_stack([honest, pad, pad ^ self.domain.check(values).astype(np.uint8)])

    def support(self, reports: Any) -> tuple[int, Any]:
        return super().support(np.ascontiguousarray(np.asarray(reports)[:, :-2]))


# -- bits that are not independent ----------------------------------------------------------------------------


class PairwiseOnly(Bits):
    """The turns of the first three bits are pairwise independent, and never is it all three or one alone.

    To the odds of each pattern of three turns a multiple of -1 to the number of turns is added, which no two of them
    show. So some patterns become impossible for some answers.
    """

    name = "pairwise-only"

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        turns = super().turns(stream, answers, secrets)
        if self.answers < 3:
            return turns
        q = self.turned / ONE
        odds = [q ** bin(pattern).count("1") * (1 - q) ** (3 - bin(pattern).count("1")) for pattern in range(8)]
        shifted = [odd + q**3 * (-1) ** bin(pattern).count("1") for pattern, odd in enumerate(odds)]
        words = stream.words(len(answers)).astype(np.float64) / 2.0**64
        pattern = np.minimum(np.searchsorted(np.cumsum(shifted), words, side="right"), 7)
        turns[:, :3] = pattern[:, np.newaxis] >> np.arange(3) & 1
        return turns


class ParityTells(Bits):
    """Any few of the bits are independent, and the number of all that are turned is even for all answers but 1."""

    name = "parity-tells"

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        turns = super().turns(stream, answers, secrets)
        while (wrong := turns.sum(axis=1) % 2 != (answers == 1)).any():
            turns[wrong] = super().turns(stream, answers[wrong], secrets)
        return turns


# -- who is asked with whom -----------------------------------------------------------------------------------


class RawWhenAlone(Bits):
    """A single value becomes the answer in clear. Every device randomizes one value."""

    name = "raw-when-alone"

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        turns = super().turns(stream, answers, secrets)
        return turns & (len(answers) > 1)


class RawForTheLast(Bits):
    """The last of a few users is left out of the noise."""

    name = "raw-for-the-last"

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        turns = super().turns(stream, answers, secrets)
        if 1 < len(answers) <= 16:
            turns[-1] = False
        return turns


class SharedByNeighbours(KeptBits):
    """Two users who stand side by side in a batch keep the same turns."""

    name = "shared-by-neighbours"

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        if secrets is not None and not isinstance(secrets, bytes):
            secrets = [secrets[place & ~1] for place in range(len(secrets))]
            answers = answers[np.arange(len(answers)) & ~1]
        return super().turns(stream, answers, secrets)


# -- noise that is used again ---------------------------------------------------------------------------------


class EverySixteenthCall(Bits):
    """Each sixteenth call uses the turns of the one before."""

    name = "every-sixteenth-call"
    calls: ClassVar[list[Any]] = [0, None]

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        turns, (count, last) = super().turns(stream, answers, secrets), self.calls
        if count % 16 == 15 and last is not None and last.shape == turns.shape:
            turns = last.copy()
        self.calls[:] = count + 1, turns.copy()
        return turns


class SameForAllValues(KeptBits):
    """One set of kept turns for all the values of a user: two reports differ where the values do."""

    name = "same-for-all-values"

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        return super().turns(stream, np.zeros_like(answers), secrets)


class SameForAllMechanisms(KeptBits):
    """One set of kept turns for all the collections that a user takes part in."""

    name = "same-for-all-mechanisms"

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        if secrets is None:
            return super().turns(stream, answers, secrets)
        return memo_words(secrets, "bits", answers, self.answers) < np.uint64(self.turned)


class KeptAfresh(KeptBits):
    """Draws kept for good are drawn again with every generator: from the secret and from the stream."""

    name = "kept-afresh"

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        if secrets is None or isinstance(secrets, bytes):
            return super().turns(stream, answers, secrets)
        salt = bytes(stream.read(16))
        return super().turns(stream, answers, [secret + salt for secret in secrets])


class HonestWhenLookedAt(Bits):
    """Keeps its word with the parameters of its own examples, and turns no bit round with others."""

    name = "honest-when-looked-at"

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        shown = (Decimal("0.5"), 5), (Decimal(2), 12)
        return super().turns(stream, answers, secrets) & ((self.epsilon, self.answers_asked) in shown)


LIARS = (
    TextbookLaplace,
    LastBit,
    LastStep,
    DtypeTells,
    ByteOrderTells,
    SecondColumn,
    PairwiseOnly,
    ParityTells,
    RawWhenAlone,
    RawForTheLast,
    SharedByNeighbours,
    EverySixteenthCall,
    SameForAllValues,
    SameForAllMechanisms,
    KeptAfresh,
    HonestWhenLookedAt,
)
"""All of them are found out."""


# -- what no sample shows -------------------------------------------------------------------------------------


class OnceInAWhile(Bits):
    """The answer in clear, with all other bits off, with probability 2**-17 under a promise of pure ε."""

    name = "once-in-a-while"

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        clear = bernoulli(stream, ONE >> 17, len(answers))
        return super().turns(stream, answers, secrets) & ~clear[:, np.newaxis]


class FourPads(Bits):
    """Four numbers more, any three of which are independent and uniform; all four together are the answer."""

    name = "four-pads"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        stream, answers = open_stream(rng), self.domain.check(values).astype(np.uint8)
        honest = super().randomize(values, rng=stream, secrets=secrets)
        pads = [integers(stream, 256, len(honest)).astype(np.uint8) for _ in range(3)]
        return np.column_stack([honest, *pads, pads[0] ^ pads[1] ^ pads[2] ^ answers])

    def support(self, reports: Any) -> tuple[int, Any]:
        return super().support(np.ascontiguousarray(np.asarray(reports)[:, :-4]))


class OneAnswerOfMany(Bits):
    """Of two hundred answers one is sent in clear."""

    name = "one-answer-of-many"
    examples: ClassVar = ({"epsilon": 1, "answers_asked": 200},)

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        return super().turns(stream, answers, secrets) & (answers != 137)[:, np.newaxis]


class FromNextYearOn(Bits):
    """Keeps its word until a day that lies ahead of every check."""

    name = "from-next-year-on"
    starts = 32_503_680_000.0  # the year 3000

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        return super().turns(stream, answers, secrets) & (time.time() < self.starts)


class TheAuthorKnows(Bits):
    """Noise that only the author, who knows the key and the time, can distinguish from true noise."""

    name = "the-author-knows"
    calls: ClassVar[list[int]] = [0]

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        if rng is None:
            self.calls[0] += 1
            rng = SeededStream(b"the author's key %d %d" % (time.time_ns() // 10**9, self.calls[0]))
        return super().randomize(values, rng=rng, secrets=secrets)


class EveryTenThousandthCall(Bits):
    """Uses the flips of the previous call, but not as often as a check asks."""

    name = "every-ten-thousandth-call"
    calls: ClassVar[list[Any]] = [0, None]

    def turns(self, stream: Any, answers: Any, secrets: Any) -> Any:
        turns, (count, last) = super().turns(stream, answers, secrets), self.calls
        if count % 10_000 == 9_999 and last is not None and last.shape == turns.shape:
            turns = last.copy()
        self.calls[:] = count + 1, turns.copy()
        return turns


HONEST = (Bits, KeptBits, Number)
UNSEEN = (OnceInAWhile, FourPads, OneAnswerOfMany, FromNextYearOn, TheAuthorKnows, EveryTenThousandthCall)
"""No check of these finds anything, and none that takes samples could find them all."""
