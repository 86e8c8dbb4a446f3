"""The budgets of a service from elsewhere: `Client(url, key)` is a `BudgetClient` over HTTP.

    from ldp_budget.client import Client

    with Client("https://budget.example.org", key) as accountant:
        receipt = accountant.spend("alice", oue)

It needs the extra `remote`. What crosses the wire is the JSON of the commands, with exact amounts beside.
"""

from __future__ import annotations

from ..api.problem_details import ServiceProblem
from .client import Client

__all__ = ["Client", "ServiceProblem"]
