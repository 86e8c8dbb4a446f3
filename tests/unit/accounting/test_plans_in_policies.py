"""A plan in a policy: its reports are admitted in any order, and not one report more."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ldp_budget
from contract.acts import CURVE, check, coin, promising
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter
from ldp_budget.accounting import plans
from ldp_budget.accounting.plans import Plan
from ldp_budget.composition import Bound, compose
from ldp_budget.guarantees import Approximate, Laplace
from ldp_budget.guarantees.fixed_point import decimal

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


def test_plan_quota_belongs_to_a_guarantee_and_not_to_a_mechanism(accountant: Accountant) -> None:
    """Mechanisms that promise the same share a quota; so one more of either is refused."""
    yes, no = (ldp_budget.mechanism("gaussian")(epsilon=1, delta="1e-9", sensitivity=s) for s in (1, 2))
    assert yes.fingerprint != no.fingerprint
    assert yes.guarantee == no.guarantee
    accountant.set_policy("default", [], plan=plan((yes, 2), (no, 1)))
    assert [accountant.spend("alice", mechanism).status for mechanism in (no, no, yes)] == ["spent"] * 3
    assert not accountant.spend("alice", yes)
    assert used(accountant, "alice") == [(3, 3)]
    check(accountant)


def test_plan_quota_refuses_reports_that_exceed_it_together(accountant: Accountant) -> None:
    accountant.set_policy("default", [], plan=plan((ONE, 3)))
    assert accountant.spend("alice", ONE, reports=2)
    refused = accountant.spend("alice", ONE, reports=2)
    assert (refused.status, refused.binding, refused.affordable_reports) == ("refused", ("plan",), 1)
    assert used(accountant, "alice") == [(3, 2)]
    check(accountant)


def test_plan_quota_is_returned_by_a_void_and_not_by_an_expiry(accountant: Accountant, clock: Clock) -> None:
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


def test_plan_with_memoized_reports_uses_the_quota_at_their_cap(accountant: Accountant) -> None:
    rappor = promising(CURVE)
    both = plan((rappor, 2))
    accountant.set_policy("default", [], plan=both)
    assert both.epsilon > 8, "two values at the cap of 4.39 each"
    assert [accountant.spend("alice", rappor, label="home").status for _ in range(3)] == ["spent", "spent", "refused"]
    check(accountant)


# -- with limits --------------------------------------------------------------------------------------------


# -- successors ----------------------------------------------------------------------------------------------

WIDE = "lifetime=99,1e-3"
"""A lifetime limit that all of these plans fit in together."""


def test_plan_successor_adds_its_full_price(accountant: Accountant) -> None:
    first, second, third = plan((ONE, 2)), plan((HALF, 3)), plan((TENTH, 9))
    accountant.set_policy("default", [], plan=first)
    accountant.spend("alice", ONE)
    accountant.set_policy("default", [WIDE], plan=second)
    prices = [decimal(p.epsilon) for p in (first, second, third)]
    assert accountant.policy().planned() == (prices[0] + prices[1], 2 * DELTA), "though one report was charged of two"
    assert not accountant.spend("alice", ONE), "what the old plan had left is gone"
    accountant.spend("bob", HALF)
    accountant.set_policy("default", [WIDE], plan=third)
    assert accountant.policy().planned() == (sum(prices), 3 * DELTA)
    check(accountant)


def test_plan_successor_without_a_lifetime_limit_raises(accountant: Accountant) -> None:
    """A plan alone is a bound for a lifetime; a row of plans is none."""
    accountant.set_policy("default", [], plan=plan((ONE, 2)))
    accountant.spend("alice", ONE)
    for limits in ([], ["day=1"]):
        with pytest.raises(
            InvalidParameter, match="limit must be given for the lifetime, because this plan follows another"
        ):
            accountant.set_policy("default", limits, plan=plan((HALF, 3)))
    assert accountant.policy().version == 1


def test_plan_prices_together_must_fit_the_lifetime_limit(accountant: Accountant) -> None:
    first, second = plan((ONE, 2)), plan((HALF, 3))
    both = decimal(first.epsilon) + decimal(second.epsilon)
    accountant.set_policy("default", [f"lifetime={both},2e-6"], plan=first)
    accountant.spend("alice", ONE)
    with pytest.raises(InvalidParameter, match=f"plan must be .*: got .*{both}"):
        accountant.set_policy("default", [f"lifetime={both - Decimal('1e-9')},2e-6"], plan=second)
    assert accountant.set_policy("default", [f"lifetime={both},2e-6"], plan=second).version == 2


# -- the same plan again -------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [1e-12, 1e-3])
def test_plan_with_a_changed_price_gives_no_fresh_quota(accountant: Accountant, change: float) -> None:
    """A release of the library that computes another price finds the plan that was declared, at its first price."""
    first = plan((ONE, 2))
    accountant.set_policy("default", [], plan=first)
    accountant.spend("alice", ONE, reports=2)
    later = Plan(first.charges, DELTA, price=first.epsilon + change)
    assert accountant.set_policy("default", [], plan=later).version == 1
    assert accountant.set_policy("default", ["day=9"], plan=later).version == 2, "something else is new"
    assert accountant.set_policy("other", ["day=9"], plan=later).version == 1
    for name in ("default", "other"):
        assert accountant.policy(name).planned() == (decimal(first.epsilon), DELTA)
        assert not accountant.spend("alice", ONE, policy=name)
        assert used(accountant, "alice", name) == [(2, 2)]
    check(accountant)


@pytest.fixture
def sealed_at(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> Callable[[Plan, float], None]:
    """Set a plan as a release would have that found another price, and charge it."""

    def seal(terms: Plan, price: float) -> None:
        with monkeypatch.context() as release:
            release.setattr(plans, "compose", lambda charges, delta, rule: Bound(price, price, float(delta)))
            accountant.set_policy("default", [], plan=Plan(terms.charges, DELTA))
        assert accountant.spend("alice", HALF).status == "spent"

    return seal


@pytest.mark.slow
def test_plan_price_of_an_earlier_release_stays(
    accountant: Accountant, sealed_at: Callable[[Plan, float], None]
) -> None:
    """Both certified prices are valid: the stored one is sealed, although it could not be declared now."""
    now = plan((HALF, 40), (promising(Laplace("0.3")), 3))
    lower = compose(now.charges, delta=DELTA, rule="exact").lower
    then = (lower + now.epsilon) / 2
    assert lower < then < now.epsilon
    sealed_at(now, then)
    assert accountant.set_policy("default", [], plan=now).version == 1
    assert accountant.policy().planned() == (decimal(then), DELTA)
    check(accountant)


def test_plan_with_an_impossible_stored_price_gets_a_new_price_when_set_again(
    accountant: Accountant, sealed_at: Callable[[Plan, float], None]
) -> None:
    now = plan((HALF, 40))
    sealed_at(now, 1.0)
    assert accountant.spend("alice", HALF).status == "spent", "the ledger opens and its quotas hold"
    assert accountant.set_policy("default", [], plan=now).version == 2
    assert accountant.policy().planned() == (decimal(now.epsilon), DELTA)
    assert used(accountant, "alice") == [(40, 2)]
    assert accountant.set_policy("default", [], plan=now).version == 2
    accountant.set_policy("other", [WIDE], plan=plan((ONE, 1)))
    both = decimal(now.epsilon) + decimal(plan((ONE, 1)).epsilon)
    accountant.set_policy("scant", [f"lifetime={both - Decimal('1e-9')},1e-3"], plan=plan((ONE, 1)))
    assert f"cost (ε = {both:.12g}" in accountant.spend("alice", ONE, policy="scant").why
    assert accountant.spend("alice", ONE, policy="other").status == "spent"
    check(accountant)


# -- every plan that a user has used -------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(("0", "2", "4", "99"))), max_size=8))
def test_plan_random_histories_fit_the_lifetime_limit(steps: list[tuple[int, str]]) -> None:
    """Compare with a sum over the journal's quotas."""
    three = [plan((ONE, 2)), plan((HALF, 4)), plan((TENTH, 9))]
    mechanisms = [ONE, HALF, TENTH]
    seen: set[int] = set()
    with Accountant(":memory:") as accountant:
        for number, (chosen, lifetime) in enumerate(steps):
            limits = [] if lifetime == "0" else [f"lifetime={lifetime},1e-3"]
            accountant.set_policy(str(number), limits, plan=three[chosen])
            price = sum(decimal(three[each].epsilon) for each in {*seen, chosen})
            fits = price <= Decimal(lifetime) if limits else seen <= {chosen}
            answer = accountant.spend("alice", mechanisms[chosen], policy=str(number))
            assert bool(answer) <= fits
            assert fits or answer.why
            assert bool(answer) == (fits and not answer.binding)
            seen |= {chosen} if answer else set()
        check(accountant)


def test_plan_without_a_certified_price_raises() -> None:
    mixed = plan((ONE, 2), (promising(Approximate("0.5", "1e-8")), 3))
    total = compose([(ONE.guarantee, 2), (Approximate("0.5", "1e-8"), 3)], delta=DELTA, rule="exact")
    assert total.lower <= mixed.epsilon == total.epsilon
    with pytest.raises(ldp_budget.NotSupported, match="finite price"):
        plan((promising(Approximate("0.5", "1e-6")), 3))
    with pytest.raises(ValueError, match="at least"):
        Plan(((ONE, 2),), DELTA, price=0.5)
