"""RAPPOR: the loss of repeated reports by enumeration, attacks on the client, and the estimates of the server."""

from __future__ import annotations

import hashlib
import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import ldp_budget
from exact_numbers import exact, golden
from ldp_budget import InvalidParameter, NotSupported
from ldp_budget.guarantees import SAME_CHANGE_PATTERN
from ldp_budget.sampling import ONE

Rappor: Any = ldp_budget.mechanism("rappor")

# What Jeong, Hong and Seo 2020 run, with "ε ≈ 2".
PRINTED = {"bits": 32, "hashes": 2, "cohorts": 64, "f": "0.5", "p": "0.25", "q": "0.75"}


def printed_loss(t: int, h: int, f: mpf, p: mpf, q: mpf) -> mpf:
    """ε(t), as errata.md prints it."""
    a, b = 1 - f / 2, f / 2
    ones = (a * q**t + b * p**t) / (b * q**t + a * p**t)
    zeros = (a * (1 - p) ** t + b * (1 - q) ** t) / (b * (1 - p) ** t + a * (1 - q) ** t)
    return h * (mpmath.log(ones) + mpmath.log(zeros))


def secrets(count: int) -> list[bytes]:
    return [hashlib.sha256(b"user %d" % user).digest() for user in range(count)]


def drawn(mechanism: Any, values: Any, seed: int) -> Any:
    """Reports of other users for each seed."""
    own = [hashlib.sha256(b"%d of %d" % (user, seed)).digest() for user in range(len(values))]
    return mechanism.randomize(values, rng=seed, secrets=own)


def bits_of(mechanism: Any, reports: Any) -> Any:
    """The bits of the reports, shape (n, k)."""
    return np.unpackbits(reports[:, 2:], axis=1, count=mechanism.bits, bitorder="little")


def cohorts_of(reports: Any) -> Any:
    return reports[:, 0] + 256 * reports[:, 1].astype(int)


# -- the loss, from the law itself -----------------------------------------------------------------------------------

Bits = tuple[int, ...]


def likelihood(filter_bits: Bits, reports: tuple[Bits, ...], law: tuple[Fraction, ...]) -> Fraction:
    """The probability of `reports` of one memoised value, over all its permanent bits.

    `law`: the probabilities of a permanent 1 where the filter has 0 and 1, and of a reported 1 where that is 0 and 1.
    """
    total = Fraction(1)
    for place, bit in enumerate(filter_bits):
        rise, stay, p, q = law
        one = stay if bit else rise
        shown = [report[place] for report in reports]
        total *= one * _shows(shown, q) + (1 - one) * _shows(shown, p)
    return total


def _shows(shown: list[int], one: Fraction) -> Fraction:
    return one ** sum(shown) * (1 - one) ** (len(shown) - sum(shown))


def worst_ratio(bits: int, hashes: int, reports: int, law: tuple[Fraction, ...]) -> Fraction:
    """The largest ratio of likelihoods over all pairs of filters and all outputs of t reports, enumerated."""
    outputs = list(itertools.product((0, 1), repeat=bits))
    filters = [made for made in outputs if 1 <= sum(made) <= hashes]
    worst = Fraction(1)
    for shown in itertools.product(outputs, repeat=reports):
        chances = [likelihood(made, shown, law) for made in filters]
        worst = max(worst, max(chances) / min(chances))
    return worst


def law_of(f: str, p: str, q: str) -> tuple[Fraction, ...]:
    return Fraction(f) / 2, 1 - Fraction(f) / 2, Fraction(p), Fraction(q)


@pytest.mark.some(5)
@pytest.mark.parametrize(("bits", "hashes", "reports"), [(2, 1, 1), (2, 1, 5), (3, 1, 3), (4, 2, 1), (4, 2, 2)])
@pytest.mark.parametrize(("f", "p", "q"), [("0.5", "0.25", "0.75"), ("0.3", "0.1", "0.6"), ("0.8", "0.5", "0.9")])
def test_curve_is_the_worst_over_all_outputs(bits: int, hashes: int, reports: int, f: str, p: str, q: str) -> None:
    loss = mpmath.log(exact(worst_ratio(bits, hashes, reports, law_of(f, p, q))))
    made = Rappor(bits=bits, hashes=hashes, cohorts=1, f=f, p=p, q=q)
    stated = exact(made.guarantee.curve[reports - 1])
    assert loss <= stated <= loss + mpf("1e-14")


@pytest.mark.slow
def test_filters_that_overlap_or_coincide_lose_less() -> None:
    law = law_of("0.5", "0.25", "0.75")
    assert worst_ratio(3, 2, 2, law) < worst_ratio(4, 2, 2, law)  # of three bits two filters of two share one


@pytest.mark.parametrize(("params", "value"), golden("rappor_eps_t"))
def test_golden_curves_match(params: dict[str, Any], value: str) -> None:
    target = {name: params[name] for name in "fpq"}
    made = Rappor(bits=8, hashes=params["h"], cohorts=2, **target)
    points, cap = made.guarantee.curve, made.guarantee.cap
    stated = points[params["t"] - 1] if params["t"] <= len(points) else cap
    assert 0 <= exact(stated) - mpf(value) <= mpf("1e-9")
    if params["t"] <= len(points):
        assert exact(stated) - mpf(value) <= mpf("1e-14")


@pytest.mark.parametrize(("params", "value"), golden("rappor_eps_inf"))
def test_golden_caps_match(params: dict[str, Any], value: str) -> None:
    made = Rappor(bits=8, hashes=params["h"], cohorts=2, f=params["f"], p="0.2", q="0.9")
    assert 0 <= exact(made.guarantee.cap) - mpf(value) <= mpf("1e-14")


def test_printed_epsilon_of_2_is_of_one_report_only() -> None:
    made = Rappor(**PRINTED)
    described = made.guarantee.describe()
    assert described["epsilon"] == pytest.approx(2.0433, abs=1e-4)
    assert described["lifetime_epsilon"] == pytest.approx(4.3944, abs=1e-4)
    assert [round(float(loss), 4) for loss in made.guarantee.curve[:5]] == [2.0433, 3.3892, 4.0221, 4.2654, 4.3509]
    assert "One report loses 2.0433, two of the same value 3.38919, any number 4.39445 at most" in made.notes[0]


# -- rounding --------------------------------------------------------------------------------------------------------

probabilities = st.decimals("0.001", "0.999", allow_nan=False, places=9)


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples * 2 // 5)
@given(f=probabilities, p=probabilities, q=probabilities, hashes=st.integers(1, 6))
def test_loss_of_the_drawn_reports_is_at_most_the_stated_after_any_number(
    f: Decimal, p: Decimal, q: Decimal, hashes: int
) -> None:
    if p >= q:
        p, q = q - Decimal("0.0005"), p
    made = Rappor(bits=8, hashes=hashes, cohorts=1, f=f, p=max(p, Decimal(0)), q=q)
    flip, zero, one = (exact(Fraction(part, ONE)) for part in made.thresholds)
    for t in (1, 2, 3, 10, len(made.guarantee.curve)):
        stated = made.guarantee.curve[t - 1] if t <= len(made.guarantee.curve) else made.guarantee.cap
        drawn = printed_loss(t, hashes, 2 * flip, zero, one)
        assert drawn <= printed_loss(t, hashes, exact(f), exact(made.p), exact(q)) <= exact(made.guarantee.cap)
        assert drawn <= exact(stated)


@pytest.mark.parametrize("hashes", [1, 2, 5])
@pytest.mark.parametrize(
    ("epsilon", "lifetime"),
    [("1", "2"), ("2", "4.5"), ("0.1", "0.2"), ("1e-9", "3"), ("0.5", "0.5000000001"), ("8", "9"), ("30", "60")],
)
def test_calibration_meets_both_targets_tightly(epsilon: str, lifetime: str, hashes: int) -> None:
    made = Rappor.calibrate(bits=16, hashes=hashes, cohorts=2, epsilon=epsilon, epsilon_lifetime=lifetime)
    flip, zero, one = (exact(Fraction(part, ONE)) for part in made.thresholds)
    assert one == 1 - zero
    first = printed_loss(1, hashes, 2 * flip, zero, one)
    last = 2 * hashes * mpmath.log((1 - flip) / flip)
    # One unit of 2**-64 more or less is all that is lost to rounding; both thresholds may be one off, and rounded.
    slack = 8 * hashes * mpf(2) ** -64
    assert first <= mpf(epsilon) <= first + slack * (1 / flip + 1 / max(zero, mpf(2) ** -64)) / 4
    assert last <= mpf(lifetime) <= last + slack / flip
    assert made.guarantee.curve[0] == Decimal(epsilon)
    assert made.guarantee.cap == Decimal(lifetime)
    for t in (2, 3, 7):
        if t <= len(made.guarantee.curve):
            assert printed_loss(t, hashes, 2 * flip, zero, one) <= exact(made.guarantee.curve[t - 1])


@pytest.mark.slow
def test_charges_of_repeated_reports_follow_the_curve_to_the_cap() -> None:
    made = Rappor(**{**PRINTED, "p": "0.45", "q": "0.55"})
    points, cap = made.guarantee.curve, made.guarantee.cap
    assert list(points) == sorted(points)
    assert points[-1] <= cap <= points[-1] + Decimal("1e-9")
    slow = Rappor(**{**PRINTED, "p": "0.49", "q": "0.51"})
    assert len(slow.guarantee.curve) == 400
    assert slow.guarantee.cap - slow.guarantee.curve[-1] > Decimal("1e-9")
    assert "The curve is listed up to 400 reports" in slow.notes[-1]
    assert not any("listed" in note for note in made.notes)


# -- for which neighbours it holds -----------------------------------------------------------------------------------


def worst_series_ratio(ours: str, theirs: str, bits: int, law: tuple[Fraction, ...]) -> Fraction:
    """The largest ratio of likelihoods of two series of values, a letter for each report, over all outputs.

    Letter i sets bit i alone, and keeps its own permanent bits. Bits are independent, so each has its worst output.
    """
    worst = Fraction(1)
    for place in range(bits):
        outputs = itertools.product((0, 1), repeat=len(ours))
        worst *= max(one_bit(ours, place, shown, law) / one_bit(theirs, place, shown, law) for shown in outputs)
    return worst


def one_bit(series: str, place: int, shown: Bits, law: tuple[Fraction, ...]) -> Fraction:
    """The probability that bit `place` of the reports is `shown`."""
    total = Fraction(1)
    for letter in set(series):
        own = tuple((bit,) for value, bit in zip(series, shown, strict=True) if value == letter)
        total *= likelihood((int("abcd".index(letter) == place),), own, law)
    return total


def test_values_that_repeat_at_the_same_places_cost_at_most_their_curves() -> None:
    points = Rappor(**{**PRINTED, "hashes": 1}).guarantee.curve
    loss = mpmath.log(exact(worst_series_ratio("aba", "cdc", 32, law_of("0.5", "0.25", "0.75"))))
    # And nothing less would do: both values can show their worst at once.
    assert loss <= exact(points[1] + points[0]) <= loss + mpf("1e-14")


@pytest.mark.parametrize(("ours", "theirs"), [("aa", "bc"), ("bc", "aa")])
def test_value_that_changes_is_distinguished_from_a_constant_beyond_the_curve(ours: str, theirs: str) -> None:
    made = Rappor(**{**PRINTED, "hashes": 1})
    loss = mpmath.log(exact(worst_series_ratio(ours, theirs, 32, law_of("0.5", "0.25", "0.75"))))
    assert loss > exact(2 * made.guarantee.curve[0])
    assert made.guarantee.relation == SAME_CHANGE_PATTERN


def test_secret_without_memoized_bits_changes_nothing() -> None:
    fresh = Rappor(**{**PRINTED, "p": "0", "q": "1"}, any_inputs=True)
    values, own = np.zeros(50, dtype=int), secrets(50)
    assert not np.array_equal(
        fresh.randomize(values, rng=1, secrets=own), fresh.randomize(values, rng=2, secrets=own)
    )


# -- the client under attack -----------------------------------------------------------------------------------------

CAPPED = {"bits": 8, "hashes": 1, "cohorts": 1, "f": "0.75", "p": "0.25", "q": "0.75"}
REPORTS, USERS = 200, 600


def attack(mechanism: Any, client: Any) -> tuple[float, float]:
    """Return how often the likeliest value of 200 reports is `first`, if it is `first`, and if it is `second`.

    The attacker weighs each bit by its exact likelihood under memoised bits, and says `first` only if both bits do.
    """
    first, second = distinct_values(mechanism)
    rates = []
    for value in (first, second):
        shown = sum(bits_of(mechanism, client(np.full(USERS, value), turn)).astype(int) for turn in range(REPORTS))
        ratio = log_ratio(mechanism, shown, first, second)
        largest = log_ratio(mechanism, np.where(filter_of(mechanism, first), REPORTS, 0)[None], first, second)
        rates.append(float((ratio > 0.99 * largest).mean()))
    return rates[0], rates[1]


def log_ratio(mechanism: Any, shown: Any, first: int, second: int) -> Any:
    """The log-likelihood ratio of `first` against `second`, from how many ones each bit showed."""
    b, p, q = float(mechanism.f) / 2, float(mechanism.p), float(mechanism.q)
    evidence = shown * math.log(q / p) + (REPORTS - shown) * math.log((1 - q) / (1 - p))  # for a permanent 1
    bit = np.logaddexp(math.log(1 - b) + evidence, math.log(b)) - np.logaddexp(
        math.log(b) + evidence, math.log(1 - b)
    )
    return bit @ (filter_of(mechanism, first).astype(int) - filter_of(mechanism, second).astype(int))


def filter_of(mechanism: Any, value: int) -> Any:
    """The Bloom filter of a value in cohort 0, as reports with almost no noise show it."""
    clear = mechanism.replace(f="1e-18", p="0", q="1")
    return bits_of(clear, drawn(clear, [value], 1))[0]


def distinct_values(mechanism: Any) -> tuple[int, int]:
    """Two values that share no bit."""
    first = filter_of(mechanism, 0)
    return 0, next(value for value in range(1, 99) if not (first & filter_of(mechanism, value)).any())


def loss_shown(rates: tuple[float, float]) -> tuple[float, float]:
    """An interval for ln of the ratio of the rates (Wilson's intervals at 4.5 standard errors)."""
    (high_low, high_high), (low_low, low_high) = map(wilson, rates)
    return math.log(high_low / low_high), math.log(high_high / max(low_low, 1e-9))


def wilson(rate: float) -> tuple[float, float]:
    square = 4.5**2 / USERS
    margin = math.sqrt(square * rate * (1 - rate) + square**2 / 4)
    return (rate + square / 2 - margin) / (1 + square), (rate + square / 2 + margin) / (1 + square)


@pytest.mark.exhaustive
def test_attack_on_200_memoized_reports_succeeds_at_most_as_the_cap_allows() -> None:
    made = Rappor(**CAPPED)
    own = secrets(USERS)
    low, high = loss_shown(attack(made, lambda values, turn: made.randomize(values, rng=turn, secrets=own)))
    cap = float(made.guarantee.cap)
    assert cap == pytest.approx(2 * math.log(0.625 / 0.375))
    assert low <= cap <= high
    assert high - low < 2  # narrow enough to say something


@pytest.mark.slow
def test_attack_on_a_client_without_memoization_succeeds() -> None:
    """Such a client has a new secret for each report. With one label, all its reports together are charged the cap."""
    made = Rappor(**CAPPED)
    low, _ = loss_shown(attack(made, lambda values, turn: drawn(made, values, turn)))
    assert low > 2 * float(made.guarantee.cap)


def test_randomize_without_secrets_is_refused_unless_nothing_is_memoized() -> None:
    with pytest.raises(InvalidParameter, match="secrets is missing"):
        Rappor(**PRINTED).randomize([1, 2])
    assert len(Rappor(**PRINTED, any_inputs=True).randomize([1, 2])) == 2


def test_client_that_only_sets_bits_is_not_private() -> None:
    # Where a permanent bit of the filter stays 1 for certain, its 0 in the long run rules the value out.
    rise, stay, p, q = law_of("0.5", "0.25", "0.75")
    curve = Rappor(**{**PRINTED, "hashes": 1}).guarantee.curve
    only_sets = (rise, Fraction(1), p, q)
    assert mpmath.log(exact(worst_ratio(2, 1, 1, (rise, stay, p, q)))) <= exact(curve[0])
    assert mpmath.log(exact(worst_ratio(2, 1, 1, only_sets))) > exact(curve[0])
    long = (((0, 1),) * 200), (1, 0), (0, 1)
    ratio = likelihood(long[2], long[0], only_sets) / likelihood(long[1], long[0], only_sets)
    assert mpmath.log(exact(ratio)) > 200


# -- memoised bits ---------------------------------------------------------------------------------------------------


@pytest.fixture
def permanent() -> Any:
    """Reports that are the permanent bits themselves."""
    return Rappor(**{**PRINTED, "p": "0", "q": "1"})


def test_permanent_bits_are_drawn_again_from_the_same_secret(permanent: Any) -> None:
    values, own = np.arange(100) % 7, secrets(100)
    first = permanent.randomize(values, secrets=own)
    assert np.array_equal(first, permanent.randomize(values, secrets=own))
    turned = permanent.randomize(values[::-1], secrets=own[::-1])
    assert np.array_equal(first, turned[::-1])
    assert np.array_equal(permanent.randomize([3, 3], secrets=own[0])[0], permanent.randomize([3], secrets=own[0])[0])


def test_permanent_bits_of_other_secrets_values_and_mechanisms_are_others(permanent: Any) -> None:
    value, secret = np.array([3]), secrets(2)
    bits = bits_of(permanent, permanent.randomize(value, secrets=secret[0]))
    others = [
        permanent.randomize(value, secrets=secret[1]),
        permanent.randomize(value + 1, secrets=secret[0]),
        permanent.replace(seed=1).randomize(value, secrets=secret[0]),
    ]
    assert all(not np.array_equal(bits, bits_of(permanent, other)) for other in others)


@pytest.mark.slow
def test_permanent_bits_of_two_values_are_independent(permanent: Any) -> None:
    clear = permanent.replace(f="1e-18")
    own = secrets(2000)
    flips = []
    for value in (0, 1):
        values = np.full(2000, value)
        flips.append(
            bits_of(permanent, permanent.randomize(values, secrets=own))
            ^ filters_in(clear, values, cohorts_of(permanent.randomize(values, secrets=own)))
        )
    # Each is turned over with probability 1/4, and both with 1/16.
    both = (flips[0] & flips[1]).mean()
    assert abs(both - 1 / 16) < 4.5 * math.sqrt(1 / 16 * 15 / 16 / 64_000)


def filters_in(mechanism: Any, values: Any, cohorts: Any) -> Any:
    """The Bloom filters of values in given cohorts, shape (n, k)."""
    listed = np.unique(values)
    filters = mechanism._family.of_candidates(listed)
    return filters[cohorts, :, np.searchsorted(listed, values)].astype(np.uint8)


def test_cohort_of_a_user_does_not_depend_on_the_value(permanent: Any) -> None:
    own = secrets(3000)
    first, second = (cohorts_of(permanent.randomize(np.full(3000, value), secrets=own)) for value in (0, 5))
    assert np.array_equal(first, second)
    assert np.bincount(first, minlength=64).min() > 10
    assert first.max() == 63


@pytest.mark.slow
@pytest.mark.parametrize("memoised", [True, False], ids=["memoised", "fresh"])
def test_bits_are_drawn_with_the_stated_probabilities(memoised: bool) -> None:
    made = Rappor(**{**PRINTED, "f": "0.3", "p": "0.1", "q": "0.6"}, any_inputs=not memoised)
    n = 20_000
    values = np.arange(n) % 5
    reports = made.randomize(values, rng=5, secrets=secrets(n) if memoised else None)
    filters = filters_in(made, values, cohorts_of(reports)).astype(bool)
    for bits, chance in ((filters, 0.85 * 0.6 + 0.15 * 0.1), (~filters, 0.15 * 0.6 + 0.85 * 0.1)):
        shown = bits_of(made, reports)[bits]
        assert abs(shown.mean() - chance) < 4.5 * math.sqrt(chance * (1 - chance) / shown.size)


def test_reports_hold_the_cohort_and_packed_bits() -> None:
    made = Rappor(bits=12, hashes=2, cohorts=300, f="1e-18", p="0", q="1")
    reports = drawn(made, [5, 5, 5], 1)
    assert reports.dtype == np.uint8
    assert reports.shape == (3, 4)
    for report in reports:
        cohort = int(report[0]) + 256 * int(report[1])
        digest = hashlib.shake_128(f"ldp-budget bloom 1:0:{cohort}:5".encode()).digest(16)
        positions = {int.from_bytes(digest[start : start + 8], "little") % 12 for start in (0, 8)}
        assert {place for place in range(12) if report[2 + place // 8] >> place % 8 & 1} == positions
    assert drawn(made, [], 1).shape == (0, 4)


def test_hash_seed_belongs_to_the_mechanism() -> None:
    one, other = Rappor(**PRINTED, domain_size=9), Rappor(**PRINTED, domain_size=9, seed=1)
    assert one.fingerprint != other.fingerprint
    assert not np.array_equal(*(each._family.of_candidates(np.arange(9)) for each in (one, other)))


# -- the server ------------------------------------------------------------------------------------------------------


def skewed(n: int, answers: int, seed: int) -> Any:
    """Answers of which each is about half as frequent as the one before."""
    return np.minimum(np.random.default_rng(seed).geometric(0.5, n) - 1, answers - 1)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("any_inputs", [False, True], ids=["memoised", "fresh"])
def test_estimates_are_unbiased(any_inputs: bool) -> None:
    made = Rappor(**PRINTED, domain_size=20, any_inputs=any_inputs)
    n = 200_000 if any_inputs else 50_000
    values = skewed(n, 20, 3)
    estimate = made.estimate(made.randomize(values, rng=11, secrets=None if any_inputs else secrets(n)))
    errors = (estimate.counts - np.bincount(values, minlength=20)) / estimate.std_errors
    assert np.abs(errors).max() < 4.5
    assert 0.6 < math.sqrt((errors**2).mean()) < 1.5
    assert estimate.shares.sum() == pytest.approx(1, abs=0.1)


@pytest.fixture(scope="module")
def repeats() -> tuple[Any, Any, Any]:
    """2,000 repeats of a survey of 400 users: the true counts, the estimates and their standard errors."""
    made = Rappor(bits=8, hashes=2, cohorts=4, f="0.2", p="0.2", q="0.7", domain_size=6)
    values = skewed(400, 6, 1)
    reports = drawn(made, np.tile(values, 2000), 13).reshape(2000, 400, -1)
    estimates = [made.estimate(each) for each in reports]
    truth = np.bincount(values, minlength=6)
    return truth, np.array([each.counts for each in estimates]), np.array([each.std_errors for each in estimates])


@pytest.mark.exhaustive
def test_intervals_have_their_nominal_coverage(repeats: tuple[Any, Any, Any]) -> None:
    truth, counts, errors = repeats
    covered = np.abs(counts - truth) < 1.959964 * errors
    assert np.abs(covered.mean(axis=0) - 0.95).max() < 0.02


@pytest.mark.exhaustive
def test_stated_variance_is_the_true_one(repeats: tuple[Any, Any, Any]) -> None:
    truth, counts, errors = repeats
    ratios = ((counts - truth) ** 2).mean(axis=0) / (errors**2).mean(axis=0)
    assert ratios.mean() == pytest.approx(1, abs=0.03)
    assert np.abs(counts.mean(axis=0) - truth).max() < 4.5 * errors.max() / math.sqrt(2000)


@pytest.mark.slow
def test_standard_error_includes_the_spread_of_users_over_cohorts() -> None:
    # Almost no noise is left, and yet the estimates are off, because cohorts are samples of the users.
    made = Rappor(bits=8, hashes=2, cohorts=4, f="1e-18", p="0", q="1", domain_size=6)
    values = skewed(400, 6, 1)
    estimates = [made.estimate(drawn(made, values, seed)) for seed in range(400)]
    off = np.array([each.counts - np.bincount(values, minlength=6) for each in estimates])
    errors = np.array([each.std_errors for each in estimates])
    assert errors.max() > 1
    assert (off**2).mean() / (errors**2).mean() == pytest.approx(1, abs=0.1)


def test_predicted_variance_is_that_of_an_answer_without_users() -> None:
    made = Rappor(**PRINTED, domain_size=6)
    utility = made.utility(users=1000)
    assert utility["bit_variance_per_user"] == pytest.approx(0.375 * 0.625 / 0.25**2)
    assert utility["std_error"] == pytest.approx(math.sqrt(utility["variance_per_user"] / 1000))
    values = np.arange(30_000) % 5  # no user gives 5
    estimate = made.estimate(drawn(made, values, 1))
    assert estimate.std_errors[5] <= 1.02 * math.sqrt(30_000 * utility["variance_per_user"])
    # At its best the answer's h bits are its own: (1/h) bit variances, and more where bits are shared.
    assert 3.75 / 2 < utility["variance_per_user"] < 3.75


def test_aggregate_counts_the_bits_of_every_cohort() -> None:
    made = Rappor(**PRINTED, domain_size=20)
    reports = drawn(made, skewed(3001, 20, 4), 2)
    whole = made.aggregate(reports)
    counted = np.zeros((64, 32), dtype=int)
    np.add.at(counted, cohorts_of(reports), bits_of(made, reports).astype(int))
    assert np.array_equal(whole.support, counted)
    with pytest.raises(NotSupported, match="aggregates of different mechanisms cannot be merged"):
        whole.merge(made.replace(seed=5).aggregate(reports))


# -- the lasso -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collected() -> tuple[Any, Any]:
    made = Rappor(**PRINTED)
    values = 10 * skewed(100_000, 5, 6)
    return made, made.aggregate(drawn(made, values, 3))


@pytest.mark.exhaustive
def test_lasso_finds_the_frequent_candidates_among_many(collected: tuple[Any, Any]) -> None:
    pytest.importorskip("sklearn", reason="no sklearn: pip install 'ldp-budget[interop]'")
    made, total = collected
    estimate = made.estimate(total, range(1000), method="lasso")
    assert np.flatnonzero(estimate.selected).tolist() == [0, 10, 20, 30, 40]
    truth = np.bincount(10 * skewed(100_000, 5, 6), minlength=1000)
    errors = (estimate.counts - truth)[estimate.selected] / estimate.std_errors[estimate.selected]
    assert np.abs(errors).max() < 4.5
    assert (estimate.counts[~estimate.selected] == 0).all()
    assert (estimate.std_errors > 0).all()


@pytest.mark.slow
def test_candidates_that_no_cohort_distinguishes_are_refused() -> None:
    pytest.importorskip("sklearn", reason="no sklearn: pip install 'ldp-budget[interop]'")
    narrow = Rappor(bits=2, hashes=1, cohorts=1, f="0.2", p="0.1", q="0.9")
    total = narrow.aggregate(drawn(narrow, np.zeros(5000, dtype=int), 1))
    with pytest.raises(NotSupported, match="cannot be distinguished"):
        narrow.estimate(total, range(12), method="lasso")


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "lifetime", "message"),
    [
        ("2", "2", "epsilon must be less than epsilon_lifetime, 2: got 2"),
        ("1e-20", "2", "epsilon must be a value whose reports differ from random bits.*got 1E-20"),
        ("1e-21", "1e-20", "epsilon must be a value whose reports differ from random bits.*got 1E-21"),
        ("0", "2", "epsilon must be a number > 0"),
    ],
)
def test_losses_that_cannot_be_met_are_refused(epsilon: str, lifetime: str, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Rappor.calibrate(bits=8, hashes=2, cohorts=2, epsilon=epsilon, epsilon_lifetime=lifetime)
