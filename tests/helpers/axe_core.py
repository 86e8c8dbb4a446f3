"""axe-core, which checks the accessibility of a page."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_SURVEY = Path(__file__).parents[2] / "clients" / "survey" / "package.json"


def installed(folder: Path) -> str:
    """Its source, of the version that the survey page is built with; without it the test is skipped."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm on this machine")
    (folder / "package.json").write_text("{}")
    wanted = json.loads(_SURVEY.read_text())["devDependencies"]["axe-core"]
    words = ["install", "--no-audit", "--no-fund", "--no-package-lock", f"axe-core@{wanted}"]
    done = subprocess.run([npm, *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip("axe-core cannot be installed here")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


def violations(page: Any, source: str) -> list[tuple[str, str, str]]:
    """Return the violations on the current page."""
    page.evaluate(f"{source}; void 0")
    found = page.evaluate("(tags) => axe.run(document, { runOnly: tags })", RULES)
    assert len(found["passes"]) > 15
    return [
        (each["id"], each["nodes"][0]["html"], each["nodes"][0]["failureSummary"]) for each in found["violations"]
    ]
