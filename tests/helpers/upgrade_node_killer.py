"""Upgrades of a ledger on a Citus cluster that are killed, and of which a node is killed; run by `test_upgrade`.

    python upgrade_node_killer.py KILLS NODES

First KILLS upgrades are killed as in `upgrade_killer`. Then NODES upgrades stop at a step, a node is killed, and they go
on; the nodes take turns. The node is started again, and the ledger must be as after a kill. A line of JSON for each.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import made_up_version
import upgrade_killer
from citus_servers import OwnNodes, own_cluster
from ldp_budget import Accountant

PARTITIONS = 4


def new_ledger(nodes: OwnNodes) -> str:
    ledger = nodes.new_ledger(PARTITIONS)
    with Accountant(ledger) as accountant:
        accountant.set_policy("default", ["lifetime=900"])
        accountant.spend_many(upgrade_killer.USERS, made_up_version.COIN, key="bulk")
    return ledger


class OnNodes:
    """A ledger on a cluster of which nodes are killed."""

    known = made_up_version.SERVER - 1

    def __init__(self, nodes: OwnNodes, ledger: str) -> None:
        self._nodes, self._schema = nodes, ledger.rpartition("%3D")[2]

    def version(self) -> int:
        return int(bytes(self._nodes.run(f"SELECT value FROM {self._schema}.meta WHERE name = 'schema'")[0][0]))


def kill_node(nodes: OwnNodes, number: int, folder: Path, chance: random.Random) -> dict[str, Any]:
    victim = nodes.servers[number % len(nodes.servers)]
    way = upgrade_killer.WAYS[number % 2]
    ledger = new_ledger(nodes)

    def disturb(upgrader: upgrade_killer.Child) -> None:
        deadline = time.monotonic() + upgrade_killer.PATIENCE
        while ["reached"] not in upgrader.lines and time.monotonic() < deadline:
            time.sleep(0.01)
        if goes_on_first := chance.random() < 0.5:
            os.kill(upgrader.pid, signal.SIGCONT)
            time.sleep(chance.uniform(0, upgrade_killer.LONGEST))
        victim.kill()
        if not goes_on_first:
            os.kill(upgrader.pid, signal.SIGCONT)
        time.sleep(chance.uniform(0, 1))
        victim.restart()

    place = OnNodes(nodes, ledger)
    plan = {"node": number % len(nodes.servers), "way": way, "step": 1 + 2 * number, "seconds": None}
    return upgrade_killer.kill_one(ledger, place, folder, chance, disturb, **plan)


def main(kills: str, of_nodes: str) -> None:
    chance = random.Random(int(kills))
    with own_cluster() as nodes, tempfile.TemporaryDirectory() as folder:
        upgrade_killer.main(new_ledger(nodes), kills, "0", "2")
        for number in range(int(of_nodes)):
            print(json.dumps(kill_node(nodes, number, Path(folder), chance)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
