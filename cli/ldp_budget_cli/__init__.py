"""The command line of ldp-budget: click commands, one file per topic; no mathematics and no SQL."""

from __future__ import annotations


def main() -> None:
    """Run the command line."""
    from .app import cli

    cli()
