"""Output of results: one JSON object on stdout, rows in one of four forms, or text, and confirmation."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from itertools import chain, islice
from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from .app import in_sandbox
from .notes import print_note
from .number_types import WholeRange
from .tables import Loss, shown
from .tables import print_table as print_table  # for the scripts of the tutorials

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from decimal import Decimal

    from ldp_budget.accounting.policies import Policy


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Combine several click options into one decorator."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
shuffled_option = click.option(
    "--shuffled",
    type=WholeRange(1, 10**12),
    metavar="N",
    help="Also show the central ε if a trusted shuffler mixes the reports of N users. No limit uses it.",
)


# -- rows, in the same forms everywhere ----------------------------------------------------------------------

JSON, LINES, CSV, TSV = "json", "nl", "csv", "tsv"
_SPELT = {form: f"--{form}" for form in (JSON, LINES, CSV, TSV)}


class _FormOption(click.Option):
    """One of the options of `rows_options`; together they are one parameter, `form`."""

    def handle_parse_result(self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]) -> Any:
        result = super().handle_parse_result(ctx, opts, args)
        ctx.params["form"] = _form([form for form in _SPELT if opts.get(f"form_{form}")])
        return result


def _form(given: list[str]) -> str | None:
    """Return the requested form; `--json --nl` is `--nl`, any other combination is an error."""
    if given == [JSON, LINES]:
        return LINES
    if len(given) > 1:
        raise click.UsageError(f"{_SPELT[given[0]]} and {_SPELT[given[1]]} exclude each other. Use one of them.")
    return given[0] if given else None


def _form_option(form: str, help: str) -> Callable[[Any], Any]:
    return click.option(_SPELT[form], f"form_{form}", is_flag=True, expose_value=False, cls=_FormOption, help=help)


rows_options = options(
    _form_option(JSON, "Print one JSON value on stdout."),
    _form_option(LINES, "Print JSON lines: one object a line."),
    _form_option(
        CSV,
        "Print comma-separated values. Null is empty, a list is JSON, and a text that begins with = + - @ ' or a tab "
        "gets a ' before it, so that no spreadsheet takes it for a formula.",
    ),
    _form_option(TSV, "The same with tabs."),
)
"""The forms in which every command prints its rows; the function gets `form`, None for text."""


def print_rows(rows: Iterable[Mapping[str, Any]], form: str, columns: Sequence[str] | None = None) -> None:
    """Print rows in one of the forms; see `write_rows`."""
    write_utf8()
    held: list[str] = []

    def write(text: str) -> None:
        held.append(text)
        if len(held) == _ROWS_TOGETHER:
            click.echo("".join(held), nl=False)
            held.clear()

    write_rows(rows, form, write, columns)
    click.echo("".join(held), nl=False)


def write_rows(
    rows: Iterable[Mapping[str, Any]], form: str, write: Callable[[str], Any], columns: Sequence[str] | None = None
) -> None:
    """Write rows in one of the forms, each as it comes.

    `columns` are those of a table; without them all rows are read first, to collect the columns of all of them.
    """
    if in_sandbox():
        rows, columns = map(marked, rows), columns and [*columns, "sandbox"]
    if form == LINES:
        for row in rows:
            write(_json(row) + "\n")
    elif form == JSON:
        before = "[\n"
        for row in rows:
            write(before + indent(_json(row, indent=2), "  "))
            before = ",\n"
        write("[]\n" if before == "[\n" else "\n]\n")
    else:
        if columns is None:
            rows = list(rows)
            columns = list(dict.fromkeys(chain.from_iterable(rows)))
        if columns:
            write(_cells([columns], form))
        for row in rows:
            write(_cells([[cell(row.get(column)) for column in columns]], form))


def print_cells(rows: Iterable[Sequence[str]], form: str, columns: Sequence[str]) -> None:
    """Print rows of cells, see `cell`, as CSV or TSV. It is `print_rows` for a million rows."""
    mark = ["True"] if in_sandbox() else []
    click.echo(_cells([columns if not mark else [*columns, "sandbox"]], form), nl=False)
    rows = iter(rows)
    while some := list(islice(rows, _CELLS_TOGETHER)):
        click.echo(_cells([[*row, *mark] for row in some] if mark else some, form), nl=False)


def _cells(rows: Iterable[Sequence[str]], form: str) -> str:
    """Return rows of a table, with quotes around the cells that need them."""
    text = io.StringIO()
    if form == CSV:
        csv.writer(text).writerows(rows)
        return text.getvalue()
    write = csv.writer(text, delimiter="\t").writerow  # which quotes a cell with the end of a line in it
    for row in rows:
        write(row)
        text.seek(text.tell() - 2)
        text.write("\n")
        text.truncate()
    return text.getvalue()


_ROWS_TOGETHER = 200
"""The number of rows that are printed at once."""
_CELLS_TOGETHER = 1_000
_FORMULAS = tuple("=+-@\t\r\n'＝＋－＠")


def cell(value: Any) -> str:
    """Return a value as a cell of a table, from which it can be read back.

    A text that a spreadsheet would run gets a leading apostrophe, and so does a text that begins with an apostrophe:
    a reader removes one leading apostrophe from each cell.
    """
    value = finite(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULAS) else value
    return _json(value)


def _json(value: Any, **how: Any) -> str:
    return json.dumps(finite(value), ensure_ascii=False, allow_nan=False, **how)


# -- one value -----------------------------------------------------------------------------------------------


def write_utf8() -> None:
    """Make stdout UTF-8, which is what programs read, whatever the console can show."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="strict")


def print_json(value: Any) -> None:
    """Print one JSON value; infinities and NaN, which JSON does not have, become null."""
    write_utf8()
    value = [marked(row) for row in value] if isinstance(value, list) else marked(value)
    click.echo(_json(value, indent=2))


def marked(value: Any) -> Any:
    """Return an object or a row for programs, marked if the ledger is a sandbox."""
    return {**value, "sandbox": True} if isinstance(value, dict) and in_sandbox() else value


def central_loss(found: Mapping[str, Any]) -> str:
    """Return `Shuffled.to_json` as one line."""
    return (
        f"If a trusted shuffler mixes each report with those of {found['users']} users: central "
        f"ε = {shown(Loss(found['epsilon']))}, δ = {shown(found['delta'])}. No limit uses this figure"
    )


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return `1 user` or `2 users`; the plural adds an `s` unless `many` is given."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def warn_of_idle_limits(policy: Policy) -> None:
    """Warn of limits of a policy that never bind, because the limit of a longer period is smaller."""
    for limit, longer in policy.idle_limits():
        click.echo(
            f"Warning: the {limit.label} limit of ε = {limit.epsilon} never binds: the {longer.label} limit of "
            f"ε = {longer.epsilon} is smaller",
            err=True,
        )


def rounded(value: float, digits: int) -> str:
    """Return a number with so many decimals; a rounded zero has no sign."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def finite(value: Any) -> Any:
    """Return a value without infinities, NaN and the sign of a zero."""
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else None  # -0.0 becomes 0.0
    if isinstance(value, dict):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def decimal_option(option: str, text: str) -> Decimal:
    """Return the finite number in the text of an option. Raises `InvalidParameter`."""
    from ldp_budget.errors import InvalidParameter
    from ldp_budget.guarantees.fixed_point import decimal

    try:
        return decimal(text)
    except ValueError:
        raise InvalidParameter(option, "a finite number", text) from None


strict_option = click.option("--strict", is_flag=True, help="Exit with code 3 if any user was refused.")


confidence_option = click.option(
    "--confidence",
    default="0.95",
    metavar="C",
    help="The confidence of the intervals, between 0 and 1 [default: 0.95]",
)


def level_option(text: str) -> float:
    """Return the confidence of `--confidence`. Raises `InvalidParameter`."""
    from ldp_budget.errors import InvalidParameter

    level = decimal_option("confidence", text)
    if not 0 < level < 1:
        raise InvalidParameter("confidence", "a number > 0 and < 1", text)
    return float(level)


def next_step(command: str) -> None:
    """Print the next command on stderr, where notes go."""
    print_note(f"Next: {command}")


yes_option = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def confirm(question: str, yes: bool) -> None:
    """Return if `--yes` is given or the user confirms at the terminal; an error without a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        command = click.get_current_context().command_path.removeprefix("ldp-budget ")
        raise click.UsageError(
            f"{command} cannot be undone, and there is no terminal to confirm it. Add --yes to do it."
        )
    click.confirm(question, abort=True, err=True)
