"""Excel files as tables of texts (extra `excel`): each cell becomes the text that it would be in a CSV file.

A whole number becomes its decimals, a date its ISO form, a blank the empty text. A sheet is made for people, and holds more
than a table: titles, totals, hidden rows, merged cells. Each of them would be a person who does not exist, or one who is lost.
So such a sheet is refused, and the error names the cell.
"""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from datetime import date, datetime, time
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn

from ldp_budget.errors import NotSupported, TableError

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_BYTES = 100 << 20
"""The most XML of a file, as openpyxl holds ten times as much in memory: about two million cells."""
_FORMULA = re.compile(rb"<(?:\w+:)?f[ >/]")
_AGGREGATE = re.compile(
    r"\b(?:(?:SUBTOTAL|AGGREGATE)\(|(?:SUM|COUNT\w*|AVERAGE\w*|MEDIAN|MIN|MAX)\(.*?\$?([A-Z]+)\$?\d+:\$?[A-Z]+\$?\d+)"
)
"""A total: of a table, or of the cells of a column, which is the group."""
_OTHERWISE = re.compile(r"%|^0[0-]+$")
"""Formats in which a number looks like another text: 12.5 % for 0.125, and 007 for 7."""
_DIGITS = 10**15
"""From here on, Excel replaces the last digits of a whole number by zeros."""


class Sheet(NamedTuple):
    """Table of a sheet: its `columns` with their `letters`; its `rows`, each with its number in the sheet; and `notes`."""

    columns: list[str]
    letters: list[str]
    rows: list[tuple[int, list[str]]]
    notes: list[str]


def openpyxl() -> Any:
    """Return the package openpyxl.

    Raises:
        NotSupported: it is not installed.
    """
    try:
        import openpyxl
    except ImportError:
        hint = "Install it: pip install 'ldp-budget[excel]'"
        raise NotSupported("Excel files need the package openpyxl", hint=hint) from None
    return openpyxl


def read_sheet(place: str, file: IO[bytes], name: str | None = None, *, header: bool = True) -> Sheet:
    """Return the table in a sheet. Its first row that is not blank has the headings; other blank rows are no rows.

    Parameters:
        place: the path or URL for messages.
        file: the Excel file, open at its first byte.
        name: the sheet; None for the only visible sheet that is not blank.
        header: False if there are no headings: the columns are then named by their numbers.

    Raises:
        TableError: the file is damaged or too large; the sheet is not clear; or a cell belongs to no table, such as a merged
            one, a total, a formula without a value, or a value below no heading.
        NotSupported: openpyxl is not installed.
    """
    data = file.read()
    sheet = _chosen(place, _loaded(place, data, data_only=True), name)
    place = f"{place}, sheet {sheet.title}"
    sources = _formulas(place, data, sheet.title)
    rows = [
        (cells[0].row, cells)
        for cells in sheet.iter_rows()
        if any(_is_filled(each) or each.coordinate in sources for each in cells)
    ]
    if not rows:
        return Sheet([], [], [], [])
    _check_area(place, sheet, [number for number, _ in rows])
    notes: dict[str, str] = {}
    texts = [(number, [_text(place, each, sources, notes) for each in cells]) for number, cells in rows]
    used = [
        at for at, column in enumerate(zip(*(row for _, row in texts), strict=True)) if any(map(str.strip, column))
    ]
    first, headings = texts[0]
    for at in used if header else ():
        if not headings[at].strip():
            below = next(number for number, row in texts if row[at].strip())
            _refuse(
                place,
                rows[0][1][at].column_letter,
                below,
                f"has no heading in row {first}",
                "Row by row, a table needs one heading above each column.",
            )
    return Sheet(
        [headings[at] if header else str(at + 1) for at in used],
        [rows[0][1][at].column_letter for at in used],
        [(number, [row[at] for at in used]) for number, row in texts[header:]],
        list(notes.values()),
    )


def _refuse(place: str, column: str, row: int, why: str, hint: str) -> NoReturn:
    raise TableError(place, f"cell {column}{row} {why}", hint=hint)


def _loaded(place: str, data: bytes, **how: bool) -> Any:
    """Return the workbook. Its macros and formulas are never run, and its links never opened."""
    package = openpyxl()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of parts of the file that hold no cells
            if sum(each.file_size for each in parts.infolist()) <= MOST_BYTES:
                return package.load_workbook(io.BytesIO(data), keep_links=False, **how)
    except Exception as error:  # whatever a damaged file does to its reader
        raise TableError(place, f"this Excel file cannot be read: {' '.join(str(error).split())}") from None
    raise TableError(place, "this Excel file is too large to be read", hint="Save the sheet as CSV in UTF-8.")


def _chosen(place: str, book: Any, name: str | None) -> Any:
    """Return the sheet of that name, or the only visible one that is not blank."""
    sheets = {each.title: each for each in book.worksheets}
    if name is not None:
        if name not in sheets:
            raise TableError(place, f"there is no sheet {name!r}", hint=f"Sheets: {', '.join(sheets)}")
        return sheets[name]
    shown = [each for each in book.worksheets if each.sheet_state == "visible"] or book.worksheets
    filled = [each for each in shown if any(_is_filled(cell) for row in each.iter_rows() for cell in row)] or shown
    if len(filled) != 1:
        listed = ", ".join(each.title for each in filled)
        raise TableError(place, f"there are {len(filled)} sheets: {listed}", hint="Name one with --sheet NAME.")
    return filled[0]


def _formulas(place: str, data: bytes, title: str) -> dict[str, str]:
    """Return the formula of each cell that has one: the values alone do not tell a total from a number."""
    with zipfile.ZipFile(io.BytesIO(data)) as parts:
        if not any(
            _FORMULA.search(parts.read(each)) for each in parts.namelist() if each.startswith("xl/worksheets/")
        ):
            return {}
    cells = (cell for row in _loaded(place, data)[title].iter_rows() for cell in row if cell.data_type == "f")
    return {each.coordinate: str(getattr(each.value, "text", each.value)) for each in cells}


def _check_area(place: str, sheet: Any, rows: Sequence[int]) -> None:
    """Raise `TableError` for merged cells, hidden rows and the total row of a table."""
    for area in sheet.merged_cells.ranges:
        if area.min_row <= rows[-1] and area.max_row >= rows[0]:
            hint = "Unmerge them, and give each column its own heading and each row its own values."
            raise TableError(place, f"the cells {area.coord} are merged", hint=hint)
    for number in rows:
        if number in sheet.row_dimensions and sheet.row_dimensions[number].hidden:
            hint = "Clear the filter and show all rows, or delete the rows that you do not mean."
            raise TableError(place, f"row {number} is hidden", hint=hint)
    for table in sheet.tables.values():
        if table.totalsRowCount:
            total = table.ref.partition(":")[2]
            raise TableError(place, f"cell {total} is in the total row of a table", hint="Switch the total row off.")


def _is_filled(cell: Any) -> bool:
    return cell.value is not None and str(cell.value).strip() != ""


def _text(place: str, cell: Any, sources: dict[str, str], notes: dict[str, str]) -> str:
    """Return a cell as text; notes a column whose numbers look otherwise in Excel."""
    value, source = cell.value, sources.get(cell.coordinate)
    if source is not None:
        area = _AGGREGATE.search(source.upper())
        if area and area[1] in (None, cell.column_letter):
            _refuse(place, cell.column_letter, cell.row, f"is a total, {source}", "Delete the rows of totals.")
        if value is None:
            hint = "Open the file in Excel or LibreOffice, and save it."
            _refuse(place, cell.column_letter, cell.row, "has a formula without a value", hint)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        if _OTHERWISE.search(cell.number_format):
            notes.setdefault(
                cell.column_letter,
                f"{place}: cell {cell.coordinate} is shown in the format {cell.number_format}, and holds {value}, which is read",
            )
        if value != value // 1:
            return repr(value)
        return str(int(value)) if abs(value) < _DIGITS else f"{Decimal(value).normalize():E}"
    if isinstance(value, datetime):
        return value.date().isoformat() if value.time() == time() else value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if value is not None and not isinstance(value, str):
        _refuse(
            place,
            cell.column_letter,
            cell.row,
            f"has a {type(value).__name__}, which has no one text",
            "Format it as text or as a number.",
        )
    return str(openpyxl().utils.escape.unescape(value or ""))
