"""Gaussian calibration against mpmath: σ is never too small, and never more than 1e-12 too large.

The oracle needs no root finding: δ falls as σ grows, so σ is right if δ(σ) is within the target and
δ(σ·(1 − 1e-12)) is not.
"""

from __future__ import annotations

import math
import random
import sys

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

from exact_numbers import golden_rows
from ldp_budget.guarantees.gaussian_calibration import gaussian_delta, gaussian_log_delta, gaussian_sigma, mu_of_pure

METHODS = ["tail", "exact"]
TOLERANCE = mpf("1e-12")
# The exact δ loses at most 11 digits to cancellation for ε >= 1e-8, which leaves 29 for a question about 12.
DIGITS = 40

CORNER_EPSILONS = [1e-8, 1e-4, 0.01, 0.5, 1.0, 10.0, 1000.0]
CORNER_DELTAS = [1e-300, 1e-100, 1e-15, 1e-5, 0.01, 0.1, 0.25, 0.4, math.nextafter(0.5, 0), 0.5]
CORNER_DELTAS += [math.nextafter(0.5, 1), 0.75, math.nextafter(0.9, 0), 0.9]

epsilons = st.floats(math.log(1e-8), math.log(1000)).map(math.exp)
deltas = st.floats(math.log(1e-300), math.log(0.9)).map(math.exp)


def true_delta(epsilon: float, mu: float, method: str) -> mpf:
    """The printed formula, in mpmath's current precision."""
    epsilon, mu = mpf(epsilon), mpf(mu)
    c, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    tail = mpmath.erfc(c / mpmath.sqrt(2)) / 2
    if method == "tail":
        return tail
    return tail - mpmath.exp(epsilon) * mpmath.erfc(b / mpmath.sqrt(2)) / 2


def meets_target_tightly(target: tuple[float, float, float], sigma: float, method: str) -> bool:
    """True if σ is at least the true one for (ε, δ, S), and at most 1e-12 above it."""
    epsilon, delta, sensitivity = target
    with mpmath.workdps(DIGITS):
        safe = true_delta(epsilon, sensitivity / mpf(sigma), method) <= delta
        tight = true_delta(epsilon, sensitivity / (mpf(sigma) * (1 - TOLERANCE)), method) >= delta
    return bool(safe and tight)


def random_delta(rng: random.Random, epsilon: float) -> float:
    """Log-uniform over the whole range or over its everyday part, or near 1/2, 0.9, or ε."""
    kind = rng.randrange(5)
    if kind == 0:
        return 10 ** rng.uniform(-300, math.log10(0.9))
    if kind == 1:
        return 10 ** rng.uniform(-20, math.log10(0.9))
    if kind == 2:
        return 0.5 + rng.choice((-1, 1)) * 10 ** rng.uniform(-16, math.log10(0.4))
    if kind == 3:
        return 0.9 - 10 ** rng.uniform(-16, math.log10(0.5))
    return min(0.9, epsilon * 10 ** rng.uniform(-10, 1))


def random_cases(count: int, seed: int) -> list[tuple[float, float, float]]:
    rng = random.Random(seed)
    corners = [(e, d, 1.0) for e in CORNER_EPSILONS for d in CORNER_DELTAS]
    drawn = (10 ** rng.uniform(-8, 3) for _ in range(count - len(corners)))
    return corners + [(e, random_delta(rng, e), 10 ** rng.uniform(-3, 3)) for e in drawn]


def golden(name: str, *columns: str) -> list[tuple[list[float], mpf]]:
    """The parameters and the value of the golden cases of `name`."""
    return [([float(row["params"][c]) for c in columns], mpf(row["value"])) for row in golden_rows(name)]


# σ for a target


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("count", [1000, pytest.param(10_000, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("method", METHODS)
def test_sigma_is_safe_and_tight_in_thousands_of_cases(method: str, count: int) -> None:
    cases = random_cases(count, seed=4)
    results = [(case, gaussian_sigma(*case, method=method)) for case in cases]
    wrong = [(case, sigma) for case, sigma in results if not meets_target_tightly(case, sigma, method)]
    assert wrong == []


@pytest.mark.parametrize("method", METHODS)
def test_sigma_far_outside_the_usual_range_equals_the_golden_value(method: str) -> None:
    cases = golden(f"gaussian_sigma_far_{method}", "eps", "delta", "sensitivity")
    assert len(cases) == 8 * 5
    for (epsilon, delta, sensitivity), value in cases:
        sigma = gaussian_sigma(epsilon, delta, sensitivity, method=method)
        assert value <= sigma <= value * (1 + TOLERANCE), (epsilon, delta)


@pytest.mark.parametrize("method", METHODS)
def test_sigma_of_golden_rows_is_reproduced(method: str) -> None:
    for (epsilon, delta, sensitivity), value in golden(f"gaussian_sigma_{method}", "eps", "delta", "sensitivity"):
        if epsilon == 0:  # a limit that the golden values include and a calibration refuses
            continue
        sigma = gaussian_sigma(epsilon, delta, sensitivity, method=method)
        assert value <= sigma <= value * (1 + TOLERANCE), (epsilon, delta, sensitivity)


def test_sigma_of_the_errata_equals_the_corrected_value() -> None:
    assert gaussian_sigma(1, 1e-5) == pytest.approx(4.3791, abs=5e-5)
    assert gaussian_sigma(1, 1e-5, method="exact") == pytest.approx(3.7306, abs=5e-5)


def test_sigma_of_the_classic_formula_is_too_small_for_a_large_epsilon() -> None:
    epsilon, delta = 10, 1e-2
    classic = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert gaussian_delta(epsilon, 1 / classic) > 1.5 * delta
    assert classic == pytest.approx(0.89 * gaussian_sigma(epsilon, delta, method="exact"), rel=5e-3)


@given(epsilons, deltas)
def test_sigma_exact_is_at_most_sigma_tail(epsilon: float, delta: float) -> None:
    assert gaussian_sigma(epsilon, delta, method="exact") <= gaussian_sigma(epsilon, delta)


def test_sigma_subnormal_is_rounded_up() -> None:
    smallest = 5e-324
    assert gaussian_sigma(1000, 0.9, smallest) >= smallest


# δ of a given σ


@pytest.mark.parametrize("method", METHODS)
def test_delta_of_golden_rows_is_reproduced(method: str) -> None:
    for (epsilon, sigma, sensitivity), value in golden(f"gaussian_delta_{method}", "eps", "sigma", "sensitivity"):
        delta = gaussian_delta(epsilon, sensitivity / sigma, method=method)
        assert value <= delta <= value * (1 + mpf("1e-11")), (epsilon, sigma, sensitivity)


@pytest.mark.slow
@pytest.mark.some(2)
@pytest.mark.parametrize("method", METHODS)
def test_log_delta_is_a_tight_upper_bound(method: str) -> None:
    rng = random.Random(8)
    wrong = []
    for _ in range(1500):
        epsilon = 10 ** rng.uniform(-8, 3)
        mu = epsilon * 10 ** rng.uniform(-3, 1) if rng.random() < 0.5 else 10 ** rng.uniform(-3, 1)
        bound = gaussian_log_delta(epsilon, mu, method=method)
        with mpmath.workdps(60):
            value = mpmath.log(true_delta(epsilon, mu, method))
            more_mu = mpmath.log(true_delta(epsilon, mu * (1 + mpf("2e-15")), method))
        if not value <= bound <= more_mu + mpf("1e-13") * (1 - value):
            wrong.append((epsilon, mu, bound, value))
    assert wrong == []


@pytest.mark.parametrize("method", METHODS)
def test_delta_stays_between_zero_and_one(method: str) -> None:
    extremes = [5e-324, 1e-200, 1e-20, 1.0, 1e20, 1e200, sys.float_info.max]
    for epsilon in [0.0, *extremes]:
        for mu in extremes:
            assert gaussian_log_delta(epsilon, mu, method=method) <= 0
            assert 0 < gaussian_delta(epsilon, mu, method=method) <= 1


@given(epsilons, deltas, st.sampled_from(METHODS))
def test_delta_is_the_inverse_of_sigma(epsilon: float, delta: float, method: str) -> None:
    mu = 1 / gaussian_sigma(epsilon, delta, method=method)
    assert gaussian_log_delta(epsilon, mu, method=method) == pytest.approx(math.log(delta), rel=1e-9, abs=1e-9)


# μ of a pure ε


@pytest.mark.slow
def test_mu_of_pure_is_a_tight_upper_bound() -> None:
    rng = random.Random(2)
    for epsilon in [1e-9, 1.0, math.log(3), 700.0] + [10 ** rng.uniform(-9, math.log10(700)) for _ in range(500)]:
        mu = mpf(mu_of_pure(epsilon))
        with mpmath.workdps(DIGITS):
            wanted = 1 / (1 + mpmath.exp(epsilon))
            assert mpmath.ncdf(-mu / 2) <= wanted <= mpmath.ncdf(-mu * (1 - TOLERANCE) / 2), epsilon


@given(st.floats(1e-6, 30), st.floats(0, 1))
def test_gaussian_of_mu_of_pure_dominates_randomised_response(epsilon: float, share: float) -> None:
    at = share * epsilon
    randomised_response = -math.expm1(at - epsilon) / (1 + math.exp(-epsilon))
    assert gaussian_delta(at, mu_of_pure(epsilon)) >= randomised_response * (1 - 1e-12)


# Errors


def test_sigma_beyond_the_largest_float_raises() -> None:
    with pytest.raises(ValueError, match=r"^sensitivity must leave sigma finite: got"):
        gaussian_sigma(1e-200, 1e-300, 1e200)
