"""Charging users and releasing their reports, so that an interruption neither charges twice nor frees a report.

Batch by batch the reports are drawn and stored in `OUT.partial`, on the disk before anybody is charged; then the
batch is charged under a key that is bound to these very reports; the refused are struck out; and at the end the file
takes its name. A run that was interrupted is run again with the same input: what was stored is used and never drawn
again, and what was charged is not charged again. When the file has its name, `OUT.partial` goes, and the run is over:
the same command once more would be another round of charges, so it is refused for as long as the file is there.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets as random
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from .._checks import check_instance, check_name, check_path, check_text, shown
from .._columns import check_texts
from .._files import open_alone, sync_folder
from ..accounting.accountant import Accountant
from ..accounting.bulk import refused_places
from ..catalogue.collections import Collection
from ..errors import InvalidParameter, ReportFileError
from ..guarantees import Memoised
from .partitions import PartitionWriter, writer_to
from .tabular.places import is_address, local_path, shown_place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

_MAGIC = b"ldp-budget release 1\n"
_SIZE = struct.Struct("<I")
_BATCH = 10_000

_FINISHED = (
    "it is there already, and no run of it was interrupted, so nothing was charged; for a new round, in which "
    "everybody is charged again, name another file or move this one away"
)
_FOREIGN = "it holds no interrupted run and was left as it is; move it away, or name another file"


@dataclass(frozen=True)
class Released:
    """How many reports were released, and how many users were refused and sent nothing."""

    reports: int
    refused: int


def release(
    out: str | os.PathLike[str],
    collection: Collection,
    accountant: Accountant,
    values: NDArray[Any],
    users: Sequence[str],
    *,
    policy: str,
    secrets: Sequence[bytes] | None = None,
    on_batch: Callable[[int], None] = lambda users: None,
    on_refused: Callable[[list[str]], None] = lambda users: None,
) -> Released:
    """Randomize values, charge their users, and write the reports of those who fit to a file.

    Parameters:
        out: the file, a partition where it ends in `.parquet`; beside it lies `OUT.partial` until all is done, from
            which an interrupted run goes on.
        collection: what is asked.
        accountant: whose ledger is charged.
        values: one for each user, an array as `collection.read_values` gives it.
        users: who is charged, one for each value.
        policy: the policy to hold it against.
        secrets: one for each user, for mechanisms that memoise; reports of one value are then charged along its
            curve.
        on_batch: called with the number of users after each batch.
        on_refused: called before that with who of them was refused, also where an earlier run has refused them.

    Returns:
        How many reports were written, and how many users were refused.

    Raises:
        ReportFileError: before anything is drawn or charged, where `out` is there and no run of it was interrupted;
            where `OUT.partial` belongs to other input, or to something else; where another run is writing it; and
            where they cannot be written.
        InvalidParameter: one of them is of another kind, `out` is an address and no path, or there are not as many
            users as values. Nothing was charged.
        OutsideDomain: a value is not in the declared domain.
        UnknownName: there is no such policy.
        NotSupported: the mechanism has no client.
        LedgerError: the ledger cannot be read or written.
    """
    users = _checked(collection, accountant, values, users)
    check_name("policy", policy)
    out = check_out(out)
    for name, call in (("on_batch", on_batch), ("on_refused", on_refused)):
        if not callable(call):
            raise InvalidParameter(name, "a function", shown(call))
    if secrets is not None:
        from ..randomness.memoisation import secrets_for_each

        secrets = secrets_for_each(secrets, len(values))
    refused = 0
    mechanism = collection.mechanism
    # An unknown policy, or a place that is no file, is told before anything is stored.
    singly = secrets is not None or accountant.policy(policy).plan is not None
    writer = writer_to(out, collection)
    with _Store(Path(out), collection, accountant.keyed_digest(_input(values, users, policy, singly))) as store:
        if isinstance(writer, PartitionWriter):
            writer.call(store.run)  # gone on with, it makes the same partition, of which one is counted
        with writer:
            for number, start in enumerate(range(0, len(values), _BATCH)):
                batch = slice(start, start + _BATCH)
                own = None if secrets is None else secrets[batch]
                reports = store.stored(number)
                if reports is None:
                    reports = store.add(collection.randomize(values[batch], secrets=own))
                names = list(users[batch])
                charge = _Charge(accountant, collection, policy, f"{store.run}/{number}", reports)
                labels = _labels(collection, values[batch], own)
                kept = charge.one_by_one(names, labels) if singly else charge.together(names)
                writer.write(reports[kept])
                refused += len(names) - len(kept)
                stays = set(kept)
                on_refused([name for place, name in enumerate(names) if place not in stays])
                on_batch(len(names))
            writer.write(mechanism.randomize(values[:0]))  # so that a file without reports has its header too
        store.remove()
    return Released(len(values) - refused, refused)


def check_out(out: str | os.PathLike[str]) -> str:
    """The path of a file on this machine, for reports to be released to. Raises `InvalidParameter`."""
    check_path("out", out)
    if is_address(os.fspath(out)):
        expected = "a path of this machine, on whose disk the reports are before anybody is charged"
        raise InvalidParameter("out", expected, f"the address {shown_place(os.fspath(out))}")
    return local_path(os.fspath(out))


def _checked(collection: Any, accountant: Any, values: Any, users: Any) -> list[str]:
    """The users, if everything is of its kind and there is one for each value. Raises `InvalidParameter`."""
    check_instance("collection", collection, Collection, "a collection")
    check_instance("accountant", accountant, Accountant, "an accountant")
    if getattr(values, "ndim", 0) != 1:
        raise InvalidParameter("values", "a one-dimensional array of values", shown(values))
    listed = list(check_texts("users", users, "users, one for each value"))
    if len(listed) != len(values):
        raise InvalidParameter("users", f"one for each of {len(values)} values", len(listed))
    return [check_text("user", user) for user in listed]


class _Charge:
    """The charges of one batch, under keys that are bound to its reports."""

    def __init__(
        self, accountant: Accountant, collection: Collection, policy: str, key: str, reports: NDArray[Any]
    ) -> None:
        self._accountant = accountant
        self._collection = collection
        self._policy = policy
        self._key = key
        self._digest = hashlib.sha256(reports.tobytes()).hexdigest()

    def together(self, users: list[str]) -> list[int]:
        """Charge all of them at once; returns the places of those who were accepted."""
        result = self._accountant.spend_many(
            users, self._collection, key=self._key, digest=self._digest, policy=self._policy
        )
        struck = set(refused_places(users, result.refused_users))
        return [place for place in range(len(users)) if place not in struck]

    def one_by_one(self, users: list[str], labels: list[str | None]) -> list[int]:
        """Charge each under the label of its memoised value, or under none; a plan admits its reports only so."""
        kept = []
        for place, (user, label) in enumerate(zip(users, labels, strict=True)):
            receipt = self._accountant.spend(
                user,
                self._collection,
                key=f"{self._key}/{place}",
                digest=self._digest,
                label=label,
                policy=self._policy,
            )
            if receipt:
                kept.append(place)
        return kept


def _labels(collection: Collection, values: NDArray[Any], secrets: Sequence[bytes] | None) -> list[str | None]:
    """Which memoised value each report repeats; None without a curve, where that makes no difference."""
    if secrets is None or not isinstance(collection.mechanism.guarantee, Memoised):
        return [None] * len(values)
    return [*collection.labels(values, secrets)]


def _input(values: NDArray[Any], users: Sequence[str], policy: str, singly: bool) -> bytes:
    """What makes two runs the same run, so that each charge has the same key in both.

    It is a digest of the true answers, of which there are few: whoever has it can try them all. So it is stored only
    under the ledger's key.
    """
    digest = hashlib.sha256(values.tobytes())
    digest.update(json.dumps([list(users), policy, singly]).encode())
    return digest.digest()


class _Store:
    """`OUT.partial`: the reports drawn so far. A batch that was not stored whole was not charged either."""

    def __init__(self, out: Path, collection: Collection, digest: str) -> None:
        self._out = out
        self._path = Path(f"{out}.partial")
        self._header = {"fingerprint": collection.fingerprint, "input": digest}
        self._batches: list[NDArray[Any]] = []
        self._file: IO[bytes] | None = None
        self.run = ""

    def __enter__(self) -> Self:
        try:
            self._file = open_alone(self._path)
        except OSError as error:
            raise ReportFileError(str(self._path), f"it cannot be written: {error.strerror}") from None
        try:
            self._open()
        except BaseException:
            self._file.close()
            raise
        return self

    def _open(self) -> None:
        """Go on with the run that was interrupted, or begin a new one."""
        assert self._file is not None
        self._file.seek(0)
        if not _MAGIC.startswith(self._file.read(len(_MAGIC))):
            raise ReportFileError(str(self._path), _FOREIGN)
        line = self._file.readline()
        if line.endswith(b"\n"):
            self._resume(line)
        else:  # it was interrupted before anything was drawn, if it was there at all
            self._begin()

    def __exit__(self, *exception: object) -> None:
        assert self._file is not None
        self._file.close()

    def stored(self, number: int) -> NDArray[Any] | None:
        """The reports of a batch that an earlier run has drawn."""
        return self._batches[number] if number < len(self._batches) else None

    def add(self, reports: NDArray[Any]) -> NDArray[Any]:
        """Put the next batch of reports on the disk, and return them."""
        import numpy as np

        assert self._file is not None
        buffer = io.BytesIO()
        np.save(buffer, reports, allow_pickle=False)
        data = buffer.getvalue()
        self._file.write(_SIZE.pack(len(data)) + data + _SIZE.pack(zlib.crc32(data)))
        self._sync()
        self._batches.append(reports)
        return reports

    def remove(self) -> None:
        """The release is done; nothing of it needs to be kept."""
        self._path.unlink(missing_ok=True)

    def _begin(self) -> None:
        assert self._file is not None
        if self._out.exists():
            self.remove()
            raise ReportFileError(str(self._out), _FINISHED)
        self.run = random.token_hex(16)
        self._file.truncate(0)
        self._file.write(_MAGIC + json.dumps({"run": self.run, **self._header}).encode() + b"\n")
        self._sync()
        sync_folder(self._path.parent)

    def _resume(self, line: bytes) -> None:
        import numpy as np

        assert self._file is not None
        try:
            header = json.loads(line)
            self.run = str(header.pop("run"))
        except (ValueError, KeyError, AttributeError, TypeError):
            raise ReportFileError(str(self._path), _FOREIGN) from None
        if header != self._header:
            raise ReportFileError(
                str(self._path),
                "it holds the interrupted run of another collection, other input or another policy; finish that run "
                "first, or delete the file, and what it charged stays charged",
            )
        end = self._file.tell()
        while (data := self._block()) is not None:
            self._batches.append(np.load(io.BytesIO(data), allow_pickle=False))
            end = self._file.tell()
        self._file.truncate(end)

    def _block(self) -> bytes | None:
        """The next block; None where it was not written whole."""
        assert self._file is not None
        size = self._file.read(_SIZE.size)
        if len(size) < _SIZE.size:
            return None
        data = self._file.read(_SIZE.unpack(size)[0])
        check = self._file.read(_SIZE.size)
        whole = len(check) == _SIZE.size and _SIZE.unpack(check)[0] == zlib.crc32(data)
        return data if whole else None

    def _sync(self) -> None:
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())
