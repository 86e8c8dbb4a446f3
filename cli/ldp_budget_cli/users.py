"""`ldp-budget history` and `ldp-budget erase`."""

from __future__ import annotations

import click

from .app import open_ledger
from .output import json_option, nl_option, print_json, print_rows


@click.command()
@click.argument("user")
@json_option
@nl_option
@click.pass_context
def history(ctx: click.Context, user: str, as_json: bool, nl: bool) -> None:
    """Show every journal entry of USER, oldest first."""
    rows = open_ledger(ctx).history(user)
    if as_json or nl:
        print_rows(rows, as_json=as_json, nl=nl)
        return
    shown = ("entry", "at", "kind", "state", "mechanism", "policy", "reports", "epsilon", "delta", "resolves")
    print_rows([{name: row[name] for name in shown} for row in rows], as_json=False)


@click.command()
@click.argument("user")
@json_option
@click.pass_context
def erase(ctx: click.Context, user: str, as_json: bool) -> None:
    """Forget who USER's account belongs to; the sums stay, and USER gets no fresh budget."""
    erased = open_ledger(ctx).erase(user)
    if as_json:
        print_json({"user": user, "erased": erased})
    else:
        click.echo(f"erased: {user}" if erased else f"nothing to erase: {user}")
