"""Random substitution (Kang, Lee and Hong 2009) against the exact law of its algorithms, enumerated in fractions.

The oracle knows the matrix and nothing else: a draw has the probabilities of the column of the true answer, and
Algorithm 2 draws again until the answer is new, which leaves the same proportions among the answers not drawn yet.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import ldp_budget
from client_cases import Recorder
from exact_numbers import golden
from ldp_budget.guarantees import Copies, FinitePair, SymmetricPair
from ldp_budget.sampling import ONE, SeededStream
from ldp_budget.sdk.estimates import CountAggregate

RandomSubstitution: Any = ldp_budget.mechanism("random-substitution")
SubsetSelection: Any = ldp_budget.mechanism("subset-selection")

SIGMAS = 4.5
SAMPLINGS: dict[str, dict[str, Any]] = {
    "replacement": {},
    "set": {"sampling": "distinct"},
    "sequence": {"sampling": "distinct", "ordered": True},
}
distinct_samplings = pytest.mark.parametrize("sampling", ["set", "sequence"])
every_sampling = pytest.mark.parametrize("sampling", list(SAMPLINGS))

Law = dict[tuple[int, ...], Fraction]


# -- the oracle -----------------------------------------------------------------------------------------------


@cache
def one_draw(size: int, gamma: Fraction, own: int) -> list[Fraction]:
    return [(gamma if v == own else Fraction(1)) / (gamma + size - 1) for v in range(size)]


@cache
def sequences(size: int, gamma: Fraction, draws: int, own: int, distinct: bool) -> Law:
    """The probability of every sequence of draws; distinct: Algorithm 2 of Kang, Lee and Hong."""
    law: Law = {(): Fraction(1)}
    column = one_draw(size, gamma, own)
    for _ in range(draws):
        longer: Law = {}
        for drawn, probability in law.items():
            open_answers = [v for v in range(size) if not (distinct and v in drawn)]
            accepted = sum(column[v] for v in open_answers)
            for v in open_answers:
                longer[*drawn, v] = probability * column[v] / accepted
        law = longer
    return law


def reports(size: int, gamma: Fraction, draws: int, own: int, sampling: str) -> Law:
    """The law of what is sent: the order is lost unless it is visible."""
    law = sequences(size, gamma, draws, own, sampling != "replacement")
    if sampling == "sequence":
        return law
    sent: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for drawn, probability in law.items():
        sent[tuple(sorted(drawn))] += probability
    return dict(sent)


def hockey_stick(p: Law, q: Law, odds: Fraction) -> Fraction:
    """Σ (P - odds·Q)⁺: the least δ at e^ε = odds."""
    return sum((max(p[report] - odds * q[report], Fraction(0)) for report in p), Fraction(0))


def small_cases(samplings: tuple[str, ...] = tuple(SAMPLINGS)) -> list[Any]:
    """Every N ≤ 6 with every l, up to a length that can be enumerated where draws may repeat."""
    cases = []
    for size, sampling in itertools.product(range(2, 7), samplings):
        longest = size - 1 if sampling != "replacement" else {2: 6, 3: 5, 4: 4, 5: 3, 6: 3}[size]
        for draws in range(1, longest + 1):
            cases.append(pytest.param(size, draws, sampling, id=f"N={size}-l={draws}-{sampling}"))
    return cases


# -- what a report gives away ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("gamma", ["1.05", "2", "10"])
@pytest.mark.parametrize(("size", "draws", "sampling"), small_cases())
def test_amplification_is_that_of_every_enumerated_report(size: int, draws: int, sampling: str, gamma: str) -> None:
    mechanism = RandomSubstitution(gamma=gamma, domain_size=size, draws=draws, **SAMPLINGS[sampling])
    laws = [reports(size, Fraction(gamma), draws, own, sampling) for own in range(size)]
    worst = max(max(law[report] for law in laws) / min(law[report] for law in laws) for report in laws[0])

    assert mechanism.describe()["amplification"] == pytest.approx(float(worst), rel=1e-12)
    epsilon, delta = mechanism.guarantee.loss()
    assert delta == 0
    with mpmath.workdps(50):
        assert 0 <= mpf(str(epsilon)) - mpmath.log(mpf(worst.numerator) / worst.denominator) < 1e-30


@pytest.mark.parametrize(("size", "draws", "sampling"), small_cases(("replacement", "set")))
def test_tau_is_the_probability_of_any_loss_at_all(size: int, draws: int, sampling: str) -> None:
    """One draw, and a set, lose ±ε with probability τ and nothing otherwise."""
    mechanism = RandomSubstitution(gamma=3, domain_size=size, draws=draws, **SAMPLINGS[sampling])
    each = 1 if sampling == "replacement" else draws
    p, q = (reports(size, Fraction(3), each, own, sampling) for own in (0, 1))
    ratios = {p[report] / q[report] for report in p}
    worst = max(ratios)
    tau = sum((p[report] for report in p if p[report] != q[report]), Fraction(0))

    assert ratios <= {worst, 1 / worst, Fraction(1)}
    guarantee = mechanism.guarantee
    if sampling == "replacement" and draws > 1:
        assert isinstance(guarantee, Copies)
        assert guarantee.count == draws
        guarantee = guarantee.of
    assert isinstance(guarantee, SymmetricPair)
    assert 0 <= Fraction(guarantee.tau) - tau < Fraction(1, 10**30)


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("gamma", ["1.05", "2", "10"])
@pytest.mark.parametrize(("size", "draws", "sampling"), small_cases(("sequence",)))
def test_pair_of_a_sequence_dominates_it_everywhere(size: int, draws: int, sampling: str, gamma: str) -> None:
    guarantee = RandomSubstitution(
        gamma=gamma, domain_size=size, draws=draws, sampling="distinct", ordered=True
    ).guarantee
    p, q = (reports(size, Fraction(gamma), draws, own, sampling) for own in (0, 1))
    if isinstance(guarantee, FinitePair):
        pair_p, pair_q = ({(place,): pair[side] for place, pair in enumerate(guarantee.outcomes)} for side in (0, 1))
        slack = Fraction(0)
    else:
        tau, epsilon = Fraction(guarantee.tau), Fraction(guarantee.bound.exp())
        pair_p = {(1,): tau * epsilon / (1 + epsilon), (-1,): tau / (1 + epsilon), (0,): 1 - tau}
        pair_q = {(1,): pair_p[-1,], (-1,): pair_p[1,], (0,): 1 - tau}
        slack = Fraction(1, 10**20)  # the exponential above is good to 28 digits
    ratios = {pair_p[outcome] / pair_q[outcome] for outcome in pair_p if pair_q[outcome]}
    for odds in sorted({p[report] / q[report] for report in p} | ratios):
        found, stated = hockey_stick(p, q, odds), hockey_stick(pair_p, pair_q, odds)
        assert found <= stated + slack
        if not slack:
            assert stated <= found + Fraction(1, 10**17), "nothing above it but for the rounding of thresholds"
    # No smaller τ would do: at odds 1 both are the total variation.
    assert hockey_stick(p, q, Fraction(1)) == pytest.approx(hockey_stick(pair_p, pair_q, Fraction(1)), rel=1e-12)


@pytest.mark.slow
def test_golden_amplifications_match() -> None:
    cases = golden("lext_substitution_exact")
    assert len(cases) == 8
    for params, value in cases:
        options = {"domain_size": params["N"], "draws": params["l"]}
        options["gamma"] = str(Decimal(Fraction(params["gamma"]).numerator) / Fraction(params["gamma"]).denominator)
        shown = {name: RandomSubstitution(**options, **kind) for name, kind in SAMPLINGS.items()}
        expected = {
            "replacement": value["amplification_with_replacement"],
            "set": value["amplification_set"],
            "sequence": value["amplification_sequence"],
        }
        for name, amplification in expected.items():
            assert shown[name].describe()["amplification"] == pytest.approx(float(amplification), rel=1e-14)
        assert shown["set"].guarantee.epsilon == pytest.approx(float(value["eps_set"]), rel=1e-14)
        assert shown["sequence"].guarantee.epsilon == pytest.approx(float(value["eps_sequence"]), rel=1e-14)
        for name in ("set", "sequence"):
            assert shown[name].parameters["keep"] == pytest.approx(float(value["pi1"]), rel=1e-14)
            assert shown[name].parameters["other"] == pytest.approx(float(value["pi0"]), rel=1e-14)
            assert shown[name].total_variance() == pytest.approx(float(value["total_var_per_n_unbiased"]), rel=1e-13)
            assert paper_slope(shown[name]) == pytest.approx(float(value["paper_estimator_slope"]), rel=1e-13)


@distinct_samplings
def test_algorithm_2_with_several_draws_loses_more_than_one_draw(sampling: str) -> None:
    laws = [reports(5, Fraction(2), 3, own, sampling) for own in range(5)]
    worst = max(max(law[report] for law in laws) / min(law[report] for law in laws) for report in laws[0])
    assert worst > 2
    assert worst < 2**3


# -- calibration ----------------------------------------------------------------------------------------------


def true_loss(mechanism: Any) -> mpf:
    """The loss of what the client draws, from its integer thresholds, in mpmath's current precision."""
    size, draws = mechanism.domain_size, mechanism.parameters["draws"]
    thresholds = mechanism.thresholds
    first = mpf(thresholds[0]) / ONE
    if mechanism.sampling == "replacement" or draws == 1:
        return draws * mpmath.log(first * (size - 1) / (1 - first))
    absent = mpmath.fprod(1 - mpf(hazard) / ONE for hazard in thresholds)
    if mechanism.ordered:
        return mpmath.log(first * (size - draws) / absent)
    return mpmath.log((1 - absent) * (size - draws) / (absent * draws))


def stated_loss(mechanism: Any) -> mpf:
    """The loss of the γ that `parameters` shows, by the formulas of the errata."""
    size, draws = mechanism.domain_size, mechanism.parameters["draws"]
    gamma = mpf(mechanism.parameters["gamma"])
    if mechanism.sampling == "replacement" or draws == 1:
        return draws * mpmath.log(gamma)
    if mechanism.ordered:
        steps = ((gamma + size - i) / (size - i + 1) for i in range(2, draws + 1))
        return mpmath.log(gamma * mpmath.fprod(steps))
    absent = mpmath.fprod((size - i) / (gamma + size - i) for i in range(1, draws + 1))
    return mpmath.log((1 - absent) * (size - draws) / (absent * draws))


epsilons = st.floats(math.log(1e-3), math.log(20)).map(math.exp)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(data=st.data(), epsilon=epsilons, size=st.integers(2, 400), sampling=st.sampled_from(list(SAMPLINGS)))
def test_calibration_is_on_the_safe_side_and_close(data: Any, epsilon: float, size: int, sampling: str) -> None:
    draws = data.draw(st.integers(1, min(size - 1, 40)))
    mechanism = RandomSubstitution.calibrate(epsilon=epsilon, domain_size=size, draws=draws, **SAMPLINGS[sampling])
    with mpmath.workdps(60):
        target = mpf(str(Decimal(repr(epsilon))))
        for loss in (true_loss(mechanism), stated_loss(mechanism)):
            assert target * (1 - mpf("1e-9")) <= loss <= target
    assert mechanism.guarantee.epsilon == epsilon
    assert mechanism.guarantee.costs().epsilon == math.ceil(Fraction(repr(epsilon)) * 10**9)


@pytest.mark.slow
@every_sampling
@given(gamma=st.floats(1.001, 50), size=st.integers(3, 60), data=st.data())
@settings(max_examples=25, deadline=None)
def test_calibrated_gamma_is_the_declared_one(gamma: float, size: int, data: Any, sampling: str) -> None:
    """γ gives ε, and that ε gives back γ."""
    draws = data.draw(st.integers(1, size - 1))
    options = {"domain_size": size, "draws": draws, **SAMPLINGS[sampling]}
    there = RandomSubstitution.calibrate(gamma=gamma, **options)
    assert there.parameters["gamma"] == gamma
    back = RandomSubstitution.calibrate(epsilon=there.guarantee.loss()[0], **options)
    assert back.parameters["gamma"] == pytest.approx(gamma, rel=1e-13)
    assert back.parameters["keep"] == pytest.approx(there.parameters["keep"], rel=1e-13)
    assert back.parameters["other"] == pytest.approx(there.parameters["other"], rel=1e-13)


def test_declared_loss_of_all_draws_is_charged_and_no_more() -> None:
    """A third of 0.1 three times is still 0.1."""
    guarantee = RandomSubstitution.calibrate(epsilon="0.1", domain_size=8, draws=3).guarantee
    assert isinstance(guarantee, Copies)
    assert guarantee.epsilon == 0.1
    assert guarantee.costs().epsilon == 100_000_000


def test_one_draw_is_equal_under_every_sampling() -> None:
    shown = [RandomSubstitution(epsilon=1, domain_size=9, **kind) for kind in SAMPLINGS.values()]
    assert len({mechanism.guarantee for mechanism in shown}) == 1
    assert len({mechanism.thresholds for mechanism in shown}) == 1


# -- privacy breaches -----------------------------------------------------------------------------------------


def posteriors(laws: list[Law], prior: list[Fraction]) -> Iterator[tuple[Fraction, Fraction]]:
    """(prior, posterior) of every property of the answer, given every report."""
    size = len(laws)
    properties = [p for k in range(1, size) for p in itertools.combinations(range(size), k)]
    for report in laws[0]:
        joint = [prior[v] * laws[v][report] for v in range(size)]
        total = sum(joint)
        for chosen in properties:
            yield sum(prior[v] for v in chosen), sum(joint[v] for v in chosen) / total


def worst_priors(size: int, rho1: Fraction, rho2: Fraction) -> Iterator[list[Fraction]]:
    """Beliefs of ρ₁ or ρ₂ in one property, the rest spread evenly or all on one answer."""
    for belief in (rho1, rho2, rho1 / 2, (1 + rho2) / 2):
        yield [belief] + [(1 - belief) / (size - 1)] * (size - 1)
        yield [belief, 1 - belief] + [Fraction(0)] * (size - 2)
        yield [belief / 2, belief / 2] + [(1 - belief) / (size - 2)] * (size - 2)


@pytest.mark.some(3)
@every_sampling
@pytest.mark.parametrize(("rho1", "rho2"), [(".05", ".5"), (".1", ".3"), (".5", ".6"), (".3", ".99")])
def test_beliefs_are_not_breached_upward_or_downward(rho1: str, rho2: str, sampling: str) -> None:
    low, high = Fraction(rho1), Fraction(rho2)
    mechanism = RandomSubstitution.calibrate(rho1=rho1, rho2=rho2, domain_size=4, draws=2, **SAMPLINGS[sampling])
    gamma = Fraction(mechanism.parameters["gamma"])
    laws = [reports(4, gamma, 2, own, sampling) for own in range(4)]
    seen = [pair for prior in worst_priors(4, low, high) for pair in posteriors(laws, prior)]
    upward = max(after for before, after in seen if before <= low)
    downward = min(after for before, after in seen if before >= high)

    assert upward < high
    assert low < downward
    shown = mechanism.utility()["max_posterior"]
    assert upward <= Fraction(repr(shown))
    assert shown < float(rho2)
    assert upward == pytest.approx(high, rel=1e-9)
    assert downward == pytest.approx(low, rel=1e-9)


def test_posterior_under_the_printed_condition_reaches_the_limit() -> None:
    """γ = 19 satisfies the printed ≤ for ρ₁ = .05, ρ₂ = .5, and the posterior is exactly one half, both ways."""
    laws = [reports(3, Fraction(19), 1, own, "replacement") for own in range(3)]
    risen = max(
        after
        for before, after in posteriors(laws, [Fraction(1, 20), Fraction(19, 20), Fraction(0)])
        if before <= Fraction(1, 20)
    )
    assert risen == Fraction(1, 2)
    fallen = min(
        after
        for before, after in posteriors(laws, [Fraction(1, 2), Fraction(1, 2), Fraction(0)])
        if before >= Fraction(1, 2)
    )
    assert fallen == Fraction(1, 20)


@every_sampling
def test_golden_breach_bounds_are_met_strictly_by_the_whole_report(sampling: str) -> None:
    cases = golden("breach_gamma_bound")
    assert len(cases) == 3
    for params, value in cases:
        mechanism = RandomSubstitution.calibrate(**params, domain_size=50, draws=3, **SAMPLINGS[sampling])
        amplification = mechanism.describe()["amplification"]
        assert float(value) * (1 - 2e-12) < amplification < float(value)
        with mpmath.workdps(40):
            assert mpmath.exp(mpf(str(mechanism.guarantee.loss()[0]))) < mpf(value)
        assert mechanism.guarantee.epsilon == pytest.approx(math.log(float(value)), abs=1e-11)
        assert f"{float(value):.12g}" in mechanism.notes[-1]


@given(rho1=st.floats(1e-6, 0.999), share=st.floats(1e-4, 1, exclude_max=True))
def test_posterior_as_a_double_stays_below_the_limit(rho1: float, share: float) -> None:
    rho2 = rho1 + (1 - rho1) * share
    if not rho1 < rho2 < 1:
        return
    mechanism = RandomSubstitution.calibrate(rho1=rho1, rho2=rho2, domain_size=10)
    assert mechanism.utility()["max_posterior"] < rho2


# -- the size of a subset -------------------------------------------------------------------------------------


@pytest.mark.some(4)
@pytest.mark.parametrize("size", [2, 3, 7, 50, 128])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1, 2, 4, 8])
def test_subset_selection_takes_the_size_of_least_variance(size: int, epsilon: float) -> None:
    chosen = SubsetSelection.calibrate(epsilon=epsilon, domain_size=size)
    variances = {
        draws: SubsetSelection(epsilon=epsilon, domain_size=size, draws=draws).total_variance()
        for draws in range(1, size)
    }
    assert chosen.total_variance() == pytest.approx(min(variances.values()), rel=1e-12)
    assert chosen.parameters["draws"] in (size // (math.exp(epsilon) + 1) + k for k in (0, 1))


def test_subset_selection_is_distinct_random_substitution() -> None:
    one = SubsetSelection(epsilon=1, domain_size=20, draws=5)
    other = RandomSubstitution(epsilon=1, domain_size=20, draws=5, sampling="distinct")
    assert one.guarantee == other.guarantee
    assert one.thresholds == other.thresholds
    assert ldp_budget.mechanism("subset") is SubsetSelection
    assert ldp_budget.mechanism("grr") is RandomSubstitution
    assert SubsetSelection(gamma=3, domain_size=20).parameters["draws"] == 1


def test_subset_selection_from_beliefs_uses_their_amplification() -> None:
    chosen = SubsetSelection.calibrate(rho1=".05", rho2=".5", domain_size=50)
    assert chosen.parameters["draws"] in (50 // 20, 50 // 20 + 1)
    assert chosen.describe()["amplification"] == pytest.approx(19, rel=1e-11)


# -- predictions ----------------------------------------------------------------------------------------------


def test_utility_of_the_matrix_matches() -> None:
    mechanism = RandomSubstitution(gamma=5, domain_size=50)
    matrix = np.ones((50, 50)) + 4 * np.eye(50)
    utility = mechanism.utility(5000)
    assert utility["condition_number"] == pytest.approx(float(np.linalg.cond(matrix)), rel=1e-12)
    assert utility["relative_error_bound"] == pytest.approx(1.3328, abs=5e-5)  # table 1
    assert utility["duplicate_probability"] == 0
    assert utility["expected_draws"] == 1
    assert "max_posterior" not in utility
    assert "relative_error_bound" not in mechanism.utility()


@pytest.mark.parametrize(("size", "draws", "sampling"), small_cases(("set",)))
def test_expected_draws_solve_the_chain_of_algorithm_2(size: int, draws: int, sampling: str) -> None:
    column = one_draw(size, Fraction(7, 2), 0)

    @cache
    def expected(drawn: frozenset[int]) -> Fraction:
        if len(drawn) == draws:
            return Fraction(0)
        new = [v for v in range(size) if v not in drawn]
        ahead = sum((column[v] * expected(drawn | {v}) for v in new), Fraction(1))
        return ahead / sum(column[v] for v in new)

    mechanism = RandomSubstitution(gamma="3.5", domain_size=size, draws=draws, sampling="distinct")
    assert mechanism.utility()["expected_draws"] == pytest.approx(float(expected(frozenset())), rel=1e-14)


@pytest.mark.parametrize(("size", "draws", "sampling"), small_cases(("replacement",)))
def test_duplicate_probability_matches_the_enumeration(size: int, draws: int, sampling: str) -> None:
    law = sequences(size, Fraction(4), draws, 0, False)
    repeated = sum((p for drawn, p in law.items() if len(set(drawn)) < draws), Fraction(0))
    mechanism = RandomSubstitution(gamma=4, domain_size=size, draws=draws)
    assert mechanism.utility()["duplicate_probability"] == pytest.approx(float(repeated), rel=1e-13)


# -- estimates ------------------------------------------------------------------------------------------------


def paper_slope(mechanism: Any) -> float:
    """Return the average of the paper's estimator divided by the count, after distinct draws (1 is unbiased)."""
    size, draws, gamma = mechanism.domain_size, mechanism.parameters["draws"], Fraction(mechanism.gamma)
    keep, other = mechanism.support_probabilities[0]
    return float((gamma + size - 1) / (gamma - 1) / draws * (keep - other))


@pytest.mark.parametrize(("size", "draws", "sampling"), small_cases())
def test_estimate_is_unbiased_for_every_enumerated_distribution(size: int, draws: int, sampling: str) -> None:
    """The support of the true answer and of another one, summed over all reports, are those the estimate assumes."""
    mechanism = RandomSubstitution(gamma=3, domain_size=size, draws=draws, **SAMPLINGS[sampling])
    law = reports(size, Fraction(3), draws, 0, sampling)
    held = [sum((p * report.count(v) for report, p in law.items()), Fraction(0)) for v in range(2)]
    keep, other = mechanism.support_probabilities[0]
    assert mechanism.draws_per_report * keep == pytest.approx(held[0], rel=1e-15)
    assert mechanism.draws_per_report * other == pytest.approx(held[1], rel=1e-15)


def test_printed_estimator_after_distinct_draws_is_biased() -> None:
    """N = 50, γ = 5, l = 4: the counts over l, taken as independent draws, find .861 of a count; ours all of it."""
    mechanism = RandomSubstitution(gamma=5, domain_size=50, draws=4, sampling="distinct")
    assert paper_slope(mechanism) == pytest.approx(0.861, abs=5e-4)
    assert "0.861" in mechanism.notes[1]

    keep, other = (float(probability) for probability in mechanism.support_probabilities[0])
    n, holders = 10**6, 300_000
    support = np.full(50, round(n * other))
    support[0] = round(holders * keep + (n - holders) * other)
    estimate = mechanism.estimate(CountAggregate(mechanism.fingerprint, n, support))
    assert estimate.counts[0] == pytest.approx(holders, abs=20)


def test_printed_variance_over_l_fails_for_distinct_draws() -> None:
    """Theorem 5.2 divides the variance by l; with distinct draws it falls less."""
    one = RandomSubstitution(gamma=5, domain_size=50)
    four = RandomSubstitution(gamma=5, domain_size=50, draws=4, sampling="distinct")
    assert four.total_variance() > 1.2 * one.total_variance() / 4


USERS, BATCH = 10**6, 500


# -- the client -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize(("size", "draws"), [(4, 1), (4, 2), (4, 3), (3, 2), (2, 1)])
@every_sampling
def test_client_draws_the_distribution_of_the_algorithm(size: int, draws: int, sampling: str) -> None:
    """Every possible report comes as often as the enumeration says, within 4.5 standard deviations."""
    mechanism = RandomSubstitution(gamma="2.5", domain_size=size, draws=draws, **SAMPLINGS[sampling])
    n = 100_000
    for own in range(size):
        sent = mechanism.randomize(np.full(n, own), rng=own).reshape(n, draws)
        # Each report as a number with its draws for digits.
        digits = (np.sort(sent) if sampling == "replacement" else sent).T
        counts = np.bincount(np.ravel_multi_index(tuple(digits), (size,) * draws), minlength=size**draws)
        kinds = itertools.product(range(size), repeat=draws)
        found = Counter({kind: count for kind, count in zip(kinds, counts.tolist(), strict=True) if count})
        law = reports(size, Fraction(5, 2), draws, own, sampling)
        assert set(found) <= set(law)
        for report, probability in law.items():
            p = float(probability)
            assert abs(found[report] - n * p) < SIGMAS * math.sqrt(n * p * (1 - p)) + 1e-9


def test_order_of_a_set_reveals_nothing() -> None:
    sent = SubsetSelection(epsilon=1, domain_size=30, draws=8).randomize(np.arange(30), rng=5)
    assert (np.diff(sent.astype(int), axis=1) > 0).all()


@every_sampling
def test_bytes_read_do_not_depend_on_the_answers(sampling: str) -> None:
    mechanism = RandomSubstitution(epsilon=1, domain_size=10, draws=3, **SAMPLINGS[sampling])
    streams = [Recorder(SeededStream(9)) for _ in range(3)]
    for stream, values in zip(streams, ([0] * 500, [9] * 500, list(range(10)) * 50), strict=True):
        mechanism.randomize(values, rng=stream)
    assert len({len(stream.read_so_far) for stream in streams}) == 1
