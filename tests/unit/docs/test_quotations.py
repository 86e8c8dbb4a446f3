"""Pages show what their texts quote: a block shows rows, and the paragraph after it quotes figures of the block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from doc_blocks import commands_of, console_blocks_with_text

ROOT = Path(__file__).resolve().parents[3]
PAGES = [
    ROOT / "README.md",
    *sorted(
        page
        for folder in ("start", "guides", "explanation", "tutorials")
        for page in (ROOT / "docs" / folder).glob("*.md")
    ),
]
DERIVED = {
    "choosing-a-mechanism.md": {"1.8"},  # the center of the range
    "fresh-or-memoised.md": {"0.991"},  # the sum of a table further below
    "repeated-survey.md": {"1.4", "2.6", "0.75", "0.20"},  # √2, a ratio, and parts of a sum
    "check-a-total.md": {"0.1"},  # the distance of a certificate from the exact loss
    "fixed-plan.md": {"0.1"},  # another plan's ε
    "daily-question.md": {"2.1", "4.5"},  # 12/√30, and what 30 days cost under another rule
    "questionnaire.md": {"4.0", "6.8", "13.8"},  # measured ratios of variances
    "survey-page.md": {"6.7"},  # the factor of three reports
}
"""Figures after a block that are not in the block, with the reason."""


def quoted(text: str) -> Iterator[str]:
    """Yield the decimal figures of a paragraph, without versions and paths."""
    yield from re.findall(r"(?<![\w.,/-])\d+\.\d+(?![\w.])", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_figures_after_a_block_are_in_the_block(page: Path) -> None:
    for block, text in console_blocks_with_text(page.read_text(encoding="utf-8")):
        missing = {figure for figure in quoted(text) if figure not in block.text}
        assert missing <= DERIVED.get(page.name, set()), block.text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_table_in_a_block_shows_a_row(page: Path) -> None:
    """A table that `head` cuts after its header shows nothing."""
    for block, _ in console_blocks_with_text(page.read_text(encoding="utf-8")):
        for command in commands_of(block):
            lines = command.output.splitlines()
            if "| head" in command.text and len(lines) > 1:
                assert re.search(r"\d", "".join(lines[1:])), command.text
