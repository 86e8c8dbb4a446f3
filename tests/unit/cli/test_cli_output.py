"""`--json` and `--quiet`: a command with a result prints it as one JSON value, and no notes where none are asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from command_line import CommandLine
from ldp_budget_cli.app import cli

WITHOUT = {
    "demo": "a story for people",
    "help": "texts for people",
    "serve": "it runs until it is stopped",
    "prove": "the proof is JSON already",
    "survey import": "it prints a TOML file",
    "survey export": "the form is JSON already",
}


def commands(group: click.Group, context: click.Context, *path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield each command that is no group, with its words; of the commands of all mechanisms one."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        if not isinstance(command, click.Group):
            yield " ".join((*path, name)), command
        elif "oue" in command.list_commands(inner):
            found = command.get_command(inner, "oue")
            assert found is not None
            yield " ".join((*path, name, "oue")), found
        else:
            yield from commands(command, inner, *path, name)


@pytest.mark.slow
def test_every_command_with_a_result_has_the_option_json() -> None:
    without = {
        words
        for words, command in commands(cli, click.Context(cli))
        if "--json" not in {spelling for option in command.params for spelling in option.opts}
    }
    assert without == set(WITHOUT)


@pytest.fixture
def line(command: CommandLine) -> CommandLine:
    command("policy", "set", "default", "--limit", "lifetime=4")
    return command


def test_publication_key_is_printed_as_json(line: CommandLine) -> None:
    made = line.json("publish", "key", "new", "--name", "ask.example.org/surveys")
    assert made["key"].startswith("ask.example.org/surveys+")
    assert line.json("publish", "key", "show") == made


@pytest.mark.slow
def test_report_prints_json_about_its_page(line: CommandLine, tmp_path: Path) -> None:
    line("collection", "add", "mood", "oue", "--epsilon", "1", "--categories", "good,bad")
    page = tmp_path / "mood.html"
    assert line.json("report", "mood", "--out", page) == {
        "collection": "mood",
        "answered": 0,
        "page": str(page),
        "verified": True,
    }
    assert "--json needs --out" in line.error("report", "mood", "--markdown", "--json", code=2)


def test_json_of_a_refused_command_leaves_stdout_empty(line: CommandLine) -> None:
    assert line("api-key", "revoke", "absent", "--json", code=1).stdout == ""
    assert json.loads(line("api-key", "list", "--json").stdout) == []


OUE = ("oue", "--epsilon", "0.5", "--domain-size", "4")


@pytest.mark.parametrize("before", [True, False])
def test_quiet_command_prints_its_result_only(command: CommandLine, before: bool) -> None:
    words = ["policy", "set", "default", "--limit", "lifetime=4"]
    assert "Next: " in command(*words).stderr
    quiet = command("--quiet", *words) if before else command(*words, "--quiet")
    assert quiet.stderr == ""
    assert quiet.stdout


def test_quiet_bulk_run_prints_no_progress_and_no_hint(line: CommandLine, tmp_path: Path) -> None:
    users = tmp_path / "users.csv"
    users.write_text("user\na\nb\n")
    done = line("spend-many", users, *OUE, "--quiet")
    assert (done.stdout, done.stderr) == ("spent: 2, refused: 0, repeated: 0\n", "")


def test_quiet_command_still_prints_warnings_and_errors(line: CommandLine, tmp_path: Path) -> None:
    assert "--domain-size is missing" in line.error("--quiet", "spend", "alice", "oue", "--epsilon", "1", code=2)
    line("collection", "add", "mood", "oue", "--epsilon", "1", "--categories", "good,bad")
    answers, reports = tmp_path / "a.csv", tmp_path / "a.reports"
    answers.write_text("user,mood\na,good\nb,bad\n")
    line("--quiet", "randomize", "mood", answers, "--column", "mood", "--out", reports)
    twin = tmp_path / "b.reports"
    twin.write_bytes(reports.read_bytes())
    assert "Warning: " in line("--quiet", "estimate", "mood", reports, twin).stderr
