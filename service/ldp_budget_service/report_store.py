"""Collections, read once: they never change, and to make a mechanism anew for each request takes long.

The reports of the collections: the inbox of each, in a folder of its own, and the rounds that were sealed.
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


MOST = 1024


@dataclass(frozen=True)
class CachedCollection:
    """A collection, and what clients are told of it: with a client program, where its mechanism has one."""

    collection: Collection
    public: dict[str, Any]

    @property
    def digest(self) -> str:
        """Names what clients were told: of the public definition, or else the fingerprint."""
        told: str = self.public.get("digest", self.collection.fingerprint)
        return told


class Collections:
    """The collections of a ledger that somebody asked for, the latest ones."""

    def __init__(self, accountant: Accountant) -> None:
        self._accountant = accountant
        self._lock = threading.Lock()
        self._held: OrderedDict[str, CachedCollection] = OrderedDict()

    def has(self, name: str) -> bool:
        """Whether it was read before."""
        return name in self._held

    def get(self, name: str) -> CachedCollection:
        """The collection of that name. Raises `UnknownName`; `NotSupported` where its mechanism is missing here."""
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
            raise  # it was agreed on with another client than is installed here
        return CachedCollection(collection, collection.to_json())


SUFFIX = ".reports"
_ROUND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_MOST_TOTALS = 256


class Inboxes:
    """The inboxes below a folder, as `ldp-budget inbox seal --inbox FOLDER/NAME.inbox` finds them.

    What was sealed lies beside them, a file for each round: `FOLDER/NAME.ROUND.reports`.
    """

    def __init__(self, accountant: Accountant, folder: Path | None) -> None:
        self._accountant = accountant
        self._folder = folder
        self._lock = threading.Lock()
        self._opened: dict[str, Inbox] = {}
        # What was added up of a sealed file, which never changes.
        self._totals: OrderedDict[tuple[str, str, int, int], Any] = OrderedDict()

    def of(self, collection: Collection) -> Inbox:
        """The inbox of a collection. Raises as `Inbox` does, and `NotSupported` where no reports are taken."""
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
        """The names of the rounds that were sealed, in order."""
        first = self._file(collection, "")
        found = (path.name for path in self._place().glob(f"{first.name.removesuffix(SUFFIX)}*{SUFFIX}"))
        return sorted(name[len(first.name) - len(SUFFIX) : -len(SUFFIX)] for name in found)

    def seal(self, collection: Collection, name: str, together: int) -> int:
        """Seal what was taken as a round, in whole groups of so many; how many reports.

        Raises `NameTaken`, `InvalidParameter`, and `TooFewReports` where there is no whole group.
        """
        if not _ROUND.fullmatch(name):
            raise InvalidParameter("round", "1 to 100 letters, digits and . _ - of ASCII, no sign first", name)
        box, path = self.of(collection), self._file(collection, name)
        if path.exists():
            raise NameTaken("round", name, "it was sealed already")
        return box.seal(path, together)

    def total(self, collection: Collection, name: str) -> Any:
        """What the reports of a round add up to; None where there are none. Raises `UnknownName`."""
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
        """What the reports that are not sealed yet add up to, in whole groups of so many, if any."""
        from ldp_budget.reports.estimation import total_of

        return total_of(collection, self.of(collection).unsealed(together))

    def _file(self, collection: Collection, name: str) -> Path:
        # With no dot in the first part, so that the second begins at the first one.
        return self._place() / f"{_quoted(collection.name).replace('.', '%2E')}.{name}{SUFFIX}"


def folder_of(name: str) -> str:
    """The folder of a collection: its name, in which what may not stand in one is percent-encoded."""
    return f"{_quoted(name)}.inbox"


def _quoted(name: str) -> str:
    quoted = quote(name, safe=" ")
    # File systems have no room for long names.
    return quoted if len(quoted) <= 200 else f"{quoted[:150]}-{sha256(name.encode()).hexdigest()[:32]}"
