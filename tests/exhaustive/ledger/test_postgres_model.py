"""A ledger of several partitions on a server, step by step against the model in `contract.model`."""

from __future__ import annotations

import pytest
from hypothesis import settings

from contract.model import LedgerMachine
from ldp_budget_postgres.pool import OLDEST
from postgres_places import Emptied

pytestmark = [pytest.mark.exhaustive, pytest.mark.usefixtures("own_keys")]


class ServerMachine(LedgerMachine):
    version: str | None = None

    def make_place(self) -> Emptied:
        self._place = Emptied(4, self.version)
        return self._place

    def remove_place(self) -> None:
        self._place.remove()


class OldestMachine(ServerMachine):
    version = str(OLDEST // 10_000)


class TestOnServer(ServerMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=30, stateful_step_count=50)


class TestOnTheOldestServer(OldestMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=8, stateful_step_count=50)
