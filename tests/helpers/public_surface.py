"""Every public function, class and method of the Python reference."""

from __future__ import annotations

import builtins
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ldp_budget
from ldp_budget import errors, guarantees
from ldp_budget.accounting.receipts import BudgetExceeded

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"

sys.path.insert(0, str(REFERENCE))
from reference_pages import command_pages as command_pages  # noqa: E402
from reference_pages import mechanism_cards as mechanism_cards  # noqa: E402
from reference_pages import python_names as python_names  # noqa: E402


class Public(NamedTuple):
    """A public callable: its name and its docstring."""

    name: str
    call: Callable[..., Any]
    text: str

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters, without the object it belongs to."""
        return [name for name in inspect.signature(self.call).parameters if name not in ("self", "cls")]

    def section(self, name: str) -> list[str] | None:
        """The lines of a section of its docstring; None where there is none."""
        lines = self.text.splitlines()
        if f"{name}:" not in lines:
            return None
        below = lines[lines.index(f"{name}:") + 1 :]
        end = next((at for at, line in enumerate(below) if line and not line.startswith("    ")), len(below))
        return [line for line in below[:end] if line]

    def entries(self, name: str) -> dict[str, str]:
        """The text of a section for each name that it lists."""
        found: dict[str, str] = {}
        for line in self.section(name) or ():
            listed = re.fullmatch(r"    (\w+): (.+)", line)
            if listed:
                found[listed[1]] = listed[2]
        return found

    @property
    def raises(self) -> tuple[type[Exception], ...]:
        """The errors that its docstring names."""
        but = re.search(r"Nothing but `(\w+)`", "\n".join(self.section("Raises") or ()))
        return tuple(error_named(name) for name in [*self.entries("Raises"), *([but[1]] if but else [])])


def error_named(name: str) -> type[Exception]:
    """The error of that name: one of ours, or one of Python's."""
    found = BudgetExceeded if name == "BudgetExceeded" else getattr(errors, name, getattr(builtins, name, None))
    assert isinstance(found, type), f"there is no error called {name}"
    assert issubclass(found, Exception), name
    return found


# Whose text is another package's, or speaks to pytest.
_OTHERS = ("hookimpl", "MechanismContract")
# Its calls are described where `Accountant` has them.
_PROTOCOLS = ("BudgetClient",)
# Among what calls return, what people make as well.
_MADE = ("Partial", "PartitionWriter", "ReportWriter")
# Results of calls, which users do not construct.
_RETURNED = ("Audit", "Verification")


def everything() -> Iterator[Public]:
    """Each public function, each class that people call, and each public method of a class."""
    for name in ldp_budget.__all__:
        yield from _of(name, getattr(ldp_budget, name), made=name not in _RETURNED)
    # The first of the parts that a plugin is made of; the others are tools for the inside of one.
    (_, _, parts), *_ = python_names.PARTS
    for listed, made in ((python_names.ANSWERS, False), (parts, True)):
        for module, names in listed:
            for name in names:
                yield from _of(name, getattr(module, name), made=made or name in _MADE)
    yield from _of("Guarantee", guarantees.Guarantee, made=False)


def _of(name: str, value: Any, *, made: bool) -> Iterator[Public]:
    if name in (*_OTHERS, *_PROTOCOLS):
        return
    if not inspect.isclass(value):
        yield Public(name, value, inspect.getdoc(value) or "")
        return
    if made and not issubclass(value, Exception):
        yield Public(name, value, inspect.cleandoc(vars(value).get("__doc__") or ""))
    for own, member in vars(value).items():
        plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if not own.startswith("_") and inspect.isfunction(plain):
            yield Public(f"{name}.{own}", plain, inspect.getdoc(getattr(value, plain_name(own))) or "")


def plain_name(name: str) -> str:
    """The call that describes this one: `spend_async` takes, returns and raises what `spend` does."""
    return name.removesuffix("_async")
