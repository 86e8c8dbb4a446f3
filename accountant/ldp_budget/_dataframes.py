"""Adapters for columns and DataFrames of other libraries, and the base of results that become a DataFrame.

Columns of pandas, Polars, Arrow and numpy become plain texts. None of these libraries is imported here. A column of
whole numbers is read as their decimals, as from a file. A missing cell keeps its value, and the check of the single
texts finds it. A DataFrame is refused where a column is required.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ._later import registered
from ._validation import check_many, check_name, shown_with_type
from .errors import InvalidParameter, NotSupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_TOGETHER = 1 << 16


def is_frame(value: Any) -> bool:
    """True if the value is a DataFrame or table, and not a column."""
    return hasattr(value, "shape") and hasattr(value, "columns")


def is_column(value: Any) -> bool:
    """True if the value is a column of one of the libraries, or a numpy array."""
    names = ("to_pylist", "to_list") if not hasattr(value, "dtype") else ("to_list", "tolist")
    return hasattr(value, "__len__") and any(callable(getattr(value, name, None)) for name in names)


def check_texts(option: str, value: Any, expected: str, hint: str = "") -> Iterable[Any]:
    """Return an iterable over `value`, like `check_many`. The cells of a column become plain texts.

    Raises `InvalidParameter`.
    """
    if is_frame(value):
        names = ", ".join(map(str, column_names(value)))
        found = f"a DataFrame with the columns {names}"
        raise InvalidParameter(option, expected, found, hint="Pass one of its columns.")
    return _cells(value) if is_column(value) else check_many(option, value, expected, hint)


def column_names(frame: Any) -> list[Any]:
    """The names of the columns of a DataFrame, or of a mapping of columns."""
    if isinstance(frame, Mapping):
        return list(frame)
    return list(frame.column_names if hasattr(frame, "column_names") else frame.columns)


def column_of(frame: Any, column: str) -> Any:
    """A column of a DataFrame, or of a mapping of columns. Raises `InvalidParameter`."""
    check_name("column", column)
    if not (is_frame(frame) or isinstance(frame, Mapping)):
        expected = "a DataFrame of pandas, Polars or Arrow, or a mapping of columns"
        raise InvalidParameter("frame", expected, shown_with_type(frame))
    names = column_names(frame)
    if names.count(column) != 1:
        listed = ", ".join(map(str, names)) or "(none)"
        if column in names:
            found = f"{column!r}, the name of {names.count(column)} columns"
            raise InvalidParameter("column", "the name of one column", found, hint="Rename the columns.")
        raise InvalidParameter("column", f"one of the columns {listed}", repr(column))
    return frame[column]


def as_texts(value: Any) -> list[str] | None:
    """The texts of a non-empty list of texts, or of a column whose first cell is a text; otherwise None."""
    if getattr(value, "ndim", 1) != 1 or is_frame(value):
        return None
    if isinstance(value, list | tuple):
        return list(value) if value and all(isinstance(item, str) for item in value) else None
    if is_column(value) and len(value) > 0 and isinstance(_listed(_part(value, 0, 1))[0], str):
        return _listed(value)
    return None


def _cells(column: Any) -> Iterator[Any]:
    """Yield the cells of a column, read in parts."""
    for start in range(0, len(column), _TOGETHER):
        yield from _plain(_listed(_part(column, start, start + _TOGETHER)))


def _part(column: Any, start: int, stop: int) -> Any:
    """Some cells of a column, by position. The index of a pandas column is ignored."""
    return (column.iloc if hasattr(column, "iloc") else column)[start:stop]


def _listed(column: Any) -> list[Any]:
    for name in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def _plain(cells: list[Any]) -> list[Any]:
    """Replace whole numbers by their decimals, unless some cells are texts."""
    if any(isinstance(cell, str) for cell in cells):
        return cells
    return [str(cell) if type(cell) is int else cell for cell in cells]


# -- results as tables ------------------------------------------------------------------------------------------


_NOTEBOOK = "ldp_budget.tables", "notebook"
"""The entry point of the module that draws tables for notebooks and makes DataFrames."""


def html_table(caption: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """An HTML table of rows, for notebooks. Its code is loaded when a notebook shows the first one."""
    table: str = registered(*_NOTEBOOK).html_table(caption, rows)
    return table


class Tabular:
    """Base of results that notebooks show as a table, and that become a DataFrame."""

    @property
    def caption(self) -> str:
        """What the rows are."""
        return type(self).__name__

    def to_rows(self) -> list[dict[str, Any]]:
        """Return the rows of the table."""
        raise NotSupported(f"a {type(self).__name__} has no rows")

    def to_frame(self, library: str = "pandas") -> Any:
        """Return the rows as a DataFrame.

        Parameters:
            library: `pandas` or `polars`.

        Raises:
            InvalidParameter: `library` is another name.
            NotSupported: the library is not installed, or the result has no rows.
        """
        return registered(*_NOTEBOOK).frame_of(self.to_rows(), library)

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return html_table(self.caption, self.to_rows())
