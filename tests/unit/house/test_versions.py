"""The version: `pyproject.toml` has the original, and every copy equals it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


def load_tool(root: Path) -> ModuleType:
    """Load `tools/version.py` of a tree."""
    spec = importlib.util.spec_from_file_location("version_tool", root / "tools" / "version.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
