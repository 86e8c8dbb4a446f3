"""dBitFlip: the loss by enumeration of all that a user can send, fresh and memoised; the estimates by simulation."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

import ldp_budget
from exact_numbers import exact, golden, secrets
from ldp_budget import Accountant, InvalidParameter, Limit
from ldp_budget.guarantees import ANY_INPUTS, SAME_CHANGE_PATTERN, FinitePair, Memoised, SymmetricPair, Unbounded
from ldp_budget.guarantees.dominating_pairs import dominating_pair
from ldp_budget.sampling import ONE, open_stream
from ldp_budget.sdk.interpreter import StreamDraws, run

DBitFlip: Any = ldp_budget.mechanism("d-bit-flip")

SHAPES = [(2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 2), (4, 3), (5, 4)]
shapes = pytest.mark.parametrize(("buckets", "bits"), SHAPES)


def made(buckets: int, bits: int, epsilon: object = 1, **more: Any) -> Any:
    return DBitFlip.calibrate(epsilon=epsilon, buckets=buckets, bits=bits, **more)


def unpack(mechanism: Any, reports: Any) -> tuple[Any, Any]:
    """(buckets, bits) of the reports, both (n, d)."""
    if mechanism.bits == mechanism.buckets:
        bits = np.unpackbits(reports, axis=1, count=mechanism.bits, bitorder="little")
        return np.broadcast_to(np.arange(mechanism.bits), bits.shape), bits
    return reports >> 1, reports & 1


# -- one fresh report -----------------------------------------------------------------------------------------


def bits_law(mechanism: Any, drawn: tuple[int, ...], answer: int) -> list[Fraction]:
    """The probability of every row of bits for the drawn buckets, as it is drawn."""
    lie = Fraction(mechanism.noise, ONE)
    rows = []
    for bits in itertools.product((0, 1), repeat=len(drawn)):
        lies = sum(bit != (bucket == answer) for bit, bucket in zip(bits, drawn, strict=True))
        rows.append(lie**lies * (1 - lie) ** (len(drawn) - lies))
    return rows


def law(mechanism: Any, answer: int) -> list[Fraction]:
    """The exact distribution of the report on `answer`."""
    sets = list(itertools.combinations(range(mechanism.buckets), mechanism.bits))
    return [mass / len(sets) for drawn in sets for mass in bits_law(mechanism, drawn, answer)]


@shapes
@pytest.mark.parametrize("epsilon", ["0.05", "1", "4.5"])
def test_loss_of_every_report_and_pair_of_answers_is_within_the_guarantee(
    buckets: int, bits: int, epsilon: str
) -> None:
    mechanism = made(buckets, bits, epsilon)
    laws = [law(mechanism, answer) for answer in range(buckets)]
    assert all(sum(law) == 1 for law in laws)
    pairs = itertools.permutations(laws, 2)
    worst = mpmath.log(exact(max(p / q for pair in pairs for p, q in zip(*pair, strict=True))))
    stated = exact(Decimal(epsilon)) / (2 if bits == 1 else 1)
    assert worst <= stated
    assert mpmath.almosteq(worst, stated, rel_eps=mpf("1e-15"))
    assert mechanism.guarantee.epsilon == pytest.approx(float(stated), rel=1e-15)
    assert mechanism.guarantee.relation == ANY_INPUTS


@pytest.mark.slow
@shapes
def test_guarantee_is_the_dominating_pair_of_the_drawn_reports(buckets: int, bits: int) -> None:
    """Nothing finer can be promised, and nothing finer is."""
    mechanism = made(buckets, bits)
    tightest = dominating_pair([law(mechanism, answer) for answer in range(buckets)])
    guarantee = mechanism.guarantee
    if 1 < bits < buckets:
        assert isinstance(guarantee, FinitePair)
        assert sorted(outcome for outcome in guarantee.outcomes if any(outcome)) == sorted(tightest.outcomes)
    else:
        assert isinstance(guarantee, SymmetricPair)
        telling = sum((p for p, q in tightest.outcomes if p != q), Fraction(0))
        assert telling <= Fraction(guarantee.tau) <= telling + Fraction(1, 10**30)


@pytest.mark.slow
@given(epsilon=st.decimals("1e-6", "80", places=6))
def test_loss_of_a_bit_is_at_most_half_of_epsilon(epsilon: Decimal) -> None:
    noise = made(3, 2, epsilon).noise
    odds = exact(Fraction(ONE - noise, noise))
    assert odds <= mpmath.exp(exact(epsilon) / 2)
    assert odds >= mpmath.exp(exact(epsilon) / 2) * (1 - 2 * mpf(odds + 1) / noise)


def test_parameters_are_those_of_document_002() -> None:
    parameters = made(10, 4, 3).parameters
    half = math.exp(1.5)
    assert parameters == {
        "buckets": 10,
        "bits": 4,
        "p": pytest.approx(half / (half + 1), rel=1e-15),
        "q": pytest.approx(1 / (half + 1), rel=1e-15),
    }


# -- reports --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("users", [15_000, pytest.param(60_000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("memoize", [False, True])
def test_bucket_sets_are_uniform_and_independent_of_the_answer(memoize: bool, users: int) -> None:
    mechanism = made(5, 3, memoize=memoize)
    own = secrets(users) if memoize else None
    for answer in (0, 4):
        drawn, _ = unpack(mechanism, mechanism.randomize(np.full(users, answer), rng=answer, secrets=own))
        _, counts = np.unique(np.sort(drawn, axis=1), axis=0, return_counts=True)
        assert len(counts) == 10
        assert np.abs(counts - users / 10).max() < 4.5 * (users * 0.1 * 0.9) ** 0.5


# -- estimates ------------------------------------------------------------------------------------------------

ANSWERS = np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, 2])  # no user holds 3 and 4
SIMULATED = [made(5, 5), made(5, 4), made(5, 1), made(5, 2, 3)]


def survey_counts(mechanism: Any, reports: Any, surveys: int) -> Any:
    """The formula of Jeong, Hong and Seo 2020 for each of many surveys of the same size, shape (surveys, k)."""
    drawn, ones = unpack(mechanism, reports)
    p, q = mechanism.parameters["p"], mechanism.parameters["q"]
    told = np.zeros((len(reports), mechanism.buckets))
    np.put_along_axis(told, drawn.astype(np.intp), (ones - q) / (p - q), axis=1)
    return mechanism.buckets / mechanism.bits * told.reshape(surveys, -1, mechanism.buckets).sum(axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", SIMULATED, ids=repr)
def test_estimates_are_unbiased_with_the_stated_variance(mechanism: Any) -> None:
    """Twenty thousand surveys of ten users each."""
    surveys = 20_000
    truth = np.bincount(ANSWERS, minlength=5)
    reports = mechanism.randomize(np.tile(ANSWERS, surveys), rng=20_261_121)
    whole = mechanism.estimate(reports)
    assert (np.abs(whole.counts - surveys * truth) <= 4.5 * whole.std_errors).all()

    estimates = survey_counts(mechanism, reports, surveys)
    for survey in range(3):  # these are the estimates of the mechanism itself
        assert mechanism.estimate(reports[10 * survey : 10 * survey + 10]).counts == pytest.approx(estimates[survey])
    half, stretch = mpmath.exp(exact(mechanism.epsilon) / 2), mpf(mechanism.buckets) / mechanism.bits
    stated = [float(10 * stretch * half / (half - 1) ** 2 + count * (stretch - 1)) for count in truth.tolist()]
    assert estimates.var(axis=0) == pytest.approx(stated, rel=0.03)
    assert whole.std_errors == pytest.approx((surveys * np.array(stated)) ** 0.5, rel=0.01)


def test_many_bits_of_a_wide_range_are_those_of_the_interpreter() -> None:
    mechanism = made(2**21, 300)  # too wide for a table of the buckets that were drawn, too many to compare in pairs
    values, stream = [3, 2**21 - 1, 3], open_stream(7)
    turns = [run(mechanism.client_program(), value, StreamDraws(stream)) for value in values]
    drawn = mechanism.randomize(values[:1], rng=7)
    assert drawn.tobytes() == turns[0]
    buckets, _ = unpack(mechanism, mechanism.randomize(values, rng=8))
    assert [len(set(row)) for row in buckets.tolist()] == [300] * 3


def test_interval_contains_an_estimate_that_most_covering_reports_contradict() -> None:
    mechanism = made(4000, 1)
    reports = np.array([[7 << 1 | 1], [7 << 1], [7 << 1], [8 << 1], [9 << 1]], dtype=mechanism.randomize([0]).dtype)
    found = mechanism.estimate(reports)
    low, high = found.interval()
    assert found.counts[7] < 0  # one of three reports of the bucket, though no report was likely to be of it
    assert low[7] == 0 < high[7]


@pytest.mark.exhaustive
@pytest.mark.parametrize("mechanism", [made(4, 3), made(4, 4, 2)], ids=repr)
def test_intervals_have_their_nominal_coverage(mechanism: Any) -> None:
    users, surveys = 200, 2000
    answers = np.repeat([0, 0, 1, 2], users // 4)
    truth = np.bincount(answers, minlength=4)
    covered = np.zeros(4)
    for survey in mechanism.randomize(np.tile(answers, surveys), rng=5).reshape(surveys, users, -1):
        low, high = mechanism.estimate(survey).interval(0.95)
        covered += (low <= truth) & (truth <= high)
    assert np.abs(covered / surveys - 0.95).max() <= 0.02


def test_estimate_is_that_of_document_002() -> None:
    """share of v = k/(nd) Σ (b(e^{ε/2}+1) - 1)/(e^{ε/2} - 1) over the users who drew v."""
    mechanism, half = made(4, 2), math.exp(0.5)
    rows = [{0: 1, 3: 0}, {0: 0, 1: 1}, {3: 1, 0: 1}]
    reports = np.array([[2 * bucket + bit for bucket, bit in row.items()] for row in rows], dtype=np.uint8)
    terms = [[row[v] for row in rows if v in row] for v in range(4)]
    shares = [4 / (3 * 2) * sum((bit * (half + 1) - 1) / (half - 1) for bit in bits) for bits in terms]
    assert mechanism.estimate(reports).shares == pytest.approx(shares)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("users", "printed_best"), [(1000, "4BitFlip"), (5000, "5BitFlip")])
def test_table_2_cells_of_4bitflip_are_of_an_estimator_without_its_factor(users: int, printed_best: str) -> None:
    """At ε = 0.5; the factor left out is 5/4. With it, five bits are always better."""
    repeats, truth = 300, users // 5
    errors = {}
    for name, mechanism, factor in (
        ("5BitFlip", made(5, 5, "0.5"), 1),
        ("4BitFlip", made(5, 4, "0.5"), 0.8),
        ("corrected", made(5, 4, "0.5"), 1),
    ):
        reports = mechanism.randomize(np.tile(np.arange(5), truth * repeats), rng=9)
        counts = survey_counts(mechanism, reports, repeats)
        errors[name] = np.abs(factor * counts - truth).max(axis=1).mean() / users
    assert min(("4BitFlip", "5BitFlip"), key=errors.__getitem__) == printed_best
    assert errors["corrected"] > 1.05 * errors["5BitFlip"]


# -- over time ------------------------------------------------------------------------------------------------


def stream_loss(mechanism: Any, ours: tuple[int, ...], theirs: tuple[int, ...]) -> mpf:
    """The largest loss of reports of the values `ours` against those of `theirs`, everything memoised.

    A change of value keeps the buckets and draws new bits; reports of one value repeat the same ones.
    """
    worst = mpf("-inf")
    for drawn in itertools.combinations(range(mechanism.buckets), mechanism.bits):
        p, q = (stream_law(mechanism, drawn, values) for values in (ours, theirs))
        if any(outcome not in q for outcome in p):
            return mpmath.inf
        worst = max(worst, *(mpmath.log(exact(mass / q[outcome])) for outcome, mass in p.items()))
    return worst


def stream_law(mechanism: Any, drawn: tuple[int, ...], values: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """The possible sequences of rows of bits, as numbers, and their probabilities."""
    distinct = list(dict.fromkeys(values))
    rows = [list(enumerate(bits_law(mechanism, drawn, value))) for value in distinct]
    result = {}
    for choice in itertools.product(*rows):
        sent = tuple(choice[distinct.index(value)][0] for value in values)
        result[sent] = math.prod(mass for _, mass in choice)
    return result


@pytest.mark.parametrize(("params", "value"), golden("dbitflip_memo_pure_caps"), ids=str)
def test_caps_are_the_reference_values(params: dict[str, Any], value: dict[str, str]) -> None:
    mechanism = made(params["k"], params["d"], params["eps"], memoize=True)
    guarantee = mechanism.guarantee
    assert guarantee.relation == SAME_CHANGE_PATTERN
    assert guarantee.epsilon == float(value["single_report_eps"])
    assert guarantee.describe()["lifetime_epsilon"] == float(value["same_change_pattern_cap"])
    # Any number of reports of one value costs what the first one did.
    assert guarantee.curve == (guarantee.cap,)
    assert value["unrestricted_streams"] == "inf"
    assert mechanism.replace(any_inputs=True).guarantee == Unbounded()


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("bits", [1, 2, 3])
def test_cap_for_the_same_change_pattern_is_reached_and_not_exceeded(bits: int) -> None:
    mechanism = made(3, bits, memoize=True)
    guarantee = mechanism.guarantee
    for length in (1, 2, 3):
        streams = list(itertools.permutations(range(3), length))
        worst = max(stream_loss(mechanism, *pair) for pair in itertools.permutations(streams, 2))
        stated = min(length * exact(guarantee.cap), guarantee.values * exact(guarantee.cap))
        assert worst <= stated
        assert worst == pytest.approx(float(min(length * guarantee.cap, bits)), rel=1e-15)


def test_repeated_value_adds_nothing_for_the_same_change_pattern() -> None:
    mechanism = made(3, 2, memoize=True)
    assert stream_loss(mechanism, (0, 0, 0), (1, 1, 1)) == stream_loss(mechanism, (0,), (1,))
    assert stream_loss(mechanism, (0, 1, 0), (1, 0, 1)) == stream_loss(mechanism, (0, 1), (1, 0))


def test_change_pattern_that_differs_is_distinguished_with_certainty() -> None:
    for bits in (1, 2, 3):
        mechanism = made(3, bits, memoize=True)
        assert stream_loss(mechanism, (0, 1), (0, 0)) == mpmath.inf
        assert stream_loss(mechanism, (0, 0), (0, 1)) < mpmath.inf  # what never changed may also have collided
    assert any("unbounded" in note for note in mechanism.notes)


def test_secret_repeats_the_same_report() -> None:
    mechanism, own = made(12, 4, memoize=True), secrets(500)
    answers = np.arange(500) % 12
    first = mechanism.randomize(answers, secrets=own)
    assert (mechanism.randomize(answers, rng=1, secrets=own) == first).all()
    # For every other user in the batch.
    assert (mechanism.randomize(answers[7:90], secrets=own[7:90]) == first[7:90]).all()
    assert (mechanism.randomize(answers, secrets=secrets(500, start=500)) != first).any()


def test_changed_value_keeps_the_buckets_and_draws_new_bits() -> None:
    mechanism, users = made(12, 4, memoize=True), 4000
    own = secrets(users)
    one, other = (unpack(mechanism, mechanism.randomize(np.full(users, answer), secrets=own)) for answer in (10, 11))
    assert (one[0] == other[0]).all()
    # Of buckets that are neither value, both bits lie with probability q, independently.
    neither = one[0] < 10
    p, q = mechanism.parameters["p"], mechanism.parameters["q"]
    agree = np.mean((one[1] == other[1])[neither])
    assert abs(agree - (p * p + q * q)) < 4.5 * (0.25 / neither.sum()) ** 0.5


@pytest.mark.parametrize("bits", [3, 4])
def test_memoized_bits_need_a_secret_of_every_user(bits: int) -> None:
    mechanism = made(4, bits, memoize=True)
    for found in (None, secrets(2), secrets(4), [b"short"] * 3, "a text of some length"):
        with pytest.raises(InvalidParameter, match=r"secrets (is missing: it )?must be bytes"):
            mechanism.randomize([1, 2, 3], secrets=found)
    assert mechanism.randomize([1, 2, 3], secrets=b"the secret of one user").shape[0] == 3


def test_ledger_charges_a_memoized_value_once_and_refuses_it_under_relation_any() -> None:
    mechanism = made(5, 3, memoize=True)
    assert isinstance(mechanism.guarantee, Memoised)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon=2)])
        accountant.set_policy("strict", [Limit("lifetime", epsilon=9)], relation="any")
        costs = [accountant.spend("alice", mechanism, label=label).cost_units.epsilon for label in "aabab"]
        assert costs == [10**9, 0, 10**9, 0, 0]
        assert not accountant.spend("alice", mechanism, label="c")
        assert not accountant.spend("bob", mechanism, policy="strict")
        assert accountant.spend("bob", mechanism.replace(memoize=False), policy="strict")
