"""The stable interface: its record in `tests/data/frozen` equals the code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FROZEN = Path(__file__).parents[2] / "data" / "frozen"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frozen")
    subprocess.run(
        [sys.executable, ROOT / "tests" / "helpers" / "frozen_api.py", folder], cwd=ROOT, check=True, timeout=120
    )
    return folder


@pytest.mark.parametrize("name", ["python.txt", "commands.txt", "http.txt", "json.txt"])
def test_public_interface_equals_its_record(fresh: Path, name: str) -> None:
    """If it is meant, and by the rule of docs/reference/stability.md: python tests/helpers/frozen_api.py"""
    before, now = ((folder / name).read_text(encoding="utf-8").splitlines() for folder in (FROZEN, fresh))
    assert sorted(set(before) - set(now)) == [], "this breaks who relies on it"
    assert now == before
