"""Mechanisms that each break one rule of the contract, and no other, by a slip that is easily made."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np

from ldp_budget.guarantees import Guarantee, Pure
from ldp_budget.sampling import ONE, open_stream
from ldp_budget.sdk.client_program import Program
from ldp_budget.sdk.estimates import CountAggregate, CountEstimate, MeanEstimate
from ldp_budget.sdk.frequency_oracle import FrequencyMechanism
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget.sdk.parameters import flag, real
from ldp_budget_mechanisms.additive_noise import Laplace
from ldp_budget_mechanisms.bounded_noise import BoundedLaplace
from ldp_budget_mechanisms.count_mean_sketch import HadamardCountMeanSketch
from ldp_budget_mechanisms.d_bit_flip import DBitFlip
from ldp_budget_mechanisms.generalized_randomized_response import RandomSubstitution
from ldp_budget_mechanisms.randomized_response import RandomizedResponse
from ldp_budget_mechanisms.unary_encoding import OptimizedUnaryEncoding
from unary_rows import unary_rows


class Honest(OptimizedUnaryEncoding):
    """Nothing is wrong with it; it is not compared with the encodings we bring."""

    name = "honest"

    def _rivals(self) -> dict[str, float]:
        return {}


class Priced(Mechanism):
    """A price tag, and nothing wrong with it: no client, no server, no description."""

    name = "priced"
    epsilon = real("privacy loss of one report", above=0)

    @property
    def guarantee(self) -> Guarantee:
        return Pure(self.epsilon)


# -- what is declared -----------------------------------------------------------------------------------------

_counter = itertools.count()


class ForgetsAFlag(Honest):
    """Its guarantee depends on how often one was made, so that it does not come back from JSON as it was."""

    name = "forgets-a-flag"

    @functools.cached_property
    def guarantee(self) -> Guarantee:  # type: ignore[override]
        return Pure(self.epsilon + next(_counter))


class HashesByHash(Honest):
    """A fingerprint from Python's `hash`, which every process seeds for itself."""

    name = "hashes-by-hash"

    @property
    def fingerprint(self) -> str:
        return f"{hash(super().fingerprint):x}"


class SpellsAsDeclared(Honest):
    """A fingerprint from the text of numbers: 1 and 1.0 differ."""

    name = "spells-as-declared"

    @property
    def fingerprint(self) -> str:
        return f"{super().fingerprint} {self.epsilon}"


class OneForAll(Honest):
    """A fingerprint that leaves a parameter out."""

    name = "one-for-all"

    @property
    def fingerprint(self) -> str:
        return self.replace(domain_size=2)._whole

    @property
    def _whole(self) -> str:
        return super().fingerprint


class TakesAnything(Honest):
    """Parameters that are not there are swallowed."""

    name = "takes-anything"

    def __init__(self, **declared: Any) -> None:
        super().__init__(**{name: value for name, value in declared.items() if name in self.fields})


# -- the promise ----------------------------------------------------------------------------------------------


class RoundsUp(Honest):
    """Calibration on the wrong side: what it promises is true, and more than was asked for."""

    name = "rounds-up"

    @property
    def guarantee(self) -> Guarantee:
        return Pure(self.epsilon * Decimal("1.000001"))


# -- the client -----------------------------------------------------------------------------------------------


class NoisierThanSaid(Honest):
    """The client's noise is a tenth larger than the published one."""

    name = "noisier-than-said"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        keep, noise = self.thresholds
        answers = self.domain.check(values)
        return unary_rows(open_stream(rng), answers, self.domain_size, keep, noise + noise // 10)


class FollowsTheCrowd(Honest):
    """A user's noise depends on whether another one holds the same answer."""

    name = "follows-the-crowd"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        keep, noise = self.thresholds
        answers = self.domain.check(values)
        alone = len(np.unique(answers)) > 1
        return unary_rows(open_stream(rng), answers, self.domain_size, keep, noise + (noise // 10 if alone else 0))


class WiderNoise(Laplace):
    """The noise is wider than its density by a tenth."""

    name = "wider-noise"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        values = np.asarray(values)
        origin, step = self.grid()
        noise = super().randomize(values, rng=rng, secrets=secrets) - values
        return origin + np.rint((values + 1.1 * noise - origin) / step) * step


class AlwaysTheSame(Honest):
    """A seed left over from debugging."""

    name = "always-the-same"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        return super().randomize(values, rng=0 if rng is None else rng, secrets=secrets)


class IgnoresTheSeed(Honest):
    """The draws come from elsewhere than the stream it is given."""

    name = "ignores-the-seed"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        return super().randomize(values, secrets=secrets)


class KeepsNoMemo(DBitFlip):
    """The memo is drawn from the stream, and ignores the secret."""

    name = "keeps-no-memo"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        drawn = [bytes(open_stream(rng).read(32))] * len(values)
        return super().randomize(values, rng=rng, secrets=drawn)


# -- what the client sends besides ----------------------------------------------------------------------------


class SendsTheAnswerAlong(Honest):
    """The answer in clear in one more byte, which no reader uses."""

    name = "sends-the-answer-along"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        answers = self.domain.check(values).astype(np.uint8)
        return np.concatenate([super().randomize(values, rng=rng, secrets=secrets), answers[:, np.newaxis]], axis=1)

    def aggregate(self, reports: Any) -> Any:
        return super().aggregate(np.ascontiguousarray(np.asarray(reports)[:, :-1]))


class KeepsTheAnswerInBitOne(RandomizedResponse):
    """The answer in bit 1 of a report of which outcomes and server read bit 0."""

    name = "keeps-the-answer-in-bit-one"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        bits = super().randomize(values, rng=rng, secrets=secrets)
        return (bits | (self.domain.check(values).astype(np.uint8) << 1)).astype(np.uint8)

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        return np.asarray(reports) & 1

    def support(self, reports: Any) -> tuple[int, Any]:
        return super().support(np.asarray(reports) & 1)


class SparesAnAnswer(RandomSubstitution):
    """One answer, and none of the critical ones, is always sent as it is."""

    name = "spares-an-answer"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        reports = super().randomize(values, rng=rng, secrets=secrets)
        answers = self.domain.check(values)
        return np.where(answers == 5, answers, reports).astype(reports.dtype)


class NeverTurns(HadamardCountMeanSketch):
    """At a large ε a sign is hardly ever turned; here it never is."""

    name = "never-turns"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        certain = HadamardCountMeanSketch(**self.declared)
        vars(certain)["keep"] = ONE
        return certain.randomize(values, rng=rng, secrets=secrets)


class GuessableMemo(DBitFlip):
    """Of each secret two bytes are used: trying all of them reveals every memo."""

    name = "guessable-memo"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        short = None if secrets is None else [secret[:2] + bytes(30) for secret in secrets]
        return super().randomize(values, rng=rng, secrets=short)


# -- what goes in ---------------------------------------------------------------------------------------------


class Wraps(Honest):
    """A value that is too large is taken modulo the number of answers."""

    name = "wraps"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        array = np.asarray(values)
        whole = array.dtype.kind in "iu"
        return super().randomize(array % self.domain_size if whole else array, rng=rng, secrets=secrets)


class Flattens(Honest):
    """A table of values is taken for a list of them."""

    name = "flattens"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        return super().randomize(np.asarray(values).reshape(-1), rng=rng, secrets=secrets)


class ReadsMore(RandomizedResponse):
    """Its program draws once more than its client does, which its author wrote."""

    name = "reads-more"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        return RandomizedResponse(epsilon=self.epsilon).randomize(values, rng=rng, secrets=secrets)

    def client_program(self) -> Program:
        program = super().client_program()
        return replace(program, steps=(*program.steps, ("spare", ["below", 7])))


class DescribesLess(RandomizedResponse):
    """Its description is that of half its ε."""

    name = "describes-less"

    def compare(self, first: Any, second: Any) -> Any:
        return RandomizedResponse(epsilon=self.epsilon / 2).compare(first, second)


class WritesIntoValues(Honest):
    """Works in place on the caller's array."""

    name = "writes-into-values"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        if isinstance(values, np.ndarray) and len(values):
            values[0] = 0
        return super().randomize(values, rng=rng, secrets=secrets)


class NeverEmpty(Honest):
    """No user answered, and yet there is a report."""

    name = "never-empty"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        return super().randomize(values if len(values) else [0], rng=rng, secrets=secrets)


# -- the server -----------------------------------------------------------------------------------------------


@dataclass
class Averaged(CountAggregate):
    """Merges shares instead of counts, in floats."""

    def merge(self, other: CountAggregate) -> CountAggregate:
        total = self.reports + other.reports
        shares = [each.support / max(1, each.reports) * each.reports / total for each in (self, other)]
        return Averaged(self.fingerprint, total, (shares[0] + shares[1]) * total)


class MergesShares(Honest):
    """Aggregates that do not merge exactly."""

    name = "merges-shares"

    def aggregate(self, reports: Any) -> Averaged:
        n, support = self.support(reports)
        return Averaged(self.fingerprint, n, support.astype(float))


class BooleanReports(Honest):
    """Reports of a type that the report file does not have."""

    name = "boolean-reports"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        return np.unpackbits(super().randomize(values, rng=rng), axis=1, bitorder="little").astype(bool)

    def support(self, reports: Any) -> tuple[int, Any]:
        return len(reports), reports[:, : self.domain_size].sum(axis=0)

    def outcomes(self, reports: Any, first: int, second: int) -> Any:
        return 2 * reports[:, first].astype(int) + reports[:, second]


class ShiftsTheMean(Laplace):
    """A mean that is two hundredths too high, as if the grid began elsewhere."""

    name = "shifts-the-mean"

    def estimate(self, reports: Any) -> MeanEstimate:
        honest = super().estimate(reports)
        return MeanEstimate(honest.reports, honest.mean + 0.02, honest.std_error)


class BiasedOnTheSly(BoundedLaplace):
    """Biased, as its reports are cut off at the ends, and does not say so."""

    name = "biased-on-the-sly"
    biased = False


class TenPerCentOff(Laplace):
    """Standard errors of a variance that is ten per cent too small."""

    name = "ten-per-cent-off"
    share = real("of the variance, how much is stated", above=0, default="0.9")

    def estimate(self, reports: Any) -> MeanEstimate:
        honest = super().estimate(reports)
        return MeanEstimate(honest.reports, honest.mean, honest.std_error * float(self.share) ** 0.5)


class CountsTenPerCentOff(Honest):
    """The same of counts, where nothing describes the reports and only a simulation can tell."""

    name = "counts-ten-per-cent-off"
    honest = flag("state it as it is")
    compare = FrequencyMechanism.compare

    def estimate(self, reports: Any) -> CountEstimate:
        found = super().estimate(reports)
        stated = found.std_errors * (1.0 if self.honest else 1.1**0.5)
        return CountEstimate(found.reports, found.counts, stated)
