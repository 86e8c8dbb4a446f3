"""The extensions of Sphinx for the site: groups in the sidebar, words of the search, signatures."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.fixture
def parts() -> Iterator[None]:
    sys.path.insert(0, str(DOCS))
    try:
        yield
    finally:
        sys.path.remove(str(DOCS))


def test_sidebar_has_a_group_for_each_caption_and_opens_that_of_the_page(parts: None) -> None:
    from site_parts.sidebar import grouped

    def tree(name: str, state: str) -> str:
        item = f'<li class="toctree-l1{state}"><a href="#">x</a><ul><li>y</li></ul></li>'
        return (
            f'<p class="caption" role="heading"><span class="caption-text">{name}</span></p>\n<ul>\n{item}\n</ul>\n'
        )

    text = grouped(tree("One", "") + tree("Two", " current"))
    assert re.findall(r"<details class=.group.( open)?><summary class=.caption.>(\w+)<", text) == [
        ("", "One"),
        (" open", "Two"),
    ]
    assert text.count("</details>") == 2
    assert text.count("<li>y</li>") == 2


@pytest.mark.slow
def test_search_index_has_korean_words_without_their_particles(parts: None) -> None:
    pytest.importorskip("sphinx")
    from site_parts.search import SearchEnglishAndKorean

    words = SearchEnglishAndKorean({}).split("응답자는 margin 한국어")
    assert {"응답자는", "응답자", "응답", "한국어", "한국", "margin"} == set(words)


def test_signature_with_an_object_as_default_shows_dots(parts: None) -> None:
    from site_parts.signatures import readable

    assert readable("(clock: Callable[[], float] = <built-in function time>, *, a=1)") == (
        "(clock: Callable[[], float] =..., *, a=1)"
    )
    assert readable(None) is None
