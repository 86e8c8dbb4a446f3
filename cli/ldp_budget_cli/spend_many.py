"""`ldp-budget spend-many`: charge every user of a file."""

from __future__ import annotations

import csv
import io
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ldp_budget._files import replacing
from ldp_budget.accounting.policies import DEFAULT

from .app import open_ledger
from .files import count_lines, read_users
from .mechanism_group import mechanism_command
from .output import charging, json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ldp_budget.authoring.base import Mechanism


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
    ledger = open_ledger(click.get_current_context())
    with _refused_writer(refused_to) as note_refused, charging(count_lines(file)) as advance:

        def on_batch(users: int, refused: list[str]) -> None:
            note_refused(refused)
            advance(users)

        users = read_users(file, user_column)
        result = ledger.spend_many(users, mechanism, key=key, policy=policy, on_batch=on_batch)
    if as_json:
        print_json(result.to_json())
    else:
        click.echo(f"spent: {result.spent}, refused: {result.refused}, repeated: {result.repeated}")


@contextmanager
def _refused_writer(path: str | None) -> Iterator[Callable[[list[str]], None]]:
    """A function that takes note of refused users; they get their file when all went well, or none."""
    if path is None:
        yield lambda refused: None
        return
    try:
        with replacing(Path(path)) as file:
            file.write(_csv(["user"]))
            yield lambda refused: file.writelines(_csv([user]) for user in refused)
    except OSError as error:
        raise click.ClickException(f"--refused-to: {path} cannot be written: {error.strerror}") from None


def _csv(row: list[str]) -> bytes:
    """One row of a CSV file, in UTF-8."""
    text = io.StringIO()
    csv.writer(text).writerow(row)
    return text.getvalue().encode()
