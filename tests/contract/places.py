"""The places of the tests' ledgers."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from contract.toy_store import ToyStore
from ldp_budget import Accountant

Now = Callable[[], datetime | float]


class Place(Protocol):
    """The place of one ledger."""

    def open(self, clock: Now) -> Accountant:
        """Open it, and make it if it is not there yet."""
        ...

    def reopen(self, accountant: Accountant, clock: Now) -> Accountant:
        """Close it and open it again; a ledger that lives with its connection is returned as it is."""
        ...


class InFile:
    """One ledger in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, clock: Now) -> Accountant:
        return Accountant(self.path, clock=clock)

    def reopen(self, accountant: Accountant, clock: Now) -> Accountant:
        accountant.close()
        return Accountant(self.path, create=False, clock=clock)


class InMemory:
    """A ledger that ends with its connection."""

    def open(self, clock: Now) -> Accountant:
        return Accountant(":memory:", clock=clock)

    def reopen(self, accountant: Accountant, clock: Now) -> Accountant:
        return accountant


class InToys:
    """A ledger of some partitions that ends with its object."""

    def __init__(self, partitions: int = 1) -> None:
        self._partitions = partitions

    def open(self, clock: Now) -> Accountant:
        return Accountant(ToyStore(self._partitions), clock=clock)

    def reopen(self, accountant: Accountant, clock: Now) -> Accountant:
        return accountant


UNPRIVILEGED = 65534


@contextmanager
def closed_copy(folder: Path) -> Iterator[Path]:
    """A read-only copy of a folder, which `as_unprivileged` cannot write either."""
    copy = Path(tempfile.mkdtemp())  # that of pytest is closed to others
    try:
        for file in folder.iterdir():
            shutil.copy(file, copy)
        for file in (*copy.iterdir(), copy):
            file.chmod(0o500 if file.is_dir() else 0o400)
            if os.geteuid() == 0:
                os.chown(file, UNPRIVILEGED, UNPRIVILEGED)
        yield copy
    finally:
        copy.chmod(0o700)
        shutil.rmtree(copy)


@contextmanager
def as_unprivileged() -> Iterator[None]:
    """Root may write everything, so act as the unprivileged user for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(UNPRIVILEGED)
    try:
        yield
    finally:
        os.seteuid(0)
