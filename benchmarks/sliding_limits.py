"""What a charge costs under sliding and scoped limits, as a ratio of the same charge under calendar limits.

    python benchmarks/sliding_limits.py [--turns 30] [--users 64]

Each ledger has a lifetime and one other limit. Users have a charge on each seventh day (`weekly`) or each day (`daily`)
of the four weeks before; in `each day`, each charge is the first of its day. One caller charges a batch of users, or in
`single` one user after the other, each with a key. The ledgers take turns in changing order, in one process: other work
on the machine meets all alike. Shown are medians of processor time, in microseconds a charge, and the medians of the
ratios to the calendar limit (`month`) of the same turn.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import ldp_budget
from ldp_budget import Accountant
from ldp_budget.accounting.batch import Spend

COIN = ldp_budget.mechanism("oue")(epsilon="0.000001", domain_size=7)
TAGS = ["attribute:health"]
LIMITS = {
    "month": ["lifetime=1000000", "month=1000"],
    "28d": ["lifetime=1000000", "28d=1000"],
    "attribute:health:month": ["lifetime=1000000", "attribute:health:month=1000"],
    "attribute:health:28d": ["lifetime=1000000", "attribute:health:28d=1000"],
}
KEYS = count()


class Now:
    """A clock that stands where it is set."""

    def __init__(self) -> None:
        self.at = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at


def opened(folder: Path, limits: list[str], users: list[str], days: range) -> tuple[Accountant, Now]:
    clock = Now()
    accountant = Accountant(folder / f"{next(KEYS)}.db", clock=clock)
    accountant.set_policy("default", limits)
    begin = clock.at
    for day in days:
        clock.at = begin + timedelta(days=day)
        accountant.spend_each([Spend(user, COIN, key=f"{next(KEYS)}", tags=TAGS) for user in users])
    clock.at = begin + timedelta(days=days.stop - 1)
    return accountant, clock


def turn(accountant: Accountant, clock: Now, users: list[str], rounds: int, later: int, single: bool) -> float:
    """Return the processor time of a charge, in microseconds; each round is so many days `later`."""
    begun = time.process_time()
    for _ in range(rounds):
        clock.at += timedelta(days=later)
        if single:
            for user in users:
                accountant.spend(user, COIN, key=f"{next(KEYS)}", tags=TAGS)
        else:
            accountant.spend_each([Spend(user, COIN, key=f"{next(KEYS)}", tags=TAGS) for user in users])
    return 1e6 * (time.process_time() - begun) / (rounds * len(users))


def measure(
    name: str, days: range, users: list[str], turns: int, later: int = 0, rounds: int = 4, single: bool = False
) -> None:
    took: dict[str, list[float]] = {limit: [] for limit in LIMITS}
    with tempfile.TemporaryDirectory() as folder:
        ledgers = {limit: opened(Path(folder), limits, users, days) for limit, limits in LIMITS.items()}
        for _ in range(turns):
            for limit in random.sample([*ledgers], len(ledgers)):
                took[limit].append(turn(*ledgers[limit], users, rounds, later, single))
        for accountant, _ in ledgers.values():
            accountant.close()
    for limit, each in took.items():
        ratio = statistics.median(one / other for one, other in zip(each, took["month"], strict=True))
        print(f"{name:14} {limit:24} {statistics.median(each):7.1f} µs   {ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=30, help="turns of each ledger")
    parser.add_argument("--users", type=int, default=64, help="users in a batch")
    asked = parser.parse_args()
    users = [f"user-{number}" for number in range(asked.users)]
    print("history        limit                    a charge    ratio to month")
    measure("weekly", range(0, 29, 7), users, asked.turns)
    measure("daily", range(29), users, asked.turns)
    measure("each day", range(29), users, asked.turns, later=1, rounds=1)
    measure("single, weekly", range(0, 29, 7), users, asked.turns, rounds=1, single=True)
    measure("single, daily", range(29), users, asked.turns, rounds=1, single=True)


if __name__ == "__main__":
    main()
