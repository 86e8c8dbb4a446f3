"""Ledgers of several lanes, step by step against the model in `ledger_model`: on a server, and of dictionaries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import settings

from ledger_model import LedgerMachine
from ledger_places import InToys
from postgres_places import OnServer
from postgres_servers import shared_server


@pytest.fixture(autouse=True)
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of ledgers lie in the user's folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LDP_BUDGET_KEY", raising=False)


class ServerMachine(LedgerMachine):
    def make_place(self) -> OnServer:
        place = OnServer(4)
        (self._database,) = re.findall(r"/(test_\w+)", place.address)
        return place

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.accountant.close()
            server = shared_server()
            assert server is not None
            server.run(f"DROP DATABASE {self._database} WITH (FORCE)")


class ToyMachine(LedgerMachine):
    def make_place(self) -> InToys:
        return InToys(3)


class TestOnServer(ServerMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=4, stateful_step_count=30)


class TestInToys(ToyMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=4, stateful_step_count=30)


@pytest.mark.slow
class TestLongOnServer(ServerMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=30, stateful_step_count=50)


@pytest.mark.slow
class TestLongInToys(ToyMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=30, stateful_step_count=50)
