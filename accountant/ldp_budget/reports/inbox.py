"""Inbox for reports that devices send one by one: it checks, charges and stores each report until a seal.

A sender may retry with the same key and the same report as often as needed: the report is charged once and stored
once. Of two reports with one key, the first stored one counts. The response is the same for both, so no response
reveals which report was stored. A sealed file holds reports in random order, without users, keys or times. The ledger
holds nothing of a report, not even a digest.

A collection has one inbox: a folder with an identity. The ledger records the identity with the first report, and
refuses any other folder afterwards, as two folders would each count a report that was sent twice. The charge covers
the identity. So a report that an earlier folder took is a conflict in the folder that replaced it.

The folder holds `collection.json`, `inbox.json` (its identity, and a digest of its ledger that a copy of the ledger
has too), and three files of rows. A row has 16 bytes for the receipt and then the report:

    pending    reports taken since the last seal
    sealing    reports being sealed, for a moment in `pending` too; a resumed seal continues with it
    sealed     the receipts, without their reports, of all sealed reports

Receipts are stored as hashes. With the ledger and this folder, a reader can link each unsealed report to its user. Of
sealed reports, that reader learns only which users sent one. `take` returns only after the report's row is on the
disk.
"""

from __future__ import annotations

import copy
import errno
import hashlib
import json
import os
import random
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from .._files import PRIVATE, alone_in, canonical_json, create_private, replacing, sync_folder
from ..accounting.admin_log_projection import Projection
from ..accounting.admin_records import INBOX
from ..accounting.policies import DEFAULT
from ..errors import KeyConflict, LdpBudgetError, NotSupported, ReportFileError
from ..registry.collections import Collection
from .report_file import ReportWriter, read_reports

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from ..accounting.admin_log import Record
    from ..accounting.admin_log_projection import RecordLog
    from ..accounting.receipts import Receipt

NAME_BYTES = 16
_OWNER = b"ldp-budget inbox"
_ROWS = 1 << 14


@dataclass
class _Known:
    """Cached receipts of a file, with the identity of the file and the number of bytes read."""

    same: tuple[int, int]
    read: int = 0
    names: set[bytes] = field(default_factory=set)


class TooFewReports(LdpBudgetError):  # noqa: N818 - reads as what it is
    """Fewer reports than one group, so none were sealed. Attributes: `reports`, `least`."""

    code = "too-few-reports"

    def __init__(self, reports: int, least: int) -> None:
        self.reports = reports
        self.least = least
        super().__init__(f"too few reports to seal: {reports}. Wait for {least}; nothing was sealed.")


class _Claimed(Exception):  # noqa: N818 - reads as what it is
    """The ledger names this inbox already."""


def _follow(serving: Mapping[str, Mapping[str, Any]], record: Record) -> Mapping[str, Mapping[str, Any]]:
    if record.kind != INBOX or record.fault is not None:
        return serving
    return {**serving, record.name: record.body}


class Inbox:
    """Inbox of a collection in a folder, which is created if missing; several processes may share it.

    With `replaces`, this folder takes the reports from now on, and the previous folder is refused.

    Raises `ReportFileError` if the folder belongs to another collection or ledger, if another folder takes the
    reports of the collection, or if the folder cannot be written. Raises `NotSupported` if the collection's mechanism
    has no client program, which defines the layout of a report.
    """

    def __init__(
        self,
        accountant: RecordLog,
        collection: Collection,
        folder: str | os.PathLike[str],
        *,
        policy: str = DEFAULT,
        replaces: bool = False,
    ) -> None:
        self._accountant = accountant
        self._collection = collection
        self._policy = policy
        self._folder = Path(folder)
        program = collection.mechanism.client_program()
        self._dtype, self._shape = np.dtype(program.report["dtype"]), tuple(program.report["shape"])
        self.report_bytes = program.size
        """Size of a report in bytes."""
        self._row = NAME_BYTES + self.report_bytes
        self._known: dict[str, _Known] = {}
        self._serving: Projection[Mapping[str, Mapping[str, Any]]] = Projection(accountant, {}, _follow)
        self._make()
        if replaces:
            self._serving.append(lambda _: self._own_record())
        self._serves(self._serving.now()[0])

    @property
    def folder(self) -> Path:
        """The folder in which the reports are stored."""
        return self._folder

    def using(self, accountant: RecordLog, policy: str) -> Inbox:
        """Return the same inbox with another accountant of the ledger, for example one that acts for an API key."""
        other = copy.copy(self)
        other._accountant, other._policy = accountant, policy
        return other

    def _make(self) -> None:
        file, about = (self._folder / name for name in ("collection.json", "inbox.json"))
        ledger = self._accountant.keyed_digest(_OWNER)
        try:
            if not self._folder.exists():
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                sync_folder(self._folder.absolute().parent)
            with alone_in(self._folder):
                if not file.exists():
                    create_private(file, canonical_json(self._collection.to_json()).encode())
                if not about.exists():
                    own = {"id": os.urandom(16).hex(), "ledger": ledger, "name": self._accountant.name}
                    create_private(about, canonical_json(own).encode())
            found, own = Collection.from_json(json.loads(file.read_bytes())), json.loads(about.read_bytes())
            self._id, owner, name = bytes.fromhex(own["id"]), own["ledger"], own["name"]
        except OSError as error:
            raise ReportFileError(str(self._folder), f"it cannot be an inbox: {error.strerror}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise ReportFileError(str(self._folder), f"it is no inbox: {error}") from None
        if found.fingerprint != self._collection.fingerprint:
            expected = f"expected that of {_named(self._collection)}"
            raise ReportFileError(
                str(self._folder), f"it is the inbox of another collection, {_named(found)}; {expected}"
            )
        if owner != ledger:
            expected = f"this ledger is {self._accountant.name}"
            raise ReportFileError(
                str(self._folder), f"it is the inbox of {found.name} in another ledger, {name}; {expected}"
            )

    # -- the one folder of a collection -------------------------------------------------------------------

    def _own_record(self) -> tuple[str, str, dict[str, Any]]:
        body = {"id": self._id.hex(), "folder": str(self._folder.absolute())}
        return INBOX, self._collection.fingerprint, body

    def _serves(self, serving: Mapping[str, Mapping[str, Any]]) -> bool:
        """True if the ledger records this inbox, False if it records none. Raises `ReportFileError` for another."""
        found = serving.get(self._collection.fingerprint)
        if found is None or found["id"] == self._id.hex():
            return found is not None
        name = self._collection.name
        raise ReportFileError(
            str(self._folder),
            f"the reports of {name} are taken into another inbox: {found['folder']}. Use that folder in every "
            f"process that takes reports, or replace it: ldp-budget inbox move {name} --inbox {self._folder}",
        )

    def _claim(self) -> None:
        """Record this inbox in the ledger, unless it is recorded. Raises `ReportFileError` if another one is."""

        def decide(serving: Mapping[str, Mapping[str, Any]]) -> tuple[str, str, dict[str, Any]]:
            if self._serves(serving):
                raise _Claimed
            return self._own_record()

        if not self._serves(self._serving.known()):
            with suppress(_Claimed):
                self._serving.append(decide)

    # -- taking -------------------------------------------------------------------------------------------

    def check(self, report: bytes) -> None:
        """Raise `NotSupported` unless a client of the collection can send `report`. Nothing is charged."""
        self._collection.mechanism.check_reports(self._rows(report, 1))

    def take(self, user: str, key: str, report: bytes, *, label: str | None = None) -> Receipt:
        """Check, charge and store a report; the receipt says if the budget refused it.

        `key` belongs to one report of this user in this inbox. A second report with the same key gets the response of
        the first one, and is neither charged nor stored. A key of an earlier folder or of another request raises
        `KeyConflict`. `label` names the memoised draw that the report repeats.

        Raises as `check` and as `Accountant.spend`. Then nothing was stored, and only an earlier call can have
        charged. Raises `ReportFileError` if another folder takes the reports, or if the report was charged and cannot
        be stored; a retry then stores it.
        """
        self.check(report)
        self._claim()
        receipt = self._charged(user, key, label)
        if receipt and receipt.receipt is not None:
            self._keep(
                hashlib.sha256(ascii((receipt.receipt, receipt.user, key)).encode()).digest()[:NAME_BYTES], report
            )
        return receipt

    def _charged(self, user: str, key: str, label: str | None) -> Receipt:
        # The digest covers nothing of the report: the ledger stores it, and it would reveal whose a sealed report is.
        inbox = bytes.fromhex(self._collection.fingerprint) + self._id

        digest = hashlib.sha256(inbox).hexdigest()
        try:
            return self._accountant.spend(
                user, self._collection, key=key, label=label, digest=digest, policy=self._policy
            )
        except KeyConflict as error:
            error.args = (f"{error}; or its report was taken into another inbox than {self._folder}",)
            raise

    def _keep(self, name: bytes, report: bytes) -> None:
        """Append a row, unless it is stored already: a retry may overtake the first request."""
        with self._alone():
            if not any(name in self._names(file) for file in ("pending", "sealing", "sealed")):
                self._append("pending", self._row, name + report)

    def _append(self, file: str, row: int, data: bytes) -> None:
        """Append whole rows, durably, or none. Raises OSError."""
        with self._opened(file) as descriptor:
            end = os.fstat(descriptor).st_size // row * row  # drop an incomplete row that a crash left
            os.ftruncate(descriptor, end)
            try:
                if os.pwrite(descriptor, data, end) < len(data):  # the disk is full
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, end)
                raise

    def _names(self, file: str) -> set[bytes]:
        """Return the receipts in a file; only the new part of the file is read."""
        row = NAME_BYTES if file == "sealed" else self._row
        path = self._folder / file
        if not path.exists():
            return set()
        found = path.stat()
        # Another process may have sealed the known file, and this may be a new one.
        same = (found.st_ino, 0 if file == "sealed" else self._size("sealed"))
        known = self._known.get(file)
        size = found.st_size // row * row
        with open(path, "rb") as content:
            if known is None or known.same != same or known.read > size:
                known = self._known[file] = _Known(same)
                os.fsync(content.fileno())  # the process that wrote it may have been killed before its fsync
            content.seek(known.read)
            data = content.read(size - known.read)
        known.names.update(data[at : at + NAME_BYTES] for at in range(0, len(data), row))
        known.read = size
        return known.names

    def unsealed(self, together: int = 1) -> Iterator[NDArray[Any]]:
        """Yield the stored, unsealed reports in order of arrival, as blocks of an array.

        They are those of now; new reports may arrive while these are read. Reports that an interrupted seal has
        already written are not included. `together` is the group size: only whole groups are included. So a reader
        who repeats the call never sees a single new report.
        """
        opened: list[tuple[IO[bytes], int]] = []
        with self._alone():
            self._part()
            begun, sealing = self._folder / "sealing.out", self._folder / "sealing"
            written = begun.exists() and Path(os.fsdecode(begun.read_bytes())).exists()
            for path in (sealing, self._folder / "pending"):
                if path.exists() and not (path == sealing and written):
                    file = open(path, "rb")  # noqa: SIM115 - read after the lock is released
                    opened.append((file, path.stat().st_size // self._row))
        whole = sum(count for _, count in opened) // together * together
        return self._blocks(opened, whole)

    def _blocks(self, opened: list[tuple[IO[bytes], int]], whole: int) -> Iterator[NDArray[Any]]:
        for file, left in opened:
            with file:
                while left and whole:
                    count = min(left, whole, _ROWS)
                    rows = np.frombuffer(file.read(count * self._row), np.uint8).reshape(count, self._row)
                    yield self._rows(rows[:, NAME_BYTES:].tobytes(), None)
                    left, whole = left - count, whole - count

    # -- sealing ------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Return the number of stored, unsealed reports."""
        with self._alone():
            self._part()
            return sum(self._size(file) // self._row for file in ("pending", "sealing"))

    def seal(self, out: str | os.PathLike[str], together: int = 1) -> int:
        """Move the stored reports to a report file, in random order; return their number.

        `together` is the group size: only the oldest reports that fill whole groups are sealed, the others wait for
        the next seal. Raises `TooFewReports` if there is no whole group.

        An interrupted seal is resumed first: it writes the file that it was begun for, and `out` must name that file.
        Raises `ReportFileError` if `out` exists or cannot be written. Then no report is removed.
        """
        place = Path(out).absolute()
        with self._alone():
            begun, sealing, pending = (self._folder / name for name in ("sealing.out", "sealing", "pending"))
            if begun.exists():
                if begun.read_bytes() != os.fsencode(place):
                    why = f"a seal to {os.fsdecode(begun.read_bytes())} was stopped; name that file to go on"
                    raise ReportFileError(str(place), why)
                if not sealing.exists() and place.exists():  # interrupted after all was written
                    begun.unlink()
                    return sum(len(block) for block in read_reports(place, self._collection))
            else:
                self._check_place(place)
                whole = self._whole(together)
                if whole is not None:  # before a resumed seal could take all pending reports
                    with replacing(sealing) as file:
                        file.write(whole)
                with replacing(begun) as file:
                    file.write(os.fsencode(place))
            self._part()
            if pending.exists() and not sealing.exists():
                os.replace(pending, sealing)
            sync_folder(self._folder)
            try:
                return self._seal(place, begun, sealing)
            except ReportFileError:
                if not place.exists():  # the next call may name another file
                    if sealing.exists() and not pending.exists():
                        os.replace(sealing, pending)
                    begun.unlink()
                raise

    def _whole(self, together: int) -> bytes | None:
        """Return the oldest rows that fill whole groups; None if those are all rows. Raises `TooFewReports`."""
        self._part()
        sealing = self._size("sealing") // self._row
        count = sealing or self._size("pending") // self._row
        if together == 1:
            return None
        if count < together:
            raise TooFewReports(count, together)
        if sealing or not count % together:
            return None  # a failed seal left whole groups there
        with open(self._folder / "pending", "rb") as file:
            return file.read(count // together * together * self._row)

    def _part(self) -> None:
        """Remove from `pending` the rows that a seal of a part of it has copied."""
        pending, sealing = self._folder / "pending", self._folder / "sealing"
        if not (pending.exists() and sealing.exists()):
            return
        copied = self._names("sealing")
        rows = self._read(pending)
        rest = [row.tobytes() for row in rows if row[:NAME_BYTES].tobytes() not in copied]
        if len(rest) < len(rows):
            with replacing(pending) as file:
                file.write(b"".join(rest))

    def _check_place(self, place: Path) -> None:
        if place.exists():
            raise ReportFileError(str(place), "it is there already; nothing was sealed")
        if self._folder.resolve() in place.resolve().parents:
            raise ReportFileError(str(place), "it is in the folder of the inbox; nothing was sealed")

    def _seal(self, place: Path, begun: Path, sealing: Path) -> int:
        rows = self._read(sealing)
        order = list(range(len(rows)))
        random.SystemRandom().shuffle(order)
        with ReportWriter(place, self._collection, charged=True) as writer:
            for start in range(0, max(1, len(rows)), _ROWS):
                writer.write(self._rows(rows[order[start : start + _ROWS], NAME_BYTES:].tobytes(), None))
        self._note(rows[:, :NAME_BYTES].tobytes())
        sealing.unlink(missing_ok=True)
        sync_folder(self._folder)  # if rows came back without `sealing.out`, they would be sealed again
        begun.unlink()
        sync_folder(self._folder)
        return len(rows)

    def _note(self, names: bytes) -> None:
        """Append the receipts of sealed reports that are not recorded yet."""
        known = self._names("sealed")
        each = (names[at : at + NAME_BYTES] for at in range(0, len(names), NAME_BYTES))
        new = b"".join(name for name in each if name not in known)
        self._append("sealed", NAME_BYTES, new)

    def _read(self, path: Path) -> NDArray[np.uint8]:
        data = path.read_bytes() if path.exists() else b""
        whole = len(data) // self._row
        return np.frombuffer(data, np.uint8, whole * self._row).reshape(whole, self._row)

    # -- the folder ---------------------------------------------------------------------------------------

    def _rows(self, data: bytes, count: int | None) -> NDArray[Any]:
        """Return bytes as an array of reports: all of them, or exactly `count`, else raise `NotSupported`."""
        if count is not None and len(data) != count * self.report_bytes:
            raise NotSupported(f"expected a report of {self.report_bytes} bytes; found {len(data)}")
        reports = np.frombuffer(data, self._dtype).reshape(len(data) // self.report_bytes, *self._shape)
        return reports.astype(self._dtype.newbyteorder("="), copy=False)

    def _size(self, file: str) -> int:
        path = self._folder / file
        return path.stat().st_size if path.exists() else 0

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            with alone_in(self._folder):
                yield
        except OSError as error:
            raise ReportFileError(str(self._folder), f"it cannot be written: {error.strerror}") from None

    @contextmanager
    def _opened(self, file: str) -> Iterator[int]:
        path = self._folder / file
        new = not path.exists()
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
        if new:
            sync_folder(self._folder)


def _named(collection: Collection) -> str:
    """Return a name of a collection that distinguishes it from another one of the same name."""
    return f"{collection.name} ({collection.fingerprint[:12]}…)"
