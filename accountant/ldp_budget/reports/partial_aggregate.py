"""Partial aggregates of reports, which know their partitions, so that no partition is counted twice.

    part = aggregate("reports/7.parquet", collection)    # on a worker
    total = functools.reduce(Partial.merge, parts)       # in any order, in any tree
    total.estimate()

A partial is an immutable value, so an engine may store it, send it, or repeat a step. Engines pickle it, with its
collection. To store it, or read it elsewhere, it has a file format:

    ldp-budget partial 1\n                      magic and version
    {"collection": ..., "partitions": ...}\n    header, one line of canonical JSON
    array*                                       the arrays that the header names, in its order, little-endian
    SHA-256                                      of all bytes before it, 32 bytes
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .._files import canonical_json, replacing
from .._validation import check_instance, check_path, check_whole, shown
from ..errors import InvalidParameter, NotSupported, ReportFileError
from ..registry.collections import Collection
from ..sdk.domain import Categories
from .places import inside, opened, shown_place
from .report_file import (
    PARTITION_START,
    PARTITION_SUFFIX,
    Layout,
    Reports,
    check_mixed,
    check_whose,
    open_reports,
    partition_format,
    read_layout,
    reading,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ..registry.collections import Collection
    from ..sdk.estimates import Aggregate, Estimate


def lists_answers(collection: Collection) -> bool:
    """True if the collection declares its answers, so that all of them can be estimated."""
    domain = collection.mechanism.domain
    return isinstance(domain, Categories) and domain.listed


def estimate_total(
    collection: Collection, total: Any, names: Sequence[str] | None, most: int | None = None
) -> Estimate:
    """Return the estimate from an aggregate.

    `names` are the answers to estimate if the collection lists none, and `most` the number of answers to find if the
    mechanism finds them.
    """
    mechanism: Any = collection.mechanism
    if names is None and mechanism.finds_answers and most is not None:
        estimated: Estimate = mechanism.estimate(total, top=most)
    elif names is None or lists_answers(collection):
        estimated = mechanism.estimate(total)
    else:
        estimated = mechanism.estimate(total, candidates=collection.read_values(names))
    return estimated


MAGIC = b"ldp-budget partial 1\n"
_SHA256_BYTES = 32
_CHARGES = ("charged", "uncharged")


class Source(NamedTuple):
    """Identity of a partition: its name, its SHA-256, and the name of the file that it was read from."""

    name: str
    sha256: str
    file: str

    def __str__(self) -> str:
        kind, _, name = self.name.partition(" ")
        return f"{self.file} (task {name})" if kind == "task" else self.file


@dataclass(frozen=True, repr=False)
class Partial:
    """Aggregate of reports of a collection, with the partitions that they were read from; empty by default.

    Partials of one collection merge exactly and in any order. Two partials that share a partition do not merge.

    Parameters:
        collection: the collection of the reports.
        total: the mechanism's aggregate of the reports; None without reports.
        layout: the layout of a report; None without reports.
        partitions: the partitions by their names.
        charged: the number of reports that were charged to their users, as far as the writers recorded it.
        uncharged: the number of reports that were recorded as not charged.

    Raises:
        InvalidParameter: `collection` is not a collection; or only one of `total` and `layout` is given.
    """

    collection: Collection
    total: Aggregate | None = None
    layout: Layout | None = None
    partitions: Mapping[str, Source] = field(default_factory=dict)
    charged: int = 0
    uncharged: int = 0

    def __post_init__(self) -> None:
        check_instance("collection", self.collection, Collection, "a `Collection`")
        if (self.total is None) != (self.layout is None):
            raise InvalidParameter("layout", "given if and only if there is a total", shown(self.layout))

    def __repr__(self) -> str:
        return f"<Partial of {self.collection.name}: {self.reports} reports of {len(self.partitions)} partitions>"

    @property
    def reports(self) -> int:
        """The number of aggregated reports."""
        return 0 if self.total is None else self.total.reports

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the partial to a file, atomically, which `aggregate` and `ldp-budget estimate` read.

        Parameters:
            path: the path of the file.

        Raises:
            ReportFileError: the file cannot be written.
            InvalidParameter: `path` is not a path.
            NotSupported: as `to_bytes`.
        """
        data, path = self.to_bytes(), check_path("path", path)
        try:
            with replacing(path) as file:
                file.write(data)
        except OSError as error:
            raise ReportFileError(str(path), f"it cannot be written: {error.strerror}") from None

    def merge(self, other: Partial) -> Partial:
        """Return a partial of both together; the two stay unchanged.

        Parameters:
            other: a partial of other partitions of the same collection.

        Raises:
            InvalidParameter: `other` is not a partial, is of another collection, or shares a partition with this one.
        """
        check_instance("other", other, Partial, "a `Partial`")
        mine, theirs = self.collection, other.collection
        if (mine.fingerprint, mine.sandbox) != (theirs.fingerprint, theirs.sandbox):
            raise InvalidParameter("other", f"a partial of {_named(mine)}", f"a partial of {_named(theirs)}")
        twin = next((each for name, each in other.partitions.items() if name in self.partitions), None)
        if twin is not None:
            expected = "a partial of other partitions, because each partition is counted once"
            raise InvalidParameter("other", expected, again(twin, self.partitions[twin.name]))
        total: Any = copy.deepcopy(other.total if self.total is None else self.total)
        if self.total is not None and other.total is not None:
            total = total.merge(other.total)
        return Partial(
            mine,
            total,
            self.layout or other.layout,
            {**self.partitions, **other.partitions},
            self.charged + other.charged,
            self.uncharged + other.uncharged,
        )

    def estimate(self, names: Sequence[str] | None = None, *, mixed: bool = False) -> Estimate:
        """Return the estimate of the reports, taken as one round, in which each user reported once.

        Parameters:
            names: the answers to estimate, if the collection lists none.
            mixed: True to allow that some reports were charged to their users and others were not.

        Raises:
            ReportFileError: there are no reports; or they are mixed and `mixed` is False.
            OutsideDomain: a name is not an answer.
            NotSupported: the mechanism cannot estimate these names.
        """
        place = ", ".join(map(str, self.partitions.values()))
        if self.total is None:
            raise ReportFileError(place, "there are no reports to estimate from")
        if not mixed:
            check_mixed(place, self.charged, self.uncharged)
        return estimate_total(self.collection, self.total, names)

    def to_bytes(self) -> bytes:
        """Return the partial in its file format, the same bytes for the same content; `from_bytes` reads it.

        Raises:
            NotSupported: the mechanism's aggregate holds more than whole numbers, texts and arrays of whole numbers.
        """
        header: dict[str, Any] = {
            "collection": self.collection.name,
            "fingerprint": self.collection.fingerprint,
            "sandbox": self.collection.sandbox,
            "partitions": {name: source[1:] for name, source in self.partitions.items()},
        }
        arrays: list[bytes] = []
        if self.total is not None and self.layout is not None:
            state = {name: _written(name, value, arrays) for name, value in sorted(vars(self.total).items())}
            header |= {**self.layout.header(self.collection), "total": state}
            # A count of zero is left out, as in files written before these counts existed.
            header |= {name: number for name in _CHARGES if (number := getattr(self, name))}
        written = b"".join([MAGIC, canonical_json(header).encode(), b"\n", *arrays])
        return written + hashlib.sha256(written).digest()

    @staticmethod
    def from_bytes(data: bytes, collection: Collection, *, place: str = "partial") -> Partial:
        """Return the partial that `to_bytes` wrote.

        Parameters:
            data: the bytes from `to_bytes`.
            collection: the collection of its reports.
            place: the place of the data, for messages.

        Raises:
            ReportFileError: the data is foreign, truncated, damaged, or made for another collection.
            InvalidParameter: an argument has the wrong type.
        """
        check_instance("data", data, bytes, "bytes")
        check_instance("collection", collection, Collection, "a `Collection`")
        if not data.startswith(MAGIC):
            raise ReportFileError(place, f"this is not a partial: it does not start with {MAGIC.decode().strip()!r}")
        whole, digest = data[:-_SHA256_BYTES], data[-_SHA256_BYTES:]
        line, newline, rest = whole[len(MAGIC) :].partition(b"\n")
        if not newline or hashlib.sha256(whole).digest() != digest:
            raise ReportFileError(place, "it is truncated or damaged")
        try:
            header = json.loads(line)
            check_whose(place, header["collection"], header["fingerprint"], header["sandbox"], collection)
            partitions = {name: Source(name, *source) for name, source in header["partitions"].items()}
            if "total" not in header:
                return Partial(collection, partitions=partitions)
            layout = read_layout(place, header, collection)
            total = _read_total(header["total"], rest, layout, collection)
            charges = {name: check_whole(name, header.get(name, 0)) for name in _CHARGES}
            return Partial(collection, total, layout, partitions, **charges)
        except (ValueError, KeyError, TypeError, RecursionError, AttributeError, InvalidParameter):
            raise ReportFileError(place, "its header is damaged") from None


def again(source: Source, known: Source) -> str:
    """Return the words of an error about a partition that appears a second time.

    Parameters:
        source: the partition.
        known: the same partition, as it appeared first.
    """
    how = "a copy of" if source.sha256 == known.sha256 else "another run of the task of"
    return f"{source}, {how} {known}"


def aggregate_reports(reports: NDArray[Any], collection: Collection) -> Partial:
    """Return the partial of reports that belong to no partition, so counting them twice is not detected.

    Parameters:
        reports: an array whose first axis is the users.
        collection: the collection of the reports.

    Raises:
        InvalidParameter: an argument has the wrong type.
        NotSupported: these are not reports of the mechanism.
    """
    check_instance("collection", collection, Collection, "a `Collection`")
    layout = Layout.of(reports)
    return Partial(collection, collection.mechanism.aggregate(reports), layout)


def aggregate(
    place: str | os.PathLike[str], collection: Collection, *, on_reports: Callable[[int], None] | None = None
) -> Partial:
    """Return the partial of the reports at a place, read to the end and compared with its hash.

    Parameters:
        place: a partition; a folder of partitions, of which every `*.parquet` is read; a report file; or a partial
            that was written to a file. A path, or a URL that `fsspec` knows.
        collection: the collection of the reports.
        on_reports: called with the number of reports of each part that was read.

    Raises:
        ReportFileError: a file is foreign, truncated, damaged or made for another collection; a partition appears
            twice; or there is no file.
        InvalidParameter: an argument has the wrong type.
        NotSupported: pyarrow is missing, or fsspec for a URL; or a report file has no reports of the mechanism.
    """
    check_instance("collection", collection, Collection, "a `Collection`")
    check_path("place", place)
    name = os.fspath(place)
    start = _start(name)
    if start.startswith(MAGIC):
        return _read_partial(name, collection)
    if start and not start.startswith(PARTITION_START) and not name.endswith(PARTITION_SUFFIX):
        with open_reports(name, collection) as file:
            total, layout = _added(_counted(file.blocks(), on_reports), collection)
        return Partial(collection, total, layout, {}, *_charges(file.charged, total))
    total, layout, partitions = None, None, dict[str, Source]()
    charges = Counter[bool | None]()
    for partition in _partitions(name, collection, partitions):
        try:
            total, layout = _added(_counted(partition.blocks(), on_reports), collection, total, layout)
        except NotSupported as error:
            why = f"these are not reports of {collection.name}: {error}"
            raise ReportFileError(partition.place, why) from None
        charges[partition.charged] += partition.reports
    return Partial(collection, total, layout, partitions, charges[True], charges[False])


def _counted(blocks: Iterable[NDArray[Any]], on_reports: Callable[[int], None] | None) -> Iterator[NDArray[Any]]:
    for block in blocks:
        yield block
        if on_reports is not None:
            on_reports(len(block))


def open_files(place: str, collection: Collection, known: dict[str, Source]) -> Iterator[Reports | Any]:
    """Yield the open report file at a place, or its open partitions in turn.

    Parameters:
        place: a report file, a partition, or a folder of partitions; a path, or a URL that `fsspec` knows.
        collection: the collection of the reports.
        known: the partitions that were read, by name; the new ones are added.

    Raises:
        ReportFileError: a file is foreign, truncated, damaged or made for another collection; a partition is already
            known; or there is no file.
        NotSupported: pyarrow is missing, or fsspec for a URL.
    """
    start = _start(place)
    if start and not start.startswith(PARTITION_START):
        with open_reports(place, collection) as file:
            yield file
    else:
        yield from _partitions(place, collection, known)


def _partitions(place: str, collection: Collection, known: dict[str, Source]) -> Iterator[Any]:
    files = partition_format()
    for each in files.partitions_in(place):
        with files.open_partition(each, collection) as partition:
            source = partition.source
            if source.name in known:
                raise ReportFileError(
                    each, f"a partition must be given once: got {again(source, known[source.name])}"
                )
            known[source.name] = source
            yield partition


def is_partial(place: str) -> bool:
    """Return True if a file is a partial, which holds no reports."""
    return _start(place).startswith(MAGIC)


def _charges(charged: bool | None, total: Any) -> tuple[int, int]:
    """Return the numbers of charged and of uncharged reports of one file."""
    reports = 0 if total is None else total.reports
    return (reports if charged is True else 0, reports if charged is False else 0)


def _start(name: str) -> bytes:
    """Return the first bytes of a file; empty for a folder."""
    with reading(name):
        if inside(name) is not None:
            return b""
        with opened(name) as file:
            return file.read(len(MAGIC))


def _read_partial(name: str, collection: Collection) -> Partial:
    with reading(name), opened(name) as file:
        data = file.read()
    return Partial.from_bytes(data, collection, place=shown_place(name))


def _added(
    blocks: Iterable[NDArray[Any]], collection: Collection, total: Any = None, layout: Layout | None = None
) -> tuple[Any, Layout | None]:
    """Return `total` merged with the aggregate of blocks of reports, and their layout; both None without reports."""
    mechanism: Any = collection.mechanism
    for block in blocks:
        part = mechanism.aggregate(block)
        total, layout = part if total is None else total.merge(part), Layout.of(block)
    return total, layout


def _named(collection: Collection) -> str:
    kind = "the sandbox collection" if collection.sandbox else "collection"
    return f"{kind} {collection.name} ({collection.fingerprint[:12]}…)"


# -- the state of an aggregate --------------------------------------------------------------------------------


def _written(name: str, value: Any, arrays: list[bytes]) -> Any:
    """Return the header's form of a value; append the content of an array to `arrays`."""
    import numpy as np

    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        layout = Layout(value.dtype.newbyteorder("<").str, value.shape)
        arrays.append(value.astype(layout.dtype, order="C", copy=False).tobytes())
        return {"dtype": layout.dtype, "shape": list(layout.shape)}
    if isinstance(value, str | int | np.integer) and not isinstance(value, bool):
        return value if isinstance(value, str) else int(value)
    raise NotSupported(f"{name} of the aggregate is a {type(value).__name__}, which cannot be stored")


def _read_total(state: dict[str, Any], data: bytes, layout: Layout, collection: Collection) -> Any:
    """Return the aggregate with that state. Raises ValueError unless it has the form of the mechanism's aggregates.

    The data names no class: the class is that of the mechanism's aggregate of zero reports.
    """
    import numpy as np

    total: Any = collection.mechanism.aggregate(np.empty((0, *layout.shape), layout.dtype))
    empty = vars(total)
    if state.keys() != empty.keys():
        raise ValueError(f"the state must have {sorted(empty)}: got {sorted(state)}")
    place, found = 0, {}
    for name, value in sorted(state.items()):
        like = empty[name]
        if isinstance(like, np.ndarray):
            array = _array(value, data, place)
            place += array.nbytes
            # An array that grows with the reports, such as a list of hash functions, is empty in `like`.
            if array.dtype != like.dtype or array.ndim != like.ndim or (like.size and array.shape != like.shape):
                raise ValueError(f"{name} must be {like.dtype} {like.shape}: got {array.dtype} {array.shape}")
            found[name] = array
        elif not _is_like(value, like):
            raise ValueError(f"{name} must be a {type(like).__name__}: got {value!r}")
        else:
            found[name] = value
    if place != len(data):
        raise ValueError(f"the arrays must have {place} bytes: got {len(data)}")
    return type(total)(**found)


def _is_like(value: Any, like: Any) -> bool:
    """True if `value` is a whole number like `like`, or the same text as `like`."""
    if isinstance(like, str):
        return bool(value == like)
    return isinstance(value, int) and not isinstance(value, bool)


def _array(said: dict[str, Any], data: bytes, place: int) -> NDArray[Any]:
    import numpy as np

    dtype, shape = np.dtype(said["dtype"]), tuple(said["shape"])
    if dtype.kind not in "iu" or min(shape, default=0) < 0:
        raise ValueError(f"the array must be of whole numbers: got {dtype} {shape}")
    array = np.frombuffer(data, dtype, math.prod(shape), place).reshape(shape)
    return array.astype(dtype.newbyteorder("="))
