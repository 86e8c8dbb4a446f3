"""Errata of the two blog posts: the printed formula compared with the correct one.

trvoid's derives unary encoding, SUE and OUE; FedTensor's the Gaussian mechanism. What is printed right is held
to here as well, so that this page says the whole of it.
"""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import ldp_budget
from ldp_budget.guarantees.fixed_point import printed_up

Sue: Any = ldp_budget.mechanism("sue")
Oue: Any = ldp_budget.mechanism("oue")
Gaussian: Any = ldp_budget.mechanism("gaussian")

LOSSES = ["0.01", "0.5", "1", "2", "5"]


# -- trvoid's post: unary encoding -----------------------------------------------------------------------------


def printed_variance(epsilon: mpf, q: mpf) -> mpf:
    """Var*/n = ((e^ε - 1)q + 1)² / ((e^ε - 1)²(1 - q)q)."""
    growth = mpmath.expm1(epsilon)
    return (growth * q + 1) ** 2 / (growth**2 * (1 - q) * q)


def printed_probabilities(encoding: Any, epsilon: mpf) -> tuple[mpf, mpf]:
    root = mpmath.exp(epsilon / 2)
    return (root / (root + 1), 1 / (root + 1)) if encoding is Sue else (mpf(1) / 2, 1 / (root**2 + 1))


def estimator_variance(p: mpf, q: mpf, holds: int) -> mpf:
    """The variance of (bit - q)/(p - q), where the bit of a user who holds the answer is one with probability p."""
    one = p if holds else q
    mean = (one - q) / (p - q)
    return one * ((1 - q) / (p - q) - mean) ** 2 + (1 - one) * ((0 - q) / (p - q) - mean) ** 2


@pytest.mark.parametrize("encoding", [Sue, Oue], ids=["sue", "oue"])
@pytest.mark.parametrize("epsilon", LOSSES)
def test_unary_p_q_and_variance_at_frequency_zero_equal_document_000(encoding: Any, epsilon: str) -> None:
    made = encoding.calibrate(epsilon=epsilon, domain_size=10)
    p, q = printed_probabilities(encoding, mpf(epsilon))
    assert mpmath.almosteq(mpmath.log(p * (1 - q) / ((1 - p) * q)), mpf(epsilon), 1e-40)
    assert mpmath.almosteq(printed_variance(mpf(epsilon), q), q * (1 - q) / (p - q) ** 2, 1e-40)
    assert mpmath.almosteq(printed_variance(mpf(epsilon), q), estimator_variance(p, q, holds=0), 1e-40)
    assert made.parameters == {"p": pytest.approx(float(p), rel=1e-12), "q": pytest.approx(float(q), rel=1e-12)}
    assert made.utility()["variance_per_user"] == pytest.approx(float(printed_variance(mpf(epsilon), q)), rel=1e-12)


@pytest.mark.parametrize("epsilon", LOSSES)
def test_000_printed_variance_of_oue_fails_for_an_answer_with_users(epsilon: str) -> None:
    made = Oue.calibrate(epsilon=epsilon, domain_size=10)
    p, q = printed_probabilities(Oue, mpf(epsilon))
    printed, true = printed_variance(mpf(epsilon), q), estimator_variance(p, q, holds=1)
    # Too small by exactly one per user who gave the answer: at ε = 5 the truth is 37 times what is printed.
    assert mpmath.almosteq(true - printed, 1, 1e-30)
    # The standard errors are those of the truth.
    reports = made.aggregate(made.randomize([], rng=1))
    reports.reports, reports.support = 1000, np.array([1000 * float(p), *9 * [1000 * float(q)]])
    errors = made.estimate(reports).std_errors
    assert errors[0] == pytest.approx(float(1000 * true) ** 0.5, rel=1e-9)
    assert errors[1] == pytest.approx(float(1000 * printed) ** 0.5, rel=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "size"), [("1", 2), ("0.5", 3), ("2", 4), ("1.93", 5), ("4.13", 10), ("9.2", 100)]
)
def test_000_oue_is_not_the_best_unary_encoding_for_every_domain(epsilon: str, size: int) -> None:
    def total(encoding: Any) -> mpf:
        p, q = printed_probabilities(encoding, mpf(epsilon))
        return (size - 1) * estimator_variance(p, q, holds=0) + estimator_variance(p, q, holds=1)

    assert total(Sue) < total(Oue)
    made = Oue.calibrate(epsilon=epsilon, domain_size=size)
    assert made.total_variance() == pytest.approx(float(total(Oue)), rel=1e-12)
    [note] = made.notes
    assert "sue has the smaller variance here" in note
    assert f"{float(total(Sue)):.6g} against {float(total(Oue)):.6g}" in note
    assert made.utility()["smaller_total_variance"] == "sue"


# -- FedTensor's post: the Gaussian mechanism ---------------------------------------------------------------------

TARGETS = [("0.1", "1e-5"), ("1", "1e-5"), ("1", "0.1"), ("10", "0.01"), ("20", "0.001")]
targets = pytest.mark.parametrize(("epsilon", "delta"), TARGETS)


def printed_delta(sigma: mpf, epsilon: mpf) -> mpf:
    """δ = Φ(S/2σ - εσ/S), at S = 1."""
    return mpmath.ncdf(1 / (2 * sigma) - epsilon * sigma)


def least_delta(sigma: mpf, epsilon: mpf) -> mpf:
    """The smallest δ that holds: the integral of (f - e^ε g)⁺ for the densities f of N(0, σ²), g of N(1, σ²)."""
    # f exceeds e^ε g below the point where the loss is ε.
    point = mpf(1) / 2 - epsilon * sigma**2
    return mpmath.ncdf(point / sigma) - mpmath.exp(epsilon) * mpmath.ncdf((point - 1) / sigma)


@targets
def test_004_printed_delta_is_solved_by_tail_and_safe(epsilon: str, delta: str) -> None:
    made = Gaussian.calibrate(epsilon=epsilon, delta=delta, method="tail")
    sigma = mpf(made.parameters["sigma"])
    assert mpf(delta) * (1 - mpf("1e-9")) <= printed_delta(sigma, mpf(epsilon)) <= mpf(delta)
    assert least_delta(sigma, mpf(epsilon)) < mpf(delta)


@targets
def test_004_printed_condition_is_sufficient_and_not_necessary(epsilon: str, delta: str) -> None:
    """It says that (ε, δ)-DP *means* P(L > ε) ≤ δ. But less noise breaks that condition and keeps the promise."""
    tail = Gaussian.calibrate(epsilon=epsilon, delta=delta)
    exact = Gaussian.calibrate(epsilon=epsilon, delta=delta, method="exact")
    sigma = mpf(exact.parameters["sigma"])
    assert sigma < mpf(tail.parameters["sigma"])
    assert printed_delta(sigma, mpf(epsilon)) > mpf(delta)
    assert mpf(delta) * (1 - mpf("1e-9")) <= least_delta(sigma, mpf(epsilon)) <= mpf(delta)
    [note] = tail.notes
    assert f"σ = {printed_up(float(sigma))} instead of {printed_up(tail.parameters['sigma'])}" in note


def test_004_figures_of_the_errata_match() -> None:
    sigmas = [
        Gaussian.calibrate(epsilon=1, delta="1e-5", method=method).parameters["sigma"] for method in ("tail", "exact")
    ]
    assert [round(sigma, 4) for sigma in sigmas] == [4.3791, 3.7306]


@targets
def test_004_closed_form_is_the_root_of_the_printed_formula(epsilon: str, delta: str) -> None:
    """σ = S(z + √(z² + 2ε))/(2ε) with z = Φ⁻¹(1 - δ)."""
    z = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpf(delta))
    sigma = (z + mpmath.sqrt(z**2 + 2 * mpf(epsilon))) / (2 * mpf(epsilon))
    assert mpmath.almosteq(printed_delta(sigma, mpf(epsilon)), mpf(delta), 1e-40)
    assert Gaussian.calibrate(epsilon=epsilon, delta=delta).parameters["sigma"] == pytest.approx(
        float(sigma), rel=1e-12
    )
