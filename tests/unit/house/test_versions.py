"""The version: `pyproject.toml` has the original, and every copy equals it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from version_tool import load_tool

ROOT = Path(__file__).resolve().parents[3]


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
