"""`ldp-budget api-key`."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import CommandLine
from ldp_budget import Accountant
from ldp_budget_service.api_keys import ApiKeys


@pytest.fixture(autouse=True)
def ledger(command: CommandLine) -> None:
    command("policy", "set", "default", "--limit", "lifetime=4", "--share", "team-a:lifetime=1")
    command("collection", "add", "party", "oue", "--epsilon", 1, "--domain-size", 3)


def test_api_key_create_prints_only_the_secret_on_stdout(command: CommandLine) -> None:
    result = command("api-key", "create", "team-a", "--scope", "spend", "--scope", "read", "--policy", "default")
    with Accountant(command.ledger) as accountant:
        found = ApiKeys(accountant).find(result.stdout.removesuffix("\n"))
        assert found is not None
        assert (found.scopes, found.policies, found.expires) == (("spend", "read"), ("default",), None)
    assert "API key team-a: spend, read. Its secret is shown once" in result.stderr


@pytest.mark.parametrize(
    ("option", "kind", "known"),
    [("--policy", "policy", "default"), ("--collection", "collection", "party"), ("--share", "share", "team-a")],
)
def test_api_key_create_with_an_unknown_name_lists_the_known_names(
    command: CommandLine, option: str, kind: str, known: str
) -> None:
    """`api-key create app --policy nosuch` made a key that could charge no user."""
    told = command.error("api-key", "create", "app", "--scope", "spend", option, known, option, "nosuch")
    assert f"no {kind} is named 'nosuch'." in told
    assert known in told.partition("named")[2]
    assert command.json("api-key", "list") == []
    assert command("api-key", "create", "app", "--scope", "spend", option, known).stdout


def test_api_key_list_shows_states_without_secrets(command: CommandLine) -> None:
    made = command.json("api-key", "create", "team-a", "--scope", "admin", "--expires", "90")
    command("api-key", "create", "other", "--scope", "collect", "--collection", "party")
    assert "revoked: other" in command("api-key", "revoke", "other").stderr
    rows = command.json("api-key", "list")
    assert [(row["name"], row["state"]) for row in rows] == [("team-a", "active"), ("other", "revoked")]
    assert made.pop("secret") not in str(rows)
    assert made == rows[0]
    header, *lines = command("api-key", "list").stdout.splitlines()
    assert header.split()[:4] == ["name", "state", "scopes", "collections"]
    assert [line.split()[0] for line in lines] == ["team-a", "other"]


@pytest.mark.parametrize("action", [("create", "team-a", "--scope", "spend"), ("rotate", "first")])
def test_api_key_out_writes_a_private_file_once(
    command: CommandLine, tmp_path: Path, action: tuple[str, ...]
) -> None:
    """`api-key create my-app > app.key`, typed twice, left an empty file: the secret was lost."""
    command("api-key", "create", "first", "--scope", "spend")
    file = tmp_path / "app.key"
    result = command("api-key", *action, "--out", file)
    secret = file.read_text().removesuffix("\n")
    assert (result.stdout, file.stat().st_mode & 0o777) == ("", 0o600)
    assert f"Its secret is in {file}" in result.stderr
    count = len(command.json("api-key", "list"))
    again = command.error(
        "api-key", *action[:1], "first" if action[0] == "rotate" else "team-b", *action[2:], "--out", file
    )
    assert f"{file} exists, and --out overwrites no file. No secret was made." in again
    assert len(command.json("api-key", "list")) == count
    with Accountant(command.ledger) as accountant:
        assert ApiKeys(accountant).find(secret) is not None


def test_api_key_out_of_a_key_that_is_not_made_leaves_no_file(command: CommandLine, tmp_path: Path) -> None:
    command("api-key", "create", "first", "--scope", "spend")
    command.error("api-key", "create", "first", "--scope", "spend", "--out", tmp_path / "app.key")
    assert not (tmp_path / "app.key").exists()
    assert "Cannot write" in command.error("api-key", "rotate", "first", "--out", tmp_path / "none" / "app.key")
    made = command.json("api-key", "create", "second", "--scope", "spend", "--out", tmp_path / "app.key")
    assert made["secret_file"] == str(tmp_path / "app.key")
    assert "secret" not in made


def test_api_key_rotate_prints_the_new_secret(command: CommandLine) -> None:
    old = command("api-key", "create", "team-a", "--scope", "spend").stdout.strip()
    new = command("api-key", "rotate", "team-a", "--overlap", "0").stdout.strip()
    with Accountant(command.ledger) as accountant:
        assert [ApiKeys(accountant).find(secret) is not None for secret in (old, new)] == [False, True]


def test_api_key_with_wrong_arguments_names_the_mistake(command: CommandLine) -> None:
    command.error("api-key", "create", "team-a", code=2)
    assert "NAME must be 1 to 64" in command.error("api-key", "create", "team a", "--scope", "spend", code=2)
    command("api-key", "create", "team-a", "--scope", "spend")
    assert "'team-a'" in command.error("api-key", "create", "team-a", "--scope", "spend")
    assert "Did you mean 'team-a'?" in command.error("api-key", "revoke", "team-b")
    assert "does not exist" in command.error("--ledger", f"{command.ledger}.none", "api-key", "list")
