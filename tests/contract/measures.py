"""The contract of every store for limits with a measure: renyi at one order, and zcdp with a part of δ set aside.

A store's tests inherit `MeasuredContract` and say how to open it.
"""

from __future__ import annotations

import random
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

import renyi_oracle as oracle
from contract.acts import CURVE, check, promising
from contract.places import Place
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, Limit
from ldp_budget.guarantees import Approximate, Gaussian, Guarantee, Laplace, Memoised, Pure, SymmetricPair
from ldp_budget.guarantees.fixed_point import Costs

OUE = SymmetricPair("0.5", "0.5")
SLACK = Approximate("0.3", "1e-7")
NOISE = Gaussian("0.2", "1", "1e-4")
"""Has a δ only where `basic` charges its point: renyi and zcdp set nothing aside for it."""


@cache
def units(guarantee: Guarantee, order: str) -> int:
    """Return the cost of a report at an order, in billionths of a thousandth, by the oracle."""
    alpha = oracle.number(order)
    match guarantee:
        case SymmetricPair():
            truth = oracle.divergence(oracle.symmetric(guarantee.bound, guarantee.tau), alpha)
        case Gaussian():
            truth = alpha * oracle.number(guarantee.mu) ** 2 / 2
        case Laplace():
            truth = oracle.laplace_divergence(guarantee.bound, alpha)
        case Memoised():
            truth = oracle.divergence(oracle.symmetric(guarantee.cap, 1), alpha)
        case Pure() | Approximate():
            truth = oracle.divergence(oracle.symmetric(guarantee.bound, 1), alpha)
        case _:
            raise TypeError(guarantee)
    return int(oracle.mp.ceil(truth * 10**12 - oracle.mpf("1e-15")))


def amounts(accountant: Accountant, user: str = "alice", policy: str = "default") -> dict[tuple[str, str], Costs]:
    limits = accountant.balance(user, policy).limits
    return {(state.limit.period, state.limit.rule): state.spent_units for state in limits}


class MeasuredContract:
    """Inherit it and override `place`."""

    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        raise NotImplementedError

    def test_spend_is_granted_as_often_as_the_divergences_fit(self, accountant: Accountant) -> None:
        (limit,) = accountant.set_policy("default", ["lifetime=4,1e-6,renyi:6"]).limits
        assert limit.capacity.rho is not None
        expected = limit.capacity.rho // units(OUE, "6")
        assert accountant.spend("alice", promising(OUE), reports=expected - 1)
        assert accountant.quote("alice", promising(OUE)).affordable_reports == 1
        assert [accountant.spend("alice", promising(OUE)).status for _ in range(3)] == ["spent", "refused", "refused"]
        refused = accountant.spend("alice", promising(OUE))
        assert "The lifetime limit (renyi:6) of D = " in refused.explain()
        assert refused.binding == ("lifetime",)
        done = accountant.spend_many(["alice", "bob", "carol", "bob"], promising(OUE))
        assert (done.spent, done.refused_users) == (3, ["alice"])
        assert amounts(accountant, "bob")["lifetime", "renyi:6"].rho == 2 * units(OUE, "6")
        check(accountant)

    def test_limit_without_an_order_stores_the_best_one(self, accountant: Accountant) -> None:
        (limit,) = accountant.set_policy("default", ["lifetime=8,1e-6,renyi"]).limits
        assert limit.rule == "renyi:5"
        assert limit == Limit("lifetime", 8, "1e-6", "renyi:5")
        assert accountant.policy().limits == (limit,)
        accountant.spend("alice", promising(OUE))
        accountant.set_policy("default", ["lifetime=8.0001,1e-6,renyi:5"])
        with pytest.raises(InvalidParameter, match="which users were charged by"):
            accountant.set_policy("default", ["lifetime=8,1e-6,renyi:3"])

    def test_new_order_is_backfilled_from_the_journal(self, accountant: Accountant, clock: Clock) -> None:
        accountant.set_policy("default", ["lifetime=90,1e-3"])
        for guarantee, reports in ((OUE, 7), (NOISE, 2), (Laplace("0.5"), 3)):
            accountant.spend("alice", promising(guarantee), reports=reports)
            clock.advance(days=20)
        held = accountant.reserve("alice", promising(OUE), reports=4).receipt or ""
        accountant.set_policy("tight", ["lifetime=9,1e-6,renyi:3", "month=9,1e-6,renyi:3", "lifetime=9,1e-6,renyi:8"])
        found = amounts(accountant, policy="tight")
        for order in ("3", "8"):
            expected = 11 * units(OUE, order) + 2 * units(NOISE, order) + 3 * units(Laplace("0.5"), order)
            assert found["lifetime", f"renyi:{order}"].rho == expected
        assert found["month", "renyi:3"].rho == 4 * units(OUE, "3"), "what is of this month"
        check(accountant)
        accountant.void(held)
        after = amounts(accountant, policy="tight")
        assert after["month", "renyi:3"].rho == 0
        assert after["lifetime", "renyi:3"].rho == expected_without(found["lifetime", "renyi:3"], 4 * units(OUE, "3"))
        check(accountant)

    def test_memoized_value_is_charged_its_cap_once_per_label(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=60,1e-6,renyi:2", "month=60,1e-6,renyi:2"])
        for label in ("home", "home", "work"):
            accountant.spend("alice", promising(CURVE), label=label, reports=3)
        held = accountant.reserve("alice", promising(CURVE), label="travel").receipt or ""
        assert {spent.rho for spent in amounts(accountant).values()} == {3 * units(CURVE, "2")}
        accountant.void(held)
        assert {spent.rho for spent in amounts(accountant).values()} == {2 * units(CURVE, "2")}
        accountant.set_policy("other", ["lifetime=60,1e-6,renyi:3"])
        assert amounts(accountant, policy="other")["lifetime", "renyi:3"].rho == 2 * units(CURVE, "3")
        check(accountant)

    @pytest.mark.parametrize("rule", ["zcdp", "renyi:4"])
    def test_delta_set_aside_is_counted_separately(self, accountant: Accountant, rule: str) -> None:
        (limit,) = accountant.set_policy("default", [f"lifetime=9,7e-7+3e-7,{rule}"]).limits
        assert (limit.delta, limit.aside) == (Decimal("1e-6"), Decimal("3e-7"))
        assert accountant.spend("alice", promising(NOISE)), "its point is no delta of its own here"
        granted = [bool(accountant.spend("alice", promising(SLACK))) for _ in range(5)]
        assert granted == [True, True, True, False, False], "three times 1e-7"
        spent = amounts(accountant)["lifetime", rule]
        assert spent.delta == 3 * 10**11
        assert accountant.quote("alice", promising(SLACK)).affordable_reports == 0
        assert accountant.quote("alice", promising(OUE)).affordable_reports > 0
        held = accountant.reserve("bob", promising(SLACK), reports=3).receipt or ""
        assert not accountant.spend("bob", promising(SLACK))
        accountant.void(held)
        assert accountant.spend_many(["alice", "bob"], promising(SLACK)).refused_users == ["alice"]
        check(accountant)

    @pytest.mark.parametrize("rule", ["zcdp", "gdp", "renyi:4"])
    def test_delta_of_a_report_does_not_fit_without_a_set_aside(self, accountant: Accountant, rule: str) -> None:
        accountant.set_policy("default", [f"lifetime=9,1e-6,{rule}"])
        assert not accountant.spend("alice", promising(SLACK))
        assert accountant.spend_many(["bob"], promising(SLACK)).refused == 1
        assert accountant.spend("alice", promising(NOISE))
        check(accountant)

    def test_erased_user_is_gone_from_every_measure(self, accountant: Accountant) -> None:
        accountant.set_policy("default", ["lifetime=9,5e-7+5e-7,zcdp", "day=9,1e-6,renyi:3"])
        accountant.spend("alice", promising(OUE))
        held = accountant.reserve("alice", promising(OUE)).receipt or ""
        accountant.erase("alice")
        accountant.void(held)
        accountant.set_policy("default", ["lifetime=9,5e-7+5e-7,zcdp", "day=9,1e-6,renyi:3", "week=9,1e-6,renyi:4"])
        check(accountant)

    def test_clock_repair_counts_in_every_measure(self, accountant: Accountant, clock: Clock) -> None:
        accountant.set_policy("default", ["lifetime=9,1e-6,renyi:3", "day=9,1e-6,renyi:3"])
        right = clock.now
        clock.advance(days=40)
        accountant.spend("alice", promising(OUE))
        clock.now = right
        accountant.repair_clock()
        accountant.spend("alice", promising(OUE))
        assert {spent.rho for spent in amounts(accountant).values()} == {2 * units(OUE, "3")}
        check(accountant)

    def test_close_and_reopen_loses_nothing(self, place: Place, clock: Clock) -> None:
        accountant = place.open(clock)
        accountant.set_policy("default", ["lifetime=9,1e-6,renyi", "month=4,5e-7+5e-7,zcdp"])
        accountant.spend("alice", promising(SLACK), key="k")
        before = accountant.balance("alice").to_json()
        accountant = place.reopen(accountant, clock)
        assert accountant.balance("alice").to_json() == before
        assert accountant.spend("alice", promising(SLACK), key="k").repeated
        check(accountant)
        accountant.close()

    def test_sums_equal_the_charges_after_random_operations(
        self, accountant: Accountant, clock: Clock, thorough: bool
    ) -> None:
        """Random spends, batches, reservations, voids and new limits, compared with a list of the charges."""
        for seed in range(12) if thorough else [1]:
            at_random(accountant, clock, random.Random(seed), f"run {seed}", monthly=seed % 2 == 1)
        check(accountant)


def expected_without(spent: Costs, taken: int) -> int:
    assert spent.rho is not None
    return spent.rho - taken


KINDS = [OUE, SymmetricPair("1", "0.1"), NOISE, SLACK, Laplace("0.25"), Pure("0.125")]


def at_random(accountant: Accountant, clock: Clock, source: random.Random, name: str, monthly: bool) -> None:
    """Forty steps of one user; then the sums of every order are those of the charges that are left."""
    orders = source.sample(["1.5", "2", "3", "6", "11", "31"], 3)
    accountant.set_policy(name, ["lifetime=1e5,0.01"])
    held: list[tuple[str, Guarantee, int]] = []
    left: list[tuple[Guarantee, int]] = []
    for step in range(40):
        guarantee, reports = source.choice(KINDS), source.randrange(1, 4)
        match source.randrange(5):
            case 0:
                receipt = accountant.reserve(name, promising(guarantee), reports=reports, policy=name).receipt
                held.append((receipt or "", guarantee, reports))
            case 1 if held:
                accountant.void(held.pop()[0])
            case 2:
                accountant.spend_many([name, name], promising(guarantee), policy=name)
                left.append((guarantee, 2))
            case _:
                accountant.spend(name, promising(guarantee), reports=reports, policy=name)
                left.append((guarantee, reports))
        if step in (10, 20, 30):
            limited = [f"lifetime=1e5,5e-3+5e-3,renyi:{order}" for order in orders[: step // 10]]
            accountant.set_policy(name, ["lifetime=1e5,0.01", *limited])
    left += [(guarantee, reports) for _, guarantee, reports in held]
    found = amounts(accountant, name, name)
    for order in orders:
        spent = found["lifetime", f"renyi:{order}"]
        assert spent.rho == sum(reports * units(guarantee, order) for guarantee, reports in left)
        assert spent.delta == sum(reports * 10**11 for guarantee, reports in left if guarantee is SLACK)
