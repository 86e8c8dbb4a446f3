"""The reference is what the code says: its pages are those that are made of it afresh."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ldp_budget

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reference")
    subprocess.run([sys.executable, REFERENCE / "generate.py", "--out", out], check=True, timeout=60)
    return out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["commands.md", "python.md", "http.md", "client-programs.md"])
def test_the_reference_is_what_the_code_says(fresh: Path, name: str) -> None:
    """If not: python docs/reference/generate.py"""
    assert (REFERENCE / name).read_text(encoding="utf-8") == (fresh / name).read_text(encoding="utf-8")


def test_the_reference_has_every_command_and_every_public_name(fresh: Path) -> None:
    from ldp_budget_cli.app import COMMANDS

    listed = (fresh / "commands.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"\n## ldp-budget {name}\n" not in listed] == []
    listed = (fresh / "python.md").read_text(encoding="utf-8")
    assert [name for name in ldp_budget.__all__ if f"\n### `{name}`\n" not in listed] == []


def test_the_reference_says_something_of_every_name(fresh: Path) -> None:
    """A heading is never followed by the next one, nor by its signature alone."""
    text = (fresh / "python.md").read_text(encoding="utf-8")
    without_code = re.sub(r"```text\n.*?```\n", "", text, flags=re.DOTALL)
    assert re.findall(r"^(### .+)\n+(?=#|\Z)", without_code, flags=re.MULTILINE) == []


def test_the_generator_has_no_machine_in_it(fresh: Path) -> None:
    for name in ("commands.md", "python.md"):
        text = (fresh / name).read_text(encoding="utf-8")
        assert " at 0x" not in text
        assert str(ROOT) not in text
