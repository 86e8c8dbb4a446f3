"""Where the tests keep ledgers, see `ledger_contract.Place`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from ldp_budget import Accountant
from toy_store import ToyStore

Now = Callable[[], datetime | float]


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
    """A ledger of some lanes that ends with its object."""

    def __init__(self, lanes: int = 1) -> None:
        self._lanes = lanes

    def open(self, clock: Now) -> Accountant:
        return Accountant(ToyStore(self._lanes), clock=clock)

    def reopen(self, accountant: Accountant, clock: Now) -> Accountant:
        return accountant
