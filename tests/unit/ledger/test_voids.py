"""A void leaves the sums of the charges that were not voided, also where an amount was unbounded or uncountable."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.acts import CURVE, check, coin, promising
from contract.model import Labelled, labelled_sum, same_window
from fixed_clock import Clock
from ldp_budget import Accountant
from ldp_budget.guarantees import Approximate, Guarantee, Memoised, Pure, ZeroConcentrated
from ldp_budget.guarantees.fixed_point import Costs

SLACK = Approximate("0.5", "1e-7")
"""Has no ρ and no μ²."""
HALF_LOST = Approximate("0.25", "0.5")
"""Ten of them are more δ than can be counted."""
ROUND = ZeroConcentrated("0.02")
"""Has no ε by itself."""
OPEN = ["day=1e9,0.99"]


def sums(accountant: Accountant, user: str = "alice", policy: str = "default") -> dict[str, Costs]:
    return {state.limit.period: state.spent_units for state in accountant.balance(user, policy).limits}


def hold(accountant: Accountant, guarantee: Guarantee, policy: str = "default", **request: Any) -> str:
    receipt = accountant.reserve("alice", promising(guarantee), policy=policy, expires=300 * 86_400, **request)
    assert receipt.status == "reserved", receipt.explain()
    return receipt.receipt or ""


def test_void_of_an_uncountable_sum_is_counted_again(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", OPEN, unbounded=True)
    accountant.set_policy("whole", ["lifetime=9,0.99"])
    held = []
    for _ in range(10):
        held.append(hold(accountant, HALF_LOST))
        clock.advance(days=1)
    assert sums(accountant, policy="whole")["lifetime"].delta is None
    check(accountant)
    accountant.void(held[3])
    assert sums(accountant, policy="whole")["lifetime"].delta == HALF_LOST.costs().times(9).delta
    check(accountant)


def test_backfill_omits_voided_charges(accountant: Accountant, clock: Clock) -> None:
    accountant.set_policy("default", ["lifetime=9,1e-3"])
    accountant.spend("alice", coin(1))
    accountant.void(hold(accountant, SLACK))
    kept, clock.now = hold(accountant, Pure("0.5")), clock.now + timedelta(hours=1)
    accountant.set_policy("default", ["lifetime=9,1e-3", "week=9,1e-3"])
    assert sums(accountant)["week"] == sums(accountant)["lifetime"] == Pure(1).costs().plus(Pure("0.5").costs())
    accountant.void(kept)
    check(accountant)


# -- against a recomputation -------------------------------------------------------------------------------------

FEW = Memoised(("0.2", "0.3"), "0.9", 2)
GUARANTEES: Sequence[Guarantee] = (SLACK, HALF_LOST, ROUND, Pure("0.3"), CURVE, FEW)
STEPS = st.one_of(
    st.tuples(
        st.just("charge"),
        st.sampled_from(GUARANTEES),
        st.integers(1, 2),
        st.sampled_from((None, "home", "work", "else")),
    ),
    st.tuples(st.just("void"), st.integers(0, 50), st.none(), st.none()),
    st.tuples(st.just("wait"), st.sampled_from((1, 1, 1, 30)), st.none(), st.none()),
    st.tuples(st.just("limit"), st.sampled_from(("week", "month")), st.none(), st.none()),
)


class Made:
    """A charge that was made."""

    def __init__(self, at: datetime, guarantee: Guarantee, reports: int, label: str | None, receipt: str) -> None:
        self.at, self.guarantee, self.reports, self.receipt = at, guarantee, reports, receipt
        self.entry = Labelled((label, guarantee), reports, at)


def naive(made: list[Made], labelled: list[Labelled], period: str, now: datetime) -> Costs:
    """The sum of the charges that are left, each once, and of those of memoised values."""
    total = labelled_sum(labelled, period, now)
    for each in made:
        if not isinstance(each.guarantee, Memoised) and same_window(period, each.at, now):
            total = total.plus(each.guarantee.costs().times(each.reports))
    return total


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples * 4 // 5)
@given(st.lists(STEPS, max_size=25))
def test_void_leaves_the_sums_of_the_remaining_charges(steps: list[tuple[Any, ...]]) -> None:
    clock, made = Clock(), list[Made]()
    labelled: list[Labelled] = []
    with Accountant(":memory:", clock=clock) as accountant:
        # One day's limit of each rule, so that every amount is admitted by one of them.
        accountant.set_policy("default", OPEN, unbounded=True)
        accountant.set_policy("zcdp", ["day=1e9,0.99,zcdp"], unbounded=True)
        accountant.set_policy("seen", ["lifetime=1", "day=1"])
        for step, what, reports, label in steps:
            if step == "wait":
                clock.advance(days=what)
            elif step == "limit":
                accountant.set_policy(what, [f"{what}=1"], unbounded=True)
            elif step == "void" and made:
                voided = made.pop(what % len(made))
                accountant.void(voided.receipt)
                if isinstance(voided.guarantee, Memoised):
                    labelled.append(voided.entry.voided(clock.now))
            elif step == "charge":
                for policy in ("default", "zcdp"):
                    receipt = accountant.reserve(
                        "alice", promising(what), reports=reports, label=label, policy=policy, expires=10**7 * 3
                    )
                    if receipt.status == "reserved":
                        made.append(Made(clock.now, what, reports, label, receipt.receipt or ""))
                        labelled += [made[-1].entry] if isinstance(what, Memoised) else []
                        break
            for policy in accountant.policies():
                for period, spent in sums(accountant, policy=policy.name).items():
                    assert spent == naive(made, labelled, period, clock.now), (policy.name, period)
        check(accountant)


@pytest.mark.parametrize("amount", range(4))
def test_replay_counts_unbounded_and_uncountable_sums(amount: int) -> None:
    from ldp_budget.guarantees.fixed_point import LARGEST
    from ldp_budget.ledger.models import RESERVED, VOIDED, Entry
    from ldp_budget.ledger.snapshot import Promise, Replay

    def costs(value: int | None) -> Costs:
        return Costs(*[value if place == amount else 0 for place in range(4)])

    replay = Replay({"lifetime": 0}, lambda charge: Promise(CURVE), ())
    for number, value in enumerate((None, LARGEST, 5, None), 1):
        replay.add(Entry(number, 0, RESERVED, 1, 1, 1, 1, costs(value)), None)
    expected = {4: None, 1: None, 3: LARGEST, 2: 0}
    for number, value in ((4, None), (1, None), (3, -5), (2, -LARGEST)):
        replay.add(Entry(9, 0, VOIDED, 1, 1, 1, 1, costs(value), resolves=number), None)
        assert replay.sums["lifetime"][amount] == expected[number]
