"""Notes on standard error: what a command did beside its result, and the next step. `--quiet` leaves them out."""

from __future__ import annotations

import click

_QUIET = f"{__package__}.quiet"
"""The context key of a flag: True if no notes and no progress are printed."""


def set_quiet(ctx: click.Context) -> None:
    """Print no notes and no progress in this command."""
    ctx.find_root().meta[_QUIET] = True


def is_quiet() -> bool:
    """True if the running command prints no notes and no progress."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.find_root().meta.get(_QUIET))


def print_note(text: str) -> None:
    """Print a note on standard error, unless the command is quiet. Warnings and errors are no notes."""
    if not is_quiet():
        click.echo(text, err=True)
