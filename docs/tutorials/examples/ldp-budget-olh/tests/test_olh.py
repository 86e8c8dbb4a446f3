"""Optimal local hashing: its hash family by enumeration, its promise exactly, its estimates by simulation."""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from ldp_budget_olh import OptimalLocalHashing, hashing

import ldp_budget
from ldp_budget import verify
from ldp_budget.guarantees import SymmetricPair
from ldp_budget.sampling import Stream, open_stream
from ldp_budget.testing import MechanismContract
from ldp_budget_verify.exact.dominance import check

STANDARD_ERRORS = 4.5


def olh(**declared: Any) -> OptimalLocalHashing:
    return OptimalLocalHashing.calibrate(**{"epsilon": 1, "domain_size": 7, **declared})


class TestContract(MechanismContract):
    mechanism = OptimalLocalHashing
    targets = (*OptimalLocalHashing.examples, {"epsilon": 4, "domain_size": 100})


# -- the hash family ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("prime", "hash_range"), [(7, 2), (7, 3), (11, 4), (13, 5), (13, 13), (5, 1)])
def test_any_two_answers_collide_equally_often_by_enumeration(
    prime: int, hash_range: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashing, "PRIME", prime)
    family = list(product(range(1, prime), range(prime)))
    for first, second in combinations(range(prime), 2):
        same = sum((a * first + b) % prime % hash_range == (a * second + b) % prime % hash_range for a, b in family)
        assert Fraction(same, len(family)) == hashing.collision_probability(hash_range)
    assert hashing.collision_probability(hash_range) <= Fraction(1, hash_range)


@pytest.mark.parametrize("hash_range", [2, 3, 4, 1000, 2**20])
def test_the_collision_probability_is_just_below_that_of_an_ideal_hash(hash_range: int) -> None:
    short = Fraction(1, hash_range) - hashing.collision_probability(hash_range)
    assert 0 < short < Fraction(1, hashing.PRIME)


def test_hashes_are_those_of_whole_number_arithmetic() -> None:
    largest = hashing.PRIME - 1
    functions = np.array([[1, 0], [largest, largest], [largest, 1], [1, largest], [123456789, 987654321]])
    for answer, g in product((0, 1, 2, largest - 1, largest), (2, 3, 2**20)):
        expected = [(a * answer + b) % hashing.PRIME % g for a, b in functions.tolist()]
        assert hashing.hashed(functions, np.array(answer), g).tolist() == expected


def test_functions_are_drawn_from_the_whole_family() -> None:
    functions = hashing.draw_functions(open_stream(1), 100_000)
    assert functions[:, 0].min() >= 1
    assert functions.max() < hashing.PRIME
    assert functions.min(axis=0).max() < hashing.PRIME / 1000
    assert functions.max(axis=0).min() > hashing.PRIME * 0.999


def test_the_least_that_can_be_drawn_is_the_least_member_of_the_family() -> None:
    class Zeros(Stream):
        def read(self, count: int) -> bytes:
            return bytes(count)

    assert hashing.draw_functions(Zeros(), 2).tolist() == [[1, 0], [1, 0]]


@pytest.mark.parametrize(("reports", "answers"), [(1, 40_000), (70_000, 3), (300, 300)])
def test_hits_are_counted_in_blocks(reports: int, answers: int) -> None:
    functions = hashing.draw_functions(open_stream(2), reports)
    cells = np.arange(reports) % 5
    hits = hashing.count_hits(functions, cells, answers, 5)
    for answer in (0, 1, answers - 1):
        assert hits[answer] == np.count_nonzero(hashing.hashed(functions, np.array(answer), 5) == cells)


# -- the promise ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "0.5", "1", "2", "4", "8"])
@pytest.mark.parametrize("hash_range", [None, 2, 3, 16, 1000])
def test_the_promise_holds_exactly(epsilon: str, hash_range: int | None) -> None:
    found = verify(olh(epsilon=epsilon, hash_range=hash_range))
    assert (found.verdict, found.problems) == ("holds", ())
    assert found.upper is not None
    assert found.upper <= float(epsilon)


def test_the_loss_is_not_given_away() -> None:
    found = verify(olh())
    assert found.lower == pytest.approx(1, abs=1e-15)
    assert found.estimator == "holds"


@pytest.mark.parametrize("hash_range", [2, 4, 16])
def test_the_printed_tau_is_of_an_ideal_hash_and_would_promise_too_much_here(hash_range: int) -> None:
    mechanism = olh(hash_range=hash_range)
    odds = math.e
    printed = (1 - 1 / hash_range) * (odds + 1) / (odds + hash_range - 1)
    promise = mechanism.guarantee
    assert isinstance(promise, SymmetricPair)
    assert 0 < float(promise.tau) - printed < 1e-9
    ideal = SymmetricPair(promise.bound, Decimal(printed))
    verdicts = {check(ideal, mechanism.compare(*pair)).verdict for pair in permutations(range(3), 2)}
    assert verdicts == {"violated"}


@pytest.mark.parametrize("epsilon", ["0.001", "0.7", "3", "20"])
@pytest.mark.parametrize("hash_range", [2, 3, 10, 1000])
def test_the_stated_tau_is_the_true_one_rounded_up(epsilon: str, hash_range: int) -> None:
    wide = Context(prec=80)
    odds = wide.exp(Decimal(epsilon))
    apart = 1 - hashing.collision_probability(hash_range)
    told = wide.divide(wide.add(odds, Decimal(1)), wide.add(odds, Decimal(hash_range - 1)))
    true = wide.divide(wide.multiply(told, Decimal(apart.numerator)), Decimal(apart.denominator))
    promise = olh(epsilon=epsilon, hash_range=hash_range).guarantee
    assert isinstance(promise, SymmetricPair)
    assert true <= promise.tau <= wide.add(true, Decimal("1e-38"))


@pytest.mark.parametrize("hash_range", [2, 4, 100])
def test_a_report_supports_an_answer_exactly_as_often_as_estimates_take_it_to(hash_range: int) -> None:
    mechanism = olh(hash_range=hash_range)
    masses = mechanism.compare(0, 1).masses()
    supports = [masses[outcome] for outcome in (0, 3)]  # its hash alone, and that of both where they collide
    assert [(sum(p for p, _ in supports), sum(q for _, q in supports))] == mechanism.support_probabilities


def test_fifty_reports_cost_a_third_less_than_pure_epsilon_would_say() -> None:
    total = ldp_budget.compose([(olh(epsilon="0.5").guarantee, 50)], delta="1e-6", rule="exact")
    pure = ldp_budget.compose([(SymmetricPair(Decimal("0.5"), Decimal(1)), 50)], delta="1e-6", rule="exact")
    assert total.epsilon < 0.7 * pure.epsilon


def test_outcomes_are_as_likely_as_compare_says() -> None:
    mechanism, n = olh(hash_range=3), 200_000
    masses = [float(p) for p, _ in mechanism.compare(2, 5).masses()]
    outcomes = mechanism.outcomes(mechanism.randomize(np.full(n, 2), rng=3), 2, 5)
    for seen, mass in zip(np.bincount(outcomes, minlength=5), masses, strict=True):
        assert abs(seen - n * mass) <= STANDARD_ERRORS * (n * mass * (1 - mass)) ** 0.5


# -- fields ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "g"), [("0.1", 2), ("1", 4), ("2", 8), ("3", 21), ("1000", 2**20)])
def test_the_hash_range_is_the_best_one_unless_it_is_declared(epsilon: str, g: int) -> None:
    assert olh(epsilon=epsilon).parameters["hash_range"] == g
    assert olh(epsilon=epsilon, hash_range=5).parameters["hash_range"] == 5


@pytest.mark.parametrize("epsilon", ["1", "2", "3"])
def test_no_other_hash_range_has_a_smaller_variance(epsilon: str) -> None:
    best = olh(epsilon=epsilon)
    g = best.parameters["hash_range"]
    for other in {max(2, g - 1), g + 1, 2 * g}:
        rival = olh(epsilon=epsilon, hash_range=other)
        # The best real number is e^ε + 1; the nearest whole one is at most one per cent away.
        assert rival.utility()["variance_per_user"] > 0.99 * best.utility()["variance_per_user"]


@pytest.mark.parametrize("domain_size", [2, 5, 9, 10, 11, 12, 50])
@pytest.mark.parametrize("hash_range", [None, 2, 30])
def test_a_note_says_when_no_hash_would_be_better(domain_size: int, hash_range: int | None) -> None:
    mechanism = olh(domain_size=domain_size, hash_range=hash_range)
    rival = ldp_budget.mechanism("grr")(epsilon=1, domain_size=domain_size)
    better = rival.utility()["variance_per_user"] < mechanism.utility()["variance_per_user"]
    assert any("grr" in note for note in mechanism.notes) == better


@pytest.mark.parametrize(
    "declared", [{"epsilon": 0}, {"domain_size": 1}, {"hash_range": 1}, {"domain_size": 2**31}, {"epsilon": "1e-19"}]
)
def test_what_cannot_be_drawn_is_refused(declared: dict[str, Any]) -> None:
    with pytest.raises(ldp_budget.InvalidParameter) as error:
        olh(**declared)
    assert error.value.option in declared


# -- client and server ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "hash_range"), [("0.5", None), ("2", None), ("1", 2), ("1", 50)])
def test_estimates_are_near_the_truth(epsilon: str, hash_range: int | None) -> None:
    mechanism = olh(epsilon=epsilon, hash_range=hash_range)
    truth = np.array([50_000, 20_000, 10_000, 8_000, 6_000, 6_000, 0])
    reports = mechanism.randomize(np.repeat(np.arange(7), truth), rng=11)
    estimate = mechanism.estimate(reports)
    assert (abs(estimate.counts - truth) <= STANDARD_ERRORS * estimate.std_errors).all()


def test_aggregates_of_blocks_merge_to_that_of_all() -> None:
    mechanism = olh()
    reports = mechanism.randomize(np.arange(1000) % 7, rng=5)
    total = mechanism.aggregate(reports[:300]).merge(mechanism.aggregate(reports[300:]))
    assert total.reports == 1000
    assert (mechanism.estimate(total).counts == mechanism.estimate(reports).counts).all()


def test_reports_are_twelve_bytes_and_reproducible_from_a_seed_only() -> None:
    mechanism = olh(domain_size=10**9)
    reports = mechanism.randomize([0, 10**9 - 1], rng=1)
    assert reports.dtype == np.uint32
    assert reports.shape == (2, 3)
    assert (mechanism.randomize([0, 10**9 - 1], rng=1) == reports).all()
    assert (mechanism.randomize([0, 10**9 - 1]) != reports).any()
    assert mechanism.randomize([]).shape == (0, 3)


@pytest.mark.parametrize("value", [-1, 7, 2.5, float("nan"), "3"])
def test_a_value_outside_the_domain_is_refused(value: Any) -> None:
    with pytest.raises(ldp_budget.OutsideDomain):
        olh().randomize(np.array([0, value], dtype=object))


@pytest.mark.parametrize(
    "reports",
    [
        np.zeros((3, 3), np.uint32),  # a = 0 is not in the family
        np.full((3, 3), 4, np.uint32),  # the hash has the values 0 to 3
        np.full((3, 3), 2**31 - 1, np.uint32),
        np.ones((3, 3), np.int64),
        np.ones((3, 2), np.uint32),
        np.ones(3, np.uint32),
    ],
)
def test_what_no_client_sends_is_refused(reports: Any) -> None:
    with pytest.raises(ldp_budget.NotSupported):
        olh().estimate(reports)
