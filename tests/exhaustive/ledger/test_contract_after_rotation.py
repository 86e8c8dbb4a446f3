"""The contract of a ledger after the rotation of its secret, on every store that needs no server."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.places import InFile, InMemory, InToys
from contract.rotation import Exchanged, ExchangedContract


class TestInMemory(ExchangedContract):
    @pytest.fixture
    def place(self) -> Exchanged:
        return Exchanged(InMemory())


class TestInFile(ExchangedContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Exchanged:
        return Exchanged(InFile(tmp_path / "budget.db"))


class TestThreePartitions(ExchangedContract):
    @pytest.fixture
    def place(self) -> Exchanged:
        return Exchanged(InToys(3))
