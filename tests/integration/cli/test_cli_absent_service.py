"""A command names a service that does not listen at once."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ldp_budget_cli import app

# -- a service that does not answer ------------------------------------------------------------------------------


def test_service_that_does_not_listen_is_named_at_once(tmp_path: Path) -> None:
    pytest.importorskip("httpx2")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"  # bound, but nothing listens
        command = [sys.executable, "-m", "ldp_budget_cli", "--ledger", address, "ledger", "stats"]
        run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={app.KEY_VARIABLE: "k", "PATH": ""})
        assert run.stderr is not None
        line = run.stderr.readline()
        run.kill()
        run.communicate()
    assert re.fullmatch(rf"{address}: [^.]+\. Retrying for \d+ s\. Ctrl-C stops\.\n", line)
