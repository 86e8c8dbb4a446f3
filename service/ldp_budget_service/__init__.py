"""HTTP service of the ledger: one privacy budget that every application of an organization shares.

`create_app(Accountant("budget.db"))` makes the application, and `ldp-budget serve` runs it. It holds the wire format, the
client, API keys, invitations and the pages. Bodies match the commands' `--json`; errors are problem details (RFC 9457),
whose `type` ends in the code of the library's error.
It imports `ldp_budget`, `ldp_budget_surveys` and `ldp_budget_verify`, and for its commands `ldp_budget_cli`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Settings", "create_app"]

if TYPE_CHECKING:
    from .app import create_app as create_app
    from .settings import Settings as Settings


def __getattr__(name: str) -> Any:
    # Import on first use: the worker processes of the compute pool need neither.
    if name == "create_app":
        from .app import create_app

        return create_app
    if name == "Settings":
        from .settings import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
