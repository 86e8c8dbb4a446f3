"""Modules that are imported with their first use: a fork waits until such an import is over."""

from __future__ import annotations

import os
import sys
import threading
import types
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

from ldp_budget._later import IMPORTING, Later


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="no forks on this system")
def test_first_use_of_a_module_holds_back_forks_until_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[bool] = []

    class Slow(Loader):
        def create_module(self, spec: ModuleSpec) -> None:
            return None

        def exec_module(self, module: types.ModuleType) -> None:
            taken = threading.Thread(target=lambda: held.append(IMPORTING.acquire(blocking=False)))
            taken.start()
            taken.join()
            vars(module)["answer"] = 42

    class Finder:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
            return ModuleSpec(name, Slow()) if name == "a_room.slow" else None

    room, owner = types.ModuleType("a_room"), types.ModuleType("an_owner")
    room.__path__ = []
    monkeypatch.setitem(sys.modules, "a_room", room)
    monkeypatch.setitem(sys.modules, "an_owner", owner)
    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    later: Any = Later("an_owner", "a_room", "slow")
    assert later.answer == 42
    assert vars(owner)["slow"].answer == 42
    assert held == [False]  # the fork handler of another thread would have waited
    sys.modules.pop("a_room.slow", None)
