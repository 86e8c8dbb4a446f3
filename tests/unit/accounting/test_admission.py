"""Admission decisions as functions of an account, a request and a policy, without a ledger."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldp_budget.accounting.admission import ERASED_USER, ApplicablePolicy, Decision, decide
from ldp_budget.accounting.charge_request import ChargeRequest, RequestTemplate
from ldp_budget.accounting.limits import Limit
from ldp_budget.accounting.policies import Plan, PlanTerms, Policy
from ldp_budget.guarantees import SAME_CHANGE_PATTERN, Guarantee, Memoised, Pure
from ldp_budget.guarantees.fixed_point import LARGEST, ZERO, Costs
from ldp_budget.guarantees.memoised_costs import LabelCount, cost_in_window
from ldp_budget.ledger.calendar import Moment
from ldp_budget.ledger.keyfile import Key
from ldp_budget.ledger.snapshot import Account, Price
from ledger_contract import promising

NOON = Moment(datetime(2026, 11, 21, 12, tzinfo=UTC))
WINDOWS = {period: NOON.window(period) for period in ("lifetime", "day")}
SECRET = Key(b"k" * 32)


def held(
    guarantee: Guarantee,
    *limits: str,
    spent: str = "0",
    reports: int = 1,
    label: str | None = None,
    done: int = 0,
    used: int = 0,
    erased: bool = False,
    relation: str | None = None,
    plan: Plan | None = None,
    other_plans: tuple[Price, ...] = (),
) -> Decision:
    """The decision about one request of `guarantee` on top of ε = `spent` in every window."""
    held = None if plan is None else PlanTerms.of(plan)
    policy = Policy("default", tuple(map(Limit.parse, limits)), relation=relation, plan=held)
    sums = dict.fromkeys(WINDOWS, Costs.of(Decimal(spent), Decimal(0), Decimal(0), Decimal(0)))
    template = RequestTemplate(promising(guarantee), policy="default", reports=reports, label=label)
    request = ChargeRequest(template, SECRET, "alice")
    reported = {gauge: {request.label: done} for gauge in WINDOWS}
    account = Account(None if spent == "0" else 1, sums, erased, reported, used)
    terms = ApplicablePolicy.of(policy, request.charge).with_other_plans(other_plans)
    return decide(account, request, terms, WINDOWS)


@pytest.mark.parametrize(("spent", "fits"), [("0", True), ("0.7", True), ("0.700000001", False), ("1", False)])
def test_decide_is_exact_to_the_last_unit(spent: str, fits: bool) -> None:
    decision = held(Pure("0.3"), "lifetime=1", spent=spent)
    assert decision.fits == fits
    assert decision.binding == (() if fits else ("lifetime",))
    assert decision.affordable() == (1 - Decimal(spent)) // Decimal("0.3")


def test_decide_of_a_free_repetition_always_fits() -> None:
    decision = held(Memoised((1,), 1, None, SAME_CHANGE_PATTERN), "lifetime=4", label="x")
    assert decision.receipt("spent", "r").affordable_reports == decision.affordable() == LARGEST
    assert decision.receipt("spent", "r").to_json()["affordable_reports"] is None


def test_decide_refused_names_every_limit_without_room() -> None:
    decision = held(Pure("0.3"), "lifetime=1", "day=0.2", spent="0.8")
    assert decision.binding == ("lifetime", "day")
    assert decision.receipt("refused").binding == ("lifetime", "day")


def test_decide_shows_limits_after_a_charge_and_unchanged_after_a_refusal() -> None:
    granted = held(Pure("0.3"), "lifetime=1", spent="0.5")
    assert [state.spent_units.epsilon for state in granted.receipt("spent", "r").limits] == [500_000_000]
    granted.charge()
    assert [state.spent_units.epsilon for state in granted.receipt("spent", "r").limits] == [800_000_000]
    refused = held(Pure("0.3"), "lifetime=1", spent="0.9")
    assert [state.spent_units.epsilon for state in refused.receipt("refused").limits] == [900_000_000]


@pytest.mark.parametrize(
    ("why", "more"),
    [
        (ERASED_USER, {"erased": True}),
        ("policy default admits only guarantees for any inputs", {"relation": "any"}),
        (
            "the plan of policy default does not include this mechanism",
            {"plan": Plan(((Pure(1), 2),), Decimal("1e-6"))},
        ),
    ],
)
def test_decide_of_a_never_admissible_request_says_so(why: str, more: dict[str, object]) -> None:
    guarantee = Memoised((1,), 2, None, SAME_CHANGE_PATTERN)
    decision = held(guarantee, "lifetime=9", label="x", **more)  # type: ignore[arg-type]
    assert decision.why.startswith(why)
    assert not decision.fits
    assert decision.affordable() == 0


def test_decide_over_a_quota_names_the_plan() -> None:
    plan = Plan(((Pure(1), 3),), Decimal("1e-6"))
    assert held(Pure(1), plan=plan, used=1, reports=2).fits
    decision = held(Pure(1), plan=plan, used=2, reports=2)
    assert decision.binding == ("plan",)
    assert decision.affordable() == 1


@pytest.mark.parametrize(
    ("limits", "others", "fits"),
    [
        ((), (), True),
        ((), (("1", "1e-6"),), False),
        (("day=99",), (("1", "1e-6"),), False),
        (("lifetime=4,2e-6",), (("1", "1e-6"),), True),
        (("lifetime=4,2e-6",), (("1", "1.1e-6"),), False),
        (("lifetime=4,2e-6",), (("1.01", "1e-6"),), False),
        (("lifetime=4,2e-6", "lifetime=3.9,0.5,zcdp"), (("1", "1e-6"),), False),
        (("lifetime=5,3e-6",), (("1", "1e-6"), ("1", "1e-6")), True),
        (("lifetime=4,3e-6",), (("1", "1e-6"), ("1", "1e-6")), False),
        (("lifetime=1e9,0.99",), (("Infinity", "1"),), False),
    ],
)
def test_decide_counts_the_full_price_of_used_plans_in_the_lifetime_limit(
    limits: tuple[str, ...], others: tuple[tuple[str, str], ...], fits: bool
) -> None:
    plan = Plan(((Pure(1), 3),), Decimal("1e-6"), price=3.0)
    decision = held(
        Pure(1), *limits, plan=plan, other_plans=tuple((Decimal(price), Decimal(delta)) for price, delta in others)
    )
    assert (decision.fits, not decision.why, decision.binding) == (fits, fits, () if fits else ("plan",))
    assert decision.affordable() == (3 if fits else 0)


CURVES = st.lists(st.integers(0, 400), min_size=1, max_size=8).map(sorted)


@pytest.mark.slow
@given(CURVES, st.integers(0, 100), st.integers(0, 12), st.integers(0, 1500))
def test_affordable_along_a_curve_is_exact(points: list[int], above: int, done: int, room: int) -> None:
    """The bisection over the curve answers as trying every count would."""
    curve = Memoised(tuple(Decimal(point) / 100 for point in points), Decimal(points[-1] + above) / 100)
    limit = Limit("lifetime", Decimal(room + 1) / 100)
    count = limit.affordable_along(curve, done, ZERO)
    for reports in {1, 2, 3, *range(max(1, count - 1), min(count, 40) + 3)}:
        assert limit.fits(ZERO, cost_in_window(None, curve, {b"a": LabelCount(0, done)}, b"a", reports)) == (
            reports <= count
        ), (reports, count)
    assert count == LARGEST or count < len(points) + 1
