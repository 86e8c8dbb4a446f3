"""Certified figures and decisions do not depend on the decimal context of the caller.

Python's operators on `Decimal` round to the context of the calling thread, which is the caller's to set.
"""

from __future__ import annotations

from decimal import Context, Decimal, localcontext

from ldp_budget import Limit
from ldp_budget.accounting.plans import Plan
from ldp_budget.accounting.policies import PlanTerms, Policy
from ldp_budget.guarantees import Approximate
from ldp_budget.guarantees.fixed_point import exact_sum, float_down


def test_plan_prices_are_added_to_the_last_digit() -> None:
    shares = ("0.5", "1e-30", "1e-300")
    first, *others = [PlanTerms.of(Plan(((Approximate("0.1", each), 1),), Decimal(each))) for each in shares]
    policy = Policy("two", (Limit("lifetime", 1, "0.5"),), plan=first, earlier=tuple(others))
    epsilon, delta = policy.planned()
    assert delta == Decimal("0.5" + "0" * 28 + "1" + "0" * 269 + "1")
    assert policy.overdrawn_by((epsilon, delta)) is not None


def test_exact_sums_and_doubles_below_are_exact() -> None:
    with localcontext(Context(prec=3)):
        assert exact_sum([Decimal("1e400"), Decimal("1e-400"), Decimal("-1e400")]) == Decimal("1e-400")
        assert float_down(Decimal("1.2345")) == 1.2345
        assert float_down(Decimal("1.23456789012345678901234567890")) <= 1.2345678901234567
