"""The help of every command: groups, examples that work, options with their unit and default."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from ldp_budget.registry.plugins import registry
from ldp_budget_cli.app import cli
from ldp_budget_cli.command_groups import COMMANDS, GROUPS
from ldp_budget_cli.mechanism_subcommands import MechanismGroup

if TYPE_CHECKING:
    from command_line import CommandLine

WIDTH = 80


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


def all_options(command: click.Command) -> Iterator[click.Option]:
    yield from (each for each in command.params if isinstance(each, click.Option))


# -- groups -------------------------------------------------------------------------------------------------------


def test_help_lists_every_command_in_its_group(command: CommandLine) -> None:
    shown = command("--help").stdout
    titles = [line[:-1] for line in shown.splitlines() if re.fullmatch(r"[A-Z]\w+:", line)]
    assert titles == ["Options", *GROUPS]
    for title, names in GROUPS.items():
        section = shown.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in section.splitlines() if line[2] != " "] == list(names)
    assert next(iter(COMMANDS)) == "demo"


def test_command_line_without_a_command_says_to_start_with_the_demo(command: CommandLine) -> None:
    assert "Start with: ldp-budget demo" in command(code=2).stderr


# -- examples -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("name", registry().names())
def test_example_of_a_mechanism_is_charged_as_typed(command: CommandLine, name: str) -> None:
    if name == "matrix-substitution":
        pytest.skip("its example names a file")
    command("policy", "set", "default", "--limit", "lifetime=100,1e-5")
    [line] = examples(command("spend", "USER", name, "--help").stdout)
    assert command(*typed(line)).stdout.startswith("spent: alice")
    [card] = examples(command("mechanisms", name).stdout + "\n\n")
    assert command(*typed(card)).stdout.startswith("mechanism ")


RUN = (
    *(
        "ledger init",
        "policy set",
        "policy show",
        "policy list",
        "policy simulate",
        "collection add",
        "collection list",
    ),
    *(
        "collection show",
        "mechanisms",
        "compare",
        "calibrate",
        "plan",
        "compose",
        "audit",
        "quote",
        "spend",
        "spend-many",
    ),
    *("reserve", "reservations", "randomize", "estimate", "inbox take", "inbox seal", "invite", "balance", "history"),
    *("api-key create", "api-key list", "api-key rotate", "api-key revoke", "ledger stats", "ledger verify"),
    *(
        "ledger checkpoint",
        "ledger export",
        "ledger backup",
        "ledger rotate-key",
        "ledger repair-clock",
        "plugin new",
    ),
    *("erase", "demo"),
)
"""The commands whose first example is run, in this order, on one ledger."""


@pytest.mark.slow
def test_examples_run_in_order_on_one_ledger(
    command: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "users.csv").write_text("user\nann\nbob\n")
    (tmp_path / "answers.csv").write_text("user,mood\ncy,good\ndan,bad\n")
    report = {"user": "eve", "key": "1", "report": "00"}
    for name in RUN:
        path = name.split()
        example = examples(command(*path, "--help").stdout)[0]
        words = typed(example)
        if name == "inbox take":
            (tmp_path / "reports.ndjson").write_text(json.dumps(report))
            (tmp_path / "mood.reports").unlink()
        more = {"audit": ["--samples", "5000"], "collection add": ["--minimum-group", "1"]}.get(name, [])
        command(*words, *more)


def typed(line: str) -> list[str]:
    """Return the words of a command line behind `ldp-budget`, without a redirection."""
    return shlex.split(line.partition(" > ")[0])[1:]


# -- texts --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_help_of_every_command_fits_the_terminal_and_begins_with_a_verb(
    command: CommandLine, paths: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    for path in paths:
        shown = command(*path, "--help").stdout
        assert max(map(len, shown.splitlines())) <= WIDTH, path
        first = shown.split("\n\n")[1].strip()
        assert re.match(r"[A-Z][a-z]+ ", first), (path, first)
        assert first.split()[0] not in ("What", "Whether", "Who", "Which", "How", "The", "A", "This"), (path, first)


def test_spend_help_shows_its_options_and_that_a_collection_may_be_named(command: CommandLine) -> None:
    for name in ("spend", "quote", "reserve", "spend-many"):
        shown = command(name, "--help").stdout
        assert "--policy NAME" in shown
        assert "--json" in shown
        assert "The name of a collection may replace MECHANISM" in " ".join(shown.split())
        assert "\nMechanisms:\n" in shown
        assert re.search(rf"ldp-budget {name} \S+ mood", shown)


def test_option_with_a_default_states_it_once(command: CommandLine) -> None:
    root = click.Context(cli, info_name="ldp-budget", obj="/nowhere")
    for name in COMMANDS:
        found = cli.get_command(root, name)
        assert found is not None
        for option in all_options(found):
            record = option.get_help_record(root)
            if record is not None:
                assert record[1].count("[default") <= 1, (name, record)
                assert record[1], (name, record)


def test_missing_mechanism_says_what_to_type(command: CommandLine) -> None:
    message = command.error("spend", "bob", code=2)
    assert (
        "MECHANISM or COLLECTION is missing. Try: ldp-budget spend bob oue --epsilon 0.5 --domain-size 7" in message
    )
    command("collection", "add", "mood", "oue", "--epsilon", "0.5", "--categories", "good,bad")
    assert "Try: ldp-budget spend bob mood" in command.error("spend", "bob", code=2)
    tried = re.search(r"Try: ldp-budget (.*?), or", command.error("compose", code=2) or "") or None
    assert tried is None, "without any argument the help is shown"


def test_missing_option_of_a_mechanism_shows_an_example(command: CommandLine) -> None:
    message = command.error("spend", "bob", "oue", "--epsilon", "1", code=2)
    assert "--domain-size is missing: it must be a whole number from 2 to 4000000" in message
    assert message.endswith("Example: ldp-budget spend alice oue --epsilon 0.5 --domain-size 7\n")


def test_unknown_mechanism_lists_the_collections(command: CommandLine) -> None:
    command("collection", "add", "mood", "oue", "--epsilon", "0.5", "--categories", "good,bad")
    message = command.error("spend", "bob", "party", code=2)
    assert "No mechanism or collection is named 'party'. Collections: mood." in message
    assert message.endswith("List mechanisms: ldp-budget mechanisms\n")
