"""The inboxes of the collections, each in a folder of its own; opened once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from ldp_budget.collecting.inbox import Inbox

if TYPE_CHECKING:
    from ldp_budget import Accountant, Collection


class Inboxes:
    """The inboxes below a folder, as `ldp-budget inbox seal --inbox FOLDER/NAME.inbox` finds them."""

    def __init__(self, accountant: Accountant, folder: Path | None) -> None:
        self._accountant = accountant
        self._folder = folder
        self._lock = threading.Lock()
        self._opened: dict[str, Inbox] = {}

    def of(self, collection: Collection) -> Inbox:
        """The inbox of a collection. Raises as `Inbox` does."""
        assert self._folder is not None
        with self._lock:
            found = self._opened.get(collection.fingerprint)
            if found is None:
                found = Inbox(self._accountant, collection, self._folder / folder_of(collection.name))
                self._opened[collection.fingerprint] = found
            return found


def folder_of(name: str) -> str:
    """The folder of a collection: its name, in which what may not stand in one is percent-encoded."""
    return f"{quote(name, safe=' ')}.inbox"
