"""`ledger verify` shows at a terminal how far it is, and nowhere else."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from contract.acts import coin
from ldp_budget import Accountant

VERIFY = "from ldp_budget_cli import main; main()"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Accountant(tmp_path / "budget.db") as accountant:
        accountant.set_policy("default", ["lifetime=9"])
        accountant.spend_many([f"user-{number}" for number in range(40)], coin(1))
    return tmp_path / "budget.db"


def verify(path: Path, stderr: int) -> str:
    """Return its output, with its errors on `stderr`."""
    command = [sys.executable, "-c", VERIFY, "--ledger", str(path), "ledger", "verify", "--json"]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, check=True, text=True).stdout


def test_progress_on_a_terminal_is_shown(path: Path) -> None:
    ours, theirs = pty.openpty()
    out = verify(path, theirs)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # which is how a terminal ends
        while part := os.read(ours, 1 << 16):
            shown += part
    os.close(ours)
    assert b"verifying" in shown
    assert b"100%" in shown
    assert json.loads(out)["ok"], "the bar is no part of the answer"


def test_progress_without_a_terminal_is_silent(path: Path, tmp_path: Path) -> None:
    with open(tmp_path / "errors", "w+b") as errors:
        assert json.loads(verify(path, errors.fileno()))["ok"]
        errors.seek(0)
        assert errors.read() == b""


def test_progress_passes_errors_to_the_caller(path: Path) -> None:
    told: list[tuple[int, int]] = []
    with Accountant(path, create=False) as accountant:
        assert accountant.verify(on_progress=lambda done, total: told.append((done, total))).ok
        assert told == sorted(told)
        assert told[-1] == (81, 81), "entries and accounts"

        def fail(done: int, total: int) -> None:
            raise ValueError("no room to print")

        with pytest.raises(ValueError, match="no room to print"):
            accountant.verify(on_progress=fail)
