"""Charges that name a collection: its mechanism is charged."""

from __future__ import annotations

import pytest

from ldp_budget import Accountant, Collection, KeyConflict, mechanism
from ldp_budget.accounting.receipts import Receipt

pytestmark = pytest.mark.policy("lifetime=4", "day=1", checked=True)

OUE = mechanism("oue")(epsilon="0.5", domain_size=3)
POLL = Collection("poll", OUE, ("cat", "dog", "bird"))
RAPPOR = mechanism("rappor")(bits=8, hashes=2, cohorts=2, epsilon=1, epsilon_lifetime=4)


def told(receipt: Receipt) -> tuple[object, ...]:
    return receipt._replace(user=None, receipt=None, position="")


@pytest.mark.parametrize("how", ["quote", "spend", "reserve"])
def test_spend_of_a_collection_costs_the_same_as_its_mechanism(accountant: Accountant, how: str) -> None:
    of_mechanism, of_collection = getattr(accountant, how)("alice", OUE), getattr(accountant, how)("bob", POLL)
    assert told(of_collection) == told(of_mechanism)
    assert of_collection.checked == "exact"


def test_policy_with_checked_checks_the_mechanism_of_a_collection(
    accountant: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldp_budget.registry.certification.checked", lambda kind: "no")
    assert "oue was not checked here" in accountant.spend("alice", POLL).why


def test_spend_with_used_key_without_the_collection_raises(accountant: Accountant) -> None:
    first = accountant.spend("alice", POLL, key="k")
    again = accountant.spend("alice", POLL, key="k")
    assert (again.repeated, again.receipt) == (True, first.receipt)
    with pytest.raises(KeyConflict):
        accountant.spend("alice", OUE, key="k")


def test_spend_of_a_collection_with_labels_follows_the_memoized_curve(accountant: Accountant) -> None:
    asked = Collection("habits", RAPPOR)
    accountant.set_policy("default", ["lifetime=8"])
    [label, again] = asked.labels([3, 3], b"0123456789abcdef")
    costs = [accountant.spend("alice", asked, label=each).epsilon for each in (label, again)]
    assert costs[0] == 1
    assert costs[1] == pytest.approx(0.8896805), "the second report of one memoised value tells less"


def test_spend_many_of_a_collection_charges_each_user(accountant: Accountant) -> None:
    assert accountant.spend_many(["alice", "bob", "alice", "alice"], POLL, key="run").to_json() == {
        "spent": 3,
        "refused": 1,
        "repeated": 0,
    }
    assert accountant.spend_many(["alice", "bob", "alice", "alice"], POLL, key="run").repeated == 3
