"""Reader of Parquet and Arrow files as text, and writer of CSV, Parquet and Arrow files.

The reader converts columns to text in stretches of rows, and never holds the whole file. A cell becomes the text that
it would be in a CSV file. So the same checks apply to all kinds of files, and a user has the same name in all of
them. Whole numbers become their decimals. A number with a fraction is a value from a range of numbers, never a user.
A null becomes the empty text. Other types have no unique text; the error names the type.

The writer chooses the format by the file name. The file appears complete and durable when all went well, or not at
all.
"""

from __future__ import annotations

import csv
import io
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ldp_budget.errors import NotSupported, TableError
from ldp_budget.reports.places import EXTRA, is_address, local_path, shown_place, written
from ldp_budget_cli.table_kinds import ARROW, CSV, PARQUET, named_kind

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Note = Callable[[Sequence[object]], None]

# -- reading -------------------------------------------------------------------------------------------------

ROWS = 1 << 16
"""Largest number of rows held at a time."""

_END = b"\xff\xff\xff\xff\0\0\0\0"


def arrow() -> Any:
    """Return pyarrow with the modules that read and write files.

    Raises:
        NotSupported: pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError:
        raise NotSupported("Parquet and Arrow files need the package pyarrow", hint=f"Install it: {EXTRA}") from None
    return pyarrow


class Stretch(NamedTuple):
    """Stretch of a column: its distinct texts, and for each row the index of its text, shape (n,); -1 for a null."""

    texts: list[str]
    codes: NDArray[np.int64]

    def cells(self) -> list[str]:
        """Return the text of each row; the empty text for a null."""
        texts = [*self.texts, ""]
        return [texts[code] for code in self.codes.tolist()]


class ArrowFile:
    """Open Parquet or Arrow file with its `columns`; stretches of columns can be read once.

    Parameters:
        path: a path or a URL.
        kind: the kind of the file: `PARQUET`, `ARROW` or `STREAM`.
        file: the same file, open at its first byte.

    Raises:
        TableError: the file is damaged, or cannot be read in pieces.
        NotSupported: pyarrow is not installed.
    """

    def __init__(self, path: str, kind: str, file: io.BufferedReader) -> None:
        self._arrow = arrow()
        self._shown = shown_place(path)
        self._kind = kind
        if kind in (PARQUET, ARROW) and not file.seekable():
            raise TableError(
                self._shown,
                f"{kind} cannot be read from a pipe, because it is read from its end",
                hint="Write it to a file first.",
            )
        # pyarrow opens local files itself; standard input is not a local file.
        here = None if path == "-" or is_address(path) else local_path(path)
        with self._damage():
            if kind == PARQUET:
                self._reader = self._arrow.parquet.ParquetFile(
                    here or file, buffer_size=1 << 20, pre_buffer=False, page_checksum_verification=True
                )
                self._schema = self._reader.schema_arrow
            else:
                self._source = self._arrow.memory_map(here) if here and kind == ARROW else file
                self._reader, self._tail = self._ipc(None)
                self._schema = self._reader.schema
        self.columns: list[str] = list(self._schema.names)
        self.rows = 0
        """Number of rows read so far."""

    def check(self, column: str, *, numbers: bool = False, truths: bool = False) -> None:
        """Raise `TableError` unless each cell of a column has a unique text.

        Parameters:
            column: the name of the column.
            numbers: True if numbers with a fraction are valid, as values from a range of numbers.
            truths: True if true and false are valid, as the answers yes and no.

        Raises:
            TableError: the type of the column has no unique text.
        """
        kind = self._schema.field(self.columns.index(column)).type
        if not _has_text(self._arrow.types, kind, numbers) and not (truths and self._arrow.types.is_boolean(kind)):
            expected = "text or numbers" if numbers else "text or whole numbers"
            raise TableError(self._shown, f"column {column} must be {expected}: got the type {kind}")

    def stretches(self, columns: Sequence[str]) -> Iterator[list[Stretch]]:
        """Yield stretches of the columns, in order; all stretches of one list cover the same rows.

        Parameters:
            columns: the names of existing columns.

        Raises:
            TableError: the file is damaged, or ends too early.
        """
        batches = self._parquet_batches(columns) if self._kind == PARQUET else self._ipc_batches(columns)
        with self._damage():
            for batch in batches:
                for start in range(0, batch.num_rows, ROWS):
                    rows = batch.slice(start, ROWS)
                    found = [self._stretch(rows.column(name)) for name in columns]
                    yield found
                    self.rows += rows.num_rows

    def _parquet_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        read = 0
        for batch in self._reader.iter_batches(ROWS, columns=list(dict.fromkeys(columns)), use_threads=False):
            read += batch.num_rows
            yield batch
        if read != self._reader.metadata.num_rows:
            raise self._arrow.ArrowInvalid(f"it says {self._reader.metadata.num_rows} rows, and has {read}")

    def _ipc(self, fields: list[int] | None) -> tuple[Any, _Tail | None]:
        ipc = self._arrow.ipc
        options = ipc.IpcReadOptions(included_fields=fields, use_threads=False)
        if self._kind == ARROW:
            return ipc.open_file(self._source, options=options), None
        tail = _Tail(self._source)
        return ipc.open_stream(tail, options=options), tail

    def _ipc_batches(self, columns: Sequence[str]) -> Iterator[Any]:
        if self._kind == ARROW:
            reader, _ = self._ipc(sorted({self.columns.index(name) for name in columns}))
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)
            return
        # A stream can be opened only once, so all its columns are read.
        yield from self._reader
        assert self._tail is not None
        if self._tail.last != _END:
            raise self._arrow.ArrowInvalid("it ends without the mark of its end, so some of it may be missing")

    def _stretch(self, array: Any) -> Stretch:
        """Return an array as a stretch of texts."""
        types = self._arrow.types
        if types.is_dictionary(array.type) and len(array.dictionary) > len(array):
            array = array.dictionary_decode()
        if _is_view(types, array.type):
            array = array.cast(self._arrow.large_string())
        if not types.is_dictionary(array.type):
            array = array.dictionary_encode()
        values = array.dictionary
        if not types.is_null(values.type):
            values = values.cast(self._arrow.large_string())
        codes = array.indices.cast(self._arrow.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        return Stretch([text if text is not None else "" for text in values.to_pylist()], codes)

    @contextmanager
    def _damage(self) -> Iterator[None]:
        """Convert errors of pyarrow to `TableError` with the name of the file."""
        try:
            yield
        except (self._arrow.ArrowException, UnicodeDecodeError, EOFError, KeyError) as error:
            raise self._damaged(error) from None
        except OSError as error:
            if isinstance(error, FileNotFoundError | PermissionError):
                raise
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> TableError:
        why = f"text that is not UTF-8 ({error.reason})" if isinstance(error, UnicodeDecodeError) else error
        said = " ".join(str(getattr(error, "strerror", None) or why).split())
        after = f" after row {self.rows}" if getattr(self, "rows", 0) else ""
        return TableError(self._shown, f"this {self._kind} file cannot be read{after}: {said}")


def _has_text(types: Any, kind: Any, numbers: bool) -> bool:
    """True if a cell of that type has a unique text."""
    if types.is_dictionary(kind):
        return _has_text(types, kind.value_type, numbers)
    plain = (types.is_string, types.is_large_string, types.is_integer, types.is_null)
    fractions = (types.is_float32, types.is_float64, types.is_decimal) if numbers else ()
    return _is_view(types, kind) or any(is_kind(kind) for is_kind in (*plain, *fractions))


def _is_view(types: Any, kind: Any) -> bool:
    """True for the string view type, which older versions of pyarrow lack."""
    return hasattr(types, "is_string_view") and bool(types.is_string_view(kind))


class _Tail:
    """Wrapper of a file that remembers the last bytes read from it."""

    closed = False

    def __init__(self, file: Any) -> None:
        self._file = file
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(size)
        self.last = (self.last + data[-len(_END) :])[-len(_END) :]
        return data

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        """Do nothing: the code that opened the file closes it."""


# -- writing -------------------------------------------------------------------------------------------------

_TOGETHER = 10_000


@contextmanager
def row_file(path: str, columns: Mapping[str, type]) -> Iterator[Note]:
    """Open a file for rows; yield a function that writes one row.

    Parameters:
        path: a path or a URL; its ending decides the kind of the file.
        columns: the type of each column by its name: str, int, float or bool. None in a row is a null.

    Raises:
        OSError: the file cannot be written.
        NotSupported: a package for that kind of file or URL is not installed, or files at that URL are not written
            atomically.
    """
    kind = named_kind(path)
    if kind not in _FORMS:
        raise NotSupported(f"{shown_place(path)} is named like {kind}, which cannot be written")
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
    """Return one row of a CSV file, in UTF-8."""
    text = io.StringIO()
    csv.writer(text).writerow(row)
    return text.getvalue().encode()


def _arrow_form(kind: str) -> Callable[[Mapping[str, type]], Any]:
    def form(columns: Mapping[str, type]) -> Any:

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
