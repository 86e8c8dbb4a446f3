"""Shuffling bounded by a mechanism's own blanket: enumerated shuffles, an mpmath oracle, and a lower bound."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln

import ldp_budget
from composition_oracle import mp, mpf, number
from ldp_budget import Comparison, Factor
from ldp_budget.guarantees import Pure, SymmetricPair
from ldp_budget.sdk.channels import Case
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget_surveys.planning.composition_comparison import message_charged, message_of
from ldp_budget_surveys.planning.shuffle_amplification import Crowd, Message, shuffled
from ldp_budget_verify.exact import program_checks
from ldp_budget_verify.law.all_outcomes import law
from shuffle_enumeration import Rows, central_delta, hockey_stick, together

SMALL = {
    "grr": {"epsilon": 1, "domain_size": 3},
    "grr of two draws": {"epsilon": 2, "domain_size": 3, "draws": 2},
    "grr of ordered draws": {"epsilon": 1, "domain_size": 3, "draws": 2, "sampling": "distinct", "ordered": True},
    "subset-selection": {"epsilon": 1, "domain_size": 4, "draws": 2},
    "oue": {"epsilon": 1, "domain_size": 2},
    "sue": {"epsilon": 2, "domain_size": 3},
    "randomized-response": {"truth": "0.5", "yes": "0.3"},
    "d-bit-flip": {"epsilon": 1, "buckets": 3, "bits": 1},
    "d-bit-flip of two bits": {"epsilon": 2, "buckets": 3, "bits": 2},
    "one-bit-mean": {"epsilon": 2, "maximum": 10},
}


def made(name: str) -> Mechanism:
    return ldp_budget.mechanism(name.split(" of ")[0])(**SMALL[name])


def rows_of(mechanism: Any) -> Rows:
    """The law of a report for each answer, as the client program draws it; a mean at its ends."""
    program = mechanism.client_program()
    last = int(program.input.get("last", 1))
    values = range(int(program.input["count"])) if "count" in program.input else (0, last)
    laws = [law(program, value) for value in values]
    reports = sorted(set().union(*laws))
    return [[one.get(report, Fraction(0)) for report in reports] for one in laws]


# -- never below the truth ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("name", SMALL)
def test_own_blanket_among_three_users_is_never_below_the_enumerated_shuffle(name: str) -> None:
    mechanism = made(name)
    rows, message = rows_of(mechanism), message_of(mechanism)
    assert message.pairs
    users = 3 if len(rows[0]) <= 6 else 2
    rounded = [[Fraction(float(p)).limit_denominator(10**6) for p in row[:-1]] for row in rows]
    rounded = [[*row, 1 - sum(row)] for row in rounded]
    for ratio in (Fraction(101, 100), Fraction(3, 2), Fraction(5, 2)):
        epsilon = math.nextafter(math.log(ratio), math.inf)
        bound = Crowd.of(message, 1, users, two_inputs=False).log_delta(epsilon)
        truth = central_delta(rounded, users, ratio)
        if truth > Fraction(1, 10**4):
            assert mp.exp(bound) >= number(truth) * (1 - mpf("1e-3"))
    clones = Crowd.of(mechanism.guarantee, 1, users, two_inputs=False)
    assert Crowd.of(message, 1, users, two_inputs=False).log_delta(0.1) <= clones.log_delta(0.1) + 1e-9


@pytest.mark.slow
def test_own_blanket_of_exact_fractions_is_never_below_the_enumerated_shuffle() -> None:
    """Generalized randomized response with e^ε = 4 and three answers, to fourteen digits."""
    whole = Fraction(6)
    rows = [[Fraction(4 if o == x else 1) / whole for o in range(3)] for x in range(3)]
    pair = tuple((p, q, min(column)) for p, q, column in zip(rows[0], rows[1], zip(*rows, strict=True), strict=True))
    for users in (1, 2, 4):
        crowd = Crowd.of(Message(Pure("1.3862943611198907"), (pair,)), 1, users, two_inputs=False)
        for ratio in (Fraction(11, 10), Fraction(2), Fraction(3)):
            truth = central_delta(rows, users, ratio)
            bound = crowd.log_delta(math.nextafter(math.log(ratio), math.inf))
            assert mp.exp(bound) >= number(truth) * (1 - mpf("1e-14"))


def test_asymmetric_pair_is_bounded_in_both_orders() -> None:
    """Two coins: a yes of who means no is rare, so that the two orders differ."""
    mechanism = made("randomized-response")
    (pair,) = message_of(mechanism).pairs
    swapped = tuple((q, p, least) for p, q, least in pair)
    given = [Crowd.of(Message(mechanism.guarantee, (each,)), 1, 50, two_inputs=False) for each in (pair, swapped)]
    assert given[0].log_delta(0.2) == given[1].log_delta(0.2)
    alone = [given[0]._log_delta(0.2, law) for (law,) in given[0].laws]
    assert alone[0] != alone[1]
    assert given[0].log_delta(0.2) == max(alone)


# -- the formula, counted one by one ---------------------------------------------------------------------------------


def counts(users: int, kinds: int) -> Iterator[tuple[int, ...]]:
    if kinds == 1:
        yield from ((n,) for n in range(users + 1))
        return
    for first in range(users + 1):
        for rest in counts(users - first, kinds - 1):
            yield (first, *rest)


def oracle_delta(pair: Any, users: int, epsilon: Any) -> Any:
    """E[(V₁ + … + Vₙ)₊]/n over all counts of the outcomes, with mpmath."""
    masses = [tuple(map(number, outcome)) for outcome in pair]
    scores = [(p - mp.exp(epsilon) * q) / least for p, q, least in masses]
    chances = [least for _, _, least in masses]
    rest = 1 - sum(chances)
    total = mpf(0)
    for each in counts(users, len(masses)):
        value = sum(n * score for n, score in zip(each, scores, strict=True))
        if value > 0:
            left = users - sum(each)
            ways = mp.factorial(users) / mp.factorial(left)
            for n, chance in zip(each, chances, strict=True):
                ways *= chance**n / mp.factorial(n)
            total += value * ways * rest**left
    return total / users


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("name", ["grr", "oue", "randomized-response", "one-bit-mean"])
@pytest.mark.parametrize("share", [0.15, 0.6])
def test_own_blanket_is_the_printed_expectation_and_not_below_it(name: str, share: float) -> None:
    mechanism = made(name)
    message, users = message_of(mechanism), 16
    epsilon = share * mechanism.guarantee.epsilon
    exact = max(
        oracle_delta(order, users, mpf(epsilon))
        for pair in message.pairs
        for order in (pair, [(q, p, least) for p, q, least in pair])
    )
    found = mp.exp(Crowd.of(message, 1, users, two_inputs=False).log_delta(epsilon))
    assert exact <= found <= exact * mpf("1.02")


# -- how tight ------------------------------------------------------------------------------------------------------


def lower_bound(size: int, local: float, users: int, delta: float) -> float:
    """ε that generalized randomized response cannot go below: all other users hold a third answer."""
    whole = math.exp(local) + size - 1
    p, q, others = math.exp(local) / whole, 1 / whole, users - 1
    width = int(12 * math.sqrt(others * q) + 12)
    around = np.arange(max(0, int(others * q) - width), int(others * q) + width)
    a, b = around[:, np.newaxis], around[np.newaxis, :]

    def chance(a: Any, b: Any) -> Any:
        left = others - a - b
        inside = (a >= 0) & (b >= 0)
        logs = gammaln(others + 1) - gammaln(np.maximum(a, 0) + 1) - gammaln(np.maximum(b, 0) + 1) - gammaln(left + 1)
        return np.where(inside, np.exp(logs + (a + b) * math.log(q) + left * math.log1p(-2 * q)), 0.0)

    one, other, none = chance(a - 1, b), chance(a, b - 1), chance(a, b)
    first, second = p * one + q * other + (1 - p - q) * none, q * one + p * other + (1 - p - q) * none
    low, high = 1e-6, local
    for _ in range(40):
        middle = (low + high) / 2
        if np.maximum(first - math.exp(middle) * second, 0).sum() > delta:
            low = middle
        else:
            high = middle
    return low


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "local", "users", "most"), [(100, 3, 10_000, 0.0890), (10, 2, 10_000, 0.0799), (10, 0.5, 10_000, 0.0085)]
)
def test_own_blanket_of_grr_is_within_a_thousandth_of_a_lower_bound(
    size: int, local: float, users: int, most: float
) -> None:
    mechanism = ldp_budget.mechanism("grr").calibrate(epsilon=local, domain_size=size)
    found = shuffled([(message_of(mechanism), 1)], users, "1e-6").epsilon
    least = lower_bound(size, local, users, 1e-6)
    assert least <= found <= 1.001 * least
    assert found <= most
    assert found < 0.9 * shuffled([(mechanism.guarantee, 1)], users, "1e-6").epsilon


@pytest.mark.exhaustive
def test_many_rounds_of_own_blanket_compose_below_the_clones() -> None:
    mechanism = ldp_budget.mechanism("grr").calibrate(epsilon=2, domain_size=10)
    one, many = (shuffled([(message_of(mechanism), k)], 10_000, "1e-6").epsilon for k in (1, 50))
    assert 7 * one < many < 10 * one
    assert many < shuffled([(mechanism.guarantee, 50)], 10_000, "1e-6").epsilon * 0.8


@pytest.mark.exhaustive
def test_two_rounds_of_own_blanket_are_never_below_the_enumerated_ones() -> None:
    rows = [[Fraction(4 if o == x else 1, 6) for o in range(3)] for x in range(3)]
    pair = tuple((p, q, Fraction(1, 6)) for p, q in zip(rows[0], rows[1], strict=True))
    message = Message(Pure("1.3862943611198907"), (pair,))
    for ratio in (Fraction(3, 2), Fraction(3)):
        worst = Fraction(0)
        for other in range(3):
            laws = [together([rows[x], rows[other]]) for x in (0, 1)]
            twice = [{(a, b): p * q for a, p in each.items() for b, q in each.items()} for each in laws]
            worst = max(worst, hockey_stick(*twice, ratio), hockey_stick(*twice[::-1], ratio))
        assert shuffled([(message, 2)], 2, float(worst)).epsilon >= math.log(ratio) * (1 - 1e-12)


# -- where the blanket comes from -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_mechanism_without_floors_keeps_the_clones() -> None:
    mechanism = ldp_budget.mechanism("cms").calibrate(epsilon=1, hashes=16, width=16)
    message = message_of(mechanism)
    assert message == Message(mechanism.guarantee)
    assert shuffled([(message, 1)], 1000, "1e-6") == shuffled([(mechanism.guarantee, 1)], 1000, "1e-6")


def test_reports_that_repeat_a_draw_keep_the_clones() -> None:
    """`compare` is the law of one report: a second one of the same bit is no independent draw."""
    mean = ldp_budget.mechanism("one-bit-mean")(epsilon=2, maximum=1, rounding=1, flip="0.3", any_inputs=True)
    assert mean.compare(0.0, 1.0).covered()
    assert message_of(mean) == Message(mean.guarantee)


def test_charge_of_a_changed_guarantee_or_a_missing_mechanism_keeps_the_clones() -> None:
    grr = ldp_budget.mechanism("grr").calibrate(epsilon=1, domain_size=5)
    declared = '{"domain_size": 5, "epsilon": "1"}'
    assert message_charged(grr.guarantee, "random-substitution", declared).pairs
    changed = SymmetricPair(1, 1)
    assert message_charged(changed, "random-substitution", declared) == Message(changed)
    assert message_charged(changed, "gone", declared) == Message(changed)


def test_covered_outcomes_are_merged_and_multiplied() -> None:
    half, third = Fraction(1, 2), Fraction(1, 3)
    factor = Factor(((half, third), (half, 1 - third)), (third, third))
    found = Comparison.of(factor, factor).covered()
    assert found is not None
    assert sorted(found) == sorted(
        (a * c * n, b * d * n, third * third * n)
        for (a, b), (c, d), n in (
            (factor.masses[0], factor.masses[0], 1),
            (factor.masses[0], factor.masses[1], 2),
            (factor.masses[1], factor.masses[1], 1),
        )
    )
    assert Comparison.of(Factor(factor.masses)).covered() is None
    assert Comparison.of(factor, factor).floors() == [third * third] * 4
    assert Comparison((Case(half, (factor,)), Case(half, ()))).covered() is None


def test_floor_above_a_compared_probability_is_refused() -> None:
    half = Fraction(1, 2)
    with pytest.raises(ValueError, match="a floor is above a compared probability"):
        Comparison.of(Factor.bit(half, half, (half, Fraction(2, 3)))).covered()
    with pytest.raises(ValueError, match="2 floors, one for each outcome"):
        Factor(((half, half), (half, half)), (half,))


@pytest.mark.parametrize("name", SMALL)
def test_floors_of_every_mechanism_hold_for_all_its_reports(name: str) -> None:
    mechanism = made(name)
    found = program_checks.check_program(mechanism, list(mechanism.critical_inputs()))
    assert found.verdict == "holds"


def test_floor_that_some_input_falls_below_is_found_by_verify(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = made("sue")
    honest = type(mechanism).compare

    monkeypatch.setattr(
        type(mechanism),
        "compare",
        lambda self, first, second: Comparison.of(
            *(
                Factor(factor.masses, tuple(least * Fraction(10001, 10000) for least in factor.floor))
                for factor in honest(self, first, second).cases[0].factors
            )
        ),
    )
    found = program_checks.check_program(mechanism, [0, 1, 2])
    assert found.verdict == "violated"
    assert "floors" in found.why
