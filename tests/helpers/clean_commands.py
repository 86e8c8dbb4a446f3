"""Commands of an installed copy, in an environment without the settings of the caller."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def run(*command: str | Path, cwd: Path, code: int = 0, timeout: float = 500) -> str:
    """Run a command in a folder, with a ledger there; return what it prints. Fails on another exit code."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LDP_BUDGET_"))}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**kept, "LDP_BUDGET_LEDGER": str(cwd / "ledger.db"), "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout
