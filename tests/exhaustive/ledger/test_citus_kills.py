"""300 kills of nodes of a Citus cluster under load, the coordinator among them, while policies change and shards move."""

from __future__ import annotations

import pytest

from citus_killer import Killer
from citus_servers import own_cluster

pytestmark = pytest.mark.usefixtures("own_keys")
KILLS = 30


@pytest.mark.parametrize("seed", range(10))
def test_kills_of_nodes_lose_no_charge_and_double_none(seed: int) -> None:
    with own_cluster() as nodes:
        tally = Killer(nodes, seed).run(KILLS)
    print(tally)
    assert tally.acknowledged > KILLS
    assert (tally.kills, tally.verified) == (KILLS, KILLS)
    assert (tally.lost, tally.wrong_sums, tally.overdrawn) == (0, [], [])
