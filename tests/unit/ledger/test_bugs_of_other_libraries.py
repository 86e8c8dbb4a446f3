"""Regression tests for bugs of other libraries' budgets and ledgers; each names its source."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.acts import CURVE, coin, promising, spent
from fixed_clock import Clock
from ldp_budget import Accountant
from ldp_budget.composition import compose
from ldp_budget.guarantees import Gaussian, Pure
from ledger_inside import writer_of

# -- sums in floating point (diffprivlib's BudgetAccountant) ---------------------------------------------------


@pytest.mark.parametrize(
    ("each", "most", "count"), [(0.1, "0.3", 3), (0.1, "1", 10), (0.7, "4.9", 7), (1.1, "3.3", 3)]
)
def test_decimals_are_added_exactly(accountant: Accountant, each: float, most: str, count: int) -> None:
    """3 x 0.1 was refused at 0.3, and 10 x 0.1 accepted although the doubles add up to more."""
    accountant.set_policy("default", [f"lifetime={most}"])
    answers = [accountant.spend("alice", coin(each)).status for _ in range(count + 1)]
    assert answers == ["spent"] * count + ["refused"]
    assert accountant.spend("bob", coin(each), reports=count).status == "spent"
    assert accountant.spend_many(["carol"] * (count + 1), coin(each)).spent == count
    assert accountant.balance("bob").to_json()["limits"][0]["remaining"]["epsilon"] == 0


# -- too small to see, once nothing is left --------------------------------------------------------------------


@pytest.mark.parametrize("tiny", [5e-324, "1e-310", "1e-30", "1e-10", "1e-9"])
def test_subnormal_spend_after_exhaustion_is_refused(accountant: Accountant, tiny: Any) -> None:
    """It was lost in the sum, and so free for ever."""
    accountant.set_policy("default", ["lifetime=1", "lifetime=4,1e-6,zcdp", "day=4,1e-6,gdp"])
    mechanism = promising(Pure(tiny))
    costs = mechanism.guarantee.costs()
    assert all(amount for amount in (costs.epsilon, costs.rho, costs.mu_squared))
    assert accountant.spend("alice", coin("0.05"), reports=20).status == "spent"
    assert accountant.quote("alice", mechanism).affordable_reports == 0
    assert accountant.spend("alice", mechanism).status == "refused"
    assert accountant.reserve("alice", mechanism).status == "refused"
    assert accountant.spend_many(["alice"], mechanism).refused == 1
    assert spent(accountant, "alice")["lifetime"] == 1


# -- check, then act (diffprivlib: eight threads spent 207 of 200) ---------------------------------------------


# -- work that grows with the past (diffprivlib 22 µs to 5.7 ms, opendp 102 µs to 7 ms) -------------------------


@pytest.mark.slow
@pytest.mark.some(3)
@pytest.mark.parametrize("limit", ["lifetime=1000", "lifetime=1000,1e-6,zcdp", "lifetime=1000,1e-6,gdp"])
def test_spend_work_does_not_grow_with_the_history(accountant: Accountant, clock: Clock, limit: str) -> None:
    """Counted in steps of SQLite's machine, which do not depend on how busy this one is."""
    accountant.set_policy("default", [limit, "day=900"])
    connection = writer_of(accountant)
    assert connection is not None

    def steps() -> int:
        count = 0

        def step() -> None:
            nonlocal count
            count += 1

        connection.set_progress_handler(step, 1)
        accountant.spend("alice", coin("0.01"), key=str(clock.now))
        accountant.spend("alice", promising(CURVE), label="home")
        connection.set_progress_handler(None, 1)
        return count

    def pass_time(spends: int) -> int:
        for _ in range(spends):
            clock.advance(minutes=1)
            accountant.spend("alice", coin("0.01"), key=str(clock.now))
        clock.advance(minutes=1)
        return steps()

    early = pass_time(10)
    assert early > 100
    assert pass_time(1000) <= 1.1 * early


# -- one refusal kills it for ever (opendp's filter) -----------------------------------------------------------


# -- a count that is not counted (dp-accounting: 100 x RR(1) reported as 1.0) -----------------------------------


# -- rounded to the unsafe side (dp-accounting, autodp, diffprivlib) ---------------------------------------------


@pytest.mark.slow
@settings(max_examples=40)
@given(
    epsilon=st.decimals("0.001", "1.5", places=4),
    most=st.decimals("0.5", "6", places=3),
    delta=st.sampled_from(("1e-3", "1e-6", "1e-12", "1e-20")),
    rule=st.sampled_from(("zcdp", "gdp")),
    gaussian=st.booleans(),
)
def test_granted_charges_compose_to_at_most_the_limit(
    epsilon: Decimal, most: Decimal, delta: str, rule: str, gaussian: bool
) -> None:
    """And one report more would not: nothing is granted by rounding, and next to nothing lost."""
    guarantee = Gaussian(epsilon) if gaussian else Pure(epsilon)
    mechanism = promising(guarantee)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [f"lifetime={most},{delta},{rule}"])
        fits = accountant.quote("alice", mechanism).affordable_reports
        if fits:
            assert accountant.spend("alice", mechanism, reports=fits).status == "spent"
            assert Decimal(compose([(guarantee, fits)], delta=delta, rule=rule).epsilon) <= most
        assert accountant.spend("alice", mechanism).status == "refused"
        over = compose([(guarantee, fits + 1)], delta=delta, rule=rule).epsilon
        assert Decimal(over) > most * (1 - Decimal("1e-6"))


# -- holds that run out ------------------------------------------------------------------------------------------


# -- a failed open answered by a new file --------------------------------------------------------------------------


# -- a client that sends the value as it is (pure-ldp) ---------------------------------------------------------------
