"""A bulk run that a signal stops continues later, and charges each user once."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine
from half_poll import OUE, poll_of_a_half


@pytest.fixture
def budget(command: CommandLine, begun: Any) -> CommandLine:
    """A ledger with a lifetime limit of 1 and a poll that costs half of it."""
    begun(poll_of_a_half, command)
    return command


# -- Ctrl-C -----------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_signal_stops_a_run_that_continues_later(budget: CommandLine, tmp_path: Path) -> None:
    users = [f"u{number}" for number in range(60_000)]
    command = [sys.executable, "-m", "ldp_budget_cli", "spend-many", "-", *OUE]
    environment = {**os.environ, "LDP_BUDGET_LEDGER": str(budget.ledger)}
    pipe = subprocess.PIPE
    # What a shell begins in the background hears no Ctrl-C, nor do its children.
    hears = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    run = subprocess.Popen(
        command, env=environment, text=True, stdin=pipe, stdout=pipe, stderr=pipe, preexec_fn=hears
    )
    assert run.stdin is not None
    assert run.stderr is not None
    run.stdin.write("\n".join(["user", *users]))
    run.stdin.flush()
    assert "users from column user of -" in run.stderr.readline()
    assert "charging" in run.stderr.readline()
    run.send_signal(signal.SIGINT)
    message = run.stderr.read()
    run.communicate()
    assert run.returncode == 130
    assert "50000 users were charged and 0 refused" in message
    [key] = re.findall(r"--key (\S+)", message)
    done = budget("spend-many", "-", *OUE, "--key", key, input="\n".join(["user", *users]))
    assert done.stdout == "spent: 10000, refused: 0, repeated: 50000\n"
