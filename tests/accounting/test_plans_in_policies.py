"""A plan in a policy: what was priced beforehand is admitted in any order, and not one report more."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ldp_budget
from conftest import Clock
from ldp_budget import Accountant, InvalidParameter, Mechanism
from ldp_budget.accounting.plans import Plan
from ldp_budget.composition import compose
from ldp_budget.guarantees import SAME_CHANGE_PATTERN, Approximate, Memoised
from ldp_budget.guarantees.amounts import decimal
from ledger_contract import CURVE, check, coin, promising, spent

ONE, HALF, TENTH = coin(1), coin("0.5"), coin("0.1")
DELTA = Decimal("1e-6")


def plan(*charges: tuple[Any, int]) -> Plan:
    return Plan(charges, DELTA)


def used(accountant: Accountant, user: str, policy: str = "default") -> list[tuple[int, int]]:
    """(quota, used) of each of the plan's guarantees."""
    quotas = accountant.balance(user, policy).to_json().get("quotas", [])
    assert all(row["left"] == row["quota"] - row["used"] for row in quotas)
    return sorted((row["quota"], row["used"]) for row in quotas)


# -- quotas --------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from((ONE, HALF, TENTH)), st.integers(1, 3)), max_size=12))
def test_any_order_is_admitted_up_to_the_quotas(asked: list[tuple[Mechanism, int]]) -> None:
    quotas = {ONE: 2, HALF: 4, TENTH: 5}
    left = Counter(quotas)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [], plan=plan(*quotas.items()))
        for mechanism, reports in asked:
            fits = reports <= left[mechanism]
            quote = accountant.quote("alice", mechanism, reports=reports)
            assert quote.affordable_reports == left[mechanism]
            receipt = accountant.spend("alice", mechanism, reports=reports)
            assert (receipt.status, receipt.binding) == (("spent", ()) if fits else ("refused", ("plan",)))
            left[mechanism] -= reports * fits
            assert receipt.affordable_reports == left[mechanism]
        assert used(accountant, "alice") == sorted((count, count - left[m]) for m, count in quotas.items())
        check(accountant)


def test_a_plan_costs_less_than_its_reports_one_by_one(accountant: Accountant) -> None:
    """That is what it is for: a list fixed beforehand may be priced exactly."""
    weekly = plan((HALF, 52))
    assert weekly.epsilon == compose([(HALF.guarantee, 52)], delta=DELTA, rule="exact").epsilon < 26
    accountant.set_policy("default", [], plan=weekly)
    assert accountant.spend("alice", HALF, reports=52).status == "spent"
    assert accountant.spend("alice", HALF).status == "refused"


def test_a_quota_belongs_to_a_guarantee_and_not_to_a_mechanism(accountant: Accountant) -> None:
    """Mechanisms that promise the same share a quota; so one more of either is refused."""
    yes, no = (ldp_budget.mechanism("gaussian")(epsilon=1, delta="1e-9", sensitivity=s) for s in (1, 2))
    assert yes.fingerprint != no.fingerprint
    assert yes.guarantee == no.guarantee
    accountant.set_policy("default", [], plan=plan((yes, 2), (no, 1)))
    assert [accountant.spend("alice", mechanism).status for mechanism in (no, no, yes)] == ["spent"] * 3
    assert not accountant.spend("alice", yes)
    assert used(accountant, "alice") == [(3, 3)]
    check(accountant)


def test_what_the_plan_does_not_hold_is_refused_however_small(accountant: Accountant) -> None:
    accountant.set_policy("default", [], plan=plan((ONE, 2)))
    refused = accountant.spend("alice", coin("1e-9"))
    assert (refused.status, refused.affordable_reports) == ("refused", 0)
    assert "the plan of policy default has no such charge" in refused.explain()
    assert not accountant.spend("alice", coin("0.999999999")), "a smaller ε is another charge"


def test_users_have_quotas_of_their_own(accountant: Accountant) -> None:
    accountant.set_policy("default", [], plan=plan((ONE, 1)))
    assert [bool(accountant.spend(user, ONE)) for user in ("alice", "bob", "alice")] == [True, True, False]
    assert (used(accountant, "alice"), used(accountant, "carol")) == ([(1, 1)], [(1, 0)])


def test_a_void_returns_the_quota_and_an_expiry_does_not(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", [], plan=plan((ONE, 2)))
    voided = accountant.reserve("alice", ONE).receipt or ""
    accountant.reserve("alice", ONE, expires=5)
    assert not accountant.spend("alice", ONE)
    accountant.void(voided)
    accountant.void(voided)
    assert used(accountant, "alice") == [(2, 1)]
    assert accountant.spend("alice", ONE).status == "spent"
    clock.advance(seconds=5)
    assert not accountant.spend("alice", ONE)
    check(accountant)


def test_memoised_reports_use_the_quota_and_stand_as_their_cap(accountant: Accountant) -> None:
    rappor = promising(CURVE)
    both = plan((rappor, 2))
    accountant.set_policy("default", [], plan=both)
    assert both.epsilon > 8, "two values at the cap of 4.39 each"
    assert [accountant.spend("alice", rappor, label="home").status for _ in range(3)] == ["spent", "spent", "refused"]
    check(accountant)


def test_a_plan_under_a_relation_admits_only_what_holds_for_it(accountant: Accountant) -> None:
    pattern = promising(Memoised((1,), 2, None, SAME_CHANGE_PATTERN))
    accountant.set_policy("default", [], plan=plan((pattern, 2)), relation="any")
    assert "admits only promises for any inputs" in accountant.spend("alice", pattern).explain()


# -- beside limits -------------------------------------------------------------------------------------------


def test_limits_bind_beside_the_plan(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=4,1e-6", "day=1"], plan=plan((HALF, 5)))
    assert [accountant.spend("alice", HALF).binding for _ in range(3)] == [(), (), ("day",)]
    clock.advance(days=1)
    assert accountant.spend("alice", HALF, reports=2).status == "spent"
    assert used(accountant, "alice") == [(5, 4)]
    clock.advance(days=1)
    assert accountant.spend("alice", HALF, reports=2).binding == ("plan",)
    check(accountant)


def test_the_lifetime_limit_counts_what_other_policies_charged(accountant: Accountant) -> None:
    accountant.set_policy("other", ["lifetime=9"])
    accountant.set_policy("default", ["lifetime=3,1e-6"], plan=plan((ONE, 2)))
    accountant.spend("alice", coin("1.5"), policy="other")
    assert accountant.spend("alice", ONE).status == "spent"
    assert accountant.spend("alice", ONE).binding == ("lifetime",)


def test_the_price_must_fit_the_lifetime_limit(accountant: Accountant) -> None:
    two = plan((ONE, 2))
    for limit in (f"lifetime={two.epsilon - 1e-6:.9f},1e-6", f"lifetime={two.epsilon},1e-7", "lifetime=9"):
        with pytest.raises(InvalidParameter, match="plan: expected plans that cost together at most the lifetime"):
            accountant.set_policy("default", [limit], plan=two)
    assert accountant.policies() == []
    accountant.set_policy("default", [f"lifetime={two.epsilon},1e-6"], plan=two)


def test_a_plan_needs_no_other_limit(accountant: Accountant) -> None:
    """It is a bound for a lifetime itself; without one, a policy says that it is unbounded."""
    with pytest.raises(InvalidParameter):
        accountant.set_policy("default", [])
    accountant.set_policy("default", [], plan=plan((ONE, 1)))
    accountant.set_policy("daily", ["day=1"], plan=plan((ONE, 1)))
    assert "worst_epsilon_per_year" not in accountant.balance("alice", "daily").to_json()


# -- successors ----------------------------------------------------------------------------------------------


def test_a_successors_full_price_is_added(accountant: Accountant) -> None:
    first, second, third = plan((ONE, 2)), plan((HALF, 3)), plan((TENTH, 9))
    accountant.set_policy("default", [], plan=first)
    accountant.spend("alice", ONE)
    accountant.set_policy("default", [], plan=second)
    prices = [decimal(p.epsilon) for p in (first, second, third)]
    assert accountant.policy().planned() == (prices[0] + prices[1], 2 * DELTA), "though one report was charged of two"
    assert not accountant.spend("alice", ONE), "what the old plan had left is gone"
    accountant.spend("bob", HALF)
    accountant.set_policy("default", [], plan=third)
    assert accountant.policy().planned() == (sum(prices), 3 * DELTA)
    check(accountant)


def test_all_plans_together_must_fit_the_lifetime_limit(accountant: Accountant) -> None:
    first, second = plan((ONE, 2)), plan((HALF, 3))
    both = decimal(first.epsilon) + decimal(second.epsilon)
    accountant.set_policy("default", [f"lifetime={both},2e-6"], plan=first)
    accountant.spend("alice", ONE)
    with pytest.raises(InvalidParameter, match=f"plan: .*; found .{both}"):
        accountant.set_policy("default", [f"lifetime={both - Decimal('1e-9')},2e-6"], plan=second)
    assert accountant.set_policy("default", [f"lifetime={both},2e-6"], plan=second).version == 2


def test_a_plan_nobody_was_charged_under_costs_nothing(accountant: Accountant) -> None:
    first, second = plan((ONE, 2)), plan((HALF, 3))
    accountant.set_policy("default", [], plan=first)
    assert not accountant.spend("alice", TENTH)
    accountant.quote("alice", ONE)
    accountant.set_policy("default", [], plan=second)
    assert accountant.policy().planned() == (decimal(second.epsilon), DELTA)


def test_going_back_to_a_plan_goes_on_with_its_quotas(accountant: Accountant) -> None:
    first, second = plan((ONE, 2)), plan((HALF, 3))
    for chosen, mechanism in ((first, ONE), (second, HALF)):
        accountant.set_policy("default", [], plan=chosen)
        assert accountant.spend("alice", mechanism)
    accountant.set_policy("default", [], plan=first)
    assert accountant.policy().planned() == (decimal(first.epsilon) + decimal(second.epsilon), 2 * DELTA)
    assert used(accountant, "alice") == [(2, 1)]
    assert [bool(accountant.spend("alice", ONE)) for _ in range(2)] == [True, False]
    check(accountant)


def test_the_same_plan_again_is_no_successor(accountant: Accountant) -> None:
    same = plan((ONE, 2))
    for version in (1, 2, 3):
        assert accountant.set_policy("default", [], plan=plan((ONE, 1), (ONE, 1))).version == version
        accountant.spend("alice", ONE)
    assert accountant.policy().planned() == (decimal(same.epsilon), DELTA)
    assert used(accountant, "alice") == [(2, 2)]


def test_one_plan_under_two_names_is_one_plan(accountant: Accountant) -> None:
    for name in ("one", "other"):
        accountant.set_policy(name, [], plan=plan((ONE, 2)))
    granted = [bool(accountant.spend("alice", ONE, policy=name)) for name in ("one", "other", "one", "other")]
    assert granted == [True, True, False, False]


def test_a_plan_can_be_dropped_and_its_charges_still_count(accountant: Accountant) -> None:
    accountant.set_policy("default", [], plan=plan((HALF, 4)))
    accountant.spend("alice", HALF, reports=3)
    accountant.set_policy("default", ["lifetime=2"])
    assert spent(accountant, "alice") == {"lifetime": Decimal("1.5")}
    assert [bool(accountant.spend("alice", HALF)) for _ in range(2)] == [True, False]
    check(accountant)


def test_a_plan_has_a_certified_price_or_is_none() -> None:
    mixed = plan((ONE, 2), (promising(Approximate("0.5", "1e-8")), 3))
    total = compose([(ONE.guarantee, 2), (Approximate("0.5", "1e-8"), 3)], delta=DELTA, rule="exact")
    assert total.lower <= mixed.epsilon == total.epsilon
    with pytest.raises(ldp_budget.NotSupported, match="finite price"):
        plan((promising(Approximate("0.5", "1e-6")), 3))
    with pytest.raises(ValueError, match="below"):
        Plan(((ONE, 2),), DELTA, price=0.5)
