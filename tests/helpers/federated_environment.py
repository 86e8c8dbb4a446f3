"""An environment with one library of federated learning and this distribution: the two libraries do not fit the service."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ROOT / "tests" / "data" / "federated"


@contextlib.contextmanager
def one_federation() -> Iterator[None]:
    """Wait until no other test of this machine runs NVFlare's federation, whose ports are fixed."""
    with open(Path(tempfile.gettempdir()) / "ldp-budget-nvflare.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def kill_all_of(folder: Path) -> None:
    """Kill the processes whose command names a folder of a test."""
    found = subprocess.run(["pgrep", "-f", str(folder)], capture_output=True, text=True).stdout
    for pid in found.split():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


class Environment:
    """The programs of a new virtual environment in a folder."""

    def __init__(self, folder: Path, *requirements: str) -> None:
        self.bin = folder / "bin"
        # The pip that is there serves it: one of its own would take longer to install than to run.
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(self.bin / "python"),
            "install",
            "--quiet",
            "--no-compile",
        ]
        had = subprocess.run([*pip, *requirements], capture_output=True, text=True)
        if had.returncode:
            pytest.skip(f"{' '.join(requirements)} cannot be had here: {had.stderr.strip()[-200:]}")
        self.env = {**os.environ, "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", "HOME": str(folder)}
        self.env |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_DEDUP_LOGS": "0", "PYTHONUNBUFFERED": "1"}

    def run(self, program: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
        command = [str(self.bin / program), *map(str, arguments)]
        env = {**self.env, **options.pop("env", {})}
        return subprocess.run(command, text=True, capture_output=True, env=env, **{"check": True, **options})

    def ledger(self, path: Path, limit: str) -> Path:
        """Make a ledger with this limit."""
        self.run("ldp-budget", "--ledger", path, "ledger", "init")
        self.run("ldp-budget", "--ledger", path, "policy", "set", "default", "--limit", limit)
        return path
