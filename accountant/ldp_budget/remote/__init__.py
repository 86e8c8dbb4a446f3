"""The budgets of a service from elsewhere: `RemoteAccountant(url, key)` is an `Accountant` over HTTP.

    from ldp_budget.remote import RemoteAccountant

    with RemoteAccountant("https://budget.example.org", key) as accountant:
        receipt = accountant.spend("alice", oue)

It needs the extra `remote`. What crosses the wire is the JSON of the commands, with exact amounts beside.
"""

from __future__ import annotations

from .accountant import RemoteAccountant
from .problems import ServiceProblem

__all__ = ["RemoteAccountant", "ServiceProblem"]
