"""The site that Sphinx builds: complete, self-contained, searchable without a network, with anchors for Python names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

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


def test_site_with_all_its_files_has_every_page_and_loads_nothing_from_another_host(
    site: Path, pages: dict[Path, Page]
) -> None:
    assert {site / f"{page}.html" for page in PAGES} <= set(pages)
    styles = {path: list(loaded_by_style(path.read_text(encoding="utf-8"))) for path in site.rglob("*.css")}
    assert sum(map(len, styles.values())) > 0
    asked = {**{path: page.loaded for path, page in pages.items()}, **styles}
    assert [(path.name, address) for path in asked for address in asked[path] if is_elsewhere(address)] == []


def test_search_index_of_the_site_has_every_page(site: Path, pages: dict[Path, Page]) -> None:
    loaded = [address.partition("?")[0] for address in pages[site / "search.html"].loaded]
    assert "searchindex.js" in loaded
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    assert sorted(index["docnames"]) == PAGES
    found = index["terms"]["odomet"]  # of a word its stem is kept
    named = {index["docnames"][number] for number in ([found] if isinstance(found, int) else found)}
    assert "reference/http/users" in named


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


# -- what a reader sees ------------------------------------------------------------------------------------------------


def test_formulas_of_the_site_are_typeset_without_a_script(site: Path) -> None:
    text = (site / "reference" / "mechanisms" / "oue.html").read_text(encoding="utf-8")
    assert re.search(r'<math [^>]*display="block">.*?<mfrac>', text)
    assert "$$" not in text


def test_sidebar_of_the_site_is_grouped_and_opens_the_group_of_the_page(site: Path) -> None:
    text = (site / "guides" / "backup.html").read_text(encoding="utf-8")
    groups = re.findall(r"<details class=.group.( open)?><summary class=.caption.>([^<]*)<", text)
    assert len(groups) >= 8
    assert [name for state, name in groups if state] == ["Operate"]


@pytest.mark.parametrize(
    ("words", "lead"),
    [
        ("margin of error", "start/first-survey"),
        ("court", "explanation/privacy-officers"),
        ("한국어", "ko/quickstart"),
        ("응답자", "ko/faq"),
        ("kotlin", "start/which-road"),
        ("docker", "guides/operations"),
        ("erase", "guides/erase-a-user"),
        ("composition", "explanation/which-composition-rule"),
    ],
)
def test_search_of_the_site_leads_with_the_page(site: Path, browser: Any, words: str, lead: str) -> None:
    """A guide comes before benchmarks and the changelog, and Korean words are found without their endings."""
    page = browser.new_page()
    page.goto(f"{(site / 'search.html').as_uri()}?q={quote(words)}")
    link = page.wait_for_selector("#search-results li a")
    assert link.get_attribute("href").partition(".html")[0] == lead
    page.close()


def test_copy_button_of_the_site_leaves_out_prompts_and_outputs(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.goto((site / "start" / "quickstart.html").as_uri())
    block = page.locator("div.highlight", has_text="ls budget").first
    page.evaluate("document.addEventListener('copy', () => { window.copied = document.activeElement.value; }, true)")
    block.hover()
    block.locator("button.copybtn").click()
    copied = page.evaluate("window.copied")
    assert copied.strip() == "ls budget.db*"
    page.close()
