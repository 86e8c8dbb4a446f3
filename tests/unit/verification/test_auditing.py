"""The black-box audit: honest clients pass, broken ones are caught, and no bound is above the truth too often."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldp_budget
from broken_mechanisms import AlgorithmTwoLnGamma, ChainedGrr, FreshEveryTime, OnlySetsBits, PrintedRowTwo
from careless_mechanisms import SparesAnAnswer
from ldp_budget import FrequencyMechanism
from ldp_budget.guarantees import Approximate, Guarantee, Pure
from ldp_budget.sampling import ONE, bernoulli, integers, open_stream
from ldp_budget.sdk.parameters import integer
from ldp_budget_verify.audit import audit
from ldp_budget_verify.audit.events import certified_bound, keys_of, likely_bounds, lower_end, upper_end
from unary_rows import unary_rows


def built_in(name: str, **declared: Any) -> Any:
    return ldp_budget.mechanism(name)(**declared)


HONEST = [
    built_in("oue", epsilon=2, domain_size=128),
    built_in("sue", epsilon=2, domain_size=128),
    built_in("grr", epsilon=2, domain_size=4),
    built_in("grr", epsilon=2, domain_size=10),
    built_in("d-bit-flip", epsilon=2, buckets=5, bits=4),
]


# -- the bound -------------------------------------------------------------------------------------------------------


def tail(hits: int, total: int, p: float) -> Any:
    """P[at least `hits` of `total`], exactly."""
    with mpmath.workdps(40):
        return mpmath.betainc(hits, total - hits + 1, 0, mpmath.mpf(p), regularized=True)


counts = st.integers(1, 5000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))


@pytest.mark.slow
@given(counts, st.sampled_from([0.5, 0.025, 0.005, 1e-6]))
def test_interval_ends_have_tails_of_the_risk(found: tuple[int, int], risk: float) -> None:
    hits, total = found
    low, high = float(lower_end(hits, total, risk)), float(upper_end(hits, total, risk))
    if hits == 0:
        assert low == 0
    else:
        assert float(tail(hits, total, low)) == pytest.approx(risk, rel=1e-6)
    if hits == total:
        assert high == 1
    else:
        assert float(1 - tail(hits + 1, total, high)) == pytest.approx(risk, rel=1e-6)


@pytest.mark.slow
@given(counts, counts, st.sampled_from([0.0, 1e-9, 0.01]), st.sampled_from([0.5, 0.95, 0.99]))
def test_certified_bound_is_rounded_down_slightly(
    first: tuple[int, int], second: tuple[int, int], delta: float, confidence: float
) -> None:
    totals = (first[1], second[1])
    bound = certified_bound(first[0], second[0], totals, confidence, delta)
    likely = float(likely_bounds(first[0], second[0], totals, confidence, delta))
    assert 0 <= bound <= max(likely, 0)
    assert bound == pytest.approx(max(likely, 0), abs=1e-6)


def test_risk_is_split_evenly_over_the_two_proportions() -> None:
    low, high = float(lower_end(480, 1000, 0.005)), float(upper_end(110, 2000, 0.005))
    assert certified_bound(480, 110, (1000, 2000), 0.99, 0.02) == pytest.approx(math.log((low - 0.02) / high))


def test_event_of_probability_at_most_delta_certifies_nothing() -> None:
    assert certified_bound(0, 0, (1000, 1000), 0.99, 0.0) == 0
    assert certified_bound(900, 0, (1000, 1000), 0.99, 0.9) == 0
    assert certified_bound(900, 0, (1000, 1000), 0.99, 0.0) > 5


# -- honest clients --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("mechanism", HONEST, ids=repr)
def test_audit_of_an_honest_client_certifies_nearly_its_loss(mechanism: Any) -> None:
    found = audit(mechanism, samples=300_000, rng=1)
    assert found.declared
    assert 1.9 < found.lower_bound <= 2
    assert found.first_total + found.second_total <= found.samples == 300_000


@pytest.mark.exhaustive
@pytest.mark.parametrize("mechanism", HONEST, ids=repr)
def test_audit_by_search_finds_nearly_as_much_without_a_description(mechanism: Any) -> None:
    found = audit(mechanism, samples=300_000, search=True, rng=1)
    assert not found.declared
    assert 1.8 < found.lower_bound <= 2


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize(
    "mechanism",
    [
        built_in("laplace", epsilon=1, lower=0, upper=10),
        built_in("staircase", epsilon=1, lower=0, upper=10),
        built_in("bounded-staircase", epsilon=1, lower=0, upper=10),
        built_in("one-bit-mean", epsilon=1, maximum=10),
        built_in("gaussian", epsilon=1, delta="1e-3", lower=0, upper=10),
    ],
    ids=repr,
)
def test_audit_searches_numeric_reports_over_the_range_of_the_values(mechanism: Any) -> None:
    found = audit(mechanism, samples=100_000, search=True, rng=3)
    assert 0.3 < found.lower_bound <= 1
    assert found.delta == mechanism.guarantee.delta
    assert all(0 <= value <= 10 for value in found.pair)


def above(mechanism: Any, repeats: int, samples: int, **options: Any) -> int:
    """Count the audits that claim more than the true loss, which is the declared one."""
    truth = mechanism.guarantee.epsilon
    return sum(audit(mechanism, samples=samples, rng=i, **options).lower_bound > truth for i in range(repeats))


GRR = built_in("grr", epsilon=2, domain_size=4)


@pytest.mark.exhaustive
@pytest.mark.parametrize("search", [False, True])
def test_audits_sixty_rarely_exceed_the_true_loss(search: bool) -> None:
    assert above(GRR, 60, 20_000, search=search) <= 4


MANY_BITS, FEW_ANSWERS = HONEST[:2], HONEST[2:]


@pytest.mark.exhaustive
def test_audits_by_search_among_many_bits_rarely_exceed_the_true_loss() -> None:
    """Half of them with each encoding, whose reports are read and searched alike."""
    assert sum(above(mechanism, 100, 20_000, search=True) for mechanism in MANY_BITS) <= 7


@pytest.mark.exhaustive
def test_audit_with_less_confidence_claims_more_and_errs_more_often() -> None:
    bold = [audit(GRR, samples=20_000, confidence=0.5, rng=i).lower_bound for i in range(60)]
    careful = [audit(GRR, samples=20_000, confidence=0.99, rng=i).lower_bound for i in range(60)]
    assert np.mean(bold) > np.mean(careful)
    # Both ends hold together with probability a half at least; 4.5 standard errors are 17 of 60.
    assert 0 < sum(bound > 2 for bound in bold) <= 30 + 17


class SaysNothing(FrequencyMechanism):
    """128 fair coins, for every value."""

    name = "says-nothing"
    domain_size = integer("number of possible answers", at_least=2, default=128)

    @property
    def answers(self) -> int:
        return self.domain_size

    @property
    def guarantee(self) -> Guarantee:
        return Pure(Decimal(0))

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        return unary_rows(open_stream(rng), np.asarray(values), self.domain_size, ONE // 2, ONE // 2)


@pytest.mark.exhaustive
def test_audit_does_not_certify_an_event_found_in_noise() -> None:
    # If the reports that proposed an event were counted again, every one of these would be above zero.
    assert above(SaysNothing(), 25, 5_000) <= 2


# -- broken clients --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", [False, True])
def test_audit_catches_a_client_that_only_sets_bits(search: bool) -> None:
    found = audit(OnlySetsBits(), samples=20_000, search=search, rng=4)
    assert found.lower_bound > 5 > OnlySetsBits().guarantee.epsilon
    assert found.second_hits == 0


@pytest.mark.slow
def test_audit_over_many_reports_catches_a_client_without_memoization() -> None:
    broken = FreshEveryTime(epsilon=1, domain_size=8)
    assert audit(broken, samples=50_000, rng=5).lower_bound <= 1
    found = audit(broken, samples=2_000 * 200, reports=200, rng=5)
    assert found.lower_bound > 4
    assert (found.reports, found.declared) == (200, False)


@pytest.mark.exhaustive
def test_audit_of_memoized_reports_stays_below_the_cap() -> None:
    honest = built_in("rappor", bits=8, hashes=1, cohorts=1, f="0.75", p="0.25", q="0.75", domain_size=8)
    found = audit(honest, samples=2_000 * 50, reports=50, rng=7)
    assert 0.3 < found.lower_bound <= float(honest.guarantee.cap)
    flips = built_in("d-bit-flip", epsilon=1, buckets=4, bits=4, memoize=True)
    assert audit(flips, samples=3_000 * 20, reports=20, rng=6).lower_bound <= 1


@pytest.mark.slow
@pytest.mark.parametrize("search", [False, True])
def test_audit_catches_the_printed_second_row_of_theorem_6(search: bool) -> None:
    broken = PrintedRowTwo(epsilon=1, lower=0, upper=1, gamma="0.5")
    found = audit(broken, samples=100_000, search=search, rng=7).lower_bound
    assert 1.1 < found <= 1 + math.log(2)
    assert broken.channel.worst_odds() == pytest.approx(2 * math.e, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("search", [False, True])
def test_audit_finds_that_distinct_draws_lose_more_than_one(search: bool) -> None:
    broken = AlgorithmTwoLnGamma(gamma=10, domain_size=50, draws=4, sampling="distinct")
    found = audit(broken, samples=200_000, search=search, rng=8).lower_bound
    assert broken.guarantee.epsilon == pytest.approx(math.log(10))
    assert math.log(10) < found <= math.log(13.21)


@pytest.mark.slow
@pytest.mark.parametrize("search", [False, True])
def test_audit_catches_a_chain_calibrated_for_two_answers(search: bool) -> None:
    broken = ChainedGrr(epsilon=1, epsilon_lifetime=4, domain_size=10)
    ratio = broken.compare(0, 1).largest_ratio()
    assert ratio is not None
    truth = math.log(ratio)
    assert truth == pytest.approx(2.769, abs=1e-3)
    assert 2 < audit(broken, samples=20_000, search=search, rng=9).lower_bound <= truth


def test_chain_formula_is_right_for_two_answers_and_too_small_for_more() -> None:
    for lifetime, epsilon, size in [(4.0, 1.0, 3), (4.0, 1.0, 10), (2.0, 0.5, 128), (8.0, 3.0, 1000)]:
        broken = ChainedGrr(epsilon=epsilon, epsilon_lifetime=lifetime, domain_size=size)
        p, again = broken.keeps
        q, other = (1 - p) / (size - 1), (1 - again) / (size - 1)
        as_if_two = (p * again + q * (1 - again)) / (p * (1 - again) + q * again)
        assert float(as_if_two) == pytest.approx(math.exp(epsilon))
        truth = (p * again + (size - 1) * q * other) / (p * other + q * again + (size - 2) * q * other)
        assert broken.compare(0, 1).largest_ratio() == truth > as_if_two


class LeaksInThePadding(type(HONEST[1])):  # type: ignore[misc]
    """Symmetric unary encoding of 17 answers that marks users of the answer 0 in a bit past the last answer."""

    name = "leaks-in-the-padding"

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        reports = super().randomize(values, rng=rng, secrets=secrets)
        reports[np.asarray(values) == 0, 2] |= 0x80
        return reports


@pytest.mark.slow
def test_audit_by_search_ignores_a_misleading_description() -> None:
    broken = LeaksInThePadding(epsilon=1, domain_size=17)
    declared = audit(broken, samples=20_000, rng=10)
    assert declared.declared
    assert declared.lower_bound <= 1
    found = audit(broken, samples=20_000, search=True, rng=10)
    assert found.lower_bound > 5
    assert (found.first_hits, found.second_hits) in ((found.first_total, 0), (0, found.second_total))
    assert 0 in found.pair


def test_audit_by_search_tries_every_answer_of_a_small_domain() -> None:
    spares = SparesAnAnswer(epsilon=1, domain_size=10)
    assert audit(spares, samples=20_000, rng=10).lower_bound <= 1
    found = audit(spares, samples=20_000, search=True, rng=10)
    assert found.lower_bound > 5
    assert 5 in found.pair


# -- δ ---------------------------------------------------------------------------------------------------------------


class Leaks(FrequencyMechanism):
    """Says which of two answers it is with probability 1/100, and nothing otherwise: (0, 0.01)-LDP."""

    name = "leaks"
    hidden = integer("whether it is silent about its δ", at_least=0, default=0)

    @property
    def answers(self) -> int:
        return 2

    @property
    def guarantee(self) -> Guarantee:
        return Pure(Decimal(0)) if self.hidden else Approximate(Decimal(0), Decimal("0.01"))

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        leaks = bernoulli(open_stream(rng), ONE // 100, len(values))
        return np.where(leaks, 1 + np.asarray(values), 0)


def test_audit_allows_for_a_stated_delta() -> None:
    assert audit(Leaks(), samples=50_000, rng=11).lower_bound == 0
    assert audit(Leaks(hidden=1), samples=50_000, rng=11).lower_bound > 2
    assert audit(Leaks(), samples=50_000, reports=5, rng=11).delta == pytest.approx(0.05)


# -- what is drawn ---------------------------------------------------------------------------------------------------


class Recorder(FrequencyMechanism):
    """Keeps the values and secrets it was called with."""

    name = "recorder"
    calls: list[tuple[Any, Any]]

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["calls"] = []

    @property
    def answers(self) -> int:
        return 3

    @property
    def guarantee(self) -> Guarantee:
        return Pure(Decimal(0))

    def randomize(self, values: Any, *, rng: Any = None, secrets: Any = None) -> Any:
        self.calls.append((values, secrets))
        return integers(open_stream(rng), 3, len(values))


@pytest.mark.parametrize("reports", [1, 7])
def test_audit_samples_bound_the_reports_drawn(reports: int) -> None:
    recorder = Recorder()
    found = audit(recorder, samples=7_000, reports=reports, rng=12)
    drawn = sum(len(values) for values, _ in recorder.calls)
    assert 0.9 * 7_000 < drawn <= 7_000
    assert found.first_total == found.second_total > 0.3 * 7_000 / reports


# -- what cannot be audited ------------------------------------------------------------------------------------------


# -- reading reports -------------------------------------------------------------------------------------------------


def test_equal_reports_and_no_others_have_equal_keys() -> None:
    for width in (1, 3, 8, 40):
        rows = np.random.default_rng(width).integers(0, 3, size=(400, width), dtype=np.uint8)
        _, kinds = np.unique(rows, axis=0, return_inverse=True)
        _, same = np.unique(keys_of(rows), return_inverse=True)
        assert len(set(zip(kinds.tolist(), same.tolist(), strict=True))) == len(set(kinds.tolist())) == same.max() + 1


# -- the declared channel --------------------------------------------------------------------------------------------


def test_event_excludes_reports_outside_the_described_outcomes() -> None:
    class Misnumbered(OnlySetsBits):
        name = "misnumbered"

        def outcomes(self, reports: Any, first: int, second: int) -> Any:
            return np.where(super().outcomes(reports, first, second) == 2, -1, 99)

    assert audit(Misnumbered(), samples=20_000, rng=18).first_hits == 0


@pytest.mark.slow
def test_drawn_reports_match_the_declared_probabilities() -> None:
    for mechanism in (OnlySetsBits(), ChainedGrr(epsilon=1, epsilon_lifetime=4, domain_size=10)):
        found = audit(mechanism, samples=100_000, rng=19)
        masses = mechanism.compare(*found.pair).masses()
        likeliest = max((p / q if q else Fraction(10**9), p) for p, q in masses)[1]
        share = found.first_hits / found.first_total
        assert abs(share - likeliest) < 4.5 * math.sqrt(float(likeliest * (1 - likeliest)) / found.first_total)
