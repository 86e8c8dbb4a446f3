"""`ldp-budget statement`: one page about one user, for an access request or a court."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ldp_budget_cli.app import check_local, open_ledger
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.output import counted, json_option, print_json

from .page_files import check_page, write_page

if TYPE_CHECKING:
    from ..pages.statement import Statement


@click.command()
@click.argument("user")
@click.option("--out", metavar="FILE.html", help="The HTML file to write.")
@click.option("--overwrite", is_flag=True, help="Replace the file at --out.")
@click.option(
    "--language", default="en", show_default=True, metavar="TAG", help="The language of the page: en, ko or de."
)
@click.option(
    "--verify", is_flag=True, help="Verify the ledger now [default: unless it was verified within the last hour]"
)
@json_option
@click.pass_context
def statement(
    ctx: click.Context, user: str, out: str | None, overwrite: bool, language: str, verify: bool, as_json: bool
) -> None:
    """Write one page about USER: what was charged, when and for whom, all totals and limits, and what they mean.

    The page says when the ledger was verified, and what it does not prove. It holds no answer: the ledger has none.

    \b
    Example:
      ldp-budget statement alice --out alice.html
    """
    from ..pages.statement import Statement, statement_page

    if out is None and not as_json:
        raise click.UsageError("--out is missing: the HTML file to write. Add --out FILE.html, or --json.")
    if out is not None:
        check_page(out, overwrite)
    ledger = check_local(open_ledger(ctx), "GET /v1/users/USER/statement has the same page")
    found = Statement.of(ledger, user, seconds=0 if verify else 3_600)
    if out is not None:
        page = statement_page(found, language)
        write_page(out, page)
        print_note(f"Statement of {counted(len(found.charges), 'charge')} written to {out}")
    if as_json:
        print_json(found.to_json())
    _warn(found)


def _warn(found: Statement) -> None:
    """Exit with 1 if the ledger failed its verification."""
    if not found.verified:
        click.echo(
            f"Warning: the ledger failed its check: {counted(len(found.problems), 'problem')}. Do not rely on this "
            "statement. To list the problems, run: ldp-budget ledger verify",
            err=True,
        )
        sys.exit(1)
