"""Rule exact for long lists: many reports, many kinds, losses on no lattice; against closed forms and integrals."""

from __future__ import annotations

import math
import random
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from composition_oracle import (
    ORACLE_ERROR,
    Charges,
    contour_delta,
    contour_rest,
    contour_transform,
    mp,
    mpf,
    number,
    random_charges,
    responses_delta,
    true_delta,
)
from ldp_budget.composition import compose, compose_delta
from ldp_budget.composition import laplace_inversion as _laplace_inversion
from ldp_budget.composition.loss_distribution import take_apart
from ldp_budget.guarantees import Gaussian, Guarantee, Laplace, Pure, SymmetricPair

LOOSE = 1e-6
"""A hundredth of what is promised, 0.01 %."""


def assert_certified(charges: Charges, delta: str, truth: Callable[[Any], Any], looseness: float = LOOSE) -> None:
    """δ at the upper bound is at most `delta`, at the lower one at least; and the two are hardly apart."""
    total = compose(charges, delta=delta, rule="exact")
    assert 0 < total.lower <= total.epsilon <= total.lower * (1 + looseness)
    # The oracle is good to twenty digits and more.
    assert truth(number(total.epsilon)) <= mpf(delta) * (1 + mpf("1e-18"))
    assert truth(number(total.lower)) >= mpf(delta) * (1 - mpf("1e-18"))


LONG = [("0.5", 10**6), ("0.5", 10**10), ("1e-5", 10**12)]
LONGER = [("1", 10**9), ("0.001", 10**8), ("0.5", 10**16), ("1e-7", 10**16)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("delta", ["1e-300", "1e-6", "0.999"])
@pytest.mark.parametrize(
    ("epsilon", "count"), [*LONG, *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in LONGER)]
)
def test_exact_of_a_million_responses_and_more_is_bracketed(epsilon: str, count: int, delta: str) -> None:
    """The binomial distribution for every count: 10^6 on a lattice, the others beyond any lattice."""
    assert_certified([(Pure(epsilon), count)], delta, lambda at: responses_delta(Decimal(epsilon), count, at), 5e-6)


def test_exact_of_a_count_beyond_any_lattice_is_below_the_sum() -> None:
    """10^12 reports at ε = 1e-5 sum up to 10^7; together they are about as good as Gaussian noise with μ = 10."""
    total = compose([(Pure("1e-5"), 10**12)], delta="1e-6", rule="exact")
    gaussian = compose([(Gaussian(10), 1)], delta="1e-6", rule="exact")
    assert total.epsilon == pytest.approx(gaussian.epsilon, rel=1e-5)
    assert total.epsilon < 97 < compose([(Pure("1e-5"), 10**12)], delta="1e-6").epsilon


def many_kinds(seed: int, count: int, kinds: int = 100) -> Charges:
    """Losses of nine digits, so no lattice holds them."""
    source = random.Random(f"kinds {seed}")

    def kind(i: int) -> Guarantee:
        epsilon = Decimal(source.randrange(10**6, 10**9)) / 10**9
        if i % 3 == 0:
            return Laplace(epsilon)
        return SymmetricPair(epsilon, Decimal(source.randrange(1, 1001)) / 1000)

    return [(kind(i), count) for i in range(kinds)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("delta", ["1e-6", pytest.param("0.4", marks=pytest.mark.exhaustive), "0.999"])
@pytest.mark.parametrize(
    "charges",
    [
        [(Laplace("0.5"), 10**6)],
        [(Laplace("0.01"), 10**6)],
        [(Laplace("1e-5"), 10**12)],
        [(Laplace("0.3"), 10**5), (SymmetricPair("0.7123", "0.3"), 10**5), (Gaussian("0.01"), 10**5)],
    ],
    ids=["laplace", "small-laplace", "tiny-laplace", "mixed"],
)
def test_exact_of_long_lists_on_no_lattice_is_bracketed(charges: Charges, delta: str) -> None:
    truth = contour_rest(charges) if delta == "0.999" else contour_delta(charges)
    assert_certified(charges, delta, truth)


@pytest.mark.exhaustive
def test_exact_of_many_kinds_is_bracketed() -> None:
    """Ten thousand reports of each: the bounds of three enclose the truth, those of a hundred are as near."""
    few = many_kinds(1, 10**4, kinds=3)
    assert_certified(few, "1e-6", contour_delta(few))
    total = compose(many_kinds(1, 10**4), delta="1e-6", rule="exact")
    assert total.lower <= total.epsilon <= total.lower * (1 + LOOSE)


@pytest.mark.slow
def test_exact_of_one_report_each_of_a_hundred_kinds_is_bracketed() -> None:
    """No count helps here; 0.01 % still holds."""
    for delta in ("1e-6", "0.4"):
        total = compose(many_kinds(2, 1), delta=delta, rule="exact")
        assert total.epsilon <= total.lower * (1 + 1e-4)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("charges", "delta"),
    [
        ([(Pure(100), 5), (Laplace(300), 2)], "1e-6"),
        ([(Pure("1e5"), 10**4), (Laplace("0.001"), 2)], "1e-6"),
        ([(Pure("0.123456789"), 1), (Laplace("1e-9"), 1)], "1e-300"),
        ([(SymmetricPair("3.3", "1e-12"), 10**6), (SymmetricPair("0.7", "1e-3"), 1)], "1e-300"),
        ([(Laplace(20), 3)], "0.95"),
    ],
)
def test_exact_of_losses_with_little_spread_or_mass_is_bracketed(charges: Charges, delta: str) -> None:
    """ε lies just below the whole loss, or far beyond all but a tiny mass."""
    total = compose(charges, delta=delta, rule="exact")
    assert 0 < total.lower <= total.epsilon <= total.lower * (1 + LOOSE)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize(("charges", "epsilon"), [([(Laplace("0.5"), 1000)], 0.0), ([(Laplace("0.5"), 1000)], 30.0)])
def test_exact_of_a_delta_near_one_is_accurate(charges: Charges, epsilon: float) -> None:
    """1 - δ is of the order of 1e-7 and less, and known to some digits that a double near one does not have."""
    lower, upper = compose_delta(charges, epsilon)
    rest = 1 - contour_rest(charges)(mpf(epsilon))
    assert lower <= 1 - float(rest) <= upper
    assert upper - lower <= 2.0**-52 + 1e-5 * float(rest)


@pytest.mark.exhaustive
def test_exact_memory_stays_within_its_bound() -> None:
    """A list that drops no frequency early is the most expensive."""
    tracemalloc.start()
    compose(many_kinds(3, 1), delta="1e-6", rule="exact")
    compose([(Laplace("0.5"), 2)], delta="1e-3", rule="exact")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * 2**20


# -- what the bounds are made of ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("frequencies", [2**6, pytest.param(2**8, marks=pytest.mark.exhaustive), 2**11])
def test_exact_bounds_hold_for_any_number_of_frequencies(frequencies: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They grow apart, as more Gaussian noise has to be added; the truth stays between them."""
    monkeypatch.setattr(_laplace_inversion, "_FREQUENCIES", frequencies)
    monkeypatch.setattr("ldp_budget.composition.pld._on_lattice", lambda *_: None)
    apart = 0
    for seed in range(20):
        source = random.Random(f"few {seed}")
        charges = random_charges(source, "any" if seed % 4 == 0 else "lattice")
        truth = true_delta(charges)
        epsilon = source.choice((0.0, source.uniform(0, 1), source.uniform(0, 10)))
        lower, upper = compose_delta(charges, epsilon)
        exact = truth(number(epsilon))
        assert number(lower) <= exact + ORACLE_ERROR, (seed, charges, epsilon)
        assert number(upper) >= exact - ORACLE_ERROR, (seed, charges, epsilon)
        apart += upper - lower > 1e-6 * upper
        delta = Decimal(source.randrange(1, 100)) * Decimal(10) ** -source.randrange(2, 9)
        total = compose(charges, delta=delta, rule="exact")
        if 0 < total.lower < math.inf:
            assert truth(number(total.lower)) >= number(delta) * (1 - ORACLE_ERROR), (seed, charges, delta)
        if total.epsilon < math.inf:
            assert truth(number(total.epsilon)) <= number(delta) * (1 + ORACLE_ERROR), (seed, charges, delta)
    assert apart > 5, "else nothing was put to the test"


@pytest.mark.slow
@given(
    st.sampled_from(
        [Pure("0.3"), Pure("17"), SymmetricPair("1e-5", "0.3"), Laplace("0.7"), Laplace("1e-4"), Laplace(9)]
    ),
    st.floats(1e-12, 40) | st.floats(-0.45, -1e-12),
    st.floats(1e-12, 300),
)
def test_transform_error_is_within_the_assumed_bound(guarantee: Guarantee, theta: float, t: float) -> None:
    (step,) = take_apart([(guarantee, 1)]).steps
    exact = contour_transform(guarantee, mp.mpc(theta, t)) / contour_transform(guarantee, mpf(theta))
    log_modulus, phase, share = (float(part[0]) for part in step.characteristic(theta, np.array([t])))
    found = mp.exp(mp.mpc(log_modulus, phase))
    assert abs(found - exact) <= mp.expm1(share) * mp.exp(log_modulus) + ORACLE_ERROR
    error = abs(mpf(step.cumulant(theta)[0]) - mp.log(contour_transform(guarantee, mpf(theta))))
    assert error <= step.cumulant_error(theta) + ORACLE_ERROR
