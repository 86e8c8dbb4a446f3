"""The command line on the ledger of a service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import CommandLine
from ldp_budget import Accountant
from ldp_budget.accounting.charge_request import LOCAL
from service_places import Keys, shared_service


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Accountant]:
    """The ledger behind the service."""
    with Accountant(tmp_path / "there.db") as made:
        yield made


@pytest.fixture
def command(ledger: Accountant, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    keys = Keys()
    shared_service().serve(ledger, keys)
    monkeypatch.setenv("LDP_BUDGET_API_KEY", keys.secret_of(LOCAL))
    return CommandLine(shared_service().url)


COIN = ["randomized-response", "--epsilon", "0.5"]


def test_commands_on_a_service_give_the_results_of_a_file(
    command: CommandLine, ledger: Accountant, tmp_path: Path
) -> None:
    command("policy", "set", "default", "--limit", "lifetime=2", "--limit", "day=1.5")
    assert command.json("policy", "list")[0]["name"] == "default"
    assert command.json("quote", "alice", *COIN)["status"] == "quoted"
    first = command.json("spend", "alice", *COIN, "--key", "k", "--note", "at the door")
    again = command.json("spend", "alice", *COIN, "--key", "k")
    assert again == {**first, "repeated": True}
    command("spend", "alice", "randomized-response", "--epsilon", "3", code=3)
    held = command.json("reserve", "alice", *COIN)["receipt"]
    assert [row["receipt"] for row in command.json("reservations")] == [held]
    assert command.json("void", held)["status"] == "voided"
    command("collection", "add", "party", "oue", "--epsilon", "0.5", "--categories", "a,b")
    assert command.json("spend", "bob", "party")["status"] == "spent"
    users = tmp_path / "users.csv"
    users.write_text("user\ncarol\ndave\n", encoding="utf-8")
    assert command.json("spend-many", users, "party", "--key", "run") == {"spent": 2, "refused": 0, "repeated": 0}
    assert command.json("balance", "alice") == ledger.balance("alice").to_json()
    assert [row["user"] for row in command.json("balance", "--users", users)] == ["carol", "dave"]
    assert [row["note"] for row in command.json("history", "alice")] == ["at the door", None, None]
    assert command.json("ledger", "verify")["ok"]
    assert command.json("ledger", "stats") == ledger.stats()
    assert len(command("ledger", "export").stdout.splitlines()) == len(list(ledger.journal()))
    command("erase", "alice", "--yes")
    assert ledger.is_erased("alice")


def test_api_key_is_read_from_a_file(command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    file = tmp_path / "key"
    file.write_text(os.environ["LDP_BUDGET_API_KEY"] + "\n", encoding="ascii")
    monkeypatch.delenv("LDP_BUDGET_API_KEY")
    monkeypatch.setenv("LDP_BUDGET_API_KEY_FILE", str(file))
    assert command.json("ledger", "stats")["users"] == 0
    monkeypatch.setenv("LDP_BUDGET_API_KEY_FILE", str(tmp_path / "nothing"))
    assert "LDP_BUDGET_API_KEY_FILE: " in command.error("ledger", "stats")


def test_service_error_names_the_cause(command: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert "--at does not go with a service" in command.error("--at", "2026-11-22", "ledger", "stats", code=2)
    assert "which has a ledger already" in command.error("ledger", "init", code=2)
    assert "not over HTTP" in command.error("ledger", "backup", tmp_path / "copy.db")
    assert "not over HTTP" in command.error("ledger", "move", "--yes", command.ledger, tmp_path / "copy.db")
    assert "not over HTTP" in command.error("ledger", "rotate-key", "--yes")
    assert "not over HTTP" in command.error("invite", "poll", "--revoke", "--yes")
    assert "no policy is named 'default'" in command.error("spend", "alice", *COIN)
    elsewhere = CommandLine("http://budget.example.org")
    assert "Add --plain-http before the command" in elsewhere.error("ledger", "stats", code=2)
    monkeypatch.setenv("LDP_BUDGET_API_KEY", "ldpb_unknown")
    told = command.error("ledger", "stats")
    assert "Set LDP_BUDGET_API_KEY to a valid key" in told
    assert "ldpb_unknown" not in told
    monkeypatch.delenv("LDP_BUDGET_API_KEY")
    assert "The API key is missing: a service needs one. Set LDP_BUDGET_API_KEY" in command.error(
        "ledger", "stats", code=2
    )
