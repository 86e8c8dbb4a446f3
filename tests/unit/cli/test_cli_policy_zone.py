"""`policy set --zone`: the days of a policy begin at local midnight, and every command shows the zone."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine

SET = ("policy", "set", "default", "--limit", "lifetime=4", "--limit", "day=1")


@pytest.mark.slow
def test_policy_set_with_a_zone_is_shown_kept_and_changed(command: CommandLine) -> None:
    assert "days of Asia/Seoul" in command(*SET, "--zone", "Asia/Seoul").stdout
    assert "days of Asia/Seoul" in command("policy", "show", "default").stdout
    assert "days of Asia/Seoul" in command(*SET).stdout
    shown = command.json("policy", "show", "default")
    assert (shown["version"], shown["zone"]) == (2, "Asia/Seoul")
    assert "zone_rules" not in shown
    assert command.json("policy", "list")[0]["zone"] == "Asia/Seoul"
    assert "Asia/Seoul" in command("policy", "list").stdout
    changed = command(*SET, "--zone", "UTC").stdout
    assert "changed: days of Asia/Seoul → days of UTC" in changed
    assert command.json("policy", "show", "default")["zone"] == "UTC"
    assert [row["zone"] for row in command.json("policy", "show", "default", "--versions")] == [
        "UTC",
        "Asia/Seoul",
        "Asia/Seoul",
    ]
    assert command("ledger", "verify").stdout.startswith("holds")


def test_policy_set_with_an_unknown_zone_names_a_similar_one_and_creates_no_ledger(command: CommandLine) -> None:
    assert "Did you mean Asia/Seoul?" in command.error(*SET, "--zone", "seoul", code=2)
    assert not Path(command.ledger).exists()
