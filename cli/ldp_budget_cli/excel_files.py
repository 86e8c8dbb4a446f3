"""The option `--xlsx`: the figures of a command as an Excel file, beside its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .command_groups import part
from .notes import print_note
from .output import counted, marked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Row = Mapping[str, Any]

_KEY = "ldp_budget.xlsx"
_BALANCE = {
    "user": "The user, or the number of the account.",
    "limit": "The period of the limit.",
    "rule": "The rule of composition that adds up the reports.",
    "amount": "What is limited. ε is that of the promise; the rules zcdp, gdp and renyi add up an amount of their own.",
    "of": "The limit, rounded down.",
    "spent": "What was spent of it, rounded up.",
    "left": "What is left of it, rounded down.",
    "resets": "When the amount is whole again (UTC).",
}


def _checked(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
    from ldp_budget.reports.places import exists, shown_place

    if value is None:
        return
    if not value.lower().endswith(".xlsx"):
        raise click.UsageError(f"--xlsx must end in .xlsx: got {value}")
    part("excel-tables").openpyxl()
    if exists(value):
        raise click.ClickException(f"--xlsx: {shown_place(value)} exists. Nothing was written. Name another file.")
    ctx.meta[_KEY] = value


xlsx_option = click.option(
    "--xlsx",
    metavar="FILE",
    expose_value=False,
    callback=_checked,
    help="Also write the figures to FILE, an Excel file with a sheet that explains them.",
)


def wants_file() -> bool:
    """True if the running command was given the option."""
    return _KEY in click.get_current_context().meta


def save_balances(rows: Iterable[Row], policy: str) -> None:
    """Write the amounts of users, if a file was requested."""
    save_figures(rows, _BALANCE, lambda row, column: "General", {"policy": policy})


def save_figures(
    rows: Iterable[Row], meanings: Mapping[str, str], form: Callable[[Row, str], str], facts: Row
) -> None:
    """Write rows of figures, if a file was requested; else the rows are not read.

    `meanings`: the columns, each with its meaning. `form`: the number format of a column in a row. `facts`: what holds for
    all rows.
    """
    if not wants_file():
        return
    from ldp_budget.reports.places import shown_place, written

    path = click.get_current_context().meta[_KEY]
    listed = list(rows)
    content = part("excel-figures").book_of(listed, meanings, form, marked(dict(facts)))
    try:
        with written(path) as file:
            file.write(content)
    except OSError as error:
        raise click.ClickException(f"--xlsx: cannot write {shown_place(path)}: {error.strerror}.") from None
    print_note(f"{counted(len(listed), 'row')} of figures written to {shown_place(path)}")
