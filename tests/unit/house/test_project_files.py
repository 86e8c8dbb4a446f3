"""The project's own files: names of tests, planted faults, and copies of the version."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from version_tool import load_tool

TESTS = Path(__file__).resolve().parents[2]


def test_names_of_test_files_are_unique_across_tiers() -> None:
    counts = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert [name for name, count in counts.items() if count > 1] == []


ROOT = Path(__file__).resolve().parents[3]
MUTANTS = runpy.run_path(str(ROOT / "tools" / "mutants.py"))["MUTANTS"]


def test_mutants_are_80_with_two_or_more_for_each_package() -> None:
    rooms = Counter(mutant.room for mutant in MUTANTS)
    core = {
        folder.name for folder in (ROOT / "accountant" / "ldp_budget").iterdir() if (folder / "__init__.py").is_file()
    }
    packages = {*core, "mechanisms", "adapters", "postgres", "surveys", "service", "cli", "verify"}
    assert rooms.keys() == packages
    assert min(rooms.values()) >= 2
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 80


def test_mutant_text_occurs_once_in_its_file_and_names_a_test_file() -> None:
    counts = {mutant.name: mutant.path(ROOT).read_text(encoding="utf-8").count(mutant.old) for mutant in MUTANTS}
    assert {name: count for name, count in counts.items() if count != 1} == {}
    assert [mutant.found_by for mutant in MUTANTS if not (ROOT / "tests" / mutant.found_by).is_file()] == []


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load_tool(ROOT)


def test_every_copy_of_the_version_equals_the_original(tool: ModuleType) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path, found, form in tool.copies()
        if found[1] != form(tool.current())
    ]
    assert wrong == []


# -- the changelog ---------------------------------------------------------------------------------------------------
