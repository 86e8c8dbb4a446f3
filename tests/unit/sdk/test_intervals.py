"""Confidence intervals: their coverage by the exact distribution of the reports, computed here in another way."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ldp_budget
from ldp_budget.sdk.confidence_intervals import bounded_margin, quantile
from ldp_budget.sdk.estimates import CountAggregate, CountEstimate, SumAggregate

Floats = NDArray[np.float64]

LEVELS = {0.9: 1.6448536, 0.95: 1.9599640, 0.99: 2.5758293}
EPSILONS = (0.1, 1, 3, 8, 20)
USERS = (1, 2, 5, 20, 100, 500, 10**4, 10**6)
COUNTED: list[tuple[str, dict[str, Any]]] = [
    ("oue", {"domain_size": 8}),
    ("sue", {"domain_size": 8}),
    ("grr", {"domain_size": 50}),
    ("grr", {"domain_size": 50, "draws": 3}),
    ("subset-selection", {"domain_size": 50}),
    ("pgr", {"domain_size": 50}),
    ("randomized-response", {}),
]


def binomial(trials: int, probability: float) -> tuple[int, Floats]:
    """The likely numbers of successes, from the first on, and their probabilities, by the ratios of neighbours."""
    if probability in (0.0, 1.0) or trials == 0:
        return (trials if probability == 1.0 else 0), np.ones(1)
    mode = min(trials, int((trials + 1) * probability))
    reach = int(9 * math.sqrt(trials * probability * (1 - probability))) + 40
    odds = probability / (1 - probability)
    above = np.arange(mode, min(trials, mode + reach))
    below = np.arange(mode, max(0, mode - reach), -1)
    rising = np.cumprod((trials - above) / (above + 1) * odds)
    falling = np.cumprod(below / (trials - below + 1) / odds)
    masses = np.concatenate([falling[::-1], [1.0], rising])
    return mode - len(falling), masses / masses.sum()


def support_law(mechanism: Any, users: int, held: int, least: float = 1e-7) -> tuple[NDArray[np.int64], Floats]:
    """Return the possible numbers of draws that support the last answer, with probabilities, if `held` users hold it."""
    keep, noise = map(float, mechanism.support_probabilities[-1])
    first, own = binomial(mechanism.draws_per_report * held, keep)
    other_first, other = binomial(mechanism.draws_per_report * (users - held), noise)
    masses = np.convolve(own, other)
    seen = masses > least
    return (first + other_first + np.arange(len(masses)))[seen], masses[seen]


def estimates_of(mechanism: Any, users: int, support: NDArray[np.int64]) -> CountEstimate:
    """The estimates from so much support for the last answer, one by one in place of the answers."""
    laws = mechanism._law
    last = type(laws)(
        laws.draws, *(getattr(laws, name)[-1:] for name in ("noise", "gap", "at_zero", "at_one", "slope"))
    )
    return last.estimate(CountAggregate(mechanism.fingerprint, users, support))


def held_by(users: int) -> list[int]:
    """No user, one user, a rare answer, half and all of them."""
    return sorted({0, 1, max(1, users // 200), users // 2, users})


def coverages(mechanism: Any, users: int, held: int) -> list[tuple[float, float, float]]:
    """(level, coverage, mean width over that of Wald's interval)."""
    support, chances = support_law(mechanism, users, held)
    found = estimates_of(mechanism, users, support)
    rows = []
    for level, z in LEVELS.items():
        low, high = found.interval(level)
        covers = chances[(low <= held + 1e-6) & (held <= high + 1e-6)].sum()
        wald = (2 * z * found.std_errors * chances).sum()
        rows.append((level, float(covers), float(((high - low) * chances).sum() / wald) if wald else math.inf))
    return rows


@pytest.mark.slow
@pytest.mark.some(15)
@pytest.mark.parametrize(("name", "parameters"), COUNTED)
@pytest.mark.parametrize("epsilon", [1, 8])
def test_intervals_of_counts_cover_few_reports_and_rare_answers(
    name: str, parameters: dict[str, Any], epsilon: float
) -> None:
    mechanism = ldp_budget.mechanism(name)(epsilon=epsilon, **parameters)
    for users in (1, 2, 5, 20, 500):
        for held in held_by(users):
            for level, coverage, _ in coverages(mechanism, users, held):
                assert coverage >= level - 0.001, (users, held, level, coverage)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "parameters"), COUNTED)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_intervals_of_counts_cover_at_any_number_of_reports(
    name: str, parameters: dict[str, Any], epsilon: float
) -> None:
    mechanism = ldp_budget.mechanism(name)(epsilon=epsilon, **parameters)
    for users in USERS:
        for held in held_by(users):
            for level, coverage, _ in coverages(mechanism, users, held):
                assert coverage >= level - 0.001, (users, held, level, coverage)


@pytest.mark.parametrize("held", [30, 50, 80, 200])
def test_intervals_of_counts_cover_at_99_percent_where_the_support_is_skewed(held: int) -> None:
    """A score test without the skewness covered 98.963 % with 50 holders."""
    mechanism = ldp_budget.mechanism("subset-selection")(epsilon=2, domain_size=50)
    assert coverages(mechanism, 1000, held)[-1][1] >= 0.99


@pytest.mark.parametrize("share", [-0.4, -0.02, 0.3, 1.05, 1.6])
def test_standard_errors_are_linear_in_the_unbiased_share_down_to_the_least(share: float) -> None:
    """A share that is cut to 0 and 1 first makes the errors of few reports too small on average."""
    law = ldp_budget.mechanism("oue")(epsilon=8, domain_size=2)._law
    least = min(law.at_zero[0], law.at_one[0])
    expected = max((1 - share) * law.at_zero[0] + share * law.at_one[0], least)
    assert law.variance(np.array([50 * share]), 50) == pytest.approx(50 * expected)


def misses(mechanism: Any, users: int, held: int, level: float) -> float:
    """Return the rate of misses on either side, divided by the permitted probability."""
    support, chances = support_law(mechanism, users, held, least=1e-16)
    low, high = estimates_of(mechanism, users, support).interval(level)
    missed = (low > held + 1e-6) | (held - 1e-6 > high)
    return float(chances[missed].sum()) / (1 - level)


@pytest.mark.slow
@pytest.mark.some(12)
@pytest.mark.parametrize("level", [0.995, 0.9999, pytest.param(1 - 1e-7, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize(("name", "parameters"), [COUNTED[0], COUNTED[2], COUNTED[3]])
def test_intervals_of_counts_cover_at_confidences_above_99_percent(
    name: str, parameters: dict[str, Any], level: float
) -> None:
    """At 99.99 % intervals missed 1.48 times as often as they may, as the normal tail is too thin there."""
    for epsilon in (1, 6):
        mechanism = ldp_budget.mechanism(name)(epsilon=epsilon, **parameters)
        noise = float(mechanism.support_probabilities[-1][1])
        for variance in (103, 600):
            users = math.ceil(variance / (mechanism.draws_per_report * noise * (1 - noise)))
            for held in (0, 20):
                assert misses(mechanism, users, held, level) <= 1.0001, (epsilon, users, held)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters"), COUNTED)
def test_intervals_for_many_reports_are_no_wider_than_normal_ones(name: str, parameters: dict[str, Any]) -> None:
    mechanism = ldp_budget.mechanism(name)(epsilon=1, **parameters)
    for held in held_by(10**5):
        for level, _, wider in coverages(mechanism, 10**5, held):
            assert wider <= 1.02, (held, level, wider)


def test_intervals_by_the_normal_law_would_cover_half_as_often() -> None:
    oue = ldp_budget.mechanism("oue")(epsilon=6, domain_size=8)
    support, chances = support_law(oue, 1, 1)
    found = estimates_of(oue, 1, support)
    normal = np.abs(found.counts - 1) <= LEVELS[0.95] * found.std_errors
    assert chances[normal].sum() == pytest.approx(0.0, abs=0.51)
    low, high = found.interval(0.95)
    assert chances[(low <= 1) & (high >= 1)].sum() == pytest.approx(1)


def test_interval_is_within_the_number_of_reports_also_where_the_estimate_is_not() -> None:
    oue = ldp_budget.mechanism("oue")(epsilon=1, domain_size=4)
    found = oue.estimate(CountAggregate(oue.fingerprint, 100, np.array([0, 27, 50, 100])))
    low, high = found.interval()
    assert found.counts[0] < 0
    assert found.counts[3] > 100
    assert (low >= 0).all()
    assert (high <= 100).all()
    assert (high - low > 10).all()  # also where fewer or more reports support an answer than any users would make


@pytest.mark.slow
@pytest.mark.parametrize("users", [4, 20_000])
def test_interval_without_noise_is_narrow_and_without_information_holds_every_count(users: int) -> None:
    """Both divided by zero: the variance is 0 in the first case, and the difference of the probabilities in the second."""
    rr = ldp_budget.mechanism("randomized-response")
    low, high = rr(epsilon="1000000").estimate((np.arange(users) % 4 == 0).astype(np.uint8)).interval()
    truth = np.array([users * 3 // 4, users // 4])
    assert (low <= truth).all()
    assert (truth <= high).all()
    assert (high - low <= 2).all()
    low, high = rr(epsilon="1e-17").estimate((np.arange(users) % 2).astype(np.uint8)).interval()
    assert (low <= 0).all()
    assert (high >= users).all()


# -- some answers of many ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize(("buckets", "bits"), [(5, 4), (50, 4), (1000, 1)])
def test_intervals_cover_if_reports_support_some_answers(buckets: int, bits: int) -> None:
    rng = np.random.default_rng(5)
    runs = 4000
    for epsilon, users in itertools.product((1, 8), (1, 20, 500, 10**5)):
        mechanism = ldp_budget.mechanism("d-bit-flip")(epsilon=epsilon, buckets=buckets, bits=bits)
        keep, noise = map(float, mechanism._drawn)
        for held in held_by(users):
            told, others = (rng.binomial(count, bits / buckets, runs) for count in (held, users - held))
            ones = rng.binomial(told, keep) + rng.binomial(others, noise)
            counts = (ones - (told + others) * noise) * (buckets / bits) / (keep - noise)
            low, high = mechanism._law.with_errors(counts, users, ones).interval(0.95)
            assert ((low <= held + 1e-6) & (held <= high + 1e-6)).mean() >= 0.935, (epsilon, users, held)


# -- means ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("users", [1, 2, 20, 500])
def test_intervals_of_a_mean_of_bits_cover(epsilon: float, users: int) -> None:
    mechanism = ldp_budget.mechanism("one-bit-mean")(epsilon=epsilon, maximum=10)
    least, most = map(float, mechanism.ends)
    estimates: dict[int, Any] = {}
    for value in (0, 0.05, 5, 10):
        first, chances = binomial(users, least + (most - least) * value / 10)
        for level in LEVELS:
            covers = 0.0
            for ones, chance in enumerate(chances.tolist(), start=first):
                if chance > 1e-7:
                    total = SumAggregate(mechanism.fingerprint, users, ones)
                    low, high = estimates.setdefault(ones, mechanism.estimate(total)).interval(level)
                    covers += chance * (low - 1e-9 <= value <= high + 1e-9)
            assert covers >= level - 0.001, (value, level, covers)


@pytest.mark.slow
@pytest.mark.some(9)
@pytest.mark.parametrize("name", ["laplace", "staircase", "gaussian"])
@pytest.mark.parametrize("epsilon", [0.1, 3, 20])
@pytest.mark.parametrize("users", [1, 2, 20])
def test_intervals_of_a_noisy_mean_cover(name: str, epsilon: float, users: int) -> None:
    target = {"delta": 1e-5} if name == "gaussian" else {}
    mechanism = ldp_budget.mechanism(name)(epsilon=epsilon, lower=0, upper=1, **target)
    runs = 10_000
    means = mechanism.randomize(np.full(runs * users, 0.3), rng=users).reshape(runs, users).mean(axis=1)
    estimate = mechanism.estimate(mechanism.randomize(np.full(users, 0.3), rng=1))
    unbounded = replace(estimate, ends=None)
    for level in LEVELS:
        low, high = unbounded.interval(level)
        assert (np.abs(means - 0.3) <= (high - low) / 2).mean() >= level - 0.01, level


@pytest.mark.parametrize("name", ["laplace", "staircase", "gaussian", "hybrid", "square-wave", "one-bit-mean"])
@pytest.mark.parametrize("users", [1, 3, 40])
def test_interval_of_a_mean_is_in_its_range_with_a_width(name: str, users: int) -> None:
    target: dict[str, Any] = {"epsilon": 1} | ({"maximum": 1} if name == "one-bit-mean" else {"lower": 0, "upper": 1})
    target |= {"delta": 1e-5} if name == "gaussian" else {}
    mechanism = ldp_budget.mechanism(name).calibrate(**target)
    for seed in range(8):
        found = mechanism.estimate(mechanism.randomize(np.full(users, seed % 2), rng=seed))
        low, high = found.interval()
        assert 0 <= low < high <= 1
        assert high - low > 0.1


@pytest.mark.parametrize("name", ["hybrid", "square-wave"])
def test_interval_of_few_bounded_reports_takes_the_largest_spread(name: str) -> None:
    """The spread of a few reports may happen to be small: one report at epsilon 2 covered 84 to 92 % of the time."""
    mechanism = ldp_budget.mechanism(name)(epsilon=2, lower=0, upper=1)
    low, high = mechanism.estimate(mechanism.randomize(np.full(5, 0.5), rng=1)).interval()
    assert (high - low) / 2 >= 0.45


@pytest.mark.parametrize("level", [0.95, 0.99, 0.999, 0.9999])
def test_interval_of_a_mean_with_rare_reports_far_out_misses_as_rarely_as_declared(level: float) -> None:
    """Reports are 0, and rarely 1: without the term of the skewness, 7 times as many miss at 99.9 % as may."""
    for reports, rare in itertools.product((5, 20, 100), (0.01, 0.02, 0.05)):
        first, chances = binomial(reports, rare)
        most, missed = math.sqrt(rare * (1 - rare)), 0.0
        for ones, chance in enumerate(chances.tolist(), start=first):
            share = ones / reports
            margin = bounded_margin(math.sqrt(share * (1 - share)), most, 1.0, reports, level)
            missed += chance * (abs(share - rare) > margin)
        assert missed <= 1 - level, (reports, rare, missed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["bounded-laplace", "bounded-staircase"])
@pytest.mark.parametrize("epsilon", [1, 8, 20])
def test_intervals_of_bounded_reports_cover_what_they_are_on_average(name: str, epsilon: float) -> None:
    mechanism = ldp_budget.mechanism(name)(epsilon=epsilon, lower=0, upper=1)
    runs = 400
    for users, value in itertools.product((1, 2, 20, 100), (0.0, 0.5)):
        groups = mechanism.randomize(np.full(runs * users, value), rng=users).reshape(runs, users)
        mean = value + mechanism.error_at(value)[0]
        for level in LEVELS:
            ends = [mechanism.estimate(group).interval(level) for group in groups]
            covers = sum(low <= mean <= high for low, high in ends) / runs
            assert covers >= level - 0.03, (users, value, level, covers)


# -- reports that repeat ----------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_errors_of_rounds_of_the_same_users_are_not_independent() -> None:
    mechanism = ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=4, bits=4, memoize=True)
    users, rounds, runs = 50, 6, 300
    values = np.arange(users) % 4
    truth = rounds * np.bincount(values)
    alone, together = [], []
    for run in range(runs):
        secrets = [(run * users + user).to_bytes(32, "little") for user in range(users)]
        parts = [mechanism.aggregate(mechanism.randomize(values, secrets=secrets)) for _ in range(rounds)]
        estimates = [mechanism.estimate(part) for part in parts]
        # `merge` adds to the first aggregate, so each round is estimated before.
        total = parts[0]
        for part in parts[1:]:
            total = total.merge(part)
        for found, covers in (
            (mechanism.estimate(total), alone),
            (mechanism.estimate(total).repeated(estimates), together),
        ):
            low, high = found.interval()
            covers.append(((low <= truth) & (truth <= high)).mean())
    assert mechanism.repeats
    assert np.mean(alone) < 0.7
    assert np.mean(together) >= 0.93


def test_errors_of_repeated_rounds_add_up_like_errors_and_not_like_variances() -> None:
    mechanism = ldp_budget.mechanism("one-bit-mean")(epsilon=1, maximum=1, rounding=0.25)
    found = mechanism.estimate(SumAggregate(mechanism.fingerprint, 500, 240))
    parts = [mechanism.estimate(SumAggregate(mechanism.fingerprint, n, ones)) for n, ones in ((250, 123), (250, 117))]
    repeated = found.repeated(parts)
    assert repeated.std_error == pytest.approx(sum(part.std_error for part in parts) / 2)
    assert repeated.std_error == pytest.approx(found.std_error * math.sqrt(2), rel=0.02)
    assert repeated.mean == found.mean
    narrow, wide = (high - low for low, high in (found.interval(), repeated.interval()))
    assert wide == pytest.approx(narrow * math.sqrt(2), rel=0.05)


def test_errors_of_unequal_rounds_are_the_sum_of_their_own() -> None:
    """100 reports that vary much and 10,000 that do not: stated as if all varied alike, more than 5 % too small."""
    mechanism = ldp_budget.mechanism("one-bit-mean")(epsilon=6, maximum=1, rounding=0.25)
    parts = [SumAggregate(mechanism.fingerprint, n, ones) for n, ones in ((100, 50), (10_000, 25))]
    own = [mechanism.estimate(part) for part in parts]
    found = mechanism.estimate(parts[0].merge(parts[1]))
    together = (100 * own[0].std_error + 10_000 * own[1].std_error) / 10_100
    repeated = found.repeated(own)
    assert repeated.std_error == pytest.approx(together)
    assert together > 1.05 * found.std_error * (math.sqrt(100) + math.sqrt(10_000)) / math.sqrt(10_100)
    low, high = repeated.interval(0.68)
    assert high - low > 2 * together, "the interval allows for it as well"


def test_quantile_of_the_largest_confidence_matches_the_exact_tail() -> None:
    assert quantile(1 - 2**-53) == pytest.approx(8.2923611, rel=1e-6)  # a tail of 2^-54
    assert quantile(0.95) == pytest.approx(1.9599639845400545, rel=1e-15)
