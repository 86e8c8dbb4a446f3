"""The public interface as lines of text, one for each promise: `python tests/helpers/frozen_api.py [FOLDER]` records them.

tests/data/frozen has what docs/reference/stability.md promises, so that a change shows in a diff. A new line is an
addition. A removed or changed line breaks a user, and follows the rule of that page.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

import ldp_budget
from ldp_budget import composition, errors, guarantees
from ldp_budget.registry import hookspecs
from ldp_budget.registry.plugins import registry
from ldp_budget_cli import errors as failures
from ldp_budget_cli.app import cli
from ldp_budget_cli.mechanism_arguments import MechanismGroup
from ldp_budget_service import client, create_app
from ldp_budget_service.error_codes import STATUSES
from public_surface import command_pages, mechanism_cards, python_names

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "data" / "frozen"
EXAMPLES = ROOT / "service" / "ldp_budget_service" / "examples.json"
# Plugins that happen to be installed are no part of it.
os.environ["LDP_BUDGET_NO_PLUGINS"] = "1"


# -- Python ----------------------------------------------------------------------------------------------------


def python() -> Iterator[str]:
    """Every name that the reference for Python has, with its members, fields and signatures."""
    for name in ldp_budget.__all__:
        yield from _entry("ldp_budget", name, getattr(ldp_budget, name))
    for name in ("Client", "ServiceProblem"):
        yield from _entry("ldp_budget.client", name, getattr(client, name))
    for module, names in (*python_names.ANSWERS, *(part for _, _, parts in python_names.PARTS for part in parts)):
        for name in names:
            yield from _entry(module.__name__, name, getattr(module, name))
    for cls in (guarantees.Guarantee, *guarantees.Guarantee.__subclasses__()):
        yield from _entry("ldp_budget.guarantees", cls.__name__, cls)
    yield f"rules: {', '.join(sorted(composition.RULES))}"
    for name, hook in vars(hookspecs).items():
        if inspect.isfunction(hook):
            yield f"hook {name}{python_names.signature(hook)}"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    yield f"python {project['requires-python']}"
    yield f"extras: {', '.join(sorted(set(project['optional-dependencies']) - {'dev', 'docs', 'interop'}))}"
    yield from (f"entry points: {group}" for group in project["entry-points"])


def _entry(module: str, name: str, value: Any) -> Iterator[str]:
    path = f"{module}.{name}"
    if not inspect.isclass(value):
        yield path + (python_names.signature(value) if inspect.isfunction(value) else "")
        return
    if issubclass(value, errors.LdpBudgetError):
        yield f"{path}, a kind of {', '.join(base.__name__ for base in value.__bases__)} [{value.code}]"
    else:
        yield f"{path}{'' if name in (*python_names.NO_MEMBERS, *python_names.NOT_MADE) else _made(value)}"
    yield from sorted(f"{path}.{line}" for line in _members(value))


def _made(cls: type) -> str:
    try:
        return python_names.signature(cls)
    except (TypeError, ValueError):
        return "(…)"


def _members(cls: type) -> Iterator[str]:
    for name, member in vars(cls).items():
        if name.startswith("_") or not python_names.is_documented_here(member):
            continue
        if isinstance(member, classmethod | staticmethod):
            skip = isinstance(member, classmethod)
            yield f"{name}{python_names.signature(member.__func__, skip=skip)}"
        elif inspect.isfunction(member):
            yield f"{name}{python_names.signature(member, skip=True)}"
        else:
            yield f"{name}: {python_names.returns(member)}"


# -- commands --------------------------------------------------------------------------------------------------


def commands() -> Iterator[str]:
    """Every command with its arguments and options; every mechanism with its own; exit codes."""
    context = click.Context(cli, info_name="ldp-budget")
    yield from _command(cli, context, "ldp-budget")
    for cls, _ in registry().items():
        yield f"mechanism {', '.join((cls.name, *cls.aliases))}"
        for field in cls.fields.values():
            yield f"mechanism {cls.name} --{field.name.replace('_', '-')} ({mechanism_cards.given(field)})"
    for code, failure in sorted(failures.FAILURES.items()):
        yield f"exit {failure.exit_code}: {code}"
    yield f"exit {click.ClickException.exit_code}: any other error"


def _command(command: click.Command, context: click.Context, path: str) -> Iterator[str]:
    if isinstance(command, MechanismGroup):
        if command.alternative is not None:
            yield from _command(command.alternative, context, path)
        # Of one mechanism; what each mechanism adds stands with it.
        path, command = f"{path} MECHANISM", _of_any(command, context)
    yield path
    for parameter in command.params:
        if not getattr(parameter, "hidden", False):
            yield f"{path} {_parameter(parameter)}"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _command(found, click.Context(found, parent=context, info_name=name), f"{path} {name}")


def _of_any(group: MechanismGroup, context: click.Context) -> click.Command:
    """The command of one mechanism, with its own options left out."""
    command = group.get_command(context, command_pages.EXAMPLE)
    own = {f"--{field.replace('_', '-')}" for field in ldp_budget.mechanism(command_pages.EXAMPLE).fields}
    kept = [each for each in command.params if own.isdisjoint(each.opts)]
    arguments = [each for each in group.params if isinstance(each, click.Argument)]
    return click.Command(command.name, params=[*arguments, *kept])


def _parameter(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return f"{(parameter.name or '').upper()}{' ...' if parameter.nargs < 0 else ''}"
    assert isinstance(parameter, click.Option)
    spelt = "/".join((*parameter.opts, *parameter.secondary_opts))
    if parameter.is_flag:
        return spelt
    kind = "|".join(map(str, parameter.type.choices)) if isinstance(parameter.type, click.Choice) else "VALUE"
    return f"{spelt} {kind}{' (many)' if parameter.multiple else ''}{' (required)' if parameter.required else ''}"


# -- HTTP ------------------------------------------------------------------------------------------------------


def http() -> Iterator[str]:
    """Every operation with its scope and parameters, every problem type, and the members of responses."""
    with ldp_budget.Accountant(":memory:") as accountant:
        schema = create_app(accountant).openapi()
    for path, methods in sorted(schema["paths"].items()):
        for method, operation in sorted(methods.items()):
            route = f"{method.upper()} {path}"
            yield f"{route} [{operation['x-scope']}]"
            for parameter in operation.get("parameters", ()):
                required = " (required)" if parameter.get("required") else ""
                yield f"{route} {parameter['in']} {parameter['name']}{required}"
    for code, status in sorted(STATUSES.items()):
        yield f"problem {code} {status}"


def forms() -> Iterator[str]:
    """The members of the service's responses, which are what the commands print with `--json`."""
    found: set[str] = set()
    for example in json.loads(EXAMPLES.read_text(encoding="utf-8")):
        answer = example["answer"]
        if isinstance(answer, dict | list):
            found |= {
                f"{example['method']} {example['route']} {example['status']} {line}" for line in _form(answer, "")
            }
    yield from sorted(found)


def _form(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _form(each, f"{path}.{key}")
    elif isinstance(value, list):
        for each in value:
            yield from _form(each, f"{path}[]")
    else:
        yield path


FILES: dict[str, Callable[[], Iterator[str]]] = {
    "python.txt": python,
    "commands.txt": commands,
    "http.txt": http,
    "json.txt": forms,
}


def main(folder: Path = FOLDER) -> None:
    """Record all of it, there or elsewhere."""
    for name, lines in FILES.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
