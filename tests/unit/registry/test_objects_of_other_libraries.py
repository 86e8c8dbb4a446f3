"""Objects of other libraries: every plugin is asked, our own first, and what is charged needs neither afterwards."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import ldp_budget
from ldp_budget import Accountant, InvalidParameter, Limit, PluginError, compose, guarantee_of, hookimpl
from ldp_budget.accounting.batch import Spend
from ldp_budget.guarantees import Guarantee, Pure
from ldp_budget.registry import plugins, third_party
from ldp_budget.registry.plugins import Plugin, Registry, _hooks_of


class Coin:
    """An object of another library, which may change."""

    __module__ = "coins"

    def __init__(self, loss: str = "0.25") -> None:
        self.loss = loss

    def __repr__(self) -> str:
        raise AssertionError("a foreign object was printed")


def plugin(
    answer: Callable[[Any], Any], source: Callable[[Any], Any] | None = None, name: str = "their-plugin"
) -> Plugin:
    module = ModuleType(name)

    @hookimpl
    def guarantee_of(thing: object) -> Any:
        return answer(thing)

    module.guarantee_of = guarantee_of  # type: ignore[attr-defined]
    if source is not None:

        @hookimpl
        def source_of(thing: object) -> Any:
            return source(thing)

        module.source_of = source_of  # type: ignore[attr-defined]
    return Plugin(name, "1.2", hooks=_hooks_of(module, name))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def install(*more: Plugin) -> None:
        found = Registry([*plugins.registry().plugins, *more])
        monkeypatch.setattr(third_party, "registry", lambda: found)

    return install


def coins(thing: Any) -> Guarantee | None:
    return Pure(thing.loss) if isinstance(thing, Coin) else None


@pytest.fixture
def ledger(accountant: Accountant) -> Accountant:
    accountant.set_policy("default", [Limit("lifetime", epsilon=1)])
    return accountant


# -- charging -------------------------------------------------------------------------------------------------------


def test_foreign_object_is_accepted_in_place_of_a_mechanism(
    ledger: Accountant, installed: Callable[..., None]
) -> None:
    installed(plugin(coins))
    coin = Coin()
    assert ledger.quote("alice", coin).epsilon == 0.25
    assert ledger.spend("alice", coin, reports=2).status == "spent"
    held = ledger.reserve("alice", coin)
    assert ledger.void(held.receipt).status == "voided"
    assert ledger.spend_many(["alice", "bob"], coin, key="run").spent == 2
    assert [each.status for each in ledger.spend_each([Spend("alice", coin), Spend("bob", coin)])] == ["spent"] * 2  # type: ignore[union-attr]
    assert ledger.spend("alice", coin).status == "refused"
    assert ledger.simulate(coin, every="day")[0].period == "lifetime"
    [first, *_] = ledger.history("alice")
    assert first["mechanism"] == "declared"
    told = "coins.Coin, as their-plugin 1.2 says"
    assert first["declared"] == {"delta": "0", "epsilon": "0.25", "source": told}
    assert ledger.verify().ok


def test_spend_batch_of_foreign_objects_charges_their_state_at_the_call(
    ledger: Accountant, installed: Callable[..., None]
) -> None:
    installed(plugin(coins))
    coin = Coin("0.5")
    spends = [Spend(f"user {number}", coin) for number in range(20)]
    assert {result.status for result in ledger.spend_batch(spends, key="first")} == {"spent"}
    coin.loss = "0.75"
    assert {result.status for result in ledger.spend_batch(spends, key="second")} == {"refused"}
    with pytest.raises(ldp_budget.KeyConflict):
        ledger.spend_batch(spends, key="first")
    coin.loss = "0.5"
    assert all(result.repeated for result in ledger.spend_batch(spends, key="first"))
    assert ledger.balance("user 3").limits[0].spent.epsilon == 0.5


def test_foreign_object_with_another_guarantee_under_a_used_key_is_refused(
    ledger: Accountant, installed: Callable[..., None]
) -> None:
    installed(plugin(coins))
    assert ledger.spend("alice", Coin(), key="a")
    assert ledger.spend("alice", Coin(), key="a").repeated
    with pytest.raises(ldp_budget.KeyConflict):
        ledger.spend("alice", Coin("0.5"), key="a")


def test_foreign_guarantee_composes_with_others(installed: Callable[..., None]) -> None:
    installed(plugin(coins))
    oue = ldp_budget.mechanism("oue")(epsilon=1, domain_size=3)
    assert compose([(guarantee_of(Coin()), 4), (guarantee_of(oue), 1)], delta=0).epsilon == 2
    assert guarantee_of(oue.guarantee) == oue.guarantee


# -- who is asked ---------------------------------------------------------------------------------------------------


def test_foreign_object_without_an_adapter_is_named_by_its_class(
    ledger: Accountant, installed: Callable[..., None]
) -> None:
    installed(plugin(lambda thing: None))
    for ask in (
        lambda: ledger.spend("alice", Coin()),
        lambda: ledger.quote("alice", Coin()),
        lambda: ledger.spend_many(["alice"], Coin()),
        lambda: ledger.simulate(Coin(), every="day"),
        lambda: guarantee_of(Coin()),
    ):
        with pytest.raises(InvalidParameter, match=r"an object of a supported library: got an object of coins\.Coin"):
            ask()
    assert ledger.history("alice") == []


def test_foreign_object_posing_as_a_mechanism_is_refused() -> None:
    class Says:
        __class__ = ldp_budget.Mechanism  # type: ignore[assignment]

    with pytest.raises(InvalidParameter, match="Says"):
        guarantee_of(Says())


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            lambda thing: 1 / 0,
            "plugin their-plugin 1.2: its guarantee_of raised ZeroDivisionError for an object of coins.Coin",
        ),
        (lambda thing: 0.5, "its guarantee_of must return a guarantee of ldp_budget.guarantees: got 0.5"),
        (
            lambda thing: Coin(),
            "its guarantee_of must return a guarantee of ldp_budget.guarantees: got an object of coins.Coin",
        ),
    ],
)
def test_adapter_that_fails_is_named(
    ledger: Accountant, installed: Callable[..., None], answer: Callable[[Any], Any], told: str
) -> None:
    installed(plugin(answer))
    with pytest.raises(PluginError, match=told):
        ledger.spend("alice", Coin())


def test_adapters_of_third_parties_that_both_answer_are_refused(installed: Callable[..., None]) -> None:
    installed(plugin(coins), plugin(lambda thing: Pure("0.001"), name="another"))  # type: ignore[arg-type]
    with pytest.raises(
        PluginError, match=r"their-plugin 1.2 and another 1.2: both have a guarantee for an object of coins.Coin"
    ):
        guarantee_of(Coin())
