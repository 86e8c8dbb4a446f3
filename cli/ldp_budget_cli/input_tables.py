"""Tables from users' files, read row by row; every message names the position in the file.

A CSV file has a header line, or columns that are numbered from 1 (`--no-header`). Empty lines are not rows. An
invalid row is an error that names its line and its column. A caller that passes a note function gets such rows with the
reason instead, and the row is left out. Parquet and Arrow files are columns of text as well, see `ArrowTable`; they
have rows, but no lines. A sheet of an Excel file has rows too, and its messages name cells.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import sys
from collections import Counter
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click
from click.core import ParameterSource

from ldp_budget._lookalikes import difference
from ldp_budget._validation import canonical_text, shown
from ldp_budget.errors import InvalidParameter
from ldp_budget.reports.places import opened, shown_place

from .command_groups import part
from .errors import did_you_mean, where_to_look
from .notes import print_note
from .output import cell, counted, finite, marked, options
from .people import IMPORT_ID, is_total
from .table_kinds import CSV, EXCEL, HEAD, kind_of, named_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TextIO

    Note = Callable[[Sequence[object]], None]

_USERS = (
    *("user", "person", "respondent", "participant", "member", "customer", "client", "employee", "subject"),
    *(
        "patient",
        "student",
        "account",
        "device",
        "panelist",
        "pseudonym",
        "login",
        "email",
        "mail",
        "name",
        "id",
        "uid",
    ),
)
USER_COLUMNS = {word + more for word in _USERS for more in ("", "s", "id", "ids", "name", "names", "number")}
"""The names of a user column, independent of case, spaces, hyphens and underscores."""

_SEPARATORS = {";": "';'", "\t": "tab", "|": "'|'"}


_FILLED = "Name a file with a header line and rows."


class Layout(NamedTuple):
    """The layout of a table file."""

    delimiter: str = ","
    encoding: str = "utf-8"
    header: bool = True


def _layout(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Check an option of `layout_options`."""
    if parameter.name == "delimiter":
        value = {"tab": "\t", r"\t": "\t"}.get(value, value)
        if len(value) != 1 or value in '"\r\n':
            raise InvalidParameter("delimiter", "one character or tab", repr(value))
    else:
        try:
            "a".encode(value)
        except LookupError:
            expected = "a text encoding such as utf-8, latin-1, cp1252 or utf-16"
            raise InvalidParameter("encoding", expected, value) from None
    return value


_SHEET = "ldp_budget.sheet"


def _kept_sheet(ctx: click.Context, parameter: click.Parameter, value: str | None) -> None:
    ctx.meta[_SHEET] = value


sheet_option = click.option(
    "--sheet",
    metavar="NAME",
    expose_value=False,
    callback=_kept_sheet,
    help="The sheet of an Excel file [default: the only visible one that is not blank]",
)


def chosen_sheet() -> str | None:
    """Return the sheet that the running command was given."""
    context = click.get_current_context(silent=True)
    return None if context is None else context.meta.get(_SHEET)


layout_options = options(
    click.option(
        "--delimiter",
        default=",",
        metavar="D",
        callback=_layout,
        help="The separator of cells: one character, or tab [default: ,]",
    ),
    click.option(
        "--encoding", default="utf-8", metavar="E", callback=_layout, help="The encoding of FILE [default: utf-8]"
    ),
    click.option("--no-header", is_flag=True, help="FILE has no header line; its columns are named 1, 2, …"),
    sheet_option,
)


class Row(NamedTuple):
    """A row: its first line in the file, if known; its number from 1; its cells; its error."""

    line: int | None
    number: int
    cells: list[str]
    problem: str


class Table:
    """An open table: its `columns`, by name or number, and their names in messages."""

    def __init__(self, path: str, columns: list[str], *, header: bool) -> None:
        self.path = path
        self.columns = [canonical_text(each) for each in columns]
        self._header = header

    def place(self, option: str, column: str) -> int:
        """Return the position of a column. Raises `InvalidParameter` unless exactly one column has that name."""
        column = canonical_text(column)
        if column not in self.columns:
            raise click.UsageError(self._no_column(option, column))
        if self.columns.count(column) > 1:
            raise click.UsageError(
                f"{_spelt(option)}: {self.path} has {self.columns.count(column)} columns named {column!r}. Rename one."
            )
        return self.columns.index(column)

    def _no_column(self, option: str, column: str) -> str:
        """Return the error for an unknown column."""
        if not self.columns:
            return f"{_spelt(option)}: {self.path} is empty, so it has no column {column!r}. {_FILLED}"
        apart = difference(column, self.columns)
        hint = self._hint()
        close = f" {apart}" if apart else "" if hint else did_you_mean(column, self.columns)
        return (
            f"{_spelt(option)}: {self.path} has no column {column!r}.{close} Columns: {', '.join(self.columns)}{hint}"
        )

    def user_place(self, column: str | None) -> int:
        """Return the position of the user column: the named column, else the first one, if its name says so.

        Raises `InvalidParameter` if that is unclear, because the first line may already be the first user.
        """
        if column is not None:
            return self.place("user_column", column)
        if not self.columns:
            missing = "header line" if self._header else "row"
            raise click.ClickException(f"{self.path} is empty: it has no {missing}. {_FILLED}")
        first = self.columns[0]
        plain = first.strip().lower().replace(" ", "").replace("_", "").replace("-", "")
        if self._header and plain not in USER_COLUMNS:
            raise click.UsageError(self._doubt(first))
        return 0

    def _doubt(self, first: str) -> str:
        """Return the question if the first column is the user column."""
        return (
            f"Is {first!r} (line 1 of {self.path}) a header or a user? If it is a user, add --no-header. If it is a "
            f"header, add --user-column NAME{self._hint()}"
        )

    def _hint(self) -> str:
        """Return a hint to another separator if the first line is one column that contains that separator."""
        others = [name for sign, name in _SEPARATORS.items() if len(self.columns) == 1 and sign in self.columns[0]]
        return f". The first line is one cell: --delimiter {others[0]} would split it" if others else ""

    def where(self, row: Row, column: int | None = None, *, counted: bool = False) -> str:
        """Return the name of a row, and of its column if known, for messages; `counted` adds the row number."""
        if row.line is None:
            return f"{self.path}, row {row.number}" + ("" if column is None else f", column {self.columns[column]}")
        place = f"{self.path}, line {row.line}"
        if column is not None:
            place += f", column {self.columns[column]}"
            if counted:
                place += f", row {row.number}{' below the header' if self._header else ''}"
        return place

    def found(self, text: str) -> str:
        """Return a cell's text as messages show it."""
        return repr(text)


_UNCLOSED = "unexpected end of data"
"""The text of the error of `csv` for a file that ends within quotes."""
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?[,;\t]*', re.IGNORECASE)
"""A first line in which a spreadsheet program names the separator."""
_LONGEST_CELL = 1 << 20
_LINES = ("line {} is a further header", "lines {} are further headers")


class CsvTable(Table):
    """An open CSV file: its `columns`, and its `rows`, once."""

    def __init__(self, path: str, layout: Layout, file: TextIO) -> None:
        self._layout, self._path = layout, path
        lines = _decoded(path, layout, file)
        top = next(lines, "")
        named = _SEPARATOR_LINE.fullmatch(top.strip("\ufeff\r\n"))
        self._skipped = 0 if named is None else 1
        delimiter = layout.delimiter if named is None else self._named_delimiter(named[1])
        self._delimiter = delimiter
        csv.field_size_limit(_LONGEST_CELL)
        rest = lines if named is not None else chain([top] if top else [], lines)
        self._reader = csv.reader(rest, delimiter=delimiter, strict=True)
        self._each = self._lines()
        self._first = next(self._each, None)
        first = [] if self._first is None else self._first[1]
        columns = first if layout.header else [str(number) for number in range(1, len(first) + 1)]
        super().__init__(path, columns, header=layout.header)

    def _named_delimiter(self, named: str) -> str:
        """Return the separator that the first line names. Raises a click error if another one was given."""
        given = self._layout.delimiter
        context = click.get_current_context(silent=True)
        typed = context is not None and context.get_parameter_source("delimiter") is ParameterSource.COMMANDLINE
        if typed and given != named:
            raise click.UsageError(
                f"--delimiter is {given!r}, and the first line of {self._path} says sep={named}. Leave --delimiter out, or "
                "remove that line."
            )
        return named

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the lines that are not empty, each with its first line number."""
        before = self._skipped
        try:
            for cells in self._reader:
                if cells:
                    yield before + 1, cells
                before = self._skipped + self._reader.line_num
        except csv.Error as error:
            at = self._skipped + self._reader.line_num
            raise click.ClickException(self._broken(str(error), before + 1, at)) from None

    def _broken(self, error: str, first: int, last: int) -> str:
        """Return the message for a row that cannot be parsed; `first` and `last` are its lines."""
        remedy = 'Add the missing ", or write "" for a quote inside a cell.'
        if error == _UNCLOSED:
            return f'{self._path}, line {first}: unclosed quote: the row begins a cell with " and never ends it. {remedy}'
        if "field larger" in error:
            return (
                f"{self._path}, line {first}: a cell has more than {_LONGEST_CELL:,} characters, as after a quote that "
                f"does not close. {remedy}"
            )
        if "expected after" in error:
            where = "in the same line" if last == first else f"first in line {last}"
            return (
                f"{self._path}, line {first}: the row begins a cell with a quote, and the next quote, {where}, is not "
                f"before a {self._delimiter!r} or the end of the line. {remedy}"
            )
        return f"{self._path}, line {last}, is not CSV: {error}. {remedy}"

    def rows(self) -> Iterator[Row]:
        """Yield the rows below the header, once; further header rows, as Qualtrics writes them, are left out."""
        width = len(self.columns)
        first = [] if self._layout.header or self._first is None else [self._first]
        numbered = enumerate(chain(first, self._each), 1)
        begun = list(islice(numbered, 2 if self._layout.header else 3))
        more = next((at for at, (_, (_, cells)) in enumerate(begun) if _is_import_ids(cells)), None)
        if more is not None:
            some = " and ".join(str(line) for _, (line, _) in begun[: more + 1])
            print_note(f"Note: {self._path}: {_LINES[more > 0].format(some)} (Qualtrics), and no people")
            begun = begun[more + 1 :]
        for number, (line, cells) in chain(begun, numbered):
            problem = "" if len(cells) == width else self._widths(len(cells))
            yield Row(line, number, cells, problem or self._swallowed(cells))

    def _swallowed(self, cells: list[str]) -> str:
        """Return the reason why a row is no row: a cell holds whole rows, as after a quote that closes too late."""
        for each in cells:
            if "\n" in each and len(self.columns) > 1:
                inside = each.splitlines()[1:-1]
                if inside and all(line.count(self._delimiter) == len(self.columns) - 1 for line in inside):
                    return f"a quote closes too late: one cell holds {len(inside)} or more rows"
        return ""

    def _widths(self, found: int) -> str:
        as_where = "header" if self._layout.header else "first row"
        return f"{'1 cell' if found == 1 else f'{found} cells'} instead of {len(self.columns)}, as in the {as_where}"


def _is_import_ids(cells: Sequence[str]) -> bool:
    return any(each.lstrip().startswith(IMPORT_ID) for each in cells)


class ArrowTable(Table):
    """An open Parquet or Arrow file: its `columns`, and blocks of some of them, once."""

    def __init__(self, path: str, shown: str, kind: str, binary: io.BufferedReader[Any]) -> None:
        self._file = part("arrow-tables").ArrowFile(path, kind, binary)
        self._named: list[str] = self._file.columns
        super().__init__(shown, self._named, header=True)

    def stretches(
        self, *places: int, numbers: int | Sequence[int] | None = None, truths: Sequence[int] = ()
    ) -> Iterator[tuple[int, list[Any]]]:
        """Yield the columns at these positions as text, in blocks of rows with the number of the first row, from 1.

        `numbers` are the positions of columns in which numbers with a fraction are allowed, and `truths` of those in
        which true and false are. Raises `TableError`.
        """
        fractions = [numbers] if isinstance(numbers, int) else numbers or ()
        for place in places:
            self._file.check(self._named[place], numbers=place in fractions, truths=place in truths)
        for found in self._file.stretches([self._named[place] for place in places]):
            if self._file.rows == 0 and any(_is_import_ids(column.cells()[:2]) for column in found):
                raise click.ClickException(
                    f"{self.path}: the first rows are further headers (Qualtrics), and no people. Nothing was written or "
                    "charged. Remove them."
                )
            yield self._file.rows + 1, found

    def found(self, text: str) -> str:
        return shown(text) if text else "nothing"

    def user_place(self, column: str | None) -> int:
        if column is None and not self.columns:
            raise click.ClickException(f"{self.path} has no columns.")
        return super().user_place(column)

    def _doubt(self, first: str) -> str:
        return f"--user-column is missing: the column of the users. {self.path} has: {', '.join(self.columns)}"


class SheetTable(Table):
    """A sheet of an Excel file: its `columns`, and its `rows`."""

    def __init__(self, path: str, layout: Layout, binary: io.BufferedReader[Any]) -> None:
        self._sheet = part("excel-tables").read_sheet(path, binary, chosen_sheet(), header=layout.header)
        super().__init__(path, self._sheet.columns, header=layout.header)
        for note in self._sheet.notes:
            print_note(f"Note: {note}")

    def rows(self) -> Iterator[Row]:
        """Yield the rows below the headings. A row that begins with the word total is an error."""
        for number, (line, cells) in enumerate(self._sheet.rows, 1):
            row = Row(line, number, cells, "")
            first = next(place for place, each in enumerate(cells) if each.strip())
            if is_total(cells[first]):
                raise click.ClickException(
                    f"{self.where(row, first)}: {cells[first]!r} begins a row of totals. Nothing was written or charged. "
                    "Delete the rows of totals."
                )
            yield row

    def where(self, row: Row, column: int | None = None, *, counted: bool = False) -> str:
        if column is None:
            return f"{self.path}, row {row.line}"
        return f"{self.path}, cell {self._sheet.letters[column]}{row.line}, column {self.columns[column]}"


@contextmanager
def open_table(path: str, layout: Layout) -> Iterator[CsvTable | SheetTable | ArrowTable]:
    """Open a table in a file, at a URL that fsspec opens, or on standard input for `-`.

    A read error while the table is open is an error that names the table.
    """
    shown = shown_place(path)
    try:
        with _opened(path) as binary:
            head = binary.peek(HEAD)[:HEAD]
            kind = kind_of(path, shown, head)
            _check_options(shown, kind)
            if kind == CSV:
                yield from _csv_table(path, shown, layout, binary)
            elif kind == EXCEL:
                yield SheetTable(shown, layout, binary)
            else:
                yield ArrowTable(path, shown, kind, binary)
    except OSError as error:
        raise click.ClickException(f"Cannot read {shown}: {error.strerror}.{where_to_look(path, error)}") from None
    except (UnicodeError, csv.Error) as error:
        raise click.ClickException(f"{shown} is not a CSV file in {_shown(layout)}: {error}.") from None


def _csv_table(path: str, shown: str, layout: Layout, binary: io.BufferedReader) -> Iterator[CsvTable]:
    if named_kind(path) != CSV:
        print_note(f"Note: {shown} holds text in spite of its name, so it is read as CSV")
    encoding = "utf-8-sig" if codecs.lookup(layout.encoding).name == "utf-8" else layout.encoding
    # Undecodable text is found line by line, so that the message can name the line; not every encoding supports that.
    text = io.TextIOWrapper(binary, encoding, "surrogateescape", newline="")
    try:
        yield CsvTable(shown, layout, text)
    finally:
        text.detach()


def _check_options(shown: str, kind: str) -> None:
    """Raise a click error for an option of the command that is for files of another kind."""
    context = click.get_current_context(silent=True)
    kinds = {"delimiter": (CSV,), "encoding": (CSV,), "no_header": (CSV, EXCEL), "sheet": (EXCEL,)}
    for name, suits in kinds.items():
        given = context is not None and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and kind not in suits:
            option, files = name.replace("_", "-"), "Excel" if suits == (EXCEL,) else "CSV"
            raise click.UsageError(f"--{option} is for {files} files, and {shown} is {kind}. Leave it out.")


@contextmanager
def _opened(path: str) -> Iterator[io.BufferedReader[Any]]:
    if path != "-":
        with opened(path) as file:
            yield file
        return
    given = sys.stdin.buffer
    file = given if isinstance(given, io.BufferedReader) else io.BufferedReader(cast("io.RawIOBase", given))
    try:
        yield file
    finally:
        if file is not given:
            file.detach()


def _decoded(path: str, layout: Layout, file: TextIO) -> Iterator[str]:
    """Yield the lines of a file; a line that the encoding cannot decode is an error."""
    for number, line in enumerate(file, 1):
        if not line.isascii():
            for character in line:
                if "\udc80" <= character <= "\udcff":
                    found = f"byte 0x{ord(character) - 0xDC00:02x}"
                    raise click.ClickException(
                        f"{path} is not a CSV file in {_shown(layout)}: line {number} has {found}. Name its encoding "
                        "with --encoding, such as latin-1, cp1252 or utf-16"
                    )
        yield line


def _spelt(option: str) -> str:
    return f"--{option.replace('_', '-')}"


def _shown(layout: Layout) -> str:
    return layout.encoding.upper()


WIDTHS = "another number of cells than columns"
SKIP_HINT = "To leave out invalid rows, add --skip-invalid --skipped-to FILE"


# -- rows that are left out ----------------------------------------------------------------------------------


class LeftOut:
    """Rows that are left out, each with the reason; without `note`, an invalid row is an error.

    An error ends with the `consequence`. With `counted` it also names the number of the row in the table. `allowed`
    is True if rows may be left out. `kinds` counts the invalid rows by reason, `missing` the rows without an answer.
    """

    def __init__(self, note: Note | None, *, consequence: str = "", counted: bool = False) -> None:
        self._note = note
        self._consequence = consequence
        self._counted = counted
        self.allowed = note is not None
        self.kinds: Counter[str] = Counter()
        self.missing = 0
        self.first = ""

    @property
    def invalid(self) -> int:
        """The number of invalid rows."""
        return self.kinds.total()

    def leave(
        self, table: Table, row: Row, column: int | None, reason: str, kind: str = "", consequence: str = ""
    ) -> None:
        """Leave out an invalid row, or raise an error for it, with its own `consequence` if one is given.

        `kind` is the reason without the details.
        """
        where = f"{table.where(row, column, counted=self._counted)}: {reason}"
        if self._note is None:
            raise click.ClickException(f"{where}. {consequence or self._consequence}".rstrip())
        self.first = self.first or where
        self.kinds[kind or reason] += 1
        self._write(table, row, column, reason)

    def leave_missing(self, table: Table, row: Row, column: int, value: str) -> None:
        """Leave out a row whose value means a missing answer."""
        self.missing += 1
        if self._note is not None:
            self._write(table, row, column, f"missing: {value!r}")

    def _write(self, table: Table, row: Row, column: int | None, reason: str) -> None:
        assert self._note is not None
        self._note((row.line, row.number, "" if column is None else table.columns[column], reason))

    def report(self, place: str | None, *, answers: bool = False) -> None:
        """Print how many rows were skipped, by reason, and the file that names them.

        `answers` is True if that file has true answers.
        """
        if not self.kinds:
            return
        private = ", which has true answers" if answers else ""
        print_note(f"{counted(self.invalid, 'row')} skipped as invalid: see {place}{private}")
        for kind, count in self.kinds.most_common():
            print_note(f"  {counted(count, 'row')}: {kind}")


LEFT_OUT_COLUMNS = {"line": int, "row": int, "column": str, "reason": str}


@contextmanager
def writing_rows(option: str, path: str | None, columns: Mapping[str, type]) -> Iterator[Note]:
    """Return a function that writes rows to a file. The file appears only if the block succeeds.

    The suffix selects CSV, Parquet or Arrow; the file may be local or at a URL. Raises a click error that names the
    option if the file cannot be written.
    """
    if path is None:
        yield lambda row: None
        return
    try:
        with part("arrow-tables").row_file(path, columns) as note:
            yield note
    except OSError as error:
        raise click.ClickException(f"--{option}: cannot write {shown_place(path)}: {error.strerror}.") from None


def write_rows_to(option: str, path: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of numbers and texts to such a file, all with the same columns: in CSV the cells of `--csv`."""
    rows = [marked(row) for row in rows]
    shown = cell if named_kind(path) == CSV else finite
    with writing_rows(option, path, {name: type(value) for name, value in rows[0].items()}) as note:
        for row in rows:
            note([shown(value) for value in row.values()])
