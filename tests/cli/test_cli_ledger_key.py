"""`ldp-budget ledger key`."""

from __future__ import annotations

from pathlib import Path

from conftest import CommandLine


def test_a_key_is_exchanged_step_by_step(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("spend", "alice", "rr", "--epsilon", "1", "--key", "k")
    key = Path(f"{command.ledger}.key")
    before = key.read_bytes()

    assert command("ledger", "key", "prepare").stdout == "prepared: secret 2\n"
    assert command.json("ledger", "key", "prepare") == {"prepared": 2}
    assert "--yes: expected where nobody can be asked" in command.error("ledger", "key", "activate", code=2)
    assert command.json("ledger", "key", "status") == [
        {"secret": 1, "state": "active", "partitions": 1},
        {"secret": 2, "state": "pending", "partitions": 0},
    ]
    assert command("ledger", "key", "discard").stdout == "discarded\n"
    assert command.json("ledger", "key", "discard") == {"discarded": False}
    assert key.read_bytes() == before

    command("ledger", "key", "prepare")
    assert command("ledger", "key", "activate", "--yes").stdout == "active: secret 2\n"
    assert command.json("ledger", "key", "activate") == {"active": 2}, "nothing is pending, so nothing is asked"
    assert [line.split() for line in command("ledger", "key", "status").stdout.splitlines()] == [
        ["secret", "state", "partitions"],
        ["1", "expired", "0"],
        ["2", "active", "1"],
    ]
    assert command("ledger", "verify").stdout.startswith("holds: ")
    assert command.json("spend", "alice", "rr", "--epsilon", "1", "--key", "k")["repeated"]

    key.write_bytes(before)
    told = command.error("spend", "alice", "rr", "--epsilon", "1")
    assert "has not got the secret 2 that is in force" in told
    assert "Nothing was charged" in told
