"""Lists of names in an option or a file: each is parsed once, with quotes around a name that has a comma."""

from __future__ import annotations

import csv
import os

import click

from ldp_budget._validation import canonical_text, check_storable
from ldp_budget.errors import InvalidParameter

_QUOTES = {"'": "'", "‘": "’", "“": "”", "„": "“", "«": "»", '"': '"'}
"""Opening quotes, each with the quote that closes it."""


def split_names(option: str, text: str) -> tuple[str, ...]:
    """Return the names in a comma-separated list, as they are compared. Raises a click error.

    A name with a comma has double quotes around it, as in a CSV file.
    """
    try:
        (names,) = csv.reader([text.strip()], strict=True, skipinitialspace=True) if text.strip() else ([""],)
    except (csv.Error, ValueError):
        raise click.UsageError(f"{option}: the quotes of {text!r} do not match. {_REMEDY}") from None
    checked = tuple(_name(option, each) for each in names)
    for number, name in enumerate(checked):
        closing = _QUOTES.get(name[:1])
        if not closing or (len(name) > 1 and name.endswith(closing)):
            continue
        if any(each.endswith(closing) for each in checked[number + 1 :]):
            raise click.UsageError(
                f"{option}: the quotes of {text!r} are around a comma and would become part of two names. {_REMEDY}"
            )
    return checked


_REMEDY = "Write double quotes around a name with a comma: '\"black, matte\",red'"


def _name(option: str, text: str) -> str:
    try:
        return canonical_text(check_storable(option, text))
    except InvalidParameter as error:
        raise click.UsageError(str(error)) from None


def read_names(option: str, text: str) -> tuple[str, ...]:
    """Return the names in a file, one a line, or in a comma-separated list. Raises a click error.

    A line in double quotes is one name without these quotes.
    """
    if not os.path.isfile(text):
        return split_names(f"--{option}", text)
    try:
        with open(text, encoding="utf-8-sig") as file:
            return tuple(_line(option, text, number, line) for number, line in enumerate(file, 1) if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        why = (
            getattr(error, "strerror", None)
            or "it is not text in UTF-8. Save it as a text file in UTF-8, one name a line"
        )
        raise click.UsageError(f"--{option}: cannot read {text}: {why}.") from None


def _line(option: str, path: str, number: int, line: str) -> str:
    name = canonical_text(line)
    if not name.startswith('"'):
        return name
    try:
        (cells,) = csv.reader([name], strict=True)
        (only,) = cells
    except (csv.Error, ValueError):
        raise click.UsageError(
            f'--{option}: {path}, line {number}: the quotes of {name!r} do not match. Write one name a line, and "" for '
            "a quote inside a name in quotes."
        ) from None
    return canonical_text(only)
