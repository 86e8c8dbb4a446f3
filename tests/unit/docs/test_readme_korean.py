"""The README in Korean says what the one in English says: the same blocks, commands, links and figures.

`test_page_blocks.py` runs the blocks of the English one.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pytest

from doc_blocks import blocks

ROOT = Path(__file__).resolve().parents[3]
ENGLISH, KOREAN = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.ko.md"))
OTHER = {"README.md", "README.ko.md"}
LINK = re.compile(r"\]\(([^)\s]+)\)")


def outside(text: str) -> str:
    """A page without its blocks."""
    return re.sub(r"^```.*?^```\n", "", text, flags=re.MULTILINE | re.DOTALL)


TRANSLATED = {
    "docs/ko/quickstart.md": "docs/start/quickstart.md",
    "docs/ko/first-survey.md": "docs/start/first-survey.md",
    "docs/ko/faq.md": "docs/help/faq.md",
}


def links(text: str) -> list[str]:
    """The links of a page; a page in Korean counts as the one that it stands for."""
    found = [link for link in LINK.findall(outside(text)) if link not in OTHER]
    return [TRANSLATED.get(link, link) for link in found]


def code(text: str) -> list[str]:
    """The code spans of a page, without line breaks."""
    return sorted(" ".join(span.split()) for span in re.findall(r"`([^`]+)`", outside(text)))


def table(text: str) -> list[list[str]]:
    """The figures in each cell of the table."""
    rows = [line for line in outside(text).splitlines() if line.startswith("|")]
    return [[" ".join(sorted(re.findall(r"\d[\d.,-]*\d|\d", cell))) for cell in row.split("|")] for row in rows]


def test_korean_readme_has_the_same_blocks() -> None:
    assert [(block.kind, block.text) for block in blocks(KOREAN)] == [(b.kind, b.text) for b in blocks(ENGLISH)]


def test_korean_readme_has_the_same_links_in_the_same_order() -> None:
    assert links(KOREAN) == links(ENGLISH)
    assert len(links(KOREAN)) >= 20
    assert "](README.ko.md)" in ENGLISH
    assert "](README.md)" in KOREAN


def test_korean_readme_links_to_the_pages_in_korean() -> None:
    assert set(TRANSLATED) <= set(LINK.findall(KOREAN))


@pytest.mark.parametrize("link", sorted({*links(KOREAN), *TRANSLATED}))
def test_korean_readme_links_lead_to_files(link: str) -> None:
    assert re.match(r"\w+:", link) or (ROOT / link.partition("#")[0]).exists()


def test_names_commands_and_figures_are_the_same() -> None:
    assert code(KOREAN) == code(ENGLISH)
    english, korean = table(ENGLISH), table(KOREAN)
    assert [len(row) for row in korean] == [len(row) for row in english]
    # Two cells spell out a figure that the other language writes in digits.
    differing = {
        (at, cell) for at, row in enumerate(english) for cell, text in enumerate(row) if text != korean[at][cell]
    }
    assert len(differing) <= 2


def test_korean_readme_has_headings_of_the_same_depths() -> None:
    depths = [
        [len(marks) for marks in re.findall(r"^(#+) ", outside(text), re.MULTILINE)] for text in (ENGLISH, KOREAN)
    ]
    assert depths[0] == depths[1]


def test_korean_readme_is_korean_in_its_usual_form() -> None:
    """Syllables in one piece (NFC), as people type and search them."""
    assert unicodedata.is_normalized("NFC", KOREAN)
    letters = [letter for letter in outside(KOREAN) if letter.isalpha()]
    assert sum("가" <= letter <= "힣" for letter in letters) > len(letters) / 2
