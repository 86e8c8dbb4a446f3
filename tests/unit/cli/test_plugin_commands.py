"""Commands that plugins add by the hook `register_commands`."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import click
import pytest

import ldp_budget
from command_line import CommandLine
from ldp_budget.registry import plugins
from ldp_budget_cli import plugin_commands


class Distribution:
    name, version = "teller", "1.2"


class EntryPoint:
    """An installed entry point of a distribution that is not on this machine."""

    name, value, dist = "teller", "teller", Distribution()

    def __init__(self, module: object) -> None:
        self._module = module

    def load(self) -> object:
        return self._module


def module_of(*commands: Any) -> object:
    @ldp_budget.hookimpl
    def register_commands(register: Any) -> None:
        for command in commands:
            register(command)

    return SimpleNamespace(register_commands=register_commands)


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Install a plugin with these commands for one test."""

    def installed(*commands: Any) -> None:
        point: Any = EntryPoint(module_of(*commands))
        plugin = plugins.load_plugin(point)
        known = plugins.registry()
        monkeypatch.setattr(known, "plugins", [*known.plugins, plugin])
        monkeypatch.setattr(plugin_commands, "entry_points", lambda group: [point])

    plugin_commands.plugin_commands.cache_clear()
    yield installed
    plugin_commands.plugin_commands.cache_clear()


@click.command()
@click.argument("name")
def greet(name: str) -> None:
    """Greet a user."""
    click.echo(f"hello {name}")


def test_command_of_a_plugin_runs_and_is_listed(install: Any, command: CommandLine) -> None:
    install(greet)
    assert command("greet", "alice").output == "hello alice\n"
    listed = command("--help").output
    assert "Plugins:" in listed
    assert "Greet a user." in listed


def test_command_of_a_plugin_never_replaces_another(install: Any, command: CommandLine) -> None:
    taken = click.Command("balance", callback=lambda: click.echo("mine"))
    install(taken, greet, click.Command("greet", callback=lambda: click.echo("second")))
    warned = command("--help").stderr
    assert "teller 1.2: the name of a command must be free: got 'balance', which exists." in warned
    assert "got 'greet', which exists" in warned
    assert command("greet", "bob").output == "hello bob\n"


@pytest.mark.parametrize("wrong", [len, click.Command("Two Words"), click.Command(None)])
def test_command_that_cannot_be_typed_is_left_out_with_a_warning(
    install: Any, command: CommandLine, wrong: Any
) -> None:
    install(wrong, greet)
    assert "The command was left out." in command("--help").stderr
    assert command("greet", "alice").output.endswith("hello alice\n")


def test_unknown_command_names_the_nearest_one_of_a_plugin(install: Any, command: CommandLine) -> None:
    install(greet)
    assert "Did you mean 'greet' or" in command("gret", code=2).stderr
