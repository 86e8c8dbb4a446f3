"""The ledger's contract, kept by a `RemoteAccountant` whose service keeps the ledger in SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger_contract import LedgerContract
from ledger_places import InFile
from remote_places import Behind, plugin_of_promises


class RemoteContract(LedgerContract):
    """The contract over HTTP; what differs there is said, with the reason."""

    @pytest.fixture(autouse=True)
    def promises(self) -> Iterator[None]:
        with plugin_of_promises():
            yield


class TestBehindAService(RemoteContract):
    @pytest.fixture
    def place(self, tmp_path: Path) -> Behind:
        return Behind(InFile(tmp_path / "budget.db"))
