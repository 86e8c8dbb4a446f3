"""How results are printed: one JSON object on stdout, or text for people."""

from __future__ import annotations

import json
import math
import sys
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any

import click

from .app import rehearses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from decimal import Decimal

    from ldp_budget.accounting.policies import Policy

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")
nl_option = click.option("--nl", is_flag=True, help="With --json, print one object per line.")
shuffled_option = click.option(
    "--shuffled",
    type=click.IntRange(1, 10**12),
    metavar="N",
    help="Also the central loss if a trusted shuffler mixes the reports of N users. A figure, never enforced.",
)


def print_json(value: Any) -> None:
    """One JSON value; infinities and NaN, which JSON does not have, become null."""
    value = [marked(row) for row in value] if isinstance(value, list) else marked(value)
    click.echo(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def marked(value: Any) -> Any:
    """An object or a row for programs, which says of a rehearsal that it is one."""
    return {**value, "rehearsal": True} if isinstance(value, dict) and rehearses() else value


def print_rows(rows: Sequence[Mapping[str, Any]], *, as_json: bool, nl: bool = False) -> None:
    """Rows as a JSON array, as JSON lines, or as a table."""
    if nl:
        for row in rows:
            click.echo(json.dumps(_finite(marked(row)), ensure_ascii=False, allow_nan=False))
    elif as_json:
        print_json(list(rows))
    elif rows:
        print_table(list(rows[0]), [list(row.values()) for row in rows])


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Columns as wide as their content, numbers to the right."""
    from tabulate import tabulate

    numeric = [all(isinstance(value, int | float) for value in column) for column in zip(*rows, strict=True)]
    table = tabulate(
        # As a row, since a header of its own would make the columns wider.
        [header, *([shown(value) for value in row] for row in rows)],
        tablefmt="plain",
        colalign=["right" if right else "left" for right in numeric],
        disable_numparse=True,
        preserve_whitespace=True,
    )
    for line in table.split("\n"):
        click.echo(line.rstrip())


def print_fields(fields: Mapping[str, Any], indent: int = 0) -> None:
    """`name  value` lines; nested mappings are indented."""
    width = max((len(name) for name in fields), default=0)
    for name, value in fields.items():
        if isinstance(value, dict):
            click.echo(f"{'':{indent}}{name}")
            print_fields(value, indent + 2)
        else:
            click.echo(f"{'':{indent}}{name:{width}}  {shown(value)}")


def central_loss(found: Mapping[str, Any]) -> str:
    """One line: what `Shuffled.to_json` says."""
    return (
        f"shuffled among {found['users']} users, each report anew, by a shuffler they trust: central "
        f"ε = {shown(found['epsilon'])}, δ = {shown(found['delta'])}; a figure, never enforced"
    )


def shown(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return "unbounded" if math.isinf(value) else f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value)) or "-"
    return str(value)


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 user`, `2 users`; the plural is an `s` more unless it is given."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def warn_of_idle_limits(policy: Policy) -> None:
    """Say which limits of a policy never bind, as that of a longer period is smaller."""
    for limit, longer in policy.idle_limits():
        click.echo(
            f"Warning: the {limit.period} limit of epsilon {limit.epsilon} is above the {longer.period} limit of "
            f"epsilon {longer.epsilon}, which always binds first",
            err=True,
        )


def rounded(value: float, digits: int) -> str:
    """A number with so many decimals; what rounds to zero has no sign."""
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else None  # -0.0 becomes 0.0
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def decimal_option(option: str, text: str) -> Decimal:
    """The finite number that the text of an option means. Raises `InvalidParameter`."""
    from ldp_budget.errors import InvalidParameter
    from ldp_budget.guarantees.amounts import decimal

    try:
        return decimal(text)
    except ValueError:
        raise InvalidParameter(option, "a finite number", text) from None


@contextmanager
def charging(users: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, as a function to be told of each batch; `users` is None where nobody knows.

    It appears with the first batch that is charged, so that what is wrong before that is told alone.
    """
    with ExitStack() as stack:
        bar: Any = None

        def advance(batch: int) -> None:
            nonlocal bar
            if bar is None:
                # Counting without an end stands for a length that is not known.
                shown = click.progressbar(count(), users, label="charging", file=sys.stderr, show_pos=True)
                bar = stack.enter_context(shown)
            bar.update(batch)

        yield advance


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr, as a function to be told (done, total); None where nobody sits there to see it."""
    if not sys.stderr.isatty():
        yield None
        return
    with ExitStack() as stack:
        bar: Any = None

        def advance(done: int, total: int) -> None:
            nonlocal bar
            if bar is None:
                bar = stack.enter_context(click.progressbar(length=total, label=label, file=sys.stderr))
            bar.update(done - bar.pos)

        yield advance


def options(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Several click options as one decorator."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate
