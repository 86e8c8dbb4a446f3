"""Report partitions: report files in Parquet format, which many tasks write in parallel (extra `arrow`).

A partition has a column `report` of fixed-size binary: the bytes of a report as in a report file. A text column for
each public attribute follows, in the order of the header. The file's metadata has two more entries. `ldp-budget
partition` is the header of a report file with a version and the name of the partition. `ldp-budget end` is the number
of reports with a SHA-256. The hash covers the header, the bytes of the reports, and the SHA-256 of their attributes,
row by row, with a zero byte after each, but not their Parquet encoding. So rewriting the file with both entries
unchanged gives the same partition.

The name of a partition is its **task**, or 128 random bits without one. The hash covers the name. So two partitions
with few reports differ even if their report bytes agree, and a copy is recognized at any place. The name decides: of
two partitions of one task, or of a partition and its copy, only one is ever counted, even if their noise differs. The
error names the other one. This protects against accidents. It is not a signature: a user who may write to the folder
can forge reports.

Places are paths, or URLs that `fsspec` knows (`s3://…`, `memory://…`). Only URLs where a file appears complete or not
at all can be written. A truncated partition is refused everywhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any, Self

from ldp_budget._files import canonical_json
from ldp_budget._validation import check_instance, check_path, check_switch, check_text
from ldp_budget.errors import InvalidParameter, NotSupported, ReportFileError
from ldp_budget.registry.collections import Collection
from ldp_budget.reports.partial_aggregate import Source
from ldp_budget.reports.places import EXTRA, check_writable, inside, opened, shown_place, written
from ldp_budget.reports.public_attributes import PublicAttributes, check_columns
from ldp_budget.reports.report_file import (
    PARTITION_START,
    PARTITION_SUFFIX,
    Layout,
    check_attributes,
    header_in,
    read_charged,
    read_layout,
    read_public,
    without_attributes,
    writing,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    from numpy.typing import NDArray

_HEADER, _END = b"ldp-budget partition", b"ldp-budget end"
_VERSION = 1
_COLUMN = "report"
_GROUP_BYTES, _GROUP_ROWS = 8 << 20, 1 << 20
"""Largest part of a partition that is held in memory while it is written or read."""
_READ_BYTES = 1 << 20


class PartitionWriter:
    """Writer of reports to a partition, which gets its file name, complete, on a clean exit.

    Use it as a context manager; on an exception no file is left behind. An existing partition is replaced only at the
    end, so a repeated task replaces its earlier partition.

    Parameters:
        path: the path of the file, which should end in `.parquet`; or a URL that `fsspec` knows.
        collection: the collection of the reports.
        task: the permanent name of the partition, such as `2026-11-21/7`. Of all partitions of a task only one is
            ever counted, at any place. None for a random name.
        charged: True if the users were charged for the reports, False if not; the file records it. None omits it.
        public: the columns of public attributes that the file stores with each report; none may be named `report`.

    Raises:
        ReportFileError: the file cannot be written, or another run is writing it.
        InvalidParameter: an argument has the wrong type.
        NotSupported: pyarrow is missing, or fsspec for a URL; or files at that URL are not written atomically.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        collection: Collection,
        *,
        task: str | None = None,
        charged: bool | None = None,
        public: Sequence[str] = (),
    ) -> None:
        check_path("path", path)
        self._place = os.fspath(path)
        self._collection = check_instance("collection", collection, Collection, "a `Collection`")
        self._name = f"random {secrets.token_hex(16)}" if task is None else f"task {check_text('task', task)}"
        self._charged = charged if charged is None else check_switch("charged", charged)
        self._public = check_columns(public)
        if _COLUMN in self._public:
            raise InvalidParameter(
                "public", f"columns other than {_COLUMN!r}, which holds the reports", repr(_COLUMN)
            )
        self._layout: Layout | None = None
        self._open = ExitStack()
        self._file: Any = None
        self._parquet: Any = None
        self._waiting: list[NDArray[Any]] = []
        self._attributes: list[PublicAttributes] = []
        self._waits = self._total = 0
        self._sha256, self._sha256_of_attributes = hashlib.sha256(), hashlib.sha256()
        _pyarrow()
        with writing(self._place):
            check_writable(self._place)

    def __enter__(self) -> Self:
        with writing(self._place):
            self._file = self._open.enter_context(written(self._place))
        return self

    def call(self, name: str) -> None:
        """Set the random name of the partition, before anything is written, so that a resumed run has the same name.

        Parameters:
            name: 32 hexadecimal digits, drawn at random for the run.

        Raises:
            InvalidParameter: `name` is not a text.
        """
        self._name = f"random {check_text('name', name)}"

    def write(self, reports: NDArray[Any], public: PublicAttributes | None = None) -> None:
        """Append reports.

        Parameters:
            reports: an array whose first axis is the users; all reports have the same shape.
            public: the public attributes of these reports, if the file stores some.

        Raises:
            InvalidParameter: `reports` is not such an array, or `public` has other columns or another number of rows.
            ReportFileError: the file cannot be written.
        """
        layout = Layout.of(reports)
        if self._layout is None:
            self._begin(layout)
        assert self._layout is not None
        check_attributes(self._public, len(reports), public)
        data = self._layout.data(reports)
        step = self._group_rows
        for start in range(0, len(data), step):
            some = slice(start, start + step)
            self._add(data[some], None if public is None else public.take(some))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with writing(self._place):
            if error is None:
                try:
                    self._end()
                except BaseException as failed:
                    self._give_up(failed)
                    raise
                self._open.__exit__(None, None, None)
            else:
                self._give_up(error)

    def _give_up(self, error: BaseException) -> None:
        if self._parquet is not None:
            with suppress(Exception):  # the file is deleted anyway
                self._parquet.close()
        self._open.__exit__(type(error), error, error.__traceback__)

    @property
    def _group_rows(self) -> int:
        assert self._layout is not None
        return max(1, min(_GROUP_ROWS, _GROUP_BYTES // self._layout.row_bytes))

    def _begin(self, layout: Layout) -> None:
        pyarrow, parquet = _pyarrow()
        self._layout = layout
        said = layout.header(self._collection, self._charged)
        said |= {"public": list(self._public)} if self._public else {}
        header = canonical_json({**said, "version": _VERSION, "name": self._name}).encode()
        self._sha256.update(header + b"\n")
        types = {_COLUMN: pyarrow.binary(layout.row_bytes)} | dict.fromkeys(self._public, pyarrow.string())
        fields = [pyarrow.field(name, of, nullable=False) for name, of in types.items()]
        self._schema = pyarrow.schema(fields, metadata={_HEADER: header})
        with writing(self._place):
            self._parquet = parquet.ParquetWriter(
                self._file,
                self._schema,
                compression="zstd",
                use_dictionary=list(self._public) or False,
                write_statistics=False,
            )

    def _add(self, data: NDArray[Any], public: PublicAttributes | None) -> None:
        """Buffer rows until they fill a row group."""
        if self._waits + len(data) > self._group_rows:
            self._write_group()
        self._waiting.append(data.copy())  # the caller may reuse the array
        if public is not None:
            self._attributes.append(public)
        self._waits += len(data)

    def _write_group(self) -> None:
        import numpy as np

        if not self._waits:
            return
        pyarrow, _ = _pyarrow()
        data: Any = np.concatenate(self._waiting)
        self._sha256.update(data)
        column = pyarrow.FixedSizeBinaryArray.from_buffers(
            self._schema.field(0).type, len(data), [None, pyarrow.py_buffer(data)]
        )
        public = PublicAttributes.joined(self._attributes)
        texts = []
        if public is not None:
            self._sha256_of_attributes.update(_hashed(public))
            codes = pyarrow.array(public.codes)
            texts = [
                pyarrow.array(each, pyarrow.string()).take(codes) for each in zip(*public.combinations, strict=True)
            ]
        with writing(self._place):
            batch = pyarrow.record_batch([column, *texts], schema=self._schema)
            self._parquet.write_batch(batch, row_group_size=self._group_rows)
        self._total += len(data)
        self._waiting, self._attributes, self._waits = [], [], 0

    def _end(self) -> None:
        if self._layout is None:
            raise ReportFileError(
                shown_place(self._place),
                "no reports were given. Nothing was written.",
                hint="Write an empty array instead.",
            )
        self._write_group()
        attributes = self._sha256_of_attributes.digest() if self._public else b""
        end = {"reports": self._total, "sha256": _finished(self._sha256, attributes, self._total)}
        self._parquet.add_key_value_metadata({_END: canonical_json(end).encode()})
        self._parquet.close()


def charged_at(place: str | os.PathLike[str]) -> bool | None:
    """Return True if the users of the reports in a file, of any collection, were charged for them, False if not.

    Parameters:
        place: a report file or a partition; a path, or a URL that `fsspec` knows.

    Returns:
        True or False as the writer recorded it. None if the writer recorded nothing, or the file is neither of the
        two.

    Raises:
        ReportFileError: the file cannot be read.
        InvalidParameter: `place` is not a path.
        NotSupported: pyarrow is missing, or fsspec for a URL.
    """
    check_path("place", place)
    name = os.fspath(place)
    with _reading(name), opened(name) as file:
        start = file.read(len(PARTITION_START))
        file.seek(0)
        try:
            if start == PARTITION_START:
                _, parquet = _pyarrow()
                with parquet.ParquetFile(file) as read:
                    line: bytes = (read.metadata.metadata or {}).get(_HEADER, b"{}")
            else:
                line = header_in(file)
            return read_charged(json.loads(line))
        except (ValueError, AttributeError):
            return None


def partitions_in(place: str | os.PathLike[str]) -> list[str]:
    """Return the partitions at a place, sorted: the `*.parquet` files directly in a folder, or the one file.

    Names that begin with `_` or `.` are left out, as other programs use them for files next to their data.

    Parameters:
        place: a path, or a URL that `fsspec` knows.

    Raises:
        ReportFileError: there is no partition, or the place cannot be read.
        InvalidParameter: `place` is not a path.
        NotSupported: fsspec is missing.
    """
    check_path("place", place)
    name = os.fspath(place)
    with _reading(name):
        there = inside(name)
    if there is None:
        return [name]
    found = sorted(each for each in there if each.endswith(PARTITION_SUFFIX) and _file(each)[0] not in "._")
    if not found:
        raise ReportFileError(shown_place(name), f"this folder has no *{PARTITION_SUFFIX} file")
    return found


class Partition:
    """Open partition: its `source`, its stated number of `reports`, their `layout`, and the reports, to be read once.

    `charged` is True if the users were charged for the reports, False if not, None if the writer recorded nothing.
    `public` are the columns of public attributes. `open_partition` creates it.
    """

    def __init__(self, place: str, parquet: Any, collection: Collection) -> None:
        self.place, self._parquet = place, parquet
        said = parquet.metadata.metadata or {}
        header, end = said.get(_HEADER), said.get(_END)
        if header is None or end is None:
            raise ReportFileError(place, "this Parquet file is not a report partition")
        self._sha256 = hashlib.sha256(header + b"\n")
        try:
            read, ended = json.loads(header), json.loads(end)
            version, name = int(read["version"]), str(read["name"])
            self.reports, stated = int(ended["reports"]), str(ended["sha256"])
        except (ValueError, KeyError, TypeError, RecursionError):
            raise ReportFileError(place, "its header is damaged") from None
        if version != _VERSION:
            raise ReportFileError(place, f"its version must be {_VERSION}: got {version}")
        self.layout = read_layout(place, read, collection)
        self.charged = read_charged(read)
        self.public = read_public(place, read)
        self.source = Source(name, stated, _file(place))
        expected = [(_COLUMN, f"fixed_size_binary[{self.layout.row_bytes}]")]
        expected += [(name, "string") for name in self.public]
        found = [(field.name, str(field.type).replace("large_", "")) for field in parquet.schema_arrow]
        if found != expected:
            raise ReportFileError(place, "its columns are not those of a report partition")

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Return an iterator over the reports in order, in blocks of some megabytes, which are views of Arrow's memory.

        Raises:
            ReportFileError: the reports or their number differ from what was written. It is raised at the latest when
                the next block after the last one is requested.
        """
        for reports, _ in self.attributed_blocks():
            yield reports

    def attributed_blocks(self) -> Iterator[tuple[NDArray[Any], PublicAttributes]]:
        """Return an iterator over the blocks with the public attributes of their reports. Raises as `blocks`."""
        attributes = hashlib.sha256()
        rows = max(1, min(_GROUP_ROWS, _GROUP_BYTES // 2 // self.layout.row_bytes))
        total = 0
        with _reading(self.place):
            for batch in self._parquet.iter_batches(batch_size=rows, use_threads=False):
                column = batch.column(0)
                if any(each.null_count for each in batch.columns):
                    raise ReportFileError(self.place, f"it is damaged: report {total} or a later one is missing")
                size, count = self.layout.row_bytes, len(column)
                buffer = column.buffers()[1]
                self._sha256.update(memoryview(buffer)[column.offset * size : (column.offset + count) * size])
                total += count
                if count:
                    public = self._attributes_in(batch) if self.public else without_attributes(count)
                    attributes.update(_hashed(public))
                    yield self.layout.rows(buffer, column.offset * size, count), public
        digest = attributes.digest() if self.public else b""
        if total != self.reports or _finished(self._sha256, digest, total) != self.source.sha256:
            raise ReportFileError(
                self.place,
                f"it was damaged or changed: its {total} reports are not the {self.reports} that were written, because "
                "their SHA-256 differs",
            )

    def _attributes_in(self, batch: Any) -> PublicAttributes:
        """Return the public attributes of the reports in a batch."""
        columns = [batch.column(place + 1).to_pylist() for place in range(len(self.public))]
        try:
            return PublicAttributes.of(self.public, zip(*columns, strict=True))
        except InvalidParameter:
            raise ReportFileError(self.place, "its public attributes are damaged") from None


@contextmanager
def open_partition(place: str | os.PathLike[str], collection: Collection) -> Iterator[Partition]:
    """Open one partition; this reads only its metadata.

    Parameters:
        place: a path, or a URL that `fsspec` knows.
        collection: the collection of the reports.

    Returns:
        The partition, while it is open.

    Raises:
        ReportFileError: the file is foreign, truncated, damaged, or made for another collection.
        InvalidParameter: an argument has the wrong type.
        NotSupported: pyarrow is missing, or fsspec for a URL.
    """
    check_instance("collection", collection, Collection, "a `Collection`")
    check_path("place", place)
    name = os.fspath(place)
    _, parquet = _pyarrow()
    with ExitStack() as stack:
        with _reading(name):
            file = stack.enter_context(opened(name))
            # Read on demand: a partition of any size takes the same memory.
            read = parquet.ParquetFile(file, buffer_size=_READ_BYTES, pre_buffer=False)
            partition = Partition(shown_place(name), stack.enter_context(read), collection)
        yield partition


def _hashed(public: PublicAttributes) -> bytes:
    """Return what the hash of attributes covers: the values of each report, with a zero byte after each."""
    texts = ["".join(f"{value}\0" for value in each).encode() for each in public.combinations]
    return b"".join([texts[code] for code in public.codes.tolist()]) if public.names else b""


def _finished(sha256: Any, attributes: bytes, total: int) -> str:
    """Return the hash with the hash of the attributes and the number of reports appended to its input."""
    whole = sha256.copy()
    whole.update(attributes)
    whole.update(total.to_bytes(8, "little"))
    return str(whole.hexdigest())


def _file(place: str) -> str:
    """Return the name of a file without its folder."""
    return place.replace("\\", "/").rstrip("/").rpartition("/")[2] or place


@contextmanager
def _reading(place: str) -> Iterator[None]:
    """Convert errors while a file is read to `ReportFileError`."""
    try:
        yield
    except Exception as error:
        place = shown_place(place)
        if isinstance(error, OSError) and error.strerror:
            raise ReportFileError(place, f"it cannot be read: {error.strerror}") from None
        if isinstance(error, OSError) or type(error).__module__.startswith("pyarrow"):
            why = (str(error).splitlines() or [""])[0]
            raise ReportFileError(place, f"it is truncated, damaged or not a Parquet file: {why}") from None
        raise


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise NotSupported("Parquet needs the package pyarrow", hint=f"Install it: {EXTRA}") from None
    return pyarrow, parquet
