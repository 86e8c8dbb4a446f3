"""`ldp-budget balance`, `history`, `erase` and `reservations`.

`balance` shows one user, the users of a file, or all accounts; many users are one row each.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.guarantees.fixed_point import printed_up

from .app import open_ledger, policy_option
from .excel_files import save_balances, wants_file, xlsx_option
from .input_tables import layout_options
from .inputs import check_no_list, listed_users, user_column_option
from .limit_figures import (
    SYMBOLS,
    amount_text,
    figures_of,
    minute,
    number,
    own_unit,
    quota_rows,
    spent_epsilon,
    yearly_text,
)
from .notes import print_note
from .output import (
    CSV,
    JSON,
    TSV,
    cell,
    central_loss,
    confirm,
    json_option,
    print_cells,
    print_json,
    print_rows,
    rows_options,
    shuffled_option,
    yes_option,
)
from .plots import plot_option
from .progress import followed
from .tables import Affordable, Loss, print_row_table, print_table, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ldp_budget.accounting.budget_client import BudgetClient
    from ldp_budget.accounting.limits import Limit
    from ldp_budget.accounting.policies import Policy
    from ldp_budget.accounting.receipts import Balance, LimitState

    Row = dict[str, Any]

_PLACE = ("user", "partition", "account")
_MOST_SHARED = 10_000


def print_balances(ledger: BudgetClient, users: Iterable[str] | None, policy: str, form: str | None) -> None:
    """Print what many users have spent and have left; None for every account. As text if `form` is None."""
    balances = ledger.balances(users, policy)
    if users is None:
        balances = followed(balances, "reading accounts", lambda: _accounts(ledger))
    if wants_file():
        found = list(balances)
        save_balances((row for each in found for row in _saved_rows(each)), policy)
        balances = iter(found)
    if form not in (None, CSV, TSV):
        print_rows(map(_json_row, balances), form)
        return
    first = next(balances, None)
    place = [name for name in _PLACE if name in (first.to_row() if first else {"user" if users else "account"})]
    flat = _Flat(first.policy if first else ledger.policy(policy))
    every = chain([] if first is None else [first], balances)
    if form is None:
        columns = [*place, *flat.amounts]
        table = [[cells.get(column, "") for column in columns] for cells in map(flat.short, every)]
        print_table([column.replace("_", " ") for column in columns], table)
    else:
        print_cells(
            (flat.cells(balance, place) for balance in every), form, [*place, "policy", "erased", *flat.columns]
        )


def _accounts(ledger: BudgetClient) -> int:
    stats = ledger.stats()
    return int(stats["users"]) + int(stats["erased"])


def _json_row(balance: Balance) -> Row:
    """Return the row of a user, with the ε of the promise beside the amounts of each rule."""
    row = balance.to_row()
    _add_epsilon(row.get("limits", ()), balance)
    return row


class _Flat:
    """Flat rows: an amount of a limit is a column. All rows have the same columns under one policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._labels = list(_labels(policy.all_limits))
        self._more = [
            *(["quotas"] if policy.plan is not None else []),
            *(["worst_epsilon_per_year"] if policy.unbounded else []),
        ]
        self._shared: dict[tuple[bool, int], tuple[tuple[LimitState, ...], Policy, list[str]]] = {}
        self.columns: list[str] = []
        self.amounts: list[str] = []
        """The columns of the text output: the ε spent, what is left in the unit of the rule, and the plan's reports."""
        for label, limit in zip(self._labels, policy.all_limits, strict=True):
            for name in limit.amounts(limit.capacity):
                self.columns += [f"{label}_{name}_{what}" for what in ("capacity", "spent", "left")]
            self.columns.append(f"{label}_resets_at")
            self.amounts += [f"{label}_ε_spent", f"{label}_{SYMBOLS[own_unit(limit) or 'epsilon']}_left"]
            if limit.amounts(limit.capacity).get("delta"):
                self.amounts += [f"{label}_δ_spent", f"{label}_δ_left"]
        if policy.plan is not None:
            self.amounts += ["plan_used", "plan_left"]
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

    def cells(self, balance: Balance, place: Sequence[str]) -> list[str]:
        """Return the cells of a user's row: those of `place`, then those of `row`.

        Accounts with equal sums share one tuple of limits, and so the cells after their place.
        """
        named = {"user": balance.user} if not balance.place else balance.place
        first = [cell(named.get(name)) for name in place]
        key = balance.erased, id(balance.limits)
        limits, policy, rest = self._shared.get(key, (None, None, []))
        if limits is not balance.limits or policy is not balance.policy or balance.quotas:
            row = self.row(balance)
            rest = [cell(row.get(name)) for name in ("policy", "erased", *self.columns)]
            if len(self._shared) >= _MOST_SHARED:
                self._shared.clear()
            self._shared[key] = balance.limits, balance.policy, rest
        return first + rest

    def short(self, balance: Balance) -> Row:
        """Return the row for the text output; the first amount of an erased user is `erased`."""
        flat = self.row(balance)
        cells = {name: flat[name] for name in _PLACE if name in flat}
        if flat["erased"]:
            return cells | dict.fromkeys(self.amounts[:1], "erased")
        for label, state in zip(self._labels, balance.limits, strict=False):
            unit = own_unit(state.limit) or "epsilon"
            cells[f"{label}_ε_spent"] = Loss(spent_epsilon(state))
            cells[f"{label}_{SYMBOLS[unit]}_left"] = _left(flat[f"{label}_{unit}_left"])
            cells[f"{label}_δ_spent"] = flat.get(f"{label}_delta_spent")
            cells[f"{label}_δ_left"] = _left(flat.get(f"{label}_delta_left"))
        cells["plan_used"] = sum(quota["used"] for quota in balance.quotas)
        cells["plan_left"] = sum(quota["left"] for quota in balance.quotas)
        return cells


def _left(amount: object) -> object:
    return Affordable(amount) if isinstance(amount, float) else amount


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
    "--users",
    "file",
    metavar="FILE",
    help="Show the users of FILE: CSV, Excel, Parquet or Arrow (- for standard input).",
)
@click.option(
    "--all", "every_account", is_flag=True, help="Show every account by its number: a ledger holds no names."
)
@user_column_option
@layout_options
@policy_option("Show the limits of this policy")
@shuffled_option
@plot_option("what was left of each limit over time")
@xlsx_option
@rows_options
@click.pass_context
def balance(
    ctx: click.Context,
    user: str | None,
    file: str | None,
    every_account: bool,
    user_column: str | None,
    delimiter: str,
    encoding: str,
    no_header: bool,
    policy: str,
    shuffled: int | None,
    plot: str | None,
    form: str | None,
) -> None:
    """Show what USER has spent and has left under each limit, or many users, one row each.

    The ε spent is that of the promise (ε, δ). Rules zcdp, gdp and renyi count in a unit of their own (ρ, μ², D), which
    is shown below the ε. Under a plan, the reports used and left are shown too.

    \b
    Example:
      ldp-budget balance alice
      ldp-budget balance --users users.csv --csv
    """
    _check_whose(user, file, every_account)
    if file is None:
        check_no_list(user_column, no_header)
    one = user is not None and form not in (CSV, TSV)
    if shuffled is not None and not one:
        raise click.UsageError("--shuffled works for one USER, as text or --json. Name one user.")
    if plot is not None and user is None:
        raise click.UsageError("--plot works for one USER. Name one user.")
    ledger = open_ledger(ctx)
    if plot is not None and user is not None:
        _draw(ledger, user, policy, plot)
    if user is not None and one:
        _show_one(ledger, user, policy, shuffled, form)
    elif file is not None:
        print_balances(ledger, listed_users(file, user_column, delimiter, encoding, no_header), policy, form)
    else:
        print_balances(ledger, None if user is None else [user], policy, form)


def _check_whose(user: str | None, file: str | None, every_account: bool) -> None:
    """Raise a click error unless exactly one of user, file and all accounts is given."""
    wanted = {"USER": user is not None, "--users": file is not None, "--all": every_account}
    given = [name for name, is_given in wanted.items() if is_given]
    if not given:
        raise click.UsageError("USER is missing. Name a user, or add --users FILE or --all.")
    if len(given) > 1:
        raise click.UsageError(f"{given[0]} and {given[1]} exclude each other. Use one of them.")


def _show_one(ledger: BudgetClient, user: str, policy: str, shuffled: int | None, form: str | None) -> None:
    found = ledger.balance(user, policy)
    central = None if shuffled is None else found.shuffled(shuffled)
    result = {**found.to_json(), **({} if shuffled is None else {"shuffled": central})}
    _add_epsilon(result.get("limits", ()), found)
    odometer = result["odometer"]
    save_balances(_saved_rows(found), policy)
    if not found.charges and not found.erased:
        _note_no_charge(user)
    if form is not None:
        print_json(result) if form == JSON else print_rows([result], form)
        return
    click.echo(f"{user}, policy {result['policy']}")
    if "erased" in result:
        click.echo("erased: this user gets no budget")
        return
    if found.limits:
        rows = [row for state in found.limits for row in _state_rows(state)]
        print_table(("limit", "rule", "amount", "of", "spent", "left", "resets (UTC)"), rows)
        if any(state.limit.scope for state in found.limits):
            print_note("What is linked to an attribute can be inferred up to the total of all charges")
    if found.quotas:
        _print_plan(ledger, found)
    if odometer is not None:
        exact = f"ε = {shown(odometer['epsilon'])} at δ = {shown(odometer['delta'])}"
        click.echo(f"All charges so far, composed exactly: {exact} ({odometer['note']})")
    if central is not None:
        click.echo(f"{central_loss(central)} ({central['note']})")
    elif shuffled is not None:
        click.echo("No central ε is shown: nothing was spent, or no bound is known")
    if "worst_epsilon_per_year" in result:
        click.echo(yearly_text(found.policy))


def _add_epsilon(rows: Sequence[dict[str, Any]], found: Balance) -> None:
    """Add the ε of the promise to limits that count in a unit of their own: its capacity, and what is spent of it."""
    for row, state in zip(rows, found.limits, strict=False):  # an erased user has no limits
        if own_unit(state.limit) is not None:
            row["capacity"]["epsilon"] = row["epsilon"]
            row["spent"]["epsilon"] = spent_epsilon(state)


def _state_rows(state: LimitState) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a limit: the ε of the promise, the unit of its rule, and a δ if there is one."""
    limit, row = state.limit, state.to_json()
    unit, has_delta = own_unit(limit), bool(limit.delta) and limit.rule == "basic"
    most, spent, left = figures_of(state, "promise")
    resets = "never" if state.resets_at is None else f"{state.resets_at:%Y-%m-%d %H:%M}".removesuffix(" 00:00")
    if state.returns:
        resets = f"{amount_text(row['returns'][0][unit or 'epsilon'])} on {state.returns[0][0]:%Y-%m-%d}"
    amount = "ε" if unit is None else f"ε at δ = {number(limit.delta)}"
    yield limit.label, limit.rule, amount, most, spent, left if unit is None else "", resets
    for name in row["capacity"]:
        if name == unit or (name == "delta" and (has_delta or limit.aside or row["spent"]["delta"])):
            yield "", "", SYMBOLS[name], *figures_of(state, name), ""


def _saved_rows(found: Balance) -> Iterator[Row]:
    """Yield the rows of a user for a spreadsheet: the figures of the text output as numbers."""
    user = found.to_row()
    shared = {"user": next((str(user[name]) for name in ("user", "account") if name in user), "")}
    if found.erased:
        yield {**shared, "amount": "erased"}
        return
    for state in found.limits:
        for _, _, amount, most, spent, left, resets in _state_rows(state):
            amounts = {"of": _number(most), "spent": _number(spent), "left": _number(left)}
            at = {"resets": resets or None, "limit": state.limit.label, "rule": state.limit.rule, "amount": amount}
            yield {**shared, **at, **amounts}
    for quota in found.quotas:
        guarantee = f"reports that cost ε = {amount_text(quota['guarantee'].get('epsilon'))}"
        used, left = quota["used"], quota["left"]
        yield {**shared, "amount": guarantee, "of": used + left, "spent": used, "left": left}


def _number(text: str) -> float | str | None:
    """Return a printed amount as a number; one that has none stays a text."""
    try:
        return float(text) if text else None
    except ValueError:
        return text


def _print_plan(ledger: BudgetClient, found: Balance) -> None:
    """Print the reports of the plan that are used and left, and the price of all of them."""
    epsilon, delta = found.policy.planned()
    click.echo(f"Plan: all its reports together cost ε = {printed_up(epsilon)} at δ = {number(delta)}")
    print_row_table(quota_rows(found.quotas, ledger.collections()))


def _draw(ledger: BudgetClient, user: str, policy: str, path: str) -> None:
    from .plots.balance import plot_balance

    over_time = ledger.remaining_over_time(user, policy)
    if not over_time:
        why = f"{user} was erased" if ledger.is_erased(user) else f"policy {policy} has no limits"
        raise click.ClickException(f"--plot: there is nothing to draw, because {why}.")
    plot_balance(user, policy, over_time, path)


@click.command()
@click.argument("user")
@rows_options
@click.pass_context
def history(ctx: click.Context, user: str, form: str | None) -> None:
    """Show every journal entry of USER, oldest first.

    The table shows times to the minute (UTC); --json, --csv and the like show all fields.

    \b
    Example:
      ldp-budget history alice
    """
    rows = open_ledger(ctx).history(user)
    if not rows:
        _note_no_charge(user)
    if form is not None:
        print_rows(rows, form)
        return
    print_row_table([_history_row(row, rows) for row in rows], ("policy", "kind", "reports", "reservation", "note"))


def _note_no_charge(user: str) -> None:
    """Print that a user has no charge: the name may be misspelled."""
    print_note(f"No charge of a user {user!r} yet")


def _history_row(row: Row, rows: list[Row]) -> Row:
    """Return the columns of the text output. Columns that are empty in all rows are left out."""
    cells = {
        "entry": row["entry"],
        "at (UTC)": minute(row["at"]),
        "kind": row["kind"],
        **({"state": row["state"]} if any(each["state"] for each in rows) else {}),
        **{name: row[name] for name in ("mechanism", "policy", "reports", "epsilon", "delta")},
    }
    if not any(each["delta"] for each in rows):
        del cells["delta"]
    names = {"resolves": "reservation", "collection": "collection", "note": "note"}
    return cells | {shown: row[name] for name, shown in names.items() if any(each[name] for each in rows)}


@click.command()
@click.argument("user")
@click.option("--unknown", is_flag=True, help="Block the name for ever, even if the ledger has never seen USER.")
@yes_option
@json_option
@click.pass_context
def erase(ctx: click.Context, user: str, unknown: bool, yes: bool, as_json: bool) -> None:
    """Erase the link between USER and the account. Asks first; this cannot be undone.

    The sums of the account stay, and USER gets no new budget.

    \b
    Example:
      ldp-budget erase alice --yes
    """
    ledger = open_ledger(ctx)
    already = ledger.is_erased(user)
    if not already:
        confirm(f"Erase {user}? This cannot be undone.", yes)
    erased = ledger.erase(user, unknown=unknown)
    if as_json:
        print_json({"user": user, "erased": erased})
    elif already:
        click.echo(f"{user} was erased earlier. Nothing was changed")
    else:
        click.echo(f"erased: {user}" if erased else f"{user} was unknown, and is blocked from now on")


@click.command()
@click.argument("user", required=False)
@rows_options
@click.pass_context
def reservations(ctx: click.Context, user: str | None, form: str | None) -> None:
    """Show the reservations of USER that can still be committed or voided, newest first; without USER, all of them.

    Users appear as the numbers of their accounts, because a ledger holds no names.

    \b
    Example:
      ldp-budget reservations alice
    """
    rows = open_ledger(ctx).open_reservations(None, user=user)
    if form is not None:
        print_rows(rows, form)
    elif not rows:
        print_note("no open reservations")
    else:
        print_row_table([_reservation_row(row, rows) for row in rows], ("note", "reports", "account", "collection"))


def _reservation_row(row: Row, rows: list[Row]) -> Row:
    cells = {name: row[name] for name in ("receipt", "account", "mechanism")}
    cells |= {name: row[name] for name in ("collection",) if any(each[name] for each in rows)}
    cells |= {"reports": row["reports"], "epsilon": row["epsilon"], "expires (UTC)": minute(row["expires"])}
    return cells | {name: row[name] for name in ("note",) if any(each[name] for each in rows)}
