"""Verification of guarantees: true ones hold at random parameters, and the smallest false one is found.

What is checked against what: `compare` of a mechanism against brute force over whole reports; `verify` against every
built-in mechanism, each also with its promise lowered by 1e-6; and mechanisms that break theirs.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

import ldp_budget
from ldp_budget import Mechanism, NotSupported
from ldp_budget.guarantees import (
    Approximate,
    Copies,
    FinitePair,
    Gaussian,
    Guarantee,
    Laplace,
    Memoised,
    OneSided,
    Pure,
    SymmetricPair,
    Unbounded,
    ZeroConcentrated,
)
from ldp_budget.guarantees.dominating_pairs import dominating_pair
from ldp_budget.registry.certification import in_proved_range
from ldp_budget.sdk.channels import Case, Comparison, Factor
from ldp_budget.sdk.estimates import CountEstimate
from ldp_budget_verify.exact import HOLDS, UNPROVEN, VIOLATED, verify
from ldp_budget_verify.exact.dominance import HockeySticks, check, hockey_stick, largest_rate, loss_at
from random_mechanisms import DRAWS, random_mechanisms

DEFICIT = Decimal("1e-6")


def promising(mechanism: Mechanism, promise: Guarantee) -> Mechanism:
    """The same mechanism with another promise."""
    false = type(
        "False" + type(mechanism).__name__, (type(mechanism),), {"guarantee": property(lambda self: promise)}
    )
    return false(**mechanism.declared)


def lowered(promise: Guarantee) -> Guarantee:
    """The promise with ε, or μ, less by 1e-6."""
    match promise:
        case Memoised():
            curve = tuple(point - DEFICIT for point in promise.curve)
            return dataclasses.replace(promise, curve=curve)
        case Copies():
            return dataclasses.replace(promise, of=lowered(promise.of))
        case Gaussian():
            return dataclasses.replace(promise, mu=promise.mu - DEFICIT)
        case OneSided():
            return dataclasses.replace(promise, eta=promise.eta - DEFICIT)
        case FinitePair():
            return Pure(promise.loss()[0] - DEFICIT)
        case Pure() | SymmetricPair() | Laplace():
            return dataclasses.replace(promise, bound=promise.bound - DEFICIT)
    raise AssertionError(promise)


# -- the built-in mechanisms ---------------------------------------------------------------------------------


# The estimators of these are proved to be unbiased, with the variance that they state.
PROVED = {"randomized-response", "sue", "oue", "random-substitution", "subset-selection", "pgr", "d-bit-flip"}


@pytest.mark.slow
@pytest.mark.some(48)
@pytest.mark.parametrize("count", [1, pytest.param(25, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", DRAWS)
def test_verify_of_every_built_in_holds_at_random_settings(name: str, count: int) -> None:
    proved = set()
    for mechanism in random_mechanisms(name, count):
        found = verify(mechanism)
        assert found.verdict == HOLDS or not in_proved_range(mechanism), (mechanism, found)
        assert found.verdict != VIOLATED, (mechanism, found)
        assert found.estimator in (HOLDS, UNPROVEN), (mechanism, found)
        assert found.method
        proved.add(found.estimator)
        if isinstance(mechanism.guarantee, OneSided):
            assert (found.lower, found.upper) == (None, None), "its ε is infinite"
            continue
        # What is found is never above a claim that holds, and next to nothing is left between the two ends.
        assert found.lower is not None
        assert found.upper is not None
        assert Decimal(repr(found.lower)) <= mechanism.guarantee.loss()[0], (mechanism, found)
        assert found.lower <= found.upper <= found.lower + 1e-6 + 1e-8 * found.upper
    assert name not in PROVED or HOLDS in proved


@pytest.mark.slow
@pytest.mark.some(48)
@pytest.mark.parametrize("count", [1, pytest.param(10, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("name", DRAWS)
def test_verify_of_a_guarantee_lowered_by_a_millionth_is_violated(name: str, count: int) -> None:
    for mechanism in random_mechanisms(name, count, seed=2):
        lie = promising(mechanism, lowered(mechanism.guarantee))
        assert verify(lie).verdict == VIOLATED, mechanism


@pytest.mark.parametrize("outcomes", [0, 1, 2, 5, 40])
def test_divergence_at_many_slopes_is_the_divergence_at_each(outcomes: int) -> None:
    chance = random.Random(outcomes)

    def share() -> Fraction:
        return Fraction(chance.choice([0, 1, chance.randrange(10**12)]), 10**12)

    masses = [(share(), share()) for _ in range(outcomes)]
    slopes = [
        Fraction(0),
        Fraction(1),
        *(p / q for p, q in masses if q),
        *(chance.randrange(99) * share() for _ in "ten"),
    ]
    curve = HockeySticks(masses)
    assert [curve.at(slope) for slope in slopes] == [hockey_stick(masses, slope) for slope in slopes]


@pytest.mark.parametrize("name", DRAWS)
def test_settings_include_every_built_in_mechanism(name: str) -> None:
    assert {cls.name for cls in ldp_budget.mechanisms()} >= set(DRAWS)
    assert ldp_budget.mechanism(name).name == name


@pytest.mark.slow
def test_verify_finds_the_loss_of_the_drawn_integers() -> None:
    oue = ldp_budget.mechanism("oue")(epsilon="0.7", domain_size=20)
    keep, noise = (Fraction(drawn, 2**64) for drawn in oue.thresholds)
    odds = keep * (1 - noise) / ((1 - keep) * noise)
    found = verify(oue)
    assert found.lower is not None
    with mpmath.workdps(40):
        true = mpmath.log(mpmath.mpf(odds.numerator) / odds.denominator)
        assert mpmath.mpf(str(found.lower)) <= true < mpmath.mpf("0.7")
    assert found.upper == 0.7
    assert found.upper - found.lower < 1e-15


@pytest.mark.parametrize("epsilon", ["2", "0.3"])
def test_verify_with_delta_finds_the_loss_at_that_delta(epsilon: str) -> None:
    """Randomized response at ε is (ε', δ) with δ = (e^ε - e^ε')/(e^ε+1), for any ε' below ε."""
    coin = ldp_budget.mechanism("randomized-response")(epsilon=epsilon)
    with mpmath.workdps(40):
        true, odds = mpmath.mpf(epsilon) / 2, mpmath.exp(mpmath.mpf(epsilon))
        delta = (odds - mpmath.exp(true)) / (odds + 1)
        found = verify(promising(coin, Approximate(epsilon, str(delta))))
        assert found.verdict == HOLDS
        assert found.lower is not None
        assert found.upper is not None
        assert mpmath.almosteq(found.lower, true, rel_eps=1e-14)
        assert found.lower <= found.upper < found.lower + 1e-14
    assert verify(promising(coin, Approximate(0, "0.9"))).upper == 0


@pytest.mark.slow
@given(weights_with_zeros := st.lists(st.integers(0, 9), min_size=5, max_size=5).filter(any), weights_with_zeros)
def test_loss_at_a_delta_is_the_point_where_the_divergence_equals_it(one: list[int], other: list[int]) -> None:
    rows = [[Fraction(weight, sum(row)) for weight in row] for row in (one, other)]
    comparison = Comparison.rows(*rows)
    masses, delta = comparison.masses(), Decimal("0.1")
    found = loss_at(delta, comparison)
    if found is None:
        assert hockey_stick(masses, Fraction(10**30)) > Fraction(delta)
        return
    with mpmath.workdps(130):
        low, high = (Fraction(str(mpmath.nstr(mpmath.exp(mpmath.mpf(str(end))), 125))) for end in found)
    assert hockey_stick(masses, high * (1 + Fraction(1, 10**99))) <= Fraction(delta)
    assert not found[0] or hockey_stick(masses, low * (1 - Fraction(1, 10**99))) > Fraction(delta)


def test_verify_of_a_too_small_tau_is_violated() -> None:
    grr = ldp_budget.mechanism("grr")(epsilon=1, domain_size=10)
    smaller = dataclasses.replace(grr.guarantee, tau=grr.guarantee.tau - DEFICIT)
    found = verify(promising(grr, smaller))
    assert found.verdict == VIOLATED
    assert "total variation" in found.problems[0]


@pytest.mark.slow
def test_verify_of_a_too_small_cap_is_violated() -> None:
    rappor = ldp_budget.mechanism("rappor")(bits=32, hashes=2, cohorts=8, f="0.5", p="0.25", q="0.75")
    promise = rappor.guarantee
    cut = Decimal("4.3")
    curve = tuple(min(point, cut) for point in promise.curve)
    assert verify(promising(rappor, Memoised(curve, cut, relation=promise.relation))).verdict == VIOLATED


def test_check_of_a_memoised_guarantee_holds_one_report_to_its_first_point() -> None:
    """The cap is of all reports: one report may not lose as much."""
    thirds = Comparison.rows((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    assert check(Memoised(("1.0987", "1.5"), 2), thirds).verdict == HOLDS
    assert check(Memoised(("1.0986", "1.5"), 2), thirds).verdict == VIOLATED


def test_verify_of_a_curve_of_one_report_is_violated() -> None:
    """The ε of one report promised for every number of them, as Jeong, Hong and Seo 2020 read."""
    rappor = ldp_budget.mechanism("rappor")(bits=32, hashes=2, cohorts=8, f="0.5", p="0.25", q="0.75")
    one = rappor.guarantee.curve[0]
    assert verify(promising(rappor, Memoised((one,), one, relation=rappor.guarantee.relation))).verdict == VIOLATED


@pytest.mark.exhaustive
def test_verify_of_any_answer_sent_in_clear_is_violated() -> None:
    """The channel says openly that one of ten answers is not randomized."""
    oue = ldp_budget.mechanism("oue")

    class AllButOne(oue):  # type: ignore[misc, valid-type]
        def compare(self, first: int, second: int) -> Comparison:
            if 3 in (first, second):
                return Comparison.rows([Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)])
            return super().compare(first, second)

    assert verify(AllButOne(epsilon=1, domain_size=10)).verdict == VIOLATED


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("wrong", range(1, 12))
def test_verify_of_a_curve_too_low_at_any_length_is_violated(wrong: int) -> None:
    rappor = ldp_budget.mechanism("rappor")(bits=32, hashes=2, cohorts=8, f="0.5", p="0.25", q="0.75")
    promise = rappor.guarantee
    curve = [*promise.curve]
    curve[wrong] = curve[wrong - 1]
    if curve[wrong] < promise.curve[wrong] - DEFICIT:
        assert verify(promising(rappor, dataclasses.replace(promise, curve=tuple(curve)))).verdict == VIOLATED


@pytest.mark.exhaustive
def test_verify_of_a_memoized_guarantee_for_any_inputs_is_unproven() -> None:
    flips = ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=5, bits=5, memoize=True)
    widened = dataclasses.replace(flips.guarantee, relation="any inputs")
    assert verify(promising(flips, widened)).verdict == UNPROVEN


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "parameters",
    [
        {"gamma": 5, "domain_size": 1000, "draws": 12},
        {"gamma": 5, "domain_size": 1000, "draws": 10_000},
        {"epsilon": 2, "domain_size": 4 * 10**6},
    ],
)
def test_verify_of_reports_too_large_to_list_holds(parameters: dict[str, Any]) -> None:
    assert verify(ldp_budget.mechanism("grr")(**parameters)).verdict == HOLDS


@pytest.mark.exhaustive
@pytest.mark.parametrize("size", [10, 20])
def test_verify_accepts_errors_that_depend_on_all_answers(size: int) -> None:
    """The matrix's errors follow the estimated shares of all answers, which a few reports estimate badly."""
    diagonal = [[30 if row == column else 1 for column in range(size)] for row in range(size)]
    columns = [[f"{weight}/{29 + size}" for weight in row] for row in diagonal]
    assert verify(ldp_budget.mechanism("matrix-substitution")(matrix=columns)).estimator != VIOLATED


@pytest.mark.slow
def test_verify_checks_the_estimate_of_every_answer_at_every_share() -> None:
    oue = ldp_budget.mechanism("oue")

    class BiasedLast(oue):  # type: ignore[misc, valid-type]
        def estimate(self, reports: Any) -> CountEstimate:
            found = super().estimate(reports)
            counts = found.counts.copy()
            counts[-1] += found.reports / 2
            return dataclasses.replace(found, counts=counts)

    class FlatErrors(oue):  # type: ignore[misc, valid-type]
        def estimate(self, reports: Any) -> CountEstimate:
            found = super().estimate(reports)
            law = self._law
            errors = np.sqrt(found.reports * (law.at_zero + law.slope / 2))
            return dataclasses.replace(found, std_errors=errors.repeat(4))

    assert verify(oue(epsilon=3, domain_size=4)).estimator == HOLDS
    assert verify(BiasedLast(epsilon=3, domain_size=4)).estimator == VIOLATED
    assert verify(FlatErrors(epsilon=3, domain_size=4)).estimator == VIOLATED


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_verify_of_a_variance_ten_percent_off_is_violated(factor: float) -> None:
    oue = ldp_budget.mechanism("oue")

    class Advertised(oue):  # type: ignore[misc, valid-type]
        def utility(self, users: int | None = None) -> dict[str, Any]:
            found = super().utility(users)
            return {**found, "variance_per_user": factor * found["variance_per_user"]}

    found = verify(Advertised(epsilon=1, domain_size=5))
    assert (found.verdict, found.estimator) == (HOLDS, VIOLATED)
    assert "utility states" in found.problems[0]


def test_verify_without_a_guarantee_holds_and_without_a_description_is_unproven() -> None:
    class Silent(Mechanism):
        name = "silent"
        guarantee = Pure(1)  # type: ignore[assignment]

    assert verify(Silent()).verdict == UNPROVEN
    assert verify(promising(Silent(), Unbounded())).verdict == HOLDS


# -- comparisons against whole reports, by brute force -------------------------------------------------------


def same_curve(one: list[tuple[Fraction, Fraction]], other: list[tuple[Fraction, Fraction]]) -> bool:
    """True if two pairs of distributions are equally hard to distinguish: one divergence at every kink of either."""
    kinks = {p / q for p, q in (*one, *other) if q}
    return all(hockey_stick(one, kink) == hockey_stick(other, kink) for kink in kinks)


few_weights = st.lists(st.integers(0, 3), min_size=2, max_size=3).filter(any)


@pytest.mark.slow
@given(st.lists(st.tuples(few_weights, few_weights), min_size=1, max_size=4), st.integers(1, 3))
def test_merging_equal_outcomes_keeps_the_divergence(rows: list[tuple[list[int], list[int]]], share: int) -> None:
    factors = []
    for one, other in rows:
        size = max(len(one), len(other))
        sides = [
            [Fraction(weight, sum(row)) for weight in row] + [Fraction(0)] * (size - len(row)) for row in (one, other)
        ]
        factors.append(Factor.of(*sides))
    cases = Case(Fraction(share, 4), tuple(factors)), Case(1 - Fraction(share, 4), tuple(factors[:1]))
    comparison = Comparison(cases)
    listed, merged = comparison.masses(), comparison.merged()
    assert len(merged) <= len(listed)
    assert [sum(side) for side in zip(*merged, strict=True)] == [1, 1]
    assert same_curve(listed, merged)


# -- dominance, by its definition ----------------------------------------------------------------------------

weights = st.lists(st.integers(1, 30), min_size=3, max_size=3)


@pytest.mark.slow
@given(weights, weights)
def test_dominating_pair_of_two_rows_holds_and_a_smaller_loss_does_not(one: list[int], other: list[int]) -> None:
    rows = [[Fraction(weight, sum(row)) for weight in row] for row in (one, other)]
    comparison = Comparison.rows(*rows)
    pair = dominating_pair(rows)
    assert check(pair, comparison).verdict == HOLDS
    assert check(pair, comparison.swapped()).verdict == HOLDS
    epsilon = pair.loss()[0]
    assert check(Pure(epsilon), comparison).verdict == HOLDS
    if epsilon > DEFICIT:
        verdicts = {check(Pure(epsilon - DEFICIT), each).verdict for each in (comparison, comparison.swapped())}
        assert VIOLATED in verdicts


@given(weights, weights, st.integers(1, 20))
def test_delta_is_checked_at_epsilon(one: list[int], other: list[int], tenths: int) -> None:
    rows = [[Fraction(weight, sum(row)) for weight in row] for row in (one, other)]
    epsilon = Decimal(tenths) / 10
    delta = sum(max(float(p) - math.exp(float(epsilon)) * float(q), 0) for p, q in zip(*rows, strict=True))
    comparison = Comparison.rows(*rows)
    assert check(Approximate(epsilon, min(1.0, delta + 1e-9)), comparison).verdict == HOLDS
    if delta > 1e-6:
        assert check(Approximate(epsilon, delta - 1e-9), comparison).verdict == VIOLATED


@pytest.mark.exhaustive
@settings(max_examples=settings.default.max_examples // 4)
@given(weights, weights)
@example([1, 1, 1], [1, 5, 5])
@example([11, 1, 8], [12, 1, 9])
def test_rho_is_the_largest_divergence_divided_by_its_order(one: list[int], other: list[int]) -> None:
    rows = [[Fraction(weight, sum(row)) for weight in row] for row in (one, other)]
    comparison = Comparison.rows(*rows)
    p, q = (np.log([float(x) for x in row]) for row in rows)
    first = float((np.exp(p) * (p - q)).sum())  # at order one; it is less where D_∞ over the order is
    most = max(float((p - q).max()) / first, 2.0) if first > 1e-9 else 50.0
    orders = np.exp(np.linspace(1e-6, math.log(most), 400))
    rates = [logsumexp(a * p + (1 - a) * q) / (a - 1) / a for a in orders]
    low, high = largest_rate(comparison.masses())
    assert float(high) >= max(rates) - 1e-9
    assert float(low) <= max(*rates, first) + 1e-3 * float(high) + 1e-9
    _, claimed = largest_rate(comparison.merged())  # as it is checked; taken together, outcomes round otherwise
    assert check(ZeroConcentrated(claimed), comparison).verdict == HOLDS
    if low > DEFICIT:
        assert check(ZeroConcentrated(low * Decimal("0.999")), comparison).verdict == VIOLATED


def test_divergence_of_one_order_does_not_bound_another() -> None:
    """A rare outcome of a large loss: the divergence of order one is close to zero, that of order two is not."""
    rare, rarer = Fraction(1, 10**30), Fraction(1, 10**60)
    comparison = Comparison.rows([rare, 1 - rare], [rarer, 1 - rarer])
    assert check(ZeroConcentrated("1e-20"), comparison).verdict != HOLDS


def test_verify_with_one_undescribed_pair_is_unproven() -> None:
    oue = ldp_budget.mechanism("oue")

    class Partly(oue):  # type: ignore[misc, valid-type]
        def compare(self, first: int, second: int) -> Comparison:
            if 2 in (first, second):
                raise NotSupported("not this one")
            return super().compare(first, second)

    assert verify(Partly(epsilon=1, domain_size=4)).verdict == UNPROVEN


def test_verify_of_more_outcomes_than_are_listed_looks_at_pairs() -> None:
    found = verify(ldp_budget.mechanism("random-substitution")(domain_size=3_999_999, epsilon=2, draws=100_000))
    assert found.method == "channel"


def test_verify_of_an_impossible_report_is_unbounded() -> None:
    comparison = Comparison.rows([Fraction(1, 2), Fraction(1, 2)], [Fraction(1), Fraction(0)])
    assert comparison.largest_ratio() is None
    assert check(Pure(30), comparison).verdict == VIOLATED
    assert check(Approximate(1, "0.5"), comparison).verdict == HOLDS
    assert check(Unbounded(), comparison).verdict == HOLDS


def test_product_is_bounded_without_listing() -> None:
    bit = Factor.bit(Fraction(3, 4), Fraction(1, 4))
    many = Comparison.of(*[bit] * 500)
    assert many.largest_ratio() == Fraction(3) ** 500
    assert check(Copies(500, SymmetricPair(math.log(3) + 1e-9, 1)), many).verdict == HOLDS
    assert check(Copies(499, SymmetricPair(math.log(3) + 1e-9, 1)), many).verdict == VIOLATED
    assert check(Copies(501, SymmetricPair(math.log(3) + 1e-9, 1)), many).verdict == HOLDS
    with pytest.raises(NotSupported, match="too many outcomes to list"):
        many.masses()


@pytest.mark.parametrize(
    "build",
    [
        lambda: Factor.bit(Fraction(3, 2), Fraction(1, 2)),
        lambda: Factor.of([Fraction(1, 2)], [Fraction(1)]),
        lambda: Comparison((Case(Fraction(1, 2), ()),)),
    ],
)
def test_channel_without_valid_probabilities_is_refused(build: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        build()


@pytest.mark.slow
def test_loss_covered_by_delta_is_zero() -> None:
    # The printed formula at such a δ: nothing is left over for ε, and a search for the least one must end.
    found = verify(ldp_budget.mechanism("gaussian")(epsilon="0.2", delta="0.6", lower=0, upper=1))
    assert (found.verdict, found.upper) == (HOLDS, 0.0)


# -- reports that repeat, under a guarantee that adds up -------------------------------------------------------------

SMALL_RAPPOR = {"f": 0.5, "p": 0.25, "q": 0.75, "bits": 4, "hashes": 1, "cohorts": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "guarantee", "verdict"),
    [
        (ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=4, bits=2, memoize=True), Pure(1), VIOLATED),
        (
            ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=2, bits=1, memoize=True),
            SymmetricPair(1, 1),
            VIOLATED,
        ),
        pytest.param(
            ldp_budget.mechanism("rappor")(**SMALL_RAPPOR), Pure("1.1"), VIOLATED, marks=pytest.mark.exhaustive
        ),  # a minute: 2,028 laws of whole programs, one for each way to hash
        (ldp_budget.mechanism("rappor")(**{**SMALL_RAPPOR, "bits": 32, "hashes": 2}), Pure("2.05"), UNPROVEN),
        (ldp_budget.mechanism("one-bit-mean")(epsilon=1, maximum=1, rounding=0.25), Pure(1), UNPROVEN),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_verify_of_memoizing_mechanism_with_a_guarantee_for_fresh_reports_does_not_hold(
    made: Any, guarantee: Any, verdict: str
) -> None:
    """A subclass of d-bit-flip with kept bits promised Pure(1), where A, A and A, B lose ∞; verify said "holds"."""
    found = verify(promising(made, guarantee))
    assert found.verdict == verdict
    assert any("earlier reports" in problem for problem in found.problems)


@pytest.mark.parametrize("flip", [0.05, 0.2, 0.45])
def test_verify_of_a_finally_flipped_bit_holds_for_any_inputs(flip: float) -> None:
    made = ldp_budget.mechanism("one-bit-mean")(epsilon=1, maximum=1, rounding=0.25, flip=flip, any_inputs=True)
    assert verify(made).verdict == HOLDS
    low = Pure(made.guarantee.bound - Decimal("0.001"))
    assert verify(promising(made, low)).verdict != HOLDS


@pytest.mark.exhaustive
def test_verify_of_fresh_rappor_needs_no_memos() -> None:
    made = ldp_budget.mechanism("rappor")(**SMALL_RAPPOR, any_inputs=True)
    assert verify(made).verdict == HOLDS


@pytest.mark.slow
def test_verify_of_fresh_draws_needs_no_memos() -> None:
    for made in (
        ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=2, bits=1),
        ldp_budget.mechanism("oue")(epsilon=1, domain_size=3),
    ):
        assert verify(made).verdict == HOLDS
