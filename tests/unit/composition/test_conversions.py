"""The conversion of ρ to (ε, δ), against many digits: also for a δ next to one, or a ρ next to zero."""

from __future__ import annotations

from decimal import Decimal

import mpmath
import pytest

from ldp_budget import Limit
from ldp_budget.composition import compose
from ldp_budget.composition.filters import epsilon_of_rho
from ldp_budget.guarantees import Pure


def _best_by_mpmath(rho: mpmath.mpf, log_delta: mpmath.mpf) -> mpmath.mpf:
    """The least ρα + ln((α-1)/α) - (ln δ + ln α)/(α-1) over α > 1, at the root of its derivative."""
    low, high = mpmath.log(log_delta * -1e-9), mpmath.log(mpmath.sqrt(-log_delta / rho)) + 1
    low = min(low, high - 100)
    with mpmath.workdps(40):
        for _ in range(100):
            middle = (low + high) / 2
            x = mpmath.exp(middle)
            if x * x * rho + mpmath.log1p(x) > -log_delta:
                high = middle
            else:
                low = middle
    x = mpmath.exp(high)
    return rho * (1 + x) + mpmath.log(x / (1 + x)) - (log_delta + mpmath.log1p(x)) / x


@pytest.mark.some(3)
@pytest.mark.parametrize("digits", [1, 30, 40])
@pytest.mark.parametrize("rho", ["1e-300", "1e-60", "0.5", "200", "1000000"])
def test_conversion_of_rho_is_above_the_optimum_and_close_to_it(rho: str, digits: int) -> None:
    with mpmath.workdps(450):
        for delta in (f"1e-{digits}", "0." + "9" * digits, f"1e-{10 * digits}"):
            found = epsilon_of_rho(Decimal(rho), Decimal(delta))
            best = _best_by_mpmath(mpmath.mpf(rho), mpmath.log(mpmath.mpf(delta)))
            assert mpmath.mpf(str(found)) >= best * (1 - mpmath.mpf("1e-60"))
            assert mpmath.mpf(str(found)) <= max(best, 0) * (1 + mpmath.mpf("1e-12")) + mpmath.mpf("1e-30")


@pytest.mark.parametrize(
    ("bound", "delta"),
    [
        ("200", "0." + "9" * 40),
        ("1000", "0." + "9" * 39),
        ("1e-50", "1e-300"),
        ("1e-42", "1e-100"),
        ("1e-39", "1e-70"),
    ],
)
def test_rules_never_state_less_than_the_loss_of_one_randomized_response(bound: str, delta: str) -> None:
    with mpmath.workdps(450):
        growth = mpmath.exp(mpmath.mpf(bound))
        # δ(ε) = (e^bound - e^ε)/(1 + e^bound), solved for ε.
        truth = mpmath.log(growth - mpmath.mpf(delta) * (1 + growth))
        for rule in ("zcdp", "renyi", "renyi:1.01", "gdp", "exact"):
            total = compose([(Pure(bound), 1)], delta=delta, rule=rule)
            assert mpmath.mpf(repr(total.epsilon)) >= truth


@pytest.mark.slow
def test_conversion_with_delta_near_one_returns_a_bound() -> None:
    delta = "0." + "9" * 400
    assert 0 < epsilon_of_rho(Decimal(10**6), Decimal(delta)) <= 10**6
    for rule in ("zcdp", "renyi", "renyi:3", "gdp", "exact"):
        assert compose([(Pure(2), 1)], delta=delta, rule=rule).epsilon <= 2
        if rule != "exact":
            assert any(Limit("lifetime", "100", delta, rule).capacity)
