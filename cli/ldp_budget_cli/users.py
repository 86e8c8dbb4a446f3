"""`ldp-budget history` and `ldp-budget erase`."""

from __future__ import annotations

import click

from .app import open_ledger
from .asking import confirm, yes_option
from .output import json_option, print_json, print_row_table, print_rows, rows_options


@click.command()
@click.argument("user")
@rows_options
@click.pass_context
def history(ctx: click.Context, user: str, form: str | None) -> None:
    """Show every journal entry of USER, oldest first."""
    rows = open_ledger(ctx).history(user)
    if form is not None:
        print_rows(rows, form)
        return
    shown = ("entry", "at", "kind", "state", "mechanism", "policy", "reports", "epsilon", "delta", "resolves")
    # Most ledgers have neither, and the table is wide.
    more = tuple(name for name in ("collection", "note") if any(row[name] for row in rows))
    print_row_table([{name: row[name] for name in (*shown, *more)} for row in rows])


@click.command()
@click.argument("user")
@click.option("--unknown", is_flag=True, help="Block USER for good even if the ledger has never seen that name.")
@yes_option
@json_option
@click.pass_context
def erase(ctx: click.Context, user: str, unknown: bool, yes: bool, as_json: bool) -> None:
    """Forget who USER's account belongs to; the sums stay, and USER gets no fresh budget. Asks first."""
    ledger = open_ledger(ctx)
    already = ledger.is_erased(user)
    if not already:
        confirm(f"Erase {user} for good?", yes)
    erased = ledger.erase(user, unknown=unknown)
    if as_json:
        print_json({"user": user, "erased": erased})
    elif already:
        click.echo(f"erased already: {user}")
    else:
        click.echo(f"erased: {user}" if erased else f"nothing to erase, and blocked from now on: {user}")
