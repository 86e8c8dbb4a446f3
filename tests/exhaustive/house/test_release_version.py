"""`tools/version.py`: a release sets every copy of the version and closes the changelog."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from version_tool import load_tool

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    return load_tool(ROOT)


@pytest.fixture
def tree(tool: ModuleType, tmp_path: Path) -> Path:
    """A folder with the files that name the version, the changelog and its fragments."""
    named = {path for path, _, _ in tool.copies()}
    fragments = set((ROOT / "changelog.d").iterdir())
    for path in {*named, *fragments, ROOT / "CHANGELOG.md", ROOT / "tools" / "version.py"}:
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return tmp_path


# -- the changelog ---------------------------------------------------------------------------------------------------


def release(tree: Path, version: str, code: int = 0) -> str:
    command = [sys.executable, str(tree / "tools" / "version.py"), version]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("version", ["1.0.1", "2.0.0"])
def test_release_sets_every_copy_and_moves_the_fragments(tree: Path, version: str) -> None:
    pytest.importorskip("towncrier", reason="no towncrier: pip install 'ldp-budget[dev]'")
    (tree / "changelog.d" / "77.fixed.md").write_text("`serve` starts twice as fast.\n", encoding="utf-8")
    release(tree, version)
    copies = list(load_tool(tree).copies())
    assert len(copies) == len(list(load_tool(ROOT).copies()))
    assert [found[0] for _, found, form in copies if found[1] != form(version)] == []
    changelog = (tree / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.split(r"^## ", changelog, flags=re.MULTILINE)[1]
    assert re.match(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)\n", newest)
    assert "- `serve` starts twice as fast. (#77)\n" in newest
    assert [path.name for path in (tree / "changelog.d").iterdir()] == ["README.md"]
    old = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^- .*", old, flags=re.MULTILINE)) <= set(
        re.findall(r"^- .*", changelog, flags=re.MULTILINE)
    )


def test_release_of_a_wrong_version_changes_nothing(tree: Path) -> None:
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    assert "'1.0' is not a version. Write it like 1.0.0 or 1.1.0rc2." in release(tree, "1.0", code=1)
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before
