"""Modules and names that are imported when they are first used, so that a command loads what it runs.

A child that is forked while another thread imports a module would wait for that import forever. So a fork waits until no
thread imports a module here.
"""

from __future__ import annotations

import os
import sys
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

IMPORTING = threading.RLock()
"""Held while a module is imported here."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=IMPORTING.acquire, after_in_parent=IMPORTING.release, after_in_child=IMPORTING.release)


def imported(module: str, package: str | None = None) -> ModuleType:
    """Return a module of ldp-budget, which is imported if no one did; a fork waits until that is done.

    A module of others is not imported here: if its import uses a name of ldp-budget in another thread, both would wait.

    Parameters:
        module: its name, absolute or relative to `package`.
        package: the name of a package.
    """
    with IMPORTING:
        return import_module(module, package)


def registered(group: str, name: str) -> Any:
    """Return what a package beside this one registers as an entry point of ldp-budget; it is imported now.

    So a package that imports nothing of another can use it. No other distribution is read, so that this is fast.

    Parameters:
        group: the group of the entry point.
        name: the name of the entry point.
    """
    from importlib.metadata import distribution

    found = distribution("ldp-budget").entry_points.select(group=group)[name]
    with IMPORTING:
        return found.load()


def accountant_part(name: str) -> Any:
    """Return a module that a package beside the accountant registers for it; it is imported now.

    Parameters:
        name: the name of its entry point.
    """
    return registered("ldp_budget.accountant_parts", name)


class Later:
    """A module that is imported with the first use of one of its names, and then takes the place of this object.

    Parameters:
        owner: the name of the module that has this object as a global.
        room: the name of the package of the module.
        module: the name of the module in its package, and of the global.
    """

    def __init__(self, owner: str, room: str, module: str) -> None:
        self._owner, self._room, self._module = owner, room, module

    def __getattr__(self, name: str) -> Any:
        module = imported(f"{self._room}.{self._module}")
        setattr(sys.modules[self._owner], self._module, module)
        return getattr(module, name)


def later_names(owner: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module whose names are imported with their first use, and then are its globals.

    Parameters:
        owner: the name of the module.
        homes: the names, each with the module that defines it: absolute, or relative to the package `owner`.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {owner!r} has no attribute {name!r}")
        found = getattr(imported(homes[name], owner), name)
        setattr(sys.modules[owner], name, found)
        return found

    return load
