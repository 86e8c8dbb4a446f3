"""The command line of ldp-budget: click commands, one file per topic; no mathematics and no SQL.

A command reads its options, calls one of the packages and prints what it returns, as a table or as JSON.
It imports `ldp_budget`, inside the functions that need it, so that a command starts fast. The packages of surveys, the
service and proofs have their own commands and register them as entry points. Plugins use the hook `register_commands`.
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
