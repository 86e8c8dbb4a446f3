"""The ledger's contract, kept by a real PostgreSQL with one, four and 64 lanes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger_contract import LedgerContract
from postgres_places import OnServer


@pytest.fixture(autouse=True)
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of ledgers lie in the user's folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.slow
class TestOneLane(LedgerContract):
    @pytest.fixture
    def place(self) -> OnServer:
        return OnServer(1)


class TestFourLanes(LedgerContract):
    @pytest.fixture
    def place(self) -> OnServer:
        return OnServer(4)


@pytest.mark.slow
class TestManyLanes(LedgerContract):
    @pytest.fixture
    def place(self) -> OnServer:
        return OnServer(64)
