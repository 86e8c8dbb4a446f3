"""Sandbox ledgers on a server, and their copies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from command_line import CommandLine
from postgres_places import new_ledger

RR = ("rr", "--epsilon", "1")


def of_2028(command: CommandLine) -> None:
    command("ledger", "init", "--sandbox")
    command("policy", "set", "default", "--limit", "lifetime=4", "--limit", "day=1", "--at", "2028-01-01")


@pytest.fixture
def sandbox(command: CommandLine, begun: Any) -> CommandLine:
    """Commands on a sandbox, with a policy of New Year's Day 2028."""
    begun(of_2028, command)
    return command


# -- the two never mix --------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_copy_of_a_sandbox_stays_a_sandbox(
    sandbox: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    real, there = tmp_path / "real.db", new_ledger(2)
    CommandLine(real)("ledger", "init")
    told = sandbox.error("ledger", "move", "--yes", sandbox.ledger, real)
    assert "is a sandbox. Nothing was moved. Name a new place." in told
    assert "is a real ledger. Nothing was moved." in sandbox.error("ledger", "move", "--yes", real, sandbox.ledger)
    assert "--at works with a sandbox ledger only" in sandbox.error(
        "ledger", "move", "--yes", real, there, "--at", "2028-02-01", code=2
    )
    assert sandbox.json("ledger", "move", "--yes", sandbox.ledger, there)["sandbox"] is True
    on_server = CommandLine(there)
    assert on_server.json("spend", "alice", *RR, "--at", "2028-02-01")["sandbox"] is True
    assert "newest entry of 2028-02-01" in on_server.error("spend", "alice", *RR, "--at", "2028-01-31")


@pytest.mark.exhaustive
def test_sandbox_on_postgres_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    on_server = CommandLine(new_ledger(3))
    assert "--at needs a sandbox. Create one: ldp-budget ledger init --sandbox" in on_server.error(
        "balance", "alice", "--at", "2028-01-01"
    )
    assert on_server.json("ledger", "init", "--sandbox")["sandbox"] is True
    assert "is a sandbox already. It was not changed." in on_server.error("ledger", "init")
    on_server("policy", "set", "default", "--limit", "lifetime=4", "--limit", "day=1", "--at", "2028-01-01")
    for day, code in (("2028-01-01", 0), ("2028-01-01T23:59", 3), ("2028-01-02", 0)):
        on_server("spend", "alice", *RR, "--at", day, code=code)
    assert on_server.json("ledger", "verify", "--at", "2028-01-03") == {
        **on_server.json("ledger", "verify"),
        "ok": True,
        "sandbox": True,
    }
