"""Ledger files under several processes, forks and kills: none loses an acknowledged charge."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ldp_budget import Accountant, Mechanism

Coin = Callable[[Any], Mechanism]

PRELUDE = """
import os, signal, sys, threading, time
import ldp_budget
path = sys.argv[1]
coin = ldp_budget.mechanism("rr")(epsilon="0.1")
"""


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Run a script in a process of its own; `path` is its first argument."""
    command = [sys.executable, "-c", PRELUDE + dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def output(process: subprocess.Popen[str]) -> str:
    """Return the output of a process, which must succeed."""
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return printed


@pytest.fixture
def path(tmp_path: Path, coin: Coin) -> Path:
    """A ledger in which alice spent 0.1 once, closed."""
    path = tmp_path / "budget.db"
    with Accountant(path) as accountant:
        accountant.set_policy("default", ["lifetime=1000"])
        accountant.spend("alice", coin("0.1"))
    return path


# -- many processes, killed ones, forked ones ----------------------------------------------------------------


@pytest.mark.exhaustive
def test_create_by_several_processes_gives_all_one_ledger(tmp_path: Path) -> None:
    """The file and its key appear one after the other; another process must not take the gap for a loss."""
    script = """
        for number in range(8):
            while not os.path.exists(f"{path}/go"): pass
            with ldp_budget.Accountant(f"{path}/{number}.db") as accountant:
                accountant.set_policy(f"of-{os.getpid()}", ["lifetime=1"])
        """
    makers = [start(script, tmp_path) for _ in range(4)]
    (tmp_path / "go").touch()
    for maker in makers:
        output(maker)
    for number in range(8):
        with Accountant(tmp_path / f"{number}.db", create=False) as accountant:
            assert len(accountant.policies()) == 4
