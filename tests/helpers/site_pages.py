"""The pages of the documentation, and what a built page links to and loads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

DOCS = Path(__file__).resolve().parents[2] / "docs"


# docs/index.md takes the place of docs/README.md.
# The Python reference shows the examples; they have no pages.
PAGES = sorted(
    page.relative_to(DOCS).with_suffix("").as_posix()
    for page in DOCS.rglob("*.md")
    if page.name != "README.md" or page.parent != DOCS
    if page.parent.name != "examples" or page.parent.parent.name != "reference"
)


class Page(HTMLParser):
    """The addresses that a page loads, its links, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded, self.links, self.anchors = list[str](), list[str](), set[str]()
        self._in_style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._in_style = tag == "style"
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if "href" in given:
            (self.links if tag in ("a", "area") else self.loaded).append(given["href"])
        self.loaded += [given[name] for name in ("src", "data", "poster", "background", "action") if name in given]
        self.loaded += [part.split()[0] for part in given.get("srcset", "").split(",") if part.strip()]
        self.loaded += list(loaded_by_style(given.get("style", "")))

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.loaded += loaded_by_style(data)


def loaded_by_style(text: str) -> Iterator[str]:
    """The addresses that a style sheet loads."""
    for quoted, bare in re.findall(r"""(?:url\(|@import)\s*(?:["']([^"']*)|([^"'\s();]+))""", text):
        yield quoted or bare


def is_elsewhere(address: str) -> bool:
    """True for an address on another host, or one that starts at the root of this host."""
    return address.startswith("/") or urlsplit(address).scheme not in ("", "data")
