"""The command line on the ledger of a service."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import CommandLine
from ldp_budget import Accountant
from ldp_budget.accounting.principals import LOCAL
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


def test_randomize_with_spend_on_a_service_charges_users(
    command: CommandLine, ledger: Accountant, tmp_path: Path
) -> None:
    """A digest that is never sent shows if the answers equal those of an earlier run."""
    command("policy", "set", "default", "--limit", "lifetime=2")
    command("collection", "add", "party", "oue", "--epsilon", "0.5", "--categories", "a,b")
    answers = tmp_path / "answers.csv"
    with answers.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["user", "party"], *[[f"user-{n}", "ab"[n % 2]] for n in range(30)]])
    options = ["randomize", "party", answers, "--column", "party", "--user-column", "user", "--spend"]
    command(*options, "--out", tmp_path / "party.reports")
    assert ledger.stats()["entries_by_kind"]["spent"] == 30
    assert command.json("estimate", "party", tmp_path / "party.reports")["reports"] == 30


def test_api_key_create_on_a_service_works(command: CommandLine, ledger: Accountant) -> None:
    from ldp_budget_service.api_keys import ApiKeys

    secret = command("api-key", "create", "team-a", "--scope", "spend").stdout.strip()
    found = ApiKeys(ledger).find(secret)
    assert found is not None
    assert (found.name, found.scopes) == ("team-a", ("spend",))


def test_api_key_create_on_a_service_with_approvals_is_refused(command: CommandLine, ledger: Accountant) -> None:
    """The holder of an admin key could approve their own proposal with a second key."""
    from ldp_budget.accounting.approvals import Approvals
    from ldp_budget_service.api_keys import ApiKeys

    before = ApiKeys(ledger).all()
    Approvals(ledger).demand()
    shared_service().serve(ledger, shared_service().keys)
    told = command.error("api-key", "create", "team-a", "--scope", "admin")
    assert "keys can be made only on the machine of the ledger" in told
    assert ApiKeys(ledger).all() == before


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


def test_spend_on_a_service_needs_only_the_scope_spend(
    command: CommandLine, ledger: Accountant, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ldp_budget_service.api_keys import ApiKeys

    ledger.set_policy("default", ["lifetime=2"])
    keys = ApiKeys(ledger)
    _, secret = keys.create("team-a", ["spend"])
    shared_service().serve(ledger, keys)
    monkeypatch.setenv("LDP_BUDGET_API_KEY", secret)
    assert command.json("spend", "alice", *COIN)["status"] == "spent"
    assert "lacks the scope read" in command.error("balance", "alice")
    assert [row["by"] for row in ledger.history("alice")] == ["team-a"]
