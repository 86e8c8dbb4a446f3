"""Recorded outputs of the documentation show what a reader should see."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from doc_blocks import blocks, commands_of

ROOT = Path(__file__).resolve().parents[3]
FAILED_TESTS = "<!-- shows failed tests -->"


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: str(page.relative_to(ROOT))
)
def test_page_that_shows_no_failed_tests_records_none(page: Path) -> None:
    """A page showed `1 failed, 4 passed` under the command that its reader types."""
    for block in blocks(page.read_text(encoding="utf-8")):
        for command in commands_of(block) if block.kind == "console" and block.before != FAILED_TESTS else ():
            if "pytest" in command.text:
                assert not re.search(r"\b\d+ (failed|errors?)\b", command.output), (
                    f"{page.name}, line {command.line}: make the tests pass, or write {FAILED_TESTS} before the block"
                )
