"""The site that Sphinx makes of the pages: complete, whole by itself, and searched without a network."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
# docs/index.md takes the place of docs/README.md.
PAGES = sorted(page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md"))
PAGES.remove("README")


class Page(HTMLParser):
    """What a page asks a browser to load, where its links lead, and the places in it that a link can lead to."""

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
    """Whether it is not beside the page that has it: on another host, or reckoned from this one's root."""
    return address.startswith("/") or urlsplit(address).scheme not in ("", "data")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(name)
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-n", "-q", "-d", str(out / ".doctrees")]
    done = subprocess.run([*command, str(DOCS), str(out)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


@pytest.mark.slow
def test_every_page_is_there_and_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    assert {site / f"{page}.html" for page in PAGES} <= set(pages)
    styles = {path: list(loaded_by_style(path.read_text(encoding="utf-8"))) for path in site.rglob("*.css")}
    assert sum(map(len, styles.values())) > 0
    asked = {**{path: page.loaded for path, page in pages.items()}, **styles}
    assert [(path.name, address) for path in asked for address in asked[path] if is_elsewhere(address)] == []


@pytest.mark.slow
def test_no_script_names_another_host(site: Path) -> None:
    """But for the name of SVG's vocabulary, which is an address that nobody loads."""
    scripts = [path for path in site.rglob("*.js") if path.name != "searchindex.js"]
    assert "searchtools.js" in {path.name for path in scripts}
    named = [
        found for path in scripts for found in re.findall(r"""["'`]((?:https?:)?//\w[^"'`]*)""", path.read_text())
    ]
    assert set(named) <= {"http://www.w3.org/2000/svg"}


@pytest.mark.slow
def test_every_link_within_the_site_and_all_that_it_loads_are_there(pages: dict[Path, Page]) -> None:
    missing = []
    for path, page in pages.items():
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchors = pages[target].anchors if target in pages else set()
            if not target.exists() or (parts.fragment and unquote(parts.fragment) not in anchors):
                missing.append((path.name, link))
    assert missing == []


@pytest.mark.slow
def test_the_search_has_every_page_in_an_index_of_its_own(site: Path, pages: dict[Path, Page]) -> None:
    loaded = [address.partition("?")[0] for address in pages[site / "search.html"].loaded]
    assert "searchindex.js" in loaded
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    assert sorted(index["docnames"]) == PAGES
    found = index["terms"]["odomet"]  # of a word its stem is kept
    named = {index["docnames"][number] for number in ([found] if isinstance(found, int) else found)}
    assert "explanation/promises" in named


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_one_that_sphinx_takes_without_a_warning(name: str) -> None:
    """The two warnings that are easily earned, found without Sphinx: a level left out, and a page that it has not."""
    page = DOCS / f"{name}.md"
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, flags=re.MULTILINE)]
    assert [(above, below) for above, below in pairwise(levels) if below > above + 1] == []
    linked = {(page.parent / link).resolve() for link in re.findall(r"\]\(([^)\s:#]+\.md)", text)}
    assert linked <= {DOCS / f"{each}.md" for each in PAGES}


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
def test_what_a_page_loads_from_elsewhere_is_found(text: str) -> None:
    assert any(map(is_elsewhere, Page(text).loaded))


def test_links_to_follow_and_what_lies_beside_the_page_are_not_taken_for_it() -> None:
    page = Page('<a href="https://example.org">x</a><img src="one.png"><style>a { b: url("data:x,y") }</style>')
    assert page.loaded == ["one.png", "data:x,y"]
    assert not any(map(is_elsewhere, page.loaded))
