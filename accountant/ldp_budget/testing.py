"""The mechanism contract as pytest tests: `from ldp_budget.testing import MechanismContract`.

Its home is the package of proofs. The name is imported on first use: the accountant imports no proofs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["MechanismContract"]

if TYPE_CHECKING:
    from ldp_budget_verify.testing import MechanismContract as MechanismContract


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("ldp_budget_verify.testing"), name)
