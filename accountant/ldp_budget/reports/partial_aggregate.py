"""One estimate of what reports come to, whether the collection lists its answers or not.

Partial aggregates that know which partitions they contain, so that none is counted twice.

    part = aggregate("reports/7.parquet", collection)    # on a worker
    total = functools.reduce(Partial.merge, parts)       # in any order, in any tree
    total.estimate()

A partial is a value: it is never changed, so an engine may keep it, send it, or take the same step again. For engines
it is pickled, with its collection; to be kept, or read elsewhere, it has a form of its own:

    ldp-budget partial 1\n                      magic and version
    {"collection": ..., "partitions": ...}\n    header, one line of canonical JSON
    array*                                       the arrays that the header names, in its order, little-endian
    SHA-256                                      of all before it, 32 bytes
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
from typing import TYPE_CHECKING, Any

from .._files import canonical_json, replacing
from .._validation import check_instance, check_path, check_whole
from ..errors import InvalidParameter, NotSupported, ReportFileError
from ..registry.collections import Collection
from ..sdk.domain import Categories
from .parquet import MAGIC as PARQUET_MAGIC
from .parquet import SUFFIX, Source, open_partition, partitions_in
from .report_file import Layout, check_mixed, check_whose, open_reports, read_layout, reading
from .tables import inside, opened, shown_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from ..registry.collections import Collection
    from ..sdk.estimates import Aggregate, Estimate


def lists_answers(collection: Collection) -> bool:
    """Whether the answers were declared, so that all of them can be estimated."""
    domain = collection.mechanism.domain
    return isinstance(domain, Categories) and domain.listed


def estimate_total(collection: Collection, total: Any, names: Sequence[str] | None) -> Estimate:
    """The estimate from an aggregate; where answers are not listed, of those named."""
    mechanism: Any = collection.mechanism
    if names is None or lists_answers(collection):
        estimated: Estimate = mechanism.estimate(total)
    else:
        estimated = mechanism.estimate(total, candidates=collection.read_values(names))
    return estimated


MAGIC = b"ldp-budget partial 1\n"
_SHA256_BYTES = 32
_CHARGES = ("charged", "uncharged")


@dataclass(frozen=True, repr=False)
class Partial:
    """What reports of a collection come to, and which partitions they were read from; without any, nothing yet.

    Partials of one collection merge exactly and in any order, and two that share a partition do not merge.

    Parameters:
        collection: what the reports are of.
        total: the mechanism's aggregate of them; None where there are none.
        layout: how a report is laid out; None where there are none.
        partitions: the partitions by what they are called.
        charged: how many of the reports were charged to their users, as far as those who wrote them said.
        uncharged: how many were not.

    Raises:
        InvalidParameter: the collection is none; or there is a total without a layout, or the reverse.
    """

    collection: Collection
    total: Aggregate | None = None
    layout: Layout | None = None
    partitions: Mapping[str, Source] = field(default_factory=dict)
    charged: int = 0
    uncharged: int = 0

    def __post_init__(self) -> None:
        check_instance("collection", self.collection, Collection, "a collection")
        if (self.total is None) != (self.layout is None):
            raise InvalidParameter("layout", "one with a total, and none without", repr(self.layout))

    def __repr__(self) -> str:
        return f"<Partial of {self.collection.name}: {self.reports} reports of {len(self.partitions)} partitions>"

    @property
    def reports(self) -> int:
        """How many reports it holds.

        Raises:
            Nothing.
        """
        return 0 if self.total is None else self.total.reports

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file of its own, whole, which `aggregate` and `ldp-budget estimate` read.

        Parameters:
            path: of the file.

        Raises:
            ReportFileError: it cannot be written.
            InvalidParameter: it is no path.
            NotSupported: as `to_bytes`.
        """
        data, path = self.to_bytes(), check_path("path", path)
        try:
            with replacing(path) as file:
                file.write(data)
        except OSError as error:
            raise ReportFileError(str(path), f"it cannot be written: {error.strerror}") from None

    def merge(self, other: Partial) -> Partial:
        """A partial of both together; the two stay as they are.

        Parameters:
            other: a partial of other partitions of the same collection.

        Raises:
            InvalidParameter: it is no such partial: of another collection, or with a partition that is in this one.
        """
        check_instance("other", other, Partial, "a partial")
        mine, theirs = self.collection, other.collection
        if (mine.fingerprint, mine.sandbox) != (theirs.fingerprint, theirs.sandbox):
            raise InvalidParameter("other", f"a partial of {_named(mine)}", f"one of {_named(theirs)}")
        twin = next((each for name, each in other.partitions.items() if name in self.partitions), None)
        if twin is not None:
            expected = "a partial of partitions that are not in this one, as each is counted once"
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
        """The estimate of the reports, taken for one round, in which each user reported once.

        Parameters:
            names: the answers to estimate, where the collection lists none.
            mixed: also where some reports were charged to their users and others were not.

        Raises:
            ReportFileError: there are no reports; or they are mixed, and that was not asked for.
            OutsideDomain: a name is none of an answer.
            NotSupported: the mechanism cannot estimate them.
        """
        place = ", ".join(map(str, self.partitions.values()))
        if self.total is None:
            raise ReportFileError(place, "there are no reports to estimate from")
        if not mixed:
            check_mixed(place, self.charged, self.uncharged)
        return estimate_total(self.collection, self.total, names)

    def to_bytes(self) -> bytes:
        """The form to keep, the same for the same content; `from_bytes` reads it.

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
            # A kind that is not there is left out, as it was before anything said so.
            header |= {name: number for name in _CHARGES if (number := getattr(self, name))}
        written = b"".join([MAGIC, canonical_json(header).encode(), b"\n", *arrays])
        return written + hashlib.sha256(written).digest()

    @staticmethod
    def from_bytes(data: bytes, collection: Collection, *, place: str = "partial") -> Partial:
        """The partial that `to_bytes` wrote.

        Parameters:
            data: what was written.
            collection: what its reports are of.
            place: where it was read, for messages.

        Raises:
            ReportFileError: it is foreign, truncated, damaged, or made for another collection.
            InvalidParameter: one of them is of another kind.
        """
        check_instance("data", data, bytes, "bytes")
        check_instance("collection", collection, Collection, "a collection")
        if not data.startswith(MAGIC):
            raise ReportFileError(place, f"it does not start with {MAGIC.decode().strip()!r}")
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
    """That a partition comes a second time, and as what it was known.

    Parameters:
        source: the partition.
        known: the same one, as it came first.

    Raises:
        Nothing.
    """
    how = "a copy of" if source.sha256 == known.sha256 else "another run of the task of"
    return f"{source}, {how} {known}"


def aggregate_reports(reports: NDArray[Any], collection: Collection) -> Partial:
    """The partial of reports that lie in no partition, so that nothing tells where they are counted twice.

    Parameters:
        reports: an array whose first axis is the users.
        collection: what they are of.

    Raises:
        InvalidParameter: one of them is of another kind.
        NotSupported: these are no reports of the mechanism.
    """
    check_instance("collection", collection, Collection, "a collection")
    layout = Layout.of(reports)
    return Partial(collection, collection.mechanism.aggregate(reports), layout)


def aggregate(place: str | os.PathLike[str], collection: Collection) -> Partial:
    """The partial of what lies at a place, read to its end and held against its hash.

    Parameters:
        place: a partition; a folder of them, of which every `*.parquet` is read; a report file; or a partial that was
            written to a file. A path, or an address that `fsspec` knows.
        collection: what the reports are of.

    Raises:
        ReportFileError: something is foreign, truncated, damaged, made for another collection, or there twice; or
            there is nothing.
        InvalidParameter: one of them is of another kind.
        NotSupported: pyarrow is missing, or fsspec for an address; or a report file holds none of the mechanism's.
    """
    check_instance("collection", collection, Collection, "a collection")
    check_path("place", place)
    name = os.fspath(place)
    start = _start(name)
    if start.startswith(MAGIC):
        return _read_partial(name, collection)
    if start and not start.startswith(PARQUET_MAGIC) and not name.endswith(SUFFIX):
        with open_reports(name, collection) as file:
            total, layout = _added(file.blocks(), collection)
        return Partial(collection, total, layout, {}, *_charges(file.charged, total))
    total, layout, partitions = None, None, dict[str, Source]()
    charges = Counter[bool | None]()
    for each in partitions_in(place):
        with open_partition(each, collection) as partition:
            source = partition.source
            if source.name in partitions:
                raise ReportFileError(each, f"it is there twice: {again(source, partitions[source.name])}")
            partitions[source.name] = source
            try:
                total, layout = _added(partition.blocks(), collection, total, layout)
            except NotSupported as error:
                raise ReportFileError(each, f"these are no reports of {collection.name}: {error}") from None
            charges[partition.charged] += partition.reports
    return Partial(collection, total, layout, partitions, charges[True], charges[False])


def _charges(charged: bool | None, total: Any) -> tuple[int, int]:
    """How many reports of one file were charged to their users, and how many were not."""
    reports = 0 if total is None else total.reports
    return (reports if charged is True else 0, reports if charged is False else 0)


def _start(name: str) -> bytes:
    """How a file begins; nothing of a folder."""
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
    """`total` and the aggregate of blocks of reports, with their layout; two Nones where there are no reports."""
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
    """A value as the header says it; what an array holds is put with the arrays."""
    import numpy as np

    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        layout = Layout(value.dtype.newbyteorder("<").str, value.shape)
        arrays.append(value.astype(layout.dtype, order="C", copy=False).tobytes())
        return {"dtype": layout.dtype, "shape": list(layout.shape)}
    if isinstance(value, str | int | np.integer) and not isinstance(value, bool):
        return value if isinstance(value, str) else int(value)
    raise NotSupported(f"{name} of the aggregate is a {type(value).__name__}, which has no form to keep")


def _read_total(state: dict[str, Any], data: bytes, layout: Layout, collection: Collection) -> Any:
    """The aggregate with that state. Raises ValueError unless it is made as those of the mechanism are.

    No class is named in what is read: that of the mechanism's aggregate of no reports is taken.
    """
    import numpy as np

    total: Any = collection.mechanism.aggregate(np.empty((0, *layout.shape), layout.dtype))
    empty = vars(total)
    if state.keys() != empty.keys():
        raise ValueError(f"expected {sorted(empty)}; found {sorted(state)}")
    place, found = 0, {}
    for name, value in sorted(state.items()):
        like = empty[name]
        if isinstance(like, np.ndarray):
            array = _array(value, data, place)
            place += array.nbytes
            # Of what grows with the reports, such as a list of functions, there is none yet.
            if array.dtype != like.dtype or array.ndim != like.ndim or (like.size and array.shape != like.shape):
                raise ValueError(f"{name}: expected {like.dtype} {like.shape}; found {array.dtype} {array.shape}")
            found[name] = array
        elif not _is_like(value, like):
            raise ValueError(f"{name}: expected a {type(like).__name__}; found {value!r}")
        else:
            found[name] = value
    if place != len(data):
        raise ValueError(f"expected {place} bytes of arrays; found {len(data)}")
    return type(total)(**found)


def _is_like(value: Any, like: Any) -> bool:
    """A number where there is one; or the same text."""
    if isinstance(like, str):
        return bool(value == like)
    return isinstance(value, int) and not isinstance(value, bool)


def _array(said: dict[str, Any], data: bytes, place: int) -> NDArray[Any]:
    import numpy as np

    dtype, shape = np.dtype(said["dtype"]), tuple(said["shape"])
    if dtype.kind not in "iu" or min(shape, default=0) < 0:
        raise ValueError(f"expected whole numbers; found {dtype} {shape}")
    array = np.frombuffer(data, dtype, math.prod(shape), place).reshape(shape)
    return array.astype(dtype.newbyteorder("="))
