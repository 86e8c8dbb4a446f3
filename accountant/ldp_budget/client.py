"""HTTP client of the service: `from ldp_budget.client import Client`. Its home is the package of the service.

The names are imported on first use: the accountant imports no service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Client", "ServiceProblem"]

if TYPE_CHECKING:
    from ldp_budget_service.client import Client as Client
    from ldp_budget_service.client import ServiceProblem as ServiceProblem


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("ldp_budget_service.client"), name)
