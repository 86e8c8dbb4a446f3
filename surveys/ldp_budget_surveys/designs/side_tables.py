"""Side tables of an estimate, weights and totals, from Excel files and from CSV files as spreadsheet programs write them."""

from __future__ import annotations

import csv
import os
import re
from itertools import chain
from typing import TYPE_CHECKING

from ldp_budget.errors import InvalidParameter, TableError
from ldp_budget.reports.public_attributes import canonical_value
from ldp_budget_cli.table_kinds import CSV, EXCEL, HEAD, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?[,;\t]*', re.IGNORECASE)
_OTHERS = (";", "\t", "|")
_ENCODING = "Save it as CSV UTF-8."


def read_table_rows(path: str | os.PathLike[str], option: str, sheet: str | None = None) -> list[dict[str, str]]:
    """Return the rows of a CSV or Excel file with a header, as texts in the form in which they are compared.

    The separator is a comma, the one that a first line `sep=;` names, or the only other one in the header: a semicolon,
    a tab or a bar.

    Parameters:
        path: the path of the file.
        option: the option that named it, for messages.
        sheet: the sheet of an Excel file; None for the only one.

    Raises:
        InvalidParameter: the file cannot be read, a quote does not close, a column appears twice, or a row has another
            number of cells than the header.
    """
    place = os.fspath(path)
    try:
        with open(place, "rb") as binary:
            kind = kind_of(place, place, binary.read(HEAD))
    except TableError as error:
        raise InvalidParameter(
            option, "a CSV file in UTF-8", str(error).removesuffix(error.hint), hint=error.hint
        ) from None
    except OSError as error:
        raise InvalidParameter(option, "a CSV file in UTF-8", f"{place} ({error.strerror})") from None
    if kind not in (CSV, EXCEL):
        raise InvalidParameter(option, "a CSV file in UTF-8", f"{place}, {kind}", hint=_ENCODING)
    lines = _of_text(place, option) if kind == CSV else _of_sheet(place, sheet)
    header = [canonical_value(cell) for cell in lines[0][1]] if lines else []
    for name in header:
        if header.count(name) > 1:
            raise InvalidParameter(option, f"distinct columns in {place}", f"{name!r} {header.count(name)} times")
    for number, line in lines[1:]:
        if len(line) != len(header):
            expected = f"{len(header)} cells in each row of {place}, as in its header"
            raise InvalidParameter(option, expected, f"{len(line)} in row {number}")
    return [dict(zip(header, map(canonical_value, line), strict=True)) for _, line in lines[1:]]


def _of_sheet(place: str, sheet: str | None) -> list[tuple[int, list[str]]]:
    """Return the headings and the rows of an Excel file, each with its number."""
    from ..excel_tables import read_sheet

    with open(place, "rb") as file:
        found = read_sheet(place, file, sheet)
    return [(0, found.columns), *found.rows]


def _of_text(place: str, option: str) -> list[tuple[int, list[str]]]:
    """Return the lines of a CSV file that are not empty, each with its number."""
    try:
        with open(place, encoding="utf-8-sig", newline="") as file:
            return list(_lines(list(file), place, option))
    except UnicodeDecodeError as error:
        found = f"{place} (byte 0x{error.object[error.start]:02x} is not UTF-8)"
        raise InvalidParameter(option, "a CSV file in UTF-8", found, hint=_ENCODING) from None


def _lines(texts: list[str], place: str, option: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines that are not empty, each with its number."""
    named = _SEPARATOR_LINE.fullmatch(texts[0].strip("\r\n")) if texts else None
    skipped = 0 if named is None else 1
    rest = texts[skipped:]
    first = next((text for text in rest if text.strip()), "")
    other = [each for each in _OTHERS if each in first and "," not in first]
    delimiter = named[1] if named is not None else other[0] if len(other) == 1 else ","
    reader = csv.reader(chain(rest), delimiter=delimiter, strict=True)
    before = skipped
    try:
        for cells in reader:
            if any(each.strip() for each in cells):
                yield before + 1, cells
            before = skipped + reader.line_num
    except csv.Error as error:
        why = "a quote is not closed" if "unexpected end" in str(error) else str(error)
        raise InvalidParameter(
            option,
            "a CSV file in UTF-8",
            f"{place}, row {before + 1}: {why}",
            hint='Add the missing ", or write "" for a quote inside a cell.',
        ) from None
