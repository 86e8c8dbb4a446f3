"""Verification of densities: correct ones at the ends of their range, and wrong ones."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from numpy.polynomial.legendre import leggauss

from ldp_budget import mechanism, verify
from ldp_budget.guarantees import Gaussian, Guarantee, Laplace, Pure
from ldp_budget.sdk.numeric_mechanism import average, weighted_nodes
from ldp_budget_verify.exact import HOLDS, UNPROVEN, VIOLATED
from ldp_budget_verify.exact.densities import DensityPair, check_density

LaplaceNoise: Any = mechanism("laplace")
GaussianNoise: Any = mechanism("gaussian")
Staircase: Any = mechanism("staircase")


def verdict(promise: Guarantee, made: Any, first: float = 0.0, second: float = 1.0) -> str:
    return check_density(promise, DensityPair(made, first, second)).verdict


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("epsilon", ["0.001", "1", "200", "700", "1000"])
def test_laplace_holds_at_any_small_density(epsilon: str) -> None:
    assert verify(LaplaceNoise(epsilon=epsilon, lower=0, upper=1)).verdict == HOLDS


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize("sigma", ["0.001", "0.01", "1", "1000"])
def test_gaussian_holds_at_any_small_density(sigma: str) -> None:
    assert verify(GaussianNoise(sigma=sigma, lower=0, upper=1)).verdict == HOLDS


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("method", ["tail", "exact"])
@pytest.mark.parametrize("sensitivity", ["1e-100", "1e100"])
def test_gaussian_holds_at_any_distance_of_inputs(sensitivity: str, method: str) -> None:
    """Far out the density of such wide noise is no double any more, and its mass is one."""
    made = GaussianNoise(epsilon=1000, delta="0.5", sensitivity=sensitivity, method=method)
    assert verdict(made.guarantee, made, 0.0, float(sensitivity)) == HOLDS
    assert verdict(made.guarantee, made, float(sensitivity), 0.0) == HOLDS
    too_small = Gaussian(made.guarantee.mu * Decimal("0.999"))
    assert verdict(too_small, made, 0.0, float(sensitivity)) == VIOLATED


# Ranges where doubles are short of digits: of the loss, of the place, of both.
HARD = {
    "a tiny loss": ("1e-8", "0", "1"),
    "far from 0": ("1", "1e8", "100000001"),
    "farther, and narrow": ("1", "1e10", "10000000000.01"),
    "a huge loss": ("700", "0", "1"),
}


def hard(name: str, at_once: str) -> list[Any]:
    """A mechanism at every range; what is not run `at_once` is slow."""
    return [
        pytest.param(name, *ends, id=f"{name}, {place}", marks=[] if place == at_once else [pytest.mark.exhaustive])
        for place, ends in HARD.items()
    ]


@pytest.mark.slow
@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("name", "epsilon", "lower", "upper"),
    [
        *hard("laplace", at_once="a tiny loss"),
        *hard("staircase", at_once="farther, and narrow"),
        *hard("bounded-laplace", at_once="a huge loss"),
        *hard("bounded-staircase", at_once="far from 0"),
    ],
)
def test_rounding_is_no_violation(name: str, epsilon: str, lower: str, upper: str) -> None:
    assert verify(mechanism(name)(epsilon=epsilon, lower=lower, upper=upper)).verdict != VIOLATED


@pytest.mark.slow
@pytest.mark.parametrize("sigma", ["1e7", "1e8", "1e80"])
def test_verify_beyond_double_precision_is_unproven(sigma: str) -> None:
    made = GaussianNoise(sigma=sigma, lower=0, upper=1)
    assert verdict(made.guarantee, made) == UNPROVEN


def test_verify_of_half_the_true_mu_is_violated_for_wide_noise() -> None:
    made = GaussianNoise(sigma="1e10", lower=0, upper=1)
    assert verdict(Gaussian(made.guarantee.mu / 2), made) == VIOLATED


def test_verify_compares_a_small_loss_with_a_small_claim() -> None:
    assert verdict(Pure(Decimal("0.91e-8")), LaplaceNoise(epsilon="1e-8", lower=0, upper=1)) == VIOLATED


def test_verify_of_an_invalid_density_is_violated() -> None:
    class NormLeftOut(LaplaceNoise):
        def density(self, report: float, value: float) -> float:
            return math.exp(-abs(report - value)) if 0 <= report <= 1 else 0.0

        def report_breakpoints(self, value: float) -> tuple[float, ...]:
            return 0.0, value, 1.0

    found = verify(NormLeftOut(epsilon=1, lower=0, upper=1))
    assert found.verdict == VIOLATED
    assert "adds up to" in found.problems[0]


def test_truncated_normal_noise_is_not_gaussian() -> None:
    class Cut(GaussianNoise):
        def density(self, report: float, value: float) -> float:
            if abs(report - value) > 5 * self._sigma:
                return 0.0
            return float(super().density(report, value)) / math.erf(5 / math.sqrt(2))

        def report_breakpoints(self, value: float) -> tuple[float, ...]:
            return value - 5 * self._sigma, value, value + 5 * self._sigma

    made = Cut(sigma=1, lower=0, upper=1)
    assert "impossible" in check_density(made.guarantee, DensityPair(made, 0.0, 1.0)).why
    assert verdict(Pure(1), made) == VIOLATED


def test_staircase_noise_is_not_laplace_noise() -> None:
    made = Staircase(epsilon=8, gamma="0.7", lower=0, upper=1)
    assert verdict(Pure(8), made) == HOLDS
    assert verdict(Laplace(8), made) == VIOLATED


def test_normal_noise_has_no_pure_loss() -> None:
    assert verdict(Pure(10**4), GaussianNoise(sigma=1, lower=0, upper=1)) == UNPROVEN


@pytest.mark.exhaustive
def test_verify_of_a_loss_that_turns_between_breakpoints_is_unproven() -> None:
    class Wavy(LaplaceNoise):
        def density(self, report: float, value: float) -> float:
            wave = 1 + 0.1 * math.sin(20 * math.pi * report) * (value > 0.5) * (0 <= report <= 1)
            return float(super().density(report, value)) * wave

        def report_breakpoints(self, value: float) -> tuple[float, ...]:
            return 0.0, 1.0

    made = Wavy(epsilon=1, lower=0, upper=1)
    assert not DensityPair(made, 1.0, 0.0).monotone()


def test_quadrature_of_twelve_points_is_gauss_legendre() -> None:
    nodes = weighted_nodes(-1.0, 1.0)
    assert nodes == [pytest.approx(each, rel=1e-14) for each in zip(*leggauss(12), strict=True)]
    for power in range(24):
        exact = 0.0 if power % 2 else 2 / (power + 1)
        assert math.fsum(weight * node**power for node, weight in nodes) == pytest.approx(exact, abs=1e-15)


@pytest.mark.exhaustive
def test_quadrature_over_one_point_is_the_value_there() -> None:
    assert average(lambda report: report * 2, [3.0, 3.0]) == 6.0
