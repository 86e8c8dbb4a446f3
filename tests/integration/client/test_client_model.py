"""A ledger behind a service, step by step against the model in `contract.model`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from contract.model import LedgerMachine
from contract.places import InFile
from postgres_places import Emptied
from service_places import Behind, plugin_of_promises


@pytest.fixture(autouse=True, scope="module")
def promises() -> Iterator[None]:
    with plugin_of_promises():
        yield


class FileMachine(LedgerMachine):
    def make_place(self) -> Behind:
        self._folder = tempfile.TemporaryDirectory()
        return Behind(InFile(Path(self._folder.name) / "budget.db"))

    def remove_place(self) -> None:
        self._folder.cleanup()


class ServerMachine(LedgerMachine):
    def make_place(self) -> Behind:
        self._server = Emptied(4)
        return Behind(self._server)

    def remove_place(self) -> None:
        self._server.remove()


class TestBehindAService(FileMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=2, stateful_step_count=20)


@pytest.mark.exhaustive
class TestLongBehindAService(FileMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=8, stateful_step_count=50)


@pytest.mark.exhaustive
@pytest.mark.usefixtures("own_keys")
class TestBehindAServiceOnAServer(ServerMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=3, stateful_step_count=40)
