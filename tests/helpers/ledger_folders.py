"""Ledgers in a folder of their own, whose files a test copies, moves or replaces."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from contract.acts import check, coin, spent
from ldp_budget import Accountant


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of each file of a folder by its name."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def new_ledger_in(tmp_path: Path, lifetime: int, spends: int = 0) -> Path:
    """Make a ledger in a new folder, in which alice spent 0.1 some times; it is closed."""
    folder = tmp_path / "place"
    folder.mkdir()
    with Accountant(folder / "budget.db") as accountant:
        accountant.set_policy("default", [f"lifetime={lifetime}"])
        for _ in range(spends):
            accountant.spend("alice", coin("0.1"))
    return folder / "budget.db"


def tenths(accountant: Accountant, user: str) -> Decimal:
    """Return the number of spends of 0.1 by a user."""
    return spent(accountant, user)["lifetime"] * 10


def tenths_in(path: Path, user: str) -> Decimal:
    """Return the number of spends of 0.1 by a user, in a ledger that verifies."""
    with Accountant(path, create=False) as accountant:
        check(accountant)
        return tenths(accountant, user)
