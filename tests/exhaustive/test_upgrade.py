"""An upgrade of the tables: under a running process, killed at every step, and beside an old process.

The next version of the tables is made up, see `made_up_version`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ldp_budget
import made_up_version
import upgrade_killer
from ldp_budget import Accountant
from postgres_places import new_ledger

KILLS = 200


def a_file(tmp_path: Path) -> str:
    return str(tmp_path / "budget.db")


def a_server(tmp_path: Path) -> str:
    return new_ledger(2)


@pytest.fixture(params=[a_file, a_server], ids=["file", "server"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path, own_keys: None) -> str:
    """A ledger of the version before, with charges."""
    place: str = request.param(tmp_path)
    with Accountant(place) as accountant:
        accountant.set_policy("default", ["lifetime=900"])
        accountant.spend_many([f"user-{number}" for number in range(50)], made_up_version.COIN, key="bulk")
    return place


def run(program: Any, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, program.__file__, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=800)


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


@pytest.mark.exhaustive
def test_upgrade_that_is_killed_at_each_step_leaves_a_whole_ledger(ledger: str) -> None:
    done = run(upgrade_killer, ledger, KILLS)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(not each["whole"] for each in told) == KILLS
    assert [each for each in told if not each["holds"]] == [], "unreadable, or does not verify"
    assert [each["lost"] for each in told if each["lost"]] == []
    assert [each for each in told if "failed" in each] == []
    versions = {each["version"] for each in told}
    assert len(versions) == 2, "kills at all steps, and a complete upgrade after the last"
    assert all(each["refused"] for each in told if each["whole"]), "an old process beside the new version"
