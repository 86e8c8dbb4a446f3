"""`ldp-budget balance`: of one user, of those of a file, of everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ldp_budget.accounting.policies import DEFAULT

from .app import open_ledger
from .balance_rows import print_balances
from .completion import policy_names
from .output import (
    CSV,
    JSON,
    TSV,
    central_loss,
    print_json,
    print_rows,
    print_table,
    rows_options,
    shown,
    shuffled_option,
)
from .plots import plot_option
from .tables import layout_options
from .user_lists import check_no_list, listed_users, user_column_option

if TYPE_CHECKING:
    from ldp_budget.accounting.budget_client import BudgetClient


@click.command()
@click.argument("user", required=False)
@click.option(
    "--users", "file", metavar="FILE", help="Those of a list: CSV, Parquet or Arrow (- for standard input)."
)
@click.option("--all", "everybody", is_flag=True, help="Every account, by its number: a ledger holds no names.")
@user_column_option
@layout_options
@click.option(
    "--policy",
    default=DEFAULT,
    metavar="NAME",
    shell_complete=policy_names,
    help=f"The policy [default: {DEFAULT}]",
)
@shuffled_option
@plot_option("what was left of each limit over time")
@rows_options
@click.pass_context
def balance(
    ctx: click.Context,
    user: str | None,
    file: str | None,
    everybody: bool,
    user_column: str | None,
    delimiter: str,
    encoding: str,
    no_header: bool,
    policy: str,
    shuffled: int | None,
    plot: str | None,
    form: str | None,
) -> None:
    """Show what USER has spent and has left under each limit, or what many users have, each in one row."""
    _check_whose(user, file, everybody)
    if file is None:
        check_no_list(user_column, no_header)
    one = user is not None and form not in (CSV, TSV)
    if shuffled is not None and not one:
        raise click.UsageError("--shuffled: expected it with a USER, as text or JSON; found a table of amounts")
    if plot is not None and user is None:
        raise click.UsageError("--plot: expected it with a USER; nothing was given")
    ledger = open_ledger(ctx)
    if plot is not None and user is not None:
        _draw(ledger, user, policy, plot)
    if user is not None and one:
        _show_one(ledger, user, policy, shuffled, form)
    elif file is not None:
        print_balances(ledger, listed_users(file, user_column, delimiter, encoding, no_header), policy, form)
    else:
        print_balances(ledger, None if user is None else [user], policy, form)


def _check_whose(user: str | None, file: str | None, everybody: bool) -> None:
    """Raise a click error unless it is said once whose balance is wanted."""
    wanted = {"USER": user is not None, "--users": file is not None, "--all": everybody}
    given = [name for name, is_given in wanted.items() if is_given]
    if not given:
        raise click.UsageError("USER: expected a user, --users FILE or --all; nothing was given")
    if len(given) > 1:
        raise click.UsageError(f"{given[1]}: expected it without {given[0]}; both were given")


def _show_one(ledger: BudgetClient, user: str, policy: str, shuffled: int | None, form: str | None) -> None:
    found = ledger.balance(user, policy)
    central = None if shuffled is None else found.shuffled(shuffled)
    result = {**found.to_json(), **({} if shuffled is None else {"shuffled": central})}
    odometer = result["odometer"]
    if form is not None:
        print_json(result) if form == JSON else print_rows([result], form)
        return
    click.echo(f"{user}, policy {result['policy']}")
    if "erased" in result:
        click.echo("erased: this user gets no budget")
        return
    rows = [
        (
            limit["period"],
            limit["rule"],
            name,
            shown(most),
            shown(limit["spent"][name]),
            shown(limit["remaining"][name]),
            limit["resets_at"] or "never",
        )
        for limit in result["limits"]
        for name, most in limit["capacity"].items()
    ]
    print_table(("period", "rule", "amount", "capacity", "spent", "left", "resets"), rows)
    if odometer is not None:
        click.echo(
            f"odometer: epsilon {shown(odometer['epsilon'])} at delta {shown(odometer['delta'])}, {odometer['note']}"
        )
    if central is not None:
        click.echo(f"{central_loss(central)}; {central['note']}")
    elif shuffled is not None:
        click.echo("shuffled: nothing was spent, or no bound is known for it")
    if "worst_epsilon_per_year" in result:
        click.echo(f"no lifetime limit; a year can cost epsilon {shown(result['worst_epsilon_per_year'])}")


def _draw(ledger: BudgetClient, user: str, policy: str, path: str) -> None:
    from .plots.balance import plot_balance

    over_time = ledger.remaining_over_time(user, policy)
    if not over_time:
        why = f"{user} was erased" if ledger.is_erased(user) else f"policy {policy} has no limits"
        raise click.ClickException(f"--plot: {why}; there is nothing to draw")
    plot_balance(user, policy, over_time, path)
