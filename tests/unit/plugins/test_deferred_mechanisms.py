"""The built-in mechanisms are registered by name, and each is imported with its first use."""

from __future__ import annotations

import pytest

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
