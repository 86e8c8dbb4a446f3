"""Dominating pairs of built-in mechanisms: the cost of 365 reports, and no two inputs exceed the pair."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

import ldp_budget
from exact_numbers import hockey_stick
from ldp_budget import compose
from ldp_budget.guarantees import FinitePair, Guarantee, SymmetricPair
from ldp_budget.guarantees.dominating_pairs import dominating_pair, joined

FRESH = {"bits": 32, "cohorts": 8, "any_inputs": True}


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("name", "options", "stated", "true"),
    [
        ("rappor", {**FRESH, "hashes": 1, "epsilon": "0.5", "epsilon_lifetime": 4}, 86.9, 53.5),
        ("rappor", {**FRESH, "hashes": 4, "epsilon": 1, "epsilon_lifetime": 8}, 244.6, 54.0),
        (
            "random-substitution",
            {"domain_size": 10, "draws": 5, "epsilon": 2, "sampling": "distinct", "ordered": True},
            440,
            343,
        ),
        ("staircase", {"epsilon": 2, "lower": 0, "upper": 1}, 661.2, 637.6),
    ],
    ids=["fresh RAPPOR, one hash", "fresh RAPPOR, four", "distinct draws in order", "staircase"],
)
def test_year_of_reports_costs_the_composition_of_the_pair(
    name: str, options: dict[str, Any], stated: float, true: float
) -> None:
    """`stated` is what was charged while they stated less of themselves; met within a hundredth, or bettered."""
    promise = ldp_budget.mechanism(name)(**options).guarantee
    assert promise.epsilon == float(options["epsilon"])
    assert compose([(promise, 365)], delta="1e-6", rule="exact").epsilon <= 1.01 * true < stated


def masses(promise: Guarantee) -> list[tuple[Fraction, Fraction]]:
    if isinstance(promise, FinitePair):
        return list(promise.outcomes)
    assert isinstance(promise, SymmetricPair)
    tau, odds = Fraction(promise.tau), Fraction(promise.bound.exp())
    high, low = tau * odds / (1 + odds), tau / (1 + odds)
    return [(high, low), (low, high), (1 - tau, 1 - tau)]


def assert_dominated(
    pair: list[tuple[Fraction, Fraction]], promise: Guarantee, slack: Fraction = Fraction(0)
) -> None:
    stated = masses(promise)
    for odds in {p / q for p, q in (*pair, *stated) if q}:
        assert hockey_stick(pair, odds) <= hockey_stick(stated, odds) + slack


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize(("f", "p", "q"), [("0.5", "0.25", "0.75"), ("0.2", "0.3", "0.9"), ("0.01", "0", "0.6")])
@pytest.mark.parametrize("hashes", [1, 2, 3])
def test_fresh_rappor_report_is_dominated_for_every_two_filters(hashes: int, f: str, p: str, q: str) -> None:
    """Every pattern of the bits that only one of two values sets, however many those are."""
    made = ldp_budget.mechanism("rappor")(**FRESH, hashes=hashes, f=f, p=p, q=q)
    half, zero, one = Fraction(f) / 2, Fraction(p), Fraction(q)
    on, off = (1 - half) * one + half * zero, (1 - half) * zero + half * one
    # The exponential of `masses` is good to 28 digits.
    slack = Fraction(1, 10**20) if hashes == 1 else Fraction(0)
    for own, other in itertools.product(range(hashes + 1), repeat=2):
        pair = []
        for pattern in itertools.product((0, 1), repeat=own + other):
            first = [on] * own + [off] * other
            second = [off] * own + [on] * other
            pair.append(
                tuple(
                    math.prod(chance if bit else 1 - chance for bit, chance in zip(pattern, side, strict=True))
                    for side in (first, second)
                )
            )
        assert_dominated(pair, made.guarantee, slack)  # type: ignore[arg-type]


def test_fresh_rappor_report_with_many_hashes_states_its_epsilon() -> None:
    made = ldp_budget.mechanism("rappor")(**FRESH, hashes=9, epsilon=1, epsilon_lifetime=8)
    assert made.guarantee.kind == "pure"


@pytest.mark.some(3)
@pytest.mark.parametrize("epsilon", ["1e-6", "0.1", "1", "4", "30"])
@pytest.mark.parametrize("gamma", [None, "0", "0.3", "0.5", "0.8", "1"])
def test_staircase_report_is_dominated_for_every_distance(epsilon: str, gamma: str | None) -> None:
    """The total variation of two values, integrated step by step in high precision, is within τ·tanh(ε/2)."""
    options = {} if gamma is None else {"gamma": gamma}
    made = ldp_budget.mechanism("staircase")(epsilon=epsilon, lower=0, upper=1, **options)
    import mpmath

    with mpmath.workdps(40):
        e, share = mpmath.mpf(epsilon), mpmath.mpf(made.parameters["gamma"])
        b = mpmath.exp(-e)
        height = (1 - b) / (2 * (share + b * (1 - share)))
        assert isinstance(made.guarantee, SymmetricPair)
        most = mpmath.mpf(str(made.guarantee.tau)) * mpmath.tanh(e / 2)
        assert most <= 1
        for distance in ("0.1", "0.45", "0.7", "1"):
            half = mpmath.mpf(distance) / 2
            # Noise that falls to both sides varies by its chance between -d/2 and d/2.
            inner = min(half, share) + b * max(half - share, 0)
            assert 2 * height * inner <= most * (1 + mpmath.mpf("1e-36"))
        # At the full distance only the rounding is lost.
        spare = most - 2 * height * inner
        assert spare <= mpmath.mpf("1e-6")
    if epsilon == "1" and gamma in (None, "0.8"):
        verified = ldp_budget.verify(made)
        assert verified.verdict == "holds"


def test_joined_pairs_are_dominated_by_what_they_are_joined_to() -> None:
    first = dominating_pair([[Fraction(3, 5), Fraction(2, 5)], [Fraction(2, 5), Fraction(3, 5)]])
    second = dominating_pair([[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 10), Fraction(9, 10)]])
    both = joined(first, second)
    for pair in (first, second):
        assert_dominated(list(pair.outcomes), both)
    assert joined(first, first) == joined(first)
