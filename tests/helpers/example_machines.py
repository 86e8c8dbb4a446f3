"""An example plugin, installed for real into a folder of a test, and commands that see it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "tutorials" / "examples"


class Machine:
    """A folder with the installed plugin, which runs commands that see it."""

    def __init__(self, folder: Path, site: Path, programs: str) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "PATH": programs,
            "PYTHONPATH": str(site),
            "LDP_BUDGET_LEDGER": str(folder / "budget.db"),
            "LDP_BUDGET_CERTIFICATES": str(folder / "certificates.json"),
        }

    def python(self, *arguments: object, cwd: Path | None = None) -> str:
        return self._run(sys.executable, *map(str, arguments), cwd=cwd or self.folder)

    def ldp_budget(self, *arguments: object) -> Any:
        """The JSON that a command prints."""
        program = shutil.which("ldp-budget", path=self.environment["PATH"])
        assert program is not None
        return json.loads(self._run(program, *map(str, arguments), "--json", cwd=self.folder))

    def _run(self, *command: str, cwd: Path) -> str:
        done = subprocess.run(command, cwd=cwd, env=self.environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def copied(name: str, folder: Path) -> Path:
    """A copy of the distribution, so that nothing is built among the documents."""
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    return Path(shutil.copytree(EXAMPLES / name, folder / name, ignore=ignored))


def installed(source: Path, folder: Path, programs: str) -> Machine:
    """A machine that has it."""
    site = folder / "site"
    made = Machine(folder, site, programs)
    options = ("--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check", "--target", site)
    made.python("-m", "pip", "install", *options, source)
    return made
