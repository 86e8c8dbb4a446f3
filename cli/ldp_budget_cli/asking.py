"""Asking before what cannot be undone."""

from __future__ import annotations

import sys

import click

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


def confirm(question: str, yes: bool) -> None:
    """Go on if that was said with `--yes`, or is said now at the terminal; an error where nobody can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(
            "--yes: expected where nobody can be asked, as this cannot be undone; nothing was given"
        )
    click.confirm(question, abort=True, err=True)
