"""The discrete Gaussian mechanism: exact draws, an exact norm bound, a certified ρ, and what is refused."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget import Accountant, mechanism
from ldp_budget.errors import InvalidParameter, NotSupported, OutsideDomain
from ldp_budget.guarantees import ZeroConcentrated
from ldp_budget.registry.certification import checked, checked_at
from ldp_budget.sampling import discrete_normal, open_stream

DiscreteGaussian: Any = mechanism("discrete-gaussian")
SIGMA = 2**32
LARGE = DiscreteGaussian(dimension=3, norm_bound=1, rho=512)
"""So little noise, 1/32 of the norm bound, that values show."""
FINITE = st.floats(allow_nan=False, allow_infinity=False)


# -- the draws ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("bits", [0, 1, 3])
def test_discrete_normal_has_the_probabilities_of_its_definition(bits: int) -> None:
    sigma, draws = 2**bits, 200_000
    found = discrete_normal(open_stream(bits), bits, draws)
    total = math.fsum(math.exp(-(n**2) / 2 / sigma**2) for n in range(-60 * sigma, 60 * sigma + 1))
    inner = range(-3 * sigma, 3 * sigma + 1)
    expected = [draws * math.exp(-(n**2) / 2 / sigma**2) / total for n in inner]
    observed = [int((found == n).sum()) for n in inner]
    excess = sum((one - other) ** 2 / other for one, other in zip(observed, expected, strict=True))
    assert excess < len(inner) + 5 * math.sqrt(2 * len(inner))


def test_discrete_normal_of_one_stream_has_many_sizes_and_both_signs() -> None:
    found = discrete_normal(open_stream(3), 32, 1000)
    assert found.std() / SIGMA == pytest.approx(1, abs=0.1)
    assert len(set(found.tolist())) == 1000
    assert 400 < (found < 0).sum() < 600


@pytest.mark.parametrize("bits", [-1, 41])
def test_discrete_normal_of_too_many_bits_is_refused(bits: int) -> None:
    with pytest.raises(ValueError, match="bits must be in"):
        discrete_normal(open_stream(1), bits, 1)


# -- the loss -------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sigma", ["0.3", "1", "4"])
@pytest.mark.parametrize("order", ["1.01", "2", "9.5"])
def test_divergence_of_shifted_draws_is_at_most_that_of_the_theorem(sigma: str, order: str) -> None:
    """Also where σ is as small as a step; the mechanism's own σ is 2**32 steps."""
    mpmath.mp.dps = 40
    wide, alpha = mpmath.mpf(sigma), mpmath.mpf(order)

    def weight(n: int) -> Any:
        return mpmath.exp(-(mpmath.mpf(n) ** 2) / (2 * wide**2))

    reach = range(-200, 201)
    total = mpmath.fsum(map(weight, reach))
    for shift in (1, 2, 5):
        moments = mpmath.fsum(weight(n) ** alpha * weight(n - shift) ** (1 - alpha) for n in reach) / total
        divergence = mpmath.log(moments) / (alpha - 1)
        assert divergence <= alpha * shift**2 / (2 * wide**2) * (1 + mpmath.mpf(10) ** -30)


@pytest.mark.parametrize("rho", ["1e-10", "0.0123456789", "0.5", "512"])
def test_rho_of_two_opposite_vectors_is_at_most_the_declared_one(rho: str) -> None:
    made = DiscreteGaussian(dimension=2, norm_bound="0.3", rho=rho)
    apart = 2 * made.steps_of_bound
    assert made.guarantee == ZeroConcentrated(Decimal(rho))
    assert Fraction(apart**2, 2 * SIGMA**2) <= Fraction(rho)
    assert Fraction((apart + 2) ** 2, 2 * SIGMA**2) > Fraction(rho)


@pytest.mark.parametrize(("epsilon", "delta"), [("0.5", "1e-9"), ("1", "1e-6"), ("10", "1e-3")])
def test_calibrated_loss_is_at_most_the_epsilon_at_delta(epsilon: str, delta: str) -> None:
    rho = mpmath.mpf(str(DiscreteGaussian(dimension=2, norm_bound=1, epsilon=epsilon, delta=delta).guarantee.rho))
    log_delta = mpmath.log(mpmath.mpf(delta))

    def bound(alpha: Any) -> Any:
        return rho * alpha + mpmath.log((alpha - 1) / alpha) - (log_delta + mpmath.log(alpha)) / (alpha - 1)

    best = min(bound(1 + mpmath.mpf(1.02) ** power) for power in range(-400, 400))
    assert float(best) == pytest.approx(float(epsilon), rel=1e-3)
    assert best <= mpmath.mpf(epsilon) * (1 + mpmath.mpf("1e-3"))


def test_reports_of_opposite_vectors_are_as_far_apart_as_the_declared_rho() -> None:
    """ρ = 1/2 is a distance of one σ, so the best threshold holds for Φ(1/2) and Φ(-1/2) of the reports."""
    made = DiscreteGaussian(dimension=1, norm_bound=3, rho="0.5")
    above = [(made.randomize(np.full((40_000, 1), end), rng=6) > 0).mean() for end in (3, -3)]
    assert above == pytest.approx([0.691462, 0.308538], abs=0.01)


def test_noise_is_for_twice_the_norm_bound() -> None:
    made = DiscreteGaussian(dimension=2, norm_bound=5, rho="0.125")
    assert made.parameters["sigma"] == pytest.approx(2 * 5 / math.sqrt(2 * 0.125))


# -- the norm bound -------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(FINITE, FINITE, FINITE), min_size=1, max_size=4))
def test_clipped_vectors_are_within_the_ball_as_whole_numbers(vectors: list[tuple[float, ...]]) -> None:
    clipped = LARGE.clip(vectors)
    noise = discrete_normal(open_stream(5), 32, clipped.size).reshape(clipped.shape)
    for steps, given_row in zip((LARGE.randomize(clipped, rng=5) - noise).tolist(), vectors, strict=True):
        assert sum(step**2 for step in steps) <= LARGE.steps_of_bound**2
        assert all(step * value >= 0 for step, value in zip(steps, given_row, strict=True))


@pytest.mark.parametrize("dimension", [1, 2, 1000, 200_003])
def test_vectors_on_the_bound_are_within_the_ball_as_whole_numbers(dimension: int) -> None:
    made = DiscreteGaussian(dimension=dimension, norm_bound="0.7", rho=512)
    vector = made.clip([np.linspace(-3, 5, dimension)])
    steps = made.randomize(vector, rng=1) - discrete_normal(open_stream(1), 32, dimension)
    squares = sum(step**2 for step in steps[0].tolist())
    assert squares <= made.steps_of_bound**2
    assert squares == pytest.approx(made.steps_of_bound**2, rel=1e-6)


def test_clip_keeps_vectors_of_the_ball_and_shortens_others() -> None:
    found = LARGE.clip([[0.1, -0.2, 0.3], [3, 0, 4], [1e308, 1e308, 0], [5e-324, 0, 0]])
    assert found[0].tolist() == [0.1, -0.2, 0.3]
    assert found[1] == pytest.approx([0.6, 0, 0.8])
    assert found[2] == pytest.approx([0.5**0.5, 0.5**0.5, 0])
    assert found[3].tolist() == [5e-324, 0, 0]


# -- the estimate ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_estimate_is_the_mean_vector_with_its_errors() -> None:
    made = DiscreteGaussian(dimension=400, norm_bound=2, epsilon=8, delta="1e-6")
    vectors = made.clip(np.random.default_rng(2).normal(size=(2000, 400)))
    reports = made.randomize(vectors, rng=4)
    parts = [made.aggregate(part) for part in np.array_split(reports, 3)]
    found = made.estimate(parts[2].merge(parts[0]).merge(parts[1]))
    assert found.reports == 2000
    assert (found.mean == made.estimate(reports).mean).all()
    scores = (found.mean - vectors.mean(axis=0)) / found.std_errors
    assert scores.std() == pytest.approx(1, abs=0.1)
    low, high = found.interval(0.9)
    assert ((low <= vectors.mean(axis=0)) & (vectors.mean(axis=0) <= high)).mean() == pytest.approx(0.9, abs=0.04)
    assert found.to_rows()[7]["mean"] == found.mean[7]
    assert made.contributions(reports).mean(axis=0) == pytest.approx(found.mean)
    assert made.utility(2000)["std_error"] == pytest.approx(found.std_errors[0])


def test_aggregates_of_other_mechanisms_or_too_many_reports_are_not_merged() -> None:
    other = DiscreteGaussian(dimension=3, norm_bound=1, rho=1)
    one = LARGE.aggregate(LARGE.randomize([[0, 0, 1]], rng=1))
    with pytest.raises(NotSupported, match="different mechanisms"):
        one.merge(other.aggregate(other.randomize([[0, 0, 1]], rng=1)))
    one.reports = 1 << 22
    with pytest.raises(NotSupported, match="at most 4194304 vectors"):
        one.merge(LARGE.aggregate(LARGE.randomize([[0, 0, 1]], rng=1)))


# -- what is charged, and what is refused ----------------------------------------------------------------------


def test_charge_under_zcdp_adds_up_rho_and_under_basic_is_refused() -> None:
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=1,1e-6,zcdp"])
        accountant.set_policy("plain", ["lifetime=100,1e-6"])
        half = DiscreteGaussian(dimension=2, norm_bound=1, rho="0.012")
        receipts = [accountant.spend("alice", half) for _ in range(3)]
        assert [receipt.status for receipt in receipts] == ["spent", "spent", "refused"]
        assert receipts[0].checked == "audited"
        assert accountant.spend("bob", half, policy="plain").status == "refused"


def test_level_of_a_mechanism_that_verify_leaves_open_is_audited() -> None:
    assert checked(DiscreteGaussian) == "audited"
    assert checked_at(LARGE) == "audited"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0, 0, 1.001]], "position 0 .* larger norm.* clip"),
        ([[0, 0, 0], [0, math.nan, 0]], "position 1 .* not finite"),
        ([[0, -math.inf, 0]], "not finite"),
        ([[0, 0]], "shape"),
        ([0, 0, 0], "shape"),
        ("abc", "str"),
        (None, "shape"),
        ([[0, 0], [0]], "list"),
    ],
)
def test_randomize_of_a_wrong_vector_is_refused(values: Any, message: str) -> None:
    with pytest.raises(OutsideDomain, match=message):
        LARGE.randomize(values)


@pytest.mark.parametrize(
    "reports", [[[0.0, 0.0, 0.0]], [[1, 2]], [1, 2, 3], [[0, 0, 1 << 40]], [[0, 0, -(1 << 63)]], None, "abc"]
)
def test_reports_that_no_client_sends_are_refused(reports: Any) -> None:
    for method in (LARGE.aggregate, LARGE.check_reports, LARGE.estimate, LARGE.contributions):
        with pytest.raises(NotSupported):
            method(reports)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"epsilon": 1}, "delta"),
        ({"delta": "1e-6"}, "epsilon"),
        ({}, "Give both epsilon and delta, or rho"),
        ({"rho": 1, "epsilon": 1}, "left out"),
        ({"epsilon": 1000, "delta": "0.9"}, "from 1E-10 to 512"),
        ({"rho": "1e-11"}, "rho"),
    ],
)
def test_wrong_parameters_are_refused(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        DiscreteGaussian(dimension=2, norm_bound=1, **declared)


@pytest.mark.exhaustive
def test_vectors_of_many_blocks_are_within_the_ball_as_whole_numbers() -> None:
    dimension = (1 << 22) + 5
    made = DiscreteGaussian(dimension=dimension, norm_bound=1, rho=512)
    vector = made.clip([np.ones(dimension)])
    steps = made.randomize(vector, rng=1) - discrete_normal(open_stream(1), 32, dimension)
    squares = sum(int(step) ** 2 for step in steps[0].tolist())
    assert made.steps_of_bound**2 * (1 - 1e-6) < squares <= made.steps_of_bound**2
