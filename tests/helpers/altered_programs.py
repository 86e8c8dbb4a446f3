"""Mechanisms whose client program differs from their client."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ldp_budget
from ldp_budget import Mechanism
from ldp_budget.sdk.client_program import Program

RR = ldp_budget.mechanism("randomized-response")(epsilon=1)
KEPT = ldp_budget.mechanism("d-bit-flip")(epsilon=1, buckets=4, bits=4, memoize=True)


def emits(made: Mechanism, **changes: Any) -> Mechanism:
    """The mechanism with another client program, of which `changes` are the parts that are not its own."""
    program = replace(made.client_program(), **changes)

    class Emits(type(made)):  # type: ignore[misc]
        def client_program(self) -> Program:
            return program

    return Emits(**made.declared)


def one_of(made: Mechanism, name: str, expression: Any) -> tuple[tuple[str, Any], ...]:
    """The steps of its program, with one in another's place."""
    return tuple((step, expression if step == name else was) for step, was in made.client_program().steps)
