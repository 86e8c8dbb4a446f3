"""The site that Sphinx builds: complete, self-contained, searchable without a network, with anchors for Python names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import ldp_budget

DOCS = Path(__file__).resolve().parents[3] / "docs"
# docs/index.md takes the place of docs/README.md.
# The Python reference shows the examples; they have no pages.
PAGES = sorted(
    page.relative_to(DOCS).with_suffix("").as_posix()
    for page in DOCS.rglob("*.md")
    if page.name != "README.md" or page.parent != DOCS
    if page.parent.name != "examples" or page.parent.parent.name != "reference"
)
# Files whose text the site has as pages: security.md, changelog.md, contributing.md.
OF_THE_REPOSITORY = {DOCS.parent / name for name in ("SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md")}


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


@pytest.mark.exhaustive
def test_site_with_all_its_files_has_every_page_and_loads_nothing_from_another_host(
    site: Path, pages: dict[Path, Page]
) -> None:
    assert {site / f"{page}.html" for page in PAGES} <= set(pages)
    styles = {path: list(loaded_by_style(path.read_text(encoding="utf-8"))) for path in site.rglob("*.css")}
    assert sum(map(len, styles.values())) > 0
    asked = {**{path: page.loaded for path, page in pages.items()}, **styles}
    assert [(path.name, address) for path in asked for address in asked[path] if is_elsewhere(address)] == []


@pytest.mark.exhaustive
def test_scripts_of_the_site_name_no_other_host(site: Path) -> None:
    """The name of the SVG namespace is an address that is not loaded."""
    scripts = [path for path in site.rglob("*.js") if path.name != "searchindex.js"]
    assert "searchtools.js" in {path.name for path in scripts}
    named = [
        found for path in scripts for found in re.findall(r"""["'`]((?:https?:)?//\w[^"'`]*)""", path.read_text())
    ]
    assert set(named) <= {"http://www.w3.org/2000/svg"}


@pytest.mark.exhaustive
def test_links_and_loaded_files_of_the_site_exist(pages: dict[Path, Page]) -> None:
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


@pytest.mark.exhaustive
def test_search_index_of_the_site_has_every_page(site: Path, pages: dict[Path, Page]) -> None:
    loaded = [address.partition("?")[0] for address in pages[site / "search.html"].loaded]
    assert "searchindex.js" in loaded
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    assert sorted(index["docnames"]) == PAGES
    found = index["terms"]["odomet"]  # of a word its stem is kept
    named = {index["docnames"][number] for number in ([found] if isinstance(found, int) else found)}
    assert "explanation/promises" in named


@pytest.mark.exhaustive
def test_inventory_of_the_site_has_the_public_python_names(site: Path) -> None:
    """Other projects link to them by intersphinx."""
    lines = zlib.decompress((site / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode().splitlines()
    found = {line.split()[0]: line.split()[1] for line in lines if " py:" in line}
    assert {f"ldp_budget.{name}" for name in ldp_budget.__all__} <= set(found)
    assert found["ldp_budget.Accountant"] == "py:class"
    assert found["ldp_budget.Accountant.spend"] == "py:method"
    assert found["ldp_budget.compose"] == "py:function"
    assert found["ldp_budget.BudgetExceeded"] == "py:exception"
    assert len(found) > 400


@pytest.mark.exhaustive
@pytest.mark.parametrize("page", ["security", "changelog", "contributing"])
def test_project_page_of_the_site_has_the_text_of_its_file(site: Path, pages: dict[Path, Page], page: str) -> None:
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    titles = re.findall(r"^## (.+)$", (DOCS.parent / f"{page.upper()}.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert titles
    assert [title for title in titles if title.replace("'", "’") not in text and title not in text] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("stem", ["vulner", "tamper", "threat", "confid", "sandbox", "metric", "erasur"])
def test_search_index_of_the_site_has_terms_of_the_field(site: Path, stem: str) -> None:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    assert [term for term in (*index["terms"], *index["titleterms"]) if term.startswith(stem)]


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
