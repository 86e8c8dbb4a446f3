"""The drawing of the packages: made from the imports, without a circle, on at most four floors; docstrings name the same."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def made() -> Iterator[ModuleType]:
    sys.path.insert(0, str(REFERENCE))
    try:
        from reference_pages import package_drawing

        yield package_drawing
    finally:
        sys.path.remove(str(REFERENCE))


@pytest.mark.slow
def test_package_drawing_equals_a_new_one(made: ModuleType) -> None:
    """If not: python docs/reference/generate.py"""
    assert (REFERENCE / "packages.svg").read_text(encoding="utf-8") == made.drawing()


@pytest.mark.slow
def test_packages_stand_on_four_floors_and_import_only_lower_ones(made: ModuleType) -> None:
    floors = made.floors()
    assert len(floors) <= 4
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    assert sorted(name for names in floors for name in names) == sorted(settings["root_packages"])
    at = {name: number for number, names in enumerate(floors) for name in names}
    assert [pair for pair in made.imports() if at[pair[0]] >= at[pair[1]]] == []


@pytest.mark.slow
def test_package_arrows_lead_to_all_that_is_imported(made: ModuleType) -> None:
    reached = set(made.arrows())
    for _ in made.PACKAGES:
        reached |= {(first, last) for first, middle in reached for again, last in reached if middle == again}
    assert reached >= made.imports()
    assert len(made.arrows()) < len(made.imports())


@pytest.mark.slow
def test_package_docstrings_name_what_the_package_imports(made: ModuleType) -> None:
    for package, (folder, _) in made.PACKAGES.items():
        text = ast.get_docstring(ast.parse((ROOT / folder / package / "__init__.py").read_text(encoding="utf-8")))
        assert text, package
        assert 4 <= len(text.splitlines()) <= 8, package
        [said] = re.findall(r"\bIt imports ([^.]*)", text.replace("\n", " "))
        assert set(re.findall(r"`(ldp_budget\w*)`", said)) == {
            below for above, below in made.imports() if above == package
        }


def test_package_drawing_that_would_need_a_circle_fails(made: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "imports", lambda: {("ldp_budget", "ldp_budget_cli"), ("ldp_budget_cli", "ldp_budget")})
    with pytest.raises(RecursionError):
        made.floors()
