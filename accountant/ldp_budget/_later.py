"""Modules that are imported when they are first used, so that a command loads what it runs."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


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
        module = import_module(f"{self._room}.{self._module}")
        setattr(sys.modules[self._owner], self._module, module)
        return getattr(module, name)
