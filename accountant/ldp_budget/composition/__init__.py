"""Placeholder that the composition engine replaces: the additive rule only."""

from __future__ import annotations

from decimal import Decimal

from ..amounts import DELTA_DIGITS, EPSILON_DIGITS, Costs, to_capacity
from ..errors import NotSupported


def filter_rule(name: str) -> str:
    if name != "basic":
        raise NotSupported(f"rule {name!r}: expected basic")
    return name


def capacity(rule: str, epsilon: Decimal, delta: Decimal) -> Costs:
    return Costs(to_capacity(epsilon, EPSILON_DIGITS), to_capacity(delta, DELTA_DIGITS), None, None)
