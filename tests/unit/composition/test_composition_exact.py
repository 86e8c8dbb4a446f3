"""Rule exact: reference values, an oracle that enumerates, and the corners of the range."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ldp_budget
from composition_oracle import ORACLE_ERROR, mp, mpf, number, random_charges, response_delta, true_delta
from exact_numbers import golden_rows
from ldp_budget.composition import compose, compose_delta
from ldp_budget.errors import NotSupported
from ldp_budget.guarantees import (
    Approximate,
    Copies,
    FinitePair,
    Gaussian,
    Laplace,
    Memoised,
    Pure,
    SymmetricPair,
    ZeroConcentrated,
)


def assert_encloses(lower: float, upper: float, value: str, looseness: float) -> None:
    """lower <= value <= upper, all within `looseness`, relatively. Reference values are rounded themselves."""
    truth = mpf(value)
    assert number(lower) <= truth * (1 + mpf("1e-25"))
    assert number(upper) >= truth * (1 - mpf("1e-25"))
    assert upper - lower <= looseness * upper


# -- reference values -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", golden_rows("compose_eps_at_delta"))
def test_exact_epsilon_of_equal_reports_matches(row: dict[str, Any]) -> None:
    parameters = row["params"]
    pair = SymmetricPair(parameters["eps0"], row["tau"])
    total = compose([(pair, parameters["k"])], delta=parameters["delta"], rule="exact")
    assert_encloses(total.lower, total.epsilon, row["value"], 1e-9)


@pytest.mark.parametrize("row", golden_rows("compose_delta_at_eps"))
def test_exact_delta_of_equal_reports_matches(row: dict[str, Any]) -> None:
    parameters = row["params"]
    pair = SymmetricPair(parameters["eps0"], row["tau"])
    assert_encloses(*compose_delta([(pair, parameters["k"])], float(parameters["eps"])), row["value"], 1e-9)


@pytest.mark.parametrize("row", golden_rows("kov_delta_i") + golden_rows("kov_delta_i_approx"))
def test_exact_matches_kairouz_oh_viswanath(row: dict[str, Any]) -> None:
    """δ at ε' = (k - 2i)ε of k reports that are (ε, δ₀)-LDP each."""
    parameters = row["params"]
    count, i = parameters["k"], parameters["i"]
    report = Approximate(parameters["eps0"], parameters.get("delta0", "0"))
    at = Decimal(parameters["eps0"]) * (count - 2 * i)
    assert_encloses(*compose_delta([(report, count)], float(at)), row["value"], 1e-9)


@pytest.mark.parametrize("row", golden_rows("murtagh_vadhan_delta"))
def test_exact_matches_murtagh_vadhan(row: dict[str, Any]) -> None:
    parameters = row["params"]
    charges = [(Pure(epsilon), 1) for epsilon in parameters["eps_list"]]
    assert_encloses(*compose_delta(charges, float(parameters["eps"])), row["value"], 1e-9)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("row", golden_rows("laplace_delta"))
def test_exact_of_laplace_matches_the_reference(row: dict[str, Any]) -> None:
    parameters = row["params"]
    noise = Laplace(parameters["eps0"])
    assert_encloses(*compose_delta([(noise, parameters["k"])], float(parameters["eps"])), row["value"], 1e-7)


@pytest.mark.parametrize("row", golden_rows("gaussian_compose_delta"))
def test_exact_of_gaussian_matches_the_reference(row: dict[str, Any]) -> None:
    parameters = row["params"]
    # The values of σ divide S exactly in decimals.
    noise = Gaussian(Decimal(parameters["sensitivity"]) / Decimal(parameters["sigma"]))
    assert_encloses(*compose_delta([(noise, parameters["k"])], float(parameters["eps"])), row["value"], 1e-11)


@pytest.mark.parametrize(
    ("pair", "epsilon"),
    [
        (Pure("0.5"), "20.30"),
        (SymmetricPair("0.5", "0.507731834524803304829496114885"), "13.93"),
        (SymmetricPair("0.5", "0.5"), "13.85"),
        (SymmetricPair("0.5", "0.248736087964670805072876400544"), "9.49"),
    ],
    ids=["KOV", "SUE", "OUE", "GRR(10)"],
)
def test_exact_of_fifty_reports_of_one_half_matches(pair: Any, epsilon: str) -> None:
    """The sum says 25."""
    assert f"{compose([(pair, 50)], delta='1e-6', rule='exact').epsilon:.2f}" == epsilon


# -- the oracle -----------------------------------------------------------------------------------------------


def check_against_the_oracle(seed: int, kinds: str) -> None:
    """ε and δ of random charges, enclosed by their certified bounds."""
    source = random.Random(f"{kinds} {seed}")
    charges = random_charges(source, kinds)
    truth = true_delta(charges)
    delta = Decimal(source.randrange(1, 100)) * Decimal(10) ** -source.randrange(2, 14)
    total = compose(charges, delta=delta, rule="exact")
    if math.isinf(total.lower):
        assert truth(mpf(1000)) >= number(delta) * (1 - ORACLE_ERROR), (seed, charges, delta)
    elif total.lower > 0:
        assert truth(number(total.lower)) >= number(delta) * (1 - ORACLE_ERROR), (seed, charges, delta)
    if not math.isinf(total.epsilon):
        assert truth(number(total.epsilon)) <= number(delta) * (1 + ORACLE_ERROR), (seed, charges, delta)
    epsilon = source.choice((0.0, source.uniform(0, 1), source.uniform(0, 20)))
    lower, upper = compose_delta(charges, epsilon)
    exact = truth(number(epsilon))
    assert number(lower) <= exact + ORACLE_ERROR, (seed, charges, epsilon)
    assert number(upper) >= exact - ORACLE_ERROR, (seed, charges, epsilon)


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("block", range(5))
def test_exact_is_never_below_the_oracle(block: int, thorough: bool) -> None:
    for seed in range(30 * block, 30 * (block + 1), 1 if thorough else 2):
        check_against_the_oracle(seed, "any" if seed % 3 == 0 else "lattice")


@pytest.mark.parametrize("seed", [3270, 4450, 7460])
def test_exact_handles_a_loss_far_below_zero(seed: int) -> None:
    """For a pair whose only finite loss is below zero, with a Gaussian, the reduction of δ was left out."""
    check_against_the_oracle(seed, "any")


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("epsilon", ["0.1", "1"])
@pytest.mark.parametrize("delta", ["1e-6", "1e-10"])
def test_exact_of_ten_thousand_randomized_responses_matches(epsilon: str, delta: str) -> None:
    """Never below the closed form, and at most 1e-6 above it."""
    total = compose([(SymmetricPair(epsilon, 1), 10_000)], delta=delta, rule="exact")
    assert response_delta(Decimal(epsilon), 10_000, total.epsilon) <= number(Decimal(delta))
    slightly_less = total.epsilon * (1 - 1e-6)
    assert response_delta(Decimal(epsilon), 10_000, slightly_less) > number(Decimal(delta))
    assert total.lower >= slightly_less


def test_exact_of_a_thousand_each_of_three_kinds_matches() -> None:
    """Randomised response at 0.1, Gaussian noise of σ = 10 and Laplace noise of b = 10: within 0.1 %."""
    charges = [(SymmetricPair("0.1", 1), 1000), (Gaussian("0.1"), 1000), (Laplace("0.1"), 1000)]
    total = compose(charges, delta="1e-6", rule="exact")
    assert total.lower <= total.epsilon <= 1.001 * total.lower
    # A sum of many small losses is nearly normal: three times μ² = 10 each, less what Laplace falls short of it.
    assert 35 < total.epsilon < compose(charges, delta="1e-6", rule="gdp").epsilon


@pytest.mark.parametrize("x", [0.0, 0.3, 1.0, 4.9, 5.1, 25.0, 300.0, 1e8])
def test_mills_ratio_error_is_within_the_assumed_bound(x: float) -> None:
    from scipy.special import erfcx

    exact = mp.exp(mpf(x) ** 2) * mp.erfc(mpf(x)) if x < 1e4 else 1 / (mp.sqrt(mp.pi) * x)
    assert abs(mpf(float(erfcx(x))) / exact - 1) < 1e-15


@pytest.mark.slow
@given(st.integers(min_value=1, max_value=14), st.integers(min_value=0, max_value=2**32))
def test_transform_error_is_within_the_assumed_bound(stages: int, seed: int) -> None:
    """Against a transform in extended precision, which is more accurate by three digits."""
    from ldp_budget.composition._pld_fft import _TRANSFORM

    masses = np.random.default_rng(seed).random(2**stages) ** 8
    doubles = np.fft.rfft(masses).astype(np.clongdouble)
    error = np.linalg.norm((doubles - np.fft.rfft(masses.astype(np.longdouble))).astype(complex))
    assert math.sqrt(2) * error <= _TRANSFORM * stages * math.sqrt(masses.size) * np.linalg.norm(masses)


# -- laws and corners -----------------------------------------------------------------------------------------


def test_exact_at_delta_zero_is_the_sum_of_the_largest_losses() -> None:
    charges = [(Pure("0.1"), 3), (SymmetricPair("0.5", "0.01"), 2), (Laplace("0.2"), 1)]
    total = compose(charges, delta=0, rule="exact")
    assert (total.lower, total.epsilon) == (1.5, 1.5)


def test_exact_of_a_gaussian_at_delta_zero_is_unbounded() -> None:
    assert math.isinf(compose([(Gaussian("0.1"), 1)], delta=0, rule="exact").epsilon)


def test_exact_with_delta_below_the_infinite_loss_is_unbounded() -> None:
    step = Approximate(1, "1e-6")
    assert compose([(step, 1)], delta="1e-6", rule="exact").epsilon == 1
    assert math.isinf(compose([(step, 1)], delta="9e-7", rule="exact").lower)
    assert compose([(step, 2)], delta="2e-6", rule="exact").epsilon <= 2
    certain = FinitePair(((Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))))
    assert math.isinf(compose([(certain, 1)], delta="0.99", rule="exact").epsilon)


def test_exact_of_zcdp_only_is_refused() -> None:
    with pytest.raises(NotSupported, match="zcdp"):
        compose([(ZeroConcentrated("0.1"), 1)], delta="1e-6", rule="exact")


def test_exact_counts_a_memoized_report_as_its_cap() -> None:
    memoised = Memoised((Decimal(1), Decimal(2)), Decimal(3))
    assert compose([(memoised, 2)], delta="1e-3", rule="exact") == compose([(Pure(3), 2)], delta="1e-3", rule="exact")


def test_exact_of_copies_equals_so_many_reports() -> None:
    pair = SymmetricPair("0.5", "0.3")
    nested = Copies(5, Copies(2, pair))
    assert compose([(nested, 3)], delta="1e-6", rule="exact") == compose([(pair, 30)], delta="1e-6", rule="exact")


def test_exact_of_a_finite_pair_on_a_lattice_equals_the_closed_form() -> None:
    """Randomised response given by its probabilities, 3/4 and 1/4: loss ±ln 3."""
    p, q = Fraction(3, 4), Fraction(1, 4)
    total = compose([(FinitePair(((p, q), (q, p))), 40)], delta="1e-6", rule="exact")
    logarithm = compose([(Pure(Decimal(3).ln()), 40)], delta="1e-6", rule="exact")
    assert total.epsilon == pytest.approx(logarithm.epsilon, rel=1e-9)
    assert total.epsilon - total.lower <= 1e-8 * total.epsilon


def test_exact_uses_a_calibration_point_only_if_the_curve_agrees() -> None:
    """With μ = 1 the δ at ε = 1 is .1269: a stated point below that is not believed, one above it is."""
    assert compose([(Gaussian(1, 1, "0.001"), 1)], delta="0.001", rule="exact").epsilon > 3
    assert compose([(Gaussian(1, 1, "0.13"), 1)], delta="0.13", rule="exact").epsilon <= 1


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-5"), ("0.01", "1e-2"), ("8", "1e-8"), ("0.5", "1e-12")])
def test_exact_of_one_gaussian_report_equals_its_calibration(epsilon: str, delta: str) -> None:
    noise = ldp_budget.mechanism("gaussian").calibrate(epsilon=epsilon, delta=delta, method="exact", sensitivity=1)
    total = compose([(noise.guarantee, 1)], delta=delta, rule="exact")
    assert total.epsilon <= float(epsilon)
    assert total.lower >= float(epsilon) * (1 - 1e-9)


@pytest.mark.slow
@given(
    st.sampled_from(["0.001", "0.1", "1", "7.5"]),
    st.sampled_from(["0.01", "0.5", "1"]),
    st.integers(min_value=1, max_value=3000),
    st.sampled_from(["1e-300", "1e-12", "1e-3", "0.5", "0.999"]),
)
@example("7.5", "0.01", 1305, "0.999")
@example("7.5", "1", 1250, "0.5")
def test_exact_is_at_most_the_sum_with_close_bounds(epsilon: str, tau: str, count: int, delta: str) -> None:
    total = compose([(SymmetricPair(epsilon, tau), count)], delta=delta, rule="exact")
    assert total.lower <= total.epsilon <= compose([(Pure(epsilon), count)], delta=delta).epsilon
    assert total.epsilon - total.lower <= 1e-7 * total.epsilon + 1e-12


@pytest.mark.exhaustive
@settings(max_examples=settings.default.max_examples // 5)
@given(st.integers(min_value=1, max_value=50), st.sampled_from(["1e-9", "1e-4", "0.2"]))
def test_exact_epsilon_and_delta_are_inverse(count: int, delta: str) -> None:
    charges = [(Laplace("0.3"), count), (SymmetricPair("0.2", "0.4"), 3)]
    total = compose(charges, delta=delta, rule="exact")
    assert compose_delta(charges, total.epsilon)[0] <= float(delta) * (1 + 1e-12)
    if total.lower > 0:
        assert compose_delta(charges, total.lower)[1] >= float(delta) * (1 - 1e-12)


@pytest.mark.parametrize("mu", ["1", "1e-3"])
@pytest.mark.parametrize("loss", [Laplace("1e-80"), Pure("1e-80"), SymmetricPair("1e-20", "0.5"), Laplace("1e-14")])
def test_exact_with_tiny_losses_and_a_gaussian_stays_accurate_and_fast(loss: Pure, mu: str) -> None:
    alone, small = [(Gaussian(mu), 1)], 3 * loss.bound
    together = [*alone, (loss, 3)]
    for delta in ("1e-6", "1e-90", "0.0001"):
        gaussian, both = (compose(charges, delta=delta, rule="exact") for charges in (alone, together))
        assert gaussian.lower <= both.epsilon, "one report more never costs less"
        assert Decimal(both.epsilon) <= Decimal(gaussian.epsilon) * (1 + Decimal("1e-12")) + small
        assert both.lower >= gaussian.lower * (1 - 1e-12)
    for epsilon in (0.0, 1e-30, float(mu), 3 * float(mu), 30 * float(mu)):
        low, high = compose_delta(together, epsilon)
        least, most = compose_delta(alone, epsilon)
        assert least <= high
        assert low >= least * (1 - 1e-9)
        assert high <= most * (1 + 1e-9) + 1e-300
