"""`ldp-budget mechanisms`."""

from __future__ import annotations

import click

from ldp_budget.catalogue.listing import mechanism_rows

from .output import print_row_table, print_rows, rows_options


@click.command()
@rows_options
def mechanisms(form: str | None) -> None:
    """List the mechanisms there are; a plugin that could not be used is listed with the reason."""
    rows = mechanism_rows()
    if form is not None:
        print_rows(rows, form)
    else:
        print_row_table(rows)
