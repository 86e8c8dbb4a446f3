"""The Laplace mechanism: its scale, its promise, its client."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldp_budget
from ldp_budget import InvalidParameter, OutsideDomain
from ldp_budget.sampling import SeededStream
from numeric_checks import density_moments, worst_log_ratio

Laplace = ldp_budget.mechanism("laplace")

epsilons = st.decimals("1e-8", 1000, places=8)
widths = st.decimals("1e-6", 1000, places=7)


@given(epsilons, widths)
def test_scale_is_on_the_safe_side_and_tight(epsilon, width):
    scale = Laplace.calibrate(epsilon=epsilon, sensitivity=width).parameters["scale"]
    loss = Fraction(width) / Fraction(scale)
    assert Fraction(epsilon) * (1 - Fraction(1, 10**9)) <= loss <= Fraction(epsilon)


def test_mechanism_can_be_built_from_its_scale():
    built = Laplace(scale=4, lower=0, upper=2)
    assert built.guarantee.epsilon == 0.5
    assert built.parameters == {"scale": 4.0}
    # A scale that is no double: the client draws with the nearest one, and the loss stated is not below that one's.
    tenth = Laplace(scale="0.1").guarantee
    assert Fraction(tenth.loss()[0]) >= 1 / Fraction(0.1)
    assert tenth.epsilon == 10.0


def test_brute_force_finds_the_declared_loss():
    mechanism = Laplace.calibrate(epsilon="1.5", lower=10, upper=20)
    worst = worst_log_ratio(mechanism, np.linspace(10, 20, 21), np.linspace(0, 30, 61))
    assert worst == pytest.approx(1.5, rel=1e-12)


def test_density_integrates_to_one_and_has_the_stated_variance():
    mechanism = Laplace.calibrate(epsilon=3, lower=0, upper=1)
    assert density_moments(mechanism, 0.25, [-20, 0.25, 20]) == pytest.approx((1, 0, 2 / 9), abs=1e-12)
    assert mechanism.error_at(0.25) == pytest.approx((0, 2 / 9))


def test_grid_rounding_does_not_increase_the_sensitivity():
    for upper in ("0.3", "1.85", "1000.1", "1e-7"):
        mechanism = Laplace.calibrate(epsilon="0.7", lower="-0.1", upper=upper)
        origin, step = mechanism.grid()
        ends = np.array([-0.1, float(upper)])
        noise = [mechanism.randomize([end], rng=SeededStream(184))[0] for end in ends]
        shift = round((noise[1] - noise[0]) / step)
        width = mechanism.upper - mechanism.lower
        assert Fraction(width) - Fraction(step) < shift * Fraction(step) <= Fraction(width)
        assert origin == -0.1


def test_prior_errors_are_those_of_the_noise():
    mechanism = Laplace.calibrate(epsilon=1, lower=0, upper=1)
    assert mechanism.prior_error(([0, 0.5, 1], [1, 2, 1])) == pytest.approx((0, 2))
    for weights in ([1, -1, 1], [0, 0, 0], [1, 1], [1, 1, np.nan]):
        with pytest.raises(InvalidParameter, match="weights"):
            mechanism.prior_error(([0, 0.5, 1], weights))
    with pytest.raises(OutsideDomain):
        mechanism.prior_error(([2], [1]))
