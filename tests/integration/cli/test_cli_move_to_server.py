"""`ldp-budget ledger move` to a PostgreSQL server and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine
from postgres_places import new_ledger


@pytest.fixture
def first(tmp_path: Path) -> str:
    """The address of a ledger with one user, who has something reserved and asked something by a key."""
    path = str(tmp_path / "first.db")
    command = CommandLine(path)
    command("policy", "set", "default", "--limit", "lifetime=2", "--limit", "day=1")
    command("spend", "alice", "rr", "--epsilon", "0.5", "--key", "k")
    return path


@pytest.mark.exhaustive
def test_ledger_move_to_a_server_and_back_keeps_everything(
    first: str, tmp_path: Path, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    there, back = new_ledger(3), str(tmp_path / "back.db")
    receipt = CommandLine(first).json("reserve", "alice", "rr", "--epsilon", "0.25")["receipt"]
    key = CommandLine(first).json("spend", "alice", "rr", "--epsilon", "0.5", "--key", "k")["receipt"]
    copied = command.json("ledger", "move", "--yes", first, there)
    assert copied["from"]["ledger"] == first
    assert copied["to"]["ledger"].startswith("postgresql://")
    assert "partitions" not in copied["to"]["ledger"]
    assert (copied["accounts"], copied["entries"]) == (1, 2)
    assert CommandLine(first).json("ledger", "verify", "--expect", copied["from"]["head"])["ok"]
    told = CommandLine(first).error("spend", "alice", "rr", "--epsilon", "0.1")
    assert f"{first}: it was moved to {copied['to']['ledger']}. Nothing was charged. Use that ledger." in told
    on_server = CommandLine(there)
    assert on_server.json("ledger", "verify", "--expect", copied["to"]["head"])["ok"]
    assert on_server.json("spend", "alice", "rr", "--epsilon", "0.5", "--key", "k")["receipt"] == key
    assert on_server.json("commit", receipt)["status"] == "committed"
    shown = command("ledger", "move", "--yes", there, back).stdout.splitlines()
    assert shown[0] == "moved, and both verify: accounts 1, entries 3"
    assert shown[2].startswith(f"  to {back}, open, head ")
    assert CommandLine(back).json("commit", receipt)["repeated"]
    assert command("ledger", "move", "--yes", there, back).stdout.splitlines() == shown, "done is done"
    assert not Path(command.ledger).exists(), "--ledger has no part in it"
