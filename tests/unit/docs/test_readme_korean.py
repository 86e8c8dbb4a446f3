"""The README in Korean says what the one in English says: the same blocks, commands, links and figures.

`test_page_blocks.py` runs the blocks of the English one.
"""

from __future__ import annotations

import re
from pathlib import Path

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


def test_korean_readme_has_the_same_blocks() -> None:
    assert [(block.kind, block.text) for block in blocks(KOREAN)] == [(b.kind, b.text) for b in blocks(ENGLISH)]


def test_korean_readme_has_the_same_links_in_the_same_order() -> None:
    assert links(KOREAN) == links(ENGLISH)
    assert len(links(KOREAN)) >= 20
    assert "](README.ko.md)" in ENGLISH
    assert "](README.md)" in KOREAN
