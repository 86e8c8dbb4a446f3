"""Text tables and fields that fit the terminal.

A table that is too wide wraps its texts, then leaves out the columns that matter least, and at last prints each row as
a block of fields. Numbers and single words are never broken. The forms for programs (`--json`, `--csv`) hold everything.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
from itertools import zip_longest
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

import click

from .notes import print_note

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_GAP = "  "
KEPT = "\N{NO-BREAK SPACE}"
"""A space at which a cell is not broken; it is printed as an ordinary one."""
_LONG, _LEAST = 24, 16
"""A text column is long above the first width, and is then not made narrower than the second."""


def terminal_width() -> int:
    """Return the width of the terminal, from COLUMNS if it is set; 80 where there is no terminal."""
    return shutil.get_terminal_size().columns


def table_width() -> float:
    """Return the width that tables have to fit: no limit in a file or a pipe, unless COLUMNS is set."""
    return terminal_width() if sys.stdout.isatty() or os.environ.get("COLUMNS") else math.inf


class Loss(float):
    """A loss, or another number that is safe only if it is not printed too small: rounded up as text."""


class Affordable(float):
    """An amount that may be spent, or another number that is safe only if it is not printed too large: rounded down."""


def shown(value: Any) -> str:
    """Return a value as text."""
    if value is None:
        return "-"
    if isinstance(value, Loss | Affordable):
        from ldp_budget.guarantees.fixed_point import printed_down, printed_up

        return (printed_up if isinstance(value, Loss) else printed_down)(value)
    if isinstance(value, float):
        return "unbounded" if math.isinf(value) else f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value)) or "-"
    return str(value)


# -- tables --------------------------------------------------------------------------------------------------


def print_row_table(rows: Sequence[Mapping[str, Any]], drop: Sequence[str] = ()) -> None:
    """Print rows as text; nothing if there are none."""
    if rows:
        print_table(list(rows[0]), [list(row.values()) for row in rows], drop)


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]], drop: Sequence[str] = ()) -> None:
    """Print columns as wide as their content, numbers to the right, within the width of the terminal.

    `drop` names the columns that may be left out, the least important first.
    """
    lines, left_out = fitted(header, rows, table_width(), drop)
    click.echo("\n".join(lines))
    if left_out:
        print_note(f"Not shown, as the terminal is narrow: {', '.join(left_out)}. All columns: --json")


def fitted(
    header: Sequence[str], rows: Sequence[Sequence[Any]], width: float, drop: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the lines of a table, and the columns that were left out to fit them into `width`."""
    by_column = zip(*rows, strict=True) if rows else ((),) * len(header)
    columns = [_Column(name, values) for name, values in zip(header, by_column, strict=True)]
    left_out: list[str] = []
    widths = _widths(columns, width)
    for name in drop:
        if widths is not None:
            break
        left_out.append(name)
        columns = [column for column in columns if column.name != name]
        widths = _widths(columns, width)
    if widths is None:
        return list(_blocks(columns, len(rows), int(width))), left_out
    return [line for number in range(len(rows) + 1) for line in _row(columns, widths, number)], left_out


class _Column:
    """A column of texts, its header first."""

    def __init__(self, name: str, values: Sequence[Any]) -> None:
        self.name = name
        self.is_number = bool(values) and all(isinstance(value, int | float) for value in values)
        self.cells = [name, *map(shown, values)]
        self.most = max(map(_length, self.cells))
        words = [_length(word) for cell in self.cells for word in cell.split(" ")]
        self.least = max([0, *words, _LEAST if self.most > _LONG else 0])


def _widths(columns: Sequence[_Column], width: float) -> list[int] | None:
    """Return the width of each column, the widest ones narrowed until all fit; None if they cannot."""
    widths = [column.most for column in columns]
    over = sum(widths) + len(_GAP) * (len(columns) - 1) - width
    while over > 0:
        spare = [(each, place) for place, each in enumerate(widths) if each > columns[place].least]
        if not spare:
            return None
        widths[max(spare)[1]] -= 1
        over -= 1
    return widths


def _row(columns: Sequence[_Column], widths: Sequence[int], number: int) -> Iterator[str]:
    """Yield the lines of a row; 0 is the header."""
    wrapped = [wrap(column.cells[number], width) for column, width in zip(columns, widths, strict=True)]
    for cells in zip_longest(*wrapped, fillvalue=""):
        yield (
            _GAP.join(
                " " * (width - _length(cell)) + cell if column.is_number else cell + " " * (width - _length(cell))
                for column, width, cell in zip(columns, widths, cells, strict=True)
            )
            .replace(KEPT, " ")
            .rstrip()
        )


def _blocks(columns: Sequence[_Column], rows: int, width: int) -> Iterator[str]:
    """Yield each row as lines of fields, with an empty line between two rows."""
    for number in range(1, rows + 1):
        if number > 1:
            yield ""
        yield from field_lines({column.name: column.cells[number] for column in columns}, width)


def wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text, broken at spaces; a word that is wider has a line of its own."""
    lines: list[str] = []
    for line in text.split("\n"):
        current = ""
        for part in re.findall(r" *[^ ]+", line):
            if current and _length(current + part) > width:
                lines.append(current)
                current = part.lstrip(" ")
            else:
                current += part
        lines.append(current)
    return lines


def _length(text: str) -> int:
    """Return the number of cells that a text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


# -- fields --------------------------------------------------------------------------------------------------


def print_fields(fields: Mapping[str, Any], indent: int = 0) -> None:
    """Print `name  value` lines; nested mappings are indented, and long values wrapped."""
    for line in field_lines(fields, terminal_width(), indent):
        click.echo(line)


def field_lines(fields: Mapping[str, Any], width: int, indent: int = 0) -> Iterator[str]:
    """Yield the lines of `print_fields`."""
    wide = max((_length(name) for name in fields), default=0)
    for name, value in fields.items():
        if isinstance(value, dict):
            yield f"{'':{indent}}{name}"
            yield from field_lines(value, width, indent + 2)
            continue
        before = indent + wide + len(_GAP)
        first, *more = wrap(shown(value), max(width - before, _LEAST))
        yield f"{'':{indent}}{name}{' ' * (wide - _length(name))}{_GAP}{first}".replace(KEPT, " ").rstrip()
        for line in more:
            yield " " * before + line.replace(KEPT, " ")
