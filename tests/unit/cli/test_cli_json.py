"""`--json`: every command that has a result prints it as one JSON value."""

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
