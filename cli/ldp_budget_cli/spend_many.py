"""`ldp-budget spend-many`: charge every user of a file."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ldp_budget.accounting.policies import DEFAULT

from .app import open_ledger
from .mechanism_group import mechanism_command
from .output import charging, counted, json_option, print_json
from .stopping import telling
from .tables import LEFT_OUT_HEADER, Layout, LeftOut, layout_options, open_table, writing_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ldp_budget.authoring.base import Mechanism

    from .repeats import Repeats


@mechanism_command(
    "Charge every user of a CSV FILE (- for standard input) for one report; a user listed twice is charged twice.",
    arguments=["file"],
)
@click.option(
    "--user-column", metavar="C", help="The column that names the users [default: the first one, if it is called so]"
)
@layout_options
@click.option("--once", is_flag=True, help="Charge each name once, however often it is listed.")
@click.option("--missing", multiple=True, metavar="VALUE", help="VALUE names nobody: leave its row out. Repeatable.")
@click.option("--skip-invalid", is_flag=True, help="Leave out rows that are wrong, and count them.")
@click.option(
    "--skipped-to", metavar="FILE", help="With --skip-invalid: write these rows' places and reasons to FILE."
)
@click.option("--key", metavar="RUN", help="Names the run: run again, batches that were charged are skipped.")
@click.option("--refused-to", metavar="FILE", help="Write the refused users to a CSV file.")
@click.option("--policy", default=DEFAULT, metavar="NAME", help=f"The policy [default: {DEFAULT}]")
@json_option
def spend_many(
    mechanism: Mechanism,
    file: str,
    user_column: str | None,
    delimiter: str,
    encoding: str,
    no_header: bool,
    once: bool,
    missing: tuple[str, ...],
    skip_invalid: bool,
    skipped_to: str | None,
    key: str | None,
    refused_to: str | None,
    policy: str,
    as_json: bool,
) -> None:
    if skip_invalid != (skipped_to is not None):
        absent, given = ("--skipped-to", "--skip-invalid") if skip_invalid else ("--skip-invalid", "--skipped-to")
        raise click.UsageError(f"{absent}: expected it with {given}; nothing was given")
    ledger = open_ledger(click.get_current_context())
    listing = _Listing(file, user_column, Layout(delimiter, encoding, not no_header), missing, once)
    rows = None if file == "-" or not os.path.isfile(file) else listing.check(skip_invalid)
    # Even a run that nobody named has a key, so that it can be gone on with.
    run = key if key is not None else f"run-{secrets.token_hex(8)}"
    done = _Done()
    again = "the same command" if key is not None else f"the same command with --key {run}"
    with (
        writing_rows("refused-to", refused_to, ["user"]) as note_refused,
        writing_rows("skipped-to", skipped_to, LEFT_OUT_HEADER) as note_skipped,
        telling(done.__str__, f"{again} goes on from there and charges nobody twice"),
        charging(rows) as advance,
    ):
        left_out = LeftOut(note_skipped if skip_invalid else None)

        def on_batch(users: int, refused: list[str]) -> None:
            if not done.users:
                click.echo(f"users from column {listing.column} of {file}", err=True)
            for user in refused:
                note_refused([user])
            done.count(users, len(refused))
            advance(users)

        result = ledger.spend_many(listing.users(left_out), mechanism, key=run, policy=policy, on_batch=on_batch)
    if rows is None:
        listing.warn_of_repeats()
    if not done.users:
        click.echo(f"nobody is in column {listing.column} of {file}, so nobody was charged", err=True)
    listing.tell(left_out, skipped_to)
    if as_json:
        print_json({**result.to_json(), **({"skipped": left_out.invalid} if skip_invalid else {})})
    else:
        click.echo(f"spent: {result.spent}, refused: {result.refused}, repeated: {result.repeated}")


@dataclass
class _Done:
    """How far a run is, in users of the list."""

    users: int = 0
    refused: int = 0

    def count(self, users: int, refused: int) -> None:
        self.users += users
        self.refused += refused

    def __str__(self) -> str:
        charged = counted(self.users - self.refused, "user was", "users were")
        return f"{charged} charged and {self.refused} refused" if self.users else ""


class _Listing:
    """The users of a file."""

    def __init__(
        self, file: str, user_column: str | None, layout: Layout, missing: tuple[str, ...], once: bool
    ) -> None:
        self._file = file
        self._user_column = user_column
        self._layout = layout
        self._missing = frozenset(missing)
        self._once = once
        self._repeats: Repeats | None = None
        self.column = ""

    def check(self, skip_invalid: bool) -> int:
        """Read the file before anybody is charged: what is wrong is told; how many users it has."""
        passed_over = LeftOut((lambda row: None) if skip_invalid else None)
        rows = sum(1 for _ in self.users(passed_over))
        self.warn_of_repeats()
        return rows

    def users(self, left_out: LeftOut) -> Iterator[str]:
        """The users to charge, as a stream."""
        from .repeats import Repeats, once_each

        self._repeats = Repeats()
        users = self._listed(left_out)
        yield from once_each(users) if self._once else self._repeats.counting(users)

    def _listed(self, left_out: LeftOut) -> Iterator[str]:
        with open_table(self._file, self._layout) as table:
            place = table.user_place(self._user_column)
            self.column = table.columns[place]
            for row in table.rows():
                if row.problem:
                    left_out.leave(table, row, None, row.problem)
                elif row.cells[place] in self._missing:
                    left_out.leave_missing(table, row, place, row.cells[place])
                elif not row.cells[place]:
                    left_out.leave(table, row, place, "expected a user, found nothing")
                else:
                    yield row.cells[place]

    def warn_of_repeats(self) -> None:
        """Say who was read more than once."""
        if self._repeats is not None and not self._once:
            self._repeats.warn()

    def tell(self, left_out: LeftOut, skipped_to: str | None) -> None:
        """Say how many rows were left out."""
        if left_out.invalid:
            click.echo(f"{counted(left_out.invalid, 'row')} skipped: see {skipped_to}", err=True)
        if left_out.missing:
            click.echo(f"{counted(left_out.missing, 'row')} left out, as nobody is named there", err=True)
