"""Columns and frames of other libraries (pandas, Polars, Arrow, numpy) as plain texts, none of them imported here.

A column of whole numbers is taken as their decimals, as it is from a file; what is missing stays what it is, and is
found by whoever looks at the single texts. A frame has no one column, so it is refused where a column is wanted.

Results as tables in notebooks: what comes of users and answers is text there, whatever it looks like.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any

from ._validation import check_many, check_name, shown
from .errors import InvalidParameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_TOGETHER = 1 << 16


def is_frame(value: Any) -> bool:
    """Whether this is a frame or table, and no column."""
    return hasattr(value, "shape") and hasattr(value, "columns")


def is_column(value: Any) -> bool:
    """Whether this is a column of one of the libraries, or an array of numpy."""
    names = ("to_pylist", "to_list") if not hasattr(value, "dtype") else ("to_list", "tolist")
    return hasattr(value, "__len__") and any(callable(getattr(value, name, None)) for name in names)


def check_texts(option: str, value: Any, expected: str) -> Iterable[Any]:
    """`value` as something to go through, like `check_many`; the cells of a column as plain texts.

    Raises `InvalidParameter`.
    """
    if is_frame(value):
        names = ", ".join(map(str, column_names(value)))
        raise InvalidParameter(option, expected, f"a frame of the columns {names}, and not one of them")
    return _cells(value) if is_column(value) else check_many(option, value, expected)


def column_names(frame: Any) -> list[Any]:
    """What the columns of a frame, or of a mapping of columns, are called."""
    if isinstance(frame, Mapping):
        return list(frame)
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def column_of(frame: Any, column: str) -> Any:
    """A column of a frame, or of a mapping of columns. Raises `InvalidParameter`."""
    check_name("column", column)
    if not (is_frame(frame) or isinstance(frame, Mapping)):
        raise InvalidParameter("frame", "a frame of pandas, Polars or Arrow, or a mapping of columns", shown(frame))
    names = column_names(frame)
    if names.count(column) != 1:
        found = f"{column}, {names.count(column)} times" if column in names else column
        expected = f"one of the columns {', '.join(map(str, names)) or '(none)'}, which no other is named like"
        raise InvalidParameter("column", expected, found)
    return frame[column]


def as_texts(value: Any) -> list[str] | None:
    """A list of at least one text, if all of them are texts, or a column whose first cell is one; else None."""
    if getattr(value, "ndim", 1) != 1 or is_frame(value):
        return None
    if isinstance(value, list | tuple):
        return list(value) if value and all(isinstance(item, str) for item in value) else None
    if is_column(value) and len(value) > 0 and isinstance(_listed(_part(value, 0, 1))[0], str):
        return _listed(value)
    return None


def _cells(column: Any) -> Iterator[Any]:
    """The cells of a column, some at a time."""
    for start in range(0, len(column), _TOGETHER):
        yield from _plain(_listed(_part(column, start, start + _TOGETHER)))


def _part(column: Any, start: int, stop: int) -> Any:
    """Some cells of a column, by where they stand; the index that pandas has beside it is none of ours."""
    return (column.iloc if hasattr(column, "iloc") else column)[start:stop]


def _listed(column: Any) -> list[Any]:
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def _plain(cells: list[Any]) -> list[Any]:
    """Whole numbers as their decimals, unless texts stand among them."""
    if any(isinstance(cell, str) for cell in cells):
        return cells
    return [str(cell) if type(cell) is int else cell for cell in cells]


MOST_ROWS = 50
"""How many rows a table shows."""


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], total: int) -> str:
    """A table of `total` rows, of which the first few are shown; every cell is escaped."""
    shown = list(islice(rows, MOST_ROWS))
    lines = [f"<caption>{_text(caption)}</caption>", _row("th", header), *(_row("td", row) for row in shown)]
    if total > len(shown):
        lines.append(f'<tr><td colspan="{len(header)}">… ({total} rows)</td></tr>')
    return f'<table class="ldp-budget">{"".join(lines)}</table>'


def _row(tag: str, cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(cell: object) -> str:
    # `quote`: nobody has to look at where it stands.
    return escape(shown_cell(cell), quote=True)


def shown_cell(value: Any) -> str:
    """A value as people read it."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return "unbounded" if math.isinf(value) else f"{value:.6g}"
    return str(value)
