"""The answers of a table, as a collection's mechanism takes them; wrong ones are told or left out."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from ldp_budget.authoring.domain import Interval
from ldp_budget.errors import InvalidParameter, OutsideDomain

from .output import counted
from .tables import Layout, LeftOut, open_table

if TYPE_CHECKING:
    from ldp_budget.catalogue.collections import Collection

    from .tables import Note, Row, Table

_NOTHING_DONE = "; nothing was written"


@dataclass(frozen=True)
class Reading:
    """How the answers are to be read: which columns, which of their values are none, what is done with odd rows."""

    column: str
    user_column: str | None
    layout: Layout
    missing: frozenset[str]
    clip: bool
    once: bool


@dataclass
class Answers:
    """The answers that count: `values` as the mechanism takes them, and whose they are where that is known."""

    left_out: LeftOut
    values: Any = None
    users: list[str] = field(default_factory=list)
    clipped: int = 0
    again: int = 0

    def tell(self, skipped_to: str | None) -> None:
        """Say how many rows were left out or changed, and why."""
        left_out = self.left_out
        for count, told in (
            (left_out.invalid, f"skipped as invalid: see {skipped_to}"),
            (left_out.missing, "left out, as the answer is missing"),
            (self.again, "left out, as its user was there before (--once)"),
        ):
            if count:
                click.echo(f"{counted(count, 'row')} {told}", err=True)
        if self.clipped:
            click.echo(f"{counted(self.clipped, 'number')} outside the range taken for its nearest end", err=True)


def read_answers(path: str, collection: Collection, how: Reading, note: Note | None) -> Answers:
    """The answers of a CSV file. Wrong rows are noted and left out, or an error where there is no `note`."""
    answers = Answers(LeftOut(note, consequence=_NOTHING_DONE, counted=True))
    with open_table(path, how.layout) as table:
        place = table.place("column", how.column)
        user_place = None if how.user_column is None else table.place("user_column", how.user_column)
        rows: list[Row] = []
        any_row = False
        for row in table.rows():
            any_row = True
            try:
                complete = _complete(answers.left_out, table, row, place, user_place, how.missing)
            except click.ClickException:
                _kept(collection, table, rows, place, answers, how.clip)  # a wrong answer further up is told first
                raise
            if complete:
                rows.append(row)
        kept = _kept(collection, table, rows, place, answers, how.clip)
    if not any_row:
        below = " below its header" if how.layout.header else ""
        raise click.ClickException(f"{path} has no rows{below}{_NOTHING_DONE}")
    if user_place is not None:
        _name_users(answers, [rows[number].cells[user_place] for number in kept], how.once)
    if not len(answers.values):
        why = f"; the first: {answers.left_out.first}" if answers.left_out.first else ""
        raise click.ClickException(f"{path} has no row with an answer{_NOTHING_DONE}{why}")
    return answers


def _complete(
    left_out: LeftOut, table: Table, row: Row, place: int, user_place: int | None, missing: frozenset[str]
) -> bool:
    """Whether a row has its cells, a user and an answer; else it is left out."""
    if row.problem:
        left_out.leave(table, row, None, row.problem)
    elif user_place is not None and not row.cells[user_place]:
        left_out.leave(table, row, user_place, "expected a user, found nothing")
    elif row.cells[place] in missing:
        left_out.leave_missing(table, row, place, row.cells[place])
    else:
        return True
    return False


def _clipped(collection: Collection, texts: list[str], answers: Answers) -> list[str]:
    """Numbers beyond the ends of the range in the place of which their nearest end stands."""
    domain = collection.mechanism.domain
    if not isinstance(domain, Interval):
        raise InvalidParameter("clip", "a collection of numbers from a range", f"{collection.name}, which has none")
    lower, upper = domain.ends
    shown = []
    for text in texts:
        number = _number(text)
        if number < lower or number > upper:
            answers.clipped += 1
            text = str(domain.lower if number < lower else domain.upper)
        shown.append(text)
    return shown


def _number(text: str) -> float:
    """The finite number that a text is; NaN, which is beyond no end, for any other text."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _kept(
    collection: Collection, table: Table, rows: list[Row], place: int, answers: Answers, clip: bool
) -> list[int]:
    """Which rows hold an answer of the collection; the values become those of these rows."""
    texts = [row.cells[place] for row in rows]
    if clip:
        texts = _clipped(collection, texts, answers)
    try:
        answers.values = collection.read_values(texts)
    except OutsideDomain as error:
        if error.position is None:
            raise
        if not answers.left_out.allowed:
            wrong = f"expected {error.domain}; found {texts[error.position]!r}"
            answers.left_out.leave(table, rows[error.position], place, wrong)
    else:
        return list(range(len(rows)))
    reasons: dict[str, str] = {}
    kept = []
    for number, text in enumerate(texts):
        if text not in reasons:
            reasons[text] = _wrong(collection, text)
        if reasons[text]:
            answers.left_out.leave(table, rows[number], place, reasons[text])
        else:
            kept.append(number)
    answers.values = collection.read_values([texts[number] for number in kept])
    return kept


def _wrong(collection: Collection, text: str) -> str:
    """What is wrong with an answer; empty where nothing is."""
    try:
        collection.read_values([text])
    except OutsideDomain as error:
        return f"expected {error.domain}; found {text!r}"
    return ""


def _name_users(answers: Answers, users: list[str], once: bool) -> None:
    """Whose the answers are; with `once`, only the first one of each."""
    answers.users = users
    if once:
        first = sorted({user: len(users) - 1 - number for number, user in enumerate(reversed(users))}.values())
        answers.again = len(users) - len(first)
        answers.users = [users[number] for number in first]
        answers.values = answers.values[first]
