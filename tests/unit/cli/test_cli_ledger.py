"""`ldp-budget ledger move` and `ledger rotate-key`."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine
from ldp_budget import Accountant
from ldp_budget.ledger import migration_copy


@pytest.fixture
def first(tmp_path: Path) -> str:
    """The address of a ledger with one user, who has something reserved and asked something by a key."""
    path = str(tmp_path / "first.db")
    command = CommandLine(path)
    command("policy", "set", "default", "--limit", "lifetime=2", "--limit", "day=1")
    command("spend", "alice", "rr", "--epsilon", "0.5", "--key", "k")
    return path


@pytest.mark.slow
def test_ledger_move_with_a_wrong_place_names_it(first: str, tmp_path: Path, command: CommandLine) -> None:
    CommandLine(tmp_path / "other.db")("ledger", "init")
    missing, other = str(tmp_path / "missing.db"), str(tmp_path / "other.db")
    assert f"{missing}: this ledger does not exist" in command.error("ledger", "move", "--yes", missing, other)
    assert f"ledger {other}: " in command.error("ledger", "move", "--yes", first, other)
    assert f"{first}: a ledger cannot be moved to itself" in command.error("ledger", "move", "--yes", first, first)
    assert "TO must be a path or postgresql://…: got :memory:" in command.error(
        "ledger", "move", "--yes", first, ":memory:", code=2
    )
    assert "got mysql://…" in command.error("ledger", "move", "--yes", first, "mysql://me:secret@host/db", code=2)
    assert CommandLine(first).json("spend", "alice", "rr", "--epsilon", "0.1")["status"] == "spent"


@pytest.mark.slow
def test_ledger_move_abort_opens_the_source_again(
    first: str, tmp_path: Path, command: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = str(tmp_path / "copy.db")
    with monkeypatch.context() as patch, Accountant(first) as accountant:
        patch.setattr(migration_copy.Copy, "_compute_sums", lambda self: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            accountant.ledger.move_to(copy)
    assert f"closed while it is moved to {copy}" in CommandLine(first).error(
        "spend", "alice", "rr", "--epsilon", "0.1"
    )
    assert "it is being filled by a move" in CommandLine(copy).error("balance", "alice")
    assert "it is being filled by a move" in CommandLine(copy).error("spend", "alice", "rr", "--epsilon", "0.1")
    assert "TO is missing" in command.error("ledger", "move", "--yes", first, code=2)
    aborted = command("ledger", "move", first, "--abort").stdout
    assert aborted == f"aborted: {first} is open again. Remove what the move left at TO.\n"
    assert CommandLine(first).json("spend", "alice", "rr", "--epsilon", "0.1")["status"] == "spent"
    assert "left over from an interrupted move" in command.error("ledger", "move", "--yes", first, copy)
    assert "nothing to abort" in command.error("ledger", "move", first, copy, "--abort")
    assert command.json("ledger", "move", "--yes", first, str(tmp_path / "second.db"))["accounts"] == 1


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
