"""The command line of ldp-budget: click commands, one file per topic; no mathematics and no SQL."""

from __future__ import annotations

import os


def main() -> None:
    """Run the command line."""
    from .app import cli

    if "_LDP_BUDGET_COMPLETE" in os.environ:
        from .bash_completion import register

        register()

    cli()
