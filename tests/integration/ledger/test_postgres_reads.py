"""Long reads of a ledger on PostgreSQL: balances of all accounts, and the charges of a collection, as in memory."""

from __future__ import annotations

from typing import Any

import pytest

import ldp_budget
from fixed_clock import Clock
from ldp_budget import Accountant
from ldp_budget.registry.collections import Collection
from postgres_places import Emptied

pytestmark = pytest.mark.usefixtures("own_keys")
POLL = Collection("poll", ldp_budget.mechanism("oue")(epsilon="0.5", domain_size=2), ("a", "b"), minimum_group=1)
USERS = [f"user {number}" for number in range(300)]


def reads(accountant: Accountant) -> dict[str, Any]:
    """What the long reads return for the same charges."""
    accountant.set_policy("default", ["lifetime=2", "month=1"])
    accountant.add_collection(POLL)
    accountant.spend_many(USERS, POLL, key="run")
    accountant.spend(USERS[3], POLL, reports=2)
    accountant.spend(USERS[4], POLL)
    accountant.erase(USERS[5])
    use = accountant.ledger.collection_use("poll", head=accountant.ledger.verify().head)
    last = accountant.ledger.last_verification()
    every = list(accountant.balances())
    return {
        "use": (use.accounts, use.reports, use.largest, use.largest_total, use.policies, use.refused),
        "limits": sorted(repr(each.limits) for each in every),
        "erased": sum(each.erased for each in every),
        "noted": last is None or last.head == use.head or last.head.partition("-")[0].isdigit(),
    }


@pytest.mark.parametrize("partitions", [1, 3])
def test_long_reads_are_those_of_a_ledger_in_memory(partitions: int, clock: Clock) -> None:
    with Accountant(":memory:", clock=clock) as accountant:
        expected = reads(accountant)
    with Emptied(partitions).open(clock) as accountant:
        assert reads(accountant) == expected


@pytest.mark.parametrize(
    "sql", ["UPDATE journal SET epsilon = 1 WHERE entry = 30", "UPDATE window_sums SET epsilon = 1"]
)
def test_long_reads_of_a_changed_ledger_are_refused(sql: str, clock: Clock) -> None:
    import psycopg

    place = Emptied(1)
    with place.open(clock) as accountant:
        reads(accountant)
        with psycopg.connect(place.address.partition("?")[0], autocommit=True) as connection:
            assert connection.execute(sql).rowcount
        with pytest.raises(ldp_budget.LedgerError):
            accountant.ledger.collection_use("poll")
