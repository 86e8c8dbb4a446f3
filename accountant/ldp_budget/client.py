"""HTTP client of the service: `from ldp_budget.client import Client`. Its home is the package of the service.

The names are imported on first use: the accountant imports no service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._later import later_names

__all__ = ["Client", "ServiceProblem"]

if TYPE_CHECKING:
    from ldp_budget_service.client import Client as Client
    from ldp_budget_service.client import ServiceProblem as ServiceProblem

__getattr__ = later_names(__name__, dict.fromkeys(__all__, "ldp_budget_service.client"))
