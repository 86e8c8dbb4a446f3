"""`ldp-budget ledger`."""

from __future__ import annotations

import os

import click

from .app import new_ledger_path
from .output import json_option, print_json


@click.group()
def ledger() -> None:
    """Create a ledger."""


@ledger.command("init")
@json_option
@click.pass_context
def init(ctx: click.Context, as_json: bool) -> None:
    """Make an empty ledger and its key; where both exist they are left as they are."""
    from ldp_budget.accountant import Accountant

    path = new_ledger_path(ctx)
    created = not os.path.exists(path)
    Accountant(path).close()
    if as_json:
        print_json({"ledger": path, "created": created})
    else:
        click.echo(f"{'made' if created else 'exists already'}: {path}")
