"""Four-eyes approval of policy relaxations: detection, approval by another key, and overrides."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.acts import check, coin, made, promising, write_record
from ldp_budget import (
    Accountant,
    ApprovalConflict,
    ApprovalNeeded,
    InvalidParameter,
    Limit,
    NotSupported,
    UnknownName,
)
from ldp_budget.accounting.admission import ApplicablePolicy, decide
from ldp_budget.accounting.charge_request import ChargeRequest, Principal, RequestTemplate
from ldp_budget.accounting.plans import Plan
from ldp_budget.accounting.policies import Policy
from ldp_budget.accounting.policy_approval import relaxations
from ldp_budget.accounting.policy_versions import propose, with_shares
from ldp_budget.guarantees import SAME_CHANGE_PATTERN, Memoised, Pure
from ldp_budget.ledger import Account
from ldp_budget.ledger.calendar import Moment
from ldp_budget.ledger.keyed_hashing import Key
from ldp_budget_service.approvals import Approvals

pytestmark = pytest.mark.policy("lifetime=4", "day=1")


@pytest.fixture
def officer(accountant: Accountant) -> Accountant:
    return accountant.acting_for(made(accountant, "officer"))


@pytest.fixture
def other(accountant: Accountant) -> Accountant:
    return accountant.acting_for(made(accountant, "other"))


# -- what raises ------------------------------------------------------------------------------------------------


def policy(limits: list[str], **more: Any) -> Policy:
    terms: dict[str, Any] = {"relation": None, "unbounded": False, "checked": False, "plan": None, "shares": None}
    return with_shares({"a": 1, "b": 2}, propose("default", limits, **{**terms, **more}), None, False)


PLAN = Plan(((coin("0.25"), 3),), "1e-6")
BEFORE = policy(["lifetime=4,1e-6", "day=1,1e-6,zcdp"], relation="any", checked=True, shares={"a": ["lifetime=1"]})
SAME: dict[str, Any] = {"relation": "any", "checked": True, "shares": {"a": ["lifetime=1"]}}


@pytest.mark.parametrize(
    ("limits", "more", "why"),
    [
        (["lifetime=4.1,1e-6", "day=1,1e-6,zcdp"], SAME, ["raises the limit lifetime=4"]),
        (["lifetime=4,2e-6", "day=1,1e-6,zcdp"], SAME, ["raises the limit lifetime=4"]),
        (["lifetime=4,1e-6", "day=1,2e-6,zcdp"], SAME, ["raises the limit day=1"]),
        (["lifetime=4,1e-6"], SAME, ["drops the limit day=1"]),
        (["lifetime=4,1e-6", "day=0.1,1e-6,gdp"], SAME, ["drops the limit day=1"]),
        (["lifetime=4,1e-6", "day=1,1e-6,zcdp"], {**SAME, "relation": None}, ["other relations than any"]),
        (["lifetime=4,1e-6", "day=1,1e-6,zcdp"], {**SAME, "checked": False}, ["were not checked"]),
        (["lifetime=4,1e-6", "day=1,1e-6,zcdp"], {**SAME, "unbounded": True}, ["unbounded"]),
        (["lifetime=4,1e-6", "day=1,1e-6,zcdp"], {**SAME, "shares": {"a": ["lifetime=2"]}}, ["a:lifetime=1 to a:"]),
        (["lifetime=4,1e-6", "day=1,1e-6,zcdp"], {**SAME, "shares": {"a": ["day=1"]}}, ["drops the limit a:life"]),
        (["lifetime=4,1e-6", "day=1,1e-6,zcdp"], {**SAME, "shares": {"b": ["lifetime=1"]}}, ["a new share, b"]),
        (["lifetime=5,1e-6"], SAME, ["raises the limit lifetime", "drops the limit day"]),
        (["lifetime=4,1e-6", "day=1,1e-6,zcdp"], SAME, []),
        (["day=1,1e-6,zcdp", "lifetime=3.5,1e-7"], SAME, []),
        (["lifetime=4,1e-6", "day=1,1e-6,zcdp", "week=9"], SAME, []),
        (["lifetime=4,1e-6", "day=1,1e-6,zcdp"], {**SAME, "shares": {}}, []),
        (["lifetime=4,1e-6", "day=1,1e-6,zcdp"], {**SAME, "plan": PLAN}, []),
    ],
)
def test_relaxations_of_a_change_are_listed(limits: list[str], more: dict[str, Any], why: list[str]) -> None:
    reasons = relaxations(BEFORE, policy(limits, **more))
    assert len(reasons) == len(why), reasons
    assert all(part in reason for part, reason in zip(why, reasons, strict=True)), reasons


def test_relaxations_include_a_new_policy_and_another_plan() -> None:
    assert relaxations(None, BEFORE) == ("it is a new policy",)
    planned, larger = (policy(["lifetime=9,1e-3"], plan=Plan(((coin("0.25"), n),), "1e-6")) for n in (3, 4))
    assert relaxations(planned, larger) == relaxations(planned, policy(["lifetime=9,1e-3"])) != ()
    assert relaxations(planned, planned) == ()


EDITS = st.sampled_from(["keep", "keep", "raise", "lower", "drop"])


def edited(limit: Limit, edit: str) -> list[Limit]:
    """A limit in the next version: the same, changed, or dropped."""
    factor = {"keep": Decimal(1), "raise": Decimal(2), "lower": Decimal("0.5"), "drop": None}[edit]
    return [] if factor is None else [Limit(limit.period, limit.epsilon * factor, limit.delta, limit.rule)]


@st.composite
def changes(draw: st.DrawFn) -> tuple[Policy, Policy]:
    """A policy and the next version of it: each limit as it was, or more, or less, or gone."""
    tenths = st.integers(1, 4).map(lambda number: Decimal(number) / 10)
    periods = draw(st.lists(st.sampled_from(["lifetime", "day", "week"]), min_size=1, max_size=2, unique=True))
    limits = [
        Limit(each, draw(tenths), "1e-6", draw(st.sampled_from(["basic", "basic", "zcdp"]))) for each in periods
    ]
    parts = [Limit(each.period, each.epsilon / 4, each.delta / 4, each.rule) for each in limits]
    after, shares_after = [], []
    for limit, part in zip(limits, parts, strict=True):
        kept = edited(limit, draw(EDITS))
        after += kept
        shares_after += edited(part, draw(EDITS)) if kept else []
    after += [Limit("month", "0.3")] * (not after or draw(st.booleans()))
    mostly = st.sampled_from([True, True, True, False])
    before_has, after_has = draw(mostly), draw(mostly) and bool(shares_after)
    relations = draw(st.sampled_from([(None, None), ("any", None), (None, "any"), ("any", "any")]))
    return (
        policy(limits, relation=relations[0], unbounded=True, shares={"a": parts} if before_has else {}),  # type: ignore[arg-type]
        policy(after, relation=relations[1], unbounded=True, shares={"a": shares_after} if after_has else {}),  # type: ignore[arg-type]
    )


REQUESTS = [Pure("0.025"), Pure("0.1"), Memoised(("0.025",), "0.05", None, SAME_CHANGE_PATTERN)]
KEY, NOW = Key(bytes(32)), Moment(datetime(2026, 11, 21, tzinfo=UTC))


@pytest.mark.slow
@settings(max_examples=6 * settings.default.max_examples)  # type: ignore[union-attr]
@given(
    change=changes(),
    guarantee=st.sampled_from(REQUESTS),
    share=st.sampled_from(["a", "a", "b", None]),
    others=st.sampled_from([0, 0, 0, 1, 3, 6]),
    through=st.integers(0, 6),
)
def test_relaxations_none_admits_nothing_more(
    change: tuple[Policy, Policy], guarantee: Any, share: str | None, others: int, through: int
) -> None:
    """For every history and share, a charge that fits the new version also fits the old one."""
    before, after = change
    gauges = {"lifetime", *before.gauges, *after.gauges}
    costs = {
        gauge: Pure("0.025").costs().times(through if "share" in gauge else through + others) for gauge in gauges
    }
    windows = {gauge: NOW.window(gauge) for gauge in gauges}
    template = RequestTemplate(promising(guarantee), policy="default")
    request = ChargeRequest(template, KEY, "alice", caller=Principal(1, "an application", share))
    fits = [
        decide(
            Account(1, costs, reported={gauge: {} for gauge in gauges}),
            request,
            ApplicablePolicy.of(each, request.charge, share),
            windows,
        ).fits
        for each in (before, after)
    ]
    if fits == [False, True]:
        assert relaxations(before, after)
    assert relaxations(before, before) == ()


# -- who agrees -------------------------------------------------------------------------------------------------


def test_set_policy_raising_a_limit_needs_approval_and_lowering_does_not(
    accountant: Accountant, officer: Accountant, other: Accountant
) -> None:
    Approvals(officer).demand()
    with pytest.raises(ApprovalNeeded, match="raises the limit lifetime=4 to lifetime=5") as needed:
        officer.set_policy("default", ["lifetime=5", "day=1"])
    assert needed.value.policy == "default"
    with pytest.raises(ApprovalNeeded, match="a new policy"):
        officer.set_policy("another", ["lifetime=0.1"])
    assert officer.set_policy("default", ["lifetime=4", "day=0.5"]).version == 2
    mine = Approvals(officer).propose("default", ["lifetime=5", "day=0.5"])
    assert (mine.by, mine.against, Approvals(other).pending()) == ("officer", 2, [mine])
    assert Approvals(other).reasons(mine) == ("it raises the limit lifetime=4 to lifetime=5",)
    with pytest.raises(ApprovalConflict, match="officer proposed it"):
        Approvals(officer).approve(mine.number)
    with pytest.raises(ApprovalConflict, match="was not approved"):
        Approvals(other).apply(mine.number)
    assert Approvals(other).approve(mine.number).ended_by == "other"
    with pytest.raises(ApprovalNeeded):
        officer.set_policy("default", ["lifetime=6", "day=0.5"])
    assert officer.set_policy("default", ["day=0.5", "lifetime=5"]).version == 3
    assert Approvals(officer).pending() == []
    assert accountant.set_policy("default", ["lifetime=4"], override="a test").version == 4
    with pytest.raises(ApprovalNeeded):
        officer.set_policy("default", ["day=0.5", "lifetime=5"])  # an approval is for one change
    kinds = ["approvals-demanded", "proposed", "approved", "approval-overridden"]
    assert [record.kind for record in accountant.records()][2:] == kinds
    check(accountant)


def test_proposal_approved_is_set_by_its_number(officer: Accountant, other: Accountant) -> None:
    Approvals(officer).demand()
    limits, shares = ["lifetime=8,9e-7+1e-7,zcdp", "day=2"], {"team-a": ["day=1"]}
    mine = Approvals(officer).propose("default", limits, relation="any", shares=shares)  # type: ignore[arg-type]
    Approvals(other).approve(mine.number)
    stored = Approvals(officer).apply(mine.number)
    assert (stored.version, stored.relation) == (2, "any")
    wanted = policy(limits, relation="any", shares=shares)
    assert {(limit.label, limit.capacity) for limit in stored.all_limits} == {
        (limit.label, limit.capacity) for limit in wanted.all_limits
    }
    with pytest.raises(ApprovalConflict, match="was changed after the approval"):
        Approvals(officer).apply(mine.number)


def test_proposal_that_ended_cannot_be_reopened(
    accountant: Accountant, officer: Accountant, other: Accountant
) -> None:
    first, second, third = (Approvals(officer).propose("default", [f"lifetime={n}"]) for n in (5, 6, 7))
    assert Approvals(officer).withdraw(first.number).ended == "withdrawn"
    for act in (Approvals(other).approve, Approvals(other).withdraw):
        with pytest.raises(ApprovalConflict, match="was already withdrawn by officer"):
            act(first.number)
    accountant.set_policy("default", ["lifetime=3"])
    with pytest.raises(ApprovalConflict, match="was changed after the proposal"):
        Approvals(other).approve(second.number)
    assert Approvals(other).pending() == []
    assert [each.number for each in Approvals(other).all()] == [first.number, second.number, third.number]
    with pytest.raises(UnknownName, match="no proposal is named '99'"):
        Approvals(other).approve(99)
    with pytest.raises(InvalidParameter):
        Approvals(other).approve("1")  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        Approvals(officer).propose("default", ["lifetime=0"])


def test_demand_lifted_by_a_key_is_refused(accountant: Accountant, officer: Accountant) -> None:
    Approvals(officer).demand()
    with pytest.raises(ApprovalConflict, match="lifted only on the machine of the ledger"):
        Approvals(officer).demand(False)
    write_record(officer, "approvals-demanded", "policies", {"demanded": False})
    assert Approvals(accountant).demanded
    with pytest.raises(ApprovalNeeded):
        officer.set_policy("default", ["lifetime=5"])
    Approvals(accountant).demand(False)
    assert not Approvals(officer).demanded
    assert officer.set_policy("default", ["lifetime=5"])


def test_approval_from_malformed_records_is_ignored(officer: Accountant, other: Accountant) -> None:
    Approvals(officer).demand()
    mine = Approvals(officer).propose("default", ["lifetime=5"])
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("approved", {"proposal": mine.number}),  # one's own
        ("approved", {}),
        ("approved", {"proposal": 77}),
        ("proposed", {}),
        ("proposed", {"against": "1", "terms": []}),
        ("withdrawn", {"proposal": None}),
        ("approvals-demanded", {}),
    ]
    for kind, body in bodies:
        write_record(officer, kind, "default", body)
    with pytest.raises(ApprovalNeeded):
        officer.set_policy("default", ["lifetime=5"])
    assert Approvals(other).pending() == [mine]


# -- on the machine of the ledger -----------------------------------------------------------------------------------


def test_set_policy_on_the_ledger_machine_needs_the_approval_too(accountant: Accountant, officer: Accountant) -> None:
    """`policy set` on the ledger's machine raised a limit silently where the ledger demanded the approval of two."""
    Approvals(officer).demand()
    with pytest.raises(ApprovalNeeded, match=r"needs the approval of another key holder.*override"):
        accountant.set_policy("default", ["lifetime=5"])
    assert accountant.policy().version == 1
    assert accountant.set_policy("default", ["lifetime=3", "day=1"]).version == 2
    proposal = Approvals(officer).propose("default", ["lifetime=5"])
    Approvals(accountant).approve(proposal.number)
    assert accountant.set_policy("default", ["lifetime=5"]).version == 3


def test_override_is_recorded_and_shown(accountant: Accountant, officer: Accountant) -> None:
    Approvals(officer).demand()
    assert accountant.set_policy("default", ["lifetime=5", "day=1"], override="both are on leave").version == 2
    record = accountant.records()[-1]
    assert (record.kind, record.name, record.by, record.fault) == ("approval-overridden", "default", None, None)
    raised = ["it raises the limit lifetime=4 to lifetime=5"]
    assert record.body == {"version": 2, "reason": "both are on leave", "reasons": raised}
    overview = accountant.ledger.overview()
    assert [row["override"] for row in overview.policies()] == ["both are on leave", None]
    check(accountant)


@pytest.mark.parametrize("reason", ["", " ", "x" * 501, 7])
def test_override_without_a_reason_is_refused(accountant: Accountant, reason: Any) -> None:
    with pytest.raises(InvalidParameter, match="override"):
        accountant.set_policy("default", ["lifetime=5"], override=reason)


def test_override_through_a_key_is_refused(officer: Accountant) -> None:
    Approvals(officer).demand()
    with pytest.raises(NotSupported, match="machine of the ledger"):
        officer.set_policy("default", ["lifetime=5"], override="please")


# -- reasons, and who proposed and approved a version ------------------------------------------------------------------


def test_version_of_a_proposal_names_its_proposer_approver_and_reason(
    accountant: Accountant, officer: Accountant, other: Accountant
) -> None:
    number = Approvals(officer).propose("default", ["lifetime=6", "day=1"], reason="a second wave").number
    Approvals(other).approve(number)
    Approvals(officer).apply(number)
    accountant.set_policy("default", ["lifetime=5", "day=1"])
    lowered, raised, first = accountant.ledger.overview().policies()
    names = ("proposal", "proposed_by", "approved_by", "reason", "by")
    assert [raised[name] for name in names] == [number, "officer", "other", "a second wave", "officer"]
    for row in (lowered, first):
        assert [row[name] for name in names] == [None] * 5


def test_version_that_was_set_in_another_way_names_no_proposal(
    accountant: Accountant, officer: Accountant, other: Accountant
) -> None:
    """The approved terms, the version before and the policy must all be those of the version."""
    approvals = Approvals(officer)
    number = approvals.propose("default", ["lifetime=6", "day=1"]).number
    Approvals(other).approve(number)
    approvals.propose("default", ["lifetime=7", "day=1"])  # is not approved
    accountant.set_policy("default", ["lifetime=7", "day=1"])
    accountant.set_policy("default", ["lifetime=6", "day=1"])
    accountant.set_policy("more", ["lifetime=6", "day=1"])
    assert [row["proposal"] for row in accountant.ledger.overview().policies()] == [None] * 4


@pytest.mark.parametrize("reason", ["", "  ", "x" * 501, 5])
def test_proposal_with_a_wrong_reason_is_refused_and_not_stored(officer: Accountant, reason: Any) -> None:
    with pytest.raises(InvalidParameter, match="reason"):
        Approvals(officer).propose("default", ["lifetime=6"], reason=reason)
    assert Approvals(officer).all() == []
