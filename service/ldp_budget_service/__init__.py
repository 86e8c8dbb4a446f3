"""HTTP service of the ledger: one privacy budget that every application of an organization shares.

    from ldp_budget import Accountant
    from ldp_budget_service import create_app

    app = create_app(Accountant("budget.db"))

`ldp-budget serve` runs it. Request and response bodies match the commands' `--json`.
Errors are problem details (RFC 9457). Their `type` ends in the code of the library's error.
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
