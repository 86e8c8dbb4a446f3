"""Inputs of the commands: lists of names, lists of users in tables, JSON files, and collections by name or file.

`Repeats` counts users who are listed more than once or in two spellings, without storing their names.
"""

from __future__ import annotations

import json
import os
from array import array
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import click

from ldp_budget._lookalikes import skeleton
from ldp_budget._number_parsing import value_of
from ldp_budget._validation import canonical_text

from .app import open_ledger
from .input_tables import SKIP_HINT, WIDTHS, ArrowTable, Layout, LeftOut, Row, open_table
from .missing_values import MissingValues
from .notes import print_note
from .output import counted
from .people import Footers, any_odd, kind_of_no_user, why_no_user

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ldp_budget.registry.collections import Collection


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)


def read_json(option: str, path: str) -> Any:
    """Return the JSON in a file."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"--{option}: cannot read {path}: {_why(error)}.") from None


mixed_option = click.option(
    "--mixed",
    is_flag=True,
    help="Allow a mix of charged and uncharged reports.",
)


def find_collection(ctx: click.Context, name: str) -> Collection:
    """Return the collection in the JSON file of that path, or the collection of that name in the ledger."""
    from ldp_budget.registry.collections import Collection

    if os.path.isfile(name):
        try:
            with open(name, encoding="utf-8") as file:
                return Collection.from_json(json.load(file))
        except OSError as error:
            raise click.ClickException(f"Cannot read {name}: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError) as error:
            raise click.ClickException(
                f"The file {name} is not a collection ({error}). For the collection of the ledger, write "
                f"collection:{name}"
            ) from None
    return open_ledger(ctx).collection(name.removeprefix("collection:"))


user_column_option = click.option(
    "--user-column",
    metavar="C",
    help="The column of the users [default: the first column, if its name is user, person, respondent, id, email, …]",
)


exact_users_option = click.option(
    "--exact-users",
    is_flag=True,
    help="Reject a user whose name has spaces at an end or is not in NFC. Without it, names are trimmed and normalized.",
)


def listed_users(file: str, user_column: str | None, delimiter: str, encoding: str, no_header: bool) -> Iterator[str]:
    """Yield the users of a file, as often as they are listed; a row without a user is an error."""
    return Listing(file, user_column, Layout(delimiter, encoding, not no_header)).listed(LeftOut(None))


def check_no_list(user_column: str | None, no_header: bool) -> None:
    """Raise a click error if options for reading a list are given without a list."""
    if user_column is not None or no_header:
        option = "--user-column" if user_column is not None else "--no-header"
        raise click.UsageError(f"{option} needs --users FILE.")


class Listing:
    """The users of a file."""

    def __init__(
        self,
        file: str,
        user_column: str | None,
        layout: Layout,
        missing: tuple[str, ...] = (),
        once: bool = False,
        exact: bool = False,
    ) -> None:
        self._file = file
        self._user_column = user_column
        self._layout = layout
        self._missing = MissingValues(missing)
        self._once = once
        self._exact = exact
        self._repeats: Repeats | None = None
        self._checked = False
        self.column = ""

    def check(self, skip_invalid: bool) -> int:
        """Read the file before any user is charged; reports errors and repeats, and returns the number of users."""
        passed_over = LeftOut((lambda row: None) if skip_invalid else None, consequence=SKIP_HINT)
        rows = sum(1 for _ in self.users(passed_over))
        self.warn_of_repeats()
        self._repeats, self._checked = None, True
        return rows

    def users(self, left_out: LeftOut) -> Iterator[str]:
        """Yield the users to charge."""

        users = self.listed(left_out)
        if self._once:
            users = once_each(users)
        if self._checked:  # repeats were reported by `check`
            yield from users
        else:
            self._repeats = Repeats()
            yield from self._repeats.counting(users)

    def listed(self, left_out: LeftOut) -> Iterator[str]:
        """Yield the users as they are listed."""
        with open_table(self._file, self._layout) as table:
            place = table.user_place(self._user_column)
            self.column = table.columns[place]
            if isinstance(table, ArrowTable):
                yield from self._of_columns(table, place, left_out)
                return
            footers = Footers(table.columns, place)
            for row in table.rows():
                if row.problem:
                    left_out.leave(table, row, None, row.problem, WIDTHS)
                elif row.cells[place] in self._missing:
                    left_out.leave_missing(table, row, place, row.cells[place])
                elif why := why_no_user(row.cells[place], self._exact) or footers.why(row.cells):
                    left_out.leave(table, row, place, why, kind_of_no_user(why))
                else:
                    yield canonical_text(row.cells[place])

    def _of_columns(self, table: ArrowTable, place: int, left_out: LeftOut) -> Iterator[str]:
        """Yield the same users from a column; rows are processed one by one only in a block with an invalid row."""
        for first, (found,) in table.stretches(place):
            cells = found.cells()
            users = list(map(canonical_text, cells))
            missing = any(cell in self._missing for cell in cells) if self._missing else False
            if not missing and not any_odd(users) and (not self._exact or users == cells):
                yield from users
                continue
            for number, (cell, user) in enumerate(zip(cells, users, strict=True), first):
                row = Row(None, number, [], "")
                if cell in self._missing:
                    left_out.leave_missing(table, row, place, cell)
                elif why := why_no_user(cell, self._exact):
                    left_out.leave(table, row, place, why, kind_of_no_user(why))
                else:
                    yield user

    def warn_of_repeats(self) -> None:
        """Warn of users who were read more than once, and of names that differ only by case or spaces."""
        if self._repeats is not None:
            self._repeats.warn()

    def report(self, left_out: LeftOut, skipped_to: str | None) -> None:
        """Print how many rows were left out."""
        left_out.report(skipped_to)
        if left_out.missing:
            print_note(f"{counted(left_out.missing, 'row')} left out: the user is missing")


ALIKE_TOO = "Characters that look alike, and one number in two notations, count too"


def _alike(text: str) -> object:
    """Return a key that is the same for texts that differ only by case or spaces, look alike, or are one number."""
    number = value_of(text) if text[:1] in _NUMERIC else None
    return "".join(skeleton(text).casefold().split()) if number is None else number


_NUMERIC = frozenset("+-.0123456789")
_TOGETHER = 500_000
"""The number of names that are counted at a time: all at once would take a hundred bytes each."""


class Repeats:
    """Counts repeated texts, and texts that differ only so, in 16 bytes each.

    In one of 10**12 lists of a million users it may take two users for one. So use it for warnings, never for
    decisions.
    """

    def __init__(self) -> None:
        self._names = array("q")
        self._folded = array("q")

    def counting(self, users: Iterable[str]) -> Iterator[str]:
        """Yield the users unchanged and count each."""
        for user in users:
            self._names.append(hash(user))
            self._folded.append(hash(_alike(user)))
            yield user

    def warn(self) -> None:
        """Warn of repeated users, and of names that differ only by case or spaces; print nothing if there are none."""
        often = more = 0
        parts = 1 + len(self._names) // _TOGETHER
        for part in range(parts):
            times = Counter(each for each in self._names if each % parts == part)
            again = [count for count in times.values() if count > 1]
            often += len(again)
            more += sum(again) - len(again)
        if often:
            each = "appears more than once and is" if often == 1 else "appear more than once and are"
            click.echo(
                f"Warning: {counted(often, 'user')} {each} charged for each row ({counted(more, 'extra charge')}). "
                "Use --once to charge each user once",
                err=True,
            )
        self.warn_of_case()

    def alike(self) -> int:
        """Return the number of texts that differ from another one only by case or spaces."""
        alike = 0
        parts = 1 + len(self._names) // _TOGETHER
        for part in range(parts):
            spellings: dict[int, set[int]] = defaultdict(set)
            for name, folded in zip(self._names, self._folded, strict=True):
                if folded % parts == part:
                    spellings[folded].add(name)
            alike += sum(len(names) for names in spellings.values() if len(names) > 1)
        return alike

    def warn_of_case(self) -> None:
        """Warn of names that differ from another one only by case or spaces."""
        if alike := self.alike():
            click.echo(
                f"Warning: {alike} names differ from another name only by case or spaces, and each has its own budget. If they "
                f"are the same users, spell each user in one way. {ALIKE_TOO}",
                err=True,
            )


def warn_of_repeats(users: Iterable[str]) -> None:
    """Warn of users who are listed more than once, and of names that differ only by case or spaces."""
    repeats = Repeats()
    for _ in repeats.counting(users):
        pass
    repeats.warn()


def once_each(users: Iterator[str]) -> Iterator[str]:
    """Yield each user once, at the first occurrence."""
    seen: set[str] = set()
    for user in users:
        if user not in seen:
            seen.add(user)
            yield user
