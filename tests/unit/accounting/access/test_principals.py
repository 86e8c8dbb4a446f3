"""Accountants acting for a principal: a view of the same ledger, and verification of the recorded key numbers."""

from __future__ import annotations

import pytest

from contract.acts import check, coin
from contract.toy_store import ToyStore
from fixed_clock import Clock
from ldp_budget import Accountant
from ldp_budget.accounting.charge_request import Principal
from ldp_budget_service.api_keys import ApiKeys

pytestmark = pytest.mark.policy("lifetime=9")


def test_acting_for_shares_the_ledger_and_closing_the_view_leaves_it_open(accountant: Accountant) -> None:
    key, _ = ApiKeys(accountant).create("team-a", ["spend"])
    with accountant.acting_for(key.caller) as team:
        assert team.spend("alice", coin(1))
        assert team.balance("alice") == accountant.balance("alice")
        assert repr(team) == repr(accountant)
    assert accountant.spend("alice", coin(1))
    assert [row["by"] for row in accountant.history("alice")] == ["team-a", None]
    check(accountant)


def test_key_rotation_keeps_the_name_of_entries(accountant: Accountant) -> None:
    keys = ApiKeys(accountant)
    for key in (keys.create("team-a", ["spend"])[0], keys.rotate("team-a")[0]):
        accountant.acting_for(key.caller).spend("alice", coin(1))
    assert [row["by"] for row in accountant.history("alice")] == ["team-a", "team-a"]
    check(accountant)


def test_admin_log_records_key_changes_made_by_a_key(accountant: Accountant) -> None:
    officer = ApiKeys(accountant).create("officer", ["admin"])[0]
    theirs = ApiKeys(accountant.acting_for(officer.caller))
    made, _ = theirs.create("team-a", ["spend"])
    theirs.revoke("team-a")
    assert made.by == "officer"
    assert [record.by for record in accountant.records()] == [None, "officer", "officer"]
    check(accountant)


@pytest.mark.parametrize("partitions", [1, 3])
def test_verify_with_an_entry_of_an_unknown_api_key_finds_it(clock: Clock, partitions: int) -> None:
    with Accountant(ToyStore(partitions), clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        record = accountant.record("note", "x", {}, expected=0)
        for number in (record.number, 7):
            accountant.acting_for(Principal(number, "unknown")).spend("alice", coin(1))
        problems = " ".join(accountant.verify().problems)
        assert "written by the key of record 1, which has made none" in problems
        assert "written by the key of record 7, which has made none" in problems
        assert [row["by"] for row in accountant.history("alice")] == ["x", "record 7"]
