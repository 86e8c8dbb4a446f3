"""Mechanisms that a service has otherwise than its clients, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from contract.acts import promising
from fixed_clock import Clock
from foreign_libraries import events
from ldp_budget import Accountant, Collection, InvalidParameter, NotSupported, mechanism
from ldp_budget.accounting.charge_request import LOCAL
from ldp_budget.guarantees import Pure
from ldp_budget.registry import plugins
from ldp_budget.registry.plugins import Plugin, Registry
from ldp_budget.registry.third_party import charged_for
from ldp_budget.sdk.mechanism import Mechanism
from ldp_budget_service.client import Client
from service_places import Keys, shared_service


@pytest.fixture
def ledger(clock: Clock) -> Iterator[Accountant]:
    with Accountant(":memory:", clock=clock) as made:
        made.set_policy("default", ["lifetime=90"])
        yield made


@pytest.fixture
def client(ledger: Accountant) -> Iterator[Client]:
    keys = Keys()
    shared_service().serve(ledger, keys)
    with Client(shared_service().url, keys.secret_of(LOCAL)) as made:
        yield made


class Toy(Mechanism):
    """A mechanism of a third-party plugin."""

    name = "toy"

    @property
    def guarantee(self) -> Any:
        return Pure("0.5")


class ToyThere(Toy):
    """The same in another version, which promises more."""

    @property
    def guarantee(self) -> Any:
        return Pure("0.25")


def test_mechanism_missing_on_the_service_is_named_with_its_plugin(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = plugins.registry()
    asking = Registry([*own.plugins, Plugin("ldp-budget-toys", "1.2", (Toy,))])
    monkeypatch.setattr("ldp_budget_service.api.schemas.registry", lambda: asking)
    told = "has no mechanism 'toy'. Here the plugin ldp-budget-toys 1.2 provides it. Install it on the service too."
    for ask in (
        lambda: client.spend("alice", Toy()),
        lambda: client.quote("alice", Toy()),
        lambda: client.reserve("alice", Toy()),
        lambda: client.simulate(Toy(), every="day"),
        lambda: client.spend_many(["alice"], Toy()),
        lambda: client.add_collection(Collection("toys", Toy())),
    ):
        with pytest.raises(NotSupported, match=told):
            ask()
    with pytest.raises(NotSupported, match="No plugin here provides it either"):
        client.spend("alice", promising(Pure("0.123123")))  # of which nobody has heard


def test_mechanism_with_another_guarantee_on_the_service_charges_no_user(
    client: Client, ledger: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the report would cost more than it was charged for."""
    serving = Registry([*plugins.registry().plugins, Plugin("ldp-budget-toys", "2", (ToyThere,))])
    monkeypatch.setattr(plugins, "registry", lambda: serving)
    for ask in (
        lambda: client.spend("alice", Toy()),
        lambda: client.quote("alice", Toy()),
        lambda: client.reserve("alice", Toy()),
        lambda: client.spend_many(["alice"], Toy()),
        lambda: client.spend("alice", Collection("toys", Toy())),
    ):
        with pytest.raises(NotSupported, match="charge for mechanism toy would be too small"):
            ask()
    assert ledger.history("alice") == []
    assert client.spend("alice", ToyThere()).epsilon == 0.25


def test_collection_of_the_ledger_is_charged_with_its_own_mechanism(client: Client, ledger: Accountant) -> None:
    party = Collection("party", mechanism("oue")(epsilon=1, domain_size=2), ("a", "b"))
    client.add_collection(party)
    assert client.collection("party") == ledger.collection("party") == party
    assert client.spend("alice", client.collection("party")).epsilon == 1
    other = Collection("party", mechanism("oue")(epsilon="0.1", domain_size=2))
    with pytest.raises(InvalidParameter, match="mechanism must be the one of collection party"):
        client.spend("alice", other)
    assert [row["collection"] for row in client.history("alice")] == ["party"]


def test_foreign_object_is_charged_by_a_service_without_its_library(
    client: Client, ledger: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client sends the guarantee and its source."""
    event = events().SelfComposedDpEvent(events().RandomizedResponseDpEvent(0.5, 4), 2)
    stands_for = charged_for(event)
    monkeypatch.setattr("ldp_budget_adapters._read", lambda thing: None)
    with pytest.raises(InvalidParameter, match="SelfComposedDpEvent"):
        client.spend("alice", event)
    monkeypatch.undo()
    assert client.quote("alice", event).epsilon == ledger.quote("alice", event).epsilon
    assert client.spend("alice", event, key="a").status == "spent"
    assert client.spend("alice", event, key="a").repeated
    assert client.spend_many(["bob", "carol"], event).spent == 2
    [row] = ledger.history("alice")
    assert stands_for is not None
    assert row["mechanism"] == "declared"
    assert row["fingerprint"] == stands_for.fingerprint
    assert row["declared"]["source"].startswith("dp-accounting ")
    assert ledger.verify().ok
