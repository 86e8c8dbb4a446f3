"""The sources of the site: every page is in its contents."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest

from site_pages import DOCS, PAGES, Page, is_elsewhere

# Files whose text the site has as pages: security.md, changelog.md, contributing.md.
OF_THE_REPOSITORY = {DOCS.parent / name for name in ("SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md")}


@pytest.mark.parametrize("name", PAGES)
def test_page_has_no_skipped_heading_level_and_links_only_to_pages(name: str) -> None:
    """Two common warnings of Sphinx, found without it."""
    page = DOCS / f"{name}.md"
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, flags=re.MULTILINE)]
    assert [(above, below) for above, below in pairwise(levels) if below > above + 1] == []
    linked = {(page.parent / link).resolve() for link in re.findall(r"\]\(([^)\s:#]+\.md)", text)}
    assert linked <= {DOCS / f"{each}.md" for each in PAGES} | OF_THE_REPOSITORY


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/math.js"></script>',
        '<script src="//cdn.example/math.js"></script>',
        '<link rel="stylesheet" href="http://fonts.example/one.css">',
        '<img src="one.png" srcset="one.png 1x, https://cdn.example/two.png 2x">',
        '<style>@import "https://fonts.example/one.css";</style>',
        "<style>@font-face { src: url(//fonts.example/one.woff2) }</style>",
        "<p style=\"background: url('https://cdn.example/one.png')\">",
        '<script src="/_static/from-the-root.js"></script>',
    ],
)
def test_page_that_loads_from_another_host_is_noticed(text: str) -> None:
    assert any(map(is_elsewhere, Page(text).loaded))


def test_page_with_links_and_local_files_loads_nothing_from_another_host() -> None:
    page = Page('<a href="https://example.org">x</a><img src="one.png"><style>a { b: url("data:x,y") }</style>')
    assert page.loaded == ["one.png", "data:x,y"]
    assert not any(map(is_elsewhere, page.loaded))
