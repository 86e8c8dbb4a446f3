"""Estimates about all respondents from the asked ones: unbiased, with the variance of a finite population."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, xlog1py, xlogy

from ldp_budget import mechanism
from ldp_budget.sdk.estimates import CountAggregate, CountEstimate, MeanEstimate, SupportLaw
from ldp_budget.sdk.share_laws import without_replacement
from ldp_budget_surveys.planning.margins import worst_share_variance
from ldp_budget_surveys.questionnaires.questionnaire import Question, Questionnaire
from ldp_budget_surveys.questionnaires.subsampled_estimates import expanded

RESPONDENTS = 900


def questionnaire(kind: str, m: int, k: int, **declared: Any) -> Questionnaire:
    made = mechanism(kind)(**declared)
    size = getattr(made.domain, "size", 0)
    categories = tuple(str(answer) for answer in range(size)) or None
    return Questionnaire(questions=[Question(f"q{n}", made, categories) for n in range(m)], ask=k)


def masks(generator: np.random.Generator, count: int, m: int, k: int) -> Any:
    """Masks of k of m bits, each equally likely: the oracle's own selection."""
    subsets = [sum(1 << place for place in each) for each in combinations(range(m), k)]
    return generator.choice(np.array(subsets, dtype=np.uint64), count)


def simulated(asks: Questionnaire, answers: Any, runs: int, seed: int) -> list[Any]:
    """The estimates of the first question over repeated selections and draws, for the same answers each time."""
    generator, found = np.random.default_rng(seed), []
    values = np.zeros(len(answers), dtype=asks.value_type)
    for place in range(len(asks.questions)):
        values[f"q{place}"] = answers
    for run in range(runs):
        values["asked"] = masks(generator, len(answers), len(asks.questions), asks.ask)
        found.append(asks.estimate(asks.randomize(values, rng=seed * 10_000 + run)).questions["q0"])
    return found


# -- the formulas -------------------------------------------------------------------------------------------------------


def test_factor_of_sampling_is_that_of_a_simple_random_sample() -> None:
    assert without_replacement(50, 50)[0] == 0
    assert without_replacement(1, 50)[0] == 1
    # Enumerated by hand for n = 4, n_a = 2 and two holders: the sample share is 0, 1/2, 1 with 1, 4, 1 of 6 chances.
    variance = (1 * 0.25 + 1 * 0.25) / 6
    assert without_replacement(2, 4)[0] * 0.25 / 2 == pytest.approx(variance)


@pytest.mark.parametrize(("zero", "one", "sampling"), [(0.7, 1.0, 1.0), (3.0, 0.2, 0.4), (0.0, 0.0, 0.5), (2, 5, 0)])
def test_worst_share_variance_is_the_largest_over_all_shares(zero: float, one: float, sampling: float) -> None:
    shares = np.linspace(0, 1, 100_001)
    largest = ((1 - shares) * zero + shares * one + sampling * shares * (1 - shares)).max()
    assert worst_share_variance(zero, one, sampling) == pytest.approx(largest, rel=1e-8)


def test_variance_is_exact_by_enumeration_of_all_samples() -> None:
    """Three of five respondents hold the answer, two are asked: all samples and all reports are enumerated."""
    made = mechanism("randomized-response")(epsilon=1)
    keep, noise = (float(each) for each in made.support_probabilities[0])  # type: ignore[attr-defined]
    holds, moments = [1, 1, 1, 0, 0], np.zeros(2)
    for sample in combinations(range(5), 2):
        for bits in range(4):
            chance = 1 / 10
            for place, who in enumerate(sample):
                one = keep if holds[who] else noise
                chance *= one if bits >> place & 1 else 1 - one
            share = (bits.bit_count() - 2 * noise) / (keep - noise) / 2
            moments += [chance * share, chance * share**2]
    mean, variance = moments[0], moments[1] - moments[0] ** 2
    share, gap = 0.6, keep - noise
    own = [each * (1 - each) / gap**2 for each in (noise, keep)]
    formula = ((1 - share) * own[0] + share * own[1] + without_replacement(2, 5)[0] * share * (1 - share)) / 2
    assert mean == pytest.approx(share)
    assert variance == pytest.approx(formula, rel=1e-12)


def test_errors_of_an_expanded_estimate_are_those_of_the_formula() -> None:
    made = mechanism("oue")(epsilon=1, domain_size=3)
    reports = made.randomize([0] * 120 + [1] * 80, rng=1)
    plain = made.estimate(reports)
    found = expanded(plain, 600, made, None)
    for place in range(3):
        share = min(max(plain.counts[place] / 200, 0), 1)
        noise = (plain.std_errors[place] / 200) ** 2
        sampling = (600 - 200) / (600 - 1) * share * (1 - share) / 200
        assert found.std_errors[place] == pytest.approx(600 * math.sqrt(noise + sampling))
    assert found.counts == pytest.approx(3 * plain.counts)
    assert (found.reports, expanded(plain, 200, made, None)) == (600, plain)


# -- simulations with fixed seeds ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        ("oue", {"epsilon": 2, "domain_size": 4}),
        ("random-substitution", {"epsilon": 1, "domain_size": 4}),
        ("random-substitution", {"epsilon": 8, "domain_size": 4}),  # nearly all of the variance is of sampling
    ],
)
@pytest.mark.parametrize(("m", "k"), [(3, 1), (4, 3)])
def test_counts_are_unbiased_with_the_stated_errors_and_coverage(
    kind: str, declared: dict[str, Any], m: int, k: int
) -> None:
    answers = np.repeat([0, 1, 2], [450, 360, 90])  # no respondent holds the fourth answer
    runs = 400
    found: list[CountEstimate] = simulated(questionnaire(kind, m, k, **declared), answers, runs, seed=m)
    truth = np.bincount(answers, minlength=4)
    counts = np.array([each.counts for each in found])
    spread = counts.std(axis=0, ddof=1)
    stated = np.sqrt(np.mean([each.std_errors**2 for each in found], axis=0))
    assert np.all(np.abs(counts.mean(axis=0) - truth) < 4 * spread / math.sqrt(runs))
    some = truth > 0  # at a share of 0 the clipped share adds variance
    assert np.all(np.abs(stated / spread - 1)[some] < 4 / math.sqrt(2 * runs))
    assert np.all(stated >= spread * (1 - 4 / math.sqrt(2 * runs)))
    ends = np.array([each.interval(0.95) for each in found])
    covered = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean(axis=0)
    assert np.all(covered > 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs))
    assert np.all(covered[some] < 0.99)


def binomial(count: int, chance: float) -> Any:
    ones = np.arange(count + 1)
    ways = gammaln(count + 1) - gammaln(ones + 1) - gammaln(count - ones + 1)
    return np.exp(ways + xlogy(ones, chance) + xlog1py(count - ones, -chance))


def law_of_support(n: int, asked: int, held: int, keep: float, noise: float) -> Any:
    """The exact law of the number of supporting reports: holders among the asked are hypergeometric."""

    def ways(count: int, some: Any) -> Any:
        return gammaln(count + 1) - gammaln(some + 1) - gammaln(count - some + 1)

    law = np.zeros(asked + 1)
    for holders in range(max(0, asked - (n - held)), min(held, asked) + 1):
        chance = math.exp(ways(held, holders) + ways(n - held, asked - holders) - ways(n, asked))
        if chance > 1e-9:
            law += chance * np.convolve(binomial(holders, keep), binomial(asked - holders, noise))
    return law


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2, 8])
@pytest.mark.parametrize(("n", "asked"), [(60, 20), (60, 45), (300, 100), (1200, 900)])
def test_intervals_cover_by_the_exact_law(epsilon: float, n: int, asked: int) -> None:
    """Coverage without simulation, down to 20 reports; near 95 % from 300 respondents on, unless nearly all is exact."""
    keep = math.exp(epsilon) / (math.exp(epsilon) + 1)
    pair = tuple(Fraction(each).limit_denominator(10**12) for each in (keep, 1 - keep))
    estimate = SupportLaw.of([pair], 1).estimate(CountAggregate("", asked, np.arange(asked + 1)))  # type: ignore[list-item]
    low, high = expanded(estimate, n, None, None).interval(0.95)
    for share in (0, 0.02, 0.1, 0.3, 0.5):
        held = round(n * share)
        covers = (low <= held + 1e-9) & (held <= high + 1e-9)
        coverage = law_of_support(n, asked, held, keep, 1 - keep)[covers].sum()
        assert coverage >= 0.95
        if n >= 300 and share >= 0.1 and epsilon < 8:
            assert coverage <= 0.975


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hybrid", "laplace", "one-bit-mean", "bounded-laplace", "square-wave"])
def test_errors_of_means_are_at_least_the_spread(kind: str) -> None:
    answers = np.concatenate([np.zeros(200), np.full(300, 60.0), np.full(100, 100.0)])
    asks = questionnaire(kind, 2, 1, epsilon=4, lower=0, upper=100)
    runs = 300
    found: list[MeanEstimate] = simulated(asks, answers, runs, seed=3)
    means = np.array([each.mean for each in found])
    stated = math.sqrt(np.mean([each.std_error**2 for each in found]))
    spread = means.std(ddof=1)
    assert stated > spread * (1 - 4 / math.sqrt(2 * runs))
    exact = kind == "hybrid"  # its aggregate has squares, so the spread of the values is estimated
    assert stated < spread * (1 + 4 / math.sqrt(2 * runs) if exact else 1.35)
    if kind != "bounded-laplace":  # which is biased, and says so
        assert abs(means.mean() - answers.mean()) < 4 * spread / math.sqrt(runs)


# -- sampling against splitting -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "ratio"), [(3, 4.0), (5, 6.8), (10, 13.8)])
def test_asking_one_question_has_less_variance_than_splitting_epsilon_2(m: int, ratio: float) -> None:
    """For optimized unary encoding and an answer that no respondent holds: 4e^ε/(e^ε - 1)², by hand."""

    def by_hand(epsilon: float) -> float:
        return 4 * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2

    assert by_hand(2 / m) / (m * by_hand(2)) == pytest.approx(ratio, abs=0.05)
    n = 30_000
    one, parts = (mechanism("oue").calibrate(epsilon=each, domain_size=8) for each in (Decimal(2), Decimal(2) / m))
    asked = n // m
    variances = []
    for made, reporting in ((one, asked), (parts, n)):
        plain = made.estimate(made.randomize(np.zeros(reporting, dtype=int), rng=m))
        found = expanded(plain, n, made, None)
        variances.append(made.utility()["variance_per_user"] / reporting)
        # The stated errors of the seven empty answers agree, though the clipped shares add a little.
        assert (found.std_errors[1:] ** 2).mean() / n**2 == pytest.approx(variances[-1], rel=0.15)
    assert variances[1] / variances[0] == pytest.approx(ratio, abs=0.06)
