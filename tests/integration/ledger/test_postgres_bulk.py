"""Bulk runs on a server write partitions at the same time: each user is charged once for a key, and within the limit."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

import pytest

from contract.acts import check, coin, in_threads, spent
from ldp_budget import Accountant
from postgres_places import new_ledger

pytestmark = pytest.mark.usefixtures("own_keys")

USERS = [f"user {number}" for number in range(600)]


def writers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "ldp-budget writer"]


@pytest.mark.parametrize(("partitions", "connections"), [(8, "16"), (3, "2"), (4, "1")])
def test_bulk_runs_of_the_same_users_at_the_same_time_stay_within_the_limit(
    partitions: int, connections: str
) -> None:
    """Two processes' accountants: two runs under one key are one run, and the limit has room for three in all."""
    address, before = new_ledger(partitions, connections=connections), len(writers())
    with Accountant(address) as one, Accountant(address) as two:
        one.set_policy("default", ["lifetime=1"])
        each: list[tuple[Accountant, str | None]] = [(one, "k"), (two, "k"), (one, "other"), (two, None), (two, None)]

        def run(number: int) -> Any:
            if number == len(each):
                return [bool(one.spend(USERS[0], coin("0.3"))) for _ in range(9)]
            accountant, key = each[number]
            return accountant.spend_many(USERS, coin("0.3"), key=key)

        *results, singles = in_threads(len(each) + 1, run)
        # Each of the four runs has a result for each user once: the second run under the key repeats the first.
        assert sum(result.spent for result in results) + sum(singles) == 3 * len(USERS)
        assert {spent(two, user)["lifetime"] for user in USERS[::20]} == {Decimal("0.9")}
        assert one.spend_many(USERS, coin("0.3"), key="k").spent == 0
        check(one)
    assert len(writers()) == before
