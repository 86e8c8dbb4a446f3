"""Policies that require checked mechanisms, and the check in a receipt."""

from __future__ import annotations

import pytest

import ldp_budget
from contract.acts import promising
from ldp_budget import Accountant, Mechanism
from ldp_budget.guarantees import Pure


@pytest.fixture
def unchecked() -> Mechanism:
    """A mechanism of an unregistered class, which is therefore unchecked."""
    return promising(Pure("0.1"))


def test_policy_with_checked_refuses_unchecked_mechanisms_in_every_operation(
    accountant: Accountant, unchecked: Mechanism
) -> None:
    accountant.set_policy("default", ["lifetime=1"], checked=True)
    for request in (accountant.spend, accountant.reserve):
        receipt = request("alice", unchecked)
        assert receipt.status == "refused"
        assert "only checked mechanisms" in receipt.why
        assert receipt.affordable_reports == 0
    assert accountant.quote("alice", unchecked).affordable_reports == 0
    assert accountant.spend_many(["alice", "bob"], unchecked).refused == 2
    assert accountant.balance("alice").to_json()["limits"][0]["spent"]["epsilon"] == 0


def test_spend_with_used_key_keeps_the_check_of_the_first_receipt(
    accountant: Accountant, unchecked: Mechanism
) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    oue = ldp_budget.mechanism("oue")(epsilon="0.1", domain_size=4)
    for mechanism, said in ((unchecked, "no"), (oue, "exact")):
        key = mechanism.name
        assert accountant.spend("alice", mechanism, key=key).checked == said
        again = accountant.spend("alice", mechanism, key=key)
        assert (again.repeated, again.checked) == (True, said)
