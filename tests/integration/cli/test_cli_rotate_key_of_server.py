"""`ldp-budget ledger rotate-key` of a ledger on a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine
from postgres_places import new_ledger


@pytest.mark.exhaustive
def test_rotate_key_of_a_server_rotates_all_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    on_server = CommandLine(new_ledger(2))
    on_server("policy", "set", "default", "--limit", "lifetime=4")
    receipts = [
        on_server.json("spend", f"user-{n}", "rr", "--epsilon", "1", "--key", "k")["receipt"] for n in range(4)
    ]
    assert on_server.json("ledger", "rotate-key", "--yes") == {"active": 2}
    again = [on_server.json("spend", f"user-{n}", "rr", "--epsilon", "1", "--key", "k") for n in range(4)]
    assert [each["receipt"] for each in again] == receipts
    assert on_server.json("ledger", "verify")["ok"]
