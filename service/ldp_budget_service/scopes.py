"""Which scope each operation asks for, as the description of the API says it; `callers` holds callers to it.

The tests hold this against what every scope is let in to.
"""

from __future__ import annotations

from typing import Any

OPEN, ANY, INVITED = "open", "any", "invited"
"""For everybody; for any key that is good now; for a respondent."""

SCOPES: dict[tuple[str, str], str] = {
    ("POST", "/v1/spends"): "spend",
    ("POST", "/v1/spends:batch"): "spend",
    ("POST", "/v1/reservations"): "spend",
    ("GET", "/v1/reservations"): "read",
    ("POST", "/v1/reservations/{receipt}/commit"): "spend",
    ("POST", "/v1/reservations/{receipt}/void"): "spend",
    ("GET", "/v1/users/{user}/balance"): "read",
    ("GET", "/v1/users/{user}/history"): "read",
    ("GET", "/v1/users/{user}/remaining"): "read",
    ("DELETE", "/v1/users/{user}"): "erase",
    ("POST", "/v1/users:balance"): "read",
    ("POST", "/v1/users:remaining"): "read",
    ("POST", "/v1/users:history"): "read",
    ("POST", "/v1/users:reservations"): "read",
    ("POST", "/v1/users:reservation"): "read",
    ("POST", "/v1/users:erased"): "read",
    ("POST", "/v1/users:erase"): "erase",
    ("POST", "/v1/balances"): "read",
    ("GET", "/v1/policies"): "read",
    ("GET", "/v1/policies/{name}"): "read",
    ("PUT", "/v1/policies/{name}"): "policy",
    ("GET", "/v1/policies/{name}/simulation"): "read",
    ("GET", "/v1/collections"): "read",
    ("POST", "/v1/collections"): "policy",
    ("GET", "/v1/collections/{name}"): OPEN,
    ("POST", "/v1/collections/{name}/reports"): "collect",
    ("POST", "/v1/collections/{name}/rounds"): "admin",
    ("GET", "/v1/collections/{name}/estimate"): "read",
    ("GET", "/v1/mechanisms"): "read",
    ("POST", "/v1/calibrate"): "read",
    ("POST", "/v1/compose"): "read",
    ("POST", "/v1/plan"): "read",
    ("POST", "/v1/compare"): "read",
    ("GET", "/v1/ledger"): ANY,
    ("POST", "/v1/ledger/position"): "read",
    ("GET", "/v1/ledger/records"): "audit",
    ("POST", "/v1/ledger/records"): "admin",
    ("GET", "/v1/ledger/stats"): "read",
    ("GET", "/v1/ledger/verify"): "audit",
    ("GET", "/v1/ledger/journal"): "audit",
    ("POST", "/v1/ledger/journal"): "audit",
    ("POST", "/v1/ledger/checkpoint"): "audit",
    ("POST", "/v1/ledger/repair-clock"): "admin",
    ("GET", "/v1/overview"): "read",
    ("GET", "/v1/overview/activity"): "read",
    ("GET", "/v1/overview/refusals"): "read",
    ("GET", "/v1/overview/limits"): "read",
    ("GET", "/v1/overview/mechanisms"): "read",
    ("GET", "/v1/alerts"): "read",
    ("POST", "/v1/alerts:test"): "policy",
    ("GET", "/v1/proposals"): "policy",
    ("POST", "/v1/proposals"): "policy",
    ("POST", "/v1/proposals/{number}/approve"): "policy",
    ("POST", "/v1/proposals/{number}/set"): "policy",
    ("POST", "/v1/proposals/{number}/withdraw"): "policy",
    ("PUT", "/v1/approvals"): "policy",
    ("GET", "/v1/officer"): "policy",
    ("GET", "/v1/officer/alerts"): "policy",
    ("GET", "/v1/officer/policies"): "policy",
    ("GET", "/v1/officer/keys"): "policy",
    ("GET", "/v1/officer/records"): "policy",
    ("POST", "/v1/ledger/verifications"): "audit",
    ("GET", "/v1/me"): INVITED,
    ("GET", "/problems/{code}"): OPEN,
    ("GET", "/livez"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/metrics"): "read",
}


def add_to(schema: dict[str, Any]) -> None:
    """Say in a description which scope each operation asks for, as `x-scope`."""
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            scope = SCOPES.get((method.upper(), path))
            if scope is not None:
                operation["x-scope"] = scope
