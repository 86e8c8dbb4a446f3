"""The Gaussian mechanism: what it promises from what was declared, and what its client really sends.

The calibration itself is tested in `test_gaussian_calibration`; here it is compared with mpmath again, from the
declared decimals to the stated σ, because a double may be on the wrong side of a decimal.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

import ldp_budget
from exact_numbers import exact, golden
from ldp_budget import InvalidParameter, NotSupported

Gaussian: Any = ldp_budget.mechanism("gaussian")

UNIT = {"lower": 0, "upper": 1}
TARGET = {"epsilon": 1, "delta": "1e-5"}


def delta_of(sigma: mpf, epsilon: mpf, sensitivity: mpf, method: str) -> mpf:
    """δ of a given σ: the printed formula of FedTensor's post, and Balle and Wang's."""
    a, b = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    tail = mpmath.ncdf(a - b)
    return tail if method == "tail" else tail - mpmath.exp(epsilon) * mpmath.ncdf(-a - b)


# -- the promise ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["tail", "exact"])
def test_golden_values_match(method: str) -> None:
    points = [point for point in golden(f"gaussian_sigma_{method}") if float(point[0]["eps"]) > 0]
    assert len(points) >= 12
    for params, value in points:
        target = {"epsilon": params["eps"], "delta": params["delta"], "method": method}
        sensitivity = params["sensitivity"]
        for range_ in ({"sensitivity": sensitivity}, {"lower": 0, "upper": sensitivity}):
            sigma = Gaussian.calibrate(**target, **range_).parameters["sigma"]
            assert 0 <= exact(sigma) / exact(value) - 1 <= mpf("1e-12")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["tail", "exact"])
@settings(max_examples=settings.default.max_examples * 3 // 2)
@given(
    epsilon=st.decimals("1e-8", "1000", places=20).filter(lambda epsilon: epsilon > 0),
    delta=st.one_of(
        st.decimals("1e-12", "0.9", places=25),
        st.decimals("0.9", "0.99999999999999999", places=17),
        st.integers(1, 300).map(lambda digits: Decimal(10) ** -digits),
    ),
    lower=st.decimals("-9", "9", places=22),
    width=st.decimals("0.001", "50", places=22),
)
def test_sigma_meets_the_declared_target(
    method: str, epsilon: Decimal, delta: Decimal, lower: Decimal, width: Decimal
) -> None:
    with localcontext(prec=60):
        upper = lower + width
    made = Gaussian.calibrate(epsilon=epsilon, delta=delta, method=method, lower=lower, upper=upper)
    with mpmath.workdps(100):
        true = delta_of(exact(made.parameters["sigma"]), exact(epsilon), exact(width), method)
        assert true <= exact(delta)
        # And not for a σ much larger: where the nearest doubles are good enough, a little less noise breaks it.
        if delta < Decimal("0.9"):
            less = exact(made.parameters["sigma"]) * (1 - mpf("1e-11"))
            assert delta_of(less, exact(epsilon), exact(width), method) > exact(delta) * (1 - mpf("1e-12"))


@pytest.mark.parametrize("delta", ["0.9999999", "0.99999999999999984", "0.99999999999999999999999"])
def test_sigma_meets_a_delta_that_no_double_equals(delta: str) -> None:
    # The nearest double of each is above it or lies where its distance from 1 has lost all its digits.
    for method in ("tail", "exact"):
        made = Gaussian.calibrate(epsilon="0.1", delta=delta, method=method)
        assert delta_of(exact(made.parameters["sigma"]), exact("0.1"), mpf(1), method) <= exact(delta)


def test_guarantee_is_the_curve_with_its_calibration_point() -> None:
    made = Gaussian.calibrate(epsilon="0.7", delta="1e-6", lower="-1.5", upper="2")
    guarantee = made.guarantee
    assert (guarantee.kind, guarantee.epsilon, guarantee.delta) == ("gaussian", 0.7, 1e-6)
    assert guarantee.loss() == (Decimal("0.7"), Decimal("1e-6"))
    mu = mpf("3.5") / exact(made.parameters["sigma"])
    assert 0 <= exact(guarantee.mu) - mu <= mpf("1e-38")


def test_sigma_can_be_given_in_place_of_a_target() -> None:
    made = Gaussian(sigma=10, lower=0, upper=5)
    assert made.parameters == {"sigma": 10}
    assert made.guarantee.mu == Decimal("0.5")
    # `basic` has no (ε, δ) point to charge, and none is made up.
    assert made.guarantee.loss() is None
    assert made.describe()["guarantee"]["epsilon"] is None
    assert made.notes == ()
    assert "sigma_by_method" not in made.utility()
    assert Gaussian(sigma="0.1").parameters == {"sigma": 0.1}
    with pytest.raises(
        InvalidParameter, match=r"sigma must be left out in calibrate.*: got 10. Call gaussian\(sigma=...\)"
    ):
        Gaussian.calibrate(sigma=10)


# -- what the client sends ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "range_", [UNIT, {"lower": "-3", "upper": "5.5"}, {"lower": "1e6", "upper": "1000000.1"}], ids=str
)
def test_reports_lie_on_the_public_grid(range_: dict[str, Any]) -> None:
    made = Gaussian.calibrate(**TARGET, **range_)
    origin, step = made.grid()
    assert origin == float(range_["lower"])
    assert step == made.parameters["sigma"] / 2**32
    values = np.linspace(float(range_["lower"]), float(range_["upper"]), 500)
    reports = made.randomize(values, rng=1)
    cells = np.rint((reports - origin) / step)
    assert (origin + cells * step == reports).all()
    assert made.aggregate(reports).total == int(cells.sum())


def cell(mechanism: Any, value: float) -> int:
    """The cell of the grid that `value` is put into: with one seed the noise is the same for every value."""
    total: int = mechanism.aggregate(mechanism.randomize([value], rng=9)).total
    return total


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples * 2)
@given(
    lower=st.decimals("-1000", "1000", places=9),
    width=st.decimals("0.01", "1000", places=9),
    epsilon=st.sampled_from(["0.1", "1", "30"]),
    share=st.floats(0, 1),
)
def test_grid_rounding_does_not_increase_the_sensitivity(
    lower: Decimal, width: Decimal, epsilon: str, share: float
) -> None:
    made = Gaussian.calibrate(epsilon=epsilon, delta="1e-6", lower=lower, upper=lower + width)
    ends = float(lower), float(lower + width)
    value = min(max(ends[0] + share * float(width), ends[0]), ends[1])
    first, inside, last = (cell(made, end) for end in (ends[0], value, ends[1]))
    steps = Fraction(width) / Fraction(made.grid()[1])
    assert first <= inside <= last
    assert last - first <= steps
    # Nor is the domain cut: the ends stay apart, but for the doubles they are given in.
    assert last - first >= steps * (1 - Fraction(1, 10**9)) - 2


def test_grid_without_the_cell_of_a_rounded_division() -> None:
    # The double of 0.1 is above 0.1 and here a whole number of steps; the sensitivity falls short of that number.
    made = Gaussian(sigma="0.1", lower=0, upper="0.1")
    assert 0.1 / made.grid()[1] == 2**32
    assert cell(made, 0.1) - cell(made, 0.0) == 2**32 - 1 <= Fraction("0.1") / Fraction(made.grid()[1])


@pytest.mark.slow
def test_intervals_have_their_nominal_coverage() -> None:
    """With more noise than the range is wide, an interval is all of the range, and covers always."""
    for size, runs, least, most in ((5, 2000, 0.93, 1.0), (2000, 400, 0.92, 0.98)):
        made = Gaussian.calibrate(**TARGET, lower=0, upper=10)
        values = np.resize(np.array([0, 0, 1, 4, 10], dtype=float), size)
        reports = made.randomize(np.tile(values, runs), rng=11).reshape(runs, size)
        intervals = [made.estimate(survey).interval(0.95) for survey in reports]
        covered = np.mean([low <= values.mean() <= high for low, high in intervals])
        assert least <= covered <= most


# -- what the server makes of it ------------------------------------------------------------------------------


@pytest.mark.parametrize("report", [1e300, -1e300, 1e8, 1.7e308])
def test_report_too_large_to_be_summed_exactly_is_refused(report: float) -> None:
    with pytest.raises(NotSupported, match="reports must be within 9007199254740992 steps of"):
        Gaussian.calibrate(**TARGET, **UNIT).estimate([0.5, report])
