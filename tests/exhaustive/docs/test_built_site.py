"""The site that Sphinx builds: complete, self-contained, searchable without a network, with anchors for Python names."""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import ldp_budget
from site_pages import DOCS, PAGES, Page, is_elsewhere, loaded_by_style


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
    assert "explanation/promises" in named


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
