"""The piecewise mechanism for ldp-budget: the numeric plugin of docs/tutorials/writing-a-plugin.md."""

from __future__ import annotations

from collections.abc import Callable

import ldp_budget

from .piecewise import Piecewise

__all__ = ["Piecewise"]


@ldp_budget.hookimpl
def register_mechanisms(register: Callable[[type[ldp_budget.Mechanism]], None]) -> None:
    register(Piecewise)
