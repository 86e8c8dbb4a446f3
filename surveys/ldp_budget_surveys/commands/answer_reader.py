"""Reader for the answers in a table: values as a collection's mechanism takes them.

Invalid rows are an error, or are left out with a note.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ldp_budget._number_parsing import number_in
from ldp_budget._validation import canonical_text
from ldp_budget.errors import InvalidParameter, OutsideDomain
from ldp_budget.reports.places import shown_place
from ldp_budget.reports.public_attributes import PublicAttributes, count_combinations
from ldp_budget.sdk.domain import Interval, yes_no
from ldp_budget_cli.input_tables import SKIP_HINT, WIDTHS, ArrowTable, Layout, LeftOut, Row, open_table
from ldp_budget_cli.inputs import ALIKE_TOO, Repeats
from ldp_budget_cli.missing_values import MissingValues
from ldp_budget_cli.notes import print_note
from ldp_budget_cli.output import counted
from ldp_budget_cli.people import Footers, any_odd, kind_of_no_user, why_no_user

from .answer_texts import AnswerTexts, folded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ldp_budget.registry.collections import Collection
    from ldp_budget_cli.input_tables import CsvTable, Note, SheetTable, Table

    from ..arrow_tables import Stretch

_NOTHING_DONE = "Nothing was written."

_SOME = 20
"""The number of rows that tell if a column holds the answers."""
_ROWS = 20_000
"""The most rows of a CSV file in memory at a time."""


@dataclass(frozen=True)
class Reading:
    """The reading options: the columns, the values that mean a missing answer, and the treatment of unusual rows.

    `ignore_case` joins answers, and public values, that differ only by case or spaces; `exact_users` takes no
    user that has to be trimmed.
    """

    column: str
    user_column: str | None
    layout: Layout
    missing: frozenset[str]
    clip: bool
    once: bool
    public: tuple[str, ...] = ()
    ignore_case: bool = False
    exact_users: bool = False


class Batch(NamedTuple):
    """Valid answers: `values` as the mechanism takes them, their users and public attributes if such columns were given."""

    values: Any
    users: list[str]
    public: PublicAttributes | None = None


@dataclass
class Answers:
    """The answers of a table, batch by batch, with the counts of rows that were left out or changed."""

    left_out: LeftOut
    reports: int = 0
    clipped: int = 0
    again: int = 0
    combinations: Counter[tuple[str, ...]] = field(default_factory=Counter)
    spellings: Repeats | None = None
    """The distinct answers, where any text is one."""

    def report(self, skipped_to: str | None) -> None:
        """Print how many rows were left out or changed, and why."""
        left_out = self.left_out
        left_out.report(skipped_to, answers=True)
        for count, why in (
            (left_out.missing, "left out: the answer is missing"),
            (self.again, "left out: a repeated user (--once)"),
        ):
            if count:
                print_note(f"{counted(count, 'row')} {why}")
        if self.clipped:
            print_note(f"{counted(self.clipped, 'number')} outside the range: replaced by the nearest end")
        alike = 0 if self.spellings is None else self.spellings.alike()
        if alike:
            click.echo(
                f"Warning: {alike} answers differ from another answer only by case or spaces, and each counts by itself. "
                f"To join them, add --ignore-case. {ALIKE_TOO}; correct these in the table",
                err=True,
            )


class AnswerReader:
    """Reads the answers of a file once. Invalid rows are noted and left out; without a `note` they are an error."""

    def __init__(self, path: str, collection: Collection, how: Reading, note: Note | None) -> None:
        self._path = path
        self._collection = collection
        self._how = how
        self._note = note
        self._held: list[Sequence[Any]] = []
        held = None if note is None else self._held.append
        try:
            self._texts = AnswerTexts(collection, ignore_case=how.ignore_case)
        except InvalidParameter as error:
            raise click.UsageError(error.describe("--ignore-case")) from None
        self._missing = MissingValues(how.missing)
        self.answers = Answers(LeftOut(held, consequence=f"{_NOTHING_DONE} {SKIP_HINT}", counted=True))
        if self._texts.unlisted and not how.ignore_case:
            self.answers.spellings = Repeats()
        self._any_row = False
        self._footers: Footers | None = None
        self._public_places: list[int] = []
        self._spellings: list[dict[str, str]] = [{} for _ in how.public]
        self._seen: set[str] = set()

    def batches(self) -> Iterator[Batch]:
        """Yield batches of valid answers, none of them empty; at most one batch of the file is in memory."""
        how, answers = self._how, self.answers
        with open_table(self._path, how.layout) as table:
            place = self._place(table)
            user_place = None if how.user_column is None else table.place("user_column", how.user_column)
            self._public_places = [table.place("public", name) for name in how.public]
            if isinstance(table, ArrowTable):
                found = self._of_columns(table, place, user_place)
            else:
                found = self._of_rows(table, place, user_place)
            for each in found:
                self._any_row = True
                self._note_left_out()
                batch = self._once(each) if how.once else each
                answers.reports += len(batch.values)
                assert batch.public is not None or not how.public, "a reader must keep the public columns"
                if batch.public is not None:
                    answers.combinations += count_combinations([batch.public])
                if len(batch.values):
                    yield batch
        shown = shown_place(self._path)
        if not self._any_row:
            below = " below its header" if how.layout.header else ""
            raise click.ClickException(f"{shown} has no rows{below}. {_NOTHING_DONE}")
        if not answers.reports:
            why = f" The first problem: {answers.left_out.first}" if answers.left_out.first else ""
            raise click.ClickException(f"{shown} has no row with a valid answer. {_NOTHING_DONE}{why}")

    def _place(self, table: Table) -> int:
        """Return the position of the column of the answers."""
        return table.place("column", self._how.column)

    def _note_left_out(self) -> None:
        """Note the rows that were left out so far, in their order."""
        if self._note is not None:
            for row in sorted(self._held, key=lambda row: row[1]):
                self._note(row)
            self._held.clear()

    def _once(self, batch: Batch) -> Batch:
        """Keep only the first answer of each user."""
        first = []
        for number, user in enumerate(batch.users):
            if user not in self._seen:
                self._seen.add(user)
                first.append(number)
        self.answers.again += len(batch.users) - len(first)
        public = None if batch.public is None else batch.public.take(first)
        return Batch(batch.values[first], [batch.users[number] for number in first], public)

    def _public(self, rows: Iterable[Sequence[str]]) -> PublicAttributes | None:
        """Return the public attributes of rows; None without public columns."""
        if not self._how.public:
            return None
        if self._how.ignore_case:
            rows = ([self._first_spelling(place, cell) for place, cell in enumerate(row)] for row in rows)
        return PublicAttributes.of(self._how.public, rows)

    def _first_spelling(self, place: int, cell: str) -> str:
        """Return the first value of a public column that differs from a cell by case or spaces at most."""
        return self._spellings[place].setdefault(folded(cell), cell)

    # -- row by row ------------------------------------------------------------------------------------------

    def _of_rows(self, table: CsvTable | SheetTable, place: int, user_place: int | None) -> Iterator[Batch]:
        each = table.rows()
        self._footers = None if user_place is None else Footers(table.columns, user_place)
        while some := list(islice(each, _ROWS)):
            rows: list[Row] = []
            for row in some:
                if not row.problem:
                    row.cells[place] = self._answer(row.cells[place])
                try:
                    complete = self._complete(table, row, place, user_place)
                except click.ClickException:
                    self._kept(table, rows, place)  # report an invalid answer of an earlier row first
                    raise
                if complete:
                    rows.append(row)
            values, kept = self._kept(table, rows, place)
            yield Batch(
                values,
                [] if user_place is None else [canonical_text(rows[number].cells[user_place]) for number in kept],
                self._public([rows[number].cells[each] for each in self._public_places] for number in kept),
            )

    def _answer(self, text: str) -> str:
        """Return the answer that a text counts as; a text that means a missing answer is none."""
        return text if text in self._missing else self._texts(text)

    def _no_user(self, cells: Sequence[str], user_place: int) -> str:
        """Return the reason why a row has no user; empty if it has one."""
        why = why_no_user(cells[user_place], self._how.exact_users)
        return why or ("" if self._footers is None else self._footers.why(cells))

    def _complete(self, table: Table, row: Row, place: int, user_place: int | None) -> bool:
        """True if a row has its cells, a user and an answer; else the row is left out."""
        left_out = self.answers.left_out
        if row.problem:
            left_out.leave(table, row, None, row.problem, WIDTHS)
        elif user_place is not None and (why := self._no_user(row.cells, user_place)):
            left_out.leave(table, row, user_place, why, kind_of_no_user(why))
        elif row.cells[place] in self._missing:
            left_out.leave_missing(table, row, place, row.cells[place])
        else:
            return True
        return False

    def _kept(self, table: Table, rows: list[Row], place: int) -> tuple[Any, list[int]]:
        """Return the values of the rows with a valid answer, and the numbers of these rows."""
        texts = [row.cells[place] for row in rows]
        self._count(texts)
        if self._how.clip:
            shown = [_clipped(self._collection, text) for text in texts]
            self.answers.clipped += sum(one is not other for one, other in zip(texts, shown, strict=True))
            texts = shown
        left_out = self.answers.left_out
        try:
            return self._collection.read_values(texts), list(range(len(rows)))
        except OutsideDomain as error:
            if error.position is None:
                raise
            if not left_out.allowed:
                text = texts[error.position]
                wrong = not_in_domain(table, text, error, self._near(text))
                other = self._other_column(table, texts) if error.position == 0 else ""
                left_out.leave(table, rows[error.position], place, wrong, consequence=other)
        reasons = {text: self._wrong(table, text) for text in dict.fromkeys(texts)}
        kept = []
        for number, text in enumerate(texts):
            if reasons[text]:
                left_out.leave(table, rows[number], place, reasons[text], self._kind(text))
            else:
                kept.append(number)
        return self._collection.read_values([texts[number] for number in kept]), kept

    def _count(self, texts: Iterable[str]) -> None:
        """Count the spellings of answers, where any text is one."""
        if self.answers.spellings is not None:
            for _ in self.answers.spellings.counting(texts):
                pass

    def _near(self, text: str) -> str | None:
        """Return the answer from which an invalid text differs only by case or spaces, if that is not ignored."""
        return None if self._how.ignore_case else self._texts.near(text)

    def _wrong(self, table: Table, text: str) -> str:
        """Return the error in an answer; empty if the answer is valid."""
        try:
            self._collection.read_values([text])
        except OutsideDomain as error:
            return not_in_domain(table, text, error, self._near(text))
        return ""

    def _kind(self, text: str) -> str:
        return kind_of_wrong(text, self._near(text))

    def _other_column(self, table: Table, texts: Sequence[str]) -> str:
        """Return the request for another column, if the first rows all hold no answer; else an empty text."""
        first = texts[:_SOME]
        if len(first) < 2 or len(table.columns) < 2:
            return ""
        if not all(self._wrong(table, text) for text in first) or any(self._near(text) for text in first):
            return ""
        return (
            f"{_NOTHING_DONE} None of the first {len(first)} rows has an answer in this column. Name the column of the "
            f"answers with --column. Columns: {', '.join(table.columns)}"
        )

    # -- column by column ------------------------------------------------------------------------------------

    def _of_columns(self, table: ArrowTable, place: int, user_place: int | None) -> Iterator[Batch]:
        """Yield the same batches from columns; only the invalid rows are processed one by one."""
        truths = (place,) if yes_no(self._collection.categories or ()) else ()
        numbers = place if truths or isinstance(self._collection.mechanism.domain, Interval) else None
        places = (place,) if user_place is None else (place, user_place)
        for first, found in table.stretches(*places, *self._public_places, numbers=numbers, truths=truths):
            named = [] if user_place is None else found[1].cells()
            batch, kept = self._of_stretch(table, first, place, user_place, found[0], named)
            cells = [each.cells() for each in found[len(places) :]]
            yield batch._replace(public=self._public([column[number] for column in cells] for number in kept))

    def _of_stretch(
        self, table: ArrowTable, first: int, place: int, user_place: int | None, found: Stretch, named: list[str]
    ) -> tuple[Batch, list[int]]:
        from .answer_cells import read_cells

        exact = self._how.exact_users
        found = found._replace(texts=list(map(self._answer, found.texts)))
        self._count(found.texts)
        users = list(map(canonical_text, named))
        check = any_odd(users) or (exact and users != named)
        unnamed = [number for number, user in enumerate(named) if why_no_user(user, exact)] if check else []
        clip = (lambda text: _clipped(self._collection, text)) if self._how.clip else None
        cells = read_cells(self._collection, found, counts_as=clip, none=self._missing, without=unnamed)
        texts = dict(cells.wrong[:_SOME])
        other = ""
        if first == 1 and list(texts) == list(range(min(_SOME, len(texts) + len(cells.kept)))):
            other = self._other_column(table, list(texts.values()))
        for number, text in cells.wrong:
            row = Row(None, first + number, [], "")
            if named and (why := why_no_user(named[number], exact)):
                self.answers.left_out.leave(table, row, user_place, why, kind_of_no_user(why))
            elif text in self._missing:
                self.answers.left_out.leave_missing(table, row, place, text)
            else:
                self.answers.left_out.leave(table, row, place, self._wrong(table, text), self._kind(text), other)
        self.answers.clipped += cells.changed
        kept = users if len(cells.kept) == len(users) else [users[number] for number in cells.kept if users]
        return Batch(cells.values, kept), cells.kept


def _clipped(collection: Collection, text: str) -> str:
    """Return the nearest end of the range for a number outside it; any other text unchanged."""
    domain = collection.mechanism.domain
    if not isinstance(domain, Interval):
        raise click.UsageError(
            f"--clip needs a collection of numbers, and {collection.name} has no range. Leave it out."
        )
    lower, upper = domain.ends
    number = _number(text)
    if number < lower or number > upper:
        return str(domain.lower if number < lower else domain.upper)
    return text


def _number(text: str) -> float:
    """Return the number in a text; NaN, which no end of a range exceeds, for any other text."""
    try:
        number = number_in(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def not_in_domain(table: Table, text: str, error: OutsideDomain, near: str | None) -> str:
    """Return the error in an answer; `near` is the answer that --ignore-case takes it for."""
    what = f"{table.found(text)} is not an answer" if text else "the answer is empty"
    joined = "" if near is None else f"; with --ignore-case it counts as {near!r}"
    hint = f". {error.hint.removesuffix('.')}" if error.hint else ""
    return f"{what}: the domain is {error.domain}{joined}{hint}"


def kind_of_wrong(text: str, near: str | None) -> str:
    """Return the reason why a text is no answer, without the text."""
    if not text:
        return "the answer is empty"
    return "not an answer" if near is None else "only case or spaces differ from an answer (--ignore-case accepts it)"
