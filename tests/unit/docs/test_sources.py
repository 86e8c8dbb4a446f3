"""The five texts the project grew from: cited by author and title, and described on one page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ldp_budget.registry.plugins import registry
from ldp_budget_mechanisms import _citations

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "evidence" / "sources.md"
SOURCES = [value for name, value in vars(_citations).items() if name.isupper()]
KOREAN = re.compile(r'"([^"]+)" \((.+?)\)(?:,|$)')


@pytest.mark.parametrize("source", SOURCES)
def test_each_source_is_on_the_page_by_its_title_and_translation(source: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    [(title, translation)] = KOREAN.findall(source)
    assert f"| {title} | *{translation}* |" in page


def test_each_source_is_cited_by_some_mechanism() -> None:
    cited = " ".join(mechanism.source for mechanism, _ in registry().items())
    assert [source for source in SOURCES if source not in cited] == []


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["accountant", "plugins", "cli", "docs"])
def test_nothing_is_cited_by_a_number_that_only_we_know(folder: str) -> None:
    files = [ROOT / "README.md", *(ROOT / folder).rglob("*.py"), *(ROOT / folder).rglob("*.md")]
    found = [path.name for path in files if re.search(r"\bdocument 00\d", path.read_text(encoding="utf-8"), re.I)]
    assert found == []
