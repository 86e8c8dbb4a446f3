"""Inbox of a collection: it checks, charges and stores reports that devices send one by one, until a seal.

A sender may retry with the same key and the same report as often as needed: the report is charged once and stored
once, in one transaction. Of two reports with one key, the first stored one counts. The response is the same for both,
so no response reveals which report was stored.

Reports and rounds are in the ledger, so any number of processes serve one collection. Until a seal, the ledger links
each report to its account. A sealed round holds its reports in random order, without users, keys or times, and the
ledger keeps nothing that links them: no copy of a report and no digest of one. It still shows which accounts sent a report.

Public attributes of a report, such as its region, are stored after it as JSON. The idempotency key covers them, so a
retry with others is a conflict. For that the ledger keeps a keyed digest, with which its operator can confirm a user's
attributes. A sealed report with attributes hides among those with the same ones.

A report is stored after a mark of 16 bytes, which the device can choose. A second mark is a note on the charge. Both are
hashes of one secret that only the device knows, so they find a respondent's report and charge in a publication, and
do not link one to the other.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._files import canonical_json
from ..accounting.stored_reports import MARK_BYTES, Taken, note_of
from ..charge_options import DEFAULT
from ..errors import InvalidParameter, LdpBudgetError, LedgerError, NotSupported, ReportFileError, UnknownName
from .public_attributes import PublicAttributes, read_attributes
from .report_file import writer_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..accounting.accountant import Accountant
    from ..accounting.receipts import Receipt
    from ..ledger.models import RoundPart
    from ..registry.collections import Collection

    Block = tuple[NDArray[Any], PublicAttributes | None]


class Marks(NamedTuple):
    """The marks of a report and of its charge, 16 bytes each."""

    report: bytes
    charge: bytes

    @classmethod
    def of(cls, secret: bytes) -> Marks:
        """The marks of a secret of 16 bytes, which stays on the device."""
        report, charge = (
            hashlib.sha256(b"ldp-budget " + kind + secret).digest()[:MARK_BYTES] for kind in (b"report", b"charge")
        )
        return cls(report, charge)


@dataclass(frozen=True)
class RefusedReport:
    """A report that was not taken: its index, the reason in words, and the receipt of a refusal or the error."""

    index: int
    reason: str
    receipt: Receipt | None = None
    error: LdpBudgetError | None = None


class Sent(NamedTuple):
    """A report that a device sent: its user, its idempotency key, its bytes, its label, marks and public attributes."""

    user: str
    key: str
    report: bytes
    label: str | None = None
    marks: Marks | None = None
    public: Mapping[str, str] | None = None


class Inbox:
    """Inbox of a collection in a ledger, which stores the collection if it is new; several processes may share it.

    Raises `NameTaken` if the ledger has another collection of that name. Raises `NotSupported` if the collection's
    mechanism has no client program, which defines the layout of a report.
    """

    def __init__(self, accountant: Accountant, collection: Collection, *, policy: str = DEFAULT) -> None:
        self._dtype, self._shape, self.report_bytes = collection.mechanism.report_layout()
        """Size of a report in bytes."""
        accountant.add_collection(collection)
        self._reports, self._collection, self._policy = accountant.reports, collection, policy

    def using(self, accountant: Accountant, policy: str) -> Inbox:
        """Return the same inbox with another accountant of the ledger, for example one that acts for an API key."""
        other = copy.copy(self)
        other._reports, other._policy = accountant.reports, policy
        return other

    def check(self, report: bytes) -> None:
        """Raise `NotSupported` unless a client of the collection can send `report`. Nothing is charged."""
        if len(report) != self.report_bytes:
            raise NotSupported(f"a report must have {self.report_bytes} bytes: got {len(report)}")
        self._collection.mechanism.check_reports(self._rows(report))

    def take(
        self,
        user: str,
        key: str,
        report: bytes,
        *,
        label: str | None = None,
        marks: Marks | None = None,
        public: Mapping[str, str] | None = None,
    ) -> Receipt:
        """Check, charge and store a report; the receipt says if the budget refused it.

        `key` belongs to one report of this user. A second report with the same key gets the response of the first
        one, and is neither charged nor stored. A key of another request raises `KeyConflict`. `label` names the
        memoised draw that the report repeats. With `marks`, the respondent can check a publication. `public` are
        public attributes, which travel with the report, without noise. The key covers them.

        Raises as `check` and as `Accountant.spend`. Then nothing was stored, and nothing charged, unless the ledger
        says that the outcome is unknown: a retry then settles both.
        """
        checked = self._checked(Sent(user, key, report, label, marks, public))
        return self._reports.take_many([checked], self._collection, self._policy)[0]

    def take_many(self, reports: Sequence[Sent]) -> tuple[list[Receipt], list[RefusedReport]]:
        """Do the same for many reports, of which a bad one stops no other.

        Returns the receipts of the reports that were taken, in their order, and the reports that were refused.

        Raises `LedgerError` if the ledger cannot answer: some of the reports may have been taken. Take all again with the
        same keys to find out; none is charged twice. Raises `UnknownName` if there is no such policy.
        """
        refused: dict[int, RefusedReport] = {}
        checked: dict[int, Taken] = {}
        for place, sent in enumerate(reports):
            try:
                checked[place] = self._checked(sent)
            except LdpBudgetError as error:
                refused[place] = RefusedReport(place, str(error), error=error)
        outcomes = self._reports.take_each([*checked.values()], self._collection, self._policy)
        taken: list[Receipt] = []
        for place, outcome in zip(checked, outcomes, strict=True):
            if isinstance(outcome, LedgerError | UnknownName):
                raise outcome  # not a fault of the report: the reader of a stream must not go on
            if isinstance(outcome, LdpBudgetError):
                refused[place] = RefusedReport(place, str(outcome), error=outcome)
            elif outcome:
                taken.append(outcome)
            else:
                refused[place] = RefusedReport(place, outcome.explain(), receipt=outcome)
        return taken, [refused[place] for place in sorted(refused)]

    def _checked(self, sent: Sent) -> Taken:
        """Return what is stored of a report. Raises as `check`, and `InvalidParameter`."""
        user, key, report, label, marks, public = sent
        self.check(report)
        self._collection.check_sender(user, report)
        if marks is not None and {len(mark) for mark in marks} != {MARK_BYTES}:
            raise InvalidParameter("marks", f"two marks of {MARK_BYTES} bytes", repr(marks))
        mark = os.urandom(MARK_BYTES) if marks is None else marks.report
        note = None if marks is None else note_of(marks.charge)
        attributes = {} if public is None else read_attributes(public)
        stored = canonical_json(attributes).encode() if attributes else b""
        digest = hashlib.sha256(stored).hexdigest() if attributes else None
        return Taken(user, mark + report + stored, key, label, note, digest)

    def bytes_of(self, reports: NDArray[Any]) -> list[bytes]:
        """Return the bytes of each report of an array, as a client sends them."""
        data = np.ascontiguousarray(reports, self._dtype).tobytes()
        return [data[place : place + self.report_bytes] for place in range(0, len(data), self.report_bytes)]

    def __len__(self) -> int:
        """Return the number of stored, unsealed reports."""
        return self._reports.waiting(self._collection.name)

    def seal(self, name: str, together: int | None = None) -> int:
        """Seal the stored reports as a round, in random order; return their number.

        `together` is the group size, None for the minimum group of the collection: only the oldest reports that fill
        whole groups are sealed, the others wait for the next seal. Raises `TooFewReports` if there is no whole group,
        `InvalidParameter` for groups below the minimum, and `NameTaken` if there is such a round.
        """
        return self._reports.seal(self._collection.name, name, together)

    def rounds(self) -> list[str]:
        """Return the names of the sealed rounds, in the order of their sealing."""
        return self._reports.rounds(self._collection.name)

    def round(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield the reports of a round, as blocks of an array. Raises `UnknownName`."""
        return (self._reports_in(part) for part in self._parts(name))

    def count(self, name: str) -> int:
        """Return the number of reports in a round. Raises `UnknownName`."""
        return sum(part.reports for part in self._parts(name))

    def marked(self, name: str) -> Iterator[bytes]:
        """Yield the reports of a round in parts: each report after its mark. Raises `UnknownName`."""
        return (_records(part)[:, : MARK_BYTES + self.report_bytes].tobytes() for part in self._parts(name))

    def attributes(self, name: str) -> tuple[str, ...]:
        """Return the names of the public attributes in a round, sorted. Raises `UnknownName`."""
        names: set[str] = set()
        for part in self._parts(name):
            if len(part.content) == part.reports * (MARK_BYTES + self.report_bytes):
                break  # the longest reports come first, so no other part has attributes
            names.update(*map(json.loads, set(self._attributes_in(part))))
        return tuple(sorted(names))

    def write(self, name: str, out: str | os.PathLike[str], *, public: Sequence[str] | None = None) -> int:
        """Write a round to a new report file, or to a partition if `out` ends in `.parquet`; return the number of reports.

        `public` are the attributes that become public columns of the file; None for all. A report without one of them
        has the empty text there. If some are left out, the file has a random order of its own.

        Raises `UnknownName`, `InvalidParameter` if there are too many attributes for a file, or none of a given name,
        and `ReportFileError` if `out` exists or cannot be written.
        """
        if Path(out).exists():
            raise ReportFileError(str(out), "it already exists. Nothing was written.", hint="Choose another file.")
        found = self.attributes(name)  # an unknown round leaves no file
        columns = found if public is None else tuple(public)
        for column in set(columns).difference(found):
            listed = ", ".join(found) or "none"
            raise InvalidParameter("public", f"attributes of the reports in round {name} ({listed})", repr(column))
        count = 0
        blocks = self._blocks(name, columns)
        if set(columns) != set(found):
            blocks = _shuffled(blocks)
        # The round names a partition, so that its copies are found.
        with writer_to(out, self._collection, charged=True, public=columns, task=f"round {name}") as writer:
            for reports, attributes in blocks:
                writer.write(reports, attributes)
                count += len(reports)
        return count

    def _blocks(self, name: str, columns: Sequence[str]) -> Iterator[Block]:
        """Yield the reports of a round in parts, each with its public columns."""
        for part in self._parts(name):
            yield self._reports_in(part), self._columns_of(part, columns) if columns else None

    def _parts(self, name: str) -> Iterator[RoundPart]:
        return self._reports.round(self._collection.name, name)

    def _reports_in(self, part: RoundPart) -> NDArray[Any]:
        """Return the reports of a part, without marks and attributes."""
        return self._rows(_records(part)[:, MARK_BYTES : MARK_BYTES + self.report_bytes].tobytes())

    def _attributes_in(self, part: RoundPart) -> Iterator[bytes]:
        """Yield the public attributes of each report of a part, as JSON; empty without any."""
        length = len(part.content) // part.reports
        start = MARK_BYTES + self.report_bytes
        return (part.content[place : place + length - start] for place in range(start, len(part.content) + 1, length))

    def _columns_of(self, part: RoundPart, columns: Sequence[str]) -> PublicAttributes:
        """Return public columns of the reports of a part."""
        texts = list(self._attributes_in(part))
        read = {each: json.loads(each or b"{}") for each in set(texts)}
        rows = {each: [found.get(column, "") for column in columns] for each, found in read.items()}
        return PublicAttributes.of(columns, (rows[each] for each in texts))

    def _rows(self, data: bytes) -> NDArray[Any]:
        """Return bytes as an array of reports."""
        reports = np.frombuffer(data, self._dtype).reshape(len(data) // self.report_bytes, *self._shape)
        return reports.astype(self._dtype.newbyteorder("="), copy=False)


def _shuffled(blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield all reports as one block in a new random order.

    The parts of a round are sorted by the length of their attributes. That order would show attributes that are left out.
    """
    reports, attributes = zip(*blocks, strict=True)
    public = PublicAttributes.joined([each for each in attributes if each is not None])
    places = list(range(sum(map(len, reports))))
    random.SystemRandom().shuffle(places)
    yield np.concatenate(reports)[places], None if public is None else public.take(places)


def _records(part: RoundPart) -> NDArray[np.uint8]:
    """Return the records of a part, one in each row: the mark, the report, and its public attributes."""
    return np.frombuffer(part.content, np.uint8).reshape(part.reports, -1)
