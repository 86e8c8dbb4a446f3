"""The built-in mechanisms: registered by name, imported with their first use, and refused without the secrets they need."""

from __future__ import annotations

from typing import Any

import pytest

import ldp_budget
from ldp_budget.errors import InvalidParameter
from ldp_budget.guarantees import Memoised
from ldp_budget.registry.collections import Collection
from ldp_budget.registry.hookspecs import Deferred
from ldp_budget.registry.plugins import check_mechanism, registry
from ldp_budget_mechanisms import MECHANISMS


@pytest.mark.parametrize("deferred", MECHANISMS, ids=lambda each: each.name)
def test_deferred_mechanism_has_the_names_of_its_class(deferred: Deferred) -> None:
    found = deferred.load()
    check_mechanism(found, frozenset())
    assert (found.name, found.aliases) == (deferred.name, deferred.aliases)
    assert all(registry().mechanism(name) is found for name in (found.name, *found.aliases))


def test_plugin_of_another_class_of_the_same_name_is_none() -> None:
    found = registry().mechanism("oue")
    assert str(registry().plugin_of(found)).startswith("ldp-budget ")
    assert registry().plugin_of(type("Other", (found,), {})) is None
    assert registry().plugin_of(int) is None  # type: ignore[arg-type]


BLOOM = {"bits": 16, "hashes": 1, "cohorts": 2, "f": "0.5", "p": "0.25", "q": "0.75"}
MEMOISED = (
    ("rappor", BLOOM),
    ("loloha", {"epsilon_lifetime": 2, "epsilon_first": 1, "domain_size": 6}),
    ("d-bit-flip", {"epsilon": 1, "buckets": 4, "bits": 2, "memoize": True}),
    ("one-bit-mean", {"epsilon": 1, "maximum": 10, "rounding": 5, "flip": "0.2"}),
)


@pytest.mark.parametrize(("name", "parameters"), MEMOISED)
def test_randomize_of_a_memoised_mechanism_without_secrets_is_refused(name: str, parameters: dict[str, Any]) -> None:
    made = ldp_budget.mechanism(name)(**parameters)
    assert isinstance(made.guarantee, Memoised)
    for drawing in (made, Collection("mine", made)):
        with pytest.raises(InvalidParameter, match="secrets is missing"):
            drawing.randomize([1, 0])
