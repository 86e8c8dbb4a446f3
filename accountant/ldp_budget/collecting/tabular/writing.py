"""Rows as a CSV, Parquet or Arrow file, by its name: there when all went well, whole and durable, or not at all."""

from __future__ import annotations

import csv
import io
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

from ...errors import NotSupported
from .kinds import ARROW, CSV, PARQUET, named_kind
from .places import shown_place, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Note = Callable[[Sequence[object]], None]

_TOGETHER = 10_000


@contextmanager
def row_file(path: str, columns: Mapping[str, type]) -> Iterator[Note]:
    """A function that takes rows for a file.

    Parameters:
        path: a path or an address; its ending says of what kind the file is.
        columns: what they are called, and whether they hold str, int, float or bool; None in a row is nothing.

    Raises:
        OSError: it cannot be written.
        NotSupported: for that kind of file, or of place, something is not installed; or nothing is promised there.
    """
    kind = named_kind(path)
    if kind not in _FORMS:
        raise NotSupported(f"{shown_place(path)} has the name of {kind}, which is not written")
    types = _FORMS[kind](columns)
    with written(path) as file, types(file) as note:
        yield note


def _csv_form(columns: Mapping[str, type]) -> Any:
    @contextmanager
    def rows(file: IO[bytes]) -> Iterator[Note]:
        file.write(_csv(list(columns)))
        yield lambda row: _write(file, row)

    return rows


def _write(file: IO[bytes], row: Sequence[object]) -> None:
    file.write(_csv(row))


def _csv(row: Sequence[object]) -> bytes:
    """One row of a CSV file, in UTF-8."""
    text = io.StringIO()
    csv.writer(text).writerow(row)
    return text.getvalue().encode()


def _arrow_form(kind: str) -> Callable[[Mapping[str, type]], Any]:
    def form(columns: Mapping[str, type]) -> Any:
        from .arrow import arrow

        pyarrow = arrow()
        types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
        schema = pyarrow.schema([(name, types[of]) for name, of in columns.items()])

        @contextmanager
        def rows(file: IO[bytes]) -> Iterator[Note]:
            held: list[Sequence[object]] = []
            open_writer = pyarrow.parquet.ParquetWriter if kind == PARQUET else pyarrow.ipc.new_file
            with open_writer(file, schema) as writer:

                def flush() -> None:
                    if held:
                        cells = zip(*held, strict=True)
                        arrays = [pyarrow.array(of, each.type) for of, each in zip(cells, schema, strict=True)]
                        writer.write_batch(pyarrow.record_batch(arrays, schema=schema))
                        held.clear()

                def note(row: Sequence[object]) -> None:
                    held.append(row)
                    if len(held) == _TOGETHER:
                        flush()

                yield note
                flush()

        return rows

    return form


_FORMS: dict[str, Callable[[Mapping[str, type]], Any]] = {
    CSV: _csv_form,
    PARQUET: _arrow_form(PARQUET),
    ARROW: _arrow_form(ARROW),
}
