"""Administrative records: the library's own kinds are refused, and a record that cannot be read is skipped."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from contract.acts import made, write_record
from fixed_clock import Clock
from ldp_budget import Accountant, ApprovalConflict, InvalidParameter, NameTaken
from ldp_budget.accounting.admin_log import record_faults
from ldp_budget.accounting.admin_records import fault_of
from ldp_budget.registry.collections import Collection
from ldp_budget_service.api_keys import ApiKeys
from ldp_budget_service.approvals import Approvals
from ldp_budget_service.invitations import Invitations

pytestmark = pytest.mark.policy("lifetime=4")

BODIES: list[tuple[str, str, Any]] = [
    ("key", "x", {"scopes": {"admin": 1}}),
    ("key", "x", {"scopes": "admin", "policies": None, "hash": ""}),
    ("key-revoked", "mallory", {"more": []}),
    ("invitations-revoked", "party", {}),
    ("invitations-revoked", "party", {"user": "ab", "secret": "x"}),
    ("approvals-demanded", "policies", {"demanded": None}),
    ("approvals-demanded", "policies", {}),
    ("proposed", "default", {"against": 1, "terms": {}}),
    ("proposed", "default", {"against": True, "terms": {"plan": None}}),
    ("approved", "default", {"proposal": []}),
    ("withdrawn", "default", {"proposal": {"a": 1}}),
    ("verified", "ledger", {"ok": 1}),
    ("acknowledged", "ledger", {"entries": {"1": ["overdraft"]}, "reason": "x"}),
    ("approval-overridden", "default", {"reason": " "}),
]


@pytest.mark.parametrize(("kind", "name", "body"), BODIES)
def test_record_of_an_own_kind_is_refused(accountant: Accountant, kind: str, name: str, body: Any) -> None:
    """`Accountant.record` took the library's own kinds unchecked; then each use of the ledger failed for ever."""
    with pytest.raises(InvalidParameter, match="kind"):
        accountant.record(kind, name, body, expected=0)
    assert accountant.records() == []


@pytest.mark.parametrize(("kind", "name", "body"), BODIES)
def test_malformed_record_in_the_log_is_skipped_and_reported(
    accountant: Accountant, kind: str, name: str, body: Any
) -> None:
    """One such record made `ApiKeys.find`, `Invitations.find` and `Approvals` raise KeyError for ever."""
    keys, approvals, invitations = (made(accountant, fresh=0) for made in (ApiKeys, Approvals, Invitations))
    _, secret = keys.create("team-a", ["spend"])
    approvals.demand()
    write_record(accountant, kind, name, body)
    assert keys.find(secret) is not None
    assert [key.name for key in keys.all()] == ["team-a"]
    assert approvals.demanded
    assert approvals.pending() == []
    assert invitations.find("nothing") is None
    assert accountant.spend("alice", _coin()).status == "spent"
    (fault,) = record_faults(accountant.records())
    assert fault.startswith(f"record 3 ({kind} {name!r}) is skipped: ")
    found = accountant.verify()
    assert (found.ok, found.problems) == (False, (fault,))


@pytest.mark.parametrize("body", ["[]", "7", '"x"', "null", "{", "[" * 100_000])
def test_record_whose_body_is_no_object_is_skipped(accountant: Accountant, body: str) -> None:
    """A stored body that is not an object made each reader of the records fail."""
    write_record(accountant, "key", "x", {})
    accountant._ledger.run(lambda transaction: transaction.add_record(2, "approved", "default", body))
    assert ApiKeys(accountant).all() == []
    assert [record.body for record in accountant.records()] == [{}, {}]
    assert len(record_faults(accountant.records())) == 2


def test_malformed_records_end_no_revocation(accountant: Accountant, clock: Clock) -> None:
    """A key with a revoked name, and a revocation under an older secret, must not bring back what was revoked."""
    accountant.add_collection(Collection("party", _coin()))
    keys, invitations = ApiKeys(accountant, fresh=0), Invitations(accountant, fresh=0)
    _, secret = keys.create("team-a", ["spend"])
    body = dict(accountant.records()[0].body)
    [(_, token)] = invitations.invite("party", ["alice"], clock.now + timedelta(days=1))
    keys.revoke("team-a")
    write_record(accountant, "key", "team-a", body)
    assert keys.find(secret) is None
    with pytest.raises(NameTaken):
        keys.record("team-a", body, expected=3)
    write_record(accountant, "key-revoked", "team-a", {"demanded": False})
    assert keys.find(secret) is None
    assert invitations.find(token) is not None
    write_record(accountant, "invitations-revoked", "party", {"user": 7})
    assert invitations.find(token) is None


def test_approval_demand_is_lifted_by_false_alone(accountant: Accountant) -> None:
    """`{"demanded": null}` lifted that approvals are demanded."""
    approvals = Approvals(accountant, fresh=0)
    approvals.demand()
    for body in ({}, {"demanded": None}, {"demanded": 0}, {"demanded": "no"}, {"demanded": False, "more": 1}):
        write_record(accountant, "approvals-demanded", "policies", body)
        assert approvals.demanded
    approvals.demand(False)
    assert not approvals.demanded


def test_proposal_under_the_name_of_another_policy_is_skipped(accountant: Accountant) -> None:
    approvals = Approvals(accountant, fresh=0)
    approvals.propose("default", ["lifetime=8"])
    body = dict(accountant.records()[-1].body)
    write_record(accountant, "proposed", "other", body)
    assert [each.policy for each in approvals.all()] == ["default"]


def test_key_of_a_key_holder_is_refused_in_the_transaction_where_approvals_are_demanded(clock: Clock) -> None:
    """An instance that had not heard of the demand yet made a second key, which approved the first one's proposal."""
    with Accountant(":memory:", clock=clock) as accountant:
        officer = accountant.acting_for(made(accountant, "officer"))
        keys = ApiKeys(officer, fresh=1e9)
        keys.all()
        Approvals(accountant).demand()
        with pytest.raises(ApprovalConflict, match="keys can be made only on the machine of the ledger"):
            keys.create("second", ["policy"])
        ApiKeys(accountant).create("second", ["policy"])


def test_record_shapes_accept_records_of_the_library(accountant: Accountant, clock: Clock) -> None:
    accountant.add_collection(Collection("party", _coin()))
    keys, approvals, invitations = ApiKeys(accountant), Approvals(accountant), Invitations(accountant)
    keys.create("team-a", ["spend"], policies=["default"], share="x", expires=clock.now + timedelta(days=3))
    keys.rotate("team-a")
    keys.revoke("team-a")
    approvals.demand()
    one, two = (approvals.propose("default", [f"lifetime={n}"], shares={"a": ["lifetime=1"]}) for n in (5, 6))
    approvals.withdraw(one.number)
    approvals.acting_for(made(accountant, "other")).approve(two.number)
    invitations.revoke("party", "alice")
    invitations.revoke("party")
    assert record_faults(accountant.records()) == ()
    for each in accountant.records():
        assert fault_of(each.kind, each.name, json.loads(json.dumps(each.body))) is None


def _coin() -> Any:
    from ldp_budget import mechanism

    return mechanism("randomized-response")(epsilon="0.5")
