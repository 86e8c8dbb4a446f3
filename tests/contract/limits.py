"""Limits, windows, memoised values, plans and shares: what a charge costs, and what a limit admits."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

import ldp_budget
from contract.acts import CURVE, check, coin, everything, made, promising, spent
from contract.places import Place
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, Mechanism
from ldp_budget.accounting.plans import Plan
from ldp_budget.guarantees import SAME_CHANGE_PATTERN, Approximate, Memoised, Pure, ZeroConcentrated


class LimitsContract:
    """Limits, windows, memoised values, plans and shares: what a charge costs, and what a limit admits."""

    # -- limits -------------------------------------------------------------------------------------------

    def test_sliding_limit_counts_the_open_day_and_those_before(self, accountant: Accountant, clock: Clock) -> None:
        accountant.set_policy("default", ["day=1"], unbounded=True)
        assert accountant.spend("alice", coin("0.3"))
        clock.advance(days=1)
        accountant.set_policy("default", ["day=1", "3d=0.7", "7d=20,1e-6,zcdp"], unbounded=True)
        held = accountant.reserve("alice", coin("0.4"), expires=86_400 * 5)
        assert accountant.spend("alice", coin("0.1")).binding == ("3d",)
        many = accountant.spend_many(["alice", *[f"user {number}" for number in range(10)]], coin("0.4"), key="k")
        assert (many.spent, many.refused_users) == (10, ["alice"])
        clock.advance(days=2)
        assert accountant.quote("alice", coin("0.3")).affordable_reports == 1
        accountant.void(held.receipt or "")
        [state] = [each for each in accountant.balance("alice").limits if each.limit.period == "3d"]
        assert state.spent_units.epsilon == 0
        assert accountant.spend("alice", coin("0.7"))
        accountant.erase("user 3")
        check(accountant)

    def test_scoped_limit_counts_its_tag_and_charges_without_tags(
        self, accountant: Accountant, clock: Clock, place: Place
    ) -> None:
        health, ads, both = ["attribute:health"], ["purpose:ads"], ["purpose:ads", "attribute:health"]
        accountant.set_policy("default", ["lifetime=4", "attribute:health:lifetime=40,1e-6,zcdp"])
        assert accountant.spend("alice", coin("0.3"), tags=health, key="k")
        held = accountant.reserve("alice", coin("0.4"), tags=both, expires=86_400 * 5)
        assert accountant.spend("alice", coin("0.1"))
        users = [f"user {number}" for number in range(10)]
        assert accountant.spend_many(["alice", *users], coin("0.2"), key="many", tags=ads).refused == 0
        clock.advance(days=1)
        later = ["lifetime=4", "attribute:health:lifetime=40,1e-6,zcdp", "purpose:ads:3d=0.7", "purpose:ads:day=1"]
        accountant.set_policy("default", later)
        assert accountant.spend("alice", coin("0.1"), tags=ads).binding == ("purpose:ads:3d",)
        assert accountant.spend("alice", coin("0.1"), tags=["purpose:other"])
        assert accountant.spend_many(["alice", *users], coin("0.4"), tags=both).refused_users == ["alice"]
        accountant.void(held.receipt or "")
        assert accountant.spend("alice", coin("0.4"), tags=ads)
        assert accountant.spend("alice", coin("0.3"), tags=health, key="k").repeated
        accountant.erase("user 3")
        told = {state.limit.label: state.spent_units.epsilon for state in accountant.balance("alice").limits}
        assert (told["lifetime"], told["purpose:ads:3d"], told["purpose:ads:day"]) == (
            11 * 10**8,
            7 * 10**8,
            4 * 10**8,
        )
        head = check(accountant)
        accountant = place.reopen(accountant, clock)
        check(accountant, head)
        accountant.close()

    def test_spend_is_granted_exactly_as_often_as_it_fits(self, accountant: Accountant) -> None:
        cases: list[tuple[str, Mechanism, int | None]] = [
            ("lifetime=1", coin("0.3"), 3),
            ("lifetime=1.2", coin("0.3"), 4),
            ("lifetime=10,1e-6", promising(Approximate(1, "3e-7")), 3),
            ("lifetime=1,1e-6,zcdp", promising(ZeroConcentrated("0.004")), None),
            ("lifetime=1,1e-6,zcdp", coin("0.1"), None),
            ("lifetime=1,1e-6,gdp", coin("0.1"), None),
            ("lifetime=1,1e-6,gdp", ldp_budget.mechanism("gaussian")(sigma=10), None),
        ]
        for number, (limit, mechanism, granted) in enumerate(cases):
            policy, alice, bob = f"policy-{number}", f"alice {number}", f"bob {number}"
            (set_limit,) = accountant.set_policy(policy, [limit]).limits
            pairs = zip(set_limit.capacity, mechanism.guarantee.costs(), strict=True)
            expected = min(most // cost for most, cost in pairs if most is not None and cost)
            assert granted in (None, expected), limit
            assert accountant.spend(alice, mechanism, reports=expected - 1, policy=policy)
            assert accountant.quote(alice, mechanism, policy=policy).affordable_reports == 1
            answers = [accountant.spend(alice, mechanism, policy=policy).status for _ in range(3)]
            assert answers == ["spent", "refused", "refused"], limit
            assert accountant.spend(bob, mechanism, reports=expected + 1, policy=policy).status == "refused"
            assert accountant.spend(bob, mechanism, reports=expected, policy=policy).status == "spent"
        check(accountant)

    def test_refusal_changes_nothing_but_its_key(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=1", "day=0.5"])
        accountant.spend("alice", coin("0.4"))
        before = everything(accountant)
        for user, epsilon in (("alice", "0.2"), ("alice", 2), ("bob", "0.6")):
            assert accountant.spend(user, coin(epsilon)).status == "refused"
            assert accountant.reserve(user, coin(epsilon)).status == "refused"
            assert accountant.spend_many([user, user], coin(epsilon)).refused == 2
        assert everything(accountant) == before
        check(accountant)
        assert accountant.spend("alice", coin(2), key="k").status == "refused"
        after = accountant.stats()
        assert after == {**before[1], "keys": 1, "head": after["head"]}
        assert spent(accountant, "alice") == {"lifetime": Decimal("0.4"), "day": Decimal("0.4")}

    def test_spend_must_fit_every_limit(self, accountant: Accountant, clock: Clock) -> None:
        """Mixing rules is safe only because of that; each may be the one that binds."""
        accountant.set_policy("default", ["lifetime=1.2", "lifetime=3,1e-6,zcdp", "day=2,1e-6,gdp"])
        assert accountant.spend("alice", coin(1)).binding == ("lifetime", "day"), "ρ and μ², though Σε has room"
        assert accountant.spend("alice", coin("0.1"), reports=10).status == "spent"
        assert accountant.spend("alice", coin("0.2")).binding == ("day",), "μ² alone"
        clock.advance(days=1)
        assert accountant.spend("alice", coin("0.2")).status == "spent"
        assert accountant.spend("alice", coin("1e-9")).binding == ("lifetime",), "Σε alone"
        check(accountant)

    def test_spend_without_an_amount_is_refused_by_the_rule_that_needs_it(self, accountant: Accountant) -> None:
        accountant.set_policy("basic", ["lifetime=100,0.1"])
        accountant.set_policy("zcdp", ["lifetime=100,0.1,zcdp"])
        accountant.set_policy("gdp", ["lifetime=100,0.1,gdp"])
        for guarantee, accepting in (
            (Pure(1), {"basic", "zcdp", "gdp"}),
            (Approximate(1, "1e-9"), {"basic"}),
            (Approximate(1, 0), {"basic", "zcdp", "gdp"}),
            (ZeroConcentrated("0.1"), {"zcdp"}),
        ):
            mechanism, user = promising(guarantee), str(guarantee)
            quoted = {name: accountant.quote(user, mechanism, policy=name) for name in ("basic", "zcdp", "gdp")}
            assert {name for name, quote in quoted.items() if not quote.binding} == accepting
            for name in ("basic", "zcdp", "gdp"):
                assert (accountant.spend_many([user + name], mechanism, policy=name).spent == 1) == (
                    name in accepting
                )

    # -- windows and versions -----------------------------------------------------------------------------

    def test_spend_charges_every_window_or_none_and_a_new_window_starts_empty(
        self, accountant: Accountant, clock: Clock
    ) -> None:
        accountant.set_policy("default", ["lifetime=1", "day=0.5", "week=0.8"])
        assert accountant.spend("alice", coin("0.4"))
        assert accountant.spend("alice", coin("0.2")).binding == ("day",)
        clock.advance(days=1)
        assert accountant.spend("alice", coin("0.4"))
        assert spent(accountant, "alice") == {
            "lifetime": Decimal("0.8"),
            "day": Decimal("0.4"),
            "week": Decimal("0.8"),
        }
        assert accountant.spend("alice", coin("0.1")).binding == ("week",)
        clock.advance(days=1)
        assert accountant.spend("alice", coin("0.3")).binding == ("lifetime",)
        assert accountant.spend("alice", coin("0.2"))
        check(accountant)

    def test_new_period_is_backfilled_from_the_journal(self, accountant: Accountant, clock: Clock) -> None:
        """Plain charges, labelled ones, and what was voided; each as if the window had been kept all along."""
        clock.now = datetime(2026, 11, 15, 12, tzinfo=UTC)  # Sunday of last week
        accountant.set_policy("default", ["lifetime=90"])
        accountant.spend("alice", coin(1))
        accountant.spend("alice", promising(CURVE), label="x")
        clock.now = datetime(2026, 11, 16, tzinfo=UTC)  # Monday's first moment
        accountant.spend("alice", coin("0.5"), reports=2)
        accountant.spend("alice", promising(CURVE), label="x", reports=2)
        accountant.spend_many(["alice", "bob"], coin(3))
        accountant.void(accountant.reserve("alice", coin(7)).receipt or "")
        accountant.set_policy("default", ["lifetime=90", "week=50", "month=50", "day=50"])
        alice = spent(accountant, "alice")
        assert alice == {
            "lifetime": Decimal("9.02"),  # 1 + 1 + 3, and three reports of x
            "week": Decimal("10.06"),  # 1 + 3, and two reports of x after one of last week: c(3) + c(1)
            "month": Decimal("9.02"),
            "day": Decimal("10.06"),
        }
        check(accountant)
        accountant.spend("alice", promising(CURVE), label="x")
        assert spent(accountant, "alice")["week"] == Decimal("10.43"), (
            "c(4) + c(1): the curve continues from the journal"
        )
        check(accountant)

    def test_new_version_keeps_the_spent_sums_and_the_rule(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=1,1e-6,zcdp"])
        assert accountant.set_policy("default", ["lifetime=1"]).version == 2, "no user was charged yet"
        accountant.spend("alice", coin("0.8"))
        assert accountant.set_policy("default", ["lifetime=0.5"]).version == 3
        assert accountant.spend("alice", coin("1e-9")).status == "refused"
        with pytest.raises(InvalidParameter, match="which users were charged by"):
            accountant.set_policy("default", ["lifetime=1,1e-6,zcdp"])
        accountant.set_policy("default", ["lifetime=1", "lifetime=9,1e-6,zcdp"])
        assert spent(accountant, "alice")["lifetime"] == Decimal("0.8")
        check(accountant)

    def test_policy_with_relation_any_refuses_other_guarantees(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=90"], relation="any")
        pattern = promising(Memoised((1,), 2, None, SAME_CHANGE_PATTERN))
        assert accountant.spend("alice", pattern, label="x").status == "refused"
        assert accountant.spend_many(["alice", "bob"], pattern).to_json() == {"spent": 0, "refused": 2, "repeated": 0}
        assert accountant.spend("alice", promising(CURVE), label="x").status == "spent"
        check(accountant)

    # -- memoised values ----------------------------------------------------------------------------------

    def test_memoized_reports_cost_along_their_curve(self, accountant: Accountant, clock: Clock) -> None:
        accountant.set_policy("default", ["lifetime=30", "day=30"])
        rappor = promising(CURVE)
        costs = [accountant.spend("alice", rappor, label="home").epsilon for _ in range(5)]
        assert costs == [2.04, 1.35, 0.63, 0.37, 0], "the curve's steps up to the cap, then nothing"
        assert spent(accountant, "alice") == {"lifetime": Decimal("4.39"), "day": Decimal("4.39")}
        assert accountant.spend("alice", rappor, label="work").epsilon == 2.04
        assert accountant.spend("alice", rappor).epsilon == 2.04, "without a label it is a new value"
        assert accountant.spend("bob", rappor, label="home").epsilon == 2.04
        clock.advance(days=1)
        assert accountant.spend("alice", rappor, label="home").epsilon == 0
        assert spent(accountant, "alice")["day"] == Decimal("8.78"), "c(6) + c(5): what earlier windows showed counts"
        check(accountant)

    def test_memoized_reports_cost_their_cap_at_once_under_other_rules(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=30,1e-6,zcdp", "lifetime=30"])
        rappor, whole = promising(CURVE), Pure("4.39").costs()
        for reports in (1, 1, 5):
            accountant.spend("alice", rappor, label="home", reports=reports)
            assert {state.spent_units.rho for state in accountant.balance("alice").limits} == {whole.rho}
        assert spent(accountant, "alice")["lifetime"] == Decimal("4.39")
        check(accountant)

    def test_memoized_reports_without_labels_stop_at_the_cap_of_all_values(
        self, accountant: Accountant, clock: Clock
    ) -> None:
        few = promising(Memoised(("0.3", "0.5"), "0.6", 2))
        accountant.set_policy("default", ["lifetime=2", "day=9"])
        charged = [accountant.spend("alice", few, label=label).epsilon for label in (None, "x", None, None, None)]
        assert charged == [0.3, 0.3, 0.3, 0.3, 0]
        held = accountant.reserve("alice", few, label="x", reports=4).receipt or ""
        assert spent(accountant, "alice") == {"lifetime": Decimal("1.2"), "day": Decimal("1.2")}
        accountant.void(held)
        clock.advance(days=1)
        assert accountant.spend_many(["alice", "bob", "carol"], few).spent == 3
        assert spent(accountant, "alice") == {"lifetime": Decimal("1.2"), "day": Decimal("1.2")}, "0.6 + 0.6"
        assert spent(accountant, "bob") == {"lifetime": Decimal("0.3"), "day": Decimal("0.3")}
        accountant.erase("alice")
        check(accountant)

    def test_void_returns_the_last_step_of_the_curve(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=30", "day=30"])
        rappor = promising(CURVE)
        held = accountant.reserve("alice", rappor, label="home").receipt or ""
        accountant.spend("alice", rappor, label="home")
        voided = accountant.void(held)
        assert (voided.status, spent(accountant, "alice")) == (
            "voided",
            {"lifetime": Decimal("2.04"), "day": Decimal("2.04")},
        )
        assert accountant.spend("alice", rappor, label="home").epsilon == 1.35
        check(accountant)

    # -- plans --------------------------------------------------------------------------------------------

    def test_plan_admits_its_reports_in_any_order_and_not_one_more(self, accountant: Accountant) -> None:
        one, half = coin(1), coin("0.5")
        accountant.set_policy("default", [], plan=Plan(((one, 2), (half, 3)), Decimal("1e-6")))
        for mechanism in (half, one, half, half, one):
            assert accountant.spend("alice", mechanism).status == "spent"
        for mechanism in (one, half, coin("0.1")):
            assert accountant.spend("alice", mechanism).status == "refused"
        assert accountant.spend("bob", half, reports=4).binding == ("plan",)
        check(accountant)

    def test_plans_used_by_a_user_are_all_in_the_sum(self, accountant: Accountant) -> None:
        one, half = coin(1), coin("0.5")
        first, second = Plan(((one, 2),), Decimal("1e-6")), Plan(((half, 3),), Decimal("1e-6"))
        accountant.set_policy("first", [], plan=first)
        accountant.set_policy("second", [], plan=second)
        accountant.set_policy("wide", ["lifetime=4,1e-3"], plan=second)
        assert accountant.spend("alice", one, policy="first")
        assert "another plan" in accountant.spend("alice", half, policy="second").why
        assert accountant.spend("alice", half, policy="wide")
        assert "another plan" in accountant.spend("alice", one, policy="first").why
        check(accountant)

    # -- shares -------------------------------------------------------------------------------------------

    def test_spend_with_a_share_must_fit_the_share_and_the_limit(self, place: Place, clock: Clock) -> None:
        accountant = place.open(clock)
        shares = {"a": ["lifetime=1", "day=0.75"], "b": ["lifetime=3,1e-7"]}
        accountant.set_policy("default", ["lifetime=4,1e-6", "day=3,1e-6"], shares=shares)
        a, b = (accountant.acting_for(made(accountant, f"key-of-{share}", share)) for share in shares)
        assert a.spend("alice", coin("0.5"))
        assert a.spend("alice", coin("0.3"), key="k").binding == ("day (a)",)
        assert a.spend("alice", coin("0.3"), key="k").repeated
        assert b.spend("alice", coin(2))
        assert accountant.spend("alice", coin("0.25"))
        users = [f"user-{number}" for number in range(9)]
        assert a.spend_many([*users, "alice"], coin("0.5")).refused_users == ["alice"]
        assert a.spend_many([*users[:4], "alice"], coin("0.25")).refused == 0
        assert b.spend_many([*users, "alice"], promising(Approximate("0.25", "1e-7"))).refused_users == ["alice"]
        held = a.reserve("bob", coin("0.75")).receipt or ""
        assert not a.spend("bob", coin("0.1"))
        accountant.void(held)
        assert a.spend("bob", coin("0.7"))
        clock.advance(days=1)
        assert a.spend("alice", coin("0.25"))
        assert a.spend("alice", coin("0.25")).binding == ("lifetime (a)",)

        def spent_of(user: str) -> dict[str, float]:
            limits = accountant.balance(user).to_json()["limits"]
            return {limit["period"]: limit["spent"]["epsilon"] for limit in limits}

        told = {user: spent_of(user) for user in ("alice", "bob", users[0], users[8])}
        assert told == {
            "alice": {"lifetime": 3.25, "day": 0.25, "lifetime (a)": 1, "day (a)": 0.25, "lifetime (b)": 2},
            "bob": {"lifetime": 0.7, "day": 0, "lifetime (a)": 0.7, "day (a)": 0, "lifetime (b)": 0},
            users[0]: {"lifetime": 1, "day": 0, "lifetime (a)": 0.75, "day (a)": 0, "lifetime (b)": 0.25},
            users[8]: {"lifetime": 0.75, "day": 0, "lifetime (a)": 0.5, "day (a)": 0, "lifetime (b)": 0.25},
        }
        head = check(accountant)
        accountant.set_policy("default", ["lifetime=4,1e-6", "week=3"], shares={**shares, "a": ["week=1"]})
        assert spent_of("alice")["week (a)"] == 1
        accountant = place.reopen(accountant, clock)
        assert spent_of("bob")["week (a)"] == 0.7
        check(accountant, head)
        accountant.close()
