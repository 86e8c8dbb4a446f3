"""Plans: a fixed list of reports priced once, and composition inverted on the safe side."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ldp_budget
from ldp_budget.accounting.plans import Plan, largest_epsilon
from ldp_budget.composition import capacity, compose
from ldp_budget.errors import InvalidParameter, NotSupported
from ldp_budget.guarantees import Approximate, Guarantee, Laplace, Pure, SymmetricPair, Unbounded, ZeroConcentrated

PAIR = SymmetricPair("0.5", "0.5")


def oue(epsilon: Any) -> Any:
    return ldp_budget.mechanism("oue").calibrate(epsilon=epsilon, domain_size=7)


# -- a plan ---------------------------------------------------------------------------------------------------


def test_plan_price_is_the_exact_composition() -> None:
    plan = Plan([(PAIR, 50)], delta="1e-6")
    assert plan.epsilon == compose([(PAIR, 50)], delta="1e-6", rule="exact").epsilon
    assert f"{plan.epsilon:.2f}" == "13.85"
    assert plan.delta == Decimal("1e-6")


@pytest.mark.slow
def test_plan_merges_equal_guarantees_in_any_order() -> None:
    plan = Plan([(PAIR, 3), (Laplace("0.1"), 2), (PAIR, 4)], delta="1e-6")
    assert dict(plan.counts) == {PAIR: 7, Laplace("0.1"): 2}
    assert plan == Plan([(Laplace("0.1"), 2), (PAIR, 7)], delta=1e-6)


@pytest.mark.slow
def test_plan_round_trips_through_json() -> None:
    plan = Plan([(oue(1), 50), (Laplace("0.1"), 3), (Approximate(1, "1e-9"), 1)], delta="1e-6")
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_plan_from_json_keeps_a_price_unless_it_is_too_low() -> None:
    stored = Plan([(PAIR, 50)], delta="1e-6").to_json()
    assert Plan.from_json({**stored, "epsilon": "14"}).epsilon == 14
    for impossible, why in (("13.8", "at least"), ("-1", "at least"), ("Infinity", "finite"), ("NaN", "finite")):
        with pytest.raises(ValueError, match=why):
            Plan.from_json({**stored, "epsilon": impossible})


@pytest.mark.exhaustive
@pytest.mark.parametrize("charges", [[(Laplace("0.3"), 40)], [(Pure("1e-5"), 10**12), (Laplace("0.7"), 10**12)]])
def test_plan_from_json_with_an_uncertified_price_computes_the_price(charges: list[tuple[Guarantee, int]]) -> None:
    """Neither one between the certified bounds, which may be right, nor any other below the upper one."""
    total = compose(charges, delta="1e-6", rule="exact")
    stored = Plan(charges, delta="1e-6").to_json()
    for share in (0.0, 0.5, 0.999):
        price = total.lower + share * (total.epsilon - total.lower)
        assert Plan(charges, delta="1e-6", price=price).epsilon == total.epsilon
        assert Plan.from_json({**stored, "epsilon": repr(price)}).epsilon == total.epsilon


@pytest.mark.parametrize("missing", ["charges", "delta", "epsilon"])
def test_plan_from_malformed_json_raises(missing: str) -> None:
    stored = Plan([(PAIR, 2)], delta="1e-6").to_json()
    del stored[missing]
    with pytest.raises(ValueError, match=missing):
        Plan.from_json(stored)


@pytest.mark.parametrize("charge", [Unbounded(), Approximate(1, "1e-3")])
def test_plan_without_a_finite_price_raises(charge: Guarantee) -> None:
    with pytest.raises(NotSupported, match="finite price"):
        Plan([(charge, 1)], delta="1e-6")


# -- the largest ε --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["basic", "zcdp", "gdp", "exact"])
def test_solve_fits_and_a_billionth_more_does_not(rule: str) -> None:
    """oue, 50 reports, total (4, 1e-6)."""
    found = largest_epsilon(lambda epsilon: oue(epsilon).guarantee, 50, 4, "1e-6", rule)
    assert found is not None
    assert compose([(oue(found).guarantee, 50)], delta="1e-6", rule=rule).epsilon <= 4
    more = oue(found + Decimal("1e-9")).guarantee
    over = compose([(more, 50)], delta="1e-6", rule=rule).epsilon > 4
    assert over or not within_limit(more, 50, 4, rule)


def within_limit(guarantee: Guarantee, reports: int, total: int, rule: str) -> bool:
    """True if the integer costs fit a limit of (total, 1e-6)."""
    costs = guarantee.costs().times(reports)
    limit = capacity(rule, Decimal(total), Decimal("1e-6"))
    return all(most is None or (cost is not None and cost <= most) for cost, most in zip(costs, limit, strict=True))


def test_solve_by_each_rule_for_fifty_reports_of_oue_matches() -> None:
    bought = {
        rule: str(largest_epsilon(lambda epsilon: oue(epsilon).guarantee, 50, 4, "1e-6", rule))[:5]
        for rule in ("basic", "zcdp", "gdp", "exact")
    }
    assert bought == {"basic": "0.080", "zcdp": "0.157", "gdp": "0.150", "exact": "0.170"}


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.sampled_from(["basic", "zcdp", "gdp"]),
    st.integers(min_value=1, max_value=1000),
    st.integers(min_value=1, max_value=20),
)
def test_solve_result_is_accepted_by_a_ledger(rule: str, reports: int, total: int) -> None:
    found = largest_epsilon(Pure, reports, total, "1e-6", rule)
    assert found is not None
    assert within_limit(Pure(found), reports, total, rule)


def test_solve_respects_the_range_of_the_mechanism() -> None:
    """A report that is hardly ever told apart may have any ε; what the mechanism cannot offer is not proposed."""

    def upto_seven(epsilon: Decimal) -> Guarantee:
        if epsilon > 7:
            raise InvalidParameter("epsilon", "a number <= 7", epsilon)
        return SymmetricPair(epsilon, "1e-9")

    assert largest_epsilon(upto_seven, 1, 1, "1e-6", "exact") == 7


def test_solve_without_a_solution_returns_none() -> None:
    assert largest_epsilon(lambda epsilon: Approximate(epsilon, "1e-6"), 2, 1, "1e-6", "basic") is None
    assert largest_epsilon(Pure, 10, "1e-9", 0, "basic") is None


def test_solve_by_an_inapplicable_rule_raises() -> None:
    with pytest.raises(NotSupported, match="delta > 0"):
        largest_epsilon(Pure, 10, 1, 0, "zcdp")
    with pytest.raises(NotSupported, match="zcdp"):
        largest_epsilon(ZeroConcentrated, 10, 1, "1e-6", "exact")
