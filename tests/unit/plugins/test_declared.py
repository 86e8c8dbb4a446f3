"""`declared`: guarantees stated by the caller are charged, and never shown as checked or drawable."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from ldp_budget import Accountant, Collection, InvalidParameter, Limit, Mechanism, NotSupported, compose, mechanism
from ldp_budget.guarantees import (
    Approximate,
    Copies,
    FinitePair,
    Gaussian,
    Guarantee,
    Laplace,
    Memoised,
    Pure,
    SymmetricPair,
    Unbounded,
    ZeroConcentrated,
)
from ldp_budget.registry.certification import checked

Declared: Any = mechanism("declared")
SOURCE = "their own release notes, 2026"
EVERY = [
    Pure("0.3"),
    Approximate("0.3", "1e-7"),
    ZeroConcentrated("0.1"),
    Gaussian("0.5"),
    Gaussian("0.5", "1", "1e-6"),
    Laplace("2"),
    SymmetricPair("1", "0.5"),
    FinitePair((("3/4", "1/4"), ("1/4", "3/4"))),  # type: ignore[arg-type]
    Memoised(("1", "1.5"), "2", 3),  # type: ignore[arg-type]
    Copies(3, Copies(2, Pure("0.1"))),
    Unbounded(),
]


def test_declared_has_the_stated_guarantee() -> None:
    assert Declared(epsilon="0.3", source=SOURCE).guarantee == Pure("0.3")  # type: ignore[arg-type]
    assert Declared(epsilon="0.3", delta="1e-7", source=SOURCE).guarantee == Approximate("0.3", "1e-7")  # type: ignore[arg-type]
    assert Declared(rho="0.1", source=SOURCE).guarantee == ZeroConcentrated("0.1")  # type: ignore[arg-type]
    other = Declared(promise={"kind": "gaussian", "mu": "0.5"}, source=SOURCE)
    assert other.guarantee == Gaussian("0.5")  # type: ignore[arg-type]
    assert other == Declared(promise='{"mu": "0.50", "kind": "gaussian"}', source=SOURCE)


@pytest.mark.parametrize("guarantee", EVERY, ids=lambda each: each.kind)
def test_declared_spelling_of_every_guarantee_is_unique_and_round_trips(guarantee: Guarantee) -> None:
    made = Declared.of(guarantee, SOURCE)
    assert made.guarantee == guarantee
    again = Declared(**json.loads(json.dumps(made.declared)))
    assert again == made
    assert again.fingerprint == made.fingerprint
    assert again.guarantee == guarantee
    assert made.replace(source="another").fingerprint != made.fingerprint


def test_declared_with_delta_one_is_unbounded() -> None:
    assert Declared.of(Approximate(Decimal(1), Decimal(1)), SOURCE).guarantee == Unbounded()


def test_declared_refuses_to_draw_and_estimate_with_the_reason() -> None:
    made: Mechanism = Declared(epsilon=1, source=SOURCE)
    for ask in (
        lambda: made.randomize([0]),
        lambda: made.client_program(),
        lambda: made.aggregate([0]),
        lambda: made.estimate([0]),
        lambda: made.check_reports([0]),
    ):
        with pytest.raises(
            NotSupported, match=r"mechanism declared can only be charged, .* 'their own release notes, 2026'"
        ):
            ask()
    with pytest.raises(NotSupported, match="declared"):
        Collection("x", made).randomize([0])


def test_declared_is_never_called_checked(accountant: Accountant) -> None:
    made = Declared(epsilon="0.1", source=SOURCE)
    assert checked(Declared) == "no"
    assert Declared.source == "the caller who declares it"
    assert made.source == made.describe()["source"] == SOURCE
    accountant.set_policy("default", [Limit("lifetime", epsilon=1)], checked=True)
    receipt = accountant.spend("alice", made)
    assert receipt.status == "refused"
    assert accountant.history("alice") == []


def test_declared_composes_and_can_be_planned() -> None:
    made = Declared(epsilon="0.1", delta="1e-8", source=SOURCE)
    assert compose([(made.guarantee, 10)], delta="1e-6").epsilon == 1
    assert made.at_epsilon("0.2").guarantee == Approximate("0.2", "1e-8")  # type: ignore[arg-type]


@pytest.mark.parametrize("turned", ["\u202e", "\u202d", "\u2066", "\u2069"])
def test_declared_source_refuses_text_direction_characters(turned: str) -> None:
    """A terminal would show the journal's line as another one; a joiner within a word is text."""
    assert Declared(epsilon=1, source="a\u200db").source == "a\u200db"
    with pytest.raises(InvalidParameter, match="without control characters"):
        Declared(epsilon=1, source=f"study {turned}3")
