"""The help of every command: groups, examples that work, options with their unit and default."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import click
import pytest

from command_line import CommandLine
from ldp_budget.registry.plugins import registry
from ldp_budget_cli.app import cli
from ldp_budget_cli.mechanism_arguments import MechanismGroup

pytestmark = pytest.mark.slow


def commands(group: click.Group, context: click.Context, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all commands that do something, with each mechanism for those that take one."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        below = click.Context(command, parent=context, info_name=name)
        if isinstance(command, MechanismGroup):
            arguments = tuple(each.human_readable_name.upper() for each in command.params)
            yield (*path, name)
            yield from ((*path, name, *arguments, mechanism) for mechanism in registry().names())
        elif isinstance(command, click.Group):
            yield from commands(command, below, (*path, name))
        else:
            yield (*path, name)


@pytest.fixture(scope="module")
def paths() -> list[tuple[str, ...]]:
    return list(commands(cli, click.Context(cli, info_name="ldp-budget", obj="/nowhere"), ()))


def examples(help: str) -> list[str]:
    """Return the command lines in the Example of a help text, each on one line."""
    _, _, rest = help.partition("Example:\n")
    block = rest.partition("\n\n")[0].replace("\\\n", " ")
    return [" ".join(line.split()) for line in block.splitlines()]


# -- groups -------------------------------------------------------------------------------------------------------


# -- examples -----------------------------------------------------------------------------------------------------


def test_help_of_every_command_has_an_example_of_that_command(
    command: CommandLine, paths: list[tuple[str, ...]]
) -> None:
    assert len(paths) > 200
    for path in paths:
        shown = examples(command(*path, "--help").stdout)
        assert shown, f"no example: {path}"
        name = tuple(word for word in path if not word.isupper())
        for line in shown:
            words = tuple(shlex.split(line))
            assert words[0] == "ldp-budget", line
            assert all(word in words for word in name[:2]), f"{line} is an example of another command than {path}"


def test_every_example_parses(
    command: CommandLine, paths: list[tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each example reaches its command: no unknown option, no missing argument, no value of the wrong form."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reports.ndjson").touch()
    command("policy", "set", "default", "--limit", "lifetime=4")
    command("collection", "add", "mood", "oue", "--epsilon", "0.5", "--categories", "good,fair,bad")
    tried: set[tuple[str, ...]] = set()
    for path in paths:
        for line in examples(command(*path, "--help").stdout):
            words = typed(line)
            if tuple(words) not in tried:
                tried.add(tuple(words))
                parse(words, str(command.ledger))
    assert len(tried) > 200


def parse(words: list[str], ledger: str) -> None:
    """Parse a command line down to its last command, and run nothing."""
    context = cli.make_context("ldp-budget", words)
    context.obj = ledger  # as the root command would set it
    with ExitStack() as stack:
        stack.enter_context(context)
        found: click.Command = cli
        while isinstance(found, click.Group):
            rest = [*context._protected_args, *context.args]
            name, below, rest = found.resolve_command(context, rest)
            assert below is not None
            context = stack.enter_context(below.make_context(name, rest, parent=context))
            found = below


"""The commands whose first example is run, in this order, on one ledger."""


def typed(line: str) -> list[str]:
    """Return the words of a command line behind `ldp-budget`, without a redirection."""
    return shlex.split(line.partition(" > ")[0])[1:]


# -- texts --------------------------------------------------------------------------------------------------------
