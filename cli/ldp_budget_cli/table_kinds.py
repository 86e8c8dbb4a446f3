"""Kinds of table files: CSV, Excel, Parquet and Arrow.

The name of a file decides its kind, but its first bytes override the name. A Parquet file begins with `PAR1` and a
byte that never is in text, an Arrow file with `ARROW1`, an Arrow stream with four bytes 0xff. No CSV file in a text
encoding begins so.
"""

from __future__ import annotations

import os
import re

from ldp_budget.errors import TableError

CSV, PARQUET, ARROW, STREAM = "a CSV file", "a Parquet file", "an Arrow file", "an Arrow stream"
EXCEL = "an Excel file"

SUFFIXES = {
    ".parquet": PARQUET,
    ".pq": PARQUET,
    ".arrow": ARROW,
    ".feather": ARROW,
    ".ipc": ARROW,
    ".arrows": STREAM,
    ".xlsx": EXCEL,
    ".xlsm": EXCEL,
}
"""Kind of a file by its ending; any other name is that of a CSV file."""

HEAD = 64
"""Number of first bytes that distinguish the kinds."""

_TEXT = set(range(0x20, 0x100)) | set(b"\t\r\n\f")


def named_kind(path: str) -> str:
    """Return the kind of a file by its name.

    Parameters:
        path: a path or a URL.
    """
    return SUFFIXES.get(os.path.splitext(path.partition("?")[0])[1].lower(), CSV)


_NO_TABLES = {
    b"\x89PNG\r\n": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF89a": "a GIF picture",
    b"GIF87a": "a GIF picture",
    b"%PDF-": "a PDF file",
    b"PK\x03\x04": "a ZIP archive or a spreadsheet (.xlsx, .ods)",
    b"\xd0\xcf\x11\xe0": "a spreadsheet (.xls) or another Office file",
    b"\x1f\x8b": "a file compressed by gzip",
    b"SQLite format 3\0": "a SQLite database",
    b"$FL2@(#)": "an SPSS file (.sav)",
    b"$FL3@(#)": "a compressed SPSS file (.zsav)",
    b"ASCII SPSS PORT FILE": "an SPSS portable file (.por)",
    b"<stata_dta>": "a Stata file (.dta)",
    b"HEADER RECORD*******LIB": "a SAS transport file (.xpt)",
    b"RDX": "an R data file",
    b"\x89HDF": "an HDF5 file",
    b"<?xml": "an XML file",
    b"<html": "an HTML page",
    b"<!DOCTYPE": "an HTML page",
    b"<!doctype": "an HTML page",
    b"<table": "an HTML table",
    b"[{": "a JSON file",
    b'{"': "a JSON file",
}
"""The first bytes of files that are often given in place of a table."""


_OLD_STATA = re.compile(rb"[\x69-\x73][\x01\x02]\x01\x00", re.DOTALL)
_SAS = b"\xc2\xea\x81\x60"
_READERS = {"SPSS": "read_spss", "Stata": "read_stata", "SAS": "read_sas"}


def _conversion(what: str) -> str:
    """Return how to make a CSV file of a file of another kind."""
    for program, reader in _READERS.items():
        if program in what:
            more = " (pip install pandas pyreadstat)" if program == "SPSS" else " (pip install pandas)"
            return (
                f"Save the table as CSV in UTF-8 in {program}, or in Python{more}: "
                f"pandas.{reader}('FILE').to_csv('FILE.csv', index=False)"
            )
    return "Save the table as CSV in UTF-8."


def kind_of(path: str, shown: str, head: bytes) -> str:
    """Return the kind of a file by its first bytes.

    Parameters:
        path: a path or a URL.
        shown: the path or URL for messages.
        head: the first 64 bytes, or all bytes of a shorter file.

    Raises:
        TableError: the file has the name of a Parquet or Arrow file, but is neither of them nor text; or it is a
            Feather file of version 1, an encrypted Parquet file, a picture, a PDF or a spreadsheet.
    """
    if head.startswith(b"ARROW1\0\0"):
        return ARROW
    if head.startswith(b"\xff\xff\xff\xff"):
        return STREAM
    if head.startswith(b"PAR1") and (len(head) < 5 or head[4] not in _TEXT):
        return PARQUET
    named = named_kind(path)
    if named == EXCEL and head.startswith(b"PK\x03\x04"):
        return EXCEL
    if head.startswith((b"FEA1", b"PARE")):
        what = "a Feather file of version 1" if head.startswith(b"FEA1") else "an encrypted Parquet file"
        raise TableError(shown, f"it is {what}, which cannot be read")
    for beginning, what in _NO_TABLES.items():
        if head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \r\n").startswith(beginning):
            raise TableError(shown, f"it is {what}, and not a table", hint=_conversion(what))
    if _OLD_STATA.match(head) and path.lower().endswith(".dta"):
        raise TableError(shown, "it is a Stata file (.dta), and not a table", hint=_conversion("a Stata"))
    if head[12:16] == _SAS:
        raise TableError(shown, "it is a SAS file (.sas7bdat), and not a table", hint=_conversion("a SAS"))
    if named != CSV and (not head or not _TEXT.issuperset(head)):
        found = f"begins with {head[:8]!r}" if head else "is empty"
        raise TableError(shown, f"it is named like {named}, but {found}")
    return CSV
