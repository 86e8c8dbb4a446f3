"""`ldp-budget randomize`: the client's side."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ldp_budget.errors import OutsideDomain

from .app import ledger_path
from .files import find_collection, read_columns
from .output import json_option, print_json

if TYPE_CHECKING:
    from ldp_budget.base import Mechanism


@click.command()
@click.argument("collection")
@click.argument("file")
@click.option("--column", required=True, metavar="C", help="The column that holds the answers.")
@click.option("--out", required=True, metavar="FILE", help="The report file to write.")
@click.option("--user-column", metavar="U", help="The column that names the users; needed with --spend.")
@click.option("--spend", is_flag=True, help="Charge each user first; refused users send nothing.")
@click.option("--policy", default="default", metavar="NAME", help="With --spend, the policy [default: default]")
@json_option
@click.pass_context
def randomize(
    ctx: click.Context,
    collection: str,
    file: str,
    column: str,
    out: str,
    user_column: str | None,
    spend: bool,
    policy: str,
    as_json: bool,
) -> None:
    """Randomize a column of FILE for COLLECTION, a name in the ledger or its JSON file."""
    from ldp_budget.reports import ReportWriter

    if spend and user_column is None:
        raise click.UsageError(
            "--user-column: expected the column that names the users, with --spend; nothing was given"
        )
    found = find_collection(ctx, collection)
    columns = read_columns(file, [column, *([user_column] if user_column else [])])
    if not columns[column]:
        raise click.ClickException(f"{file} has no rows below its header; nothing was written")
    if user_column is not None:
        _check_users(file, user_column, columns[user_column])
    try:
        values = found.read_values(columns[column])
    except OutsideDomain as error:
        where = "" if error.position is None else f", row {error.position + 1} below the header"
        raise click.ClickException(f"{file}, column {column}{where}: {error}; nothing was written") from None
    with ReportWriter(out, found) as writer:
        refused = 0
        if spend and user_column is not None:
            accepted = _charge(ledger_path(ctx), columns[user_column], found.mechanism, policy)
            refused = len(values) - sum(accepted)
            values = values[accepted]
        writer.write(found.mechanism.randomize(values))
    result = {"reports": len(values), "refused": refused, "out": out}
    if as_json:
        print_json(result)
    else:
        told = f"; {refused} users were refused and sent nothing" if refused else ""
        click.echo(f"{len(values)} reports written to {out}{told}", err=True)


def _check_users(file: str, column: str, users: list[str]) -> None:
    """Before anybody is charged: every row names its user."""
    if "" in users:
        where = f"{file}, column {column}, row {users.index('') + 1} below the header"
        raise click.ClickException(f"{where}: expected a user, found nothing; nothing was written")


def _charge(ledger: str, users: list[str], mechanism: Mechanism, policy: str) -> list[bool]:
    """Charge each user one report; whether each was accepted."""
    from ldp_budget.accountant import Accountant

    with (
        Accountant(ledger, create=False) as accountant,
        click.progressbar(users, label="charging", file=sys.stderr) as bar,
    ):
        return [bool(accountant.spend(user, mechanism, policy=policy)) for user in bar]
