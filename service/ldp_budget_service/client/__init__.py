"""The HTTP client of the service: `Client(url, key)` is a `BudgetClient`. It needs the extra `remote`.

The wire format comes from the room `api`. A client may import that room and every room below it.
"""

from __future__ import annotations

from ..api.problem_details import ServiceProblem
from .client import Client

__all__ = ["Client", "ServiceProblem"]
