"""A mechanism in the short notation derives its coin and its guarantee once; no charge after that derives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ldp_budget import Accountant, Limit
from ldp_budget.sdk import FrequencyMechanism, client_mechanism, coin_calibration, derivations, integer, real, where


class Kept(FrequencyMechanism):
    """The answer, or any answer."""

    name = "kept-or-any"

    epsilon = real("privacy loss of one report", above=0, at_most=20)
    domain_size = integer("number of possible answers", at_least=2, at_most=100)

    def client(self, value: Any, draw: Any) -> Any:
        other = draw.below(self.domain_size)
        return where(draw.coin(), value, other)


class Shifted(Kept):
    """The same with another client."""

    def client(self, value: Any, draw: Any) -> Any:
        other = draw.below(self.domain_size - 1)
        return where(draw.coin(), value, other + (other >= value))


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("LDP_BUDGET_CERTIFICATES", str(tmp_path / "certificates.json"))
    monkeypatch.setattr(derivations, "_MOMENT", -1.0)
    derivations.forget()
    yield
    derivations.forget()


def derived(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Count laws that are derived from now on, as by another process that has the files alone."""
    derivations.forget()
    calls: list[Any] = []
    for module in (client_mechanism, coin_calibration):
        true = module.law_of  # type: ignore[attr-defined]
        monkeypatch.setattr(module, "law_of", lambda program, true=true: calls.append(program) or true(program))
    return calls


def test_guarantee_of_known_client_is_read_and_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Kept(epsilon=1, domain_size=5)
    known = first.guarantee, first.client_program(), first.parameters
    calls = derived(monkeypatch)
    again = Kept(epsilon=1, domain_size=5)
    assert (again.guarantee, again.client_program(), again.parameters) == known
    assert not calls


def test_charge_of_known_client_derives_no_law(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Kept(epsilon=1, domain_size=5).guarantee
    calls = derived(monkeypatch)
    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", [Limit("lifetime", epsilon=10)])
        assert accountant.spend("ada", Kept(epsilon=1, domain_size=5)).status == "spent"
    assert not calls


CHANGED = [(Kept, 2, 5), (Kept, 1, 6), (Shifted, 1, 5)]


@pytest.mark.parametrize(("kind", "epsilon", "size"), CHANGED)
def test_guarantee_of_changed_client_is_derived(
    monkeypatch: pytest.MonkeyPatch, kind: type[Kept], epsilon: int, size: int
) -> None:
    assert Kept(epsilon=1, domain_size=5).guarantee
    calls = derived(monkeypatch)
    assert kind(epsilon=epsilon, domain_size=size).guarantee
    assert calls


def test_client_that_loses_too_much_is_refused_from_the_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sends(Kept):
        def client(self, value: Any, draw: Any) -> Any:
            return where(draw.coin(), value, 0)

    for _ in range(2):
        with pytest.raises(Exception, match="above ε = 1"):
            Sends(epsilon=1, domain_size=5).client_program()
        derived(monkeypatch)
