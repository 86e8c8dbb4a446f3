"""The sources of the respondents' pages: strict types, and a build that is reproducible."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="no FastAPI: pip install 'ldp-budget[service]'")

ROOT = Path(__file__).parents[3]


# -- the bundle ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the bundle is made from, with what its developers need."""
    found = shutil.which("npm")
    if found is None:
        pytest.skip("no npm on this machine")
    root = tmp_path_factory.mktemp("bundle")
    for name in ("clients/check", "clients/js", "clients/survey", "service/ldp_budget_service/web"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("node_modules", "dist"))
    npm(root / "clients" / "survey", "install", "--no-audit", "--no-fund", "--no-package-lock")
    return root / "clients" / "survey"


def npm(folder: Path, *words: str) -> str:
    done = subprocess.run(["npm", *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert not done.returncode, f"npm {' '.join(words)}: {done.stdout}{done.stderr}"
    return done.stdout


def test_bundle_build_is_reproducible(package: Path) -> None:
    names = ("service/ldp_budget_service/web/static/survey.js", "clients/check/check.html")
    for name in names:
        (package.parents[1] / name).unlink()
    npm(package, "run", "build")
    for name in names:
        assert (package.parents[1] / name).read_bytes() == (ROOT / name).read_bytes()


def test_sources_pass_strict_type_checks(package: Path) -> None:
    npm(package, "run", "check")
