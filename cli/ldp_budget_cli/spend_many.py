"""`ldp-budget spend-many`: charge every user of a file."""

from __future__ import annotations

import csv
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.policy import DEFAULT

from .app import ledger_path
from .files import count_lines, read_column
from .mechanism_group import mechanism_command
from .output import json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from ldp_budget.base import Mechanism


@mechanism_command(
    "Charge every user of a CSV FILE (- for standard input) for one report; a user listed twice is charged twice.",
    arguments=["file"],
)
@click.option("--user-column", metavar="C", help="The column that names the users [default: the first one]")
@click.option("--key", metavar="RUN", help="Names the run: run again, batches that were charged are skipped.")
@click.option("--refused-to", metavar="FILE", help="Write the refused users to a CSV file.")
@click.option("--policy", default=DEFAULT, metavar="NAME", help=f"The policy [default: {DEFAULT}]")
@json_option
def spend_many(
    mechanism: Mechanism,
    file: str,
    user_column: str | None,
    key: str | None,
    refused_to: str | None,
    policy: str,
    as_json: bool,
) -> None:
    from ldp_budget.accountant import Accountant

    with ExitStack() as stack:
        accountant = stack.enter_context(Accountant(ledger_path(click.get_current_context()), create=False))
        note_refused = _refused_writer(stack, refused_to)
        bar = stack.enter_context(_progress(file))

        def on_batch(users: int, refused: list[str]) -> None:
            note_refused(refused)
            bar.update(users)

        users = read_column(file, user_column)
        result = accountant.spend_many(users, mechanism, key=key, policy=policy, on_batch=on_batch)
    if as_json:
        print_json(result.to_json())
    else:
        click.echo(f"spent: {result.spent}, refused: {result.refused}, repeated: {result.repeated}")


def _refused_writer(stack: ExitStack, path: str | None) -> Callable[[list[str]], None]:
    """A function that takes note of refused users."""
    if path is None:
        return lambda refused: None
    try:
        file = Path(path).open("w", newline="", encoding="utf-8")  # noqa: SIM115 - the stack closes it
    except OSError as error:
        raise click.ClickException(f"--refused-to: {path} cannot be written: {error.strerror}") from None
    writer = csv.writer(stack.enter_context(file))
    writer.writerow(["user"])
    return lambda refused: writer.writerows([user] for user in refused)


def _progress(file: str) -> Any:
    """A progress bar on stderr; without an end where the input is a stream."""
    import sys

    return click.progressbar(length=count_lines(file), label="charging", file=sys.stderr)
