"""The ledger's contract, kept by a store of dictionaries that does every piece of work twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contract import StoreContract
from contract.places import InToys
from contract.toy_store import ToyStore
from ldp_budget import Accountant
from ledger_inside import ledger_of


@pytest.mark.slow
class TestToyStore(StoreContract):
    @pytest.fixture(
        params=[pytest.param(1, marks=pytest.mark.exhaustive), 3], ids=lambda partitions: f"{partitions} partitions"
    )
    def place(self, request: pytest.FixtureRequest) -> InToys:
        return InToys(request.param)


def test_store_interface_is_small() -> None:
    source = Path(__file__).parents[2] / "contract" / "toy_store.py"
    assert len(source.read_text(encoding="utf-8").splitlines()) < 470


@pytest.mark.parametrize("before", range(1, 8))
def test_new_period_with_midnight_between_partitions_is_correct(before: int) -> None:
    """The clock is read for each partition, and a policy is set at one moment."""
    now, tick = datetime(2026, 11, 23, tzinfo=UTC) - timedelta(milliseconds=before), timedelta(0)

    def clock() -> datetime:
        nonlocal now
        now += tick
        return now

    with Accountant(ToyStore(3), clock=clock) as accountant:
        tick = timedelta(milliseconds=1)
        accountant.set_policy("default", ["lifetime=9", "day=5"])
        tick = timedelta(0)
        since = set()
        for partition in range(3):
            with ledger_of(accountant).reading(partition) as reading:
                since.add(reading.periods()["day"])
        assert len(since) == 1
