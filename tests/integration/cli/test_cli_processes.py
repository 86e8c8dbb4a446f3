"""`spend` in processes of its own: the default ledger, exit codes and streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import CommandLine


@pytest.fixture
def budget(command: CommandLine) -> CommandLine:
    """A ledger with a lifetime limit of 1."""
    command("policy", "set", "default", "--limit", "lifetime=1")
    return command


# -- which ledger --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [["ledger", "init"], ["policy", "set", "default", "--limit", "lifetime=1"]])
def test_ledger_defaults_to_the_application_folder(tmp_path: Path, make: list[str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "LDP_BUDGET_LEDGER"}
    environment |= {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "settings")}
    run(*make, environment=environment)
    [ledger] = tmp_path.rglob("ledger.db")
    assert ledger.with_name("ledger.db.key").exists()


# -- in a process of its own ---------------------------------------------------------------------------------

MAIN = "from ldp_budget_cli import main; main()"


def run(*arguments: str, environment: dict[str, str], code: int = 0) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments], capture_output=True, text=True, env=environment, timeout=60
    )
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended


def test_exit_codes_and_streams_of_real_processes(budget: CommandLine) -> None:
    environment = {**os.environ, "LDP_BUDGET_LEDGER": str(budget.ledger)}
    large = ["oue", "--epsilon", "0.8", "--domain-size", "7"]
    done = run("spend", "alice", *large, "--json", environment=environment)
    assert json.loads(done.stdout)["status"] == "spent"
    assert done.stderr == ""
    refused = run("spend", "alice", *large, "--json", environment=environment, code=3)
    assert json.loads(refused.stdout)["status"] == "refused"
    failed = run("spend", "alice", *large, "--policy", "none", environment=environment, code=1)
    assert (failed.stdout, "Error: no policy is named 'none'" in failed.stderr) == ("", True)
    wrong = run("spend", "alice", "oue", "--epsilon", "nan", environment=environment, code=2)
    assert (wrong.stdout, "--epsilon must be a number > 0" in wrong.stderr) == ("", True)
