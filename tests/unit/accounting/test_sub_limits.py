"""Sub-limits of a policy: the budget that one team may charge a user, within the limit for all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.acts import check, coin, made
from fixed_clock import Clock
from ldp_budget import Accountant, InvalidParameter, Limit
from ldp_budget.accounting.limits import as_shares
from ldp_budget.accounting.policies import Policy

SHARES: dict[str, Any] = {"team-a": ["lifetime=1"], "team-b": ["lifetime=3"]}


def team(accountant: Accountant, share: str | None) -> Accountant:
    return accountant.acting_for(made(accountant, f"key-of-{share}", share))


def told(accountant: Accountant, user: str = "alice") -> dict[str, float | None]:
    return {limit["period"]: limit["spent"]["epsilon"] for limit in accountant.balance(user).to_json()["limits"]}


def test_spend_with_a_share_unknown_to_the_policy_is_refused(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=4"], shares=SHARES)
    accountant.set_policy("other", ["lifetime=4"])
    a = team(accountant, "team-a")
    for answer in (a.spend("alice", coin(1), policy="other"), team(accountant, "team-c").spend("alice", coin(1))):
        assert (answer.status, answer.affordable_reports) == ("refused", 0)
        assert "has no share team-" in answer.why
    assert a.spend_many(["alice"], coin(1), policy="other").refused == 1
    check(accountant)


def test_share_counts_batches_labeled_reports_and_reservations(accountant: Accountant, clock: Clock) -> None:
    from contract.acts import CURVE, promising

    accountant.set_policy("default", ["lifetime=40", "day=30"], shares={"team-a": ["lifetime=9", "day=8"]})
    a = team(accountant, "team-a")
    rappor = promising(CURVE)
    assert a.spend("alice", rappor, label="home").epsilon == 2.04
    assert told(accountant)["lifetime (team-a)"] == 2.04
    assert a.spend_many(["alice", "bob", "alice"], coin(2)).spent == 3
    assert told(accountant)["day (team-a)"] == 6.04
    held = a.reserve("alice", rappor, label="home").receipt or ""
    assert told(accountant)["day (team-a)"] == 7.39, "along the curve, while no other share repeats the value"
    assert a.spend_many(["alice", "bob"], coin("0.7")).refused_users == ["alice"]
    assert accountant.void(held).status == "voided"
    assert told(accountant)["day (team-a)"] == 6.04
    assert a.spend_many(["alice", "bob"], coin("0.7")).refused_users == []
    check(accountant)


def test_share_after_reports_of_others_is_charged_their_part(accountant: Accountant) -> None:
    """A share began the curve of a label again after reports that others had charged: 2.04 where 5.43 can be lost."""
    from contract.acts import CURVE, promising

    accountant.set_policy("default", ["lifetime=90"], shares={"team-a": ["lifetime=30"]})
    a, rappor = team(accountant, "team-a"), promising(CURVE)
    assert accountant.spend("alice", rappor, label="home").epsilon == 2.04
    assert a.spend("alice", rappor, label="home").epsilon == 1.35, "along the user's own curve"
    assert told(accountant)["lifetime (team-a)"] == 5.43, "2.04 + 3.39"
    assert accountant.spend("alice", rappor, label="home").epsilon == 0.63
    held = a.reserve("alice", rappor, label="home").receipt or ""
    assert told(accountant)["lifetime (team-a)"] == 13.84, "and 4.02 + 4.39, after three"
    assert accountant.void(held).status == "voided"
    assert told(accountant)["lifetime (team-a)"] == 13.84, "how many came before is not known any more"
    assert told(accountant)["lifetime"] == 4.02
    check(accountant)


@pytest.mark.parametrize(
    ("shares", "why"),
    [
        ({"team-a": ["lifetime=3"], "team-b": ["lifetime=1.000000001"]}, "together exceed its"),
        ({"team-a": ["lifetime=1,1e-9"]}, "together exceed its"),
        ({"team-a": ["day=1"]}, "a share of one of the policy's limits"),
        ({"team-a": ["lifetime=1,1e-9,zcdp"]}, "a share of one of the policy's limits"),
        ({"team-a": []}, "with at least one limit"),
        ({"team-a": ["lifetime=1", "lifetime=2"]}, "limited once for each period and rule"),
        ({"team a": ["lifetime=1"]}, "1 to 64 ASCII letters"),
        ({"team-a": "lifetime=1"}, "a dict of names"),
        ({"team-a": ["lifetime"]}, "PERIOD=EPSILON"),
        (["team-a"], "a dict of names"),
    ],
)
def test_share_with_invalid_limits_raises(accountant: Accountant, shares: Any, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        accountant.set_policy("default", ["lifetime=4"], shares=shares)
    assert accountant.policies() == []


def test_limit_lowered_below_its_shares_raises(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=4"], shares=SHARES)
    with pytest.raises(InvalidParameter, match="with the other shares: got team-a:lifetime=1, team-b:lifetime=3"):
        accountant.set_policy("default", ["lifetime=3.9"])
    assert accountant.set_policy("default", ["lifetime=5"]).shares == accountant.policy().shares
    assert [share.name for share in accountant.policy().shares] == ["team-a", "team-b"]
    assert accountant.set_policy("default", ["lifetime=3"], shares={}).shares == ()
    check(accountant)


def test_share_after_a_charge_keeps_its_delta(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=4,1e-6"], shares={"team-a": ["lifetime=1,1e-7"]})
    assert team(accountant, "team-a").spend("alice", coin("0.5"))
    with pytest.raises(InvalidParameter, match=r"for lifetime \(team-a\), which users were charged by"):
        accountant.set_policy("default", ["lifetime=4,1e-6"], shares={"team-a": ["lifetime=1,2e-7"]})
    accountant.set_policy("default", ["lifetime=4,1e-6"], shares={"team-a": ["lifetime=2,1e-7"]})
    check(accountant)


def test_verify_with_an_entry_of_another_share_finds_it(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=4"], shares=SHARES)
    caller = made(accountant, "team-a", "team-a")
    accountant.acting_for(caller).spend("alice", coin("0.1"))
    check(accountant)
    accountant.acting_for(caller._replace(share="team-b")).spend("alice", coin("0.1"))
    accountant.acting_for(caller._replace(share=None)).spend("alice", coin("0.1"))
    problems = accountant.verify().problems
    assert [problem.rpartition("have ")[2] for problem in problems] == ["another share, 0", "another share, 2"]


@pytest.mark.slow
@given(parts=st.lists(st.decimals("0.000000001", "2", places=9), min_size=1, max_size=5))
def test_share_limits_fit_exactly_if_their_sum_does(parts: list[Decimal]) -> None:
    limits = (Limit("lifetime", 4),)
    shares = as_shares({f"team-{n}": [Limit("lifetime", part)] for n, part in enumerate(parts)}, limits)
    if sum(parts) <= 4:
        assert Policy("default", limits, shares=shares).shares == shares
    else:
        with pytest.raises(InvalidParameter, match="together exceed its"):
            Policy("default", limits, shares=shares)
