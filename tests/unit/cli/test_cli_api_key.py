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
