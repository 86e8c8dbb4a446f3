"""Policies that require checked mechanisms, and the check in a receipt."""

from __future__ import annotations

from pathlib import Path

import pytest

import ldp_budget
from command_line import CommandLine
from ldp_budget import Accountant, Mechanism
from ldp_budget.guarantees import Pure
from ledger_contract import promising


@pytest.fixture
def unchecked() -> Mechanism:
    """A mechanism of an unregistered class, which is therefore unchecked."""
    return promising(Pure("0.1"))


def test_policy_without_checked_allows_unchecked_mechanisms(accountant: Accountant, unchecked: Mechanism) -> None:
    accountant.set_policy("default", ["lifetime=1"])
    receipt = accountant.spend("alice", unchecked)
    assert (receipt.status, receipt.checked) == ("spent", "no")


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


def test_policy_with_checked_allows_built_in_mechanisms(accountant: Accountant) -> None:
    accountant.set_policy("default", ["lifetime=9"], checked=True)
    oue = ldp_budget.mechanism("oue")(epsilon=1, domain_size=4)
    assert accountant.spend("alice", oue).checked == "exact"
    assert accountant.spend_many(["alice", "bob"], oue).spent == 2


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


def test_policy_with_checked_still_requires_it_after_reopening(tmp_path: Path, unchecked: Mechanism) -> None:
    with Accountant(tmp_path / "ledger.db") as accountant:
        accountant.set_policy("default", ["lifetime=1"], checked=True)
    with Accountant(tmp_path / "ledger.db") as accountant:
        assert accountant.policy().checked
        assert not accountant.spend("alice", unchecked)


def test_cli_policy_set_checked_requires_and_shows_it(command: CommandLine) -> None:
    told = command("policy", "set", "default", "--limit", "lifetime=2", "--checked").stdout
    assert "only checked mechanisms" in told
    assert command.json("policy", "show", "default")["checked"] is True
    assert command.json("spend", "alice", "oue", "--epsilon", "1", "--domain-size", "4")["checked"] == "exact"
