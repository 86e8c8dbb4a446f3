"""Optimal local hashing for ldp-budget: the plugin that docs/tutorials/writing-a-plugin.md arrives at."""

from __future__ import annotations

from collections.abc import Callable

import ldp_budget

from .local_hashing import OptimalLocalHashing

__all__ = ["OptimalLocalHashing"]


@ldp_budget.hookimpl
def register_mechanisms(register: Callable[[type[ldp_budget.Mechanism]], None]) -> None:
    register(OptimalLocalHashing)
