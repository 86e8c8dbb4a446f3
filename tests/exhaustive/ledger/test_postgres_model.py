"""A ledger of several partitions on a server and on a cluster, step by step against the model in `contract.model`."""

from __future__ import annotations

import pytest
from hypothesis import settings

from citus_servers import OnCluster
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


class ClusterMachine(LedgerMachine):
    def make_place(self) -> OnCluster:
        return OnCluster(4)

    def remove_place(self) -> None:
        """The next one wants it."""


class TestOnServer(ServerMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=30, stateful_step_count=50)


class TestOnTheOldestServer(OldestMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=8, stateful_step_count=50)


class TestOnCluster(ClusterMachine.TestCase):  # type: ignore[misc, name-defined]
    settings = settings(max_examples=8, stateful_step_count=50)
