"""Modules that are imported when they are first used, and a fork that waits until such an import is over."""

from __future__ import annotations

import os
import sys
import threading
import types
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import Any

import pytest

from ldp_budget._later import IMPORTING, Later, later_names


def test_later_module_takes_the_place_of_its_substitute(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = types.ModuleType("owner_of_later")
    monkeypatch.setitem(sys.modules, "owner_of_later", owner)
    owner.fixed_point = later = Later("owner_of_later", "ldp_budget.guarantees", "fixed_point")  # type: ignore[attr-defined]
    assert later.LARGEST == 2**62
    assert owner.fixed_point is sys.modules["ldp_budget.guarantees.fixed_point"]  # type: ignore[attr-defined]


def test_later_module_lacks_what_the_module_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "owner_of_later", types.ModuleType("owner_of_later"))
    with pytest.raises(AttributeError, match="fixed_point"):
        Later("owner_of_later", "ldp_budget.guarantees", "fixed_point").nothing  # noqa: B018


def test_later_name_is_imported_with_its_first_use_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = types.ModuleType("owner_of_later")
    monkeypatch.setitem(sys.modules, "owner_of_later", owner)
    load = later_names("owner_of_later", {"LARGEST": "ldp_budget.guarantees.fixed_point"})
    assert load("LARGEST") == 2**62 == owner.LARGEST


def test_later_names_have_no_other_name() -> None:
    with pytest.raises(AttributeError, match="module 'ldp_budget' has no attribute 'nothing'"):
        later_names("ldp_budget", {})("nothing")


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
