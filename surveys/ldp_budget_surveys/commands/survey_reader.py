"""Reader for the answers to a survey in a table: one column for each question.

The questions of each respondent are selected first. Only the asked ones need an answer, and the answers to the others
are not kept.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click

from ldp_budget._lookalikes import difference
from ldp_budget._number_parsing import number_in
from ldp_budget._validation import canonical_text
from ldp_budget.errors import OutsideDomain
from ldp_budget.sdk.domain import Interval, yes_no
from ldp_budget.sdk.tick_sets import TickSets
from ldp_budget_cli.errors import did_you_mean
from ldp_budget_cli.input_tables import WIDTHS, ArrowTable, Row
from ldp_budget_cli.people import Footers, kind_of_no_user

from ..questionnaires.questionnaire import NO_ANSWER
from .answer_reader import AnswerReader, Batch, kind_of_wrong, not_in_domain
from .answer_texts import AnswerTexts
from .tick_columns import option_columns, ticked

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ldp_budget_cli.input_tables import CsvTable, Note, SheetTable, Table

    from ..questionnaires.questionnaire import Question, Questionnaire
    from ..questionnaires.survey_collection import SurveyCollection
    from .answer_reader import Reading

_ROWS = 20_000


def columns_of(questionnaire: Questionnaire, given: Sequence[str]) -> dict[str, str]:
    """Return the column of each question: of `--column QUESTION=COLUMN`, else of the question's name."""
    columns = {
        name: name for question in questionnaire.questions for name in (question.asked_items or (question.name,))
    }
    for text in given:
        name, equals, column = text.partition("=")
        name = next((each for each in columns if canonical_text(each) == canonical_text(name)), name)
        if not equals or name not in columns:
            raise click.UsageError(
                f"--column must be QUESTION=COLUMN for a survey, with a question of {', '.join(columns)}: got {text!r}. "
                "Leave it out if the columns have the names of the questions."
            )
        columns[name] = column
    return columns


class SurveyReader(AnswerReader):
    """Reads the answers to a survey once; `how.column` is not used. The batches have `value_type` values."""

    def __init__(
        self, path: str, collection: SurveyCollection, how: Reading, note: Note | None, columns: dict[str, str]
    ) -> None:
        super().__init__(path, collection, how, note)
        self._collection: SurveyCollection = collection
        self._survey = collection.mechanism
        self._columns = columns
        slots = self._survey.questions
        self._optional = [question.optional for question in collection.survey.slots]
        self._places: list[int] = []
        self._boxes: list[list[int]] = []
        """For each question the columns of its options, if each has a column of its own."""
        self._known: list[dict[str | tuple[str, ...], float | str]] = [{} for _ in slots]
        self._question_texts = [
            AnswerTexts(collection.question((question.items or (question.name,))[0]), ignore_case=how.ignore_case)
            for question in slots
        ]

    def _place(self, table: Table) -> int:
        boxes = [self._option_columns(table, question) for question in self._survey.questions]
        missing = [
            name
            for question, own in zip(self._survey.questions, boxes, strict=True)
            for name in (question.asked_items or (question.name,))
            if not (own and question.asked_items is None) and canonical_text(self._columns[name]) not in table.columns
        ]
        if missing:
            column = self._columns[missing[0]]
            apart = difference(column, table.columns)
            close = f" {apart}" if apart else did_you_mean(column, table.columns)
            raise click.UsageError(
                f"{table.path} has no column {column!r} for the question {missing[0]}.{close} Columns: "
                f"{', '.join(table.columns)}. Add --column {missing[0]}=COLUMN"
            )
        self._boxes = [[table.place("column", each) for each in own] for own in boxes]
        self._places = [
            own[0] if own else table.place("column", self._columns[question.name])
            for own, question in zip(self._boxes, self._survey.questions, strict=True)
        ]
        return self._places[0]

    def _option_columns(self, table: Table, question: Question) -> list[str]:
        """Return the columns of the options of a question of ticks that has no column itself, or of the items of a grid."""
        if question.asked_items is not None:
            return [self._columns[item] for item in question.asked_items]
        column = self._columns[question.name]
        if not isinstance(question.domain, TickSets) or canonical_text(column) in table.columns:
            return []
        return option_columns(table.columns, column, self._options(question)) or []

    def _options(self, question: Question) -> tuple[str, ...]:
        """Return the options of a question of ticks that a table has columns for."""
        at = self._survey.questions.index(question)
        return (question.categories or ())[: -1 if self._optional[at] else None]

    def _of_rows(self, table: CsvTable | SheetTable, place: int, user_place: int | None) -> Iterator[Batch]:
        each = table.rows()
        self._footers = None if user_place is None else Footers(table.columns, user_place)
        while some := list(islice(each, _ROWS)):
            yield self._batch(table, some, (self._places, self._boxes), user_place, self._public_places)

    def _of_columns(self, table: ArrowTable, place: int, user_place: int | None) -> Iterator[Batch]:
        asked = list(zip(self._places, self._survey.questions, strict=True))
        truths = [at for at, question in asked if yes_no(question.categories or ())]
        numeric = [*truths, *(at for at, question in asked if isinstance(question.domain, Interval))]
        wanted = [*self._places, *([] if user_place is None else [user_place]), *self._public_places]
        public = list(range(len(wanted) - len(self._public_places), len(wanted)))
        own_user = None if user_place is None else len(self._places)
        alone, boxes = list(range(len(self._places))), []
        for own in self._boxes:
            boxes.append(list(range(len(wanted), len(wanted) + len(own))))
            wanted += own
            numeric, truths = [*numeric, *own], [*truths, *own]
        for first, found in table.stretches(*wanted, numbers=numeric, truths=truths):
            cells = zip(*(column.cells() for column in found), strict=True)
            rows = [Row(None, first + number, list(row), "") for number, row in enumerate(cells)]
            yield self._batch(table, rows, (alone, boxes), own_user, public)

    def _batch(
        self,
        table: Table,
        rows: list[Row],
        places: tuple[list[int], list[list[int]]],
        user_place: int | None,
        public: list[int],
    ) -> Batch:
        """Return the valid rows of some; `places` are those of the questions in the cells, and of their options."""
        left_out = self.answers.left_out
        complete = []
        for row in rows:
            if row.problem:
                left_out.leave(table, row, None, row.problem, WIDTHS)
            elif user_place is not None and (why := self._no_user(row.cells, user_place)):
                left_out.leave(table, row, self._user_column(table), why, kind_of_no_user(why))
            else:
                complete.append(row)
        users = [] if user_place is None else [canonical_text(row.cells[user_place]) for row in complete]
        masks = self._collection.masks(len(complete) if user_place is None else users)
        kept, values = [], []
        for number, (row, mask) in enumerate(zip(complete, masks, strict=True)):
            numbers = self._numbers(table, row, mask, places)
            if numbers is not None:
                kept.append(number)
                values.append((mask, *numbers))
        return Batch(
            self._survey.values(values),
            [users[number] for number in kept if users],
            self._public([complete[number].cells[place] for place in public] for number in kept),
        )

    def _user_column(self, table: Table) -> int:
        assert self._how.user_column is not None
        return table.columns.index(canonical_text(self._how.user_column))

    def _numbers(
        self, table: Table, row: Row, mask: int, places: tuple[list[int], list[list[int]]]
    ) -> list[float] | None:
        """Return the answers to the asked questions of a row, NaN for the others; None if it is left out."""
        alone, boxes = places
        numbers = [float("nan")] * len(alone)
        for at, question in enumerate(self._survey.questions):
            if not mask >> at & 1:
                continue
            text = self._answer_of(table, row, at, [row.cells[place] for place in boxes[at] or [alone[at]]])
            if text is None:
                return None
            found = self._known[at].get(text)
            if found is None:
                found = self._known[at][text] = self._read(table, question, text, at)
            if isinstance(found, str):
                wrong = text if isinstance(text, str) else ""
                kind = kind_of_wrong(wrong, self._near_of(at, wrong)) if wrong else "not an answer"
                self.answers.left_out.leave(table, row, self._places[at], found, kind)
                return None
            if isinstance(text, str):
                self.answers.clipped += self._is_outside(question, text)
            numbers[at] = found
        return numbers

    def _answer_of(self, table: Table, row: Row, at: int, cells: list[str]) -> str | tuple[str, ...] | None:
        """Return the answer in the cells of a question: one for each item of a grid; None if the row was left out without one."""
        question = self._survey.questions[at]
        if question.asked_items is None and self._boxes[at]:
            cells = [ticked(cells, self._options(question))]
        texts = [text if text in self._missing else self._question_texts[at](text) for text in cells]
        for place, text in enumerate(texts):
            if self._optional[at] and (text in self._missing or not text):
                texts[place] = NO_ANSWER
            elif text in self._missing:
                where = self._boxes[at][place] if question.asked_items is not None else self._places[at]
                self.answers.left_out.leave_missing(table, row, where, text)
                return None
        return texts[0] if question.asked_items is None else tuple(texts)

    def _near_of(self, at: int, text: str) -> str | None:
        """Return the answer to a question from which a text differs only by case or spaces, if that is not ignored."""
        return None if self._how.ignore_case else self._question_texts[at].near(text)

    def _read(self, table: Table, question: Question, text: str | tuple[str, ...], at: int) -> float | str:
        """Return the number of an answer, or the reason why it is invalid."""
        if isinstance(text, tuple):
            try:
                return question.number_of(text, 0)
            except OutsideDomain as error:
                return not_in_domain(table, str(error.found), error, self._near_of(at, str(error.found)))
        try:
            if self._is_outside(question, text):
                lower, upper = question.domain.ends  # type: ignore[union-attr]
                return min(max(number_in(text), lower), upper)
            return question.number_of(text, 0)
        except OutsideDomain as error:
            return not_in_domain(table, text, error, self._near_of(at, text))

    def _is_outside(self, question: Question, text: str) -> bool:
        """True if `--clip` replaces the number."""
        if not self._how.clip or not isinstance(question.domain, Interval):
            return False
        try:
            number = number_in(text)
        except ValueError:
            return False
        lower, upper = question.domain.ends
        return lower > number > float("-inf") or upper < number < float("inf")
