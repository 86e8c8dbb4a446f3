"""Rules that the import rule of pyproject.toml cannot state: files with SQL and numbers, and imports inside functions."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import click
import grimp
import pytest

import ldp_budget
from ldp_budget.charge_options import NAMES
from ldp_budget.registry.plugins import registry
from ldp_budget_cli import app
from ldp_budget_cli.app import COMMANDS, cli
from ldp_budget_cli.mechanism_arguments import MechanismGroup

ROOT = Path(__file__).resolve().parents[3]
ACCOUNTANT = ROOT / "accountant" / "ldp_budget"
CLI = ROOT / "cli" / "ldp_budget_cli"

STANDARD = set(sys.stdlib_module_names)
SQL = re.compile(r"\s*(select .* from|insert |update \w+ set|delete from|create (table|index)|pragma )", re.I | re.S)


# -- what other people's packages each of ours may use ---------------------------------------------------


OURS = {
    *("ldp_budget", "ldp_budget_adapters", "ldp_budget_mechanisms", "ldp_budget_postgres", "ldp_budget_cli"),
    *("ldp_budget_service", "ldp_budget_surveys", "ldp_budget_verify"),
}


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph(*OURS, include_external_packages=True, cache_dir=None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        (
            "ldp_budget",
            {
                *("numpy", "scipy", "platformdirs", "pluggy", "sqlite_utils", "cryptography", "fsspec", "pyarrow"),
            },
        ),
        ("ldp_budget_adapters", {"numpy", "flwr", "nvflare"}),
        ("ldp_budget_mechanisms", {"numpy", "scipy", "sklearn"}),
        ("ldp_budget_postgres", {"psycopg", "psycopg_pool"}),
        ("ldp_budget_cli", {"click", "matplotlib"}),
        (
            "ldp_budget_surveys",
            {
                *("numpy", "scipy", "cryptography", "apache_beam", "formulaic", "openpyxl", "pandas", "pyxform"),
                *("click", "matplotlib", "weasyprint"),
            },
        ),
        ("ldp_budget_verify", {"numpy", "scipy", "click", "pytest"}),
    ],
)
def test_packages_import_the_listed_packages_only(
    imports: grimp.ImportGraph, package: str, allowed: set[str]
) -> None:
    modules = {package, *imports.find_descendants(package)}
    used = {name for module in modules for name in imports.find_modules_directly_imported_by(module)}
    assert {name for name in used if name.partition(".")[0] not in STANDARD | OURS} <= allowed


@pytest.mark.slow
def test_pytest_is_imported_by_the_contract_tests_only(imports: grimp.ImportGraph) -> None:
    assert imports.find_modules_that_directly_import("pytest") == {"ldp_budget_verify.testing"}


def test_http_is_used_by_the_client_only(imports: grimp.ImportGraph) -> None:
    assert imports.find_modules_that_directly_import("httpx2") == {"ldp_budget_service.client.transport"}


# -- the sources ------------------------------------------------------------------------------------------------


def files(*rooms: Path) -> list[Path]:
    found = [path for room in rooms for path in sorted(room.rglob("*.py"))]
    assert len(found) > len(rooms)
    return found


@cache
def parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    return [*ast.walk(parsed(path))]


def named(paths: Iterable[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The imports by absolute name."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def at_start(node: ast.AST) -> Iterator[ast.AST]:
    """Every node outside functions and `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from at_start(child)


@pytest.mark.slow
def test_command_line_starts_with_click_only() -> None:
    allowed = STANDARD | {"ldp_budget", "ldp_budget_surveys", "click"}
    heavier = [
        path
        for path in files(CLI)
        if not {name.partition(".")[0] for name in imported(at_start(parsed(path)))} <= allowed
    ]
    assert named(heavier) == []


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
