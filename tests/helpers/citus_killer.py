"""Kills of the nodes of a Citus cluster under load: charges, changes of policies, and moves of shards.

After each kill the ledger must verify. In the end each charge that was acknowledged must be there once, each that was
refused with an error must be there at most once, and no user may have more than the limit.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import ldp_budget
from citus_servers import OwnNodes
from ldp_budget import Accountant, LedgerError

T = TypeVar("T")
COST = "0.001"
COIN = ldp_budget.mechanism("rr")(epsilon=COST)
TIGHT, MOST = "0.02", 20
"""The limit of the policy `tight`, and the number of charges that fit."""
USERS, THREADS = 40, 8
PATIENCE = 120.0  # seconds, for a cluster that was whole again


@dataclass
class Tally:
    """What a run of kills has seen."""

    kills: int = 0
    acknowledged: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    policies: int = 0
    moves: int = 0
    verified: int = 0
    lost: int = 0
    settled: Counter[bool] = field(default_factory=Counter)
    """Of the charges with an error: how many were there when they were repeated."""
    wrong_sums: list[str] = field(default_factory=list)
    overdrawn: list[str] = field(default_factory=list)


class Killer:
    """A ledger under load on nodes that are killed; one run with one seed."""

    def __init__(self, nodes: OwnNodes, seed: int, partitions: int = 8) -> None:
        self.nodes, self._random = nodes, random.Random(seed)
        self.ledger = nodes.new_ledger(partitions)
        self.tally = Tally()
        self._acknowledged: list[tuple[str, str, str]] = []
        self._failed: list[tuple[str, str, str]] = []
        self._done = threading.Event()
        self._lists = threading.Lock()

    def run(self, kills: int) -> Tally:
        """Kill nodes, one after the other, and return what was seen."""
        with Accountant(self.ledger) as accountant:
            accountant.set_policy("default", ["lifetime=1000", "day=500"])
            accountant.set_policy("tight", [f"lifetime={TIGHT}"])
            threads = [
                *(threading.Thread(target=self._charge, args=(accountant, number)) for number in range(THREADS)),
                threading.Thread(target=self._change_policies, args=(accountant,)),
                threading.Thread(target=self._move_shards),
            ]
            for thread in threads:
                thread.start()
            try:
                for _ in range(kills):
                    self._kill(accountant)
            finally:
                self._done.set()
                for thread in threads:
                    thread.join()
            self._settle(accountant)
        return self.tally

    def _kill(self, accountant: Accountant) -> None:
        time.sleep(self._random.uniform(0.2, 1.2))
        server = self._random.choice(self.nodes.servers)
        server.kill()
        time.sleep(self._random.choice([0.0, 0.3, 1.0]))
        server.restart()
        self.tally.kills += 1
        if patiently(accountant.verify).ok:
            self.tally.verified += 1

    def _charge(self, accountant: Accountant, number: int) -> None:
        count = 0
        while not self._done.is_set():
            policy = "tight" if count % 5 == 0 else "default"
            charge = (
                policy,
                f"{policy} {(number * 7 + count) % (4 if policy == 'tight' else USERS)}",
                f"{number}-{count}",
            )
            try:
                receipt = accountant.spend(charge[1], COIN, policy=policy, key=charge[2])
            except LedgerError as error:
                with self._lists:
                    self._failed.append(charge)
                    self.tally.errors["unknown" if error.unknown else "not charged"] += 1
                time.sleep(0.05)
            else:
                if receipt.status == "spent":
                    with self._lists:
                        self._acknowledged.append(charge)
            count += 1

    def _change_policies(self, accountant: Accountant) -> None:
        day = 500
        while not self._done.wait(0.5):
            day += 1
            try:
                accountant.set_policy("default", ["lifetime=1000", f"day={day}"])
                self.tally.policies += 1
            except LedgerError:
                continue

    def _move_shards(self) -> None:
        import psycopg

        schema = self.ledger.rpartition("%3D")[2]
        ports = [server.port for server in self.nodes.servers[1:]]
        while not self._done.wait(1.0):
            try:
                [(shard, port)] = self.nodes.run(
                    "SELECT shardid, nodeport FROM pg_dist_shard JOIN pg_dist_placement USING (shardid)"
                    f" JOIN pg_dist_node USING (groupid) WHERE logicalrelid = '{schema}.partitions'::regclass"
                    " ORDER BY random() LIMIT 1"
                )
                other = next(each for each in ports if each != port)
                self.nodes.run(
                    f"SELECT citus_move_shard_placement({shard}, '127.0.0.1', {port}, '127.0.0.1', {other})"
                )
                self.tally.moves += 1
            except (psycopg.Error, ValueError):
                continue  # a node was killed meanwhile

    def _settle(self, accountant: Accountant) -> None:
        """Repeat every charge, and compare the sums."""
        tally = self.tally
        tally.acknowledged = len(self._acknowledged)
        there: Counter[tuple[str, str]] = Counter()
        for charge in self._acknowledged:
            policy, user, key = charge
            if not patiently(lambda: accountant.spend(user, COIN, policy=policy, key=key)).repeated:  # noqa: B023
                tally.lost += 1
            there[policy, user] += 1
        for policy, user, key in self._failed:
            receipt = patiently(lambda: accountant.spend(user, COIN, policy=policy, key=key))  # noqa: B023
            tally.settled[receipt.repeated] += 1
            there[policy, user] += receipt.status == "spent"
        for (policy, user), count in there.items():
            spent = accountant.balance(user, policy=policy).limits[0].spent.epsilon
            if round(spent / float(COST)) != count:
                tally.wrong_sums.append(f"{user}: {spent} of {count} charges")
            if policy == "tight" and count > MOST:
                tally.overdrawn.append(f"{user}: {count} charges")


def patiently(action: Callable[[], T]) -> T:
    """Repeat an action while a node is not there yet, for a bounded time."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return action()
        except LedgerError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
