"""The rooms of the house and the one direction of imports between them; and how little is loaded to start."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import ldp_budget
from ldp_budget.catalogue.plugins import registry
from ldp_budget_cli.app import COMMANDS, cli
from ldp_budget_cli.mechanism_group import MechanismGroup

ROOT = Path(__file__).resolve().parents[2]
ACCOUNTANT = ROOT / "accountant" / "ldp_budget"
PLUGINS = ROOT / "plugins" / "ldp_budget_mechanisms"
CLI = ROOT / "cli" / "ldp_budget_cli"

STANDARD = set(sys.stdlib_module_names)
SQL = re.compile(r"\s*(select .* from|insert |update \w+ set|delete from|create (table|index)|pragma )", re.I | re.S)


# What the authors of plugins inherit in their tests, and nobody else imports.
FOR_TESTS = {ACCOUNTANT / "testing.py": {"pytest"}}


# -- imports, read from the sources ---------------------------------------------------------------------------


def imported(path: Path, *, at_start_only: bool = False) -> set[str]:
    """The modules a file imports by absolute name; `at_start_only`: those that its own import loads."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = _at_start(tree) if at_start_only else ast.walk(tree)
    return {name for node in nodes for name in _names(node)}


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _at_start(node: ast.AST) -> Iterator[ast.AST]:
    """Every node outside functions and `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        yield child
        yield from _at_start(child)


def packages(path: Path, *, at_start_only: bool = False) -> set[str]:
    return {name.partition(".")[0] for name in imported(path, at_start_only=at_start_only)}


def files(room: Path) -> list[Path]:
    found = sorted(room.rglob("*.py"))
    assert found
    return found


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", files(ACCOUNTANT), ids=named)
def test_the_accountant_imports_neither_plugins_nor_command_line(path: Path) -> None:
    allowed = STANDARD | {"ldp_budget", "numpy", "scipy", "platformdirs", "pluggy", "sqlite_utils", "cryptography"}
    assert packages(path) <= allowed | FOR_TESTS.get(path, set())


@pytest.mark.parametrize("path", files(PLUGINS), ids=named)
def test_plugins_import_the_accountant_and_no_command_line(path: Path) -> None:
    assert packages(path) <= STANDARD | {"ldp_budget", "numpy", "scipy", "sklearn"}


@pytest.mark.parametrize("path", files(CLI), ids=named)
def test_the_command_line_has_no_mathematics_and_no_sql(path: Path) -> None:
    assert packages(path) <= STANDARD - {"sqlite3"} | {"ldp_budget", "click", "matplotlib", "tabulate"}
    texts = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
    assert not [text for text in texts if isinstance(text, str) and SQL.match(text)]


@pytest.mark.parametrize("path", [*files(ACCOUNTANT), *files(PLUGINS)], ids=named)
def test_heavy_packages_are_imported_where_they_are_needed(path: Path) -> None:
    assert packages(path, at_start_only=True) <= STANDARD | {"ldp_budget", "pluggy"} | FOR_TESTS.get(path, set())


@pytest.mark.parametrize("path", files(CLI), ids=named)
def test_the_command_line_starts_with_click_alone(path: Path) -> None:
    assert packages(path, at_start_only=True) <= STANDARD | {"ldp_budget", "click"}


@pytest.mark.parametrize("path", [*files(ACCOUNTANT), *files(PLUGINS), *files(CLI)], ids=named)
def test_scipy_stats_is_never_used(path: Path) -> None:
    assert not [name for name in imported(path) if name.startswith("scipy.stats")]


def test_no_module_is_called_like_a_public_function() -> None:
    # `ldp_budget.mechanism("oue")` would become a module as soon as anybody imported it.
    modules = {path.stem for path in ACCOUNTANT.iterdir()}
    functions = {name for name in ldp_budget.__all__ if callable(getattr(ldp_budget, name))}
    assert not modules & functions
    assert "mechanism" in functions


def test_each_room_is_one_package_with_type_hints() -> None:
    for room in (ACCOUNTANT, PLUGINS, CLI):
        assert (room / "py.typed").is_file()
        assert [path.name for path in room.parent.iterdir() if (path / "__init__.py").exists()] == [room.name]


# -- what a fresh process loads -------------------------------------------------------------------------------

REPORT = "import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"


def loaded(code: str, folder: Path) -> set[str]:
    """The modules that a fresh process has loaded after running `code`."""
    environment = {**os.environ, "LDP_BUDGET_LEDGER": str(folder / "ledger.db")}
    command = [sys.executable, "-c", f"{code}\n{REPORT}"]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr.splitlines()[-1]))


def after_command(folder: Path, *arguments: str) -> set[str]:
    return loaded(f"from ldp_budget_cli.app import cli\ncli({list(arguments)!r}, standalone_mode=False)", folder)


HEAVY = {"numpy", "scipy", "sklearn", "sqlite_utils", "matplotlib", "cryptography"}


def test_importing_the_library_loads_next_to_nothing(tmp_path: Path) -> None:
    modules = loaded("import ldp_budget", tmp_path)
    assert {name for name in modules if name.startswith("ldp_budget")} == {"ldp_budget"}
    assert not modules & (HEAVY | {"click", "pluggy", "decimal", "sqlite3"})


def test_help_loads_neither_numbers_nor_mechanisms(tmp_path: Path) -> None:
    modules = after_command(tmp_path, "--help")
    assert not modules & (HEAVY | {"platformdirs", "pluggy", "sqlite3", "tabulate"})
    assert not {name for name in modules if name.startswith("ldp_budget_mechanisms")}


@pytest.mark.parametrize(
    "mechanism",
    [
        ["oue", "--epsilon", "0.1", "--domain-size", "7"],
        ["gaussian", "--epsilon", "0.1", "--delta", "1e-9", "--method", "exact", "--lower", "0", "--upper", "1"],
        ["randomized-response", "--truth", "0.5", "--yes", "0.5"],
    ],
    ids=lambda options: options[0],
)
def test_a_spend_loads_no_heavy_package(tmp_path: Path, mechanism: list[str]) -> None:
    with ldp_budget.Accountant(tmp_path / "ledger.db") as accountant:
        accountant.set_policy("default", ["lifetime=4,1e-6"])
    modules = after_command(tmp_path, "spend", "alice", *mechanism, "--key", "k")
    assert "sqlite3" in modules
    assert not modules & (HEAVY | {"platformdirs", "tabulate"})


# -- the options of the commands ------------------------------------------------------------------------------


def walk(
    command: click.Command, ctx: click.Context, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Every command below `command`, by its full name; under MECHANISM only `oue` stands for all."""
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


def test_the_walk_meets_every_command(commands: dict[str, click.Command]) -> None:
    assert set(COMMANDS) <= set(commands)
    assert {"policy set", "collection add oue", "calibrate oue", "spend oue", "quote oue"} <= set(commands)


def test_no_field_can_be_called_like_an_option_of_a_command(commands: dict[str, click.Command]) -> None:
    fields = set(ldp_budget.mechanism("oue").fields)
    ours = {name for mechanism, _ in registry().items() for name in mechanism.fields}
    for path, command in commands.items():
        own = option_names(command)
        if "oue" in path.split():
            assert fields & own, path
            assert own - fields <= registry().reserved, path
        else:
            # `compare --epsilon` means what a field means, and takes no MECHANISM whose options it could hide.
            assert own - ours <= registry().reserved, path


def test_no_mechanism_of_ours_has_a_reserved_field() -> None:
    for mechanism, _ in registry().items():
        assert not registry().reserved & set(mechanism.fields)


def test_every_command_has_help_and_every_option_a_sentence(commands: dict[str, click.Command]) -> None:
    for path, command in commands.items():
        assert command.help, path
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.help, (path, parameter.name)
