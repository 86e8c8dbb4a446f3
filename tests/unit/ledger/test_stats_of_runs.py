"""`stats` counts a run, or a batch, once for its key, in any number of partitions and parts."""

from __future__ import annotations

from typing import Any

import pytest

from contract.acts import check, coin
from contract.toy_store import ToyStore
from fixed_clock import Clock
from ldp_budget import Accountant
from ldp_budget.accounting import batch, bulk_run
from ldp_budget.accounting.batch import Spend

USERS = [f"user {number}" for number in range(12)]


@pytest.fixture(params=[":memory:", 1, 4])
def accountant(request: pytest.FixtureRequest, clock: Clock) -> Accountant:
    place: Any = request.param
    accountant = Accountant(ToyStore(place) if isinstance(place, int) else place, clock=clock)
    accountant.set_policy("default", ["lifetime=9"])
    return accountant


@pytest.mark.slow
def test_stats_count_each_key_once(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "PART", 5)
    monkeypatch.setattr(bulk_run, "BATCH", 7)
    counted = 0
    for number, users in enumerate((USERS, USERS[:1], [], USERS[:7], [*USERS, *USERS])):
        for _ in range(2):
            accountant.spend_many(users, coin("0.1"), key=f"run {number}")
            assert accountant.stats()["keys"] == counted + 1, users
        counted += 1
    for number, users in enumerate((USERS, USERS[:1], [], [*USERS, *USERS])):
        for _ in range(2):
            accountant.spend_batch([Spend(user, coin("0.1")) for user in users], key=f"batch {number}")
            assert accountant.stats()["keys"] == counted + 1, users
        counted += 1
    accountant.spend("ada", coin("0.1"), key="k")
    assert accountant.stats()["keys"] == counted + 1
    check(accountant)


def test_stats_count_a_run_of_several_shards_once(accountant: Accountant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_run, "BATCH", 3)
    for shard in (2, 1):
        accountant.spend_many(USERS, coin("0.1"), key="run", shard=(shard, 2))
    assert accountant.stats()["keys"] == 1
