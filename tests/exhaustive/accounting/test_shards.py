"""A batch in shards: workers that are killed and restarted in other numbers charge no user twice."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'ldp-budget[interop]'")
import pyarrow
from pyarrow import parquet

import shard_worker
from ldp_budget import Accountant, KeyConflict
from ldp_budget.accounting import bulk_run
from postgres_places import new_ledger
from shard_worker import BATCH, COIN, RUN

USERS = 20 * BATCH + 17
POOR = 40  # whose budget is spent before


@pytest.fixture(params=["file", "postgresql"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    address = str(tmp_path / "budget.db") if request.param == "file" else new_ledger(8)
    with Accountant(address) as accountant:
        accountant.set_policy("default", ["lifetime=2"])
        accountant.spend_many([name(number) for number in range(POOR) for _ in range(2)], COIN)
    return address


def name(number: int) -> str:
    return f"person-{number}"


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    """All users, and every tenth once more, far apart in the order."""
    users = [*range(USERS), *range(0, USERS, 10)]
    random.Random(1).shuffle(users)
    path = tmp_path / "users.parquet"
    parquet.write_table(pyarrow.table({"user": [name(number) for number in users]}), path, row_group_size=700)
    return path


def start(ledger: str, listed: Path, *numbers: int) -> subprocess.Popen[str]:
    command = [sys.executable, shard_worker.__file__, ledger, str(listed), *map(str, numbers)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def lines(worker: subprocess.Popen[str]) -> Iterator[Any]:
    assert worker.stdout is not None
    for line in worker.stdout:
        yield json.loads(line)


def killed(ledger: str, listed: Path, shards: int, after: int) -> int:
    """The number of users in the batches that all workers reported, each killed after so many."""
    workers = [start(ledger, listed, which + 1, shards, after + 3) for which in range(shards)]
    told = 0
    for worker in workers:
        with worker:
            for users, _ in (next(lines(worker)) for _ in range(after)):
                told += users
            worker.send_signal(signal.SIGKILL)
        assert worker.returncode == -signal.SIGKILL
    return told


def finished(ledger: str, listed: Path, shards: int) -> dict[str, int]:
    """The counts of all shards: charged, refused, and already charged."""
    with Accountant(ledger, create=False) as accountant:
        results = [
            accountant.spend_many(
                shard_worker.users_of(str(listed)), COIN, key=RUN, shard=(which + 1, shards)
            ).to_json()
            for which in range(shards)
        ]
    return {what: sum(result[what] for result in results) for what in results[0]}


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_run, "BATCH", BATCH)


def test_spend_many_in_shards_killed_and_resumed_charges_each_user_once(ledger: str, listed: Path) -> None:
    with Accountant(ledger) as accountant:
        before = accountant.stats()["entries"]
    told = killed(ledger, listed, 2, 2)
    killed(ledger, listed, 3, 1)
    charges = USERS + len(range(0, USERS, 10)) - POOR - POOR // 10
    found = finished(ledger, listed, 3)
    assert found["repeated"] >= told - POOR - POOR // 10 > 0
    assert found["spent"] > 0
    assert found["spent"] + found["repeated"] == charges
    assert found["refused"] == POOR + POOR // 10
    # Once more, by one process or in any number of shards: no user is charged.
    for shards in (1, 2):
        assert finished(ledger, listed, shards) == {**found, "spent": 0, "repeated": charges}
    with Accountant(ledger) as accountant:
        balances = accountant.balances([name(number) for number in range(USERS)])
        spent = [balance.limits[0].spent_units.epsilon for balance in balances]
        assert spent == [(2 if n % 10 == 0 or n < POOR else 1) * 10**9 for n in range(USERS)]
        assert accountant.stats()["entries"] - before == charges
        assert accountant.verify().ok


def test_spend_many_shard_of_another_list_raises(ledger: str, listed: Path) -> None:
    finished(ledger, listed, 2)
    with Accountant(ledger) as accountant, pytest.raises(KeyConflict):
        accountant.spend_many(["another user"], COIN, key=RUN, shard=(1, 2))
