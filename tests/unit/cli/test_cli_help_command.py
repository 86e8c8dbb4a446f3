"""`ldp-budget help`: the help of every command, as its `--help` prints it."""

from __future__ import annotations

import pytest

from command_line import CommandLine
from ldp_budget_cli.command_groups import COMMANDS


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_is_that_of_its_option(command: CommandLine, name: str) -> None:
    assert command("help", name).stdout == command(name, "--help").stdout


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ([], ["--help"]),
        (["policy", "set"], ["policy", "set", "--help"]),
        (["spend", "oue"], ["spend", "USER", "oue", "--help"]),
        (["calibrate", "gaussian"], ["calibrate", "gaussian", "--help"]),
    ],
)
def test_help_of_a_subcommand_is_that_of_its_option(
    command: CommandLine, words: list[str], option: list[str]
) -> None:
    assert command("help", *words).stdout == command(*option).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["polcy"], "No such command 'polcy'. Did you mean 'policy'?"),
        (["policy", "st"], "No such command 'st'. Did you mean 'set' or 'list'?"),
        (["erase", "alice"], "No such command 'alice'."),
    ],
)
def test_help_of_an_unknown_command_names_similar_ones(command: CommandLine, words: list[str], message: str) -> None:
    assert message in command.error("help", *words, code=2)
