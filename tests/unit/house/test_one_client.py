"""A mechanism has one client: no class has both a client program and a `randomize` of its own."""

from __future__ import annotations

import pytest

import ldp_budget
from ldp_budget.sdk.mechanism import Mechanism


@pytest.mark.parametrize("name", [each.name for each in ldp_budget.mechanisms() if each.name != "discrete-gaussian"])
def test_built_in_mechanism_randomizes_by_its_program(name: str) -> None:
    assert ldp_budget.mechanism(name).randomize is Mechanism.randomize


def test_mechanism_without_a_program_may_randomize_by_itself() -> None:
    class Alone(Mechanism):
        name = "alone"

        def randomize(self, values: object, *, rng: object = None, secrets: object = None) -> object:
            return values

    assert Alone().randomize([1, 2]) == [1, 2]
