"""The version: `pyproject.toml` has the original, and every copy equals it."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
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


@pytest.mark.parametrize(
    "place",
    [
        "accountant/ldp_budget/__init__.py",
        "CITATION.cff",
        "clients/js/package.json",
        "docs/tutorials/writing-a-plugin.md",
    ],
)
def test_copies_of_the_version_include_every_place(tool: ModuleType, place: str) -> None:
    assert ROOT / place in {path for path, _, _ in tool.copies()}


def test_packages_for_npm_have_this_version_or_none(tool: ModuleType) -> None:
    for path in (ROOT / "clients").glob("*/package.json"):
        package = json.loads(path.read_text(encoding="utf-8"))
        assert package.get("version", tool.npm_form(tool.current())) == tool.npm_form(tool.current()), path
        assert "version" in package or package["private"] is True, path


@pytest.mark.parametrize(
    ("version", "written"), [("1.0.0", "1.0.0"), ("1.0.0rc1", "1.0.0-rc.1"), ("2.10.3b12", "2.10.3-beta.12")]
)
def test_npm_form_of_a_version_is_semantic(tool: ModuleType, version: str, written: str) -> None:
    assert tool.npm_form(version) == written


def test_lock_files_name_no_download_address() -> None:
    for path in (ROOT / "clients").glob("*/package-lock.json"):
        assert '"resolved"' not in path.read_text(encoding="utf-8"), (
            f"{path}: npm install --omit-lockfile-registry-resolved"
        )


# -- the changelog ---------------------------------------------------------------------------------------------------


def test_fragments_are_named_by_issue_and_kind() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    kinds = "|".join(kind["directory"] for kind in config["type"])
    for path in (ROOT / "changelog.d").iterdir():
        assert path.name == "README.md" or re.fullmatch(rf"(\d+|\+[\w-]+)\.({kinds})(\.\d+)?\.md", path.name), (
            path.name
        )


CHANGELOG = """# Changelog

## 1.0.0 (unreleased)

First.

### Added

- One.

### Fixed

- Two.

## 0.9.0 (2026-01-01)

### Added

- Old.
"""


def test_merged_changelog_appends_to_its_newest_section(tool: ModuleType) -> None:
    draft = "## 1.0.0 (2026-12-01)\n\n### Added\n\n- Three. (#28)\n\n### Security\n\n- Four.\n"
    newest, older = CHANGELOG.split("## 0.9.0")
    expected = newest.replace("(unreleased)", "(2026-12-01)").replace("- One.\n", "- One.\n- Three. (#28)\n")
    merged = tool.merged(CHANGELOG, draft, "1.0.0 (2026-12-01)")
    assert merged == f"{expected}### Security\n\n- Four.\n\n## 0.9.0{older}"


def test_merged_changelog_without_fragments_changes_the_heading_alone(tool: ModuleType) -> None:
    dated = CHANGELOG.replace("(unreleased)", "(2026-12-01)")
    assert tool.merged(CHANGELOG, "", "1.0.0 (2026-12-01)") == dated
