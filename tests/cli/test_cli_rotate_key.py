"""`ldp-budget ledger rotate-key`."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import CommandLine
from postgres_places import new_ledger


@pytest.fixture
def key(command: CommandLine) -> Path:
    """The key file of a ledger with one charge, bound to the idempotency key `k`."""
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("spend", "alice", "rr", "--epsilon", "1", "--key", "k")
    return Path(f"{command.ledger}.key")


def test_rotate_key_of_a_file_prepares_and_activates_in_one_command(command: CommandLine, key: Path) -> None:
    before = key.read_bytes()
    assert command("ledger", "rotate-key", "--yes").stdout == "active: secret 2\n"
    assert command.json("ledger", "rotate-key", "--yes") == {"active": 3}
    assert [row["state"] for row in command.json("ledger", "rotate-key", "--status")] == [
        "expired",
        "expired",
        "active",
    ]
    assert command("ledger", "verify").stdout.startswith("holds: ")
    assert command.json("spend", "alice", "rr", "--epsilon", "1", "--key", "k")["repeated"]
    key.write_bytes(before)
    told = command.error("spend", "alice", "rr", "--epsilon", "1")
    assert "has not got the secret 3 that is in force" in told
    assert "Nothing was charged" in told


def test_rotate_key_with_a_prepared_secret_activates_that_one(command: CommandLine, key: Path) -> None:
    command("ledger", "rotate-key", "--prepare")
    assert command.json("ledger", "rotate-key", "--yes") == {"active": 2}


def test_rotate_key_without_yes_and_terminal_changes_nothing(command: CommandLine, key: Path) -> None:
    before = key.read_bytes()
    assert "--yes: expected where nobody can be asked" in command.error("ledger", "rotate-key", code=2)
    assert key.read_bytes() == before
    assert [row["state"] for row in command.json("ledger", "rotate-key", "--status")] == ["active"]


def test_rotate_key_with_two_steps_is_wrong_usage(command: CommandLine, key: Path) -> None:
    told = command.error("ledger", "rotate-key", "--prepare", "--activate", "--yes", code=2)
    assert "--prepare and --activate are two steps; give one of them" in told
    assert [row["state"] for row in command.json("ledger", "rotate-key", "--status")] == ["active"]


def test_rotate_key_in_steps(command: CommandLine, key: Path) -> None:
    before = key.read_bytes()
    assert command("ledger", "rotate-key", "--prepare").stdout == "prepared: secret 2\n"
    assert command.json("ledger", "rotate-key", "--prepare") == {"prepared": 2}
    assert "--yes: expected where nobody can be asked" in command.error("ledger", "rotate-key", "--activate", code=2)
    assert command.json("ledger", "rotate-key", "--status") == [
        {"secret": 1, "state": "active", "partitions": 1},
        {"secret": 2, "state": "pending", "partitions": 0},
    ]
    assert command("ledger", "rotate-key", "--discard").stdout == "discarded\n"
    assert command.json("ledger", "rotate-key", "--discard") == {"discarded": False}
    assert key.read_bytes() == before

    command("ledger", "rotate-key", "--prepare")
    assert command("ledger", "rotate-key", "--activate", "--yes").stdout == "active: secret 2\n"
    again = command.json("ledger", "rotate-key", "--activate")
    assert again == {"active": 2}, "nothing is pending, so the command does not ask"
    assert [line.split() for line in command("ledger", "rotate-key", "--status").stdout.splitlines()] == [
        ["secret", "state", "partitions"],
        ["1", "expired", "0"],
        ["2", "active", "1"],
    ]
    assert command("ledger", "verify").stdout.startswith("holds: ")
    assert command.json("spend", "alice", "rr", "--epsilon", "1", "--key", "k")["repeated"]


@pytest.mark.slow
def test_rotate_key_of_a_server_takes_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine that opens the ledger would refuse every charge: it does not have the new secret."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    on_server = CommandLine(new_ledger(2))
    on_server("ledger", "init")
    told = on_server.error("ledger", "rotate-key", "--yes", code=2)
    assert "other machines may share this ledger. Add --prepare" in told
    assert [row["state"] for row in on_server.json("ledger", "rotate-key", "--status")] == ["active"]
    on_server("ledger", "rotate-key", "--prepare")
    assert on_server.json("ledger", "rotate-key", "--activate", "--yes") == {"active": 2}
