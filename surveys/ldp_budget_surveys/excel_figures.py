"""Figures as an Excel file (extra `excel`): a sheet of rows, and one that says what each column means.

No cell can be run: every text is stored as a text, also one that begins with `=`, `+`, `-` or `@`.
"""

from __future__ import annotations

import io
import math
import re
from itertools import chain
from typing import TYPE_CHECKING, Any

from ldp_budget.errors import NotSupported

from .excel_tables import openpyxl

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_MOST_ROWS = 1_048_575
_LONGEST = 32_767
_UNSTORABLE = re.compile("[\0-\b\v\f\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ESCAPE = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
_WIDEST = 60


def book_of(
    rows: Sequence[Mapping[str, Any]],
    meanings: Mapping[str, str],
    form: Callable[[Mapping[str, Any], str], str],
    facts: Mapping[str, Any],
) -> bytes:
    """Return an Excel file.

    Parameters:
        rows: the figures; each maps some of the columns to texts and numbers.
        meanings: the columns in their order, each with its meaning; one without any value is left out.
        form: the number format of a column in a row.
        facts: what holds for all rows, by its name.

    Raises:
        NotSupported: openpyxl is not installed, or there are more rows than a sheet can hold.
    """
    book = openpyxl().Workbook(write_only=True)
    if len(rows) > _MOST_ROWS:
        raise NotSupported(f"a sheet holds {_MOST_ROWS} rows: got {len(rows)}", hint="Write them with --csv.")
    used = [name for name in meanings if any(row.get(name) is not None for row in rows)]
    figures = [[(row.get(name), form(row, name)) for name in used] for row in rows]
    _add_sheet(book, "Figures", used, figures)
    explained = chain(((name, meanings[name]) for name in used), [("", "")], facts.items())
    _add_sheet(book, "Explanation", ["column", "meaning"], [[(each, "General") for each in row] for row in explained])
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _add_sheet(book: Any, title: str, header: Sequence[str], rows: Sequence[Sequence[tuple[Any, str]]]) -> None:
    sheet = book.create_sheet(title)
    sheet.freeze_panes = "A2"
    for number, name in enumerate(header):
        texts = [name, *(row[number][0] for row in rows if isinstance(row[number][0], str))]
        letter = openpyxl().utils.get_column_letter(number + 1)
        sheet.column_dimensions[letter].width = min(_WIDEST, 2 + max(10, *map(len, texts)))
    sheet.append([_cell(sheet, name, "General", bold=True) for name in header])
    for row in rows:
        sheet.append([_cell(sheet, *each) for each in row])


def _cell(sheet: Any, value: Any, form: str, *, bold: bool = False) -> Any:
    """Return a cell. A text is a text, with the mark that keeps it one when it is edited."""
    package = openpyxl()
    if isinstance(value, float) and not math.isfinite(value):
        value = None if math.isnan(value) else "unbounded"
    if isinstance(value, str):
        value = _ESCAPE.sub("_x005F_", _UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", value))[:_LONGEST]
    cell = package.cell.WriteOnlyCell(sheet, value)
    if isinstance(value, str):
        cell.data_type, cell.quotePrefix = "s", True
        cell.alignment = package.styles.Alignment(vertical="top", wrap_text=True)
    else:
        cell.number_format = form
    if bold:
        cell.font = package.styles.Font(bold=True)
    return cell
