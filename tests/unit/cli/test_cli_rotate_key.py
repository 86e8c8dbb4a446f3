"""`ldp-budget ledger rotate-key`."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine


@pytest.fixture
def key(command: CommandLine) -> Path:
    """The key file of a ledger with one charge, bound to the idempotency key `k`."""
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("spend", "alice", "rr", "--epsilon", "1", "--key", "k")
    return Path(f"{command.ledger}.key")


@pytest.mark.slow
def test_rotate_key_with_the_old_key_file_charges_no_user(command: CommandLine, key: Path) -> None:
    before = key.read_bytes()
    assert command("ledger", "rotate-key", "--yes").stdout.splitlines()[0] == "rotated: secret 2 is active"
    assert command.json("ledger", "rotate-key", "--yes") == {"active": 3}
    assert command("ledger", "verify").stdout.startswith("holds: ")
    assert command.json("spend", "alice", "rr", "--epsilon", "1", "--key", "k")["repeated"]
    key.write_bytes(before)
    told = command.error("spend", "alice", "rr", "--epsilon", "1")
    assert "its key was rotated to secret 3" in told
    assert "Nothing was charged" in told
