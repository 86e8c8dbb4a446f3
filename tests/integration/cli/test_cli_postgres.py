"""The command line on a ledger that a server keeps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import CommandLine
from postgres_places import new_ledger


@pytest.fixture
def on_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """Commands on a ledger of four partitions; its key is in the user's folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return CommandLine(new_ledger(4))


def test_commands_with_a_postgres_ledger_work(on_server: CommandLine, tmp_path: Path) -> None:
    assert "does not exist" in on_server.error("balance", "alice")
    made = on_server.json("ledger", "init")
    assert made["created"]
    assert made["ledger"].startswith("postgresql://")
    assert "partitions" not in made["ledger"], "only where it is"
    assert "is a ledger already. It was not changed" in on_server.error("ledger", "init")
    on_server("policy", "set", "default", "--limit", "lifetime=2", "--limit", "day=1")
    assert on_server.json("spend", "alice", "rr", "--epsilon", "1", "--key", "k")["status"] == "spent"
    assert on_server.json("spend", "alice", "rr", "--epsilon", "1", code=3)["status"] == "refused"
    (tmp_path / "users.csv").write_text("user\n" + "".join(f"u{number}\n" for number in range(50)))
    assert (
        on_server.json("spend-many", tmp_path / "users.csv", "rr", "--epsilon", "0.5", "--key", "run")["spent"] == 50
    )

    head = on_server("ledger", "checkpoint").stdout.strip()
    on_server("spend", "bob", "rr", "--epsilon", "0.25")
    assert on_server("ledger", "verify", "--expect", head).stdout.startswith("holds: ")
    assert "rolled back" in on_server("ledger", "verify", "--expect", f"9{head}", code=1).stdout
    assert on_server.json("ledger", "stats")["partitions"] == 4
    lines = [json.loads(line) for line in on_server("ledger", "export").stdout.splitlines()]
    assert sum(line["kind"] == "spent" for line in lines) == 52
    assert "cannot be backed up from here" in on_server.error("ledger", "backup", tmp_path / "copy.db")
