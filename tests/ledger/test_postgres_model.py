"""A ledger of several lanes on a server, step by step against the model in `ledger_model`."""

from __future__ import annotations

import re

import pytest
from hypothesis import settings

from ledger_model import LedgerMachine
from postgres_places import OnServer
from postgres_servers import shared_server

pytestmark = pytest.mark.usefixtures("own_keys")


class ServerMachine(LedgerMachine):
    def make_place(self) -> OnServer:
        place = OnServer(4)
        (self._database,) = re.findall(r"/(test_\w+)", place.address)
        return place

    def remove_place(self) -> None:
        server = shared_server()
        assert server is not None
        server.run(f"DROP DATABASE {self._database} WITH (FORCE)")


class TestOnServer(ServerMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=4, stateful_step_count=30)


@pytest.mark.slow
class TestLongOnServer(ServerMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=30, stateful_step_count=50)
