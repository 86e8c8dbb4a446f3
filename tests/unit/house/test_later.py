"""Modules that are imported when they are first used."""

from __future__ import annotations

import sys
import types

import pytest

from ldp_budget._later import Later, later_names


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
