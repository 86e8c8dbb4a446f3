"""Rules that the import rule of pyproject.toml cannot state: files with SQL and numbers, and imports inside functions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import ldp_budget
from ldp_budget.charge_options import NAMES
from ldp_budget.registry.plugins import registry
from ldp_budget_cli import app
from ldp_budget_cli.app import COMMANDS, cli
from ldp_budget_cli.mechanism_arguments import MechanismGroup

ROOT = Path(__file__).resolve().parents[3]
ACCOUNTANT = ROOT / "accountant" / "ldp_budget"


# -- the sources ------------------------------------------------------------------------------------------------


def test_modules_are_not_named_as_public_functions() -> None:
    # `ldp_budget.mechanism("oue")` would become a module as soon as a caller imported it.
    modules = {path.stem for path in ACCOUNTANT.iterdir()}
    functions = {name for name in ldp_budget.__all__ if callable(getattr(ldp_budget, name))}
    assert not modules & functions
    assert "mechanism" in functions


# -- the options of the commands ------------------------------------------------------------------------------


def walk(
    command: click.Command, ctx: click.Context, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Every command below `command`, by its full name; under MECHANISM only `oue`, for all."""
    yield " ".join(path), command
    if isinstance(command, click.Group):
        names = ["oue"] if isinstance(command, MechanismGroup) else command.list_commands(ctx)
        for name in names:
            below = command.get_command(ctx, name)
            assert below is not None
            yield from walk(below, click.Context(below, parent=ctx, info_name=name), (*path, name))


@pytest.fixture
def commands(tmp_path: Path) -> dict[str, click.Command]:
    context = click.Context(cli, obj=str(tmp_path / "no-ledger.db"))
    return dict(walk(cli, context))


def option_names(command: click.Command) -> set[str]:
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    spellings = [text for option in options for text in (*option.opts, *option.secondary_opts)]
    return {text.removeprefix("--").replace("-", "_") for text in spellings if text.startswith("--")}


def test_command_walk_finds_every_command(commands: dict[str, click.Command]) -> None:
    assert set(COMMANDS) <= set(commands)
    assert {"policy set", "collection add oue", "calibrate oue", "spend oue", "quote oue"} <= set(commands)


def test_options_beside_fields_are_taken(commands: dict[str, click.Command]) -> None:
    fields, taken = set(ldp_budget.mechanism("oue").fields), app._own_options()
    of_mechanisms = {path: option_names(command) for path, command in commands.items() if "oue" in path.split()}
    assert len(of_mechanisms) > 8
    for path, own in of_mechanisms.items():
        assert fields & own, path
        assert own - fields <= taken, path


def test_built_in_mechanisms_have_no_taken_field() -> None:
    for mechanism, _ in registry().items():
        assert not (app._own_options() | set(NAMES)) & set(mechanism.fields)


def test_commands_and_options_have_help(commands: dict[str, click.Command]) -> None:
    for path, command in commands.items():
        assert command.help, path
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.help, (path, parameter.name)
