"""`ldp-budget balance`."""

from __future__ import annotations

import click

from ldp_budget.accounting.policies import DEFAULT

from .app import open_ledger
from .output import central_loss, json_option, print_json, print_table, shown, shuffled_option
from .plots import plot_option


@click.command()
@click.argument("user")
@click.option("--policy", default=DEFAULT, metavar="NAME", help=f"The policy [default: {DEFAULT}]")
@shuffled_option
@plot_option("what was left of each limit over time")
@json_option
@click.pass_context
def balance(
    ctx: click.Context, user: str, policy: str, shuffled: int | None, plot: str | None, as_json: bool
) -> None:
    """Show what USER has spent and has left under each limit."""
    found = open_ledger(ctx).balance(user, policy)
    if plot is not None:
        _draw(ctx, user, policy, plot)
    central = None if shuffled is None else found.shuffled(shuffled)
    result = {**found.to_json(), **({} if shuffled is None else {"shuffled": central})}
    odometer = result["odometer"]
    if as_json:
        print_json(result)
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


def _draw(ctx: click.Context, user: str, policy: str, path: str) -> None:
    from .plots.balance import plot_balance

    over_time = open_ledger(ctx).remaining_over_time(user, policy)
    if not over_time:
        erased = open_ledger(ctx).is_erased(user)
        why = f"{user} was erased" if erased else f"policy {policy} has no limits"
        raise click.ClickException(f"--plot: {why}; there is nothing to draw")
    plot_balance(user, policy, over_time, path)
