"""Commands of plugins: what third-party distributions register by the hook `register_commands`.

A command of a plugin never replaces a command of ldp-budget, nor that of another plugin. What cannot be used is left
out with a warning, so that a broken plugin affects no other command.
"""

from __future__ import annotations

import functools
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

import click

from .command_groups import COMMANDS

if TYPE_CHECKING:
    from ldp_budget.registry.plugins import Plugin


@functools.cache
def plugin_commands() -> dict[str, click.Command]:
    """Return the commands of the installed plugins by name, collected once per process."""
    if all(point.dist is not None and point.dist.name == "ldp-budget" for point in entry_points(group="ldp_budget")):
        return {}  # the usual case, in which no mechanism is imported for `--help`
    from ldp_budget.registry.plugins import registry

    found: dict[str, click.Command] = {}
    for plugin in registry().plugins:
        if plugin.hooks is not None and not plugin.own:
            _add_commands(plugin, found)
    return found


def _add_commands(plugin: Plugin, found: dict[str, click.Command]) -> None:
    def register(command: click.Command) -> None:
        if why := _unusable(command, found):
            click.echo(f"Warning: {plugin}: {why}. The command was left out.", err=True)
        else:
            found[str(command.name)] = command

    assert plugin.hooks is not None
    try:
        plugin.hooks.register_commands(register=register)
    except Exception as error:
        click.echo(f"Warning: {plugin}: its commands cannot be loaded: {type(error).__name__}: {error}.", err=True)


def _unusable(command: object, found: dict[str, click.Command]) -> str:
    """Return the reason why a command cannot be used; empty if it can."""
    from ldp_budget.registry.plugins import NAME

    if not isinstance(command, click.Command):
        return f"register_commands must register click commands: got {command!r}"
    if not (command.name and NAME.fullmatch(command.name)):
        return f"the name of a command must be lower-case words joined by hyphens: got {command.name!r}"
    if command.name in COMMANDS or command.name in found:
        return f"the name of a command must be free: got {command.name!r}, which exists"
    return ""
