"""The rounds of a collection: what each file of reports says by itself, with its intervals.

A round is a report file, as `release` and `Inbox.seal` write it. Rounds of a folder are those whose reports were made
for the collection, in the order in which they were written.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..authoring.domain import Categories
from ..errors import LdpBudgetError, NotSupported
from .reports import HEADER_BYTES, MAGIC, read_reports

if TYPE_CHECKING:
    from ..authoring.estimates import Estimate
    from ..catalogue.collections import Collection

SUFFIX = ".reports"
"""How the files of a folder are called that are rounds."""
LEVEL = 0.95


class _File(NamedTuple):
    """A file as it was when it was read: one that was replaced is another one."""

    path: Path
    written: int
    size: int


class Rounds:
    """The rounds in a folder, each estimated once. Threads may share it."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._known: dict[tuple[_File, str], dict[str, Any] | None] = {}
        self._lock = threading.Lock()

    def of(self, collection: Collection) -> list[dict[str, Any]]:
        """The rounds of a collection, oldest first: each with its name, its reports, and a row for each answer.

        Of a mean there is one row, without an answer; `low` and `high` are of the share, or of the mean. Raises
        `NotSupported` where the collection lists no answers; a file that cannot be read is no round.
        """
        domain = collection.mechanism.domain
        if isinstance(domain, Categories) and not domain.listed:
            raise NotSupported(f"{collection.name} lists no answers; estimate it for candidates")
        with self._lock:
            found = [self._round(file, collection) for file in self._files()]
        return [each for each in found if each is not None]

    def _files(self) -> list[_File]:
        found = []
        for path in self._folder.glob(f"*{SUFFIX}"):
            try:
                told = path.stat()
            except OSError:
                continue
            found.append(_File(path, told.st_mtime_ns, told.st_size))
        return sorted(found, key=lambda file: (file.written, file.path))

    def _round(self, file: _File, collection: Collection) -> dict[str, Any] | None:
        key = file, collection.fingerprint
        if key not in self._known:
            self._known[key] = _estimated(file.path, collection)
        return self._known[key]


def _estimated(path: Path, collection: Collection) -> dict[str, Any] | None:
    """What a file says, or None where it is none of the collection's, or holds nothing."""
    try:
        if _made_for(path) != collection.fingerprint:
            return None
        total: Any = None
        for block in read_reports(path, collection):
            part = collection.mechanism.aggregate(block)
            total = part if total is None else total.merge(part)
        if total is None:
            return None
        estimate = collection.mechanism.estimate(total)
    except (LdpBudgetError, OSError):
        return None
    return {
        "round": path.name.removesuffix(SUFFIX),
        "reports": estimate.reports,
        "answers": rows(collection, estimate),
    }


def _made_for(path: Path) -> str | None:
    """The fingerprint in the header of a report file; None of any other file."""
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return None
        try:
            return str(json.loads(file.readline(HEADER_BYTES))["fingerprint"])
        except (ValueError, KeyError, TypeError):
            return None


def rows(collection: Collection, estimate: Estimate) -> list[dict[str, Any]]:
    """An estimate as rows: of each answer count and share, or a mean, with the interval of the share or the mean."""
    from ..authoring.estimates import CountEstimate, MeanEstimate

    if isinstance(estimate, CountEstimate):
        n, (low, high) = estimate.reports, estimate.interval(LEVEL)
        names = collection.answer_names(len(estimate.counts))
        columns = zip(names, estimate.counts.tolist(), low.tolist(), high.tolist(), strict=True)
        return [
            {"answer": name, "count": count, "share": count / n, "mean": None, "low": least / n, "high": most / n}
            for name, count, least, most in columns
        ]
    assert isinstance(estimate, MeanEstimate)
    ends = estimate.interval(LEVEL)
    row = {"answer": None, "count": None, "share": None, "mean": estimate.mean, "low": ends[0], "high": ends[1]}
    return [row]
