"""Finite population correction: the variance of sampling shrinks, and that of the noise does not."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from ldp_budget import mechanism
from ldp_budget.errors import InvalidParameter
from ldp_budget.sdk.share_laws import AnswerLaw
from ldp_budget_surveys.designs.finite_population import FinitePopulation, Noise, paired_noise
from ldp_budget_surveys.designs.moments import moments_of
from ldp_budget_surveys.designs.strata import Design
from ldp_budget_surveys.designs.two_way import paired
from ldp_budget_surveys.designs.weighted_means import Survey
from ldp_budget_surveys.designs.weights import equal_weights, table_weights

Z = np.array([[1.0], [3.0], [8.0], [2.0], [6.0], [4.0]])
STRATUM = ["a", "a", "a", "b", "b", "b"]
NOISE = Noise(np.array([1.5]), np.array([0.25]))


@pytest.mark.parametrize("people", [6, 12, 600])
def test_correction_of_a_simple_sample_lowers_the_sampling_part_alone(people: int) -> None:
    moments = moments_of(Z)
    noise = 1.5 + 0.25 * 4  # the mean of Z is 4
    found = Survey(moments, equal_weights(moments), population=FinitePopulation(people, NOISE)).means()
    total = Z.var(ddof=1)
    assert found.std_errors[0] ** 2 == pytest.approx(((1 - 6 / people) * (total - noise) + noise) / 6)


def test_correction_where_everyone_was_asked_leaves_the_noise() -> None:
    made = mechanism("oue").calibrate(epsilon=1, domain_size=4)
    z = made.contributions(made.randomize(np.arange(400) % 4, rng=1))
    moments = moments_of(z)
    survey = Survey(
        moments, equal_weights(moments), population=FinitePopulation(400, Noise(*made.contribution_noise))
    )
    at_zero, slope = made.contribution_noise
    assert survey.means().std_errors ** 2 == pytest.approx((at_zero + slope * z.mean(axis=0)) / 400)


def test_correction_of_strata_has_a_rate_for_each() -> None:
    # Weights 20 and 10 of 90 people in all: 60 of them in a, and 30 in b, so the rates are 1/20 and 1/10.
    moments = moments_of(Z, {"region": STRATUM})
    weights = table_weights(moments, [{"region": "a", "weight": "20"}, {"region": "b", "weight": "10"}])
    none = Noise(np.zeros(1), np.zeros(1))
    found = Survey(moments, weights, Design(("region",)), population=FinitePopulation(90, none)).means()
    assert found.std_errors[0] ** 2 == pytest.approx(0.95 * 4 / 9 * 13 / 3 + 0.9 * 1 / 9 * 4 / 3)


def test_correction_without_declared_strata_uses_the_least_rate() -> None:
    moments = moments_of(Z, {"region": STRATUM})
    weights = table_weights(moments, [{"region": "a", "weight": "20"}, {"region": "b", "weight": "10"}])
    none = Noise(np.zeros(1), np.zeros(1))
    plain, corrected = (
        Survey(moments, weights, population=each).means() for each in (None, FinitePopulation(90, none))
    )
    assert corrected.std_errors**2 == pytest.approx(0.95 * plain.std_errors**2)


def test_correction_never_leaves_less_than_the_noise() -> None:
    moments = moments_of(np.ones((50, 1)))
    found = Survey(moments, equal_weights(moments), population=FinitePopulation(100, NOISE)).means()
    assert found.std_errors[0] ** 2 == pytest.approx(1.75 / 50)


@pytest.mark.slow
def test_interval_where_everyone_was_asked_covers_shares_that_are_skewed() -> None:
    """Skewness of the answers does not shift it: no sample was drawn, and the noise has a skewness of its own."""
    made = mechanism("grr").calibrate(epsilon=6, domain_size=4)
    answers = np.repeat(np.arange(4), (291, 3, 3, 3))
    truth, rng = np.bincount(answers) / 300, np.random.default_rng(1)
    hits = []
    for _ in range(300):
        moments = moments_of(made.contributions(made.randomize(answers, rng=int(rng.integers(2**62)))))
        population = FinitePopulation(300, Noise(*made.contribution_noise))
        low, high = (
            Survey(moments, equal_weights(moments), Design(), AnswerLaw(made.contribution_law), population)
            .means()
            .interval()
        )
        hits.append((low <= truth) & (truth <= high))
    assert np.mean(hits, axis=0).min() >= 0.93


def test_interval_of_a_census_is_that_of_the_noise_alone() -> None:
    made = mechanism("randomized-response").calibrate(epsilon=6)
    moments = moments_of(made.contributions(np.arange(200, dtype=np.uint8) % 10 == 0))
    law, noise = AnswerLaw(made.contribution_law), Noise(*made.contribution_noise)
    widths = []
    for people in (None, 1e6, 400, 200):
        population = None if people is None else FinitePopulation(people, noise)
        low, high = Survey(moments, equal_weights(moments), Design(), law, population).means().interval()
        widths.append(float(high[0] - low[0]))
    assert widths[1] == pytest.approx(widths[0], rel=1e-3)
    assert widths[2] < 0.8 * widths[1]
    assert widths[3] < 0.3 * widths[1]


def test_correction_of_a_stratum_with_too_few_people_names_it() -> None:
    moments = moments_of(Z, {"region": STRATUM})
    weights = table_weights(moments, [{"region": "a", "weight": "20"}, {"region": "b", "weight": "1"}])
    survey = Survey(moments, weights, Design(("region",)), population=FinitePopulation(12, NOISE))
    with pytest.raises(InvalidParameter, match="as many people as respondents, also in b"):
        survey.means()


def test_paired_noise_is_the_exact_variance_of_the_products() -> None:
    """The variance of each contribution for each pair of answers, by enumeration of all pairs of reports."""
    oracles = [mechanism("grr").calibrate(epsilon=epsilon, domain_size=d) for epsilon, d in ((1, 2), (2, 3))]
    noise = paired_noise(*(Noise(*each.contribution_noise) for each in oracles))
    channels = []
    for each in oracles:
        p, q = each.support_probabilities[0]
        channels.append(
            [[p if report == answer else q for report in range(each.answers)] for answer in range(each.answers)]
        )
    every = list(itertools.product(range(2), range(3)))
    rows = paired(
        *(
            each.contributions(np.array(reports))
            for each, reports in zip(oracles, zip(*every, strict=True), strict=True)
        )
    )
    for answers in every:
        chances = np.array(
            [float(Fraction(channels[0][answers[0]][r]) * channels[1][answers[1]][s]) for r, s in every]
        )
        mean = chances @ rows
        held = moments_of(mean[None, :])
        assert noise.totals(held)[0] == pytest.approx(chances @ rows**2 - mean**2)
