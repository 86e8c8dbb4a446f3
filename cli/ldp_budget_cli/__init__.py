"""The command line of ldp-budget: click commands, one file per topic; no mathematics and no SQL.

A command reads its options, calls one of the packages and prints what it returns, as a table or as JSON.
It imports `ldp_budget`, `ldp_budget_service`, `ldp_budget_surveys` and `ldp_budget_verify`, inside the functions that
need them, so that a command starts fast. Plugins add commands by the hook `register_commands`.
"""

from __future__ import annotations

import os


def main() -> None:
    """Run the command line."""
    from .app import cli

    if "_LDP_BUDGET_COMPLETE" in os.environ:
        from .bash_completion import register

        register()

    cli()
