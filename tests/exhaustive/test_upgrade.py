"""An upgrade of the tables: under a running process, killed at every step, and beside an old process.

The next version of the tables is made up, see `made_up_version`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ldp_budget
import made_up_version
import upgrade_killer
import upgrade_node_killer
from citus_servers import CITUS, reason_for_none, shared_cluster
from ldp_budget import Accountant
from ldp_budget_postgres.schema import PARTITIONED
from postgres_places import new_ledger

KILLS, PARTS = 200, 4
"""The kills of each engine, and the tests among which they are divided."""
ON_CITUS, OF_NODES = 20, 6
"""Upgrades of a ledger on Citus that are killed, and of which a node is killed."""


def a_file(tmp_path: Path) -> str:
    return str(tmp_path / "budget.db")


def a_server(tmp_path: Path) -> str:
    return new_ledger(2)


def a_cluster(tmp_path: Path) -> str:
    return shared_cluster().new_ledger(4)


@pytest.fixture(params=[a_file, a_server, a_cluster], ids=["file", "server", "cluster"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path, own_keys: None) -> str:
    """A ledger of the version before, with charges."""
    place: str = request.param(tmp_path)
    with Accountant(place) as accountant:
        accountant.set_policy("default", ["lifetime=900"])
        accountant.spend_many([f"user-{number}" for number in range(50)], made_up_version.COIN, key="bulk")
    return place


def run(program: Any, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, program.__file__, *map(str, words)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}  # of `contract`, which helpers import
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=880)


def start(*words: str) -> subprocess.Popen[str]:
    """Start a process that charges, and wait for its first charge."""
    command = [sys.executable, made_up_version.__file__, *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "opened\n"
    assert process.stdout.readline().startswith("spent ")
    return process


def test_upgrade_under_a_running_process_refuses_it_and_loses_no_charge(ledger: str) -> None:
    old = start("charge", ledger, "old")
    assert run(made_up_version, "upgrade", ledger, "pre").returncode == 0
    assert old.poll() is None, "the version before charges on"
    with Accountant(ledger, create=False) as accountant:
        assert accountant.verify().ok, "the version before finds nothing wrong after the pre step"
    done = run(made_up_version, "upgrade", ledger, "post")
    assert done.returncode == 0, done.stderr
    told, _ = old.communicate(timeout=60)
    *charged, last = told.splitlines()
    assert "were upgraded to version" in last
    assert "Nothing was charged" in last
    late = run(made_up_version, "charge", ledger, "late")
    assert "were upgraded to version" in late.stderr
    new = start("newer", ledger, "old")  # its first keys are those of the old process
    new.kill()
    assert "repeated" not in new.communicate()[1]
    assert run(made_up_version, "upgrade", ledger, "post").stdout.split() == [], "nothing is left to do"
    assert len(charged) > 0


def test_ledger_that_does_not_verify_is_not_upgraded(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=900"])
        accountant.spend("ann", ldp_budget.mechanism("rr")(epsilon=1))
    connection = sqlite3.connect(path)
    connection.execute("UPDATE journal SET reports = 2 WHERE kind = 'spent'")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    done = run(made_up_version, "upgrade", path, "post")
    assert "it does not verify" in done.stderr
    assert path.read_bytes() == before


@pytest.mark.parametrize("ledger", [a_file, a_server], ids=["file", "server"], indirect=True)
@pytest.mark.parametrize("part", range(PARTS))
def test_upgrade_that_is_killed_at_each_step_leaves_a_whole_ledger(ledger: str, part: int) -> None:
    """Each part kills at each `PARTS`-th step, on from another one."""
    done = run(upgrade_killer, ledger, KILLS // PARTS, part, PARTS)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(each["killed"] for each in found) == KILLS // PARTS
    assert [each for each in found if each["problems"] or each["failed"]] == [], (
        "unreadable, does not verify, or confused"
    )
    assert [each for each in found if each["lost"] or each["doubled"]] == []
    assert all(each["refused"] for each in found if each["survived"]), "an old process beside the new version"
    for way in upgrade_killer.WAYS:
        first = [each for each in found if each["way"] == [*way] and not each["seconds"]]
        assert [each["step"] for each in first] == [*range(part, PARTS * len(first), PARTS)]
        assert [each["killed"] for each in first] == [True] * (len(first) - 1) + [False], "up to a complete upgrade"


@pytest.mark.parametrize("ledger", [a_cluster], ids=["cluster"], indirect=True)
def test_upgrade_of_a_ledger_on_citus_distributes_its_new_tables(ledger: str) -> None:
    for step in ("pre", "post"):
        done = run(made_up_version, "upgrade", ledger, step)
        assert done.returncode == 0, done.stderr
        rows = shared_cluster().run(
            "SELECT c.relname FROM pg_dist_partition JOIN pg_class c ON c.oid = logicalrelid"
            " WHERE partmethod = 'h' AND relnamespace = %s::regnamespace",
            (ledger.rpartition("%3D")[2],),
        )
        assert {name for (name,) in rows} == {*PARTITIONED, "remarks"}


def test_upgrade_on_citus_that_is_killed_or_loses_a_node_leaves_a_whole_ledger(own_keys: None) -> None:
    if (why := reason_for_none()) or "://" in os.environ[CITUS]:
        pytest.skip(why or "this test ends nodes")
    done = run(upgrade_node_killer, ON_CITUS, OF_NODES)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    of_nodes = [each for each in found if "node" in each]
    assert sum(each["killed"] for each in found if each not in of_nodes) == ON_CITUS
    assert len(of_nodes) == OF_NODES
    assert [each for each in found if each["problems"] or each["failed"] or each["lost"] or each["doubled"]] == []
    assert all(each["refused"] for each in found if each["survived"]), "an old process beside the new version"


LOADED = """
import sys
import made_up_version
from ldp_budget.accounting.upgrade import upgrade
from ldp_budget.ledger.sqlite.file_guard import DatabaseFile

take_turn = DatabaseFile.take_turn
DatabaseFile.take_turn = lambda self: (print("sqlite_utils" in sys.modules), take_turn(self))
made_up_version.install()
upgrade(sys.argv[1])
"""


def test_upgrade_of_a_file_loads_sqlite_utils_before_it_takes_the_writer_lock(tmp_path: Path) -> None:
    """With pandas that takes seconds, in which no process could charge."""
    path = tmp_path / "budget.db"
    Accountant(path).close()
    helpers = {**os.environ, "PYTHONPATH": str(Path(made_up_version.__file__).parent)}
    command = [sys.executable, "-c", LOADED, str(path)]
    done = subprocess.run(command, env=helpers, capture_output=True, text=True, timeout=100)
    assert done.stdout.split() == ["True"], done.stderr
