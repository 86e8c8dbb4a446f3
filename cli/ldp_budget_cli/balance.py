"""`ldp-budget balance`, `history`, `erase` and `reservations`.

`balance` shows one user, the users of a file, or all accounts; many users are one row each.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.accounting.policies import DEFAULT

from .app import open_ledger, policy_names
from .inputs import check_no_list, listed_users, user_column_option
from .output import (
    CSV,
    JSON,
    TSV,
    central_loss,
    confirm,
    json_option,
    print_json,
    print_row_table,
    print_rows,
    print_table,
    rows_options,
    shown,
    shuffled_option,
    yes_option,
)
from .plots import plot_option
from .table_reader import layout_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ldp_budget.accounting.budget_client import BudgetClient
    from ldp_budget.accounting.limits import Limit
    from ldp_budget.accounting.policies import Policy
    from ldp_budget.accounting.receipts import Balance

    Row = dict[str, Any]

_PLACE = ("user", "partition", "account")


def print_balances(ledger: BudgetClient, users: Iterable[str] | None, policy: str, form: str | None) -> None:
    """Print what many users have spent and have left; None for every account. As text if `form` is None."""
    balances = ledger.balances(users, policy)
    if form not in (None, CSV, TSV):
        print_rows((balance.to_row() for balance in balances), form)
        return
    first = next(balances, None)
    place = [name for name in _PLACE if name in (first.to_row() if first else {"user" if users else "account"})]
    flat = _Flat(first.policy if first else ledger.policy(policy))
    every = chain([] if first is None else [first], balances)
    if form is None:
        columns = [*place, *flat.amounts]
        table = [[cells.get(column) for column in columns] for cells in map(flat.short, every)]
        print_table([column.replace("_", " ") for column in columns], table)
    else:
        print_rows(map(flat.row, every), form, [*place, "policy", "erased", *flat.columns])


class _Flat:
    """Flat rows: an amount of a limit is a column. All rows have the same columns under one policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._labels = list(_labels(policy.all_limits))
        self._more = [
            *(["quotas"] if policy.plan is not None else []),
            *(["worst_epsilon_per_year"] if policy.unbounded else []),
        ]
        self.columns: list[str] = []
        self.amounts: list[str] = []
        """The columns of the text output: without δ for a limit that admits no δ."""
        for label, limit in zip(self._labels, policy.all_limits, strict=True):
            for name, most in limit.amounts(limit.capacity).items():
                self.columns += [f"{label}_{name}_{what}" for what in ("capacity", "spent", "left")]
                self.amounts += [f"{label}_{name}_{what}" for what in ("spent", "left") if most]
            self.columns.append(f"{label}_resets_at")
        self.columns += self._more

    def row(self, balance: Balance) -> Row:
        """Return the row of a user; an unbounded amount says so, because readers would take an empty cell for 0."""
        if balance.policy != self._policy:
            raise click.ClickException(f"policy {self._policy.name} was changed meanwhile; do the same again")
        row = balance.to_row()
        cells = {name: row[name] for name in (*_PLACE, "policy") if name in row}
        cells["erased"] = row.get("erased", False)
        for label, limit in zip(self._labels, row["limits"], strict=False):  # an erased user has no limits
            for name in limit["capacity"]:
                for what, of in (("capacity", "capacity"), ("spent", "spent"), ("left", "remaining")):
                    amount = limit[of][name]
                    cells[f"{label}_{name}_{what}"] = "unbounded" if amount is None else amount
            cells[f"{label}_resets_at"] = limit["resets_at"]
        return cells | {name: row[name] for name in self._more if name in row}

    def short(self, balance: Balance) -> Row:
        """Return the same row for the text output; the first amount of an erased user is `erased`."""
        cells = self.row(balance)
        return cells | dict.fromkeys(self.amounts[:1], "erased") if cells["erased"] else cells


def _labels(limits: tuple[Limit, ...]) -> Iterator[str]:
    """Return the label of each limit: its period with the sub-limit's name, then its rule and a number if needed."""
    periods = Counter(limit.label for limit in limits)
    given: Counter[str] = Counter()
    for limit in limits:
        label = limit.label if periods[limit.label] == 1 else f"{limit.label}_{limit.rule}"
        given[label] += 1
        yield label if given[label] == 1 else f"{label}_{given[label]}"


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
    """Show what USER has spent and has left under each limit, or many users, one row each."""
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
    """Raise a click error unless exactly one of user, file and all accounts is given."""
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
    from .plots.charts import plot_balance

    over_time = ledger.remaining_over_time(user, policy)
    if not over_time:
        why = f"{user} was erased" if ledger.is_erased(user) else f"policy {policy} has no limits"
        raise click.ClickException(f"--plot: {why}; there is nothing to draw")
    plot_balance(user, policy, over_time, path)


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
    """Erase the link between USER and the account; the sums stay, and USER gets no fresh budget. Asks first."""
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


@click.command()
@click.argument("user", required=False)
@rows_options
@click.pass_context
def reservations(ctx: click.Context, user: str | None, form: str | None) -> None:
    """Show the reservations of USER that can still be committed or voided, newest first; without USER, all of them.

    Users appear as the numbers of their accounts, because a ledger holds no names.
    """
    rows = open_ledger(ctx).open_reservations(None, user=user)
    if form is not None:
        print_rows(rows, form)
    elif not rows:
        click.echo("none is open", err=True)
    else:
        shown = ("receipt", "account", "mechanism", "collection", "reports", "epsilon", "expires", "note")
        print_row_table([{name: row[name] for name in shown} for row in rows])
