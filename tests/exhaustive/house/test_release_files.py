"""`tools/release.py` twice, from two clones of one commit: equal bytes, and each file does its main job when installed."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from clean_commands import run

ROOT = Path(__file__).resolve().parents[3]
VERSION = "9.8.7"
"""Another version than that of the tree, so that the release sets it."""


@pytest.fixture(scope="module")
def commit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose only commit is the tree as it is."""
    if shutil.which("npm") is None:
        pytest.skip("no npm: the tarball of the device client cannot be packed")
    folder = tmp_path_factory.mktemp("tree") / "tree"
    run("git", "clone", "-q", "--depth", "1", f"file://{ROOT}", folder, cwd=folder.parent)
    return folder


@pytest.fixture(scope="module")
def dist(commit: Path) -> Path:
    run(sys.executable, "tools/release.py", VERSION, cwd=commit, timeout=600)
    return commit / "dist"


def only(folder: Path, pattern: str) -> Path:
    [found] = folder.glob(pattern)
    return found


def test_release_has_every_file_with_its_digest_and_bill(dist: Path) -> None:
    names = {path.name for path in dist.iterdir()}
    built = {
        f"ldp_budget-{VERSION}-py3-none-any.whl",
        f"ldp_budget-{VERSION}.tar.gz",
        f"ldp-budget-{VERSION}.tgz",
        f"ldp-budget-{VERSION}-image.tar.gz",
    }
    assert names == built | {f"{name}.cdx.json" for name in built} | {
        *(f"ldp-budget-{VERSION}-docs.tar.gz", "constraints.txt", "provenance.json", "SHA256SUMS")
    }
    for line in (dist / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((dist / name).read_bytes()).hexdigest() == digest
    wheel = json.loads((dist / f"ldp_budget-{VERSION}-py3-none-any.whl.cdx.json").read_text())
    assert {"numpy", "scipy", "click", "pluggy"} <= {each["name"] for each in wheel["components"]}
    assert wheel["metadata"]["component"]["version"] == VERSION


def test_release_names_no_folder_of_the_machine(dist: Path, commit: Path) -> None:
    for path in dist.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert str(commit.parent) not in text
        assert not re.search(r"file:///|/tmp/", text)


def test_release_of_one_commit_is_byte_equal_in_another_folder(dist: Path, commit: Path, tmp_path: Path) -> None:
    run("git", "clone", "-q", f"file://{commit}", tmp_path / "other", cwd=tmp_path)
    run(sys.executable, "tools/release.py", VERSION, cwd=tmp_path / "other", timeout=600)
    assert (tmp_path / "other" / "dist" / "SHA256SUMS").read_bytes() == (dist / "SHA256SUMS").read_bytes()


def test_release_refuses_a_folder_with_other_files(dist: Path, commit: Path) -> None:
    done = subprocess.run([sys.executable, "tools/release.py", VERSION], cwd=commit, capture_output=True, text=True)
    assert done.returncode == 1
    assert "files of another build" in done.stderr


def test_installed_wheel_plays_the_demo(dist: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "env", cwd=tmp_path)
    pip = (sys.executable, "-m", "pip", "--python", tmp_path / "env", "install", "-q", "--no-compile")
    run(*pip, only(dist, "*.whl"), cwd=tmp_path)
    command = tmp_path / "env" / "bin" / "ldp-budget"
    assert run(command, "--version", cwd=tmp_path).split()[-1] == VERSION
    run(command, "demo", cwd=tmp_path)


def test_npm_tarball_randomizes_after_installation(dist: Path, tmp_path: Path) -> None:
    run("npm", "install", "--silent", "--no-audit", "--no-fund", only(dist, "*.tgz"), cwd=tmp_path)
    code = 'import("ldp-budget").then((found) => console.log(typeof found.Client))'
    assert run("node", "-e", code, cwd=tmp_path) == "function\n"


def test_docs_archive_opens_at_its_index(dist: Path) -> None:
    with tarfile.open(only(dist, "*-docs.tar.gz")) as opened:
        index = opened.extractfile(f"ldp-budget-{VERSION}-docs/index.html")
        assert index is not None
        assert VERSION in index.read().decode()
