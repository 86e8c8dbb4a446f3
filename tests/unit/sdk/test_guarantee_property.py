"""Malformed guarantee properties: a sentence when the class is registered, checked or used, never a traceback."""

from __future__ import annotations

import functools
from decimal import Decimal
from typing import Any

import pytest

import ldp_budget
from ldp_budget import PluginError
from ldp_budget.guarantees import Pure
from ldp_budget.registry.plugins import check_mechanism
from ldp_budget.sdk.parameters import real
from ldp_budget_verify import contract


def promising(own: Any) -> type[ldp_budget.Mechanism]:
    """A mechanism with this `guarantee`, and no examples."""
    epsilon = real("privacy loss of one report", above=0)
    return type("Vague", (ldp_budget.Mechanism,), {"name": "vague", "epsilon": epsilon, "guarantee": own})


WRONG = [
    (1.0, "the float 1.0"),
    (None, "None, as of a property that returns nothing"),
    ("1", "the str '1'"),
    ((1, 0), "the tuple (1, 0)"),
    (Decimal("0.5"), "the Decimal Decimal('0.5')"),
    (Pure, "the class Pure"),
]
ids = [found for _, found in WRONG]


@pytest.mark.slow
@pytest.mark.some(6)
@pytest.mark.parametrize("wrap", [property, functools.cached_property])
@pytest.mark.parametrize(("value", "found"), WRONG, ids=ids)
def test_guarantee_property_of_another_type_names_it(value: Any, found: str, wrap: Any) -> None:
    cls = promising(wrap(lambda self: value))
    check_mechanism(cls, frozenset())  # what it returns is known when it is asked
    said = f"a guarantee of ldp_budget.guarantees, such as Pure(self.epsilon): got {found}"
    made = cls(epsilon=1)
    for use in (
        lambda: made.guarantee,
        made.describe,
        lambda: ldp_budget.verify(made),
        lambda: ldp_budget.compose([(made.guarantee, 2)]),
    ):
        with pytest.raises(PluginError) as error:
            use()
        assert said in str(error.value)
    [certified] = contract.certify([cls], distribution="vague", version="1", samples=5000)["mechanisms"]
    assert certified["checked"] == "no"
    assert said in certified["problem"]


def test_guarantee_as_a_method_is_refused_with_the_remedy() -> None:
    with pytest.raises(PluginError, match=r"Vague\.guarantee is a method\. Put @property above it"):
        check_mechanism(promising(lambda self: Pure(1)), frozenset())
