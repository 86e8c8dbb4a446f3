"""Backfill of a new window by a process that is killed, or while another one spends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from contract.acts import check, coin, spent
from ldp_budget import Accountant

# -- real processes ------------------------------------------------------------------------------------------

FILL = """
import sys
from ldp_budget import Accountant
from ldp_budget.ledger import window_backfill
window_backfill._MOST_AT_ONCE, window_backfill._ACCOUNTS_TOGETHER = 100, 50
read, steps = window_backfill._read_part, iter(range(10**9))
def read_part(*arguments):
    part = read(*arguments)
    print(next(steps), flush=True)
    sys.stdin.readline()
    return part
window_backfill._read_part = read_part
Accountant(sys.argv[1], create=False).set_policy("default", ["lifetime=900", "month=90"])
print("filled", flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=900"])
        accountant.spend_many([f"user-{number}" for number in range(500)], coin("0.1"))
    return path


def fill_in_process(path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FILL, str(path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.some(2)
@pytest.mark.parametrize("steps", [0, 1, 9])
def test_backfill_killed_leaves_no_half_filled_period(path: Path, steps: int) -> None:
    with fill_in_process(path) as filler, Accountant(path, create=False) as accountant:
        assert filler.stdin is not None
        assert filler.stdout is not None
        for line in filler.stdout:
            if int(line) == steps:
                break
            filler.stdin.write("\n")
            filler.stdin.flush()
        os.kill(filler.pid, signal.SIGKILL)
        filler.wait()
        check(accountant)
        assert list(spent(accountant, "user-0")) == ["lifetime"]
        for user in ("user-0", "user-499", "new"):
            assert accountant.spend(user, coin("0.2"))
        accountant.set_policy("default", ["lifetime=900", "month=90"])
        check(accountant)
        for user in ("user-0", "user-499", "user-250", "new"):
            assert spent(accountant, user)["month"] == spent(accountant, user)["lifetime"] > 0
