"""Charged releases killed at every step: each byte on the disk is then read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ldp_budget.reports.charged_release as room
import release_killer
from ldp_budget import Accountant, Collection
from release_killer import REFUSED, SURVEY, USERS, VALUES


def played(folder: Path, policy: str) -> list[dict[str, Any]]:
    command = [sys.executable, release_killer.__file__, str(folder), policy]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("policy", ["default", pytest.param("planned", marks=pytest.mark.exhaustive)])
def test_release_killed_at_any_step_leaves_only_reports_of_charged_users(tmp_path: Path, policy: str) -> None:
    """`OUT.partial` of a killed run held the reports of users who were then refused, or never charged."""
    *killed, whole = played(tmp_path, policy)
    assert len(killed) > 15
    assert sorted(whole["read"]) == sorted(set(USERS) - set(REFUSED))
    stored = 0
    for row in killed:
        charged = {user for user, entries in row["charged"].items() if entries}
        assert not set(row["read"]) & set(REFUSED)
        assert set(row["read"]) <= charged
        stored += not row["released"] and bool(row["read"])
        if "then" in row:
            assert set(row["then"]["charged"].values()) == {1}, "no user was charged twice"
            assert sorted(row["then"]["read"]) == sorted(set(USERS) - set(REFUSED))
            for user, draws in row["read"].items():
                assert row["then"]["read"][user] == draws, "no report was drawn twice where both can be read"
    assert stored > 3, "some were killed between the first report and the last"


def test_release_after_a_partly_written_batch_never_shows_two_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest of a batch after a power cut reveals nothing about the reports that are drawn again."""
    monkeypatch.setattr(room, "_BATCH", release_killer.BATCH)
    monkeypatch.setattr(Collection, "randomize", release_killer.tagged)

    class PowerCut(Exception):  # noqa: N818 - no error of the program
        pass

    def cut(store: Any) -> None:
        raise PowerCut

    with Accountant(":memory:") as accountant:
        accountant.set_policy("default", ["lifetime=1"])
        with monkeypatch.context() as patch:
            patch.setattr(room._Store, "remove", cut)
            with pytest.raises(PowerCut):
                room.release(tmp_path / "out", SURVEY, accountant, VALUES, USERS, policy="default")
        (tmp_path / "out").unlink()
        content = (tmp_path / "out.partial").read_bytes()
        slots = [slot for _, _, slot in release_killer.blocks(content)]
        seen = set()
        for length in range(content.index(b"\n", len(room._MAGIC)) + 1, len(content), 7):
            place = tmp_path / str(length)
            place.mkdir()
            # The place of a key is on the disk before the key; one sector holds it, so it is there whole or not.
            whole = next((slot for slot in slots if slot < length < slot + 64), length)
            (place / "out.partial").write_bytes(content[:whole].ljust(length, b"\0"))
            before = release_killer.readable(place)
            room.release(place / "out", SURVEY, accountant, VALUES, USERS, policy="default")
            after = release_killer.readable(place)
            assert sorted(after) == USERS
            assert all(after[user] == draws for user, draws in before.items())
            seen.add(len(before))
        assert seen == {0, 4}
        assert accountant.stats()["entries_by_kind"]["spent"] == len(USERS)
