"""XLSForms, written from rows of cells."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import openpyxl

CHOICES = ("list_name", "name", "label::English (en)", "label::Korean (ko)")
MOODS = [("mood", "good", "Good", "좋음"), ("mood", "bad", "Bad", "나쁨")]
YES_NO = [("yn", "no", "No", "아니오"), ("yn", "yes", "Yes", "예")]


def xlsform(
    path: Path,
    columns: Sequence[str],
    rows: Sequence[Sequence[str | None]],
    choices: Sequence[Sequence[str | None]] = (*MOODS, *YES_NO),
    settings: dict[str, str] | None = None,
    heading: Sequence[str] = CHOICES,
) -> Path:
    """Write a form with these columns and rows of its survey sheet; return its path."""
    book = openpyxl.Workbook()
    survey = book.active
    survey.title = "survey"
    for row in (columns, *rows):
        survey.append(list(row))
    sheet = book.create_sheet("choices")
    for row in (heading, *choices):
        sheet.append(list(row))
    for line in sheet.iter_rows():
        for cell in line:
            cell.data_type = "s" if cell.value is not None else "n"
    if settings:
        sheet = book.create_sheet("settings")
        sheet.append(list(settings))
        sheet.append(list(settings.values()))
    book.save(path)
    return path
