"""Whoever uses a ledger by a key: a view of the same ledger, and what the verifier asks of the numbers they leave."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from conftest import Clock
from ldp_budget import Accountant, InvalidParameter
from ldp_budget.accounting.api_keys import ApiKeys
from ldp_budget.accounting.charge_request import Principal
from ledger_contract import check, coin
from toy_store import ToyStore


@pytest.fixture
def accountant(clock: Clock) -> Iterator[Accountant]:
    with Accountant(":memory:", clock=clock) as made:
        made.set_policy("default", ["lifetime=9"])
        yield made


def test_a_view_is_the_same_ledger_and_closing_it_leaves_that_open(accountant: Accountant) -> None:
    key, _ = ApiKeys(accountant).create("team-a", ["spend"])
    with accountant.acting_for(key.caller) as team:
        assert team.spend("alice", coin(1))
        assert team.balance("alice") == accountant.balance("alice")
        assert repr(team) == repr(accountant)
    assert accountant.spend("alice", coin(1))
    assert [row["by"] for row in accountant.history("alice")] == ["team-a", None]
    check(accountant)


def test_a_view_of_a_view_is_of_its_own_caller(accountant: Accountant) -> None:
    keys = ApiKeys(accountant)
    first, second = (keys.create(name, ["spend"])[0].caller for name in ("a", "b"))
    accountant.acting_for(first).acting_for(second).spend("alice", coin(1))
    accountant.acting_for(first).spend("alice", coin(1))
    assert [row["by"] for row in accountant.history("alice")] == ["b", "a"]


def test_after_an_exchange_entries_show_the_same_name(accountant: Accountant) -> None:
    keys = ApiKeys(accountant)
    for key in (keys.create("team-a", ["spend"])[0], keys.rotate("team-a")[0]):
        accountant.acting_for(key.caller).spend("alice", coin(1))
    assert [row["by"] for row in accountant.history("alice")] == ["team-a", "team-a"]
    check(accountant)


def test_what_a_key_did_to_keys_stands_in_the_records(accountant: Accountant) -> None:
    officer = ApiKeys(accountant).create("officer", ["admin"])[0]
    theirs = ApiKeys(accountant.acting_for(officer.caller))
    made, _ = theirs.create("team-a", ["spend"])
    theirs.revoke("team-a")
    assert made.by == "officer"
    assert [record.by for record in accountant.records()] == [None, "officer", "officer"]
    check(accountant)


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_number_that_is_of_no_key_is_found(clock: Clock, partitions: int) -> None:
    with Accountant(ToyStore(partitions), clock=clock) as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        record = accountant.record("note", "x", {}, expected=0)
        for number in (record.number, 7):
            accountant.acting_for(Principal(number, "nobody")).spend("alice", coin(1))
        problems = " ".join(accountant.verify().problems)
        assert "written by the key of record 1, which has made none" in problems
        assert "written by the key of record 7, which has made none" in problems
        assert [row["by"] for row in accountant.history("alice")] == ["x", "record 7"]


def test_who_is_no_caller_is_refused(accountant: Accountant) -> None:
    with pytest.raises(InvalidParameter, match="caller must be a `Principal`"):
        accountant.acting_for("team-a")  # type: ignore[arg-type]
