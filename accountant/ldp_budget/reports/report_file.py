"""Report files: their format, header, writer and reader.

    ldp-budget reports 1\n                       magic and version
    {"collection": ..., "fingerprint": ..., "dtype": ..., "shape": [...]}\n       header, one line of JSON
    block*                                       uint32 rows > 0, the rows (C order, little-endian), uint32 CRC-32
    uint32 0, uint64 total rows, uint32 CRC-32   the end, without which the file counts as truncated

Every number is little-endian. `shape` is the shape of one report, `dtype` numpy's name of its elements. A file from a
sandbox also has `"sandbox": true` in its header. `"charged"` is true if the users were charged for the reports, false
if not; without it the writer recorded nothing. `"public"` lists the columns of public attributes. Each block then
has, after its rows, uint32 bytes of a JSON list of combinations of values, the list, and a uint32 for each row: the
number of its combination. Each CRC-32 covers the header line followed by its block, so a damaged
header is detected too. A file appears complete under its name, or not at all.
"""

from __future__ import annotations

import errno
import json
import math
import os
import struct
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

from .._later import registered
from .._validation import check_instance, check_path, check_switch, shown_with_type
from ..errors import InvalidParameter, ReportFileError
from ..registry.collections import Collection
from .places import check_writable, opened, shown_place, written
from .public_attributes import PublicAttributes, check_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import TracebackType

    import numpy as np
    from numpy.typing import NDArray

    from ..registry.collections import Collection


# -- errors --------------------------------------------------------------------------------------------------


@contextmanager
def reading(place: str) -> Iterator[None]:
    """Convert an `OSError` while a place is read to `ReportFileError`."""
    try:
        yield
    except OSError as error:
        raise ReportFileError(
            shown_place(place), f"it cannot be read: {error.strerror or error}", hint=_unread(error)
        ) from None


def _unread(error: OSError) -> str:
    """Return the hint for a file that cannot be read."""
    return "Check the name and the folder of the file." if error.errno == errno.ENOENT else ""


@contextmanager
def writing(place: str) -> Iterator[None]:
    """Convert an `OSError` while a place is written to `ReportFileError`."""
    try:
        yield
    except OSError as error:
        raise ReportFileError(shown_place(place), f"it cannot be written: {error.strerror or error}") from None


# -- the header ----------------------------------------------------------------------------------------------


class Layout(NamedTuple):
    """Layout of one report: numpy's name of its elements, little-endian, and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, reports: Any) -> Layout:
        """Return the layout of an array whose first axis is the users. Raises `InvalidParameter` for others."""
        if not (getattr(reports, "ndim", 0) and hasattr(reports, "dtype")):
            raise InvalidParameter("reports", "an array whose first axis is the users", shown_with_type(reports))
        return cls(reports.dtype.newbyteorder("<").str, tuple(reports.shape[1:]))

    @property
    def row_bytes(self) -> int:
        """The size of one report in bytes."""
        import numpy as np

        return int(np.dtype(self.dtype).itemsize * math.prod(self.shape))

    def data(self, reports: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the bytes of reports, row by row, shape (n, row_bytes); a view if they already have this layout."""
        import numpy as np

        rows = np.ascontiguousarray(reports, dtype=self.dtype)
        return rows.reshape(-1).view(np.uint8).reshape(len(rows), self.row_bytes)

    def rows(self, data: Any, offset: int = 0, count: int = -1) -> NDArray[Any]:
        """Return `count` reports, or all, from a buffer, starting at byte `offset`, without copying."""
        import numpy as np

        items = count if count < 0 else count * math.prod(self.shape)
        return np.frombuffer(data, self.dtype, items, offset).reshape(-1, *self.shape)

    def header(self, collection: Collection, charged: bool | None = None) -> dict[str, Any]:
        """Return the header for reports of a collection; `charged` is as `read_charged` returns it."""
        return {
            "collection": collection.name,
            "fingerprint": collection.fingerprint,
            "dtype": self.dtype,
            "shape": list(self.shape),
            **({"sandbox": True} if collection.sandbox else {}),
            **({} if charged is None else {"charged": charged}),
        }


def read_layout(path: str, header: Any, collection: Collection) -> Layout:
    """Return the layout in a header. Raises `ReportFileError` unless the reports are of the collection."""
    import numpy as np

    try:
        name, fingerprint = header["collection"], str(header["fingerprint"])
        dtype, shape = np.dtype(str(header["dtype"])), tuple(int(size) for size in header["shape"])
    except (ValueError, KeyError, TypeError):
        raise ReportFileError(path, "its header is damaged") from None
    check_whose(path, name, fingerprint, bool(header.get("sandbox")), collection)
    if dtype.kind not in "uif" or min(shape, default=1) < 1:
        raise ReportFileError(path, f"its header is damaged: dtype {dtype}, shape {shape}")
    return Layout(dtype.newbyteorder("<").str, shape)


def read_charged(header: Any) -> bool | None:
    """Return True if the header says that the users were charged, False if not; None if it says neither."""
    charged = header.get("charged")
    return charged if isinstance(charged, bool) else None


def read_public(path: str, header: Any) -> tuple[str, ...]:
    """Return the columns of public attributes that a header lists; none by default. Raises `ReportFileError`."""
    listed = header.get("public", [])
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise ReportFileError(path, "its header is damaged")
    return tuple(listed)


def check_attributes(columns: tuple[str, ...], reports: int, public: PublicAttributes | None) -> None:
    """Raise `InvalidParameter` unless `public` has the columns of a file, and a row for each of its new reports."""
    names, rows = ((), reports) if public is None else (public.names, len(public))
    if reports and (names, rows) != (columns, reports):
        expected = f"the columns {', '.join(columns) or '(none)'} of {reports} reports"
        raise InvalidParameter("public", expected, f"{', '.join(names) or '(none)'} of {rows} reports")


def without_attributes(rows: int) -> PublicAttributes:
    """Return the attributes of reports without any: one combination of no values."""
    import numpy as np

    return PublicAttributes((), ((),), np.zeros(rows, np.int64))


def check_mixed(place: str, charged: int, uncharged: int) -> None:
    """Raise `ReportFileError` if some reports were charged to their users and others were not."""
    if charged and uncharged:
        raise ReportFileError(
            place,
            f"{uncharged} of {charged + uncharged} reports were not charged to their users, and the others were",
            hint="Estimate the two kinds separately, or add --mixed.",
        )


def check_whose(path: str, name: str, fingerprint: str, sandbox: bool, collection: Collection) -> None:
    """Raise `ReportFileError` unless the reports are of the collection, and from a sandbox only if it is one."""
    if sandbox and not collection.sandbox:
        raise ReportFileError(path, "it was made in a sandbox, so its reports can only be used there")
    if fingerprint != collection.fingerprint:
        raise ReportFileError(
            path,
            f"its reports were made for collection {name} with fingerprint {fingerprint[:12]}…, and {collection.name} "
            f"has the fingerprint {collection.fingerprint[:12]}…",
            hint="Use the collection for which the reports were made.",
        )


# -- partitions ----------------------------------------------------------------------------------------------

PARTITION_SUFFIX, PARTITION_START = ".parquet", b"PAR1"
"""Ending and first bytes of a partition: a file of reports in a table format, which another package knows."""


def partition_format() -> Any:
    """Return the module that reads and writes partitions: the entry point `parquet` of the group of tables."""
    return registered("ldp_budget.tables", "parquet")


# -- the file ------------------------------------------------------------------------------------------------

MAGIC = b"ldp-budget reports 1\n"
_HEADER_BYTES = 1 << 16
_READ_BYTES = 1 << 20
_ROWS = struct.Struct("<I")
_TOTAL = struct.Struct("<Q")


class ReportWriter:
    """Writer of reports to a temporary file next to `path`, which gets its name on a clean exit, whole and durable.

    Use it as a context manager; on an exception no file is left behind. An existing file is replaced only at the end.
    For a URL that fsspec knows, the file is uploaded at the end. Files at that URL must appear complete or not at
    all.

    Parameters:
        path: the path or URL of the file.
        collection: the collection of the reports.
        charged: True if the users were charged for the reports, False if not; the file records it. None omits it.
        public: the columns of public attributes that the file stores with each report.

    Raises:
        ReportFileError: the file cannot be written, or another run is writing it.
        NotSupported: files at that URL are not written atomically, or the package for it is not installed.
        InvalidParameter: an argument has the wrong type.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        collection: Collection,
        *,
        charged: bool | None = None,
        public: Sequence[str] = (),
    ) -> None:
        check_path("path", path)
        self._place = os.fspath(path)
        self._collection = check_instance("collection", collection, Collection, "a `Collection`")
        self._charged = charged if charged is None else check_switch("charged", charged)
        self._public = check_columns(public)
        self._whole = self._written()
        self._file: IO[bytes] | None = None
        self._layout: Layout | None = None
        self._total = 0
        self._header_crc = 0
        with writing(self._place):
            check_writable(self._place)

    def __enter__(self) -> Self:
        with writing(self._place):
            self._whole.__enter__()
        return self

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
            self._layout = layout
            self._begin()
        check_attributes(self._public, len(reports), public)
        if len(reports):
            attributes = b"" if public is None else public.to_bytes()
            data = reports.astype(self._layout.dtype, copy=False).tobytes()
            self._block(_ROWS.pack(len(reports)), data + attributes)
        self._total += len(reports)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with writing(self._place):
            self._whole.__exit__(kind, error, trace)

    @contextmanager
    def _written(self) -> Iterator[None]:
        """Open the file with its first bytes, and write its end afterwards; header and blocks come in between."""
        with written(self._place) as self._file:
            self._file.write(MAGIC)
            yield
            self._block(_ROWS.pack(0), _TOTAL.pack(self._total))

    def _begin(self) -> None:
        assert self._file is not None
        assert self._layout is not None
        public = {"public": list(self._public)} if self._public else {}
        said = self._layout.header(self._collection, self._charged) | public
        header = json.dumps(said).encode() + b"\n"
        self._header_crc = zlib.crc32(header)
        with writing(self._place):
            self._file.write(header)

    def _block(self, count: bytes, data: bytes) -> None:
        assert self._file is not None
        with writing(self._place):
            self._file.write(count)
            self._file.write(data)
            self._file.write(_ROWS.pack(zlib.crc32(data, zlib.crc32(count, self._header_crc))))


def writer_to(
    path: str | os.PathLike[str],
    collection: Collection,
    *,
    charged: bool | None = None,
    public: Sequence[str] = (),
    task: str | None = None,
) -> ReportWriter | Any:
    """Return the writer for a file name: of a partition if it ends in `.parquet`, else of a report file.

    Parameters:
        path: the path of the file, or a URL that `fsspec` knows.
        collection: the collection of the reports.
        charged: True if the users were charged for the reports, False if not; the file records it. None omits it.
        public: the columns of public attributes that the file stores with each report.
        task: the permanent name of a partition, as in its writer; None for a random name.

    Raises:
        ReportFileError: the file cannot be written.
        InvalidParameter: an argument has the wrong type.
        NotSupported: a required package is missing, or files at that URL are not written atomically.
    """
    if check_path("path", path).suffix == PARTITION_SUFFIX:
        return partition_format().PartitionWriter(path, collection, charged=charged, public=public, task=task)
    return ReportWriter(path, collection, charged=charged, public=public)


def read_reports(path: str | os.PathLike[str], collection: Collection) -> Iterator[NDArray[Any]]:
    """Return an iterator over the blocks of reports in a file, in order; the first request opens the file.

    Parameters:
        path: the path or URL of the file.
        collection: the collection of the reports.

    Raises:
        NotSupported: `path` is a URL, and fsspec is not installed.
        ReportFileError: the file is foreign, truncated, damaged, or made for another collection. It is raised at the
            latest when the next block after the last one is requested.
        InvalidParameter: an argument has the wrong type.
    """
    with open_reports(path, collection) as reports:
        yield from reports.blocks()


@contextmanager
def open_reports(path: str | os.PathLike[str], collection: Collection) -> Iterator[Reports]:
    """Open a report file; this reads only its header. Raises as `read_reports`."""
    check_path("path", path)
    place = os.fspath(path)
    check_instance("collection", collection, Collection, "a `Collection`")
    with reading(place), opened(place) as file:
        yield Reports(shown_place(place), file, collection)


def header_in(file: IO[bytes]) -> bytes:
    """Return the header line of the report file that begins at the current position; empty if none does."""
    return file.readline(_HEADER_BYTES) if file.read(len(MAGIC)) == MAGIC else b""


_SIDE_FILES = {
    ".skipped.csv": "It lists the rows that randomize skipped.",
    ".partial": "It belongs to an interrupted run. Run randomize again to finish it.",
    ".new": "It belongs to an interrupted run. Run randomize again to finish it.",
}


def _meant(path: str) -> str:
    """Return what a file is that randomize writes next to its reports, and the file to name; or empty."""
    for suffix, what in _SIDE_FILES.items():
        if path.endswith(suffix):
            return f"{what} The reports are in {path.removesuffix(suffix)}."
    if path.lower().endswith((".csv", ".tsv", ".txt")):
        return (
            "Make reports of a table of answers: ldp-budget randomize NAME FILE --column COLUMN --out FILE.reports."
        )
    return ""


class Reports:
    """Open report file: `charged`, as `read_charged` returns it, `public` columns, and the reports, to be read once.

    `open_reports` creates it.
    """

    def __init__(self, path: str, file: IO[bytes], collection: Collection) -> None:
        self._path = path
        self._file = file
        if file.read(len(MAGIC)) != MAGIC:
            raise ReportFileError(
                path,
                f"this is not a report file: it does not start with {MAGIC.decode().strip()!r}",
                hint=_meant(path),
            )
        self._layout = self._read_header(collection)
        self._row_bytes = self._layout.row_bytes

    def _read_header(self, collection: Collection) -> Layout:
        line = self._file.readline(_HEADER_BYTES)
        self._header_crc = zlib.crc32(line)
        try:
            header = json.loads(line)
        except (ValueError, RecursionError):
            raise ReportFileError(self._path, "its header is damaged") from None
        layout = read_layout(self._path, header, collection)
        self.charged = read_charged(header)
        self.public = read_public(self._path, header)
        return layout

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Yield the reports in order, block by block. Raises `ReportFileError`."""
        for reports, _ in self.attributed_blocks():
            yield reports

    def attributed_blocks(self) -> Iterator[tuple[NDArray[Any], PublicAttributes]]:
        """Yield the reports in order, block by block, with their public attributes. Raises `ReportFileError`."""
        total = 0
        while True:
            count = self._exactly(_ROWS.size)
            rows = _ROWS.unpack(count)[0]
            data = self._exactly(rows * self._row_bytes if rows else _TOTAL.size)
            listed, codes = self._attributes(rows) if rows and self.public else (b"", b"")
            extra = _ROWS.pack(len(listed)) + listed + codes if codes else b""
            crc = zlib.crc32(extra, zlib.crc32(data, zlib.crc32(count, self._header_crc)))
            if _ROWS.unpack(self._exactly(_ROWS.size))[0] != crc:
                raise ReportFileError(self._path, f"it is damaged after {total} reports")
            if not rows:
                break
            total += rows
            yield self._layout.rows(data), self._public_attributes(rows, listed, codes)
        if _TOTAL.unpack(data)[0] != total or self._file.read(1):
            raise ReportFileError(self._path, "it does not end after the number of reports that it states")

    def _attributes(self, rows: int) -> tuple[bytes, bytes]:
        """Read the bytes of the combinations of a block, and of the numbers of its reports."""
        size = _ROWS.unpack(self._exactly(_ROWS.size))[0]
        return self._exactly(size), self._exactly(rows * _ROWS.size)

    def _public_attributes(self, rows: int, listed: bytes, codes: bytes) -> PublicAttributes:
        if not self.public:
            return without_attributes(rows)
        try:
            return PublicAttributes.from_bytes(self.public, listed, codes)
        except (ValueError, TypeError, RecursionError):
            raise ReportFileError(self._path, "its public attributes are damaged") from None

    def _exactly(self, size: int) -> bytes:
        # Read in pieces: a damaged count may request more than the memory.
        pieces = []
        while size > 0:
            piece = self._file.read(min(size, _READ_BYTES))
            if not piece:
                raise ReportFileError(self._path, "it is truncated", hint="Copy it again from where it was written.")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)
