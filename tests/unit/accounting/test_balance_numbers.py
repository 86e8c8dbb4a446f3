"""Numbers in balances and receipts: spent is rounded up, left is rounded down, and the exact units are included."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget import Accountant, Limit, compose, mechanism
from ldp_budget.accounting.receipts import LimitState
from ldp_budget.guarantees.fixed_point import LARGEST, Costs, from_units

DIGITS = {"epsilon": 9, "delta": 18, "rho": 12, "mu_squared": 12}


@pytest.mark.slow
@given(st.integers(0, LARGEST), st.sampled_from(list(DIGITS)))
def test_balance_numbers_are_never_optimistic(units: int, name: str) -> None:
    """Also where a double cannot hold the digits: it is shown as it prints, and that is on the safe side."""
    limit = Limit("day", "4e9", "0.999", "basic") if name in ("epsilon", "delta") else Limit("day", 50, "0.9", "zcdp")
    state = LimitState(limit, Costs(0, 0, 0, 0)._replace(**{name: units}), None)
    spent, left, most = (getattr(each, name) for each in (state.spent, state.remaining, state.capacity))
    assert Decimal(repr(spent)) >= from_units(units, DIGITS[name])
    admitted, remaining = (getattr(each, name) for each in (limit.capacity, limit.remaining(state.spent_units)))
    for shown, exact in ((left, remaining), (most, admitted)):
        assert (shown is None) == (exact is None)
        assert exact is None or Decimal(repr(shown)) <= from_units(exact, DIGITS[name])


def test_balance_numbers_of_many_digits_round_outward() -> None:
    limit = Limit("day", "4000000000.000000009")
    state = LimitState(limit, Costs(10**18 + 1, 0, 0, 0), None)
    assert (state.spent.epsilon, state.remaining.epsilon) == (1000000000.0000001, 3000000000.0)
    assert state.to_json()["remaining"]["epsilon"] == 3000000000.0000005, "what is printed is rounded up, as it was"


@pytest.mark.parametrize(
    ("rule", "reports", "charged"),
    [
        ("zcdp", 5, {"name": "discrete-gaussian", "dimension": 2, "norm_bound": 1, "rho": "0.003"}),
        ("zcdp", 3, {"name": "declared", "rho": "0.01", "source": "a test"}),
        ("gdp", 7, {"name": "gaussian", "sigma": 10}),
        ("gdp", 2, {"name": "oue", "epsilon": "0.1", "domain_size": 4}),
        ("renyi:12", 4, {"name": "gaussian", "sigma": 10}),
    ],
)
def test_spent_epsilon_of_rules_with_a_unit_of_their_own_is_that_of_compose(
    accountant: Accountant, rule: str, reports: int, charged: dict[str, Any]
) -> None:
    """It was infinite where a report has no ε of its own."""
    made = mechanism(charged.pop("name"))(**charged)
    accountant.set_policy("default", [Limit("lifetime", epsilon=4, delta="1e-6", rule=rule)])
    assert accountant.balance("alice").limits[0].spent.epsilon == 0
    assert accountant.spend("alice", made, reports=reports)
    spent = accountant.balance("alice").limits[0].spent.epsilon
    total = compose([(made, reports)], delta="1e-6", rule=rule).epsilon
    assert spent is not None
    assert total <= spent * (1 + 1e-15)
    assert spent == pytest.approx(total, rel=1e-6)


def test_odometer_of_memoised_reports_is_not_above_the_charged_sum(accountant: Accountant) -> None:
    rappor = mechanism("rappor").calibrate(bits=16, hashes=1, cohorts=1, epsilon=1, epsilon_lifetime=2)
    accountant.set_policy("default", [Limit("lifetime", epsilon=100)])
    exact = [1, 2, 3, 4, 4.5878, 4.8695]
    for label, at_least in zip([None] * 3 + ["x"] * 3, exact, strict=True):
        accountant.spend("alice", rappor, label=label)
        balance = accountant.balance("alice")
        assert balance.odometer is not None
        assert at_least - 1e-3 <= balance.odometer["epsilon"] <= balance.limits[0].spent.epsilon + 1e-12


def test_odometer_of_many_labels_composes_their_caps(accountant: Accountant) -> None:
    kept = mechanism("d-bit-flip").calibrate(epsilon="0.5", buckets=60, bits=60, memoize=True)
    accountant.set_policy("default", [Limit("lifetime", epsilon=100, delta="1e-6", rule="zcdp")])
    for value in range(50):
        accountant.spend("alice", kept, label=f"{value}")
    odometer = accountant.balance("alice").odometer
    assert odometer is not None
    assert odometer["epsilon"] < 21 < 50 * 0.5
