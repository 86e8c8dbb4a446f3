"""The option `--xlsx`: the figures of a command as an Excel file, beside its output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .command_groups import part
from .notes import print_note
from .output import counted, marked

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Row = Mapping[str, Any]

_KEY = "ldp_budget.xlsx"
_FACTS = (
    *("reports", "respondents", "charged", "uncharged", "consistent", "adjusted"),
    *("weighted", "population", "design_effect"),
)
"""What the JSON of an estimate says of all its figures."""
_PLAN = {
    "rule": "The rule of composition that adds up the reports.",
    "answers of each": "How many of the questions each respondent answers.",
    "question": "The question.",
    "design": "How the members of a panel are asked.",
    "mechanism": "The mechanism that randomizes the answers.",
    "epsilon": "The privacy loss of one report.",
    "respondents": "The number of people who send a report, or who answer the question.",
    "margin": "The error that 95 of 100 surveys stay below, at the worst answers; for {people}. A number has its own unit.",
    "change_margin": "The margin of a change from one period to the next.",
    "population_margin": "The same for a large population: sampling and noise.",
    "variance_per_user": "The variance of a count, for each respondent.",
    "recommended": "The plan that the command recommends.",
}
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


def save_estimate(found: Row, level: float, *, population: bool = False) -> None:
    """Write the JSON of an estimate, if a file was requested; `population`: its intervals hold sampling too."""
    if wants_file():
        shown = part("figures")
        known = {name: found[name] for name in _FACTS if name in found}
        of = "the population: sampling and noise" if population else "these respondents: noise"
        intervals = f"They have {100 * level:.12g} % confidence, for {of}."
        _save(list(shown.figures(found)), shown.COLUMNS, shown.form_of, {"intervals": intervals, **known})


def save_plan(rows: Iterable[Row], people: str, **facts: Any) -> None:
    """Write the rows of a plan, if a file was requested; `people`: those that the margin is about."""
    if wants_file():
        meanings = {name: text.replace("{people}", people) for name, text in _PLAN.items()}
        _save(list(rows), meanings, _form_of_plan, facts)


def save_balances(rows: Iterable[Row], policy: str) -> None:
    """Write the amounts of users, if a file was requested."""
    if wants_file():
        _save(list(rows), _BALANCE, lambda row, column: "General", {"policy": policy})


def _form_of_plan(row: Row, column: str) -> str:
    is_share = column.endswith("margin") and not row.get("range")
    return "0.0%" if is_share else "#,##0" if column == "respondents" else "General"


def _save(rows: list[Row], meanings: Mapping[str, str], form: Any, facts: Row) -> None:
    from ldp_budget.reports.places import shown_place, written

    path = click.get_current_context().meta[_KEY]
    content = part("excel-figures").book_of(rows, meanings, form, marked(dict(facts)))
    try:
        with written(path) as file:
            file.write(content)
    except OSError as error:
        raise click.ClickException(f"--xlsx: cannot write {shown_place(path)}: {error.strerror}.") from None
    print_note(f"{counted(len(rows), 'row')} of figures written to {shown_place(path)}")
