"""`ldp-budget reservations`."""

from __future__ import annotations

import click

from .app import open_ledger
from .output import print_row_table, print_rows, rows_options


@click.command()
@click.argument("user", required=False)
@rows_options
@click.pass_context
def reservations(ctx: click.Context, user: str | None, form: str | None) -> None:
    """Show the reservations of USER that can still be committed or voided, newest first; without USER, everybody's.

    Users appear as the numbers of their accounts: a ledger holds no names.
    """
    rows = open_ledger(ctx).open_reservations(None, user=user)
    if form is not None:
        print_rows(rows, form)
    elif not rows:
        click.echo("none is open", err=True)
    else:
        shown = ("receipt", "account", "mechanism", "collection", "reports", "epsilon", "expires", "note")
        print_row_table([{name: row[name] for name in shown} for row in rows])
