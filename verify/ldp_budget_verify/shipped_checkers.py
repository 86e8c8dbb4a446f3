"""The shipped checkers of `clients/check`: programs of the standard library that anyone can read and run alone.

The package runs the very files that it ships, so a check here and a check elsewhere decide alike.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

_INSTALLED = Path(__file__).with_name("check")
_CLONE = Path(__file__).parents[2] / "clients" / "check"


def folder() -> Path:
    """The folder of the checkers: next to this file in a wheel, `clients/check` in a clone."""
    return _INSTALLED if _INSTALLED.is_dir() else _CLONE


@cache
def checker(name: str) -> ModuleType:
    """The module of the checker `name`, such as `check_total`."""
    spec = importlib.util.spec_from_file_location(f"ldp_budget_{name}", folder() / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
