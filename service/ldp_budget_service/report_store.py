"""Cached collections, and the reports of each collection.

A collection never changes, and constructing its mechanism takes long, so collections are cached. Each collection has
an inbox in a folder of its own, and one file for each sealed round.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ldp_budget import Collection, InvalidParameter, NameTaken, NotSupported, UnknownName

if TYPE_CHECKING:
    from ldp_budget import Accountant, Collection
    from ldp_budget.reports.inbox import Inbox


# -- collections -------------------------------------------------------------------------------------

MOST = 1024


@dataclass(frozen=True)
class CachedCollection:
    """A collection and its public definition; with a client program if its mechanism has one."""

    collection: Collection
    public: dict[str, Any]

    @property
    def digest(self) -> str:
        """Digest of the public definition; without a client program, the collection's fingerprint."""
        told: str = self.public.get("digest", self.collection.fingerprint)
        return told


class Collections:
    """Cache of the most recently used collections of a ledger."""

    def __init__(self, accountant: Accountant) -> None:
        self._accountant = accountant
        self._lock = threading.Lock()
        self._held: OrderedDict[str, CachedCollection] = OrderedDict()

    def has(self, name: str) -> bool:
        """True if the collection is cached."""
        return name in self._held

    def get(self, name: str) -> CachedCollection:
        """Return the collection with that name.

        Raises `UnknownName`, and `NotSupported` if its mechanism is not installed here.
        """
        with self._lock:
            held = self._held.get(name)
            if held is not None:
                self._held.move_to_end(name)
                return held
        held = _read(self._accountant, name)
        with self._lock:
            self._held[name] = held
            if len(self._held) > MOST:
                self._held.popitem(last=False)
        return held


def _read(accountant: Accountant, name: str) -> CachedCollection:
    collection = accountant.collection(name)
    try:
        return CachedCollection(collection, collection.definition())
    except NotSupported:
        if collection.client is not None:
            raise  # the collection was agreed on with a different client program
        return CachedCollection(collection, collection.to_json())


# -- inboxes -----------------------------------------------------------------------------------------

SUFFIX = ".reports"
_ROUND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MOST_TOTALS = 256


class Inboxes:
    """The inboxes below a folder, in the layout of `ldp-budget inbox seal --inbox FOLDER/NAME.inbox`.

    Each sealed round is a file in the same folder: `FOLDER/NAME.ROUND.reports`.
    """

    def __init__(self, accountant: Accountant, folder: Path | None) -> None:
        self._accountant = accountant
        self._folder = folder
        self._lock = threading.Lock()
        self._opened: dict[str, Inbox] = {}
        # Sums of sealed files, which never change.
        self._totals: OrderedDict[tuple[str, str, int, int], Any] = OrderedDict()

    def of(self, collection: Collection) -> Inbox:
        """Return the inbox of a collection. Raises as `Inbox`, and `NotSupported` if the service takes no reports."""
        from ldp_budget.reports.inbox import Inbox

        with self._lock:
            found = self._opened.get(collection.fingerprint)
            if found is None:
                found = Inbox(self._accountant, collection, self._place() / folder_of(collection.name))
                self._opened[collection.fingerprint] = found
            return found

    def _place(self) -> Path:
        if self._folder is None:
            raise NotSupported("this service takes no reports")
        return self._folder

    # -- rounds -------------------------------------------------------------------------------------------

    def rounds(self, collection: Collection) -> list[str]:
        """Return the names of the sealed rounds, in order."""
        first = self._file(collection, "")
        found = (path.name for path in self._place().glob(f"{first.name.removesuffix(SUFFIX)}*{SUFFIX}"))
        return sorted(name[len(first.name) - len(SUFFIX) : -len(SUFFIX)] for name in found)

    def seal(self, collection: Collection, name: str, together: int) -> int:
        """Seal the collected reports as a round, in whole groups of `together`; return the number of sealed reports.

        Raises `NameTaken`, `InvalidParameter`, and `TooFewReports` if there is no whole group.
        """
        if not _ROUND.fullmatch(name):
            raise InvalidParameter("round", "1 to 100 letters, digits and . _ - of ASCII, no sign first", name)
        box, path = self.of(collection), self._file(collection, name)
        if path.exists():
            raise NameTaken("round", name, "it was sealed already")
        return box.seal(path, together)

    def total(self, collection: Collection, name: str) -> Any:
        """Return the sum of a round's reports; None if there are none. Raises `UnknownName`."""
        from ldp_budget.reports.estimation import total_of
        from ldp_budget.reports.report_file import read_reports

        path = self._file(collection, name)
        if not _ROUND.fullmatch(name) or not path.exists():
            raise UnknownName("round", name, self.rounds(collection))
        found = path.stat()
        key = collection.fingerprint, name, found.st_mtime_ns, found.st_size
        with self._lock:
            if key in self._totals:
                self._totals.move_to_end(key)
                return self._totals[key]
        total = total_of(collection, read_reports(path, collection))
        with self._lock:
            self._totals[key] = total
            while len(self._totals) > _MOST_TOTALS:
                self._totals.popitem(last=False)
        return total

    def waiting(self, collection: Collection, together: int) -> Any:
        """Return the sum of the unsealed reports in whole groups of `together`; None if there are none."""
        from ldp_budget.reports.estimation import total_of

        return total_of(collection, self.of(collection).unsealed(together))

    def _file(self, collection: Collection, name: str) -> Path:
        # The quoted name has no dot, so the name of the round starts after the first dot.
        return self._place() / f"{_quoted(collection.name).replace('.', '%2E')}.{name}{SUFFIX}"


def folder_of(name: str) -> str:
    """Return the folder of a collection: its name with percent-encoded special characters."""
    return f"{_quoted(name)}.inbox"


def _quoted(name: str) -> str:
    quoted = quote(name, safe=" ")
    # File systems limit the length of names.
    return quoted if len(quoted) <= 200 else f"{quoted[:150]}-{sha256(name.encode()).hexdigest()[:32]}"
