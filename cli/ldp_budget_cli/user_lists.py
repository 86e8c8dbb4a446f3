"""Files that list users: those to charge, those to show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ldp_budget._checks import canonical_user

from .output import counted
from .tables import NO_USER, ArrowTable, Layout, LeftOut, Row, open_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .repeats import Repeats

user_column_option = click.option(
    "--user-column", metavar="C", help="The column that names the users [default: the first one, if it is called so]"
)


def listed_users(file: str, user_column: str | None, delimiter: str, encoding: str, no_header: bool) -> Iterator[str]:
    """The users of a file, as often as they are listed; a row that names nobody is an error."""
    return Listing(file, user_column, Layout(delimiter, encoding, not no_header)).listed(LeftOut(None))


def check_no_list(user_column: str | None, no_header: bool) -> None:
    """Raise a click error where it is said how to read a list, and there is none."""
    if user_column is not None or no_header:
        option = "--user-column" if user_column is not None else "--no-header"
        raise click.UsageError(f"--users: expected a file with {option}; nothing was given")


class Listing:
    """The users of a file."""

    def __init__(
        self,
        file: str,
        user_column: str | None,
        layout: Layout,
        missing: tuple[str, ...] = (),
        once: bool = False,
    ) -> None:
        self._file = file
        self._user_column = user_column
        self._layout = layout
        self._missing = frozenset(missing)
        self._once = once
        self._repeats: Repeats | None = None
        self._checked = False
        self.column = ""

    def check(self, skip_invalid: bool) -> int:
        """Read the file before anybody is charged: what is wrong is told; how many users it has."""
        passed_over = LeftOut((lambda row: None) if skip_invalid else None)
        rows = sum(1 for _ in self.users(passed_over))
        self.warn_of_repeats()
        self._repeats, self._checked = None, True
        return rows

    def users(self, left_out: LeftOut) -> Iterator[str]:
        """The users to charge, as a stream."""
        from .repeats import Repeats, once_each

        users = self.listed(left_out)
        if self._once:
            users = once_each(users)
        if self._checked:  # what is odd about the names was told
            yield from users
        else:
            self._repeats = Repeats()
            yield from self._repeats.counting(users)

    def listed(self, left_out: LeftOut) -> Iterator[str]:
        """The users as they are listed."""
        with open_table(self._file, self._layout) as table:
            place = table.user_place(self._user_column)
            self.column = table.columns[place]
            if isinstance(table, ArrowTable):
                yield from self._of_columns(table, place, left_out)
                return
            for row in table.rows():
                if row.problem:
                    left_out.leave(table, row, None, row.problem)
                elif row.cells[place] in self._missing:
                    left_out.leave_missing(table, row, place, row.cells[place])
                elif not (user := canonical_user(row.cells[place])):
                    left_out.leave(table, row, place, NO_USER)
                else:
                    yield user

    def _of_columns(self, table: ArrowTable, place: int, left_out: LeftOut) -> Iterator[str]:
        """The same from a column; only where something is wrong with a stretch its rows are looked at."""
        for first, (found,) in table.stretches(place):
            cells = found.cells()
            users = list(map(canonical_user, cells))
            if "" not in users and self._missing.isdisjoint(cells):
                yield from users
                continue
            for number, (cell, user) in enumerate(zip(cells, users, strict=True), first):
                row = Row(None, number, [], "")
                if cell in self._missing:
                    left_out.leave_missing(table, row, place, cell)
                elif not user:
                    left_out.leave(table, row, place, NO_USER)
                else:
                    yield user

    def warn_of_repeats(self) -> None:
        """Say how many users were read more than once, and how many names differ by case alone."""
        if self._repeats is not None:
            self._repeats.warn()

    def tell(self, left_out: LeftOut, skipped_to: str | None) -> None:
        """Say how many rows were left out."""
        if left_out.invalid:
            click.echo(f"{counted(left_out.invalid, 'row')} skipped: see {skipped_to}", err=True)
        if left_out.missing:
            click.echo(f"{counted(left_out.missing, 'row')} left out, as nobody is named there", err=True)
